"""The attacker who weighs: probabilities of the candidates, given the pattern (beyond minami2019).

The matching attack excludes what is impossible. Somebody who knows how the random weights were drawn
can do more: the chance that a candidate would have led to the published pattern, times what he held
of the candidate before, is its probability, and a cell is narrow when few values carry most of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cellguard._engine.counts import twoway
from cellguard._engine.space.lattice import CandidateLattice
from cellguard._types import FloatArray, IntArray
from cellguard.check.attack.counts import (
    KNOWLEDGE,
    CountAttack,
    CountRule,
    Grid,
    matching_grid_of,
    require_counts_for_matching,
    rule_attacker_knows,
)
from cellguard.exceptions import InputError, raise_if_unknown
from cellguard.nouns.release import Suppression

__all__ = ["WeighingAttack", "weighing_attack"]

_LISTED = 50_000
"""Candidates that are listed at most; more are sampled by a random walk, which visits all alike."""
_STEPS = 60
"""Moves of the walk between two candidates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeighingAttack(CountAttack):
    """Shortest intervals that hold a given share of the probability, per suppressed cell (confidential)."""

    candidates: int
    """Candidates that were weighed."""
    effective: float
    """To how many equally likely candidates their weights amount: 1 / sum of squares."""


def weighing_attack(
    suppression: Suppression,
    rule: CountRule | None = None,
    *,
    knows: str = "mechanism",
    spread: float = 0.15,
    share: float = 0.95,
    prior: Callable[[IntArray], FloatArray] | None = None,
    draws: int = 200,
    sample: int = 1000,
    seed: int = 0,
) -> WeighingAttack:
    """Weigh the candidates of a suppressed two-way frequency table by their probability.

    Parameters
    ----------
    suppression, rule
        As for :func:`cellguard.matching_attack`.
    knows
        As for :func:`cellguard.matching_attack`. The rule alone weighs every candidate alike for which
        the pattern is safe; the algorithm, every survivor; the mechanism, by the chance of the pattern.
    spread
        The weights of the mechanism were drawn as exp(spread * E), E exponential with mean 1. That
        draws may have been refused by the public test is not weighed.
    share
        Probability that an interval must hold.
    prior
        What the attacker held of the counts before: the weight of each count, taken as independent
        between cells; all candidates alike unless given.
    draws, sample
        Draws of weights per candidate, and candidates: both are estimates.
    seed
        Of the sample and the draws.
    """
    require_counts_for_matching(suppression.table)
    rule = rule_attacker_knows(suppression.table) if rule is None else rule
    if rule.loss != "cells":
        raise InputError(f"loss {rule.loss!r}: weighing is for a loss by cells.")
    raise_if_unknown("knows", knows, KNOWLEDGE)
    if not 0 < share < 1:
        raise InputError(f"share {share!r}: a number between 0 and 1 is needed.")
    grid = matching_grid_of(suppression.table, suppression.suppressed)
    if grid is None:
        raise InputError(f"{suppression.table.name}: not a two-way table with published margins.")
    pattern, law = grid.pattern(suppression.suppressed), rule.law(grid)
    rng = np.random.default_rng(seed)
    tables = _candidates_to_weigh(suppression, grid, sample, rng)
    low, high = twoway.feasible_count_intervals(grid.counts, pattern)
    weak = pattern & (high - low < rule.width)
    weight = 1.0 - (law.sensitive(tables) & weak).any(axis=(1, 2))  # there the pattern would not be safe
    if knows != "rule":
        costs = law.base[None]
        if knows == "mechanism":
            factors = np.exp(spread * rng.exponential(size=(draws, *pattern.shape)))
            costs = np.rint(twoway.UNIT * factors).astype(np.int64)
        weight = twoway.optimal_share_of_counts(tables, pattern, law, costs, limit=10**6)
    if prior is not None:
        weight = weight * np.prod(prior(tables[:, pattern] + grid.least), axis=1)
    if not weight.any():  # the sample missed every survivor: nothing was learned
        weight = weight + 1.0
    weight = weight / weight.sum()
    values = grid.of_table(tables, pattern)
    ends = np.array(
        [_shortest_interval_attacker_weighs(values[:, k], weight, share) for k in range(values.shape[1])]
    ).reshape(-1, 2)
    return WeighingAttack(
        suppression=suppression,
        rule=rule,
        cells=np.flatnonzero(suppression.suppressed),
        lower=ends[:, 0],
        upper=ends[:, 1],
        candidates=len(tables),
        effective=float(1.0 / (weight**2).sum()),
    )


def _candidates_to_weigh(suppression: Suppression, grid: Grid, sample: int, rng: np.random.Generator) -> IntArray:
    """Return candidates, all alike: all of them when they are few, otherwise a sample."""
    pattern = grid.pattern(suppression.suppressed)
    if twoway.number_of_count_tables(grid.counts, pattern, _LISTED) < _LISTED:
        tables = twoway.candidate_count_tables(grid.counts, pattern, _LISTED)
        few = len(tables) <= sample
        return tables if few else tables[np.sort(rng.choice(len(tables), sample, replace=False))]
    table = suppression.table
    lattice = CandidateLattice.of(table.relations, suppression.suppressed, *suppression.published_bounds())
    x = np.rint(table.values).astype(np.int64)
    out = []
    for _ in range(sample):
        x = lattice.walk(x, _STEPS, rng)
        out.append(x[grid.cells] - grid.least)
    return np.array(out)


def _shortest_interval_attacker_weighs(values: IntArray, weight: FloatArray, share: float) -> tuple[float, float]:
    """Return the shortest interval of values that holds the share of the weight."""
    points, where = np.unique(values, return_inverse=True)
    total = np.concatenate([[0.0], np.cumsum(np.bincount(where, weight))])
    best = (float(points[0]), float(points[-1]))
    for k in range(len(points)):
        end = int(np.searchsorted(total, total[k] + share - 1e-12))
        if end > len(points):
            break
        if points[end - 1] - points[k] < best[1] - best[0]:
            best = (float(points[k]), float(points[end - 1]))
    return best
