"""Compute margins: add up the finest cells along every hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.space.cell_grid import compute_grid_keys
from cellguard._types import ByteArray, Coordinates, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.hierarchy import Hierarchy

__all__ = ["Cells", "Items", "build_rollup_layers", "group_keys", "roll_up"]


_DENSE = 1 << 27
"""Maximum size of a grid that is numbered with an array; larger ones are numbered by sorting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Contributions that may be among the largest of a cell."""

    value: FloatArray
    weight: FloatArray
    request: ByteArray
    who: IntArray
    """Number of the contributor; equal numbers mean the same contributor."""
    whole: FloatArray
    """Total contribution of the contributor to all cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells with their sums, and the list of their largest contributions."""

    coordinates: Coordinates
    sums: FloatArray
    """One row per cell, a column per measure."""
    largest: FloatArray
    """Largest contribution without a waiver; -1 if there is none."""
    ptr: IntArray
    """The list of cell i is ``items[ptr[i]:ptr[i + 1]]``."""
    items: IntArray


def group_keys(keys: IntArray, grid: int) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in ascending order, and the index of each key among them."""
    if grid > _DENSE:
        distinct, place = np.unique(keys, return_inverse=True)
        return distinct, place.ravel()
    there = np.zeros(grid, dtype=bool)
    there[keys] = True
    distinct = np.flatnonzero(there)
    number = np.zeros(grid, dtype=np.int32)
    number[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, number[keys].astype(np.int64)


def roll_up(cells: Cells, hierarchies: Sequence[Hierarchy], items: Items, units: int) -> Cells:
    """Add every margin: one dimension after the other, each cell into all codes above its own."""
    for d, hierarchy in enumerate(hierarchies):
        cells = _roll_up_dimension(cells, d, hierarchy, [len(h) for h in hierarchies], items, units)
    return cells


def _roll_up_dimension(
    cells: Cells, d: int, hierarchy: Hierarchy, sizes: Sequence[int], items: Items, units: int
) -> Cells:
    from scipy.sparse import csr_array

    above = _list_ancestors(hierarchy)
    code = cells.coordinates[:, d]
    several = np.diff(above.indptr)[code]
    row = np.repeat(np.arange(len(code)), several)
    within = np.arange(len(row)) - np.repeat(np.cumsum(several) - several, several)
    coordinates = cells.coordinates[row]
    coordinates[:, d] = above.indices[above.indptr[code[row]] + within]
    distinct, place = group_keys(compute_grid_keys(coordinates, sizes), prod(sizes))
    member = csr_array((np.ones(len(row)), (place, row)), shape=(len(distinct), len(code)))
    member.sort_indices()
    first = np.empty(len(distinct), dtype=np.int64)
    first[place] = np.arange(len(row))
    ptr, chosen = _merge_largest(member, cells, items, units)
    return Cells(
        coordinates=coordinates[first],
        sums=member @ cells.sums,
        largest=_compute_group_maxima(member, cells.largest),
        ptr=ptr,
        items=chosen,
    )


def _list_ancestors(hierarchy: Hierarchy) -> csr_array:
    """Return the codes above each leaf, including itself; other codes have none (rows are codes)."""
    from scipy.sparse import csr_array

    M = hierarchy.build_matrix().tocoo()
    n = len(hierarchy)
    leaf = hierarchy.leaves[M.coords[1]]
    return csr_array((np.ones(len(leaf)), (leaf, M.coords[0])), shape=(n, n))


def _compute_group_maxima(member: csr_array, x: FloatArray) -> FloatArray:
    """Return the largest number of each group."""
    out: FloatArray = np.maximum.reduceat(x[member.indices], member.indptr[:-1].astype(np.int64))
    return out


def _merge_largest(member: csr_array, cells: Cells, items: Items, units: int) -> tuple[IntArray, IntArray]:
    if not units:
        return np.zeros(member.shape[0] + 1, np.int64), np.zeros(0, np.int64)
    from cellguard._core.top import merge_top

    indptr, parts = member.indptr.astype(np.int64), member.indices.astype(np.int64)
    ptr, chosen = merge_top(indptr, parts, cells.ptr, cells.items, items.value, items.weight, float(units))
    return ptr, chosen


def build_rollup_layers(hierarchy: Hierarchy) -> list[IntArray]:
    """Return maps from codes to codes that together lead each leaf to every code above it, exactly once.

    A map leads all leaves below a code to it, or none of them, so that a cell is complete after one pass. It holds
    -1 for codes without a target.
    """
    n = len(hierarchy)
    taken = np.zeros(n, dtype=bool)
    above = _list_ancestors(hierarchy).tocoo()
    leaf, code = above.coords
    out = []
    for parents in hierarchy.parents:
        depth = _compute_depths(parents)
        for level in range(int(depth.max()) + 1):
            now = (depth == level) & ~taken
            chosen = now[code]
            if chosen.any():
                step = np.full(n, -1, dtype=np.int64)
                step[leaf[chosen]] = code[chosen]
                out.append(step)
            taken |= now
    return out


def _compute_depths(parents: IntArray) -> IntArray:
    """Return the depth of each code in one tree; -1 for codes that are not in it."""
    depth = np.where(parents == -1, 0, -1)
    while True:
        below = np.flatnonzero((depth < 0) & (parents >= 0) & (depth[np.maximum(parents, 0)] >= 0))
        if not len(below):
            return depth
        depth[below] = depth[parents[below]] + 1
