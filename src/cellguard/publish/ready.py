"""Tables that are already added up, as files: what is wrong in them is told with its line, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.frames import NUMBERS_ARE, column_as_numbers, encode_frame_column, read_frame, rows_repeated_in_frame
from cellguard._types import FloatArray, IntArray
from cellguard.data.template import is_template_period
from cellguard.exceptions import (
    AdditivityError,
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    did_you_mean,
    errors_of_missing,
)
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.publication import Part
from cellguard.nouns.table import Table
from cellguard.nouns.totals import called_total, found_total, total_among
from cellguard.publish.model import Job, TableSection
from cellguard.publish.populations import error_of_empty_population, wrong_population_keys

__all__ = ["parts_of_ready_file"]


_NOT_ADDITIVE = (
    "totals must equal the sum of their parts: correct the file, or its hierarchy; where they differ by rounding, "
    "tolerance = 0.001 at the top of the job moves values by that share to the nearest that add up."
)
_MOST = 20
"""So many mistakes of a file are told one by one."""


def parts_of_ready_file(path: Path, entry: TableSection, job: Job, hierarchy: Callable[[str], Any]) -> list[Part]:
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
    wrong: list[CellguardError] = [*errors_of_missing("column", wanted, given, place=f"{path.name}: line 1: ")]
    PublicationError.refuse([*wrong, *wrong_population_keys(path, entry, job, entry.title, given)])
    where = {entry.columns.get(c, c): code for c, code in entry.where.items() if c not in own}
    frame, rows = _ready_rows_of_population(given, where)
    if not len(rows):
        raise error_of_empty_population(path, entry, entry.title, given)
    lines = rows + 2  # the first line names the columns
    dims, wrong = _hierarchies_of_ready_file(path, frame, entry, job, next(iter(values.values())), hierarchy)
    wrong += _wrong_codes_in_ready_file(path, frame, dims, lines)
    wrong += _wrong_numbers_in_ready_file(path, frame, list(values.values()), about, lines)
    period, dated = _period_of_ready_file(path, frame, [*wanted, *entry.where], lines)
    PublicationError.refuse([*wrong, *dated])
    parts = []
    sheet = entry.title if _fit_beside(own.values(), list(values.values())) else ""
    for indicator, value in values.items():
        try:
            table = Table.from_frame(
                frame, dims, value=value, counts=entry.count, top=entry.top if indicator == names[0] else (),
                known_zeros=job.data.known_zeros, tolerance=job.tolerance, integer=entry.count == value,
                name=entry.title,
            )  # fmt: skip
        except AdditivityError as error:
            wrong += _wrong_sums_in_ready_file(path, frame, list(dims), error, lines, value)
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
                lines=_lines_of_ready_cells(table, frame, lines),
            )
        )
    PublicationError.refuse(wrong)
    return parts


def _fit_beside(codes: Iterable[str], values: Sequence[str]) -> bool:
    """Whether several columns of values and what is published with them can stand beside the codes by their names."""
    more = [f"{column}_{name}" for column in values for name in ("status", "lower", "upper")]
    names = [name.lower() for name in (*codes, *values, *more)]
    return len(values) > 1 and len(set(names)) == len(names)


def _ready_rows_of_population(given: Mapping[str, Any], where: Mapping[str, str]) -> tuple[Mapping[str, Any], IntArray]:
    """Return the rows of the part of the population, where the file has more than that, and their numbers."""
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


def _hierarchies_of_ready_file(
    path: Path,
    frame: Mapping[str, Any],
    entry: TableSection,
    job: Job,
    value: str,
    hierarchy: Callable[[str], Any],
) -> tuple[dict[str, Hierarchy], list[CellguardError]]:
    """Return the hierarchy of each column, and which totals could not be told by the values of a column."""
    own = {d: entry.columns.get(d, d) for d in entry.dimensions}
    columns = {column: encode_frame_column(frame[column]) for column in own.values()}
    figures = _figures_of_ready_column(frame[value], value, [index for _, index in columns.values()])
    dims: dict[str, Hierarchy] = {}
    wrong: list[CellguardError] = []
    for d, column in own.items():
        given, total = hierarchy(d), entry.total.get(d)
        if given is None or isinstance(given, tuple):
            declared = total or job.dimensions[d].total or "Total"
            try:
                if given is None:
                    others = [index for other, (_, index) in columns.items() if other != column]
                    found = found_total(columns[column], others, figures, declared=declared, tolerance=job.tolerance)
                else:  # what is below the digits is added up, and compared with the total, later
                    codes = columns[column][0]
                    found = declared if declared in codes else total_among(codes) or declared
                if total is not None and found != total:
                    text = f"there is no code {total!r}, and {found!r} is the sum of the other codes."
                    raise InputError(text, hint=f'say total = {{{d} = "{found}"}}.')
                total = found
            except InputError as error:
                wrong.append(InputError(f"{path.name}: column {column!r}: {error.message}", hint=error.hint))
        dims[column] = hierarchy_of_ready_column(given, frame[column], total)
    return dims, wrong


def _figures_of_ready_column(column: Any, name: str, places: Sequence[IntArray]) -> FloatArray:
    """Return a column of numbers; none where one is wrong or a row is listed twice: no sum of them would be right."""
    nothing = np.full(len(column), np.nan)
    try:
        found = column_as_numbers(column, name)
    except InputError:  # told with its line elsewhere
        return nothing
    return nothing if not np.isfinite(found).all() or list(rows_repeated_in_frame(places, 1)) else found


def _wrong_codes_in_ready_file(
    path: Path, frame: Mapping[str, Any], dims: Mapping[str, Hierarchy], lines: IntArray
) -> Iterator[CellguardError]:
    """Yield codes that are missing, not known, or listed twice, with their lines."""
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
            total = "if it is the total, say so in `total` of this table." if called_total(code) else None
            yield UnknownCodeError(text, hint=total or did_you_mean(code, h.codes))
        places.append(index)
    for first, again in rows_repeated_in_frame(places, _MOST):
        codes = ", ".join(f"{c}={frame[c][again]}" for c in dims)
        text = f"{path.name}: line {lines[again]}: cell ({codes}) is listed before, in line {lines[first]}."
        yield InputError(text, hint="each cell has one row.")


def _wrong_numbers_in_ready_file(
    path: Path, frame: Mapping[str, Any], needed: Sequence[str], blank: Sequence[str], lines: IntArray
) -> Iterator[CellguardError]:
    """Yield entries that are no finite numbers, with their lines, never what they are; some columns may have blanks."""
    for column in dict.fromkeys([*needed, *blank]):
        try:
            found = column_as_numbers(frame[column], column)
            bad = np.flatnonzero(np.isinf(found) | (np.isnan(found) & (column in needed)))
        except InputError:
            texts = frame[column].to_pylist()
            bad = np.array(
                [i for i, t in enumerate(texts) if not _is_number_in_ready_file(t) and (t or column in needed)],
                np.int64,
            )
        for row in bad[:_MOST].tolist():
            yield InputError(f"{path.name}: line {lines[row]}: no number in column {column!r}.", hint=NUMBERS_ARE)


def _wrong_sums_in_ready_file(
    path: Path, frame: Mapping[str, Any], columns: Sequence[str], error: AdditivityError, lines: IntArray, value: str
) -> Iterator[CellguardError]:
    """Yield the totals that are not the sums of their parts, with their lines; what has none is told as it is."""
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


def _period_of_ready_file(
    path: Path, frame: Mapping[str, Any], taken: Sequence[str], lines: IntArray
) -> tuple[str, list[CellguardError]]:
    """Return the one period of a file, as far as a column tells it; the line where a second one begins is told."""
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


def _lines_of_ready_cells(table: Table, frame: Mapping[str, Any], lines: IntArray) -> IntArray:
    """Return the line of each cell; 0 for cells without a row."""
    rows = []
    for h, column in zip(table.hierarchies, table.dimensions, strict=True):
        seen, index = encode_frame_column(frame[column])
        rows.append(h.index(seen)[index])
    place = table.cells_at(np.column_stack(rows))
    out = np.zeros(table.n_cells, np.int64)
    out[place[place >= 0]] = lines[place >= 0]
    return out


def hierarchy_of_ready_column(given: Any, column: Any, total: str | None) -> Hierarchy:
    """Return the hierarchy of a table: the codes that it has, below the total as it calls it."""
    present = [code for code in encode_frame_column(column)[0] if code]
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
