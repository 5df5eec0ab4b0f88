"""Compiled: which variables determine another one, the fewest and lightest first.

In an echelon form every variable is a combination of the parameters. When the parameters are the
lightest independent variables, these combinations are the light cut sets of the space: a variable
can only move if one of its combination does.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.echelon import pivot

_PIVOT = 1e-6


@njit(cache=True, error_model="numpy")
def lightest(Z, parameter, order):
    """Make the first independent variables of the order the parameters, in place."""
    d = Z.shape[0]
    locked = np.zeros(d, np.bool_)
    owner = np.full(Z.shape[1], -1, np.int64)
    for j in range(d):
        owner[parameter[j]] = j
    left = d
    for i in order:
        if left == 0:
            break
        j = owner[i]
        if j < 0:
            for k in range(d):
                if not locked[k] and abs(Z[k, i]) > _PIVOT and (j < 0 or abs(Z[k, i]) > abs(Z[j, i]) + 1e-9):
                    j = k
            if j < 0:
                continue
            owner[parameter[j]] = -1
            pivot(Z, parameter, i, j)
            owner[i] = j
        locked[j] = True
        left -= 1


@njit(cache=True, error_model="numpy")
def excess(Z, parameter, y):
    """By how much each variable exceeds the sum of its combination."""
    d, m = Z.shape
    out = y.copy()
    for j in range(d):
        v = y[parameter[j]]
        if v > 0.0:
            for i in range(m):
                if abs(Z[j, i]) > _PIVOT:
                    out[i] -= v
    for j in range(d):
        out[parameter[j]] = 0.0
    return out


@njit(cache=True, error_model="numpy")
def express(N, p, candidates):
    """Write variable p by the first candidates that suffice; columns of N are the variables.

    Returns the coefficients, one per candidate; all zero when they do not suffice.
    """
    d, k = N.shape[0], len(candidates)
    basis = np.zeros((d, d))  # reduced vectors, in echelon form by their pivots
    record = np.zeros((d, k))  # each as a combination of the candidates
    pivots = np.empty(d, np.int64)
    rank = 0
    goal, result = N[:, p].copy(), np.zeros(k)
    v, c = np.empty(d), np.empty(k)
    for q in range(k):
        v[:] = N[:, candidates[q]]
        c[:] = 0.0
        c[q] = 1.0
        for r in range(rank):
            f = v[pivots[r]]
            if f != 0.0:
                for a in range(d):
                    v[a] -= f * basis[r, a]
                for a in range(q):
                    c[a] -= f * record[r, a]
        best = 0
        for a in range(1, d):
            if abs(v[a]) > abs(v[best]):
                best = a
        if abs(v[best]) < _PIVOT:
            continue
        inverse = 1.0 / v[best]
        for a in range(d):
            basis[rank, a] = v[a] * inverse
        for a in range(q + 1):
            record[rank, a] = c[a] * inverse
        pivots[rank] = best
        f = goal[best]
        if f != 0.0:
            for a in range(d):
                goal[a] -= f * basis[rank, a]
            for a in range(q + 1):
                result[a] += f * record[rank, a]
        rank += 1
        largest = 0.0
        for a in range(d):
            largest = max(largest, abs(goal[a]))
        if largest < _PIVOT:
            return result
        if rank == d:
            break
    result[:] = 0.0
    return result
