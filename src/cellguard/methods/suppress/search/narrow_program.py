"""The attacker's program at a point of the relaxation: of thousands of rows a few dozen can move, the others stay.

So the program is made of those alone. Multipliers of the relations between them price every row, also those that stay:
what they prove holds at other points too.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array

from cellguard._engine.ranges.search.attacker_program import Push
from cellguard._engine.solvers.lp import LinearModel, LinearProgram
from cellguard._types import FloatArray, IntArray

__all__ = ["NarrowProgram"]


class NarrowProgram:
    """``max w v`` subject to ``A v = 0``, ``-down <= v <= up``, where only some rows have slack.

    Parameters
    ----------
    columns
        Relations between all rows, by columns.
    rows
        Those that can move.
    """

    def __init__(self, columns: csc_array, rows: IntArray) -> None:
        part = columns[:, rows]
        self.rows, self._transposed = rows, columns.T
        self._touched, place = np.unique(part.indices, return_inverse=True)
        self._relations = csc_array((part.data, place, part.indptr), shape=(len(self._touched), len(rows)))
        self._size = abs(self._relations)
        self._cost = np.zeros(len(rows))
        self._program = LinearProgram(LinearModel(self._relations, 0.0, 0.0, self._cost, self._cost))

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far the rows can move."""
        self._down, self._up = down[self.rows], up[self.rows]
        self._program.set_bounds(np.arange(len(self.rows)), -self._down, self._up)

    def push(self, rows: IntArray, weights: FloatArray, *, time_limit_s: float) -> Push:
        """Maximise a weighted sum of rows."""
        prices = np.zeros(self._transposed.shape[0])
        prices[rows] = weights
        cost = prices[self.rows]
        changed = np.flatnonzero(cost != self._cost)
        self._program.set_costs(changed, cost[changed])
        self._cost = cost
        solution = self._program.solve_anew(maximize=True, time_limit_s=time_limit_s)
        if not solution.optimal:
            return Push(status=solution.status, movement=None, prices=prices)
        dual = np.zeros(self._transposed.shape[1])
        dual[self._touched] = solution.row_dual
        return Push(
            status=solution.status, movement=self._check_movement(solution.x), prices=prices - self._transposed @ dual
        )

    def _check_movement(self, v: FloatArray) -> FloatArray | None:
        """Return the movement of all rows, pulled inside the bounds; None if it then fails a relation."""
        v = np.clip(v, -self._down, self._up)
        if not (np.abs(self._relations @ v) <= 1e-9 * (self._size @ np.abs(v) + 1.0)).all():
            return None
        out = np.zeros(self._transposed.shape[0])
        out[self.rows] = v
        return out
