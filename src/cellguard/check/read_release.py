"""Releases made elsewhere: read what another program published, and refuse what does not fit the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._tolerances import ROUNDED_TRUTH
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.check.told import Told
from cellguard.exceptions import FormatError, InputError, ReleaseError, UnknownCodeError, did_you_mean
from cellguard.nouns.attacker import Attacker
from cellguard.nouns.checks import additivity_residuals, refuse_cells
from cellguard.nouns.grid import empty_cells_of_table
from cellguard.nouns.kept import Keep, kept_cells, plain_kept_entries, table_with_kept_known
from cellguard.nouns.publication import Publication
from cellguard.nouns.release import Adjustment, Intervals, Perturbation, Release, Rounding, Status, Suppression
from cellguard.nouns.table import Table
from cellguard.nouns.trees import nearest_codes_of_tree

if TYPE_CHECKING:
    from cellguard._io.release_columns import PublishedColumns

__all__ = ["check_release_to_audit", "read_release"]

_HIDDEN = {"withheld", "primary", "secondary", "suppressed", "u", "x", "m", "a", "b", "c", "d", "true", "yes", "1"}
"""Marks of withheld cells: ours, tau-ARGUS's and sdcTable's."""
_SHOWN = {"published", "safe", "s", "v", "z", "p", "false", "no", "0", ""}
_refuse = partial(refuse_cells, kind=ReleaseError)
_PUBLISHED = "what stands in the file is published: leave the value out, or write x in its place"


def read_release(
    table: Table | Publication,
    path: str | Path | Mapping[str, str | Path],
    *,
    method: str | None = None,
    base: ArrayLike | None = None,
    step: int | None = None,
    distance: ArrayLike | None = None,
    keep_multiples: bool = False,
    keep: Iterable[Keep] = (),
    ignore: Collection[str] = (),
    marks_only: bool = False,
) -> Release:
    """Read a release of a table from a file that any program may have written.

    What stands in the file is published: a value beside the mark of a withheld cell, a second column of
    numbers, or one that nothing explains is refused. Base, step, distance and kept totals that are not given are
    those that the manifest beside the file tells, if there is one.

    Parameters
    ----------
    table
        The true table, or the publication.
    path
        ``.csv`` or ``.parquet`` with a row per cell: the dimensions' codes, or a column `cell` with the
        index, or neither if the rows are in the table's order; then a value and possibly a status
        (withheld cells are blank, or marked as in tau-ARGUS and sdcTable), or a lower and an upper
        end. Or a text file with the index of a secondary suppression in each line, as suppression
        solvers write them. Of a publication a folder with a file for each table, named like it, or table -> file;
        of linked tables a folder in which one file has all cells.
    method
        ``suppress``, ``intervals``, ``round``, ``perturb`` or ``adjust``; found from the columns unless given.
    base, step
        Of a rounded table: its base, or one per cell; cells moved by less than `step` bases, 1 unless given.
    distance
        Of a perturbed table: how far, at most, cells moved; one number, or one per cell. Its base will do.
    keep_multiples
        Of a rounded table: sensitive multiples of the base were let stay (:func:`cellguard.round`).
    keep
        Of a rounded table: what went to its nearest multiple (:func:`cellguard.round`). Everybody knows it.
    ignore
        Columns that say nothing about the table's values.
    marks_only
        The file is an internal one: the values beside the marks of withheld cells will not be published.
    """
    if isinstance(table, Publication):
        table = table.table
    how = Told(method=method, base=base, step=step, distance=distance, keep_multiples=keep_multiples, keep=keep)
    if not isinstance(path, Mapping):
        how = how.completed(Path(path))
    read = partial(_read_release_file, how=how, ignore=ignore, marks_only=marks_only)
    if isinstance(path, Mapping) or (table.dimensions and Path(path).is_dir()):
        from cellguard.check.read_tables import linked_tables_to_read, read_tables, release_files_to_read

        if table.parts or isinstance(path, Mapping):
            release = read_tables(table, release_files_to_read(table.parts or (), path), read)
        else:
            release = replace(read_tables(*linked_tables_to_read(table, Path(path)), read), table=table)
    else:
        release = read(table, Path(path))
    return _read_rounding_with_kept(release, how.keep) if isinstance(release, Rounding) else release


def _read_release_file(
    table: Table,
    path: Path,
    *,
    how: Told,
    ignore: Collection[str],
    marks_only: bool,
    columns: Mapping[str, Any] | None = None,
) -> Release:
    """Read the release of a table from a file, or from `columns`, which are those of the file that are the table's."""
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".parquet", ".tab", ".tsv")):
        from cellguard._io.frames import read_frame
        from cellguard._io.release_columns import read_release_columns

        published = read_release_columns(path, columns or read_frame(path), table.dimensions, ignore=ignore)
        return _PublishedFile(table, path, published, marks_only).release(how)
    return _release_as_read(table, "suppress", suppressed=_read_release_of_indices(table, path) | table.sensitive)


def _read_rounding_with_kept(release: Rounding, keep: Iterable[Keep]) -> Rounding:
    """Return a rounding of which everybody knows what went to its nearest multiple."""
    table = release.table
    kept = kept_cells(table, keep) & ~table.fixed
    near = np.floor(table.values / release.base + 0.5) * release.base
    off = np.abs(release.values - near) > release.base / 4
    _refuse(table, kept & off, "is said to be kept, and is not the multiple nearest to it.")
    options = {**release.options, "keep": plain_kept_entries(keep)}
    return replace(release, table=table_with_kept_known(table, release.base, kept), options=options)


def _release_as_read(table: Table, method: str, **published: Any) -> Release:
    made = (Suppression, Intervals, Rounding, Perturbation, Adjustment)
    kinds: dict[str, type[Release]] = {kind.method: kind for kind in made}
    if method not in kinds:
        raise InputError(
            f"unknown method {method!r}.", hint=did_you_mean(method, kinds) or f"known: {', '.join(kinds)}."
        )
    return kinds[method](table=table, status=Status.FEASIBLE, objective=0.0, options={"source": "file"}, **published)


def _read_release_of_indices(table: Table, path: Path) -> BoolArray:
    """Read indices of suppressed cells, one per line."""
    from cellguard._io.files import read_bytes

    out = np.zeros(table.n_cells, bool)
    for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), start=1):
        word = line.strip()
        if word and not (word.isdecimal() and len(word) < 19 and int(word) < table.n_cells):
            raise FormatError.at(path, number, f"a cell's index, 0..{table.n_cells - 1}, is needed.")
        if word:
            out[int(word)] = True
    return out


# ---------------------------------------------------------------------- columns


class _PublishedFile:
    """The columns of a published file, brought into the order of the table's cells."""

    def __init__(self, table: Table, path: Path, columns: PublishedColumns, marks_only: bool) -> None:
        self.table, self.path, self.marks_only = table, path, marks_only
        cells = _cells_of_release_rows(table, path, columns)

        def ordered(column: list[str] | None, unlisted: str) -> list[str] | None:
            if column is None:
                return None
            out = np.full(table.n_cells, unlisted, dtype=object)
            out[cells] = column
            return [str(x) for x in out]

        # a cell that everybody knows to be empty needs no row
        self.status = ordered(columns.status, "published")
        self.value, self.lower, self.upper = (ordered(x, "0") for x in (columns.value, columns.lower, columns.upper))

    def release(self, how: Told) -> Release:
        """Return the release of the method that is told, or of the one that the columns speak of."""
        method = how.method
        if self.lower is not None or self.upper is not None:
            return self._intervals(method)
        blank = np.zeros(self.table.n_cells, bool) if self.value is None else _read_release_blanks(self.value)
        if method is None:
            method = "suppress" if self.status is not None or blank.any() else _method_told_with_release(how)
        if method == "suppress":
            return self._suppression(blank)
        if self.value is None or blank.any():
            raise ReleaseError(f"{self.path}: every cell needs a value when the method is {method!r}.")
        return _changed_release_as_read(
            self.table, method, _read_release_numbers(self.table, self.path, self.value, np.nan), how
        )

    def _intervals(self, method: str | None) -> Release:
        if self.lower is None or self.upper is None or method not in (None, "intervals"):
            raise FormatError.at(
                self.path, 1, "has a lower or an upper end of the values, which is published with them.",
                hint="intervals have both; another release has neither: leave the columns out of the file.",
            )  # fmt: skip
        low, high = (
            _read_release_numbers(self.table, self.path, x, end)
            for x, end in ((self.lower, -np.inf), (self.upper, np.inf))
        )
        if self.value is not None:
            both = ~_read_release_blanks(self.value) & (low != high)
            _refuse(self.table, both, "has an interval, and a value beside it.", f"{_PUBLISHED}.")
        return _release_as_read(self.table, "intervals", lower=low, upper=high)

    def _suppression(self, blank: BoolArray) -> Release:
        hidden = blank
        if self.status is not None:
            hidden = self._hidden(self.status)
            _refuse(self.table, blank & ~hidden, "the status says published, and there is no value.")
            if self.value is not None and not self.marks_only:
                _refuse(self.table, hidden & ~blank, "is marked as withheld, and a value stands beside the mark.",
                        f"{_PUBLISHED}; say marks_only of an internal file.")  # fmt: skip
        release = _release_as_read(self.table, "suppress", suppressed=hidden)
        if self.value is not None:
            shown = ["nan" if h else v for h, v in zip(hidden.tolist(), self.value, strict=True)]
            published = _read_release_numbers(self.table, self.path, shown, np.nan)
            slack = ROUNDED_TRUTH * np.maximum(1.0, np.abs(self.table.values))
            wrong = ~hidden & ~(np.abs(published - self.table.values) <= slack)
            _refuse(
                self.table, wrong, "the published value is not the table's.", "was the release made from this table?"
            )
        return release

    def _hidden(self, status: list[str]) -> BoolArray:
        for k, mark in enumerate(status):
            if mark.lower() not in _HIDDEN | _SHOWN:
                known = ", ".join(sorted((_HIDDEN | _SHOWN) - {""}))
                word = "" if any(c.isdigit() for c in mark) else f" {mark[:20]!r}"  # a number may be a value
                raise FormatError.at(
                    self.path, None, f"{self.table.label(k)}: unknown status{word}.", hint=f"known: {known}."
                )
        return np.array([mark.lower() in _HIDDEN for mark in status])


def _read_release_blanks(words: list[str]) -> BoolArray:
    from cellguard._io.release_columns import BLANKS

    return np.array([word.lower() in BLANKS for word in words])


def _method_told_with_release(how: Told) -> str:
    if how.base is not None:
        return "round"
    if how.distance is not None:
        return "perturb"
    raise InputError(
        "the file has a value for every cell, and nothing says how they were made.",
        hint="give the method (round with its base, perturb with its distance, or adjust).",
    )


def _changed_release_as_read(table: Table, method: str, values: FloatArray, how: Told) -> Release:
    """Make a release of values that differ from the true ones; `how` is what was published with them."""
    if method == "adjust":
        return _release_as_read(table, method, values=values)
    if method == "round":
        base = _told_number_per_cell(table, how.base, "a rounded table needs its base")
        step = 1 if how.step is None else how.step
        if step < 1:
            raise InputError(f"step {step!r}: a whole number of at least 1 is needed.")
        return _release_as_read(table, method, values=values, base=base, step=step, keep_multiples=how.keep_multiples)
    room = how.distance if how.distance is not None else how.base
    room = _told_number_per_cell(table, room, "a perturbed table needs the distance that was published with it")
    return _release_as_read(table, method, values=values, distance=room)


def _told_number_per_cell(table: Table, given: ArrayLike | None, what: str) -> FloatArray:
    """Return one positive number per cell."""
    numbers = np.asarray(np.nan if given is None else given, np.float64)
    if numbers.ndim and numbers.shape != (table.n_cells,):
        raise InputError(f"{what}: {numbers.size} numbers were given for {table.n_cells} cells.")
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise InputError(f"{what}, a positive number.")
    return np.broadcast_to(numbers, table.n_cells).copy()


def _cells_of_release_rows(table: Table, path: Path, columns: PublishedColumns) -> IntArray:
    """Return the cell of each row, by codes, by index, or by order; every cell once, unless known to be empty."""
    rows = columns.rows
    if columns.codes is not None:
        cells = _cells_by_release_codes(table, path, columns.codes)
    elif columns.cell is not None:
        bad = next((i for i, w in enumerate(columns.cell) if not (w.isdecimal() and len(w) < 19)), None)
        if bad is not None:
            raise FormatError.at(path, bad + 2, "the column `cell` must hold the cell's index.")
        cells = np.array([int(w) for w in columns.cell], np.int64)
    else:
        cells = np.arange(rows, dtype=np.int64)
    inside = cells[cells < table.n_cells]
    needed = int((~empty_cells_of_table(table)).sum())
    listed = int((~empty_cells_of_table(table))[np.unique(inside)].sum())
    if listed != needed or len(np.unique(cells)) != rows or len(inside) != rows:
        raise ReleaseError(
            f"{path}: {rows} rows, {len(np.unique(cells))} different cells; the table has {table.n_cells} cells.",
            hint="a release has one row for every cell of its table, totals included.",
        )
    return cells


def _cells_by_release_codes(table: Table, path: Path, codes: list[list[str]]) -> IntArray:
    from cellguard._io.frames import guarded_from_formulas

    place = np.zeros((len(codes[0]), len(codes)), np.int64)
    for d, column in enumerate(codes):
        # tau-ARGUS leaves the code of the total empty; our own files guard what looks like a formula
        index = {"": 0} | {guarded_from_formulas(code): i for i, code in enumerate(table.codes[d])}
        if not index.keys() >= set(column):
            index = {"": 0} | {code: i for i, code in enumerate(table.codes[d])}
        unknown = next((c for c in column if c not in index), None)
        if unknown is not None:
            raise UnknownCodeError(
                f"{path}: dimension {table.dimensions[d]!r} has no code {unknown!r}.",
                hint=nearest_codes_of_tree(unknown, table.codes[d]),
            )
        place[:, d] = [index[c] for c in column]
    cells = table.cells_at(place)
    if (cells < 0).any():
        row = int(np.argmax(cells < 0))
        shown = ", ".join(f"{d}={column[row]}" for d, column in zip(table.dimensions, codes, strict=True))
        raise ReleaseError(f"{path}: the table has no cell ({shown}).")
    return cells


def _read_release_numbers(table: Table, path: Path, words: list[str], blank: float) -> FloatArray:
    from cellguard._io.release_columns import BLANKS

    out = np.empty(len(words))
    for k, word in enumerate(words):
        text = word.replace(",", ".") if "," in word and "." not in word else word
        try:
            out[k] = blank if word.lower() in BLANKS else float(text)
        except ValueError:
            raise FormatError.at(path, None, f"{table.label(k)}: not a number.") from None
    return out


# ---------------------------------------------------------------------- does the release fit its table?


def check_release_to_audit(release: Release) -> None:
    """Refuse a release that does not fit its table or contradicts it (:class:`ReleaseError`)."""
    table = release.table
    for name, array in release.cell_arrays().items():
        if array.shape != (table.n_cells,):
            raise ReleaseError(f"the release has {array.size} cells in {name!r}, its table {table.n_cells}.")
    published = release.point_values()
    if isinstance(release, Suppression):
        protected = np.maximum(table.lower, np.maximum(table.upper, table.sliding)) > 0
        _refuse(
            table,
            table.sensitive & ~release.suppressed & (protected | ~table.fixed),
            "the cell is sensitive and was left published.",
            "suppress every sensitive cell, or take it off the list of sensitive ones.",
        )
        return
    # cells published as (-inf, inf) have no middle
    open_ = isinstance(release, Intervals) and np.isinf(release.lower) & np.isinf(release.upper)
    _refuse(table, np.isnan(published) & ~np.asarray(open_), "there is no value.")
    slack = ROUNDED_TRUTH * np.maximum(1.0, np.abs(table.values))
    if isinstance(release, Adjustment):
        bad = (published < table.lb - slack) | (published > table.ub + slack)
        _refuse(table, bad, "the published value lies outside the known bounds.")
    else:
        if isinstance(release, Rounding | Perturbation):  # a base is nothing beside a large value
            slack = 1e-12 * np.maximum(1.0, np.abs(table.values))
        lo, hi = release.published_bounds(Attacker(name="nobody"))
        _refuse(table, ~((lo <= table.values + slack) & (hi >= table.values - slack)),
                "the published interval does not contain the true value.")  # fmt: skip
    if isinstance(release, Rounding):
        _check_multiples_to_audit(release)
    elif isinstance(release, Adjustment | Perturbation):
        _check_sums_to_audit(table, published)
    elif isinstance(release, Intervals):
        _refuse(table, release.lower > release.upper, "the lower end of its interval lies above the upper end.")


def _check_multiples_to_audit(release: Rounding) -> None:
    """Refuse a rounded table with a number that is no multiple of its base, or that does not add up exactly."""
    from cellguard._engine.numbers.multiples import decimals_of_numbers, numbers_off_base, residuals_of_decimal_numbers

    table, digits = release.table, decimals_of_numbers(release.base)
    if digits is None:
        raise ReleaseError("a base has more than nine decimals.")
    _refuse(table, numbers_off_base(release.values, release.base), "the published value is no multiple of the base.",
            "is this the base with which the table was rounded?")  # fmt: skip
    residual = residuals_of_decimal_numbers(table.relations, table.rhs, release.values, digits)
    if residual is None:
        _check_sums_to_audit(table, release.values)
    elif (bad := residual != 0).any():
        _refuse_sums_to_audit(table, bad, int(np.argmax(bad)))


def _check_sums_to_audit(table: Table, published: FloatArray) -> None:
    residual, allowed = additivity_residuals(table.relations, table.rhs, published)
    bad = np.abs(residual) > 100 * allowed
    if bad.any():
        _refuse_sums_to_audit(table, bad, int(np.argmax(np.abs(residual) - allowed)))


def _refuse_sums_to_audit(table: Table, bad: BoolArray, worst: int) -> None:
    raise ReleaseError(
        f"{int(bad.sum())} of {table.n_relations} relations do not hold in what is published; "
        f"the worst is {table.relation_label(worst)}.",
        hint="was the release made from this table, and were all its cells read?",
    )
