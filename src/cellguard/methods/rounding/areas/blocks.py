"""Tables made of equal blocks: areas of a geography, slices of a cube.

Every area holds the same columns, and areas add up to larger areas, column by column. The columns of
an area form a two-way table themselves: lines that add up to a total line, crossed with codes of a
hierarchy. So the table has coordinates (area, line, code), and what lies across any of the first two
directions is a network. That is the structure which rounding by flows needs, found from the relations alone:

In a table over several dimensions every relation runs along one of them. Two relations that share a
cell run along different dimensions if they span a square: next to the cell, each finds a parallel of
the other. Relations that share a cell without a square run along the same dimension, and so do
parallel ones (the classic factorisation of Cartesian products, on relations instead of edges).
Whatever this finds is checked exactly before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from cellguard._core.factors import classes as connected_relations
from cellguard._engine.space.groups import find_groups
from cellguard._engine.space.reduce import reduce
from cellguard._types import BoolArray, IntArray

__all__ = ["Blocks", "find_blocks"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """A table with coordinates: areas (a tree), lines (flat, the last is their total), codes (a tree)."""

    cells: IntArray
    """Areas by lines by codes: the number of the cell."""
    parent: IntArray
    """The area of which each area is a part; -1 for the largest."""
    part_of: IntArray
    """For each code the relation of which it is a part; -1 for the total."""
    total_of: IntArray
    """For each code the relation of which it is the total; -1 for a leaf."""

    @property
    def n_relations(self) -> int:
        """Number of relations between the codes."""
        return int(self.total_of.max()) + 1


def find_blocks(relations: csr_array) -> Blocks | None:
    """Return the coordinates of a table, with the smallest areas if there is a choice; None if it has none.

    The right-hand sides of its relations are 0.
    """
    T = csr_array(relations)
    if T.shape[0] == 0 or not (np.abs(T.data) == 1).all():
        return None
    best: Blocks | None = None
    for outer in _find_factorings(T):
        if best is not None and best.cells[0].size <= outer.cells.shape[1]:
            continue
        for inner in _find_factorings(outer.relations):
            found = _join_coordinates(outer, inner)
            if found is not None:
                best = found
                break
    return best


def classify_relations(relations: csr_array) -> IntArray:
    """Return for every relation the number of the dimension along which it runs, from 0.

    >>> inner = np.arange(9).reshape(3, 3)  # a two-way table, the last row and column are totals
    >>> T = np.zeros((6, 9))
    >>> for row, line in enumerate([*inner, *inner.T]):
    ...     T[row, line] = 1, 1, -1
    >>> classify_relations(csr_array(T)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    T, C = csr_array(relations), csc_array(relations)
    rows, columns = ((M.indptr.astype(np.int64), M.indices.astype(np.int64)) for M in (T, C))
    root = connected_relations(*rows, T.data, *columns)
    return np.unique(root, return_inverse=True)[1].astype(np.int64)


class _Factoring(NamedTuple):
    """A table as a product of areas and columns."""

    cells: IntArray
    """Areas by columns: the number of the cell."""
    parent: IntArray
    """The tree of areas."""
    relations: csr_array
    """Relations between the columns of an area."""


def _find_factorings(T: csr_array) -> Iterator[_Factoring]:
    """Try as relations between areas those of one dimension, then of two: a dimension may fall apart."""
    classes = classify_relations(T)
    k = int(classes.max()) + 1
    if 2 <= k <= 8:
        chosen = [*combinations(range(k), 1), *(combinations(range(k), 2) if k > 2 else ())]
        found = (_factor_table(T, np.isin(classes, some)) for some in chosen)
        yield from (factoring for factoring in found if factoring is not None)


def _join_coordinates(outer: _Factoring, inner: _Factoring) -> Blocks | None:
    """Join both: the areas' columns are lines by codes. The lines must be flat, the codes a tree."""
    top = int(np.flatnonzero(inner.parent < 0)[0])
    lines = np.append(np.flatnonzero(inner.parent == top), top)
    if len(lines) != len(inner.parent):
        return None
    M = inner.relations
    rows = _block_row_of_each_entry(M)
    total = M.data < 0
    part_of, total_of = np.full(M.shape[1], -1, np.int64), np.full(M.shape[1], -1, np.int64)
    part_of[M.indices[~total]] = rows[~total]
    total_of[M.indices[total]] = rows[total]
    # a tree: every code is part of one relation at most, and total of one at most
    parts, totals = int((part_of >= 0).sum()), int((total_of >= 0).sum())
    if parts != (~total).sum() or totals != total.sum() or totals != M.shape[0] or (part_of < 0).sum() != 1:
        return None
    return Blocks(cells=outer.cells[:, inner.cells[lines]], parent=outer.parent, part_of=part_of, total_of=total_of)


def _block_row_of_each_entry(M: csr_array) -> IntArray:
    return np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))


def _factor_table(T: csr_array, between: BoolArray) -> _Factoring | None:
    """Return the table as a product, if cells that relations within areas connect are areas all alike."""
    B, within = T[between], T[~between]
    area = find_groups(within.indices[within.indptr[:-1]][_block_row_of_each_entry(within)], within.indices, T.shape[1])
    sizes = np.bincount(area)
    width = int(sizes[0])
    if len(sizes) < 3 or width < 2 or (sizes != width).any():
        return None
    parent = _find_area_parents(B, area, len(sizes))
    if parent is None:
        return None
    column = _align_columns(B, within, area, parent, width)
    if column is None:
        return None
    cells = np.full((len(sizes), width), -1, np.int64)
    cells[area, column] = np.arange(T.shape[1])
    if (cells < 0).any():
        return None
    M = _block_relations(within, area, column, width, len(sizes))
    if M is None or not _check_area_sums(B, column, M, parent):
        return None
    return _Factoring(cells, parent, M)


def _find_area_parents(B: csr_array, area: IntArray, n_areas: int) -> IntArray | None:
    """Return the parent of each area, if the relations between areas say the same of every column."""
    rows = _block_row_of_each_entry(B)
    total = B.data < 0
    if (np.bincount(rows[total], minlength=B.shape[0]) != 1).any():
        return None
    of_row = np.full(B.shape[0], -1, np.int64)
    of_row[rows[total]] = area[B.indices[total]]
    child, above = area[B.indices[~total]], of_row[rows[~total]]
    parent = np.full(n_areas, -1, np.int64)
    parent[child] = above
    if (parent[child] != above).any() or (child == above).any():
        return None
    # every column of an area has the same parts
    parts = np.bincount(parent[parent >= 0], minlength=n_areas)
    if (np.diff(B.indptr) - 1 != parts[of_row]).any():
        return None
    above = parent
    for _ in range(n_areas):
        if (above < 0).all():  # from every area upward there is an end
            return parent if (parent < 0).sum() == 1 else None
        above = np.where(above >= 0, parent[above], -1)
    return None


def _align_columns(B: csr_array, within: csr_array, area: IntArray, parent: IntArray, width: int) -> IntArray | None:
    """Number the columns of the largest area, and carry the numbers to all others."""
    column = np.full(B.shape[1], -1, np.int64)
    root = int(np.flatnonzero(parent < 0)[0])
    column[area == root] = np.arange(width)
    rows = _block_row_of_each_entry(B)
    total = np.zeros(B.shape[0], np.int64)
    total[rows[B.data < 0]] = B.indices[B.data < 0]
    rng = np.random.default_rng(0)
    code = rng.integers(1, 2**62, width + 1).astype(np.uint64)
    for _ in range(4 * len(parent)):
        before = int((column < 0).sum())
        if before == 0:
            return column
        known = column[total[rows]]
        fill = (column[B.indices] < 0) & (known >= 0)
        column[B.indices[fill]] = known[fill]
        _number_area_columns(within, column, area == root, code)
        if int((column < 0).sum()) == before:
            return None
    return None


def _number_area_columns(within: csr_array, column: IntArray, in_root: BoolArray, code: NDArray[np.uint64]) -> None:
    """Number a cell that is the only unnumbered one in a relation, as in the same relation of the largest area."""
    m, rows = within.shape[0], _block_row_of_each_entry(within)
    c = column[within.indices]
    sign = within.data.astype(np.int64).astype(np.uint64)  # -1 wraps, as sums of codes do
    term = np.where(c >= 0, code[c], np.uint64(0)) * sign
    signature = np.zeros(m, np.uint64)
    np.add.at(signature, rows, term)
    unknown = c < 0
    one = np.bincount(rows[unknown], minlength=m) == 1
    of_root = in_root[within.indices]
    # each relation of the largest area, without each of its cells in turn
    keys = signature[rows[of_root]] - term[of_root]
    order = np.argsort(keys, kind="stable")
    keys, answer, its_sign = keys[order], c[of_root][order], within.data[of_root][order]
    wanted = unknown & one[rows]
    place = np.minimum(np.searchsorted(keys, signature[rows[wanted]]), len(keys) - 1)
    hit = (keys[place] == signature[rows[wanted]]) & (its_sign[place] == within.data[wanted])
    column[within.indices[wanted][hit]] = answer[place][hit]


def _block_relations(within: csr_array, area: IntArray, column: IntArray, width: int, n_areas: int) -> csr_array | None:
    """Return the relations of one area over the columns, if all areas have the same ones."""
    if within.shape[0] % n_areas:
        return None
    each = within.shape[0] // n_areas
    of_row = area[within.indices[within.indptr[:-1]]]
    if (np.bincount(of_row, minlength=n_areas) != each).any():
        return None
    by_column = csr_array((within.data, column[within.indices], within.indptr), shape=(within.shape[0], width))
    by_column.sort_indices()
    rng = np.random.default_rng(1)
    codes = rng.integers(1, 2**40, (width, 2)).astype(np.float64)  # exact: sums stay far below 2^53
    prints = by_column @ codes
    order = np.lexsort((prints[:, 1], prints[:, 0], of_row))
    prints = prints[order].reshape(n_areas, each, 2)
    if (prints != prints[0]).any():
        return None
    return csr_array(by_column[order[:each]])


def _check_area_sums(B: csr_array, column: IntArray, M: csr_array, parent: IntArray) -> bool:
    """Whether columns add up from area to area by relations between areas, or because others do."""
    has_parts = np.unique(parent[parent >= 0])
    count = np.bincount(column[B.indices[B.data < 0]], minlength=M.shape[1])
    rest = count != len(has_parts)
    if ((count > 0) & rest).any():
        return False
    return not rest.any() or reduce(M, rest).degrees_of_freedom == 0
