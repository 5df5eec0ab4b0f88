"""Tables as people read them: rows with their hierarchy, columns, a slice for every code of further dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan

import numpy as np

from cellguard.nouns.release import Intervals, Release, Suppression
from cellguard.nouns.table import FloatArray, Table
from cellguard.publish.report.content import Content

__all__ = ["Cell", "Grid", "Head", "number", "views_of"]

MAX_SLICES = 24
MAX_ROWS = 3000
MAX_COLUMNS = 60


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a row or column."""

    code: str
    depth: int
    children: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """What a reader sees of a cell."""

    text: str
    kind: str
    """published, primary, secondary, withheld, changed, interval or nothing."""
    note: str = ""
    """What the internal version says when the pointer rests on it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A page-sized table."""

    title: str
    corner: str
    columns: list[Head]
    rows: list[tuple[Head, list[Cell]]]
    left_out: str = ""


def number(value: float, digits: int | None = None) -> str:
    """Return a number as people read it; with two decimals where it is not whole, unless `digits` are given.

    >>> number(1234567.0), number(12.345), number(7.0, 1), number(float("nan"))
    ('1,234,567', '12.35', '7.0', 'x')
    """
    if isnan(value):
        return "x"
    if digits is None:
        digits = 0 if float(value).is_integer() else 2
    return f"{value:,.{digits}f}"


def _digits(values: FloatArray) -> int:
    """Return how many decimals all numbers of a table get: none if they are whole."""
    known = values[np.isfinite(values)]
    return 0 if np.array_equal(known, np.rint(known)) else 2


def views_of(content: Content, *, public: bool) -> Iterator[Grid]:
    """Yield the tables of a release, one grid for each slice."""
    table = content.release.table
    cells = _cells(content, public=public)
    if not table.dimensions:
        yield _listed(table, cells)
        return
    for part in table.parts or ():
        own = [cells[i] for i in part.cells.tolist()]
        where = {tuple(row): i for i, row in enumerate(part.table.coordinates.tolist())}
        yield from _slices(part.table, own, where, part.name, part.table.dimensions)
    if table.parts:
        return
    views = content.views or ((table.name, table.dimensions),)
    where = {tuple(row): i for i, row in enumerate(table.coordinates.tolist())}
    for name, dims in views:
        yield from _slices(table, cells, where, name, dims)


def _slices(
    table: Table, cells: Sequence[Cell], where: dict[tuple[int, ...], int], name: str, dims: Sequence[str]
) -> Iterator[Grid]:
    index = [table.dimensions.index(d) for d in dims]
    down, across, further = index[0], index[1] if len(index) > 1 else None, index[2:]
    rows = _heads(table, down)[:MAX_ROWS]
    columns = [(0, Head("value", 0, False))] if across is None else _heads(table, across)[:MAX_COLUMNS]
    slices = list(product(*(_heads(table, d) for d in further)))
    for chosen in slices[:MAX_SLICES]:
        place = [0] * len(table.dimensions)
        for d, (code, _) in zip(further, chosen, strict=True):
            place[d] = code
        grid = []
        for r, row in rows:
            place[down] = r
            line = []
            for c, _ in columns:
                if across is not None:
                    place[across] = c
                cell = where.get(tuple(place))
                line.append(Cell("", "nothing") if cell is None else cells[cell])
            if any(cell.kind != "nothing" for cell in line):
                grid.append((row, line))
        suffix = ", ".join(f"{table.dimensions[d]} {head.code}" for d, (_, head) in zip(further, chosen, strict=True))
        more = len(slices) - MAX_SLICES
        left_out = (
            f"{more} further tables are in the files of the release."
            if more > 0 and chosen == slices[MAX_SLICES - 1]
            else ""
        )
        corner = dims[0] if across is None else f"{dims[0]} \\ {dims[1]}"
        yield Grid(f"{name}: {suffix}" if suffix else name, corner, [head for _, head in columns], grid, left_out)


def _heads(table: Table, d: int) -> list[tuple[int, Head]]:
    """Return the codes of a dimension in the order of its tree, with their depth."""
    codes = table.codes[d]
    if not table.hierarchies:
        return [(i, Head(code, min(i, 1), i == 0)) for i, code in enumerate(codes)]
    h = table.hierarchies[d]
    parents = set(h.parents[0].tolist())
    return [(i, Head(codes[i], int(h.depth[i]), i in parents)) for i in range(len(codes))]


def _listed(table: Table, cells: Sequence[Cell]) -> Grid:
    shown = range(min(table.n_cells, 500))
    rows = [(Head(f"cell {i}", 0, False), [cells[i]]) for i in shown]
    more = table.n_cells - len(rows)
    return Grid(
        table.name, "cell", [Head("value", 0, False)], rows, f"{more} further cells are in the files." if more else ""
    )


def _cells(content: Content, *, public: bool) -> list[Cell]:
    release = content.release
    texts, kinds = _published(release, mark_primary=content.primaries_shown or not public)
    notes = [""] * len(texts) if public else _notes(content)
    return [Cell(text, kind, note) for text, kind, note in zip(texts, kinds, notes, strict=True)]


def _published(release: Release, *, mark_primary: bool) -> tuple[list[str], list[str]]:
    if isinstance(release, Suppression):
        kinds = np.select([release.primary, release.secondary], ["primary", "secondary"], "published")
        if not mark_primary:
            kinds = np.where(release.suppressed, "withheld", "published")
        return _texts(release.point_values()), kinds.tolist()
    if isinstance(release, Intervals):
        pairs = list(zip(_texts(release.lower), _texts(release.upper), strict=True))
        texts = [f"{low} – {high}" if low != high else low for low, high in pairs]
        return texts, ["interval" if low != high else "published" for low, high in pairs]
    return _texts(release.point_values()), ["changed"] * release.table.n_cells


def _texts(values: FloatArray) -> list[str]:
    digits = _digits(values)
    return [number(v, digits) for v in values.tolist()]


def _notes(content: Content) -> list[str]:
    """Say of each cell what only the office may know: the truth, the reasons, the range."""
    table = content.release.table
    point = content.release.point_values()
    notes = []
    for i, value in enumerate(table.values.tolist()):
        changed = point[i] != value or table.sensitive[i]
        reasons = "; ".join(table.reasons(i)) if table.sensitive[i] else ""
        notes.append(f"true value {number(value)}" + (f". {reasons}" if reasons else "") if changed else "")
    if content.audit is not None:
        for found in content.audit.findings:
            for cell, low, high in zip(found.cells.tolist(), found.low, found.high, strict=True):
                if np.isfinite(low) and np.isfinite(high):
                    notes[cell] += f". Range against {found.attacker.name}: {number(low)} to {number(high)}"
    return notes
