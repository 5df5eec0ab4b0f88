"""The linear program in the movements, with cuts where an attacker comes too close (salazar2004 section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.search.cuts import Cut
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, Solution, SolveStatus
from cellguard._engine.solvers.rows import build_matrix
from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.demands import Demand
from cellguard.methods.perturb.cell_limits import CellLimits
from cellguard.model.table import Table

__all__ = ["PerturbationOutcome", "perturb_by_cuts"]

_ROUNDS = 500
_CUTS_PER_ROUND = 200
_WIDE = 1e8
"""With more whole-number movements than this, skip branch-and-bound: it may never end, regardless of its limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbationOutcome:
    """What the cutting planes found, and what they proved."""

    movement: FloatArray | None
    """Movements of all cells; None if none was found."""
    bound: float = float("nan")
    """Proven: no perturbation with these draws is closer to `start`."""
    start: FloatArray = field(default_factory=lambda: np.zeros(0))
    """The movements from which the bound is measured: the drawn ones, within their limits."""
    infeasible: bool = False
    """Whether it is proven that there is none."""
    rounds: int = 0
    cuts: int = 0
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Cells whose levels needed cuts."""


def perturb_by_cuts(
    table: Table,
    limits: CellLimits,
    demands: Sequence[Demand],
    deadline: Deadline,
    *,
    rounded: FloatArray | None,
) -> PerturbationOutcome:
    """Find the movements closest to the drawn ones that meet every level; in whole numbers for counts.

    Cells that must not be published unchanged stay on the side to which they are drawn. Only if the relations allow
    no solution there, the program chooses the sides. `rounded` has two movements for each cell that takes one of
    them (2 x cells, NaN for the others).
    """
    chosen = rounded is not None or limits.toward is not None  # the program chooses between the two multiples
    sided = limits if chosen else limits.fix_sides()
    found = PerturbationOutcome(movement=None, infeasible=True)
    if not sided.impossible.any():
        found = _CuttingPlanes(table, sided, demands, _list_choices(sided, rounded)).solve(deadline)
    if found.infeasible and not chosen and (limits.apart > 0).any() and not limits.impossible.any():
        return _CuttingPlanes(table, limits, demands, _list_choices(limits, None)).solve(deadline)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Choices:
    """Cells whose movement is one of two intervals: ``[left_low, left_high]`` or ``[right_low, right_high]``."""

    cells: IntArray
    left: tuple[FloatArray, FloatArray]
    right: tuple[FloatArray, FloatArray]


def _list_choices(limits: CellLimits, rounded: FloatArray | None) -> _Choices:
    """Return the choices to make: one of two multiples, or a side of the truth."""
    if rounded is not None:
        cells = np.flatnonzero(np.isfinite(rounded[0]))
        ends = [np.where(_clip_to_limits(limits, cells, m[cells]), m[cells], np.nan) for m in rounded]
        first, second = (np.where(np.isnan(ends[k]), ends[1 - k], ends[k]) for k in (0, 1))
        first, second = np.minimum(first, second), np.maximum(first, second)
        return _Choices(cells=cells, left=(first, first), right=(second, second))
    cells = np.flatnonzero((limits.apart > 0) & (limits.low < 0) & (limits.high > 0))
    cells = cells[(limits.low < limits.apart)[cells] & (limits.high > -limits.apart)[cells]]
    low, high, apart = limits.low[cells], limits.high[cells], limits.apart[cells]
    return _Choices(cells=cells, left=(low, -apart), right=(apart, high))


def _clip_to_limits(limits: CellLimits, cells: IntArray, movement: FloatArray) -> BoolArray:
    near = 1e-9 * np.maximum(1.0, np.abs(movement))
    return np.asarray((movement >= limits.low[cells] - near) & (movement <= limits.high[cells] + near))


class _CuttingPlanes:
    """Columns: steps p above and q below the drawn movement, ``z = target + p - q``, and a choice of 0 or 1.

    If rounding is relaxed, a third step per cell leads towards the other multiple, at its own price.
    """

    def __init__(self, table: Table, limits: CellLimits, demands: Sequence[Demand], choices: _Choices) -> None:
        relations, w, n = table.relations, table.weights, table.n_cells
        self.limits, self.choices, self.whole = limits, choices, table.integer
        self.n_cuts = self.rounds = 0
        self.attacked: set[int] = set()
        self.separators = [d.build_separator(table, limits.distance > 0) for d in demands if len(d.cells)]
        ways = [(np.ones(n), limits.high - limits.target, w), (-np.ones(n), limits.target - limits.low, w)]
        if limits.toward is not None and limits.share is not None:
            ways.append((np.sign(limits.toward), np.abs(limits.toward), w * limits.share))
        self.ways = [way for way, _, _ in ways]
        """Direction of each step of each cell."""
        k = len(choices.cells)
        self.most = np.concatenate([*(most for _, most, _ in ways), np.ones(k)])
        self.cost = np.concatenate([*(cost for _, _, cost in ways), np.zeros(k)])
        A = csr_array(relations[reduce(relations, limits.moving).rows])
        side = -(A @ limits.target)
        self.matrix, self.lower, self.upper = self.translate_rows(A), side, side
        """Rows of the program: relations, choices and cuts."""
        pick = csr_array((np.ones(k), (np.arange(k), choices.cells)), shape=(k, n))
        open_, shift = np.full(k, np.inf), limits.target[choices.cells]
        # left_low + (right_low - left_low) x <= z <= left_high + (right_high - left_high) x
        spans = [
            csr_array((left - right, (np.arange(k), np.arange(k))), shape=(k, k))
            for left, right in zip(choices.left, choices.right, strict=True)
        ]
        self.append(self.translate_rows(pick, spans[0]), choices.left[0] - shift, open_)
        self.append(self.translate_rows(pick, spans[1]), -open_, choices.left[1] - shift)

    def translate_rows(self, on_movement: csr_array, on_choice: csr_array | None = None) -> csr_array:
        """Return rows over movements and choices as rows over the columns."""
        none = csr_array((on_movement.shape[0], len(self.choices.cells)))
        steps = [csr_array(on_movement @ diags_array(way)) for way in self.ways]
        return csr_array(hstack([*steps, none if on_choice is None else on_choice]))

    def append(self, rows: csr_array, lower: FloatArray, upper: FloatArray) -> None:
        self.matrix = csr_array(vstack([self.matrix, rows]))
        self.lower, self.upper = np.concatenate([self.lower, lower]), np.concatenate([self.upper, upper])

    # ------------------------------------------------------------------ the search

    def solve(self, deadline: Deadline) -> PerturbationOutcome:
        if np.isnan(self.choices.left[0]).any():
            return self.build_outcome(None, infeasible=True)
        integer = False
        program = self.build_program(integer)
        best = -np.inf
        for self.rounds in range(1, _ROUNDS + 1):
            solution = program.solve(time_limit_s=deadline.get_seconds_at_least())
            if not solution.optimal:
                return self.build_outcome(None, infeasible=solution.status is SolveStatus.INFEASIBLE)
            best = max(best, self.bound(solution, program))
            z = self.read_movement(solution.x)
            cuts = self.find_violated(z)
            if cuts:
                self.add(program, cuts)
            elif self.whole and not integer and (np.abs(z - np.rint(z)) > WHOLE_SOLUTION).any():
                if self.most.max() > _WIDE:
                    break
                integer = True
                program = self.build_program(integer)
            else:
                return self.build_outcome(np.rint(z) if self.whole else z, bound=best)
            if deadline.passed:
                break
        return self.build_outcome(None)

    def build_outcome(self, movement: FloatArray | None, **known: float) -> PerturbationOutcome:
        cells = np.array(sorted(self.attacked), np.int64)
        return PerturbationOutcome(
            movement=movement, start=self.limits.target, rounds=self.rounds, cuts=self.n_cuts, cells=cells,
            **known,  # type: ignore[arg-type]
        )  # fmt: skip

    def read_movement(self, x: FloatArray) -> FloatArray:
        limits, z = self.limits, self.limits.target
        for way, steps in zip(self.ways, x[: len(x) - len(self.choices.cells)].reshape(-1, len(z)), strict=True):
            z = z + way * steps
        return np.clip(z, limits.low, limits.high)

    # ------------------------------------------------------------------ the program

    def build_program(self, integer: bool) -> LinearProgram:
        """Set up the program with the known cuts; choices are whole numbers, movements only if required."""
        k = len(self.choices.cells)
        whole = np.concatenate([np.full(len(self.cost) - k, integer), np.ones(k, bool)])
        return LinearProgram(replace(self.build_model(), integer=whole), ONCE)

    def build_model(self) -> LinearModel:
        return LinearModel(self.matrix, self.lower, self.upper, np.zeros(len(self.cost)), self.most, self.cost)

    def find_violated(self, z: FloatArray) -> list[Cut]:
        d = self.limits.distance
        down, up = np.maximum(d - z, 0.0), np.maximum(d + z, 0.0)
        return [c for s in self.separators for c in s.separate(down, up, max_cuts=_CUTS_PER_ROUND)]

    def add(self, program: LinearProgram, cuts: list[Cut]) -> None:
        """Add cuts ``c z >= rhs``."""
        d = self.limits.distance
        rows = [cut.build_row(up=(d, np.ones_like(d)), down=(d, -np.ones_like(d))) for cut in cuts]
        on_movement = build_matrix(rows, len(d))
        sides = np.array([row.rhs for row in rows]) - on_movement @ self.limits.target
        more = self.translate_rows(on_movement), sides, np.full(len(rows), np.inf)
        program.add_rows(*more)
        self.append(*more)
        self.n_cuts += len(cuts)
        self.attacked |= {cut.cell for cut in cuts}

    def bound(self, solution: Solution, program: LinearProgram) -> float:
        """Return the bound that the multipliers prove, whatever is claimed; with choices, the solver's bound."""
        if program.is_mip:
            return solution.bound
        y, low, high = solution.row_dual, self.lower, self.upper
        y = np.where(np.isinf(high), np.maximum(y, 0.0), np.where(np.isinf(low), np.minimum(y, 0.0), y))
        return self.build_model().compute_duality_bound(y)
