"""Lower bounds that add up: a total is at least the sum of what its parts are at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.table import Table

__all__ = ["add_up_lower_bounds"]

MAX_DEPTH = 64
"""Maximum number of levels of a classification."""
MAX_DECIMALS = 9
"""Decimals to which sums of bounds are rounded: 0.07, not 0.07000000000000001."""


def add_up_lower_bounds(table: Table, lb: FloatArray, empty: BoolArray) -> FloatArray:
    """Return lower bounds in which every total is at least the sum of the bounds of its parts.

    A part is as large as its total if everybody knows that the others are `empty`. Cells that must be published are
    part of every release, not of what attackers know before: they cap no level.

    >>> from cellguard.model.table import Table
    >>> t = Table.from_equations([9, 4, 5], [[0, 1, 2]])
    >>> add_up_lower_bounds(t, np.array([0.0, 3.0, 1.0]), t.values == 0)
    array([4., 3., 1.])
    """
    total, sums = _find_sums(table, empty)
    least = lb
    for _ in range(MAX_DEPTH):
        more = least.copy()
        np.maximum.at(more, total, np.round(sums @ least, MAX_DECIMALS))
        more = np.minimum(more, table.values)  # not above, by rounding
        if np.array_equal(more, least):
            break
        least = more
    return np.where(table.fixed, lb, np.maximum(lb, least))


def _find_sums(table: Table, empty: BoolArray) -> tuple[IntArray, csr_array]:
    """Return the cells that are sums of others, with those others, one row each."""
    from scipy.sparse import csr_array

    T, n = table.relations.tocoo(), table.n_relations
    row, cell = T.coords
    below = np.bincount(row, T.data < 0, minlength=n)
    plain = (below == 1) & (np.bincount(row, np.abs(T.data) != 1, minlength=n) == 0) & (table.rhs == 0)
    is_total, is_part = plain[row] & (T.data < 0), plain[row] & (T.data > 0)
    total = np.zeros(n, np.int64)
    total[row[is_total]] = cell[is_total]
    filled = is_part & ~empty[cell]
    only = filled & (np.bincount(row[filled], minlength=n) == 1)[row]  # the one part that is not empty is the total
    again = n + np.arange(int(only.sum()))
    rows, cells = np.concatenate([row[is_part], again]), np.concatenate([cell[is_part], total[row[only]]])
    parts = csr_array((np.ones(len(rows)), (rows, cells)), shape=(n + len(again), table.n_cells))
    kept = np.concatenate([np.flatnonzero(plain), again])
    return np.concatenate([total, cell[only]])[kept], parts[kept]
