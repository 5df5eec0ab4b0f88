"""Compiled search for squares: which relations of a table run along the same dimension."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["classes"]


@njit(cache=True)
def _find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def _join(parent, i, j):
    i, j = _find(parent, i), _find(parent, j)
    if i != j:
        parent[max(i, j)] = min(i, j)


@njit(cache=True)
def _sign(indptr, indices, data, row, cell):
    for k in range(indptr[row], indptr[row + 1]):
        if indices[k] == cell:
            return data[k]
    return 0.0


@njit(cache=True)
def classes(indptr, indices, data, cell_ptr, cell_row):
    m = len(indptr) - 1
    parent = np.arange(m)
    mark = np.full(m, -1, np.int64)  # relation -> stamp of the last search that saw it
    via = np.full(m, -1, np.int64)  # relation -> through which parallel it was reached
    stamp = 0
    for row in range(m):
        # the total and two parts of every relation: relations of one dimension meet at a total
        first, last, total = indptr[row], indptr[row + 1] - 1, indptr[row]
        for k in range(first, last + 1):
            if data[k] < 0:
                total = k
        for which in range(3):
            k = total if which == 0 else (first if which == 1 else last)
            if which > 0 and k == total:
                continue
            c = indices[k]
            for t in range(cell_ptr[c], cell_ptr[c + 1]):
                other = cell_row[t]
                if other == row:
                    continue
                stamp += 1
                square, along = _square(indptr, indices, data, cell_ptr, cell_row, row, other, c, mark, via, stamp)
                if square < 0:
                    _join(parent, row, other)
                else:
                    _join(parent, row, square)
                    _join(parent, other, along)
    for i in range(m):
        parent[i] = _find(parent, i)
    return parent


@njit(cache=True)
def _square(indptr, indices, data, cell_ptr, cell_row, row, other, c, mark, via, stamp):
    """Find a parallel of each of two relations that share a cell; -1 if they span no square."""
    tries = 0
    for k in range(indptr[row], indptr[row + 1]):
        r = indices[k]
        if r == c:
            continue
        tries += 1
        if tries > 2:
            break
        side = _sign(indptr, indices, data, other, c)
        for t in range(cell_ptr[r], cell_ptr[r + 1]):
            along = cell_row[t]  # a candidate for the parallel of `other` through r
            length = indptr[along + 1] - indptr[along]
            if along == row or length != indptr[other + 1] - indptr[other]:
                continue
            if _sign(indptr, indices, data, along, r) != side:
                continue
            for u in range(indptr[along], indptr[along + 1]):
                d = indices[u]
                if d == r:
                    continue
                for v in range(cell_ptr[d], cell_ptr[d + 1]):
                    if cell_row[v] != along:
                        mark[cell_row[v]] = stamp
                        via[cell_row[v]] = along
        for u in range(indptr[other], indptr[other + 1]):
            q = indices[u]
            if q == c:
                continue
            for v in range(cell_ptr[q], cell_ptr[q + 1]):
                square = cell_row[v]
                as_long = indptr[square + 1] - indptr[square] == indptr[row + 1] - indptr[row]
                if square != other and mark[square] == stamp and as_long:
                    return square, via[square]
    return -1, -1
