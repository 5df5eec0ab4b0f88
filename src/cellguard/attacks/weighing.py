"""The weighing attack: probabilities of the candidates, given the pattern (beyond minami2019).

The matching attack excludes what is impossible. An attacker who knows how the random weights were drawn can do more:
the probability of a candidate is the chance that it would have led to the published pattern, times its prior
probability. A cell is narrow when few values carry most of the probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellguard._attack_options import COUNT_KNOWLEDGE
from cellguard._engine.counts import twoway
from cellguard._engine.space.lattice import CandidateLattice
from cellguard._types import FloatArray, IntArray
from cellguard.attackers.public import add_public_knowledge
from cellguard.attacks.counts import (
    CountAttack,
    CountRule,
    Grid,
    find_grid,
    infer_rule,
    require_counts_for_matching,
)
from cellguard.exceptions import InputError, raise_if_unknown
from cellguard.release.release import Suppression

__all__ = ["WeighingAttack", "attack_by_weighing"]

_LISTED = 50_000
"""Maximum number of candidates to list; more are sampled by a random walk, which visits all equally often."""
_STEPS = 60
"""Moves of the walk between two candidates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WeighingAttack(CountAttack):
    """Shortest intervals that hold a given share of the probability, per suppressed cell (confidential)."""

    candidates: int
    """Candidates that were weighed."""
    effective: float
    """Effective number of equally likely candidates: 1 / sum of squares of their weights."""
    knows: str = "mechanism"
    """What the attacker knows about how the pattern was made."""

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line: numbers of cells, no cell's value."""
        return {
            "method": "weigh",
            "knows": self.knows,
            "suppressed": len(self.cells),
            "primary": int(self.primary.sum()),
            "unsafe": int(self.unsafe.sum()),
            "candidates": self.candidates,
            "effective": self.effective,
        }


def attack_by_weighing(
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
        As for :func:`cellguard.matching_attack`. With the rule alone, every candidate for which the pattern is safe
        has the same weight; with the algorithm, every survivor; with the mechanism, the chance of the pattern.
    spread
        The weights of the mechanism were drawn as exp(spread * E), E exponential with mean 1. The attack ignores
        that the public test may have rejected draws.
    share
        Probability that an interval must hold.
    prior
        What the attacker knew about the counts before: the weight of each count, independent between cells; by
        default all candidates are equally likely.
    draws, sample
        Draws of weights per candidate, and candidates: both give estimates.
    seed
        Of the sample and the draws.
    """
    suppression = replace(suppression, table=add_public_knowledge(suppression.table))
    require_counts_for_matching(suppression.table)
    rule = infer_rule(suppression.table) if rule is None else rule
    if rule.loss != "cells":
        raise InputError(f"loss {rule.loss!r}: weighing is for a loss by cells.")
    raise_if_unknown("knows", knows, COUNT_KNOWLEDGE)
    if not 0 < share < 1:
        raise InputError(f"share {share!r}: a number between 0 and 1 is needed.")
    grid = find_grid(suppression.table, suppression.suppressed)
    if grid is None:
        raise InputError(f"{suppression.table.name}: not a two-way table with published margins.")
    pattern, law = grid.restrict_pattern(suppression.suppressed), rule.build_law(grid)
    rng = np.random.default_rng(seed)
    tables = _list_candidates(suppression, grid, sample, rng)
    low, high = twoway.compute_feasible_intervals(grid.counts, pattern)
    weak = pattern & (high - low < rule.width)
    weight = 1.0 - (law.find_sensitive(tables) & weak).any(axis=(1, 2))  # the pattern would not be safe for these
    if knows != "rule":
        costs = law.base[None]
        if knows == "mechanism":
            # a weight above the cost of the whole table is never needed, and would overflow
            largest = np.log(2.0 * pattern.size)
            factors = np.exp(np.minimum(spread * rng.exponential(size=(draws, *pattern.shape)), largest))
            costs = np.rint(twoway.UNIT * factors).astype(np.int64)
        weight = twoway.estimate_optimal_shares(tables, pattern, law, costs, limit=10**6)
    if prior is not None:
        weight = weight * np.prod(prior(tables[:, pattern] + grid.least), axis=1)
    if not weight.any():  # the sample missed every survivor: nothing was learned
        weight = weight + 1.0
    weight = weight / weight.sum()
    values = grid.expand_counts(tables, pattern)
    ends = np.array([_find_shortest_interval(values[:, k], weight, share) for k in range(values.shape[1])]).reshape(
        -1, 2
    )
    return WeighingAttack(
        suppression=suppression,
        rule=rule,
        cells=np.flatnonzero(suppression.suppressed),
        lower=ends[:, 0],
        upper=ends[:, 1],
        candidates=len(tables),
        effective=float(1.0 / (weight**2).sum()),
        knows=knows,
    )


def _list_candidates(suppression: Suppression, grid: Grid, sample: int, rng: np.random.Generator) -> IntArray:
    """Return equally likely candidates: all of them if they are few, otherwise a sample."""
    pattern = grid.restrict_pattern(suppression.suppressed)
    if twoway.number_of_count_tables(grid.counts, pattern, _LISTED) < _LISTED:
        tables = twoway.enumerate_candidate_tables(grid.counts, pattern, _LISTED)
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


def _find_shortest_interval(values: IntArray, weight: FloatArray, share: float) -> tuple[float, float]:
    """Return the shortest interval of values that holds the required share of the weight."""
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
