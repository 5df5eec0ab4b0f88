"""The closest movement when bounds may be violated at a price: an attacker's guesses need not fit together.

``min distance(z) + penalty * (how far z lies outside its bounds)`` subject to ``T z = 0`` (castro2012
section 5, soft constraints): always feasible.
"""

from __future__ import annotations

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Distance
from cellguard._types import FloatArray

__all__ = ["closest_soft"]


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
    distance = Distance.of(len(penalty), absolute=absolute, square=square)
    return adjuster.solve(lower, upper, distance, soft=penalty, tolerance=tolerance).z
