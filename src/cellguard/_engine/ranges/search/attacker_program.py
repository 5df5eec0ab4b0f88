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
from cellguard._engine.space.echelon_form import find_anchors
from cellguard._engine.space.reduce import Reduction
from cellguard._tolerances import NO_PRICE
from cellguard._types import FloatArray, IntArray

__all__ = ["AttackerProgram", "MovementProgram", "Push"]


_SMALL = 200
"""Number of relations below which calling the solver costs more than solving: there a warm start pays."""
_WRONG = (SolveStatus.FAILED, SolveStatus.INFEASIBLE)
"""Statuses that the solver cannot rightly return: no movement is always feasible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Push:
    """An answer of the attacker's program, checked as far as possible."""

    status: SolveStatus
    """What the solver claims."""
    movement: FloatArray | None
    """The variables, within their slack and on the relations; None if the solution was not."""
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
    """``A v = 0`` directly: for few relations between many variables.

    Primal simplex continues from the last vertex while only costs change; a changed bound makes that
    vertex infeasible, and then dual simplex from scratch is faster.
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
        deadline = Deadline.from_limit(time_limit_s)
        solution = first(maximize=True, time_limit_s=time_limit_s)
        if solution.status in _WRONG and not deadline.passed:
            solution = second(maximize=True, time_limit_s=deadline.left)
        self._moved_bounds = False
        return solution, solution.x, cost - self.transposed @ solution.row_dual


class _ByNullSpace:
    """``v = N p`` with free parameters: for few degrees of freedom.

    No movement, p = 0, is the vertex from which primal simplex starts, so every solve starts
    there: warm starts were slower, and the result does not depend on earlier questions.
    """

    def __init__(self, N: csr_array, lower: FloatArray, upper: FloatArray) -> None:
        self.N, self.transposed = N, csr_array(N.T)
        free = np.full(N.shape[1], np.inf)
        self.program = LinearProgram(LinearModel(N, lower, upper, -free, free))
        # a parameter is the movement of one of the variables: the anchor of its column
        self.anchor, self.anchor_ratio = find_anchors(N)

    def set_bounds(self, variables: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self.program.set_rows_sides(variables, lower, upper)

    def solve(self, cost: FloatArray, time_limit_s: float) -> tuple[Solution, FloatArray, FloatArray]:
        cost_p = self.transposed @ cost
        self.program.set_costs(np.arange(len(cost_p)), cost_p)
        self.program.discard_basis()
        deadline = Deadline.from_limit(time_limit_s)
        solution = self.program.solve(maximize=True, time_limit_s=time_limit_s)
        if solution.status in _WRONG and not deadline.passed:
            solution = self.program.solve_anew(maximize=True, time_limit_s=deadline.left)
        prices = solution.row_dual
        if len(prices) == len(cost):
            # the rest of a parameter's cost is a price of its anchor: then no error remains
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
        """Change the unit; caps are discarded."""
        if unit != self.unit:
            self.unit = unit
            MovementProgram.set_room(self, self.down, self.up)

    def cap(self, variables: IntArray, down: FloatArray, up: FloatArray) -> None:
        """Limit how far some variables move, until :meth:`remove_caps`."""
        lower = -np.minimum(down, self.down[variables]) / self.unit
        self._form.set_bounds(variables, lower, np.minimum(up, self.up[variables]) / self.unit)

    def remove_caps(self, variables: IntArray) -> None:
        """Give variables their whole slack back."""
        self._form.set_bounds(variables, -self.down[variables] / self.unit, self.up[variables] / self.unit)

    def push(self, variables: IntArray, weights: FloatArray, *, time_limit_s: float = float("inf")) -> Push:
        """Maximise a weighted sum of variables."""
        cost = np.zeros(len(self.down))
        cost[variables] = weights
        self._scale = max(1.0, float(np.abs(weights).max(initial=0.0)))
        self.solves += 1
        solution, v, prices = self._form.solve(cost, time_limit_s)
        sound = solution.status in (SolveStatus.OPTIMAL, SolveStatus.LIMIT)
        return Push(
            status=solution.status, movement=self.check_movement(v * self.unit) if sound else None, prices=prices
        )

    def push_together(
        self, variables: IntArray, levels: FloatArray, direction: int, *, time_limit_s: float = float("inf")
    ) -> Push:
        """Push variables in one direction together, each counting up to its level (salazar2004 section 3.1)."""
        free = np.full(len(variables), np.inf)
        self.cap(variables, *((free, levels) if direction > 0 else (levels, free)))
        push = self.push(variables, direction * levels.min() / levels, time_limit_s=time_limit_s)
        self.remove_caps(variables)
        return push

    def check_movement(self, v: FloatArray) -> FloatArray | None:
        """Return the movement clipped to the slack; None if it then violates a relation."""
        if not np.isfinite(v).all():
            return None
        v = np.clip(v, -self.down, self.up)
        allowed = 1e-9 * (self._size @ np.abs(v) + self.unit)
        return v if (np.abs(self.A @ v) <= allowed).all() else None

    def compute_group_bounds(self, prices: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
        """Bound the objective within each group of variables that share no relation, by weak duality.

        The solver's claim is not used: any prices that reproduce the objective give a bound.
        """
        size = np.abs(prices)
        slack = np.where(prices > 0, self.up, self.down)
        # rounding errors times infinite slack would make every bound infinite
        counts = (size > NO_PRICE * self._scale) | ((size > 0) & np.isfinite(slack))
        return np.bincount(group[counts], size[counts] * slack[counts], n_groups).astype(np.float64)


class AttackerProgram(MovementProgram):
    """The movements of a reduced table: variables are merged cells, answers are given per cell.

    The duals become multipliers ``alpha`` of the upper and ``beta`` of the lower ends of the cells'
    intervals (salazar2004 (9), (10)).
    """

    def __init__(self, reduction: Reduction, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.reduction, self.space = reduction, reduction.space
        self.ratio, self.variable = reduction.ratio, self.space.variable_of
        super().__init__(self.space.relations, self.space.basis, *self._compute_least_slack(down, up), unit=unit)

    def _compute_least_slack(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slack of each variable: the least of its members'."""
        self.cell_down, self.cell_up = down, up
        self._below, self._above = self.space.compute_member_slack(down, up)
        return self.space.compute_least(self._below), self.space.compute_least(self._above)

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far every cell can move."""
        super().set_room(*self._compute_least_slack(down, up))

    def compute_multipliers(self, push: Push) -> tuple[FloatArray, FloatArray]:
        """Return ``alpha`` and ``beta`` per cell: weak duality holds for them even if the solver failed.

        They are computed from the relations' duals alone (salazar2004 section 3.1): for every
        movement z in the null space the objective equals ``(alpha - beta) z``, hence is at most
        ``alpha up + beta down``. A variable's multiplier goes to the member with the least slack.
        """
        prices = np.where(np.abs(push.prices) < NO_PRICE * self._scale, 0.0, push.prices)
        alpha, beta = np.zeros(len(self.variable)), np.zeros(len(self.variable))
        member, ratio, _ = self.space.sorted_members
        owner = self.variable[member]
        for sign, slack, least in ((1, self._above, self.up), (-1, self._below, self.down)):
            tightest = np.flatnonzero(slack == least[owner])
            _, first = np.unique(owner[tightest], return_index=True)
            k = tightest[first]  # one member per variable
            k = k[sign * prices[owner[k]] > 0]
            share = prices[owner[k]] / ratio[k]
            alpha[member[k]] += np.maximum(share, 0.0)
            beta[member[k]] += np.maximum(-share, 0.0)
        return alpha, beta

    def bound(self, alpha: FloatArray, beta: FloatArray) -> float:
        """Return the proven upper bound of the objective: ``alpha up + beta down``."""
        used_up, used_down = alpha > 0, beta > 0
        return float(alpha[used_up] @ self.cell_up[used_up] + beta[used_down] @ self.cell_down[used_down])
