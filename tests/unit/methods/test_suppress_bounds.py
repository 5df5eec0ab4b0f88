"""What is proven of patterns: rows that are left out, statuses and bounds, against all patterns of small tables."""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter

import numpy as np
import pytest

import cellguard as cg
from builders import with_margins
from cellguard._engine.clock import Deadline
from cellguard.methods.limits import Limits
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.proof.exact import Exact
from cellguard.methods.suppress.search.improve import Search
from cellguard.release.release import Status
from patterns_brute_force import Patterns

TABLES = int(os.environ.get("CELLGUARD_TABLES", "90"))
"""Tables whose statuses are compared with a brute force; 500 took 160 s on a busy machine."""


def make_table(rng: np.random.Generator, rows: int, columns: int, *, respondents: int) -> cg.Table:
    """Return a table with margins and two or three sensitive cells, and respondents who know parts of cells."""
    inner = rng.integers(1, 30, (rows, columns)).astype(float)
    full, index, relations = with_margins(inner)
    a, inside = full.ravel(), index[:-1, :-1].ravel()
    s = np.sort(rng.choice(inside, size=int(rng.integers(1, 4)), replace=False))
    levels = {
        "lower": np.minimum(a[s], rng.integers(0, 8, len(s))).astype(float),
        "upper": rng.integers(1, 10, len(s)).astype(float),
        "sliding": rng.integers(0, 14, len(s)).astype(float) * rng.integers(0, 2),
    }
    attackers = [cg.Attacker(name="external")]
    for k in range(respondents):
        known = np.sort(rng.choice(inside, size=int(rng.integers(1, 3)), replace=False))
        most = a.copy()  # what a respondent knows of a sensitive cell leaves its levels open
        most[s] -= np.maximum(levels["lower"], levels["sliding"])
        part = np.floor(np.maximum(most[known], 0.0) * rng.uniform(0.2, 1.0, len(known)))
        attackers.append(cg.Attacker(name=f"respondent {k}", cells=known, lb=part, ub=a[known] + 20))
    weights = rng.integers(1, 20, len(a)) if rng.random() < 0.7 else np.ones(len(a))
    open_ = np.setdiff1d(np.arange(len(a)), s)
    return cg.Table.from_equations(
        a, relations, ub=a + 20, weights=weights, sensitive=s, **levels, attackers=attackers,
        fixed=rng.choice(open_, size=int(rng.choice([0, 0, 2, 4])), replace=False),
    )  # fmt: skip


def make_exact(table: cg.Table) -> tuple[Search, Exact]:
    """Return a search and the program that proves bounds."""
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    search = Search(problem=problem, limits=Limits(time_limit_s=30.0), once=True)
    return search, Exact(search.space)


@pytest.mark.parametrize("seed", range(40))
def test_rows_left_out_are_in_no_optimal_pattern_that_is_needed(seed: int) -> None:
    table = make_table(np.random.default_rng(seed), 2, 3 + seed % 2, respondents=seed % 3)
    search, exact = make_exact(table)
    if not search.start(Deadline.from_limit(30.0)):
        return
    patterns = Patterns(table)
    optimum = patterns.find_least_cost()
    exact.solve_root(Deadline.from_limit(30.0), max_rounds=1 + seed % 4)
    for _ in range(2):  # after the root, and after a tree has raised the bound
        for above in (1.0, 2.0, 3.0, 5.0, 20.0):
            needless = search.space.build_pattern(exact.find_needless_rows(optimum + above)) & ~table.sensitive
            assert patterns.find_least_cost(needless) == optimum
        exact.solve(search.best[search.space.cells], search, Deadline.from_limit(30.0))
        assert exact.bound == pytest.approx(optimum)


def check_claims(table: cg.Table, release: cg.Suppression) -> str:
    """Compare what a release claims with all patterns of its table; return its status."""
    patterns = Patterns(table)
    optimum = patterns.find_least_cost()
    if not release.published:
        assert release.status is Status.INFEASIBLE
        assert optimum == np.inf
        return str(release.status)
    assert patterns.is_safe(release.suppressed)
    assert release.objective >= optimum - 1e-9
    assert not release.bound > optimum + 1e-9  # NaN where nothing is proven
    if release.status is Status.OPTIMAL:
        assert release.objective == pytest.approx(optimum)
    return str(release.status)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "exact", "heuristic"])
def test_statuses_and_bounds_agree_with_all_patterns(method: str) -> None:
    """500 tables in all, several attackers each; `CELLGUARD_TABLES` sets how many."""
    fresh = int(os.environ.get("CELLGUARD_SEED", secrets.randbits(31)))
    sys.stdout.write(f"seed {fresh}\n")
    statuses: Counter[str] = Counter()
    for number in range(TABLES // 3):
        rng = np.random.default_rng([fresh, number])
        table = make_table(rng, 2, 4 if number % 8 == 7 else 2 + number % 2, respondents=1 + number % 4)
        rounds = 5 if method == "heuristic" else None
        statuses[check_claims(table, cg.suppress(table, method=method, rounds=rounds, time_limit_s=30.0))] += 1
    if method != "heuristic":
        assert set(statuses) <= {"optimal", "infeasible"}
    assert statuses["infeasible"] < TABLES // 6
