"""Read ready tables from files, and report all their mistakes at once, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.frames import NUMBERS_ARE, convert_to_numbers, encode_frame_column, find_repeated_rows, read_frame
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import (
    AdditivityError,
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    build_missing_errors,
    suggest_names,
)
from cellguard.jobs.definition.model import Job, TableSection
from cellguard.jobs.definition.populations import build_empty_population_error, find_wrong_keys
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.publication import Part
from cellguard.model.table import Table
from cellguard.model.totals import find_flat_total, find_total, is_called_total
from cellguard.model.trees import sort_codes
from cellguard.tabulation.template import is_template_period

__all__ = ["read_ready_parts"]


_NOT_ADDITIVE = (
    "totals must equal the sum of their parts: correct the file, or its hierarchy; where they differ by rounding, "
    "tolerance = 0.001 at the top of the job moves values by that share to the nearest that add up."
)
_MOST = 20
"""Number of mistakes of a file that are listed one by one."""


def read_ready_parts(path: Path, entry: TableSection, job: Job, hierarchy: Callable[[str], Any]) -> list[Part]:
    """Read one table, an indicator at a time.

    Raises
    ------
    PublicationError
        With everything that is wrong in the file, each with its line.
    """
    given = read_frame(path, sheet=entry.sheet)
    own = {d: entry.columns.get(d, d) for d in entry.dimensions}
    names = entry.indicators or [i.name for i in job.indicators] or [job.data.value or "value"]
    column_of = {i.name: i.value for i in job.indicators}
    values = {i: entry.value or column_of.get(i) or "value" for i in names}
    about = [*([entry.count] if entry.count else []), *entry.top]
    wanted = [*own.values(), *values.values(), *about]
    wanted += [entry.columns[d] for d in entry.where if d in entry.columns and d not in own]
    wrong: list[CellguardError] = [*build_missing_errors("column", wanted, given, place=f"{path.name}: line 1: ")]
    PublicationError.refuse([*wrong, *find_wrong_keys(path, entry, job, entry.title, given)])
    where = {entry.columns.get(c, c): code for c, code in entry.where.items() if c not in own}
    frame, rows = _select_population_rows(given, where)
    if not len(rows):
        raise build_empty_population_error(path, entry, entry.title, given)
    lines = rows + 2  # the first line names the columns
    dims, wrong = _read_column_hierarchies(path, frame, entry, job, next(iter(values.values())), hierarchy)
    wrong += _find_wrong_codes(path, frame, dims, lines)
    wrong += _find_wrong_numbers(path, frame, list(values.values()), about, lines)
    period, dated = _read_period(path, frame, [*wanted, *entry.where], lines)
    PublicationError.refuse([*wrong, *dated])
    parts = []
    sheet = entry.title if _fit_beside(own.values(), list(values.values())) else ""
    for indicator, value in values.items():
        try:
            table = Table.from_frame(
                frame, dims, value=value, counts=entry.count, top=entry.top if indicator == names[0] else (),
                known_zeros=job.data.known_zeros, tolerance=job.tolerance, integer=entry.count == value, whole=True,
                name=entry.title,
            )  # fmt: skip
        except AdditivityError as error:
            wrong += _find_wrong_sums(path, frame, list(dims), error, lines, value)
            continue
        except CellguardError as error:
            if f"{path.name}: {error.message}" not in [one.message for one in wrong]:
                wrong.append(type(error)(f"{path.name}: {error.message}", hint=error.hint))
            continue
        parts.append(
            Part(
                name=entry.title if len(names) == 1 else f"{entry.title} {indicator}",
                table=table,
                indicator=indicator,
                where=entry.where,
                dimensions={column: d for d, column in own.items() if column != d},
                priority=entry.priority,
                period=period,
                source=path.name,
                sheet=sheet,
                column=value,
                lines=_find_cell_lines(table, frame, lines),
            )
        )
    PublicationError.refuse(wrong)
    return parts


def _fit_beside(codes: Iterable[str], values: Sequence[str]) -> bool:
    """Whether the names of value columns and of published columns can be written beside the codes without a clash."""
    more = [f"{column}_{name}" for column in values for name in ("status", "lower", "upper")]
    names = [name.lower() for name in (*codes, *values, *more)]
    return len(values) > 1 and len(set(names)) == len(names)


def _select_population_rows(given: Mapping[str, Any], where: Mapping[str, str]) -> tuple[Mapping[str, Any], IntArray]:
    """Return the rows of the table's part of the population, and their numbers, if the file covers more."""
    n = len(next(iter(given.values()))) if given else 0
    keep = np.ones(n, bool)
    for column, code in where.items():
        if column in given:
            seen, index = encode_frame_column(given[column])
            keep &= np.array([c == code for c in seen] + [False])[index]
    rows = np.flatnonzero(keep)
    if len(rows) == n:
        return given, rows
    return {name: column.take(rows) for name, column in given.items()}, rows


def _read_column_hierarchies(
    path: Path,
    frame: Mapping[str, Any],
    entry: TableSection,
    job: Job,
    value: str,
    hierarchy: Callable[[str], Any],
) -> tuple[dict[str, Hierarchy], list[CellguardError]]:
    """Return the hierarchy of each column, and the totals that the values of a column do not determine."""
    own = {d: entry.columns.get(d, d) for d in entry.dimensions}
    columns = {column: encode_frame_column(frame[column]) for column in own.values()}
    figures = _read_figures(frame[value], value, [index for _, index in columns.values()])
    dims: dict[str, Hierarchy] = {}
    wrong: list[CellguardError] = []
    for d, column in own.items():
        given, total = hierarchy(d), entry.total.get(d)
        if given is None or isinstance(given, tuple):
            declared = total or job.dimensions[d].total or "Total"
            try:
                if given is None:
                    others = [index for other, (_, index) in columns.items() if other != column]
                    found = find_flat_total(
                        columns[column], others, figures, declared=declared, tolerance=job.tolerance
                    )
                else:  # codes below the digits are added up and compared with the total later
                    codes = columns[column][0]
                    found = declared if declared in codes else find_total(codes) or declared
                if total is not None and found != total:
                    text = f"there is no code {total!r}, and {found!r} is the sum of the other codes."
                    raise InputError(text, hint=f'say total = {{{d} = "{found}"}}.')
                total = found
            except InputError as error:
                wrong.append(InputError(f"{path.name}: column {column!r}: {error.message}", hint=error.hint))
        dims[column] = build_column_hierarchy(given, frame[column], total)
    return dims, wrong


def _read_figures(column: Any, name: str, places: Sequence[IntArray]) -> FloatArray:
    """Return a column of numbers; None if a number is wrong or a row occurs twice, because its sums would be wrong."""
    nothing = np.full(len(column), np.nan)
    try:
        found = convert_to_numbers(column, name)
    except InputError:  # reported with its line elsewhere
        return nothing
    return nothing if not np.isfinite(found).all() or list(find_repeated_rows(places, 1)) else found


def _find_wrong_codes(
    path: Path, frame: Mapping[str, Any], dims: Mapping[str, Hierarchy], lines: IntArray
) -> Iterator[CellguardError]:
    """Yield codes that are missing, unknown or listed twice, with their lines."""
    places = []
    for column, h in dims.items():
        seen, index = encode_frame_column(frame[column])
        for row in np.flatnonzero(index < 0)[:_MOST].tolist():
            hint = "write the code of the total in full."
            yield InputError(f"{path.name}: line {lines[row]}: no code in column {column!r}.", hint=hint)
        known = set(h.codes)
        for k, code in [(k, c) for k, c in enumerate(seen) if c not in known][:_MOST]:
            line = lines[int(np.argmax(index == k))]
            text = f"{path.name}: line {line}: code {code!r} of column {column!r} is not in its hierarchy."
            total = "if it is the total, say so in `total` of this table." if is_called_total(code) else None
            yield UnknownCodeError(text, hint=total or suggest_names(code, h.codes))
        places.append(index)
    for first, again in find_repeated_rows(places, _MOST):
        codes = ", ".join(f"{c}={frame[c][again]}" for c in dims)
        text = f"{path.name}: line {lines[again]}: cell ({codes}) is listed before, in line {lines[first]}."
        yield InputError(text, hint="each cell has one row.")


def _find_wrong_numbers(
    path: Path, frame: Mapping[str, Any], needed: Sequence[str], blank: Sequence[str], lines: IntArray
) -> Iterator[CellguardError]:
    """Yield the lines of entries that are not finite numbers, never the entries; some columns may have blanks."""
    for column in dict.fromkeys([*needed, *blank]):
        try:
            found = convert_to_numbers(frame[column], column)
            bad = np.flatnonzero(np.isinf(found) | (np.isnan(found) & (column in needed)))
        except InputError:
            texts = frame[column].to_pylist()
            bad = np.array(
                [i for i, t in enumerate(texts) if not _is_number_in_ready_file(t) and (t or column in needed)],
                np.int64,
            )
        for row in bad[:_MOST].tolist():
            yield InputError(f"{path.name}: line {lines[row]}: no number in column {column!r}.", hint=NUMBERS_ARE)


def _find_wrong_sums(
    path: Path, frame: Mapping[str, Any], columns: Sequence[str], error: AdditivityError, lines: IntArray, value: str
) -> Iterator[CellguardError]:
    """Yield totals that are not the sums of their parts, with their lines where they have one."""
    codes_of = [
        np.array([*seen, ""], object)[index].tolist()
        for seen, index in (encode_frame_column(frame[c]) for c in columns)
    ]
    line_of = dict(zip(zip(*codes_of, strict=True), lines.tolist(), strict=True))
    told = [codes for codes in dict.fromkeys(error.totals) if codes in line_of]
    if not told:
        yield AdditivityError(f"{path.name}: {error.message}", hint=_NOT_ADDITIVE)
    for codes in told[:_MOST]:
        cell = ", ".join(f"{c}={code}" for c, code in zip(columns, codes, strict=True))
        yield AdditivityError(
            f"{path.name}: line {line_of[codes]}: {value} of ({cell}) is not the sum of its parts.", hint=_NOT_ADDITIVE
        )
    if len(told) > _MOST:
        yield AdditivityError(f"{path.name}: {len(told) - _MOST} more totals are not the sums of their parts.")


def _is_number_in_ready_file(text: Any) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def _read_period(
    path: Path, frame: Mapping[str, Any], taken: Sequence[str], lines: IntArray
) -> tuple[str, list[CellguardError]]:
    """Return the single period of a file, if a column states it; report the line where a second one begins."""
    column = next((name for name in frame if is_template_period(name) and name not in taken), None)
    if column is None:
        return "", []
    seen, index = encode_frame_column(frame[column])
    if len(seen) < 2:
        return "".join(seen), []
    other = int(np.argmax((index != index[0]) & (index >= 0)))
    text = f"{path.name}: line {lines[other]}: column {column!r} has {len(seen)} periods, and one is needed."
    hint = f'say which: where = {{{column} = "{seen[0]}"}}; or make it a dimension.'
    return "", [InputError(text, hint=hint)]


def _find_cell_lines(table: Table, frame: Mapping[str, Any], lines: IntArray) -> IntArray:
    """Return the line of each cell; 0 for cells without a row."""
    rows = []
    for h, column in zip(table.hierarchies, table.dimensions, strict=True):
        seen, index = encode_frame_column(frame[column])
        rows.append(h.index(seen)[index])
    place = table.cells_at(np.column_stack(rows))
    out = np.zeros(table.n_cells, np.int64)
    out[place[place >= 0]] = lines[place >= 0]
    return out


def build_column_hierarchy(given: Any, column: Any, total: str | None) -> Hierarchy:
    """Return the hierarchy of a table: its own codes, below its own code of the total."""
    present = sort_codes(code for code in encode_frame_column(column)[0] if code)
    if isinstance(given, tuple):
        return Hierarchy.from_digits([c for c in present if c != total], levels=given, total=total or "Total")
    if given is None:
        root = total or "Total"
        return Hierarchy.flat([c for c in present if c != root], total=root)
    h = Hierarchy.of(given)
    if len(h.parents) > 1:  # several trees over the same leaves: every code is needed
        return h
    root, parent = total or h.total, h.parents[0].tolist()
    keep = set(present) | {h.total}
    pairs = []
    for i, code in enumerate(h.codes[1:], start=1):
        if code in keep:
            up = parent[i]
            while up > 0 and h.codes[up] not in keep:
                up = parent[up]
            pairs.append((code, root if up == 0 else h.codes[up]))
    return Hierarchy.from_pairs(pairs, total=root)
