"""The attacker's linear program: how far cells can be pushed away from the true table.

Solved for movements ``v`` with ``A v = 0`` and ``-down <= v <= up``: the true table itself, ``v = 0``, is
always feasible, and only costs and a few bounds change from one question to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.lp import LinearProgram, Solution, SolveStatus
from cellguard._engine.reduce import Reduction

__all__ = ["AttackerProgram", "MovementProgram"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_NOISE = 1e-11
"""Reduced costs below this share of the largest cost are rounding."""


class MovementProgram:
    """``max w v`` subject to ``A v = 0``, ``-down <= v <= up``, kept warm while costs and bounds change.

    Inside the solver movements are measured in `unit`, so that its absolute tolerances are relative
    to the levels that matter.
    """

    def __init__(self, A: csr_array, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.A, self.down, self.up, self.unit = A, down, up, unit
        self._transposed = csr_array(A.T)
        self._size = abs(A)
        self._cost = np.zeros(len(down))
        self.solves = 0
        self.program = LinearProgram(A, 0.0, 0.0, -down / unit, up / unit)

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far every variable can move."""
        self.down, self.up = down, up
        self.program.set_bounds(np.arange(len(down)), -down / self.unit, up / self.unit)

    def measure_in(self, unit: float) -> None:
        """Change the unit; caps are lost."""
        if unit != self.unit:
            self.unit = unit
            self.set_room(self.down, self.up)

    def cap(self, variables: IntArray, down: FloatArray, up: FloatArray) -> None:
        """Let some variables move at most so far, until :meth:`uncap`."""
        lower = -np.minimum(down, self.down[variables]) / self.unit
        self.program.set_bounds(variables, lower, np.minimum(up, self.up[variables]) / self.unit)

    def uncap(self, variables: IntArray) -> None:
        """Give variables their whole room back."""
        self.program.set_bounds(variables, -self.down[variables] / self.unit, self.up[variables] / self.unit)

    def push(self, variables: IntArray, weights: FloatArray, *, time_limit_s: float = float("inf")) -> Solution:
        """Maximise a weighted sum of variables."""
        cost = np.zeros(len(self.down))
        cost[variables] = weights
        changed = np.flatnonzero(cost != self._cost)
        self.program.set_costs(changed, cost[changed])
        self._cost = cost
        self.solves += 1
        solution = self.program.solve(maximize=True, time_limit_s=time_limit_s)
        if solution.status in (SolveStatus.FAILED, SolveStatus.INFEASIBLE):  # no movement at all is feasible
            solution = self.program.solve_anew(maximize=True, time_limit_s=time_limit_s)
        return solution

    def movement(self, solution: Solution) -> FloatArray | None:
        """Return the solution pulled inside the room; None if it then fails a relation."""
        if solution.status not in (SolveStatus.OPTIMAL, SolveStatus.LIMIT) or not np.isfinite(solution.x).all():
            return None
        v = np.clip(solution.x * self.unit, -self.down, self.up)
        allowed = 1e-9 * (self._size @ np.abs(v) + self.unit)
        return v if (np.abs(self.A @ v) <= allowed).all() else None

    def reduced_costs(self, solution: Solution) -> FloatArray:
        """Return what is left of the costs when the relations are priced: for feasible v, the objective is ``r v``."""
        reduced: FloatArray = self._cost - self._transposed @ solution.row_dual
        return reduced

    def bounds_by(self, reduced: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
        """Bound the objective within each group of variables that share no relation, by weak duality.

        Nothing of the solver's claim is used: any prices of the relations give a valid bound.
        """
        noise = _NOISE * max(1.0, float(np.abs(self._cost).max(initial=0.0)))
        size = np.abs(reduced)
        room = np.where(reduced > 0, self.up, self.down)
        # rounding against an infinite room would make every bound infinite
        counts = (size > noise) | ((size > 0) & np.isfinite(room))
        return np.bincount(group[counts], size[counts] * room[counts], n_groups).astype(np.float64)


class AttackerProgram(MovementProgram):
    """The movements of a reduced table: variables are merged cells, answers are given per cell.

    The duals become multipliers ``alpha`` of the upper and ``beta`` of the lower ends of the cells'
    intervals (salazar2004 (9), (10)).
    """

    def __init__(self, reduction: Reduction, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.reduction = reduction
        self.merged = reduction.merged
        self.ratio = reduction.ratio
        lift = self.merged.lift.tocoo()
        order = np.argsort(lift.col, kind="stable")
        self._member, self._member_ratio = lift.row[order].astype(np.int64), lift.data[order]
        self._start = np.searchsorted(lift.col[order], np.arange(len(self.merged.cells)))
        self.variable = np.full(len(reduction.free), -1, np.int64)
        self.variable[lift.row] = lift.col
        super().__init__(self.merged.relations, *self._least_room(down, up), unit=unit)

    def _least_room(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Room of each variable: the least of its members'."""
        self.cell_down, self.cell_up = down, up
        size, forward = np.abs(self._member_ratio), self._member_ratio > 0
        self._above = np.where(forward, up[self._member], down[self._member]) / size
        self._below = np.where(forward, down[self._member], up[self._member]) / size
        if len(self._start) == 0:
            return np.zeros(0), np.zeros(0)
        return np.minimum.reduceat(self._below, self._start), np.minimum.reduceat(self._above, self._start)

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far every cell can move."""
        super().set_room(*self._least_room(down, up))

    def measure_in(self, unit: float) -> None:
        """Change the unit; caps are lost."""
        if unit != self.unit:
            self.unit = unit
            super().set_room(self.down, self.up)

    def multipliers(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """Return ``alpha`` and ``beta`` per cell: whatever the solver did, weak duality holds for them.

        They are computed from the relations' duals alone (salazar2004 section 3.1): for every
        movement z in the null space the objective equals ``(alpha - beta) z``, hence is at most
        ``alpha up + beta down``. A variable's multiplier goes to the member that leaves it least room.
        """
        reduced = self.reduced_costs(solution)
        reduced[np.abs(reduced) < _NOISE * max(1.0, np.abs(self._cost).max(initial=0.0))] = 0.0
        alpha, beta = np.zeros(len(self.variable)), np.zeros(len(self.variable))
        owner = self.variable[self._member]
        for sign, room, least in ((1, self._above, self.up), (-1, self._below, self.down)):
            tightest = np.flatnonzero(room == least[owner])
            _, first = np.unique(owner[tightest], return_index=True)
            k = tightest[first]  # one member per variable
            k = k[sign * reduced[owner[k]] > 0]
            share = reduced[owner[k]] / self._member_ratio[k]
            alpha[self._member[k]] += np.maximum(share, 0.0)
            beta[self._member[k]] += np.maximum(-share, 0.0)
        return alpha, beta

    def bound(self, alpha: FloatArray, beta: FloatArray) -> float:
        """Proven upper bound of the objective: ``alpha up + beta down``."""
        used_up, used_down = alpha > 0, beta > 0
        return float(alpha[used_up] @ self.cell_up[used_up] + beta[used_down] @ self.cell_down[used_down])
