"""A release in the publisher's own workbook: a copy in which the numbers stand where its heads say, format and all.

What stands in a file is published, so nothing of the template is: numbers, formulas, charts and pivots that the release
does not replace are refused by their place. Withheld cells say x.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from cellguard._io.files import atomic_writer
from cellguard._io.sheet import openpyxl
from cellguard.exceptions import InputError, ReleaseError
from cellguard.nouns.grid import NO_DATA, known_empty
from cellguard.nouns.release import Intervals, Release
from cellguard.nouns.table import Table

__all__ = ["fill_workbook"]

_WHEN = (1980, 1, 1, 0, 0, 0)


class _Found(NamedTuple):
    """Where a dimension's codes stand in a sheet."""

    across: bool
    line: int
    """The row (across) or the column (down) that holds them."""
    places: Mapping[int, int]
    """Column or row -> code."""


def fill_workbook(release: Release, template: str | Path, path: str | Path) -> None:
    """Write a release into a copy of a workbook.

    In every sheet the codes (or labels) of one dimension stand in a column and those of another in a row; further
    dimensions are named by the sheet's title or by a cell above, else at their total. Of a publication the sheets are
    called like its tables.
    """
    if isinstance(release, Intervals):
        raise ReleaseError("a layout has one place for each cell; intervals are two numbers.", hint="save it as .xlsx.")
    book = openpyxl().load_workbook(template)
    _refuse_copies(book, Path(template))
    texts = _shown(release)
    filled = 0
    for sheet in book.worksheets:
        for table, cells in _tables(release, sheet.title):
            filled += _fill(sheet, table, [texts[i] for i in cells], Path(template))
    if not filled:
        hint = "the codes of one dimension stand in a column, those of another in a row."
        raise InputError(f"{template}: no sheet has the codes of the table.", hint=hint)
    _save(book, path)


def _tables(release: Release, title: str) -> Iterator[tuple[Table, list[int]]]:
    if not release.table.parts:
        yield release.table, list(range(release.table.n_cells))
    for part in release.table.parts or ():
        if part.name.strip().lower()[:31] == title.strip().lower() or len(release.table.parts) == 1:
            yield part.table, part.cells.tolist()


def _shown(release: Release) -> list[Any]:
    values = release.point_values()
    empty = known_empty(release.table) & (values == 0)
    return [
        NO_DATA if nothing else "x" if np.isnan(v) else int(v) if float(v).is_integer() and abs(v) < 2**53 else v
        for v, nothing in zip(values.tolist(), empty.tolist(), strict=True)
    ]


def _refuse_copies(book: Any, template: Path) -> None:
    """Refuse what keeps copies of numbers out of sight."""
    if getattr(book, "_external_links", None):
        raise InputError(f"{template}: links to other workbooks keep copies of their numbers.", hint="remove them.")
    for sheet in book.worksheets:
        if getattr(sheet, "_pivots", None) or getattr(sheet, "_charts", None):
            text = f"{template}: sheet {sheet.title!r} has a pivot table or a chart, which keep copies of numbers."
            raise InputError(text, hint="remove it from the template.")


def _fill(sheet: Any, table: Table, texts: list[Any], template: Path) -> int:
    """Fill one sheet, and return how many cells were; refuse numbers that would stay."""
    found = _heads(sheet, table)
    where = {tuple(row): i for i, row in enumerate(table.coordinates.tolist())}
    down = next(((d, f) for d, f in found.items() if not f.across), None)
    across = next(((d, f) for d, f in found.items() if f.across), None)
    place = [0] * len(table.dimensions)
    written: set[tuple[int, int]] = set()
    if down is not None and (across is not None or len(table.dimensions) == 1):
        for d in range(len(table.dimensions)):
            if d not in found:
                place[d] = _named_above(sheet, table, d, across[1].line if across else min(down[1].places))
        columns = across[1].places if across else {down[1].line + 1: 0}
        for row, code in down[1].places.items():
            for column, other in columns.items():
                place[down[0]] = code
                if across:
                    place[across[0]] = other
                cell = where.get(tuple(place))
                sheet.cell(row, column).value = "." if cell is None else texts[cell]
                written.add((row, column))
    heads = {(f.line, k) if f.across else (k, f.line) for f in found.values() for k in f.places}
    _refuse_leftovers(sheet, written | heads, template)
    return len(written)


def _refuse_leftovers(sheet: Any, known: set[tuple[int, int]], template: Path) -> None:
    for row in sheet.iter_rows():
        for cell in row:
            number = isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
            formula = isinstance(cell.value, str) and cell.value.startswith("=")
            if (number or formula) and (cell.row, cell.column) not in known:
                kind = "formula" if formula else "number"
                text = f"{template}: the {kind} in {sheet.title}!{cell.coordinate} would be published unchecked."
                raise InputError(text, hint="clear it, or write it as text.")


def _heads(sheet: Any, table: Table) -> dict[int, _Found]:
    """Find the row and the column that hold the most codes of two different dimensions."""
    best: dict[tuple[int, bool], _Found] = {}
    for d in range(len(table.dimensions)):
        names = _names(table, d)
        lines: dict[tuple[bool, int], dict[int, int]] = {}
        for row in sheet.iter_rows():
            for cell in row:
                code = names.get(_plain(cell.value)) if cell.value is not None else None
                if code is not None:
                    lines.setdefault((True, cell.row), {}).setdefault(cell.column, code)
                    lines.setdefault((False, cell.column), {}).setdefault(cell.row, code)
        for (across, line), places in lines.items():
            known = best.get((d, across))
            if len(set(places.values())) > 1 and (known is None or len(places) > len(known.places)):
                best[d, across] = _Found(across, line, places)
    pairs = [
        (len(a.places) + len(b.places), i, j)
        for (i, one), a in best.items()
        for (j, other), b in best.items()
        if i != j and not one and other
    ]
    if pairs:
        _, rows, columns = max(pairs)
        return {rows: best[rows, False], columns: best[columns, True]}
    return {d: f for (d, across), f in best.items() if not across and len(table.dimensions) == 1}


def _names(table: Table, d: int) -> dict[str, int]:
    labels = table.hierarchies[d].labels if table.hierarchies else table.codes[d]
    out = {_plain(label): i for i, label in enumerate(labels)}
    return out | {_plain(code): i for i, code in enumerate(table.codes[d])}


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()


def _named_above(sheet: Any, table: Table, d: int, line: int) -> int:
    """Return the code of a further dimension: the sheet's title, or a cell above the heads; its total otherwise."""
    names = _names(table, d)
    if _plain(sheet.title) in names:
        return names[_plain(sheet.title)]
    for row in sheet.iter_rows(max_row=max(line - 1, 1)):
        for cell in row:
            if cell.value is not None and cell.row < line and _plain(cell.value) in names:
                return names[_plain(cell.value)]
    return 0


def _save(book: Any, path: str | Path) -> None:
    """Save the workbook without the time: the same numbers give the same bytes."""
    made = io.BytesIO()
    book.save(made)
    with (
        zipfile.ZipFile(made) as old,
        atomic_writer(path, "wb") as stream,
        zipfile.ZipFile(cast("IO[bytes]", stream), "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = re.sub(rb">\d{4}-\d\d-\d\dT[^<]*<", b">1980-01-01T00:00:00Z<", content)
            entry = zipfile.ZipInfo(name, date_time=_WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, content)
