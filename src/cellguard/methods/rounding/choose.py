"""Which way to round: the plain model first, then by a proof where one is within reach, by areas where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._engine.clock import now
from cellguard._engine.standing import Standing
from cellguard.exceptions import InputError
from cellguard.methods.demands import Demand
from cellguard.methods.keys import draw_for_table
from cellguard.methods.limits import Limits
from cellguard.methods.rounding.areas.blocks import find_blocks
from cellguard.methods.rounding.areas.by_areas import solve_by_areas
from cellguard.methods.rounding.areas.grid import make_area_grid
from cellguard.methods.rounding.exact import PROVEN, RoundingOutcome, round_exactly
from cellguard.methods.rounding.level_cuts import LevelCuts
from cellguard.methods.rounding.plain import GOOD_ENOUGH_GAP, KnownRounding, round_plainly
from cellguard.methods.rounding.problem import RoundingProblem
from cellguard.model.key import Key

__all__ = ["round_by_method"]

_EASY = 500
"""Maximum number of free cells for branch-and-bound when the plain model was not solved in its time."""
_PROVABLE = 20_000
"""Maximum number of free cells for branch-and-bound after the table was rounded by areas."""
_PROOF_TIME_S = 60.0
"""How long that is tried, at least, unless the deadline comes first."""


def round_by_method(
    problem: RoundingProblem,
    demands: list[Demand],
    limits: Limits,
    key: Key,
    *,
    method: str,
    known: KnownRounding | None = None,
) -> RoundingOutcome:
    """Round by a method.

    ``exact``: relaxation and branch-and-bound; ``areas``: flows and relaxations of parts of the table; ``auto``.
    A `known` rounding of an earlier search is led to the levels that it misses.
    """
    if len(problem.impossible):
        return RoundingOutcome(x=None, objective=np.inf, bound=np.inf)
    begin = now()
    cuts = LevelCuts(problem, demands, limits.deadline)
    plain = RoundingOutcome(x=None, objective=np.inf, bound=-np.inf, limit=True)
    if method != "areas":
        plain = round_plainly(problem, cuts, limits, known)
        if not plain.limit or limits.deadline.passed or (method == "auto" and _is_good_enough(problem, plain)):
            return plain
    # flows know no holes: secret coins decide on which side of them the cells go
    drawn = problem.draw_coins(draw_for_table(key, "round holes", problem.table)) if problem.hole.any() else problem
    blocks = (
        find_blocks(drawn.table.relations)
        if method == "areas" or (method == "auto" and _is_hard_to_round(problem))
        else None
    )
    grid = None if blocks is None else make_area_grid(drawn, blocks)
    if grid is None:
        if method == "areas":
            raise InputError(
                "method 'areas' needs one base and a table over areas (or slices), lines and a hierarchy.",
                hint="leave the method to 'auto'.",
            )
        return _join_outcomes(round_exactly(problem, cuts, limits, start=plain.x), plain, limits)
    found = solve_by_areas(drawn, grid, cuts, limits)
    if drawn is not problem:  # what is proven there holds for these coins only
        found = replace(found, bound=min(found.objective, problem.least_loss), limit=True)
    found = _join_outcomes(found, plain, limits)
    free = int(problem.free.sum())
    if method == "areas" or not found.limit or (found.x is not None and free > _PROVABLE):
        return found
    if found.x is not None:
        longer = limits.spent_s + max(_PROOF_TIME_S, now() - begin)
        limits = replace(limits, time_limit_s=min(limits.time_limit_s, longer))
    return _join_outcomes(round_exactly(problem, cuts, limits, start=found.x), found, limits)


def _join_outcomes(last: RoundingOutcome, before: RoundingOutcome, limits: Limits) -> RoundingOutcome:
    """Return the better rounding of two searches for the same problem, with the better of their bounds."""
    best = last if last.objective <= before.objective else before
    bound = min(best.objective, max(last.bound, before.bound))
    both = Standing(best=best.x, cost=best.objective, bound=bound, gap=limits.gap, rounding=PROVEN)
    return replace(
        best, bound=bound, limit=not both.is_closed(), timed_out=last.timed_out,
        fractional=max(last.fractional, before.fractional),
        cuts=max(last.cuts, before.cuts), plain_rounds=max(last.plain_rounds, before.plain_rounds),
    )  # fmt: skip


def _is_good_enough(problem: RoundingProblem, found: RoundingOutcome) -> bool:
    """Whether a rounding is so close to its bound that the proof of a large table would take too long."""
    if found.x is None or int(problem.free.sum()) <= _EASY:
        return False
    return found.objective - found.bound <= GOOD_ENOUGH_GAP * abs(found.objective)


def _is_hard_to_round(problem: RoundingProblem) -> bool:
    """Whether most free cells are in three relations or more: no network, and too large to be searched."""
    free = problem.free
    if int(free.sum()) <= _EASY:
        return False
    count = np.bincount(problem.table.relations.indices, minlength=problem.n_cells)
    return float(np.median(count[free])) >= 3
