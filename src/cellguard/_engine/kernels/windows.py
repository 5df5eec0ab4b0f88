"""Compiled: the neighbourhood of a cell in which cells can hide one another.

A movement of a cell needs partners in each of its relations, those need partners in turn, and so on
until all sums close. The cheapest partners in the relations of the cell are taken, if need be their
cheapest partners too (a large cell among small ones hides only behind its totals), and then, round
by round, the cells that lie in at least two of the relations touched so far: in a table of k
dimensions these are the corners of all boxes spanned by the first partners.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def window(p, row_ptr, row_cell, cell_ptr, cell_row, cost, usable, width, depth, most, mark, touched, stamp):
    """Return the cells around cell p, p first.

    Parameters
    ----------
    p
        The cell.
    row_ptr, row_cell, cell_ptr, cell_row
        Which cells each relation holds, and which relations each cell is in.
    cost, usable
        Cost of each cell, and whether it may move.
    width, depth
        How many partners to take from each relation of the cell, and for how many generations.
    most
        How many cells the window may have.
    mark, touched, stamp
        Scratch: the stamp of the window in which a cell or relation was last seen; the stamp of this one.
    """
    out = np.empty(most + 1, np.int64)
    out[0] = p
    mark[p] = stamp
    n = 1
    best = np.empty(width, np.int64)
    old = 0
    for _ in range(depth):
        young = n
        for a in range(old, young):
            for k in range(cell_ptr[out[a]], cell_ptr[out[a] + 1]):
                r = cell_row[k]
                if touched[r] == stamp:
                    continue
                touched[r] = stamp
                filled = _partners(r, row_ptr, row_cell, cost, usable, mark, stamp, best)
                for b in range(filled):
                    if n <= most:
                        mark[best[b]] = stamp
                        out[n] = best[b]
                        n += 1
        old = young
    first = 1
    while first < n <= most:
        last = n
        for a in range(first, last):
            for k in range(cell_ptr[out[a]], cell_ptr[out[a] + 1]):
                touched[cell_row[k]] = stamp
        for a in range(first, last):
            for k in range(cell_ptr[out[a]], cell_ptr[out[a] + 1]):
                r = cell_row[k]
                for q in range(row_ptr[r], row_ptr[r + 1]):
                    c = row_cell[q]
                    if mark[c] == stamp or not usable[c]:
                        continue
                    hits = 0
                    for b in range(cell_ptr[c], cell_ptr[c + 1]):
                        if touched[cell_row[b]] == stamp:
                            hits += 1
                    if hits >= 2 and n <= most:
                        mark[c] = stamp
                        out[n] = c
                        n += 1
        first = last
    return out[: min(n, most + 1)].copy()


@njit(cache=True, error_model="numpy")
def _partners(r, row_ptr, row_cell, cost, usable, mark, stamp, best):
    """Fill `best` with the cheapest cells of relation r that are not in the window; returns how many."""
    filled, width = 0, len(best)
    for q in range(row_ptr[r], row_ptr[r + 1]):
        c = row_cell[q]
        if not usable[c] or mark[c] == stamp:
            continue
        at = filled
        while at > 0 and cost[best[at - 1]] > cost[c]:
            at -= 1
        if at >= width:
            continue
        last = min(filled, width - 1)
        for b in range(last, at, -1):
            best[b] = best[b - 1]
        best[at] = c
        filled = min(filled + 1, width)
    return filled


@njit(cache=True, error_model="numpy")
def close(cells, row_ptr, row_cell, cell_ptr, cell_row, mark, stamp):
    """Drop cells that are alone in one of their relations, until every relation holds none or two.

    `mark` holds the stamp for the cells. Returns the cells that are left.
    """
    todo = cells.copy()
    n = len(cells)
    alive = n
    for _ in range(n):
        dropped = 0
        for a in range(n):
            c = todo[a]
            if mark[c] != stamp:
                continue
            for k in range(cell_ptr[c], cell_ptr[c + 1]):
                r, others = cell_row[k], 0
                for q in range(row_ptr[r], row_ptr[r + 1]):
                    if mark[row_cell[q]] == stamp and row_cell[q] != c:
                        others += 1
                        break
                if others == 0:
                    mark[c] = stamp - 1
                    dropped += 1
                    break
        alive -= dropped
        if dropped == 0:
            break
    out = np.empty(alive, np.int64)
    at = 0
    for a in range(n):
        if mark[todo[a]] == stamp:
            out[at] = todo[a]
            at += 1
    return out
