"""The closest movement when bounds may be violated at a price: an attacker's guesses need not fit together.

``min distance(z) + penalty * (how far z lies outside its bounds)`` subject to ``T z = 0`` (castro2012
section 5, soft constraints): always feasible. The interior point of the adjustment solves it; each
soft bound is one more auxiliary, ``z + e >= lower, e >= 0``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.adjuster import Adjuster
from cellguard._engine.interior import Inequalities, Program, minimize

__all__ = ["closest_soft"]

FloatArray = NDArray[np.float64]


def closest_soft(
    adjuster: Adjuster,
    lower: FloatArray,
    upper: FloatArray,
    *,
    absolute: FloatArray | None = None,
    square: FloatArray | None = None,
    penalty: FloatArray,
    tolerance: float = 1e-9,
) -> FloatArray:
    """Return the movement of every cell.

    Parameters
    ----------
    adjuster
        The structure, reduced once for all solves.
    lower, upper
        Soft bounds of each cell's movement; infinite where there is none.
    absolute, square
        Weights of |z| and of z^2.
    penalty
        Price of a unit outside the bounds, one per cell.
    """
    cell, mover, ratio, n = adjuster.cell, adjuster.mover, adjuster.ratio, adjuster.n_movers
    needs = np.maximum(lower[cell], -upper[cell])
    unit = float(np.median(needs[needs > 0])) if (needs > 0).any() else 1.0
    weight = np.zeros(len(adjuster.fixed)) if absolute is None else absolute
    curve = np.zeros(len(adjuster.fixed)) if square is None else square
    linear = np.bincount(mover, weight[cell] * np.abs(ratio), n) * unit
    split = np.flatnonzero(linear > 0)
    low, high = np.flatnonzero(np.isfinite(lower[cell])), np.flatnonzero(np.isfinite(upper[cell]))
    one, nil = np.ones, np.zeros
    P = len(split) + len(low) + len(high)
    pairs = np.concatenate([split, mover[low], mover[high]])
    first = [-one(len(split)), ratio[low], -ratio[high]]
    second = [one(len(split)), nil(len(low)), nil(len(high))]
    side = [nil(len(split)), lower[cell[low]] / unit, -upper[cell[high]] / unit, nil(P)]
    rows = Inequalities(
        mover=np.concatenate([pairs, pairs]),
        sign=np.concatenate([*first, *second]),
        aux=np.concatenate([np.arange(P), np.arange(P)]),
        lift=one(2 * P),
        side=np.concatenate(side),
    )
    program = Program(
        linear=nil(n),
        quadratic=np.asarray(2.0 * np.bincount(mover, curve[cell] * ratio**2, n) * unit**2, np.float64),
        rows=rows,
        aux_cost=np.concatenate([linear[split], penalty[cell[low]] * unit, penalty[cell[high]] * unit]),
        n_pairs=P,
        first_pair=0,
    )
    point = minimize(program, adjuster.projection, tolerance=tolerance)
    z = np.zeros(len(adjuster.fixed))
    z[cell] = ratio * point.v[mover] * unit
    return adjuster.complete(z)
