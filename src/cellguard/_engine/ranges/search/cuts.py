"""Cuts: what the published intervals of a safe release must satisfy, from the duals of an attack.

For every method, the attacker finds each cell within ``[a - down(d), a + up(d)]``, where the slack
on both sides is an affine function of the decision ``d``, and within the bounds known before. If
the attacker can push cell p up by less than its level, the duals (alpha, beta) of the program prove it, and

    sum alpha_i up_i(d) + beta_i down_i(d) + (terms of the known bounds) >= level

holds for every safe release and fails for this one (salazar2004 (9), (10) and figure 4). The
methods differ only in the slack: ``up = UB y, down = LB y`` for suppression, ``u - a`` and ``a - l`` for
intervals, ``floor + r x + s r - a`` and ``a - floor - r x + s r`` for rounding, ``v + r - a`` and
``a - v + r`` for perturbation. :meth:`Cut.build_row` inserts such functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.search.attacker_program import AttackerProgram, Push
from cellguard._engine.ranges.sight import AskedRanges
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.solvers.rows import Row
from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Cut", "Separator", "SolvedAttack"]

Side = Literal["lower", "upper", "sliding"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """``alpha up(d) + beta down(d) + known >= level`` over the cells of its support."""

    cell: int
    """The cell under attack."""
    side: Side
    """Which of its levels was violated."""
    level: float
    """The right-hand side: the level."""
    support: IntArray
    """Cells with a multiplier of the published interval."""
    alpha: FloatArray
    """Multipliers of the slack above, one per cell of the support."""
    beta: FloatArray
    """Multipliers of the slack below, one per cell of the support."""
    known: float
    """Contribution of the bounds that the attacker knew before, for any decision."""

    def compute_activity(self, down: FloatArray, up: FloatArray) -> float:
        """Return the left-hand side for the slack below and above every cell of the table."""
        s = self.support
        used_up, used_down = self.alpha > 0, self.beta > 0  # 0 times infinite slack is 0
        return float(self.known + self.alpha[used_up] @ up[s[used_up]] + self.beta[used_down] @ down[s[used_down]])

    def build_row(self, *, up: tuple[FloatArray, FloatArray], down: tuple[FloatArray, FloatArray]) -> Row:
        """Return the cut for one decision per cell.

        Parameters
        ----------
        up, down
            Start and slope of the slack of every cell: ``up_i(d) = start_i + slope_i d_i``.
        """
        s = self.support
        with np.errstate(invalid="ignore"):
            coefficients = np.where(self.alpha > 0, self.alpha * up[1][s], 0.0)
            coefficients = coefficients + np.where(self.beta > 0, self.beta * down[1][s], 0.0)
            start = np.where(self.alpha > 0, self.alpha * up[0][s], 0.0)
            start = start + np.where(self.beta > 0, self.beta * down[0][s], 0.0)
        return Row(s, coefficients, self.level - self.known - float(start.sum()))


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedAttack:
    """One attacker's program, solved: how far a cell can be pushed, with the proof."""

    cell: int
    """The cell."""
    direction: int
    """1 upward, -1 downward."""
    reached: float
    """How far a checked feasible movement goes."""
    bound: float
    """Proven by the multipliers: no movement goes further."""
    movement: FloatArray
    """The feasible movement of the whole table."""
    alpha: FloatArray
    """Multipliers of the slack above, one per cell."""
    beta: FloatArray
    """Multipliers of the slack below, one per cell."""


class Separator:
    """Finds violated cuts for one attacker, round after round, on one warm program.

    Parameters
    ----------
    relations
        Relations of the table.
    asked
        Cells to protect and their levels.
    known
        Slack within the attacker's own bounds: ``a - lb`` and ``ub - a``; infinite unless given.
    free
        Cells whose slack can be positive for some decision; all unless given.
    nearest_next
        Attack next the level that is nearest to being met (salazar2004 section 3.1) instead of the largest one. On four
        CSPLIB tables, rounded and perturbed, that solves 125 programs instead of 173, in 1.0 s instead of 0.7 s: each
        takes more steps than the programs that are saved. The paper's limit of the objective is not set: the primal
        simplex of HiGHS has none.

    Examples
    --------
    A total of two parts, all published: to protect the first by 4, the second must have slack.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> s = Separator(T, AskedRanges(np.array([1]), upper=np.array([4.0])))
    >>> cut = s.separate(down=np.zeros(3), up=np.array([0.0, 9.0, 0.0]))[0]
    >>> cut.support.tolist(), cut.alpha.tolist(), cut.beta.tolist(), cut.level
    ([0, 2], [1.0, 0.0], [0.0, 1.0], 4.0)
    """

    def __init__(
        self,
        relations: csr_array,
        asked: AskedRanges,
        *,
        known: tuple[FloatArray, FloatArray] | None = None,
        free: BoolArray | None = None,
        reduction: Reduction | None = None,
        nearest_next: bool = False,
    ) -> None:
        n = relations.shape[1]
        self.nearest_next, self.aimed = nearest_next, 0
        far = np.full(n, np.inf)
        self.known_down, self.known_up = (np.maximum(x, 0.0) for x in known or (far, far))
        self.reduction = reduce(relations, free) if reduction is None else reduction
        cells = asked.cells
        sides: tuple[Side, ...] = ("lower", "upper", "sliding")
        levels = dict(zip(sides, asked.levels, strict=True))
        unit = min((float(x[x > 0].min()) for x in levels.values() if (x > 0).any()), default=1.0)
        self.program = AttackerProgram(self.reduction, np.zeros(n), np.zeros(n), unit=unit)
        self._down = self._up = np.zeros(n)
        moving = self.program.variable[cells] >= 0
        self._stuck = [
            (int(cells[k]), side, float(x[k])) for side, x in levels.items() for k in np.flatnonzero(~moving)
        ]
        self._demands = _group_requests_by_variable(
            self.program, cells[moving], {side: x[moving] for side, x in levels.items()}
        )

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Set what the release publishes: the slack below and above the truth of every cell."""
        self._down, self._up = np.maximum(down, 0.0), np.maximum(up, 0.0)
        self.program.set_room(np.minimum(self._down, self.known_down), np.minimum(self._up, self.known_up))

    def attack(self, cell: int, direction: int, *, time_limit_s: float = float("inf")) -> SolvedAttack | None:
        """Push one cell as far as it goes in one direction; None if the solver gave no usable answer.

        A cell that cannot move under any decision has no multipliers: its cut, ``0 >= level``, says
        that no release can protect it.
        """
        p = self.program
        n = len(p.variable)
        j = int(p.variable[cell])
        if j < 0:
            nothing = np.zeros(n)
            return SolvedAttack(
                cell=cell, direction=direction, reached=0.0, bound=0.0, movement=nothing, alpha=nothing, beta=nothing
            )
        weight = direction * p.ratio[cell]
        push = p.push(np.array([j]), np.array([weight]), time_limit_s=time_limit_s)
        if push.status is SolveStatus.UNBOUNDED:
            return SolvedAttack(
                cell=cell,
                direction=direction,
                reached=np.inf,
                bound=np.inf,
                movement=np.zeros(n),
                alpha=np.zeros(n),
                beta=np.zeros(n),
            )
        v = push.movement
        if v is None or not push.optimal:
            return None
        alpha, beta = p.compute_multipliers(push)
        return SolvedAttack(
            cell=cell,
            direction=direction,
            reached=float(weight * v[j]),
            bound=p.bound(alpha, beta),
            movement=p.space.lift @ v,
            alpha=alpha,
            beta=beta,
        )

    def separate(
        self, down: FloatArray, up: FloatArray, *, max_cuts: int | None = None, violation: float = 1e-6
    ) -> list[Cut]:
        """Find cuts that a release with this slack violates; none means that every level is met.

        Parameters
        ----------
        down, up
            Published slack below and above the truth of every cell, at least 0.
        max_cuts
            Stop after this many.
        violation
            A level counts as missed when more than this share of it is missing.
        """
        self.set_room(down, up)
        most = np.inf if max_cuts is None else max_cuts
        cuts = [self._build_cut(side, cell, level, 1.0) for cell, side, level in self._stuck if level > 0]
        reached = self._mark_reachable(violation)
        pushes: dict[tuple[int, int], Push] = {}
        # large levels first: their solutions settle most others (salazar2004 section 3.1)
        left = sorted(self._demands, key=lambda d: -d.level)
        while left and len(cuts) < most:
            demand = left.pop(self._find_nearest(left, reached) if self.nearest_next else 0)
            j, enough = demand.variable, demand.level * (1 - violation)
            if sum(reached[direction][j] for direction in demand.directions) >= enough:
                continue
            self.aimed += 1
            found = [self._push_variable(j, direction, reached, pushes) for direction in demand.directions]
            if all(push.optimal for push in found):
                bound = sum(self._compute_bound(push) for push in found)
                if bound < enough:
                    cuts.append(self._build_cut(demand.side, demand.cell, demand.level, demand.scale, *found))
        return cuts[: None if max_cuts is None else max_cuts]

    @staticmethod
    def _find_nearest(left: list[_Demand], reached: dict[int, FloatArray]) -> int:
        """Return the open demand that the movements so far come nearest to meeting."""
        missing = [d.level - sum(reached[way][d.variable] for way in d.directions) for d in left]
        return min(range(len(left)), key=lambda k: (missing[k] <= 0, missing[k]))

    def _mark_reachable(self, violation: float) -> dict[int, FloatArray]:
        """Find what can be reached with few programs: push all open demands together while that helps."""
        p = self.program
        reached = {1: np.zeros(len(p.up)), -1: np.zeros(len(p.up))}
        for direction in (1, -1):
            demands = [d for d in self._demands if d.directions == (direction,)]
            variables = np.array([d.variable for d in demands], np.int64)
            level = np.array([d.level for d in demands])
            slack = p.up if direction > 0 else p.down
            left = len(demands) + 1
            while True:
                open_ = (reached[direction][variables] < level * (1 - violation)) & (slack[variables] >= level)
                if not open_.any() or open_.sum() > 0.9 * left:
                    break
                left = int(open_.sum())
                push = p.push_together(variables[open_], level[open_], direction)
                self._note_movement(push, reached)
        return reached

    def _push_variable(
        self, j: int, direction: int, reached: dict[int, FloatArray], pushes: dict[tuple[int, int], Push]
    ) -> Push:
        """Push one variable, and use the movement for every other one."""
        if (j, direction) not in pushes:
            push = self.program.push(np.array([j]), np.array([float(direction)]))
            self._note_movement(push, reached)
            if push.status is SolveStatus.UNBOUNDED:
                reached[direction][j] = np.inf
            pushes[j, direction] = push
        return pushes[j, direction]

    @staticmethod
    def _note_movement(push: Push, reached: dict[int, FloatArray]) -> None:
        if push.movement is not None:
            np.maximum(reached[1], push.movement, out=reached[1])
            np.maximum(reached[-1], -push.movement, out=reached[-1])

    def _compute_bound(self, push: Push) -> float:
        n = len(self.program.up)
        return float(self.program.compute_group_bounds(push.prices, np.zeros(n, np.int64), 1)[0])

    def _build_cut(self, side: Side, cell: int, level: float, scale: float, *pushes: Push) -> Cut:
        """Join the multipliers; a bound known before counts as a constant (alpha1, beta1 in (9))."""
        n = len(self.known_up)
        alpha, beta = np.zeros(n), np.zeros(n)
        for push in pushes:
            a, b = self.program.compute_multipliers(push)
            alpha, beta = alpha + scale * a, beta + scale * b
        known_up = (alpha > 0) & (self.known_up < self._up)
        known_down = (beta > 0) & (self.known_down < self._down)
        known = float(alpha[known_up] @ self.known_up[known_up] + beta[known_down] @ self.known_down[known_down])
        alpha, beta = np.where(known_up, 0.0, alpha), np.where(known_down, 0.0, beta)
        support = np.flatnonzero((alpha > 0) | (beta > 0))
        return Cut(
            cell=cell,
            side=side,
            level=level * scale,
            support=support,
            alpha=alpha[support],
            beta=beta[support],
            known=known,
        )


@dataclass(frozen=True, kw_only=True)
class _Demand:
    """The largest level of one side among the cells that move with a variable."""

    variable: int
    directions: tuple[int, ...]
    """Directions of the variable whose movements count together: one, or both for a sliding level."""
    level: float
    """In terms of the variable."""
    cell: int
    side: Side
    scale: float
    """Movement of the cell when the variable moves by 1."""


def _group_requests_by_variable(
    program: AttackerProgram, cells: IntArray, levels: Mapping[Side, FloatArray]
) -> list[_Demand]:
    """Return the demand on each variable: aliases share one, the largest."""
    found: dict[tuple[int, tuple[int, ...]], _Demand] = {}
    for side, level in levels.items():
        for k in np.flatnonzero(level > 0):
            cell = int(cells[k])
            j, ratio = int(program.variable[cell]), float(program.ratio[cell])
            outward = 1 if (side == "upper") == (ratio > 0) else -1
            directions = (1, -1) if side == "sliding" else (outward,)
            scale = abs(ratio)
            demand = _Demand(
                variable=j, directions=directions, level=float(level[k]) / scale, cell=cell, side=side, scale=scale
            )
            if (j, directions) not in found or found[j, directions].level < demand.level:
                found[j, directions] = demand
    return list(found.values())
