"""Rounding by areas, for tables too large or too hard for branch-and-bound: always a table, always a bound.

1. A first rounding from the top down, each decision one cheapest flow, mended by cycles between pairs
   of areas and, where that is not enough, by a small whole-number program.
2. The relaxation of every family of areas: its bounds add up to a bound for the table (sums above the
   families are left out of the relations: a Lagrangian relaxation with multipliers of 0), and it guides
   a second rounding.
3. Families are decided again, area by area, each decision followed by the relaxation, as thoroughly as time allows.

Levels that the bounds of single cells do not ensure are checked for every rounding that is kept, and
mended by small programs with the violated cuts.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._core.areas import decide_one, decide_parts
from cellguard._engine.clock import OutOfTimeError
from cellguard._engine.standing import Standing
from cellguard._types import FloatArray, IntArray
from cellguard.methods.limits import Limits
from cellguard.methods.rounding.areas.area_relaxation import AreaRelaxation, decide_area_by_area, make_areas_whole
from cellguard.methods.rounding.areas.grid import AreaGrid, Prices
from cellguard.methods.rounding.areas.moves import Moves
from cellguard.methods.rounding.exact import RoundingOutcome
from cellguard.methods.rounding.level_cuts import LevelCuts, LevelsOpenError
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["solve_by_areas"]


_THOROUGH = (100, 400, 1600)
"""Passes over the families: steps that a relaxation takes after every decision."""
_WORTHWHILE = 0.02
"""A pass that closes less than this share of the gap is the last."""
_LEVEL_ROUNDS = 12
"""Maximum number of rounds that repair levels."""


def solve_by_areas(problem: RoundingProblem, grid: AreaGrid, cuts: LevelCuts, limits: Limits) -> RoundingOutcome:
    """Round a table that has coordinates, as :func:`cellguard.methods.rounding.exact.round_exactly` does any other."""
    return _AreaSearch(problem, grid, cuts, limits).run()


class _AreaSearch(Standing[IntArray]):
    def __init__(self, problem: RoundingProblem, grid: AreaGrid, cuts: LevelCuts, limits: Limits) -> None:
        super().__init__(gap=limits.gap, rounding=1e-6)
        self.problem, self.grid, self.cuts, self.limits = problem, grid, cuts, limits
        self.moves = Moves(grid, np.random.default_rng(limits.seed))
        self.constant = problem.compute_loss(np.zeros(problem.n_cells, np.int64))
        self.relaxations: dict[int, AreaRelaxation] = {}
        """Of the families, by the area that their parts add up to."""
        self.rows = csr_array((0, problem.n_cells))
        """Cuts that levels needed so far."""
        self.sides = np.zeros(0)

    # ------------------------------------------------------------------ bookkeeping

    @property
    def late(self) -> bool:
        return self.limits.deadline.passed

    def offer(self, x: IntArray) -> None:
        """Keep a rounding that is better than the best so far and meets every level."""
        protected = None if self.grid.measure_outside(slice(None), x).any() else self.protect(x)
        if protected is not None:
            loss = self.constant + self.grid.compute_price(slice(None), protected)
            if self.take(protected, loss):
                self.limits.tell(loss, min(self.bound, loss))

    # ------------------------------------------------------------------ the phases

    def run(self) -> RoundingOutcome:
        self.offer(self.solve_top_down(self.grid.prices))
        guide = self.relax_families()
        if not self.is_closed() and not self.late and guide is not None:
            x = self.solve_top_down(Prices.from_distance(guide))
            self.moves.cancel_cycles(x, self.grid.prices, 4)
            self.offer(x)
            self.improve()
        best = None if self.best is None else self.grid.expand_to_cells(self.best)
        loss = self.cost if best is None else self.problem.compute_loss(best)
        return RoundingOutcome(
            x=best, objective=loss, bound=min(self.bound, loss), limit=not self.is_closed(), cuts=len(self.sides)
        )

    def solve_top_down(self, prices: Prices) -> IntArray:
        """Decide the largest area, its parts, their parts, ...; repair what lies outside its bounds on the way."""
        grid = self.grid
        x = np.zeros(grid.flat, np.int64)
        full = x.reshape(grid.shape)
        cells, soft = grid.build_cells(prices), grid.soft.ravel()
        top, need, net = grid.top, grid.area_needs, grid.network
        decide_one(net, top, cells, need[top], soft, x[top])
        for g, parts in grid.parts.items():
            target = x[g] + grid.area_sums[g].ravel()
            decide_parts(net, parts, target, cells, need, soft, x)
            self.moves.repair_area(full, g, prices)
        self.moves.cancel_cycles(full, prices, 2)
        return full

    def relax_families(self) -> FloatArray | None:
        """Bound the table by the relaxations of its families; returns where these would like every cell to be."""
        grid, p = self.grid, self.grid.prices
        guide = p.kink + 0.5 * (1.0 - p.slope / np.maximum(p.outer, 1e-12))
        alone = np.ones(grid.shape[0], np.bool_)
        bound = self.constant
        for g in grid.families:
            parts = grid.parts[g]
            relaxation = AreaRelaxation(grid, parts, grid.area_sums[g], parent=g)
            left_s = self.limits.deadline.left
            if left_s <= 0 or not relaxation.solve(time_limit_s=left_s):
                continue
            self.relaxations[g] = relaxation
            bound += relaxation.bound
            guide[parts], guide[g] = relaxation.x[:-1], relaxation.x[-1]
            alone[parts] = alone[g] = False
        bound += sum(self.compute_least_price(int(g)) for g in np.flatnonzero(alone))
        self.prove(self.problem.round_up_to_attainable(bound, self.constant))
        return None if self.late else guide

    def compute_least_price(self, g: int) -> float:
        """Least price of one area when all others are left out."""
        grid = self.grid
        x = np.empty(grid.flat[1], np.int64)
        decide_one(grid.network, g, grid.build_cells(grid.prices), grid.area_needs[g], grid.soft.ravel(), x)
        return grid.compute_price(np.array([g]), x.reshape(1, *grid.shape[1:]))

    def improve(self) -> None:
        """Decide every family again, its sum kept, more and more thoroughly."""
        for steps in _THOROUGH:
            if self.best is None or self.is_closed() or self.late:
                return
            before = self.missing
            x = self.best.copy()
            self.decide_again(x, steps)
            self.moves.cancel_cycles(x, self.grid.prices, 3)
            self.offer(x)
            if before - self.missing < _WORTHWHILE * before:
                return

    def decide_again(self, x: IntArray, steps: int) -> None:
        """Decide the areas of every family one by one; keep what is better."""
        grid = self.grid
        for g, relaxation in self.relaxations.items():
            parts = grid.parts[g]
            old = x[parts].copy()
            relaxation.return_to_root()
            relaxation.settle(len(parts), x[g])
            try:
                decide_area_by_area(relaxation, x[g] + grid.area_sums[g], x, steps=steps, deadline=self.limits.deadline)
            except OutOfTimeError:
                x[parts] = old
                return
            self.moves.cancel(x, self.moves.draw_pairs(parts), grid.prices)
            better = grid.compute_price(parts, x[parts]) < grid.compute_price(parts, old)
            if not better or grid.measure_outside(parts, x[parts]).any():
                x[parts] = old

    # ------------------------------------------------------------------ levels

    def protect(self, x: IntArray) -> IntArray | None:
        """Mend a rounding until it meets every level; None if that does not succeed."""
        x = x.copy()
        for _ in range(_LEVEL_ROUNDS):
            try:
                C, sides = self.cuts.find_violated(self.grid.expand_to_cells(x).astype(np.float64), max_cuts=50)
            except LevelsOpenError:
                return None
            if len(sides) == 0:
                return x
            self.rows, self.sides = csr_array(vstack([self.rows, C])), np.concatenate([self.sides, sides])
            if not all(self.repair_level(x, cut) for cut in range(len(self.sides) - len(sides), len(self.sides))):
                return None
        return None

    def repair_level(self, x: IntArray, cut: int) -> bool:
        """Decide a few areas of a family again so that a cut, and all others that touch them, hold."""
        grid = self.grid
        cells = grid.blocks.cells
        area_of = np.empty(self.problem.n_cells, np.int64)
        area_of[cells.reshape(len(cells), -1).T] = np.arange(len(cells))
        support = self.rows.indices[self.rows.indptr[cut] : self.rows.indptr[cut + 1]]
        touched = np.intersect1d(area_of[support], self.moves.leaves)
        if len(touched) == 0:
            return False
        siblings = grid.parts[int(grid.parent[touched[0]])]
        first = np.intersect1d(touched, siblings)
        others = self.moves.rng.permutation(np.setdiff1d(siblings, first))
        for size in (4, 6, 10):
            chosen = np.concatenate([first, others])[:size]
            inside = cells[chosen].ravel()
            rows = csr_array(self.rows[:, inside])
            sides = self.sides - self.rows @ grid.expand_to_cells(x) + rows @ x[chosen].ravel()
            some = np.diff(rows.indptr) > 0
            more = rows[some], sides[some]
            whole = make_areas_whole(grid, chosen, x[chosen].sum(axis=0), time_limit_s=10.0, more=more)
            if whole is not None:
                x[chosen] = whole
                return True
        return False
