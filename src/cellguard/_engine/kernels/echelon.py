"""Compiled simplex for few degrees of freedom: a null space kept as a dense echelon form.

All variables are combinations ``z = W z[basis]`` of a few independent ones, whose rows of W are the
identity. The form serves both to fix a variable at zero (eliminate, which publishes a cell) and as
the tableau of the simplex method, which moves a variable as far as the others' bounds allow. A
program takes microseconds where a general solver's call takes milliseconds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_PIVOT = 1e-7  # smaller coefficients are rounding: entries of W are small whole numbers or near them


@njit(cache=True)
def _snap(value):
    """Entries are whole numbers most of the time: rounding must not pile up."""
    whole = np.rint(value)
    return whole if abs(value - whole) < 1e-9 else value


@njit(cache=True)
def pivot(W, basis, row, j):
    """Make the variable `row` independent instead of that of column `j`, in place."""
    m, d = W.shape
    inverse = 1.0 / W[row, j]
    for i in range(m):
        if W[i, j] != 0.0:
            W[i, j] = _snap(W[i, j] * inverse)
    for k in range(d):
        factor = W[row, k]
        if k != j and factor != 0.0:
            for i in range(m):
                if W[i, j] != 0.0:
                    W[i, k] = _snap(W[i, k] - factor * W[i, j])
            W[row, k] = 0.0
    basis[j] = row


@njit(cache=True)
def eliminate(W, basis, row):
    """Return the echelon form in which the variable `row` cannot move."""
    m, d = W.shape
    best = 0
    for k in range(1, d):
        if abs(W[row, k]) > abs(W[row, best]) + 1e-9:
            best = k
    if abs(W[row, best]) < _PIVOT:
        return W, basis
    V, b = np.empty((m, d - 1)), np.empty(d - 1, np.int64)
    at = 0
    for k in range(d):
        if k == best:
            continue
        factor = W[row, k] / W[row, best]
        b[at] = basis[k]
        if factor == 0.0:
            for i in range(m):
                V[i, at] = W[i, k]
        else:
            for i in range(m):
                V[i, at] = _snap(W[i, k] - factor * W[i, best])
        at += 1
    return V, b


@njit(cache=True)
def _step(W, j, z, low, high, sign):
    """How far the independent variable of column j can move, and which variable stops it."""
    step, stop, size = np.inf, -1, 0.0
    for i in range(len(z)):
        c = sign * W[i, j]
        if c > _PIVOT:
            t = (high[i] - z[i]) / c
        elif c < -_PIVOT:
            t = (low[i] - z[i]) / c
        else:
            continue
        t = max(t, 0.0)
        if t < step or (t == step and abs(c) > size):
            step, stop, size = t, i, abs(c)
    return step, stop


@njit(cache=True)
def push(V, parameters, z, low, high, row, sign, target):
    """Move ``sign * z[row]`` up to the target, or as far as the bounds allow; z changes in place.

    The column with the largest gain enters; without gain, pivots at a vertex follow Bland's rule and
    are counted. Returns the value reached, at most the target. Pivots are made on a copy, and the
    movement is computed anew from `V` at the end: rounding of the pivots cannot enter it.
    """
    W, basis = V.copy(), parameters.copy()
    d = W.shape[1]
    idle = 0
    for _ in range(50 * d + 200):
        now = sign * z[row]
        if now >= target:
            break
        best, best_gain, best_step, best_stop, best_sign = -1, 0.0, 0.0, -1, 0.0
        first, first_sign = -1, 0.0
        for j in range(d):
            g = sign * W[row, j]
            if abs(g) < _PIVOT:
                continue
            direction = 1.0 if g > 0 else -1.0
            own = basis[j]
            if (direction > 0 and z[own] >= high[own]) or (direction < 0 and z[own] <= low[own]):
                continue
            if first < 0 or basis[j] < basis[first]:
                first, first_sign = j, direction
            step, stop = _step(W, j, z, low, high, direction)
            gain = step * abs(g)
            if gain > best_gain:
                best, best_gain, best_step, best_stop, best_sign = j, gain, step, stop, direction
        if best < 0 or best_gain <= 1e-11 * max(target, 1e-300):
            if first < 0 or idle > 3 * d + 20:
                break
            idle += 1
            best, best_sign = first, first_sign
            best_step, best_stop = _step(W, best, z, low, high, best_sign)
        g = abs(W[row, best])
        reach = (target - now) / g
        if best_step >= reach:
            for i in range(len(z)):
                z[i] += reach * best_sign * W[i, best]
            z[row] = sign * target
            break
        for i in range(len(z)):
            if W[i, best] != 0.0:
                z[i] += best_step * best_sign * W[i, best]
        stop = best_stop
        z[stop] = high[stop] if best_sign * W[stop, best] > 0 else low[stop]
        if stop != basis[best]:
            pivot(W, basis, stop, best)
    return _settle(V, parameters, z, low, high, row, sign)


@njit(cache=True)
def _settle(V, parameters, z, low, high, row, sign):
    """Make z an exact combination of the columns of V, inside the bounds; return ``sign * z[row]``."""
    m, d = V.shape
    x = np.empty(d)
    for j in range(d):
        x[j] = z[parameters[j]]
    shrink = 1.0
    for i in range(m):
        v = 0.0
        for j in range(d):
            v += V[i, j] * x[j]
        z[i] = v
        if v > high[i] > 0:
            shrink = min(shrink, high[i] / v)
        elif v < low[i] < 0:
            shrink = min(shrink, low[i] / v)
        elif v > high[i] or v < low[i]:
            shrink = 0.0 if abs(v) > 1e-9 else shrink
    for i in range(m):
        z[i] *= shrink
    return sign * z[row]


@njit(cache=True)
def stretch(z, low, high):
    """Return the largest t with ``low <= t z <= high``; infinite when nothing bounds it."""
    t = np.inf
    for i in range(len(z)):
        if z[i] > 0:
            t = min(t, high[i] / z[i])
        elif z[i] < 0:
            t = min(t, low[i] / z[i])
    return t
