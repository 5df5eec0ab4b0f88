"""The linear program in the movements, with cuts where an attacker comes too close (salazar2004 section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, vstack

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.cuts import Cut, Separator
from cellguard._engine.ranges.sight import AskedRanges
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, Solution, SolveStatus
from cellguard._engine.solvers.rows import Row, matrix
from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.demands import Demand
from cellguard.methods.perturb.cell_limits import CellLimits
from cellguard.nouns.table import Table

__all__ = ["PerturbationOutcome", "solve"]


_ROUNDS = 500
_CUTS_PER_ROUND = 200
_WIDE = 1e8
"""Movements of so many whole numbers are not given to branch-and-bound: it may never end, whatever its limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbationOutcome:
    """What the cutting planes found, and what they proved."""

    movement: FloatArray | None
    """Movements of all cells; None if none was found."""
    bound: float = float("nan")
    """Proven: no perturbation with these draws is closer to `start`."""
    start: FloatArray | None = None
    """The movements from which the bound counts: what was drawn, within what is allowed."""
    infeasible: bool = False
    """Whether there is none."""
    rounds: int = 0
    cuts: int = 0
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Cells whose levels needed cuts."""


def solve(
    table: Table,
    limits: CellLimits,
    demands: Sequence[Demand],
    deadline: Deadline = NEVER,
    *,
    rounded: FloatArray | None = None,
) -> PerturbationOutcome:
    """Find the movements closest to what is drawn that meet every level.

    Cells that must not be published as they are stay on the side to which they are drawn; only where
    the relations leave nothing there, the program chooses the sides.

    Parameters
    ----------
    table
        The table; movements of counts are whole numbers.
    limits
        Bounds of the movements, and what they are drawn to.
    demands
        Levels, attacker by attacker.
    deadline
        When to stop.
    rounded
        Two movements for each cell that takes one of them (2 x cells, NaN for the others).
    """
    chosen = rounded is not None or limits.toward is not None  # the program chooses between the two multiples
    sided = limits if chosen else limits.sided()
    found = PerturbationOutcome(movement=None, infeasible=True)
    if not sided.impossible.any():
        choices = _choices(sided, rounded)
        found = _CuttingPlanes(table, sided, demands, choices).solve(deadline)
    if found.infeasible and not chosen and (limits.apart > 0).any() and not limits.impossible.any():
        choices = _choices(limits, None)
        return _CuttingPlanes(table, limits, demands, choices).solve(deadline)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Choices:
    """Cells whose movement is one of two intervals: ``[left_low, left_high]`` or ``[right_low, right_high]``."""

    cells: IntArray
    left: tuple[FloatArray, FloatArray]
    right: tuple[FloatArray, FloatArray]


def _choices(limits: CellLimits, rounded: FloatArray | None) -> _Choices:
    """Return what must be chosen: one of two multiples, or a side of the truth."""
    if rounded is not None:
        cells = np.flatnonzero(np.isfinite(rounded[0]))
        ends = [np.where(_within_limits(limits, cells, m[cells]), m[cells], np.nan) for m in rounded]
        first, second = (np.where(np.isnan(ends[k]), ends[1 - k], ends[k]) for k in (0, 1))
        first, second = np.minimum(first, second), np.maximum(first, second)
        return _Choices(cells=cells, left=(first, first), right=(second, second))
    cells = np.flatnonzero((limits.apart > 0) & (limits.low < 0) & (limits.high > 0))
    cells = cells[(limits.low < limits.apart)[cells] & (limits.high > -limits.apart)[cells]]
    low, high, apart = limits.low[cells], limits.high[cells], limits.apart[cells]
    return _Choices(cells=cells, left=(low, -apart), right=(apart, high))


def _within_limits(limits: CellLimits, cells: IntArray, movement: FloatArray) -> BoolArray:
    near = 1e-9 * np.maximum(1.0, np.abs(movement))
    return np.asarray((movement >= limits.low[cells] - near) & (movement <= limits.high[cells] + near))


class _CuttingPlanes:
    """Columns: steps p above and q below what is drawn, ``z = target + p - q``, and a choice of 0 or 1.

    Where rounding is relaxed, a third step per cell leads towards the other multiple, at its own price.
    """

    def __init__(self, table: Table, limits: CellLimits, demands: Sequence[Demand], choices: _Choices) -> None:
        relations, values = table.relations, table.values
        self.limits, self.choices, self.whole = limits, choices, table.integer
        self.n = table.n_cells
        self.A = csr_array(relations[reduce(relations, limits.moving).rows])
        self.weights = table.weights
        self.way = None if limits.toward is None else np.sign(limits.toward)
        self.steps = (2 if self.way is None else 3) * self.n
        self.cuts: list[Row] = []
        self.attacked: set[int] = set()
        self.rounds = 0
        self.separators = [
            Separator(
                relations, AskedRanges(d.cells, d.lower, d.upper, d.sliding),
                known=(values - d.lb, d.ub - values), free=limits.distance > 0,
            )
            for d in demands if len(d.cells)
        ]  # fmt: skip

    # ------------------------------------------------------------------ the search

    def solve(self, deadline: Deadline) -> PerturbationOutcome:
        if np.isnan(self.choices.left[0]).any():
            return self.outcome(None, infeasible=True)
        integer = False
        program = self.program(integer)
        best = -np.inf
        for self.rounds in range(1, _ROUNDS + 1):
            solution = program.solve(time_limit_s=deadline.at_least())
            if not solution.optimal:
                return self.outcome(None, infeasible=solution.status is SolveStatus.INFEASIBLE)
            best = max(best, self.bound(solution, program))
            z = self.movement(solution.x)
            cuts = self.violated(z)
            if not cuts and self.whole and not integer and (np.abs(z - np.rint(z)) > WHOLE_SOLUTION).any():
                if self.most.max() > _WIDE:
                    return self.outcome(None)
                integer = True
                program = self.program(integer)
            elif not cuts:
                return self.outcome(np.rint(z) if self.whole else z, bound=best)
            else:
                self.add(program, cuts)
            if deadline.passed:
                break
        return self.outcome(None)

    def outcome(self, movement: FloatArray | None, **known: float) -> PerturbationOutcome:
        cells = np.array(sorted(self.attacked), np.int64)
        start = self.limits.target
        return PerturbationOutcome(
            movement=movement, start=start, rounds=self.rounds, cuts=len(self.cuts), cells=cells, **known  # type: ignore[arg-type]
        )  # fmt: skip

    def movement(self, x: FloatArray) -> FloatArray:
        limits, n = self.limits, self.n
        z = limits.target + x[:n] - x[n : 2 * n]
        if self.way is not None:
            z = z + self.way * x[2 * n : 3 * n]
        return np.clip(z, limits.low, limits.high)

    def columns(self, on_movement: csr_array, on_choice: csr_array) -> csr_array:
        """Return rows over movements and choices as rows over the columns."""
        parts = [on_movement, -on_movement]
        if self.way is not None:
            parts.append(csr_array(on_movement @ diags_array(self.way)))
        return csr_array(hstack([*parts, on_choice]))

    # ------------------------------------------------------------------ the program

    def program(self, integer: bool) -> LinearProgram:
        """Set up the program, with the cuts that are known."""
        limits, n, c = self.limits, self.n, self.choices
        k = len(c.cells)
        pick = csr_array((np.ones(k), (np.arange(k), c.cells)), shape=(k, n))

        rows = self.columns
        # left_low + (right_low - left_low) x <= z <= left_high + (right_high - left_high) x
        above, below = ((end[1], end[0]) for end in zip(c.left, c.right, strict=True))
        spans = [
            csr_array((-(right - left), (np.arange(k), np.arange(k))), shape=(k, k)) for right, left in (above, below)
        ]
        shift = limits.target[c.cells]
        self.matrix = csr_array(vstack([
            rows(self.A, csr_array((self.A.shape[0], k))), rows(pick, spans[0]), rows(pick, spans[1]),
        ]))  # fmt: skip
        side = -(self.A @ limits.target)
        self.lower = np.concatenate([side, c.left[0] - shift, np.full(k, -np.inf)])
        self.upper = np.concatenate([side, np.full(k, np.inf), c.left[1] - shift])
        most, cost = [limits.high - limits.target, limits.target - limits.low], [self.weights, self.weights]
        if limits.toward is not None and limits.share is not None:
            most, cost = [*most, np.abs(limits.toward)], [*cost, self.weights * limits.share]
        self.most, self.cost = np.concatenate([*most, np.ones(k)]), np.concatenate([*cost, np.zeros(k)])
        kinds = np.concatenate([np.full(self.steps, integer), np.ones(k, bool)])
        zero = np.zeros(self.steps + k)
        program = LinearProgram(
            LinearModel(self.matrix, self.lower, self.upper, zero, self.most, self.cost, kinds), ONCE
        )
        if self.cuts:
            program.add_rows(*self.cut_rows(0))
        return program

    def violated(self, z: FloatArray) -> list[Cut]:
        d = self.limits.distance
        down, up = np.maximum(d - z, 0.0), np.maximum(d + z, 0.0)
        return [c for s in self.separators for c in s.separate(down, up, max_cuts=_CUTS_PER_ROUND)]

    def add(self, program: LinearProgram, cuts: list[Cut]) -> None:
        d = self.limits.distance
        one, start = np.ones_like(d), len(self.cuts)
        self.attacked |= {cut.cell for cut in cuts}
        self.cuts += [cut.row(up=(d, one), down=(d, -one)) for cut in cuts]
        program.add_rows(*self.cut_rows(start))

    def cut_rows(self, start: int) -> tuple[csr_array, FloatArray, FloatArray]:
        """Return cuts ``c z >= rhs`` as rows over the columns."""
        new = self.cuts[start:]
        on_movement = matrix(new, self.n)
        rows = self.columns(on_movement, csr_array((len(new), len(self.choices.cells))))
        sides = np.array([row.rhs for row in new]) - on_movement @ self.limits.target
        return rows, sides, np.full(len(new), np.inf)

    def bound(self, solution: Solution, program: LinearProgram) -> float:
        """What the multipliers prove of the objective, whatever the solver claims; with choices, what it proved."""
        if program.is_mip:
            return solution.bound
        rows, low, high = self.matrix, self.lower, self.upper
        if self.cuts:
            C, sides, most = self.cut_rows(0)
            rows = csr_array(vstack([rows, C]))
            low, high = np.concatenate([low, sides]), np.concatenate([high, most])
        y = solution.row_dual
        y = np.where(np.isinf(high), np.maximum(y, 0.0), np.where(np.isinf(low), np.minimum(y, 0.0), y))
        return LinearModel(rows, low, high, np.zeros(len(self.cost)), self.most, self.cost).weak_duality_bound(y)
