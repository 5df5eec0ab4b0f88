"""Tables for readers: rows with their hierarchy, columns, and a slice for every code of further dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.table import Table
from cellguard.release.figures import choose_decimals, format_figure
from cellguard.release.release import Release

__all__ = [
    "Cell",
    "GridPage",
    "Head",
    "build_grids",
    "describe_cells",
    "find_empty_cells",
    "format_cells",
    "format_table_figures",
]  # fmt: skip

NO_DATA = "–"
"""Marks a cell without contributors, as opposed to a zero that contributors gave."""

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
    """A cell as a reader sees it."""

    text: str
    kind: str
    """published, primary, secondary, withheld, changed, interval, empty (no contributors) or nothing (no cell)."""
    note: str = ""
    """Tooltip in the internal version."""


@dataclass(frozen=True, slots=True)
class GridPage:
    """A page-sized table."""

    title: str
    corner: str
    columns: list[Head]
    rows: list[tuple[Head, list[Cell]]]
    left_out: str = ""


def build_grids(
    table: Table, cells: Sequence[Cell], views: Sequence[tuple[str, Sequence[str]]] = ()
) -> Iterator[GridPage]:
    """Yield the tables of a system of cells, one grid per slice; those of a publication in their own layout.

    `views` are the tables to show, each a name and its dimensions, rows first; one with all dimensions unless given.
    """
    if not table.dimensions:
        yield _build_plain_grid(table, cells)
        return
    for part in table.parts or ():
        own = [cells[i] for i in part.cells.tolist()]
        yield from _build_slices(part.table, own, part.name, part.table.dimensions)
    if table.parts:
        return
    for name, dims in views or ((table.name, table.dimensions),):
        yield from _build_slices(table, cells, name, dims)


def _build_slices(table: Table, cells: Sequence[Cell], name: str, dims: Sequence[str]) -> Iterator[GridPage]:
    index = [table.dimensions.index(d) for d in dims]
    down, across, further = index[0], index[1] if len(index) > 1 else None, index[2:]
    rows = _list_heads(table, down)[:MAX_ROWS]
    columns = [(0, Head("value", 0, False))] if across is None else _list_heads(table, across)[:MAX_COLUMNS]
    slices = list(product(*(_list_heads(table, d) for d in further)))
    for chosen in slices[:MAX_SLICES]:
        place = np.zeros((len(rows), len(columns), len(table.dimensions)), np.int32)
        place[..., down] = [[code] for code, _ in rows]
        if across is not None:
            place[..., across] = [code for code, _ in columns]
        for d, (code, _) in zip(further, chosen, strict=True):
            place[..., d] = code
        found = table.cells_at(place.reshape(-1, place.shape[-1])).reshape(place.shape[:2])
        grid = [
            (head, [cells[i] if i >= 0 else Cell("", "nothing") for i in line.tolist()])
            for (_, head), line in zip(rows, found, strict=True)
            if (line >= 0).any()
        ]
        suffix = ", ".join(f"{table.dimensions[d]} {head.code}" for d, (_, head) in zip(further, chosen, strict=True))
        more = len(slices) - MAX_SLICES
        left_out = (
            f"{more} further tables are in the files of the release."
            if more > 0 and chosen == slices[MAX_SLICES - 1]
            else ""
        )
        corner = dims[0] if across is None else f"{dims[0]} \\ {dims[1]}"
        yield GridPage(f"{name}: {suffix}" if suffix else name, corner, [head for _, head in columns], grid, left_out)


def _list_heads(table: Table, d: int) -> list[tuple[int, Head]]:
    """Return the codes of a dimension in the order of its tree, with their depth."""
    codes = table.codes[d]
    if not table.hierarchies:
        return [(i, Head(code, min(i, 1), i == 0)) for i, code in enumerate(codes)]
    h = table.hierarchies[d]
    parents = set(h.parents[0].tolist())
    return [(i, Head(codes[i], int(h.depth[i]), i in parents)) for i in range(len(codes))]


def _build_plain_grid(table: Table, cells: Sequence[Cell]) -> GridPage:
    shown = range(min(table.n_cells, 500))
    rows = [(Head(f"cell {i}", 0, False), [cells[i]]) for i in shown]
    more = table.n_cells - len(rows)
    return GridPage(
        table.name, "cell", [Head("value", 0, False)], rows, f"{more} further cells are in the files." if more else ""
    )


def describe_cells(release: Release) -> list[Cell]:
    """Return each cell of a release as a reader sees it."""
    return [Cell(text, kind) for text, kind in zip(*format_cells(release, mark_primary=False), strict=True)]


def format_cells(release: Release, *, mark_primary: bool) -> tuple[list[str], list[str]]:
    """Return the text of each cell of a release, and its kind (see :class:`Cell`)."""
    table = release.table
    texts, kinds = release.get_texts(mark_primary=mark_primary)
    empty = find_empty_cells(table) & (release.get_point_values() == 0)
    for cell in np.flatnonzero(empty).tolist():
        texts[cell] = NO_DATA
    kinds[empty] = "empty"
    return texts, kinds.tolist()


def find_empty_cells(table: Table) -> BoolArray:
    """Return the cells that every attacker knows to have no contributors: "no data", not a contributed zero."""
    known = table.fixed & (table.lb == 0) & (table.ub == 0) & ~table.sensitive
    return np.asarray(known if table.counts is None else known & (table.counts == 0))


def format_table_figures(table: Table, values: FloatArray) -> list[str]:
    """Format numbers for readers; each table of a publication has its own number of decimals, and counts have none."""
    out = [""] * table.n_cells
    groups: list[IntArray] = [part.cells for part in table.parts or ()] or [np.arange(table.n_cells)]
    for cells in groups:
        digits = choose_decimals(values[cells])
        for cell, value in zip(cells.tolist(), values[cells].tolist(), strict=True):
            out[cell] = format_figure(value, digits)
    return out
