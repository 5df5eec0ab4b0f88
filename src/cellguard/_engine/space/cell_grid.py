"""Relations of cross-tabulated cells, by array operations: no loop runs over cells.

A cell is a row of code indices, one per dimension; code 0 is the total. Its key is its position in the
grid of all combinations of codes. A relation of one dimension (a code is the sum of its children)
holds at every combination of codes of the other dimensions; it is a relation of the table when all
its cells are published. Where margins are left out, two further kinds link what remains (see
`_build_joint_margin_relations` and `_build_crossing_relations`): together they span every linear
relation between published cells, because the sets of dimensions that contain a given set then form a
connected graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "Family",
    "build_grid_relations",
    "compute_grid_keys",
    "decode_grid_keys",
    "enumerate_block_keys",
    "find_grid_places",
    "merge_distinct_cells",
    "sum_leaves",
]  # fmt: skip

Family = tuple[IntArray, IntArray, IntArray]
"""Relations of the codes of one dimension: totals, indptr, parts."""
Rows = tuple[IntArray, IntArray, FloatArray]
"""Lengths, cells and signs of relations."""

_DENSE_LOOKUP = 1 << 24
"""Grids up to this size are looked up in an array of positions, larger ones by bisection."""
_MOST_CELLS = 1 << 28
"""Larger tables are a mistake in the request: their relations would not fit into memory."""


def compute_grid_keys(coordinates: Coordinates, sizes: Sequence[int]) -> IntArray:
    """Return the position of each cell in the grid of all combinations."""
    if prod(sizes) >= 1 << 62:
        raise InputError(f"the grid of {len(sizes)} dimensions with {tuple(sizes)} codes is too large to number.")
    key = np.zeros(len(coordinates), np.int64)
    for d, size in enumerate(sizes):
        key *= size
        key += coordinates[:, d]
    return key


def decode_grid_keys(keys: IntArray, sizes: Sequence[int]) -> Coordinates:
    """Return the code indices of the cells at some positions of the grid."""
    out = np.empty((len(keys), len(sizes)), np.int32)
    rest = keys
    for d in reversed(range(len(sizes))):
        rest, out[:, d] = np.divmod(rest, sizes[d])
    return out


def merge_distinct_cells(
    coordinates: Sequence[Coordinates], sizes: Sequence[int]
) -> tuple[Coordinates, list[IntArray]]:
    """Return the distinct cells of several tables, and the positions of each table's cells among them.

    The first table's cells come first, then the new ones of each other table.
    """
    keys = [compute_grid_keys(own, sizes) for own in coordinates]
    _, first = np.unique(np.concatenate(keys), return_index=True)
    listed = np.concatenate(keys)[np.sort(first)]
    return decode_grid_keys(listed, sizes), [find_grid_places(listed, own, sizes) for own in keys]


def enumerate_block_keys(sizes: Sequence[int], blocks: Sequence[Sequence[IntArray]]) -> IntArray:
    """Return the sorted keys of the union of blocks, each the product of some codes of each dimension."""
    wanted = sum(prod(len(codes) for codes in block) for block in blocks)
    if wanted > _MOST_CELLS:
        raise InputError(
            f"the table would have {wanted} cells; at most {_MOST_CELLS} are possible.",
            hint="publish fewer crossings, or collapse a dimension to a coarser level.",
        )
    compute_grid_keys(np.zeros((0, len(sizes)), np.int32), sizes)
    out = []
    for block in blocks:
        key = np.zeros(1, np.int64)
        for size, codes in zip(sizes, block, strict=True):
            key = np.add.outer(key * size, np.asarray(codes, np.int64)).ravel()
        out.append(key)
    if not out:
        return np.zeros(0, np.int64)
    ascending = len(out) == 1 and bool((np.diff(out[0]) > 0).all())
    return out[0] if ascending else np.unique(np.concatenate(out))


class _Places:
    """Position of a key among the cells; -1 when it is not published."""

    def __init__(self, keys: IntArray, grid: int) -> None:
        self.grid = grid
        self.same = len(keys) == grid and bool((keys == np.arange(grid)).all())
        self.table: Coordinates | None = None
        if self.same:
            return
        if grid <= _DENSE_LOOKUP:
            self.table = np.full(grid, -1, np.int32)
            self.table[keys] = np.arange(len(keys), dtype=np.int32)
        else:
            self.order = np.argsort(keys, kind="stable")
            self.sorted = keys[self.order]

    def __call__(self, wanted: IntArray) -> IntArray:
        if self.same:
            return wanted
        if self.table is not None:
            return self.table[wanted].astype(np.int64)
        if not len(self.sorted):
            return np.full(wanted.shape, -1, np.int64)
        at = np.minimum(np.searchsorted(self.sorted, wanted), len(self.sorted) - 1)
        return np.where(self.sorted[at] == wanted, self.order[at], -1)


def find_grid_places(keys: IntArray, wanted: IntArray, sizes: Sequence[int]) -> IntArray:
    """Return the index of each wanted key among the keys, -1 if it is missing."""
    return _Places(keys, prod(sizes))(wanted)


def build_grid_relations(
    coordinates: Coordinates, sizes: Sequence[int], families: Sequence[Family], *, absent_is_zero: bool = False
) -> tuple[csr_array, IntArray]:
    """Return the relations between published cells, and the dimension each belongs to.

    Parameters
    ----------
    coordinates
        One row per cell: the index of its code in each dimension.
    sizes
        Number of codes of each dimension.
    families
        Relations of the codes of each dimension.
    absent_is_zero
        Cells that are not listed are zeros, and left out of sums; every margin of what is published must
        be published too. Otherwise they are unpublished, and sums that need them are not relations.

    Returns
    -------
    tuple
        The matrix (the total has -1, its parts 1), and for each row the dimension whose codes it
        adds up, -1 where it adds up several at once.
    """
    from scipy.sparse import csr_array

    keys = compute_grid_keys(coordinates, sizes)
    places = _Places(keys, prod(sizes))
    strides = np.array([prod(sizes[d + 1 :]) for d in range(len(sizes))], np.int64)
    pieces: list[Rows] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for d, family in enumerate(families):
        pieces.append(
            _build_dimension_relations(keys, coordinates[:, d], family, strides[d], places, zero=absent_is_zero)
        )
    if not absent_is_zero:
        pieces += _build_margin_leaps(keys, coordinates, families, strides, places)
    lengths = np.concatenate([p[0] for p in pieces])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    small = np.int32 if max(len(keys), indptr[-1]) < 1 << 31 else np.int64
    indices, data = np.concatenate([p[1].astype(small) for p in pieces]), np.concatenate([p[2] for p in pieces])
    T = csr_array((data, indices, indptr.astype(small)), shape=(len(lengths), len(keys)))
    T.sort_indices()
    origin = np.where(np.arange(len(pieces)) <= len(families), np.arange(len(pieces)) - 1, -1)
    return T, np.repeat(origin, [len(p[0]) for p in pieces])


def _build_dimension_relations(
    keys: IntArray, code: Coordinates, family: Family, stride: int, places: _Places, *, zero: bool = False
) -> Rows:
    """Return the relations of one dimension that hold between published cells."""
    totals, indptr, parts = family
    order = np.argsort(totals, kind="stable")  # a code of several trees is the total of several relations
    ends = np.searchsorted(totals[order], np.arange(int(code.max(initial=-1)) + 2))
    several = np.diff(ends)[code]
    cell = np.repeat(np.arange(len(keys)), several)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(several) - several, several)
    relation = order[ends[code[cell]] + within]
    length = np.diff(indptr)[relation]
    start = np.cumsum(length) - length
    part = parts[np.repeat(indptr[relation] - start, length) + np.arange(length.sum())]
    wanted = np.repeat(keys[cell] - code[cell] * stride, length) + part * stride
    return _complete_relations_on_cell_grid(cell, length, places(wanted), zero=zero)


def _complete_relations_on_cell_grid(total: IntArray, length: IntArray, part: IntArray, *, zero: bool = False) -> Rows:
    """Keep the relations whose parts are all published, or that have a part if others are zero; total in front."""
    if not len(total):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    start = np.cumsum(length) - length
    if zero or part.min() < 0:
        if zero:
            length = np.add.reduceat((part >= 0).astype(np.int64), start)
            part, keep = part[part >= 0], length > 0
        else:
            keep = np.minimum.reduceat(part, start) >= 0
            part = part[np.repeat(keep, length)]
        total, length = total[keep], length[keep]
        start = np.cumsum(length) - length
    first = start + np.arange(len(start))
    cells = np.empty(len(part) + len(total), np.int64)
    signs = np.ones(len(cells))
    inside = np.ones(len(cells), bool)
    inside[first] = False
    cells[first], cells[inside] = total, part
    signs[first] = -1.0
    return length + 1, cells, signs


# ---------------------------------------------------------------- margins that are not published


def _build_margin_leaps(
    keys: IntArray, coordinates: Coordinates, families: Sequence[Family], strides: IntArray, places: _Places
) -> list[Rows]:
    """Return the relations that skip unpublished margins; none when the whole grid is published."""
    if len(keys) == places.grid:
        return []
    pattern = _encode_crossings(coordinates)
    order = np.argsort(pattern, kind="stable")
    present, start = np.unique(pattern[order], return_index=True)
    cells = dict(zip(present.tolist(), np.split(order, start[1:]), strict=True))
    below = [_get_first_children(f) for f in families]
    offsets = [children * stride for children, stride in zip(below, strides, strict=True)]
    return _build_joint_margin_relations(keys, cells, offsets, places) + _build_crossing_relations(
        keys, coordinates, cells, below, strides, places
    )


def _get_first_children(family: Family) -> IntArray:
    """Return the codes directly below the total, in the first tree."""
    totals, indptr, parts = family
    at = np.flatnonzero(totals == 0)
    return parts[indptr[at[0]] : indptr[at[0] + 1]] if len(at) else np.zeros(0, np.int64)


def _encode_crossings(coordinates: Coordinates) -> IntArray:
    """Return the crossing of each cell: bit d is set where it is not at the total of dimension d."""
    pattern = np.zeros(len(coordinates), np.int64)
    for d in range(coordinates.shape[1]):
        pattern |= (coordinates[:, d] > 0).astype(np.int64) << d
    return pattern


def _decode_crossing(pattern: int, k: int) -> list[int]:
    return [d for d in range(k) if pattern >> d & 1]


def _build_joint_margin_relations(
    keys: IntArray, cells: dict[int, IntArray], offsets: Sequence[IntArray], places: _Places
) -> list[Rows]:
    """Return relations of cells that are sums over two or more dimensions at once, with no published margin between."""
    out = []
    for low, cell in cells.items():
        above = sorted((high for high in cells if high != low and high & low == low), key=int.bit_count)
        adds_up: dict[int, BoolArray] = {}
        for high in above:
            offset = np.zeros(1, np.int64)
            for d in _decode_crossing(high ^ low, len(offsets)):
                offset = np.add.outer(offset, offsets[d]).ravel()
            if not len(offset):  # codes of one of these dimensions, as indicators, have no sum
                continue
            part = places(np.add.outer(keys[cell], offset))
            adds_up[high] = np.asarray((part >= 0).all(axis=1))
            between = [whole for mid, whole in adds_up.items() if mid != high and mid & high == mid]
            new = adds_up[high] & ~np.logical_or.reduce(between) if between else adds_up[high]
            if (high ^ low).bit_count() > 1 and new.any():
                count = int(new.sum())
                out.append(_complete_relations_on_cell_grid(cell[new], np.full(count, len(offset)), part[new].ravel()))
    return out


def _build_crossing_relations(
    keys: IntArray,
    coordinates: Coordinates,
    cells: dict[int, IntArray],
    below: Sequence[IntArray],
    strides: IntArray,
    places: _Places,
) -> list[Rows]:
    """Return relations that equate the sums of cells of two crossings whose common margin is not published."""
    out = []
    for one, other in combinations(cells, 2):
        meet = one & other
        if meet in (one, other):
            continue
        sides = []
        for side in (one, other):
            cell = cells[side]
            margin, full = keys[cell], 1
            for d in _decode_crossing(side & ~meet, len(below)):
                code = coordinates[cell, d]
                first = np.isin(code, below[d])
                cell, margin, full = cell[first], margin[first] - code[first] * strides[d], full * len(below[d])
            hidden = places(margin) < 0
            sides.append((cell[hidden], margin[hidden], full))
        if len(sides[0][0]) and len(sides[1][0]):
            out.append(_build_sum_differences(*sides))
    return out


def _build_sum_differences(one: tuple[IntArray, IntArray, int], other: tuple[IntArray, IntArray, int]) -> Rows:
    """Return, for each margin that both sides add up to completely, the difference of the sums."""
    complete = []
    for _, margin, full in (one, other):
        distinct, count = np.unique(margin, return_counts=True)
        complete.append(distinct[count == full])
    margins = np.intersect1d(*complete)
    cells, rows, signs = [], [], []
    for (cell, margin, _), sign in ((one, -1.0), (other, 1.0)):
        keep = np.isin(margin, margins)
        cells.append(cell[keep])
        rows.append(np.searchsorted(margins, margin[keep]))
        signs.append(np.full(int(keep.sum()), sign))
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return np.bincount(row, minlength=len(margins)), np.concatenate(cells)[order], np.concatenate(signs)[order]


def sum_leaves(
    leaves: FloatArray, sums: Sequence[csr_array], coordinates: Coordinates, sizes: Sequence[int]
) -> FloatArray:
    """Return the value of each cell as the sum of leaf cells.

    Parameters
    ----------
    leaves
        One axis per dimension, one entry per leaf code.
    sums
        For each dimension which leaves each code adds up (codes x leaves).
    coordinates, sizes
        The cells wanted, and the number of codes of each dimension.
    """
    k = len(sums)
    pattern = _encode_crossings(coordinates)
    out = np.empty(len(coordinates))
    together = prod(sizes) <= 4 * len(coordinates)  # nearly all margins: sum once for all of them
    for bits in [-1] if together else np.unique(pattern).tolist():
        block = leaves
        for d in range(k):
            M = sums[d] if bits >> d & 1 else sums[d][[0]]
            rows = M @ np.moveaxis(block, d, 0).reshape(block.shape[d], -1)
            shape = [n for e, n in enumerate(block.shape) if e != d]
            block = np.moveaxis(rows.reshape([M.shape[0], *shape]), 0, d)
        cells = slice(None) if together else pattern == bits
        at = tuple(np.where(bits >> d & 1, coordinates[cells, d], 0) for d in range(k))
        out[cells] = block[at]
    return out
