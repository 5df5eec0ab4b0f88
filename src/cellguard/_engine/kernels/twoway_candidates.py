"""Every count table that agrees with what is published, depth-first, in compiled code (minami2019 (34)).

The suppressed cells that no spanning forest of the pattern needs decide all others. They are set one
after the other; flows give the exact range that the earlier ones leave to the next, so that there are
no dead ends: every leaf of the tree is a candidate.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.twoway_flow import DOWN, ONE, UP, augment, columns_of, copy, copy_table, lowest, shift


@njit(cache=True)
def basis(rows, n_columns, first, span):
    """Cells that decide all others: `first` (unless -1), then one for every other independent cycle.

    The forest takes the cells of narrow span, the basis the wide ones, widest first.
    """
    n_rows = len(rows)
    cells = np.empty(n_rows * n_columns, np.int64)
    n = 0
    for i in range(n_rows):
        m = rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            if i * n_columns + j == first:
                continue
            k = n  # insertion keeps the cells sorted by span
            while k > 0 and span[cells[k - 1] // n_columns, cells[k - 1] % n_columns] > span[i, j]:
                cells[k] = cells[k - 1]
                k -= 1
            cells[k] = i * n_columns + j
            n += 1
    parent = np.arange(n_rows + n_columns)
    out = np.empty(n + 1, np.int64)
    k = n + 1
    for c in cells[:n]:
        a, b = c // n_columns, n_rows + c % n_columns
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a == b:
            k -= 1
            out[k] = c
        else:
            parent[a] = b
    if first >= 0:
        k -= 1
        out[k] = first
    return out[k:]


@njit(cache=True)
def _on_cycle(rows, columns, i, j):
    """Whether column j is reached from row i without cell (i, j)."""
    seen_r, seen_c = ONE << i, np.int64(0)
    front = seen_r
    while front:
        a = lowest(front)
        front &= front - 1
        m = rows[a] & ~seen_c
        if a == i:
            m &= ~(ONE << j)
        seen_c |= m
        while m:
            b = lowest(m)
            m &= m - 1
            if b == j:
                return True
            front |= columns[b] & ~seen_r
            seen_r |= columns[b]
    return False


@njit(cache=True)
def decided(order, rows, n_columns):
    """Return for each l the cells (masks by row) that are decided once order[0..l] are."""
    known = np.zeros((len(order), len(rows)), np.int64)
    free = rows.copy()
    for l in range(len(order)):
        free[order[l] // n_columns] &= ~(ONE << (order[l] % n_columns))
        columns = columns_of(free, n_columns)
        for i in range(len(rows)):
            known[l, i] = rows[i]
            m = free[i]
            while m:
                j = lowest(m)
                m &= m - 1
                if _on_cycle(free, columns, i, j):
                    known[l, i] &= ~(ONE << j)
    return known


@njit(cache=True)
def plant(x, order, rows):
    """Return the tree of candidates: a table per level, and the cells that are free to move there."""
    n, n_columns = max(len(order), 1), x.shape[1]
    y = np.empty((n, x.shape[0], n_columns), np.int64)
    free = np.empty((n, len(rows)), np.int64)
    free_c = np.empty((n, n_columns), np.int64)
    copy_table(y[0], x)
    copy(free[0], rows)
    for l in range(1, n):
        copy(free[l], free[l - 1])
        free[l, order[l - 1] // n_columns] &= ~(ONE << (order[l - 1] % n_columns))
    for l in range(n):
        copy(free_c[l], columns_of(free[l], n_columns))
    return y, free, free_c


@njit(cache=True)
def settle(tree, order, l, work):
    """Set the cell of level l to the lowest value that the levels above leave it."""
    y, free, free_c = tree
    if l > 0:
        copy_table(y[l], y[l - 1])
    i, j = order[l] // y.shape[2], order[l] % y.shape[2]
    while y[l, i, j] > 0 and augment(y[l], free[l], free_c[l], i, j, DOWN, y[l, i, j], work[1], work[2]):
        pass


@njit(cache=True)
def step(tree, order, l, work):
    """Raise the cell of level l by one; False when it is at its highest."""
    y, free, free_c = tree
    i, j = order[l] // y.shape[2], order[l] % y.shape[2]
    return augment(y[l], free[l], free_c[l], i, j, UP, ONE, work[1], work[2]) > 0


@njit(cache=True)
def first_candidate(x, rows, work):
    """Return the candidate with the lowest value in the first cell, then in the second, and so on.

    It depends on what is published only: whatever starts from it uses nothing else.
    """
    y = x.copy()
    free = rows.copy()
    for i in range(x.shape[0]):
        m = rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            columns = columns_of(free, x.shape[1])
            while y[i, j] > 0 and augment(y, free, columns, i, j, DOWN, y[i, j], work[1], work[2]):
                pass
            free[i] &= ~(ONE << j)
    return y


@njit(cache=True)
def listed(x, rows, order, out, limit, work):
    """Write the candidates to `out` until it is full; return how many there are, counting to `limit`.

    With no room left in `out` the last cell's values are counted, not visited.
    """
    n = len(order)
    room = len(out)
    if n == 0:
        if room:
            copy_table(out[0], x)
        return 1
    tree = plant(x, order, rows)
    y, free, free_c = tree
    count = np.int64(0)
    l = np.int64(0)
    settle(tree, order, l, work)
    while True:
        while l < n - 1:
            l += 1
            settle(tree, order, l, work)
        if count < room:
            copy_table(out[count], y[l])
            count += 1
        else:
            i, j = order[l] // x.shape[1], order[l] % x.shape[1]
            count += 1 + shift(y[l], free[l], free_c[l], i, j, UP, ONE << 60, work)
            l -= 1
        if count >= limit:
            return count
        while l >= 0 and not step(tree, order, l, work):
            l -= 1
        if l < 0:
            return count
