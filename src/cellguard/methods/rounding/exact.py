"""Exact rounding: the relaxation, what it leaves fractional, and a proof.

Most published tables are networks glued at totals, so the relaxation is integral but for a few
hundred cells. Reduced costs then do two things at once: a solution that moves a column with reduced
cost d costs at least d more than the relaxation, so columns beyond a threshold can be left at their
bound while a small whole-number program decides the others, and its answer is proven optimal as soon
as it is cheaper than the threshold. Cuts for the levels are added wherever they are missed, to the
relaxation first (salazar2004 section 3.1).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, Solution, SolveStatus, Way
from cellguard._engine.solvers.mip import MixedSolution, Until, solve_mixed
from cellguard._engine.standing import Standing
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.limits import Limits
from cellguard.methods.rounding.level_cuts import LevelCuts, LevelsOpenError
from cellguard.methods.rounding.model import make_rounding_model
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["PROVEN", "RoundingOutcome", "TreeSearch", "round_exactly"]

PROVEN = 2e-6
"""A gap below this is what programs leave of zero: prices are multiples of much larger units."""
_SMALL = 3000
"""Maximum number of columns of a program that branch-and-bound receives whole."""
_SIMPLEX = 20_000
"""Larger relaxations that are not networks are left to the interior point: the simplex drowns in ties."""
_ROUNDS = 50
"""Rounds of cuts in one relaxation."""
_CUTS = 200
"""Cuts per attacker and round."""
SOLVER_TIME_SHARE = 0.95
"""Share of its time that branch-and-bound is given: it looks at the clock between large steps only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundingOutcome:
    """What a search for a rounding found, and what it proved."""

    x: IntArray | None
    """The best rounding that meets every level; None if none was found."""
    objective: float
    """Its price; infinite if there is none."""
    bound: float
    """Proven: no rounding is cheaper; infinite if it is proven that there is none."""
    limit: bool = False
    """Whether a limit stopped the search."""
    timed_out: bool = False
    """Whether that limit was the time."""
    fractional: int = 0
    """Cells that the first relaxation left fractional."""
    cuts: int = 0
    """Cuts that the levels needed."""
    plain_rounds: int = 0
    """How often the plain model was solved; 0 if it was not tried."""

    @property
    def infeasible(self) -> bool:
        """Whether it is proven that there is no rounding."""
        return self.x is None and self.bound == float("inf")


def round_exactly(
    problem: RoundingProblem, cuts: LevelCuts, limits: Limits, *, start: IntArray | None = None
) -> RoundingOutcome:
    """Find a cheapest rounding that meets every level; `start` is one to begin with."""
    search = TreeSearch(problem, cuts, limits)
    with suppress(LevelsOpenError):
        if start is not None:
            search.accept(start)
        search.run()
    return search.get_outcome()


class TreeSearch(Standing[IntArray]):
    """The program of a rounding, the cuts so far, and the best rounding that meets every level."""

    def __init__(self, problem: RoundingProblem, cuts: LevelCuts, limits: Limits) -> None:
        super().__init__(gap=limits.gap, rounding=PROVEN)
        self.problem, self.cuts, self.limits = problem, cuts, limits
        self.model = m = make_rounding_model(problem)
        self.lift = csr_array((m.sign, (m.cell, np.arange(m.n_columns))), shape=(problem.n_cells, m.n_columns))
        self.rows = m.link_rows
        """Rows of holes and cuts so far, over the columns."""
        self.sides = m.link_sides
        self.prove(m.constant + float(np.minimum(m.cost, 0.0) @ m.upper))  # every cell where it likes best to be
        self.fractional = 0
        self.plain_rounds = 0
        self.timed_out = False

    def get_outcome(self) -> RoundingOutcome:
        """Return what was found and proven so far."""
        return RoundingOutcome(
            x=self.best, objective=self.cost, bound=min(self.bound, self.cost), limit=not self.is_closed(),
            fractional=self.fractional, cuts=len(self.sides) - len(self.model.link_sides),
            plain_rounds=self.plain_rounds, timed_out=self.timed_out,
        )  # fmt: skip

    # ------------------------------------------------------------------ bookkeeping

    def accept(self, x: IntArray) -> bool:
        """Keep x if it is a rounding that meets every level; otherwise add the cuts that it violates."""
        if not self.problem.is_rounding(x):
            return False
        C, sides = self.cuts.find_violated(x.astype(np.float64), max_cuts=_CUTS)
        if len(sides):
            self.add(C, sides)
            return False
        if self.take(x, self.problem.compute_loss(x)):
            self.limits.tell(self.cost, min(self.bound, self.cost))
        return True

    def add(self, C: csr_array, sides: FloatArray) -> None:
        """Add cuts on x as rows on the columns."""
        self.rows = csr_array(vstack([self.rows, C @ self.lift]))
        self.sides = np.concatenate([self.sides, sides - C @ self.model.start])

    # ------------------------------------------------------------------ the search

    def run(self) -> None:
        """Search until the best rounding is proven good enough, or a limit is reached."""
        again = self.model.n_columns > 0
        if not again:  # no cell has a choice
            self.bound = self.cost if self.accept(self.model.start) else np.inf
        while again and not self.is_closed():
            relaxed = self.relax()
            if relaxed.status is SolveStatus.INFEASIBLE:
                self.bound = np.inf
            if not relaxed.optimal:
                break
            self.prove(
                self.problem.round_up_to_attainable(self.model.constant + relaxed.objective, self.model.constant)
            )
            if self.is_closed():
                break
            known = len(self.sides)
            self.decide(relaxed)
            again = len(self.sides) > known  # a rounding missed a level that the relaxation had met

    @property
    def program(self) -> LinearModel:
        """The whole program with the cuts so far."""
        m = self.model
        rows = csr_array(vstack([m.A, self.rows]))
        lower = np.concatenate([m.rhs, self.sides])
        upper = np.concatenate([m.rhs, np.full(len(self.sides), np.inf)])
        return LinearModel(rows, lower, upper, np.zeros(m.n_columns), m.upper, m.cost)

    def relax(self) -> Solution:
        """Solve the relaxation and cut off what misses a level, until nothing does."""
        m = self.model
        interior = m.n_columns > _SIMPLEX and m.A.nnz > 2.5 * m.n_columns
        middle = Way(solver="ipx", presolve=True, crossover=False, tolerance=1e-7)
        way = middle if interior else replace(ONCE, tolerance=1e-7)
        program = LinearProgram(LinearModel(m.A, m.rhs, m.rhs, np.zeros(m.n_columns), m.upper, m.cost), way)
        known = 0
        for attempt in range(_ROUNDS):
            if len(self.sides) > known:
                program.add_rows(self.rows[known:], self.sides[known:], np.full(len(self.sides) - known, np.inf))
                known = len(self.sides)
                program.set_options(presolve="on" if interior else "off")  # the last basis is the better start
            left_s = self.limits.deadline.left
            solution = self.solve_by_interior_point(program, left_s) if interior else program.solve(time_limit_s=left_s)
            if not solution.optimal:
                break
            if attempt == 0:
                self.fractional = int((np.abs(solution.x - np.rint(solution.x)) > 1e-6).sum())
            C, sides = self.cuts.find_violated(m.compute_relaxed_x(np.clip(solution.x, 0.0, m.upper)), max_cuts=_CUTS)
            if len(sides) == 0:
                break
            self.add(C, sides)
        return solution

    def solve_by_interior_point(self, program: LinearProgram, time_limit_s: float) -> Solution:
        """Solve a large relaxation by interior point; its objective is the bound that its duals prove."""
        m = self.model
        claim = program.solve_by_interior_point(time_limit_s=time_limit_s)
        if claim is None:
            return program.solve(time_limit_s=self.limits.deadline.left)
        dual = claim.row_dual.copy()
        dual[m.A.shape[0] :] = np.maximum(dual[m.A.shape[0] :], 0.0)  # these rows have a lower side only
        A = csr_array(vstack([m.A, self.rows]))
        reduced = m.cost - A.T @ dual
        bound = float(np.concatenate([m.rhs, self.sides]) @ dual + np.minimum(reduced, 0.0) @ m.upper)
        return replace(claim, status=SolveStatus.OPTIMAL, objective=bound, reduced_cost=reduced)

    def decide(self, relaxed: Solution) -> None:
        """Make the relaxation's solution whole and prove it optimal, or stop where a cut is missing."""
        m = self.model
        lowest = m.constant + relaxed.objective
        if (np.abs(relaxed.x - np.rint(relaxed.x)) < 1e-7).all():
            if self.accept(m.compute_x(relaxed.x)):
                self.bound = self.cost
            return
        reduced = np.abs(relaxed.reduced_cost)
        threshold = np.inf if m.n_columns <= _SMALL else self.choose_first_threshold(reduced)
        while True:
            free = reduced <= threshold * (1 + 1e-9) + 1e-9
            found = self.solve_whole(relaxed.reduced_cost, free, self.limits.deadline)
            beyond = np.inf if free.all() else lowest + float(reduced[~free].min())
            self.prove(self.problem.round_up_to_attainable(min(m.constant + found.bound, beyond), m.constant))
            if found.found and not self.accept(m.compute_x(found.x)):
                return
            if found.status not in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE) or self.is_closed() or free.all():
                return
            threshold = self.choose_next_threshold(lowest, threshold, reduced)

    def solve_whole(self, reduced_cost: FloatArray, free: BoolArray, deadline: Deadline) -> MixedSolution:
        """Decide the free columns, the others left where the relaxation has them."""
        m = self.model
        # the others stay at the bound that their reduced cost prefers: the proof counts from there
        rest = np.where(free, 0.0, np.where(reduced_cost > 0, 0.0, m.upper))
        A = csr_array(vstack([m.A, self.rows]))
        offset, columns, base = A @ rest, np.flatnonzero(free), float(m.cost @ rest)
        rows = csr_array(A[:, columns])
        keep = np.diff(rows.indptr) > 0
        lower = np.concatenate([m.rhs, self.sides]) - offset
        upper = np.concatenate([m.rhs, np.full(len(self.sides), np.inf)]) - offset
        zero = np.zeros(len(columns))
        found = solve_mixed(
            LinearModel(rows[keep], lower[keep], upper[keep], zero, m.upper[columns], m.cost[columns]),
            Until(time_limit_s=SOLVER_TIME_SHARE * deadline.left, absolute_gap=self.get_absolute_gap()),
            start=self.start(rest, free),
            seed=self.limits.seed,
            threads=self.limits.threads,
        )
        self.timed_out = found.status is SolveStatus.LIMIT
        y = rest.copy()
        y[columns] = found.x
        return replace(found, objective=found.objective + base, bound=found.bound + base, x=y)

    def start(self, rest: FloatArray, free: BoolArray) -> FloatArray | None:
        """The best so far as a point to begin with, if it agrees with what is left where it is."""
        y = None if self.best is None else self.model.compute_y(self.best)
        return None if y is None or (y[~free] != rest[~free]).any() else y[free]

    def get_absolute_gap(self) -> float:
        """Differences below the unit of the objective do not matter; nor below the requested gap."""
        size = abs(self.bound) if np.isfinite(self.bound) else 0.0
        return max(1e-6, 0.999 * self.problem.unit, 0.5 * self.gap * size)

    def choose_first_threshold(self, reduced: FloatArray) -> float:
        """Begin with what costs at most a unit more; without a unit, with the cheaper half of the columns."""
        if self.problem.unit > 0:
            return self.problem.unit
        positive = reduced[reduced > 1e-9]
        return float(np.quantile(positive, 0.25)) if len(positive) else 0.0

    def choose_next_threshold(self, lowest: float, threshold: float, reduced: FloatArray) -> float:
        """Take what the proof still needs: columns that could be part of something better."""
        if self.best is not None:
            return max(self.cost - lowest, threshold * 1.01)
        larger = reduced[reduced > threshold * (1 + 1e-9) + 1e-9]
        wider = max(4.0 * threshold, float(larger.min()))
        return wider if wider < float(larger.max()) else np.inf
