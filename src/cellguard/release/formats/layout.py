"""Write a release into a copy of the publisher's own workbook: its heads say where the numbers go, formats are kept.

Everything in a file is published, so numbers of the template must not remain. Numbers, formulas, charts and pivot
tables that the release does not replace are refused, with their place. Withheld cells show x.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellguard._io.files import open_atomically
from cellguard._io.workbooks.sheet import import_openpyxl
from cellguard.exceptions import InputError, ReleaseError
from cellguard.model.table import Table
from cellguard.release.grid import NO_DATA, find_empty_cells
from cellguard.release.release import Release

__all__ = ["check_layout_fits_table", "fill_layout_with_release"]

_WHEN = (1980, 1, 1, 0, 0, 0)


class _Head(NamedTuple):
    """The place of a dimension's codes in a sheet: a row (across) or a column (down)."""

    dimension: int
    across: bool
    line: int
    places: Mapping[int, int]
    """Column or row -> code."""

    def cut_after(self, line: int) -> _Head:
        """Return the part of it beyond a line: a table is to the right of and below its heads."""
        return self._replace(places={k: code for k, code in self.places.items() if k > line})


class _Axis(NamedTuple):
    """The rows or the columns of a sheet's table: the codes of the innermost head, and of the heads before it."""

    heads: tuple[_Head, ...]
    codes: Mapping[int, Mapping[int, int]]
    """Column or row -> dimension -> code."""


def fill_layout_with_release(release: Release, template: str | Path, path: str | Path) -> None:
    """Write a release into a copy of a workbook.

    In every sheet the codes (or labels) of one dimension are in a column and those of another in a row. Further
    dimensions have a row above or a column beside them, are named by the sheet's title or by a cell above, or are at
    their total. For a publication, the sheets are named like its tables. An ambiguous sheet is refused.
    """
    if not release.one_number:
        raise ReleaseError("a layout has one place for each cell; intervals are two numbers.", hint="save it as .xlsx.")
    _save_layout(_fill_layout(release.table, _list_entries(release), Path(template)), path)


def check_layout_fits_table(table: Table, template: str | Path) -> None:
    """Refuse a workbook that a release of the table cannot be written into, before any work and without writing."""
    _fill_layout(table, [0] * table.n_cells, Path(template))


def _fill_layout(system: Table, texts: list[Any], template: Path) -> Any:
    book, filled = import_openpyxl().load_workbook(template), 0
    _refuse_copies_in_layout(book, template)
    for sheet in book.worksheets:
        for table, cells in _find_sheet_tables(system, sheet.title):
            filled += _Filling(sheet, table, template).fill([texts[i] for i in cells])
    if not filled:
        hint = "the codes of one dimension must be in a column, those of another in a row."
        raise InputError(f"{template}: no sheet has the codes of the table.", hint=hint)
    return book


def _find_sheet_tables(system: Table, title: str) -> Iterator[tuple[Table, list[int]]]:
    if not system.parts:
        yield system, list(range(system.n_cells))
    for part in system.parts or ():
        if part.name.strip().lower()[:31] == title.strip().lower() or len(system.parts) == 1:
            yield part.table, part.cells.tolist()


def _list_entries(release: Release) -> list[Any]:
    values = release.get_point_values()
    empty = find_empty_cells(release.table) & (values == 0)
    return [
        NO_DATA if nothing else "x" if np.isnan(v) else int(v) if float(v).is_integer() and abs(v) < 2**53 else v
        for v, nothing in zip(values.tolist(), empty.tolist(), strict=True)
    ]


def _refuse_copies_in_layout(book: Any, template: Path) -> None:
    """Refuse parts of a workbook that keep hidden copies of numbers."""
    if getattr(book, "_external_links", None):
        raise InputError(f"{template}: links to other workbooks keep copies of their numbers.", hint="remove them.")
    for sheet in book.worksheets:
        if getattr(sheet, "_pivots", None) or getattr(sheet, "_charts", None):
            text = f"{template}: sheet {sheet.title!r} has a pivot table or a chart, which keep copies of numbers."
            raise InputError(text, hint="remove it from the template.")


class _Filling:
    """One sheet that is filled from one table."""

    def __init__(self, sheet: Any, table: Table, template: Path) -> None:
        self.sheet, self.table, self.template = sheet, table, template
        self.names = [_list_spellings(table, d) for d in range(len(table.dimensions))]

    def fill(self, texts: list[Any]) -> int:
        """Fill the sheet and return the number of filled cells; refuse numbers that would remain."""
        found = self._find_axes()
        shown: dict[int, str] = {}
        known: set[tuple[int, int]] = set()
        filled = 0
        if found is not None:
            down, across = found
            top = min((head.line for head in across.heads), default=min(down.codes, default=1))
            named = {h.dimension for h in (*down.heads, *across.heads)}
            place = [0 if d in named else self._find_code_above(d, top) for d in range(len(self.table.dimensions))]
            where = {tuple(row): i for i, row in enumerate(self.table.coordinates.tolist())}
            for (row, codes), (column, others) in product(down.codes.items(), across.codes.items()):
                own = {**codes, **others}
                cell = where.get(tuple(own.get(d, code) for d, code in enumerate(place)))
                at = self.sheet.cell(row, column)
                if cell in shown:
                    text = f"{shown[cell]} and {at.coordinate} would both show {self.table.label(cell)}"
                    self._refuse(text, "say by a head or by the title of the sheet what is different.")
                if cell is not None:
                    shown[cell] = at.coordinate
                at.value = "." if cell is None else texts[cell]
            known = set(product(down.codes, across.codes))
            filled = len(known)
            known |= {(h.line, k) if h.across else (k, h.line) for a in found for h in a.heads for k in h.places}
        self._refuse_leftovers(known)
        return filled

    def _refuse(self, what: str, hint: str) -> None:
        raise InputError(f"{self.template}: sheet {self.sheet.title!r}: {what}.", hint=hint)

    def _refuse_leftovers(self, known: set[tuple[int, int]]) -> None:
        for row in self.sheet.iter_rows():
            for cell in row:
                number = isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
                formula = isinstance(cell.value, str) and cell.value.startswith("=")
                if (number or formula) and (cell.row, cell.column) not in known:
                    kind = "formula" if formula else "number"
                    text = f"the {kind} in {self.sheet.title}!{cell.coordinate} would be published unchecked."
                    raise InputError(f"{self.template}: {text}", hint="clear it, or write it as text.")

    # ------------------------------------------------------------ heads

    def _find_axes(self) -> tuple[_Axis, _Axis] | None:
        """Find the heads of rows and columns; None if the sheet does not have the codes of the table."""
        heads = self._find_heads()
        if len(self.table.dimensions) == 1:
            downs = [head for head in heads if not head.across]
            if not downs:
                return None
            down = max(downs, key=lambda head: (len(head.places), -head.line))
            return _Axis((down,), {k: {0: c} for k, c in down.places.items()}), _Axis((), {down.line + 1: {}})
        pairs = [
            (a.cut_after(b.line), b.cut_after(a.line))
            for a in heads
            for b in heads
            if a.dimension != b.dimension and not a.across and b.across
        ]
        pairs = [(a, b) for a, b in pairs if a.places and b.places]
        if not pairs:
            return None
        rows, columns = max(pairs, key=_measure_span)
        outer = self._find_outer_heads(heads, rows, columns)
        return self._read_axis(rows, [h for h in outer if not h.across]), self._read_axis(
            columns, [h for h in outer if h.across]
        )

    def _find_heads(self) -> list[_Head]:
        """Return every row and column that contains at least two codes of a dimension."""
        lines: dict[tuple[int, bool, int], dict[int, int]] = {}
        for row in self.sheet.iter_rows():
            for cell in row:
                text = "" if cell.value is None else _normalize_entry(cell.value)
                for d, names in enumerate(self.names if text else ()):
                    if text in names:
                        lines.setdefault((d, True, cell.row), {})[cell.column] = names[text]
                        lines.setdefault((d, False, cell.column), {})[cell.row] = names[text]
        return [
            _Head(d, across, line, places)
            for (d, across, line), places in lines.items()
            if len(set(places.values())) > 1
        ]

    def _find_outer_heads(self, heads: list[_Head], rows: _Head, columns: _Head) -> list[_Head]:
        """Return the heads of further dimensions: rows above that of the columns, columns beside that of the rows."""
        out = []
        for d in set(range(len(self.table.dimensions))) - {rows.dimension, columns.dimension}:
            above = [h for h in heads if h.dimension == d and h.across and h.line < columns.line]
            above = [h for h in above if max(h.places) > rows.line and len(set(h.places) - {rows.line}) > 1]
            beside = [h for h in heads if h.dimension == d and not h.across and h.line not in columns.places]
            beside = [h for h in beside if h.line != rows.line and min(h.places) > columns.line]
            if above or beside:
                out.append(max(above + beside, key=lambda h: (len(h.places), -h.line)))
        return out

    def _read_axis(self, inner: _Head, outer: list[_Head]) -> _Axis:
        """Read the heads of the rows, or of the columns, together."""
        codes: dict[int, dict[int, int]] = {k: {inner.dimension: code} for k, code in inner.places.items()}
        for head in outer:
            for k in head.places:  # named there alone: a total of the codes below it
                if k not in codes and self._get_cell(inner, k).value is None:
                    codes[k] = {inner.dimension: 0}
        for head in outer:
            covered = self._read_codes_over_lines(head, sorted(codes))
            for k, own in codes.items():
                if k not in covered and own[inner.dimension] != 0:
                    place = f"{self.sheet.title}!{self._get_cell(inner, k).coordinate}"
                    self._refuse(
                        f"no code of {self.table.dimensions[head.dimension]!r} stands over {place}",
                        "write it into the first cell over those that it is about, or merge the cells of the head.",
                    )
                own[head.dimension] = covered.get(k, 0)
        return _Axis((inner, *outer), codes)

    def _read_codes_over_lines(self, head: _Head, lines: list[int]) -> dict[int, int]:
        """Return the code above each line: that of its merged cells, or the last one before it."""
        merged: dict[int, int] = {}
        for found in self.sheet.merged_cells.ranges:
            first, last = (found.min_col, found.max_col) if head.across else (found.min_row, found.max_row)
            if head.line == (found.min_row if head.across else found.min_col) and first in head.places and last > first:
                merged |= dict.fromkeys(range(first, last + 1), head.places[first])
        if merged:
            return {**head.places, **merged}
        out: dict[int, int] = {}
        code: int | None = None
        under: dict[int, int] = {}
        for k in range(min(head.places), max(lines) + 1):
            if self._get_cell(head, k).value is not None:
                code = head.places.get(k)
            if code is not None and k in lines:
                out[k] = code
                under[code] = under.get(code, 0) + 1
        if len(set(under.values())) > 1:
            self._refuse(
                f"how far each code of {self.table.dimensions[head.dimension]!r} reaches is not clear",
                "merge the cells of the head over those that it is about.",
            )
        return out

    def _get_cell(self, head: _Head, k: int) -> Any:
        return self.sheet.cell(head.line, k) if head.across else self.sheet.cell(k, head.line)

    def _find_code_above(self, d: int, line: int) -> int:
        """Return the code of a further dimension: the sheet's title, or a cell above the heads; its total otherwise."""
        names = self.names[d]
        if _normalize_entry(self.sheet.title) in names:
            return names[_normalize_entry(self.sheet.title)]
        found = {}
        for row in self.sheet.iter_rows(max_row=max(line - 1, 1)):
            for cell in row:
                if cell.value is not None and cell.row < line and names.get(_normalize_entry(cell.value), 0):
                    found[names[_normalize_entry(cell.value)]] = str(cell.value)
        if len(found) > 1:
            first, second, *_ = found.values()
            dimension = self.table.dimensions[d]
            self._refuse(
                f"{first!r} and {second!r} both name what it is about in {dimension!r}",
                "one sheet for each, or a head.",
            )
        return next(iter(found), 0)


def _measure_span(pair: tuple[_Head, _Head]) -> tuple[int, ...]:
    """Return the sort key of two heads: how much of a table they span, then which they are, regardless of order."""
    rows, columns = pair
    return len(rows.places) + len(columns.places), rows.dimension, columns.dimension, -columns.line


def _list_spellings(table: Table, d: int) -> dict[str, int]:
    """Return the spellings of a code: itself, its label, both, and without the zeros that a spreadsheet drops."""
    codes = [_normalize_entry(code) for code in table.codes[d]]
    labels = [_normalize_entry(label) for label in table.hierarchies[d].labels] if table.hierarchies else codes
    lost = Counter(code.lstrip("0") for code in codes if code.isdigit())
    out = {code.lstrip("0"): i for i, code in enumerate(codes) if code.isdigit() and lost[code.lstrip("0")] == 1}
    out.pop("", None)
    out |= {f"{code} {label}": i for i, (code, label) in enumerate(zip(codes, labels, strict=True))}
    return out | {label: i for i, label in enumerate(labels)} | {code: i for i, code in enumerate(codes)}


def _normalize_entry(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()


def _save_layout(book: Any, path: str | Path) -> None:
    """Save the workbook without timestamps, so that the same numbers give the same bytes."""
    made = io.BytesIO()
    book.save(made)
    with (
        zipfile.ZipFile(made) as old,
        open_atomically(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = re.sub(rb">\d{4}-\d\d-\d\dT[^<]*<", b">1980-01-01T00:00:00Z<", content)
            entry = zipfile.ZipInfo(name, date_time=_WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, content)
