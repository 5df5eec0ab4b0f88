"""The attacker's linear program: how far cells can be pushed away from the true table.

Solved for movements ``v`` with ``A v = 0`` and ``-down <= v <= up``: the true table itself, ``v = 0``, is
always feasible, and only costs and a few bounds change from one question to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Solution, SolveStatus
from cellguard._engine.space.echelon_form import echelon_anchors
from cellguard._engine.space.reduce import Reduction
from cellguard._tolerances import NO_PRICE
from cellguard._types import FloatArray, IntArray

__all__ = ["AttackerProgram", "MovementProgram", "Push"]


_SMALL = 200
"""With fewer relations than this, calling the solver costs more than solving: a warm start is then worth more."""
_WRONG = (SolveStatus.FAILED, SolveStatus.INFEASIBLE)
"""What the solver cannot rightly say: no movement at all is always feasible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Push:
    """An answer of the attacker's program, checked as far as it can be."""

    status: SolveStatus
    """What the solver claims."""
    movement: FloatArray | None
    """The variables, inside their room and on the relations; None if the solution was not."""
    prices: FloatArray
    """One per variable: for every feasible movement v the objective equals ``prices @ v``."""

    @property
    def optimal(self) -> bool:
        """Whether the solver claims an optimum."""
        return self.status is SolveStatus.OPTIMAL

    @classmethod
    def of(cls, movement: FloatArray | None) -> Push:
        """Wrap a feasible movement that was found without the program."""
        return cls(status=SolveStatus.LIMIT, movement=movement, prices=np.zeros(0))


class _ByRelations:
    """``A v = 0`` as it stands: for few relations between many variables.

    Primal simplex goes on from the last vertex while only costs change; a changed bound makes that
    vertex infeasible, and dual simplex from nothing is then the faster way.
    """

    def __init__(self, A: csr_array, lower: FloatArray, upper: FloatArray) -> None:
        self.transposed = csr_array(A.T)
        self.program = LinearProgram(LinearModel(A, 0.0, 0.0, lower, upper))
        self._cost = np.zeros(len(lower))
        self._moved_bounds = True

    def set_bounds(self, variables: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self.program.set_bounds(variables, lower, upper)
        self._moved_bounds = True

    def solve(self, cost: FloatArray, time_limit_s: float) -> tuple[Solution, FloatArray, FloatArray]:
        changed = np.flatnonzero(cost != self._cost)
        self.program.set_costs(changed, cost[changed])
        self._cost = cost
        ways = [self.program.solve, self.program.solve_anew]
        first, second = ways[::-1] if self._moved_bounds else ways
        deadline = Deadline.after(time_limit_s)
        solution = first(maximize=True, time_limit_s=time_limit_s)
        if solution.status in _WRONG and not deadline.passed:
            solution = second(maximize=True, time_limit_s=deadline.left)
        self._moved_bounds = False
        return solution, solution.x, cost - self.transposed @ solution.row_dual


class _ByNullSpace:
    """``v = N p`` with free parameters: for few degrees of freedom.

    No movement at all, p = 0, is the vertex that primal simplex starts from, so every solve is made
    from there: warm starts were slower, and what is found does not depend on what was asked before.
    """

    def __init__(self, N: csr_array, lower: FloatArray, upper: FloatArray) -> None:
        self.N, self.transposed = N, csr_array(N.T)
        free = np.full(N.shape[1], np.inf)
        self.program = LinearProgram(LinearModel(N, lower, upper, -free, free))
        # a parameter is the movement of one of the variables: the anchor of its column
        self.anchor, self.anchor_ratio = echelon_anchors(N)

    def set_bounds(self, variables: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self.program.set_rows_sides(variables, lower, upper)

    def solve(self, cost: FloatArray, time_limit_s: float) -> tuple[Solution, FloatArray, FloatArray]:
        cost_p = self.transposed @ cost
        self.program.set_costs(np.arange(len(cost_p)), cost_p)
        self.program.forget()
        deadline = Deadline.after(time_limit_s)
        solution = self.program.solve(maximize=True, time_limit_s=time_limit_s)
        if solution.status in _WRONG and not deadline.passed:
            solution = self.program.solve_anew(maximize=True, time_limit_s=deadline.left)
        prices = solution.row_dual
        if len(prices) == len(cost):
            # what the duals leave of a parameter's cost is a price of its anchor: then no error remains
            prices[self.anchor] += (cost_p - self.transposed @ prices) / self.anchor_ratio
        else:
            prices = cost.copy()
        return solution, self.N @ solution.x, prices


class MovementProgram:
    """``max w v`` subject to ``A v = 0``, ``-down <= v <= up``, for many w and some changes of the bounds.

    Inside the solver movements are measured in `unit`, so that its absolute tolerances are relative
    to the levels that matter.

    Parameters
    ----------
    A
        Independent relations between the variables.
    N
        Basis of their null space in which each parameter is the movement of some variable.
    down, up
        How far each variable can move.
    """

    def __init__(self, A: csr_array, N: csr_array, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.A, self.down, self.up, self.unit = A, down, up, unit
        self._size = abs(A)
        self._scale = 1.0
        self.solves = 0
        m, d = A.shape[0], N.shape[1]
        few = d <= m and (2 * d <= m or m > _SMALL)
        self._form: _ByRelations | _ByNullSpace = (
            _ByNullSpace(N, -down / unit, up / unit) if few else _ByRelations(A, -down / unit, up / unit)
        )

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far every variable can move."""
        self.down, self.up = down, up
        self._form.set_bounds(np.arange(len(down)), -down / self.unit, up / self.unit)

    def measure_in(self, unit: float) -> None:
        """Change the unit; caps are lost."""
        if unit != self.unit:
            self.unit = unit
            MovementProgram.set_room(self, self.down, self.up)

    def cap(self, variables: IntArray, down: FloatArray, up: FloatArray) -> None:
        """Let some variables move at most so far, until :meth:`uncap`."""
        lower = -np.minimum(down, self.down[variables]) / self.unit
        self._form.set_bounds(variables, lower, np.minimum(up, self.up[variables]) / self.unit)

    def uncap(self, variables: IntArray) -> None:
        """Give variables their whole room back."""
        self._form.set_bounds(variables, -self.down[variables] / self.unit, self.up[variables] / self.unit)

    def push(self, variables: IntArray, weights: FloatArray, *, time_limit_s: float = float("inf")) -> Push:
        """Maximise a weighted sum of variables."""
        cost = np.zeros(len(self.down))
        cost[variables] = weights
        self._scale = max(1.0, float(np.abs(weights).max(initial=0.0)))
        self.solves += 1
        solution, v, prices = self._form.solve(cost, time_limit_s)
        sound = solution.status in (SolveStatus.OPTIMAL, SolveStatus.LIMIT)
        return Push(status=solution.status, movement=self.checked(v * self.unit) if sound else None, prices=prices)

    def push_together(
        self, variables: IntArray, levels: FloatArray, direction: int, *, time_limit_s: float = float("inf")
    ) -> Push:
        """Push variables in one direction all at once, each counting up to its level (salazar2004 section 3.1)."""
        free = np.full(len(variables), np.inf)
        self.cap(variables, *((free, levels) if direction > 0 else (levels, free)))
        push = self.push(variables, direction * levels.min() / levels, time_limit_s=time_limit_s)
        self.uncap(variables)
        return push

    def checked(self, v: FloatArray) -> FloatArray | None:
        """Return the movement pulled inside the room; None if it then fails a relation."""
        if not np.isfinite(v).all():
            return None
        v = np.clip(v, -self.down, self.up)
        allowed = 1e-9 * (self._size @ np.abs(v) + self.unit)
        return v if (np.abs(self.A @ v) <= allowed).all() else None

    def bounds_by(self, prices: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
        """Bound the objective within each group of variables that share no relation, by weak duality.

        Nothing of the solver's claim is used: any prices that reproduce the objective give a bound.
        """
        size = np.abs(prices)
        room = np.where(prices > 0, self.up, self.down)
        # rounding against an infinite room would make every bound infinite
        counts = (size > NO_PRICE * self._scale) | ((size > 0) & np.isfinite(room))
        return np.bincount(group[counts], size[counts] * room[counts], n_groups).astype(np.float64)


class AttackerProgram(MovementProgram):
    """The movements of a reduced table: variables are merged cells, answers are given per cell.

    The duals become multipliers ``alpha`` of the upper and ``beta`` of the lower ends of the cells'
    intervals (salazar2004 (9), (10)).
    """

    def __init__(self, reduction: Reduction, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.reduction, self.space = reduction, reduction.space
        self.ratio, self.variable = reduction.ratio, self.space.variable_of
        super().__init__(self.space.relations, self.space.basis, *self._least_room(down, up), unit=unit)

    def _least_room(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Room of each variable: the least of its members'."""
        self.cell_down, self.cell_up = down, up
        self._below, self._above = self.space.member_room(down, up)
        return self.space.least(self._below), self.space.least(self._above)

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far every cell can move."""
        super().set_room(*self._least_room(down, up))

    def multipliers(self, push: Push) -> tuple[FloatArray, FloatArray]:
        """Return ``alpha`` and ``beta`` per cell: whatever the solver did, weak duality holds for them.

        They are computed from the relations' duals alone (salazar2004 section 3.1): for every
        movement z in the null space the objective equals ``(alpha - beta) z``, hence is at most
        ``alpha up + beta down``. A variable's multiplier goes to the member that leaves it least room.
        """
        prices = np.where(np.abs(push.prices) < NO_PRICE * self._scale, 0.0, push.prices)
        alpha, beta = np.zeros(len(self.variable)), np.zeros(len(self.variable))
        member, ratio, _ = self.space.sorted_members
        owner = self.variable[member]
        for sign, room, least in ((1, self._above, self.up), (-1, self._below, self.down)):
            tightest = np.flatnonzero(room == least[owner])
            _, first = np.unique(owner[tightest], return_index=True)
            k = tightest[first]  # one member per variable
            k = k[sign * prices[owner[k]] > 0]
            share = prices[owner[k]] / ratio[k]
            alpha[member[k]] += np.maximum(share, 0.0)
            beta[member[k]] += np.maximum(-share, 0.0)
        return alpha, beta

    def bound(self, alpha: FloatArray, beta: FloatArray) -> float:
        """Proven upper bound of the objective: ``alpha up + beta down``."""
        used_up, used_down = alpha > 0, beta > 0
        return float(alpha[used_up] @ self.cell_up[used_up] + beta[used_down] @ self.cell_down[used_down])
