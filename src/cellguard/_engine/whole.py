"""Whole numbers near the closest movement: for counts.

The closest movement in whole numbers lies nearly always next to the closest one in real numbers. So
each mover may take the whole numbers around it, which cost what they cost (a convex function is exactly
a sum of unit steps with growing prices), and a mixed-integer program chooses. Relations of two-way
tables are totally unimodular: there its first linear program is already whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from cellguard._engine.adjuster import Adjuster
from cellguard._engine.distance import Distance
from cellguard._engine.mip import solve_mixed

__all__ = ["whole_movement"]

FloatArray = NDArray[np.float64]

_REACH = (0, 1, 4)
"""Whole numbers further out than the two next to the closest movement, tried one after the other."""


def whole_movement(
    adjuster: Adjuster,
    lower: FloatArray,
    upper: FloatArray,
    distance: Distance,
    near: FloatArray,
    *,
    time_limit_s: float = 60.0,
) -> FloatArray | None:
    """Return a movement in whole numbers within the bounds, close to `near`; None when none was found.

    Parameters
    ----------
    adjuster
        Of the relations and fixed cells.
    lower, upper
        Bounds of the movements; the whole numbers inside them are allowed.
    distance
        What is kept small. Of a largest movement only the weighted sum is kept small, below what `near` has.
    near
        The closest movement in real numbers.
    time_limit_s
        For each program.
    """
    near = np.where(np.abs(near - np.rint(near)) < 1e-7, np.rint(near), near)
    if (near == np.rint(near)).all():
        return near
    cells = np.flatnonzero(~adjuster.reduction.determined)
    rows = adjuster.relations[adjuster.reduction.rows]
    A = csr_array(rows[:, cells])
    low, high = np.ceil(lower[cells] - 1e-9), np.floor(upper[cells] + 1e-9)
    z = near[cells]
    part = Distance(
        absolute=distance.absolute[cells] + distance.largest[cells],
        square=distance.square[cells],
        largest=np.zeros(len(cells)),
        group=distance.group[cells],
    )
    for reach in _REACH:
        found = _round(A, low, high, z, part, reach, time_limit_s)
        if found is not None:
            out = np.zeros(len(near))
            out[cells] = found
            return out
    return None


def _round(
    A: csr_array, low: FloatArray, high: FloatArray, z: FloatArray, d: Distance, reach: int, time_limit_s: float
) -> FloatArray | None:
    """Choose whole numbers at most `reach` further than the two next to z (for a whole z: than its neighbours)."""
    first = np.clip(np.floor(z) - reach - (z == np.rint(z)), low, high)
    last = np.clip(np.floor(z) + 1 + reach, low, high)
    if (first > last).any():
        return None

    def cost(x: FloatArray) -> FloatArray:
        return np.asarray(d.absolute * np.abs(x) + d.square * x**2)

    steps = int((last - first).max(initial=0.0))
    prices = [cost(first + k + 1) - cost(first + k) for k in range(steps)]
    open_ = [(first + k < last).astype(np.float64) for k in range(steps)]
    side = -(A @ first)
    n = len(z)
    found = solve_mixed(
        csr_array(hstack([A] * steps)) if steps else A,
        side,
        side,
        np.zeros(n * steps),
        np.concatenate(open_),
        np.concatenate(prices),
        time_limit_s=time_limit_s,
        relative_gap=1e-4,
        absolute_gap=0.0,
    )
    if not found.found:
        return None
    return np.asarray(first + found.x.reshape(steps, n).sum(axis=0))
