"""Widen widths that contain given movements, for one more movement."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, hstack

from cellguard._engine.solvers.lp import DUAL, LinearModel, LinearProgram
from cellguard._types import FloatArray

__all__ = ["Widener"]

_CLOSED = 100.0
"""Factor on the cost of widening closed cells: prefer to widen cells that are already open."""


class Widener:
    """Widen some widths, as cheaply as possible, until one more movement fits between them.

    The movement is ``inside + above - below``; the part that exceeds the widths has a cost.
    """

    def __init__(
        self, relations: csr_array, weight: FloatArray, limits: tuple[FloatArray, FloatArray], unit: float
    ) -> None:
        self.limits, self.unit = limits, unit
        n = len(weight)
        self.price = weight / float(np.median(weight))
        every = csr_array(hstack([relations, relations, -relations]))
        bounds = np.zeros(3 * n)
        self.program = LinearProgram(LinearModel(every, 0.0, 0.0, bounds, bounds), DUAL)

    def widen(
        self, upper: FloatArray, lower: FloatArray, cell: int, movement: float, time_limit_s: float = float("inf")
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return widths above and below in which the cell can make the movement; its own width must already suffice."""
        n = len(upper)
        least = np.concatenate([-lower, np.zeros(2 * n)]) / self.unit
        most = np.concatenate([upper, self.limits[0] - upper, self.limits[1] - lower]) / self.unit
        least[cell] = most[cell] = movement / self.unit
        most[[n + cell, 2 * n + cell]] = 0.0
        self.program.set_bounds(np.arange(3 * n), least, np.maximum(most, least))
        price = np.concatenate([np.where(side > 0, 1.0, _CLOSED) * self.price for side in (upper, lower)])
        self.program.set_costs(np.arange(n, 3 * n), price)
        solution = self.program.solve(time_limit_s=time_limit_s)
        if not solution.optimal:
            return None
        above, below = np.maximum(solution.x[n : 2 * n], 0.0), np.maximum(solution.x[2 * n :], 0.0)
        return upper + above * self.unit, lower + below * self.unit
