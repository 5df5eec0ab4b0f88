"""Statuses and bounds of small tables with respondents agree with all their patterns, judged by plain programs."""

import os
import secrets
from collections import Counter
from dataclasses import replace

import numpy as np

import cellguard as cg
from cellguard.model.levels import add_respondents, compute_required_levels, list_attackers
from cellguard.release.release import Status
from patterns_brute_force import Patterns

TABLES = int(os.environ.get("CELLGUARD_TABLES", "40"))
"""Tables to compare."""


def make_table(rng: np.random.Generator) -> cg.Table:
    """Return turnover by three regions and two branches, in which some respondents are alone in a cell."""
    n = int(rng.integers(8, 24))
    frame = {
        "region": np.array([f"r{k}" for k in rng.integers(0, 3, n)]),
        "branch": np.array([f"b{k}" for k in rng.integers(0, 2, n)]),
        "turnover": np.round(rng.pareto(1.2, n) * 50 + 1, 2),
        "firm": np.arange(n).astype(str),
    }
    table = cg.tabulate(frame, by=["region", "branch"], value="turnover", holding="firm")
    table = table.with_(ub=np.full(table.n_cells, 10.0 * table.values.max()))  # plain programs need bounds
    return table.apply(cg.PPercent(int(rng.choice([10, 20]))), cg.MinFrequency(2, percent=int(rng.choice([10, 30]))))


def list_all_levels(table: cg.Table) -> cg.Table:
    """Return the table with every attacker and every level that a release must keep against them."""
    table = add_respondents(table)
    attackers = []
    for attacker in list_attackers(table):
        need = compute_required_levels(table, attacker, everywhere=True)
        levels = {"lower": need.lower, "upper": need.upper, "sliding": need.sliding}
        attackers.append(replace(attacker, sensitive=need.cells, **levels) if attacker.derived else attacker)
    return table.with_(attackers=tuple(attackers), insiders=True)


def test_statuses_and_bounds_agree_with_all_patterns() -> None:
    seed = int(os.environ.get("CELLGUARD_SEED", secrets.randbits(31)))
    rng, seen = np.random.default_rng(seed), Counter()
    for number in range(TABLES):
        where = f"seed {seed}, table {number}"
        table = make_table(rng)
        if not table.sensitive.any():
            continue
        release = cg.suppress(table, time_limit_s=20.0, method="auto" if number % 2 else "exact")
        patterns = Patterns(list_all_levels(table))
        least = patterns.find_least_cost()
        seen[release.status] += 1
        if release.status is Status.INFEASIBLE:
            assert least == np.inf, where
            continue
        assert release.published, where
        assert patterns.is_safe(release.suppressed), where
        assert release.objective >= least - 1e-6 * abs(least), where
        assert not release.bound > least * (1 + 1e-6), where  # no bound is a bound too
        if release.status is Status.OPTIMAL:
            assert abs(release.objective - least) <= 1e-6 * abs(least), where
    assert seen[Status.OPTIMAL] > TABLES // 3, seen
