"""Exact suppression: branch-and-cut on the inequalities of safe patterns (salazar2004 section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.branch_and_cut import BinaryProgram, LazySolution, solve_lazy
from cellguard._engine.solvers.mip import Until
from cellguard._engine.solvers.rows import Relaxation, Row
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.proof.inequalities import PatternInequalities
from cellguard.methods.suppress.search.incumbent import Incumbent
from cellguard.methods.suppress.search.space import PatternSpace

__all__ = ["Exact"]

_ROUNDS_BELOW_ROOT = 3
"""Rounds of separation at a node of the tree."""
_VIOLATION = 1e-2
"""By how much a row must be violated to be worth adding in the tree."""
_ROWS_PER_ROUND = 30
_PATIENCE = 2
"""Rounds without progress at the root after which the dear kinds of rows are left alone."""
_SECONDS_PER_ENTRY = 1.5e-6
"""CPU seconds of an attacker's program for each non-zero coefficient of the relations (cbs: 8 ms for 5,713)."""
_EVERY = 20
"""The dear kinds of rows are looked for at every so manieth node."""


@dataclass(eq=False)
class Exact:
    """A lower bound by cutting planes, then branch-and-cut."""

    space: PatternSpace
    bound: float = 0.0
    """Proven: no safe pattern costs less."""
    rows: list[Row] = field(default_factory=list)
    """Inequalities that bind at the root."""
    cuts: int = 0
    nodes: int = 0
    y: FloatArray | None = None
    """Where the root ended."""
    least_cost_with: FloatArray = field(init=False)
    """Proven of each row: no pattern in which it is withheld, and of use, costs less."""
    on_bound: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        self.inequalities = PatternInequalities(self.space)
        self.rng = np.random.default_rng(0)
        self.cost = np.where(self.space.keep, 0.0, self.space.weight)
        self.always = float(self.space.weight[self.space.keep].sum())  # cells that move with a sensitive one
        self.unit = _find_cost_unit(self.cost)
        positive = self.cost[self.cost > 0]
        self.scale = self.unit or (float(np.median(positive)) if len(positive) else 1.0)
        n = len(self.cost)
        self.least_cost_with = np.zeros(n)
        self._lower = self.space.keep.astype(np.float64)
        self._relaxation = Relaxation(self.cost / self.scale, self._lower, np.ones(n))
        self._add(self.inequalities.pool.add(self.inequalities.list_first_bridges()))

    # ------------------------------------------------------------------ root

    def solve_root(
        self, deadline: Deadline, upper_bound: float = np.inf, max_rounds: int = 400, *, programs: bool = True
    ) -> float:
        """Solve the relaxation by cutting planes, from where it was left; returns the bound.

        Without `programs` only the rows are added that are found without a linear program for each request.
        """
        stalled = 0
        self.inequalities.until = deadline
        for _ in range(max_rounds):
            solution = self._relaxation.solve(time_limit_s=deadline.get_seconds_at_least())
            if not solution.optimal:
                break
            before = self.bound
            proven, reduced = self._relaxation.prove(solution.row_dual)
            self._raise(self.scale * proven)
            # the reduced costs belong to this relaxation's bound, and to no other that is proven before or later
            least = self.always + self.scale * (proven + np.maximum(reduced, 0.0))
            np.maximum(self.least_cost_with, least, out=self.least_cost_with)
            stalled = stalled + 1 if self.bound < before + 1e-4 * max(before, 1e-9) else 0
            self.y = np.clip(solution.x, 0.0, 1.0)
            binding = np.abs(solution.row_dual) > 1e-9
            self.rows = [row for row, binds in zip(self._relaxation.rows, binding, strict=True) if binds]
            if deadline.passed or self.bound >= upper_bound * (1 - 1e-9):
                break
            found = [] if stalled > 10 else self.find_violated(self.y, dear=stalled <= _PATIENCE, programs=programs)
            if not found:
                break
            if len(self._relaxation.rows) > 3 * len(self.cost):
                self._relaxation.remove_slack_rows(self.y, 0.1)
            self._add(found)
        return self.bound

    def _raise(self, value: float) -> None:
        if self.unit:  # costs are multiples of it, then so is the cost of every pattern
            steps = value / self.unit
            value = self.unit * float(np.ceil(steps - max(1e-6, 1e-9 * abs(steps))))
        value += self.always
        if value > self.bound:
            self.bound = value
            if self.on_bound is not None:
                self.on_bound(value)

    def _add(self, rows: list[Row]) -> None:
        self._relaxation.add(rows)
        self.cuts += len(rows)

    def find_violated(self, y: FloatArray, *, dear: bool, programs: bool = True) -> list[Row]:
        """Inequalities that a fractional point violates: cheap kinds first, expensive ones if none is found."""
        i = self.inequalities
        found = i.pool.add(i.find_bridges(y))
        if i.few_movements:
            for k in range(4):
                found += i.pool.add(i.find_circuits(y, order=y * (self.rng.uniform(0.5, 1.5, len(y)) if k else 1.0)))
        if not programs:
            return found
        if len(found) < 5:
            found += i.pool.add(i.find_capacities(y, clipped=False))
        if found or not dear:
            return found
        return i.pool.add(i.find_capacities(y, clipped=True)) + i.pool.add(i.find_partners(y))

    # ------------------------------------------------------------------ tree

    def solve(
        self, incumbent: BoolArray | None, search: Incumbent, deadline: Deadline, nodes: int = -1
    ) -> LazySolution:
        """Branch and cut, from the root's rows and the heuristic's pattern (rows of the space)."""
        cost = search.cost
        lower, upper = self._lower, np.ones(len(self._lower))
        upper[self.find_needless_rows(cost)] = 0.0
        start = None
        if incumbent is not None:
            start = incumbent.astype(np.float64)
            upper[incumbent] = 1.0
        self._calls, self._deadline = 0, deadline
        program = BinaryProgram(
            cost=self.cost / self.scale, lower=lower, upper=upper, rows=self.rows,
            check=self._check, separate=self._separate,
        )  # fmt: skip
        result = solve_lazy(
            program, start=start, until=Until(deadline.left, search.limits.gap), nodes=nodes,
            seed=search.limits.seed, on_bound=lambda b: self._raise(b * self.scale),
        )  # fmt: skip
        self.nodes, self.cuts = self.nodes + result.nodes, self.cuts + result.rows
        self._raise(result.bound * self.scale)
        return result

    def estimate_check_s(self) -> float:
        """Predict the CPU seconds that checking a pattern takes: a program for each attack, over all relations."""
        i = self.inequalities
        return _SECONDS_PER_ENTRY * i.n_attacks * self.space.variables.relations.nnz

    def find_needless_rows(self, cost: float) -> BoolArray:
        """Return the rows that no useful pattern cheaper than this withholds."""
        least, enough = self.least_cost_with, cost + 1e-6 * abs(cost)
        if self.unit:  # the cost of every useful pattern is a multiple, apart from what is always withheld
            steps = (least - self.always) / self.unit
            least = self.always + self.unit * np.ceil(steps - np.maximum(1e-6, 1e-9 * np.abs(steps)))
            enough = cost - 1e-9 * abs(cost)
        return (least >= enough) & (self._lower == 0) & np.isfinite(cost)

    def _separate(self, y: FloatArray, depth: int, round_: int) -> list[Row]:
        i = self.inequalities
        i.until = self._deadline
        self._calls += 1
        if round_ > (_ROUNDS_BELOW_ROOT if depth else 50):
            return []
        pool = i.pool.select_violated(y, _VIOLATION, _ROWS_PER_ROUND)
        if pool:
            return pool
        found = i.pool.add(i.find_bridges(y, _VIOLATION))
        if i.few_movements:
            found += i.pool.add(i.find_circuits(y, order=y, violation=_VIOLATION, most=_ROWS_PER_ROUND))
        if depth > 0 and self._calls % _EVERY:
            return found
        return found or i.pool.add(i.find_capacities(y, clipped=False))

    def _check(self, y: FloatArray) -> list[Row]:
        """Rows that a 0/1 point violates; an empty list is the proof that the pattern is safe.

        After the deadline nothing is looked at. The search confirms what it adopts, and the bound stays valid: a point
        that is accepted unseen only lowers what is proven.
        """
        i = self.inequalities
        i.until = self._deadline
        pool = i.pool.select_violated(y, 1e-6, 20)
        if pool:
            return pool
        found = i.find_bridges(y, 0.5)
        return i.pool.add(found) or i.find_capacities(y, clipped=False, violation=1e-6, most=5)


def _find_cost_unit(cost: FloatArray) -> float:
    """The largest number of which all costs are multiples; 0 when they are not whole, or too large to tell."""
    whole = np.rint(cost)
    if not (cost == whole).all() or cost.sum() > 1e12:
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64), initial=0))
