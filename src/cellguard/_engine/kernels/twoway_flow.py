"""How far a suppressed cell of a two-way count table can move, in compiled code.

The table is ``x[row, column]`` without its margins, which are published. A pattern is a bit mask per
row (which columns are suppressed) and, kept beside it, a bit mask per column. Everything the margins
and the published cells leave open is reached by alternating cycles: add one to a suppressed cell,
take one from another in its row, add one to another in that column, and so on. So the range of a
cell is two maximum flows on the graph of rows and columns, where

* a row reaches a column by a suppressed cell that can still be lowered,
* a column reaches a row by any suppressed cell (counts have no upper bound of their own).

Flows are whole numbers: the ranges over counts are those of the linear programs (minami2019 (5)-(9)).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.cpython.unsafe.numbers import trailing_zeros

ONE = np.int64(1)  # typed: a literal argument would compile a function anew for every value
UP, DOWN = np.int64(0), np.int64(1)


@njit(cache=True)
def lowest(mask):
    """Return the position of the lowest bit that is set."""
    return np.int64(trailing_zeros(mask))


@njit(cache=True)
def copy(to, of):
    """Copy the masks (an assignment to a slice takes seconds to compile)."""
    for i in range(len(of)):
        to[i] = of[i]


@njit(cache=True)
def copy_table(to, of):
    """Copy the counts."""
    for i in range(of.shape[0]):
        for j in range(of.shape[1]):
            to[i, j] = of[i, j]


@njit(cache=True)
def bits(mask):
    """Return how many bits are set."""
    n = 0
    while mask:
        n += 1
        mask &= mask - 1
    return n


@njit(cache=True)
def columns_of(rows, n_columns):
    """Return the pattern's masks by column."""
    columns = np.zeros(n_columns, np.int64)
    for i in range(len(rows)):
        m = rows[i]
        while m:
            columns[lowest(m)] |= ONE << i
            m &= m - 1
    return columns


@njit(cache=True)
def _path(y, rows, columns, i, j, way, link, reach):
    """Breadth-first from row i to column j (up) or back (down), not over cell (i, j) itself.

    Leaves the path in `link`; when there is none, the lines reached are a minimum cut: `reach[way]`.
    """
    bit_i, bit_j = ONE << i, ONE << j
    seen_r = bit_i if way == UP else np.int64(0)
    seen_c = np.int64(0) if way == UP else bit_j
    front_r, front_c = seen_r, seen_c
    while front_r | front_c:
        new_c = np.int64(0)
        while front_r:
            a = lowest(front_r)
            front_r &= front_r - 1
            m = rows[a] & ~(seen_c | new_c)
            if a == i:
                m &= ~bit_j
            while m:
                b = lowest(m)
                m &= m - 1
                if y[a, b] > 0:
                    new_c |= ONE << b
                    link[1, b] = a
        new_r = np.int64(0)
        while front_c:
            b = lowest(front_c)
            front_c &= front_c - 1
            m = columns[b] & ~(seen_r | new_r)
            if b == j:
                m &= ~bit_i
            new_r |= m
            while m:
                link[0, lowest(m)] = b
                m &= m - 1
        seen_r |= new_r
        seen_c |= new_c
        front_r, front_c = new_r, new_c
        if (seen_c & bit_j if way == UP else seen_r & bit_i) != 0:
            return True
    reach[way, 0], reach[way, 1] = seen_r, seen_c
    return False


@njit(cache=True)
def augment(y, rows, columns, i, j, way, most, link, reach):
    """Move cell (i, j) of `y` up or down by at most `most` along one alternating cycle; return by how much."""
    if not _path(y, rows, columns, i, j, way, link, reach):
        return 0
    amount = np.int64(most)
    for carry in range(2):  # first how much the cycle carries, then carry it
        a, b = i, j
        while True:
            if way == UP:
                a = link[1, b]
            else:
                b = link[0, a]
                if carry:
                    y[a, b] += amount
                if b == j:
                    break
                a = link[1, b]
            if carry:
                y[a, b] -= amount
            else:
                amount = min(amount, y[a, b])
            if way == UP:
                if a == i:
                    break
                b = link[0, a]
                if carry:
                    y[a, b] += amount
    y[i, j] += amount if way == UP else -amount
    return amount


@njit(cache=True)
def shift(x, rows, columns, i, j, way, most, work):
    """Return how far cell (i, j) can move up or down, at most `most`; `x` stays as it is."""
    y, link, reach = work
    copy_table(y, x)
    moved = np.int64(0)
    while moved < most:
        step = augment(y, rows, columns, i, j, way, most - moved, link, reach)
        if step == 0:
            break
        moved += step
    return moved


@njit(cache=True)
def width(x, rows, columns, i, j, cap, work):
    """Return the width of the range of suppressed cell (i, j), or `cap` when it is at least that."""
    up = shift(x, rows, columns, i, j, UP, cap, work)
    if up >= cap:
        return cap
    return up + shift(x, rows, columns, i, j, DOWN, min(x[i, j], cap - up), work)


@njit(cache=True)
def spans(x, rows, work):
    """Return the lowest and the highest value that the published cells leave to every cell."""
    low, high = x.copy(), x.copy()
    columns = columns_of(rows, x.shape[1])
    for i in range(x.shape[0]):
        m = rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            high[i, j] += shift(x, rows, columns, i, j, UP, ONE << 60, work)
            low[i, j] -= shift(x, rows, columns, i, j, DOWN, x[i, j], work)
    return low, high
