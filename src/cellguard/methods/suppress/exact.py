"""Exact suppression: branch-and-cut on the inequalities of safe patterns (salazar2004 section 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.solvers.branch_and_cut import BinaryProgram, LazySolution, solve_lazy
from cellguard._engine.solvers.mip import Until
from cellguard._engine.solvers.rows import Relaxation, Row
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.incumbent import Incumbent
from cellguard.methods.suppress.inequalities import PatternInequalities
from cellguard.methods.suppress.space import PatternSpace

__all__ = ["Exact"]

_ROUNDS_BELOW_ROOT = 3
"""Rounds of separation at a node of the tree."""
_VIOLATION = 1e-2
"""By how much a row must be violated to be worth adding in the tree."""
_ROWS_PER_ROUND = 30
_PATIENCE = 2
"""Rounds without progress at the root after which the dear kinds of rows are left alone."""
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
    reduced_cost: FloatArray | None = None
    on_bound: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        self.inequalities = PatternInequalities(self.space)
        self.rng = np.random.default_rng(0)
        self.cost = np.where(self.space.keep, 0.0, self.space.weight)
        self.always = float(self.space.weight[self.space.keep].sum())  # cells that move with a sensitive one
        self.unit = _unit_of_pattern_costs(self.cost)
        positive = self.cost[self.cost > 0]
        self.scale = self.unit or (float(np.median(positive)) if len(positive) else 1.0)
        n = len(self.cost)
        self._lower = self.space.keep.astype(np.float64)
        self._relaxation = Relaxation(self.cost / self.scale, self._lower, np.ones(n))
        self._add(self.inequalities.pool.add(self.inequalities.first_bridges()))

    # ------------------------------------------------------------------ root

    def root(self, deadline: Deadline, upper_bound: float = np.inf, max_rounds: int = 400) -> float:
        """Solve the relaxation by cutting planes, from where it was left; returns the bound."""
        stalled = 0
        self.inequalities.until = deadline
        for _ in range(max_rounds):
            solution = self._relaxation.solve(time_limit_s=deadline.at_least())
            if not solution.optimal:
                break
            before = self.bound
            self._raise(self.scale * self._relaxation.proven(solution.row_dual))
            stalled = stalled + 1 if self.bound < before + 1e-4 * max(before, 1e-9) else 0
            self.y, self.reduced_cost = np.clip(solution.x, 0.0, 1.0), solution.reduced_cost * self.scale
            binding = np.abs(solution.row_dual) > 1e-9
            self.rows = [row for row, binds in zip(self._relaxation.rows, binding, strict=True) if binds]
            if deadline.passed or self.bound >= upper_bound * (1 - 1e-9):
                break
            found = [] if stalled > 10 else self.violated(self.y, dear=stalled <= _PATIENCE)
            if not found:
                break
            if len(self._relaxation.rows) > 3 * len(self.cost):
                self._relaxation.purge(self.y, 0.1)
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

    def violated(self, y: FloatArray, *, dear: bool) -> list[Row]:
        """Inequalities that a fractional point violates: cheap kinds first, dear ones if nothing else is found."""
        i = self.inequalities
        found = i.pool.add(i.bridges(y))
        if i.few_movements:
            for k in range(4):
                found += i.pool.add(i.circuits(y, order=y * (self.rng.uniform(0.5, 1.5, len(y)) if k else 1.0)))
        if len(found) < 5:
            found += i.pool.add(i.capacities(y, clipped=False))
        if found or not dear:
            return found
        return i.pool.add(i.capacities(y, clipped=True)) + i.pool.add(i.partners(y))

    # ------------------------------------------------------------------ tree

    def solve(
        self, incumbent: BoolArray | None, search: Incumbent, deadline: Deadline, nodes: int = -1
    ) -> LazySolution:
        """Branch and cut, from the root's rows and the heuristic's pattern (rows of the space)."""
        cost = search.cost
        lower, upper = self._lower, np.ones(len(self._lower))
        if self.reduced_cost is not None and np.isfinite(cost):  # a row dearer than the gap is in no better pattern
            upper[(self.reduced_cost > cost - self.bound + 1e-6 * abs(cost)) & (lower == 0)] = 0.0
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

    def _separate(self, y: FloatArray, depth: int, round_: int) -> list[Row]:
        i = self.inequalities
        i.until = self._deadline
        self._calls += 1
        if round_ > (_ROUNDS_BELOW_ROOT if depth else 50):
            return []
        pool = i.pool.violated(y, _VIOLATION, _ROWS_PER_ROUND)
        if pool:
            return pool
        found = i.pool.add(i.bridges(y, _VIOLATION))
        if i.few_movements:
            found += i.pool.add(i.circuits(y, order=y, violation=_VIOLATION, most=_ROWS_PER_ROUND))
        if depth > 0 and self._calls % _EVERY:
            return found
        return found or i.pool.add(i.capacities(y, clipped=False))

    def _check(self, y: FloatArray) -> list[Row]:
        """Rows that a 0/1 point violates; an empty list is the proof that the pattern is safe."""
        i = self.inequalities
        i.until = NEVER  # what is not looked at would count as proven
        pool = i.pool.violated(y, 1e-6, 20)
        if pool:
            return pool
        found = i.bridges(y, 0.5)
        return i.pool.add(found) or i.capacities(y, clipped=False, violation=1e-6, most=5)


def _unit_of_pattern_costs(cost: FloatArray) -> float:
    """The largest number of which all costs are multiples; 0 when they are not whole, or too large to tell."""
    whole = np.rint(cost)
    if not (cost == whole).all() or cost.sum() > 1e12:
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64), initial=0))
