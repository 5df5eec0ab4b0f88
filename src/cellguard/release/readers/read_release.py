"""Read a release that any program published, and refuse one that does not fit the table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import FormatError, InputError, ReleaseError, UnknownCodeError
from cellguard.model.kept import Keep
from cellguard.model.linked.publication import Publication
from cellguard.model.table import Table
from cellguard.model.trees import suggest_code
from cellguard.release.grid import find_empty_cells
from cellguard.release.readers.manifest_facts import PublishedFacts
from cellguard.release.release import KINDS, Release, Suppression, get_kind

if TYPE_CHECKING:
    from cellguard._io.release_columns import PublishedColumns

__all__ = ["PublishedFile", "check_release_to_audit", "read_release"]

_HIDDEN = {"withheld", "primary", "secondary", "suppressed", "u", "x", "m", "a", "b", "c", "d", "true", "yes", "1"}
"""Marks of withheld cells in cellguard, tau-ARGUS and sdcTable."""
_SHOWN = {"published", "safe", "s", "v", "z", "p", "false", "no", "0", ""}


def read_release(
    table: Table | Publication,
    path: str | Path | Mapping[str, str | Path],
    *,
    method: str | None = None,
    base: ArrayLike | None = None,
    step: int | None = None,
    distance: ArrayLike | None = None,
    areas: str | None = None,
    keep_multiples: bool = False,
    between: bool = False,
    keep: Iterable[Keep] = (),
    ignore: Collection[str] = (),
    marks_only: bool = False,
) -> Release:
    """Read a release of a table from a file that any program may have written.

    Everything in the file is published, so a value next to the mark of a withheld cell, a second column of
    numbers, or an unexplained column is refused. Base, step, distance and kept totals that are not given are
    taken from the manifest next to the file, if there is one.

    Parameters
    ----------
    table
        The true table, or the publication.
    path
        ``.csv`` or ``.parquet`` with one row per cell: the dimensions' codes, or a column `cell` with the
        index, or neither if the rows are in the table's order; then a value and possibly a status
        (withheld cells are blank, or marked as in tau-ARGUS and sdcTable), or a lower and an upper
        end. Or a text file with the index of a secondary suppression in each line, as suppression
        solvers write them. For a publication, a folder with a file for each table, named like it, or table -> file;
        for linked tables, a folder in which one file has all cells.
    method
        ``suppress``, ``intervals``, ``round``, ``perturb`` or ``adjust``; found from the columns unless given.
    base, step
        For a rounded table: its base, or one per cell; cells moved by less than `step` bases, 1 unless given.
    distance
        For a perturbed table: the largest move; one number, or one per cell. The base is accepted, too.
    areas
        For a table perturbed area by area: the dimension of areas (:func:`cellguard.perturb`). Distances of its finest
        codes are as given, those of the others their sums.
    keep_multiples
        For a rounded table: sensitive multiples of the base were allowed to stay (:func:`cellguard.round`).
    between
        For a perturbed table: every cell stayed between the multiples next to it (:func:`cellguard.perturb`).
    keep
        For a rounded table: cells that went to their nearest multiple (:func:`cellguard.round`). Attackers know it.
    ignore
        Columns that contain no information about the table's values.
    marks_only
        The file is internal: the values next to the marks of withheld cells will not be published.
    """
    if isinstance(table, Publication):
        table = table.table
    how = PublishedFacts(
        method=method,
        base=base,
        step=step,
        distance=distance,
        areas=areas,
        keep_multiples=keep_multiples,
        between=between,
        keep=keep,
    )
    if not isinstance(path, Mapping):
        how = how.complete_from_manifest(Path(path))
    read = partial(_read_release_file, how=how, ignore=ignore, marks_only=marks_only)
    if isinstance(path, Mapping) or (table.dimensions and Path(path).is_dir()):
        from cellguard.release.readers.read_tables import list_linked_tables, read_tables, release_files_to_read

        if table.parts or isinstance(path, Mapping):
            release = read_tables(table, release_files_to_read(table.parts or (), path), read)
        else:
            release = replace(read_tables(*list_linked_tables(table, Path(path)), read), table=table)
    else:
        release = read(table, Path(path))
    return release.add_facts(how)


def _read_release_file(
    table: Table,
    path: Path,
    *,
    how: PublishedFacts,
    ignore: Collection[str],
    marks_only: bool,
    columns: Mapping[str, Any] | None = None,
) -> Release:
    """Read the release of a table from a file, or from `columns`: those of the file that belong to the table."""
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".parquet", ".tab", ".tsv")):
        from cellguard._io.frames import read_frame
        from cellguard._io.release_columns import read_release_columns

        labels = [dict(zip(h.codes, map(str.strip, h.labels), strict=True)) for h in table.hierarchies]
        more = () if how.method is None else get_kind(how.method).extra_columns
        published = read_release_columns(
            path, columns or read_frame(path), table.dimensions, labels=labels, ignore=ignore, more=more
        )
        return PublishedFile(table, path, published, marks_only).make_release(how)
    return Suppression.from_file(table, suppressed=_read_release_of_indices(table, path) | table.sensitive)


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


class PublishedFile:
    """The columns of a published file as text, in the order of the table's cells."""

    def __init__(self, table: Table, path: Path, columns: PublishedColumns, marks_only: bool) -> None:
        self.table, self.path, self.marks_only = table, path, marks_only
        cells = _find_row_cells(table, path, columns)

        def sort_cells(column: list[str] | None, unlisted: str) -> list[str] | None:
            if column is None:
                return None
            out = np.full(table.n_cells, unlisted, dtype=object)
            out[cells] = column
            return [str(x) for x in out]

        # a cell that every attacker knows to be empty needs no row
        self.status = sort_cells(columns.status, "published")
        self.value, self.lower, self.upper = (sort_cells(x, "0") for x in (columns.value, columns.lower, columns.upper))
        self.others = {name: sort_cells(column, "") or [] for name, column in columns.others.items()}
        """The extra columns of the kind of release that was named."""

    @cached_property
    def blank(self) -> BoolArray:
        """Cells without a value although there is a column of values."""
        from cellguard._io.release_columns import BLANKS

        if self.value is None:
            return np.zeros(self.table.n_cells, bool)
        return np.array([word.lower() in BLANKS for word in self.value])

    def make_release(self, facts: PublishedFacts) -> Release:
        """Return the release of the given method, or of the kind that recognizes the file."""
        kind = self._find_kind(facts)
        if (self.lower is not None or self.upper is not None) and kind.one_number:
            raise self.build_ends_error()
        return kind.read(self, facts)

    def _find_kind(self, facts: PublishedFacts) -> type[Release]:
        if facts.method is not None:
            return get_kind(facts.method)
        for kind in KINDS.values():
            if kind.matches_file(self, facts):
                return kind
        raise InputError(
            "the file has a value for every cell, and nothing says how they were made.",
            hint="give the method (round with its base, perturb with its distance, or adjust).",
        )

    def build_ends_error(self) -> FormatError:
        """Return the error for a file with ends of intervals that its kind of release does not have."""
        return FormatError.at(
            self.path, 1, "has a lower or an upper end of the values, which is published with them.",
            hint="intervals have both; another release has neither: leave the columns out of the file.",
        )  # fmt: skip

    def read_all_values(self, method: str) -> FloatArray:
        """Return the value of every cell; refuse a file that lacks one."""
        if self.value is None or self.blank.any():
            raise ReleaseError(f"{self.path}: every cell needs a value when the method is {method!r}.")
        return self.read_numbers(self.value, np.nan)

    def read_numbers(self, words: list[str], blank: float) -> FloatArray:
        """Return a column as numbers; a cell without one gets `blank`."""
        from cellguard._io.release_columns import BLANKS

        out = np.empty(len(words))
        for k, word in enumerate(words):
            text = word.replace(",", ".") if "," in word and "." not in word else word
            try:
                out[k] = blank if word.lower() in BLANKS else float(text)
            except ValueError:
                raise FormatError.at(self.path, None, f"{self.table.label(k)}: not a number.") from None
        return out

    def read_marks(self, status: list[str]) -> BoolArray:
        """Return which cells are marked as withheld."""
        for k, mark in enumerate(status):
            if mark.lower() not in _HIDDEN | _SHOWN:
                known = ", ".join(sorted((_HIDDEN | _SHOWN) - {""}))
                word = "" if any(c.isdigit() for c in mark) else f" {mark[:20]!r}"  # a number may be a value
                raise FormatError.at(
                    self.path, None, f"{self.table.label(k)}: unknown status{word}.", hint=f"known: {known}."
                )
        return np.array([mark.lower() in _HIDDEN for mark in status])


def _find_row_cells(table: Table, path: Path, columns: PublishedColumns) -> IntArray:
    """Return the cell of each row, by codes, by index, or by order; every cell once, unless known to be empty."""
    rows = columns.rows
    if columns.codes is not None:
        cells = _find_cells_by_codes(table, path, columns.codes)
    elif columns.cell is not None:
        bad = next((i for i, w in enumerate(columns.cell) if not (w.isdecimal() and len(w) < 19)), None)
        if bad is not None:
            raise FormatError.at(path, bad + 2, "the column `cell` must hold the cell's index.")
        cells = np.array([int(w) for w in columns.cell], np.int64)
    else:
        cells = np.arange(rows, dtype=np.int64)
    inside = cells[cells < table.n_cells]
    needed = int((~find_empty_cells(table)).sum())
    listed = int((~find_empty_cells(table))[np.unique(inside)].sum())
    if listed != needed or len(np.unique(cells)) != rows or len(inside) != rows:
        raise ReleaseError(
            f"{path}: {rows} rows, {len(np.unique(cells))} different cells; the table has {table.n_cells} cells.",
            hint="a release has one row for every cell of its table, totals included.",
        )
    return cells


def _find_cells_by_codes(table: Table, path: Path, codes: list[list[str]]) -> IntArray:
    from cellguard._io.frames import escape_formula

    place = np.zeros((len(codes[0]), len(codes)), np.int64)
    for d, column in enumerate(codes):
        # tau-ARGUS leaves the code of the total empty; our own files escape text that looks like a formula
        index = {"": 0} | {escape_formula(code): i for i, code in enumerate(table.codes[d])}
        if not index.keys() >= set(column):
            index = {"": 0} | {code: i for i, code in enumerate(table.codes[d])}
        unknown = next((c for c in column if c not in index), None)
        if unknown is not None:
            raise UnknownCodeError(
                f"{path}: dimension {table.dimensions[d]!r} has no code {unknown!r}.",
                hint=suggest_code(unknown, table.codes[d]),
            )
        place[:, d] = [index[c] for c in column]
    cells = table.cells_at(place)
    if (cells < 0).any():
        row = int(np.argmax(cells < 0))
        shown = ", ".join(f"{d}={column[row]}" for d, column in zip(table.dimensions, codes, strict=True))
        raise ReleaseError(f"{path}: the table has no cell ({shown}).")
    return cells


# ---------------------------------------------------------------------- does the release fit its table?


def check_release_to_audit(release: Release) -> None:
    """Refuse a release that does not fit its table or contradicts it (:class:`ReleaseError`)."""
    release.check_fit()
