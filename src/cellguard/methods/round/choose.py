"""Which way to round: by a proof where one is within reach, by areas where it is not, or both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._engine.clock import now
from cellguard._engine.standing import Standing
from cellguard.exceptions import InputError
from cellguard.methods.demands import Demand
from cellguard.methods.limits import Limits
from cellguard.methods.round.blocks import find_blocks
from cellguard.methods.round.by_areas import solve_by_areas
from cellguard.methods.round.exact import PROVEN, RoundingOutcome, round_exactly
from cellguard.methods.round.grid import make_area_grid
from cellguard.methods.round.level_cuts import LevelCuts
from cellguard.methods.round.problem import RoundingProblem

__all__ = ["round_by_method"]

_EASY = 3000
"""Problems with so many free cells are left to branch-and-bound."""
_PROVABLE = 20_000
"""Problems with so many free cells are tried by branch-and-bound after they were rounded by areas."""
_PROOF_TIME_S = 60.0
"""How long that is tried, at least, unless the deadline comes first."""


def round_by_method(problem: RoundingProblem, demands: list[Demand], limits: Limits, *, method: str) -> RoundingOutcome:
    """Round by a method.

    ``exact``: relaxation and branch-and-bound; ``areas``: flows and relaxations of parts of the table; ``auto``.
    """
    if len(problem.impossible):
        return RoundingOutcome(x=None, objective=np.inf, bound=np.inf)
    begin = now()
    cuts = LevelCuts(problem, demands, limits.deadline)
    # flows know no holes: coins tell on which side of them the cells go
    drawn = problem.with_coins(np.random.default_rng([limits.seed, 1])) if problem.hole.any() else problem
    blocks = (
        find_blocks(drawn.table.relations)
        if method == "areas" or (method == "auto" and _hard_to_round(problem))
        else None
    )
    grid = None if blocks is None else make_area_grid(drawn, blocks)
    if grid is None:
        if method == "areas":
            raise InputError(
                "method 'areas' needs one base and a table over areas (or slices), lines and a hierarchy.",
                hint="leave the method to 'auto'.",
            )
        return round_exactly(problem, cuts, limits)
    found = solve_by_areas(drawn, grid, cuts, limits)
    free = int(problem.free.sum())
    if method == "areas" or not found.limit or (found.x is not None and free > _PROVABLE):
        return found
    if found.x is not None:
        longer = limits.spent_s + max(_PROOF_TIME_S, now() - begin)
        limits = replace(limits, time_limit_s=min(limits.time_limit_s, longer))
    proven = round_exactly(problem, cuts, limits, start=found.x)
    bound = max(found.bound, proven.bound) if drawn is problem else proven.bound  # the other holds for these coins only
    both = Standing(best=proven.x, cost=proven.objective, bound=bound, gap=limits.gap, rounding=PROVEN)
    return replace(proven, bound=bound, limit=proven.limit and not both.closed())


def _hard_to_round(problem: RoundingProblem) -> bool:
    """Whether most free cells stand in three relations or more: no network, and too large to be searched."""
    free = problem.free
    if int(free.sum()) <= _EASY:
        return False
    count = np.bincount(problem.table.relations.indices, minlength=problem.n_cells)
    return float(np.median(count[free])) >= 3
