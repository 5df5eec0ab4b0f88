"""The areas of a table: which cells belong to the finest ones, and how the other areas add them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, raise_if_unknown

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["Areas", "split_into_areas"]

_MAX_LEVELS = 100
"""Levels of areas: more of them mean relations that lead in a circle."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Areas:
    """The finest areas of a table, and every cell as a sum of their cells."""

    dimension: str
    """The dimension of areas."""
    cells: tuple[IntArray, ...]
    """The cells of each finest area."""
    relations: tuple[IntArray, ...]
    """The relations inside each finest area."""
    sums: csr_array
    """One row per cell: the cells of the finest areas that it adds up; a cell of a finest area is itself."""

    @property
    def finest(self) -> BoolArray:
        """Which cells belong to a finest area."""
        out = np.zeros(self.sums.shape[0], np.bool_)
        for cells in self.cells:
            out[cells] = True
        return out

    def add_up(self, numbers: FloatArray) -> FloatArray:
        """Return numbers of all cells from those of the finest areas; the others are not looked at."""
        return np.asarray(self.sums @ np.where(self.finest, numbers, 0.0))


def split_into_areas(table: Table, dimension: str) -> Areas:
    """Return the finest areas of a table; refuse a table whose other areas are not sums of them.

    >>> from cellguard import Table
    >>> areas = split_into_areas(Table.from_leaves({"area": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]]), "area")
    >>> [cells.tolist() for cells in areas.cells], areas.add_up(np.ones(9)).tolist()
    ([[3, 4, 5], [6, 7, 8]], [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    raise_if_unknown("areas", dimension, table.dimensions)
    area = np.asarray(table.coordinates[:, table.dimensions.index(dimension)], np.int64)
    T = csr_array(table.relations)
    first = np.minimum(T.indptr[:-1], max(len(T.indices) - 1, 0))
    row = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
    inside = np.ones(T.shape[0], np.bool_)
    inside[row[area[T.indices] != area[T.indices[first]][row]]] = False
    total = np.unique(T.indices[(T.data < 0) & ~inside[row]])
    coarse = np.unique(area[total])
    finest = ~np.isin(area, coarse)
    if not finest.any() or (~inside).sum() == 0:
        raise InputError(
            f"areas {dimension!r}: no code of this dimension is a sum of others.",
            hint="name the dimension whose codes add up to each other.",
        )
    codes = np.unique(area[finest])
    return Areas(
        dimension=dimension,
        cells=tuple(np.flatnonzero(area == code) for code in codes),
        relations=_list_inner_relations(area, T, inside, codes),
        sums=_add_same_cells(table, dimension, finest, _add_up_finest(table, T, inside, finest)),
    )


def _add_up_finest(table: Table, T: csr_array, inside: BoolArray, finest: BoolArray) -> csr_array:
    """Return every cell as a sum of cells of the finest areas.

    A cell of another area is the total of a relation between areas or, if there is none, inside its own.
    """
    n, row = table.n_cells, np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
    entry = np.flatnonzero((T.data < 0) & ~finest[T.indices])
    entry = entry[np.argsort(inside[row[entry]], kind="stable")]  # relations between areas come first
    total, first = np.unique(T.indices[entry], return_index=True)
    rows = row[entry[first]]
    parts = csr_array(T[rows])
    plain = (np.abs(parts.data) == 1).all() and not table.rhs[rows].any()
    if len(total) < (~finest).sum() or not plain or (parts.sum(axis=1) != np.diff(parts.indptr) - 2).any():
        missing = ~finest
        missing[total] = False
        cell = int(np.argmax(missing)) if missing.any() else int(total[0])
        raise InputError(
            f"areas: {table.label(cell)} is not a plain sum of cells of smaller areas.",
            hint="perturb the whole table instead.",
        )
    parts.data = np.maximum(parts.data, 0.0)
    parts.eliminate_zeros()
    lift = csr_array((np.ones(len(total)), (total, np.arange(len(total)))), shape=(n, len(total)))
    step = csr_array(lift @ parts + diags_array(finest.astype(np.float64)))
    sums = step
    for _ in range(_MAX_LEVELS):
        sums.eliminate_zeros()
        if finest[sums.indices].all():
            return sums
        sums = csr_array(sums @ step)
    raise InputError("areas: the relations between areas lead in a circle.")


def _add_same_cells(table: Table, dimension: str, finest: BoolArray, sums: csr_array) -> csr_array:
    """Return the sums with the same cell of every finest area in place of its parts, where all of them have it."""
    axis = table.dimensions.index(dimension)
    area = table.coordinates[:, axis]
    rows, columns = [np.flatnonzero(finest)], [np.flatnonzero(finest)]
    for code in np.unique(area[~finest]).tolist():
        cells = np.flatnonzero(area == code)
        below = np.unique(area[csr_array(sums[cells]).indices])
        wanted = np.repeat(table.coordinates[cells], len(below), axis=0)
        wanted[:, axis] = np.tile(below, len(cells))
        same = table.cells_at(wanted).reshape(len(cells), len(below))
        whole = (same >= 0).all(axis=1)
        off = np.abs(table.values[same].sum(axis=1) - table.values[cells])
        whole &= off <= 1e-6 * np.maximum(1.0, np.abs(table.values[cells]))
        rows += [np.repeat(cells[whole], len(below))]
        columns += [same[whole].ravel()]
        other = csr_array(sums[cells[~whole]])
        rows += [np.repeat(cells[~whole], np.diff(other.indptr))]
        columns += [other.indices]
    place = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.ones(len(place[0])), place), shape=sums.shape)


def _list_inner_relations(area: IntArray, T: csr_array, inside: BoolArray, codes: IntArray) -> tuple[IntArray, ...]:
    """Return the relations inside each area."""
    rows = np.flatnonzero(inside & (np.diff(T.indptr) > 0))
    of = area[T.indices[T.indptr[rows]]]
    return tuple(rows[of == code] for code in codes)
