"""Compiled simplex for few degrees of freedom: a null space kept as a dense echelon form.

The rows of Z are movements that span the space; each has a parameter of its own, a variable in
which it is 1 and the others 0. The form serves both to fix a variable at zero (eliminate: publish a
cell) and as the tableau of the simplex method, which moves a variable as far as the others' bounds
allow. A program takes microseconds where a call of a general solver takes milliseconds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_PIVOT = 1e-6  # smaller coefficients are rounding: entries are small whole numbers or near them
_ZERO = 1e-10
_HAIR = 1e-8


@njit(cache=True, error_model="numpy")
def _subtract(target, source, factor):
    """``target - factor * source`` in place, without what rounding leaves of a zero."""
    for i in range(len(target)):
        v = target[i] - factor * source[i]
        target[i] = v if abs(v) > _ZERO else 0.0


@njit(cache=True, error_model="numpy")
def pivot(Z, parameter, i, j):
    """Make variable i the parameter of movement j, in place."""
    inverse = 1.0 / Z[j, i]
    for q in range(Z.shape[1]):
        Z[j, q] *= inverse
    Z[j, i] = 1.0
    for k in range(Z.shape[0]):
        if k != j and Z[k, i] != 0.0:
            _subtract(Z[k], Z[j], Z[k, i])
            Z[k, i] = 0.0
    parameter[j] = i


@njit(cache=True, error_model="numpy")
def strongest(Z, i):
    """Return the movement with the largest coefficient of variable i: the one to eliminate with."""
    best = 0
    for k in range(1, Z.shape[0]):
        if abs(Z[k, i]) > abs(Z[best, i]) + 1e-9:
            best = k
    return best


@njit(cache=True, error_model="numpy")
def eliminate(Z, parameter, i, j):
    """Hold variable i fast, in place; movement j is used up and becomes the last one, to be left out from now on.

    Returns the other movements that changed, and what they were: see :func:`restore`.
    """
    last = len(Z) - 1
    if j != last:
        for q in range(Z.shape[1]):
            Z[j, q], Z[last, q] = Z[last, q], Z[j, q]
        parameter[j], parameter[last] = parameter[last], parameter[j]
    changed = np.flatnonzero(Z[:last, i])
    before = np.empty((len(changed), Z.shape[1]))
    for at, k in enumerate(changed):
        before[at] = Z[k]
        _subtract(Z[k], Z[last], Z[k, i] / Z[last, i])
        Z[k, i] = 0.0
    return changed, before


@njit(cache=True, error_model="numpy")
def restore(rows, changed, before):
    """Put back what some rows were."""
    for at, k in enumerate(changed):
        rows[k] = before[at]


@njit(cache=True, error_model="numpy")
def echelon(vectors):
    """Return independent movements that span the same space, with their parameters.

    A parameter is the variable with the largest coefficient, among ties the first: a movement that
    small whole numbers describe stays one.
    """
    d, m = vectors.shape
    Z, parameter = vectors.copy(), np.full(d, -1, np.int64)
    rank = 0
    for k in range(d):
        best, size = -1, 0.0
        for i in range(m):
            if abs(Z[k, i]) > size * (1.0 + 1e-9):
                best, size = i, abs(Z[k, i])
        if size < 1e-7:
            continue
        if k != rank:
            Z[rank] = Z[k]
        inverse = 1.0 / Z[rank, best]
        for i in range(m):
            Z[rank, i] *= inverse
        Z[rank, best] = 1.0
        for other in range(d):
            if (other < rank or other > k) and Z[other, best] != 0.0:
                _subtract(Z[other], Z[rank], Z[other, best])
                Z[other, best] = 0.0
        parameter[rank] = best
        rank += 1
    return Z[:rank].copy(), parameter[:rank].copy()


@njit(cache=True, error_model="numpy")
def _step(move, z, low, high, sign):
    """How far z can go along a movement, and which variable stops it."""
    step, stop, size = np.inf, -1, 0.0
    for i in range(len(z)):
        c = sign * move[i]
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


@njit(cache=True, error_model="numpy")
def push(V, parameters, z, low, high, row, sign, target):
    """Move ``sign * z[row]`` up to the target, or as far as the bounds allow; z changes in place.

    z must be a feasible combination of the movements. Of the movements with the highest rates the
    one with the largest gain enters. Bounds are widened by a hair, each by another, so that no two
    stop a movement at once; the result is pulled back. What pivots change in V is put back, and z is
    computed anew from it at the end, so that rounding of the pivots cannot enter it. Returns the value
    reached, at most the target.
    """
    Z, basis = V, parameters.copy()
    d, m = Z.shape
    before, saved = np.empty((d, m)), np.zeros(d, np.bool_)
    lo, hi = np.empty(m), np.empty(m)
    for i in range(m):
        hair = _HAIR * (0.5 + (i + 1) * 0.6180339887498949 % 1.0)
        lo[i], hi[i] = low[i] * (1.0 + hair), high[i] * (1.0 + hair)
    idle = 0
    rate = np.empty(d)
    for _ in range(20 * d + 100):
        now = sign * z[row]
        if now >= target:
            break
        for j in range(d):
            g = sign * Z[j, row]
            own = basis[j]
            rate[j] = abs(g)
            if abs(g) < _PIVOT or (z[own] >= hi[own] if g > 0 else z[own] <= lo[own]):
                rate[j] = 0.0
        best, gain, step, stop = -1, 0.0, 0.0, -1
        tried = 0
        while tried < 5 or best < 0:
            j = -1
            for k in range(d):
                if rate[k] > 0.0 and (j < 0 or rate[k] > rate[j]):
                    j = k
            if j < 0:
                break
            tried += 1
            far, who = _step(Z[j], z, lo, hi, 1.0 if sign * Z[j, row] > 0 else -1.0)
            if far * rate[j] > gain or best < 0:
                best, gain, step, stop = j, far * rate[j], far, who
            rate[j] = 0.0
        if best < 0:
            break
        if gain <= 1e-12 * target:
            idle += 1
            if idle > d + 10:
                break
        direction = 1.0 if sign * Z[best, row] > 0 else -1.0
        reach = (target - now) / abs(Z[best, row])
        if step >= reach:
            for i in range(m):
                z[i] += reach * direction * Z[best, i]
            break
        for i in range(m):
            z[i] += step * direction * Z[best, i]
        z[stop] = hi[stop] if direction * Z[best, stop] > 0 else lo[stop]
        if stop != basis[best]:
            for j in range(d):
                if not saved[j] and Z[j, stop] != 0.0:
                    before[j], saved[j] = Z[j], True
            pivot(Z, basis, stop, best)
    for j in range(d):
        if saved[j]:
            V[j] = before[j]
    return _settle(V, parameters, z, low, high, row, sign)


@njit(cache=True, error_model="numpy")
def _settle(V, parameters, z, low, high, row, sign):
    """Make z an exact combination of the movements, inside the bounds; return ``sign * z[row]``."""
    d, m = V.shape
    x = np.empty(d)
    for j in range(d):
        x[j] = z[parameters[j]]
    z[:] = 0.0
    for j in range(d):
        if x[j] != 0.0:
            for i in range(m):
                z[i] += x[j] * V[j, i]
    size = 0.0
    for i in range(m):
        size = max(size, abs(z[i]))
    shrink = 1.0
    for i in range(m):
        v = z[i]
        if abs(v) < 1e-13 * size:
            z[i] = 0.0
        elif v > high[i]:
            shrink = min(shrink, high[i] / v)
        elif v < low[i]:
            shrink = min(shrink, low[i] / v)
    for i in range(m):
        z[i] *= shrink
    return sign * z[row]
