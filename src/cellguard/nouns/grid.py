"""Tables as people read them: rows with their hierarchy, columns, a slice for every code of further dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.nouns.figures import decimals_of_table_figures, figure_with_decimals
from cellguard.nouns.release import Intervals, Release, Suppression
from cellguard.nouns.table import Table

__all__ = [
    "Cell", "GridPage", "Head", "cells_of_release", "empty_cells_of_table", "figures_of_table",
    "grid_texts_of_release", "grids_of_table",
]  # fmt: skip

NO_DATA = "–"
"""Stands for a cell without contributors: it is not the zero that contributors gave."""

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
    """published, primary, secondary, withheld, changed, interval, empty (no contributors) or nothing (no cell)."""
    note: str = ""
    """What the internal version says when the pointer rests on it."""


@dataclass(frozen=True, slots=True)
class GridPage:
    """A page-sized table."""

    title: str
    corner: str
    columns: list[Head]
    rows: list[tuple[Head, list[Cell]]]
    left_out: str = ""


def grids_of_table(
    table: Table, cells: Sequence[Cell], views: Sequence[tuple[str, Sequence[str]]] = ()
) -> Iterator[GridPage]:
    """Yield the tables of a system of cells, one grid for each slice; those of a publication in their own layout.

    `views` are the tables to show, a name and its dimensions, rows first; one with all dimensions unless given.
    """
    if not table.dimensions:
        yield _grid_of_plain_table(table, cells)
        return
    for part in table.parts or ():
        own = [cells[i] for i in part.cells.tolist()]
        yield from _grids_of_hierarchical_table(part.table, own, part.name, part.table.dimensions)
    if table.parts:
        return
    for name, dims in views or ((table.name, table.dimensions),):
        yield from _grids_of_hierarchical_table(table, cells, name, dims)


def _grids_of_hierarchical_table(
    table: Table, cells: Sequence[Cell], name: str, dims: Sequence[str]
) -> Iterator[GridPage]:
    index = [table.dimensions.index(d) for d in dims]
    down, across, further = index[0], index[1] if len(index) > 1 else None, index[2:]
    rows = _heads_of_hierarchy(table, down)[:MAX_ROWS]
    columns = [(0, Head("value", 0, False))] if across is None else _heads_of_hierarchy(table, across)[:MAX_COLUMNS]
    slices = list(product(*(_heads_of_hierarchy(table, d) for d in further)))
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


def _heads_of_hierarchy(table: Table, d: int) -> list[tuple[int, Head]]:
    """Return the codes of a dimension in the order of its tree, with their depth."""
    codes = table.codes[d]
    if not table.hierarchies:
        return [(i, Head(code, min(i, 1), i == 0)) for i, code in enumerate(codes)]
    h = table.hierarchies[d]
    parents = set(h.parents[0].tolist())
    return [(i, Head(codes[i], int(h.depth[i]), i in parents)) for i in range(len(codes))]


def _grid_of_plain_table(table: Table, cells: Sequence[Cell]) -> GridPage:
    shown = range(min(table.n_cells, 500))
    rows = [(Head(f"cell {i}", 0, False), [cells[i]]) for i in shown]
    more = table.n_cells - len(rows)
    return GridPage(
        table.name, "cell", [Head("value", 0, False)], rows, f"{more} further cells are in the files." if more else ""
    )


def cells_of_release(release: Release) -> list[Cell]:
    """Return what a reader sees of each cell of a release."""
    return [Cell(text, kind) for text, kind in zip(*grid_texts_of_release(release, mark_primary=False), strict=True)]


def grid_texts_of_release(release: Release, *, mark_primary: bool) -> tuple[list[str], list[str]]:
    """Return the text of each cell of a release, and its kind (see :class:`Cell`)."""
    table = release.table
    if isinstance(release, Intervals):
        pairs = list(zip(figures_of_table(table, release.lower), figures_of_table(table, release.upper), strict=True))
        texts = [f"{low} – {high}" if low != high else low for low, high in pairs]
        kinds = np.array(["interval" if low != high else "published" for low, high in pairs], dtype=object)
    elif isinstance(release, Suppression):
        texts = figures_of_table(table, release.point_values())
        marks = ["primary", "secondary"] if mark_primary else ["withheld", "withheld"]
        kinds = np.select([release.primary, release.secondary], marks, "published").astype(object)
    else:
        texts = figures_of_table(table, release.point_values())
        kinds = np.full(table.n_cells, "changed", dtype=object)
    empty = empty_cells_of_table(table) & (release.point_values() == 0)
    for cell in np.flatnonzero(empty).tolist():
        texts[cell] = NO_DATA
    kinds[empty] = "empty"
    return texts, kinds.tolist()


def empty_cells_of_table(table: Table) -> BoolArray:
    """Return the cells that everybody knows to be without contributors: "no data", not a zero that somebody gave."""
    known = table.fixed & (table.lb == 0) & (table.ub == 0) & ~table.sensitive
    return np.asarray(known if table.counts is None else known & (table.counts == 0))


def figures_of_table(table: Table, values: FloatArray) -> list[str]:
    """Return numbers as people read them, each table of a publication with decimals of its own: counts have none."""
    out = [""] * table.n_cells
    groups: list[IntArray] = [part.cells for part in table.parts or ()] or [np.arange(table.n_cells)]
    for cells in groups:
        digits = decimals_of_table_figures(values[cells])
        for cell, value in zip(cells.tolist(), values[cells].tolist(), strict=True):
            out[cell] = figure_with_decimals(value, digits)
    return out
