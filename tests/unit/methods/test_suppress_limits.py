"""Limits of suppression are a status, and large tables are cleaned up by other routes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard.methods.limits import Limits
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search import improve
from cellguard.methods.suppress.search.construct import construct
from cellguard.methods.suppress.search.improve import Search
from cellguard.methods.suppress.search.reroute import Routes
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.release.release import Status


def table_of(seed: int, *, insider: bool = False) -> cg.Table:
    table = generate.hierarchical(seed, branching=((3, 3), (4,), (3, 2)))
    if not insider:
        return table
    known = np.flatnonzero(~table.sensitive & ~table.fixed & (table.values > 0))[:2]
    knows = Attacker(name="one of them", cells=known, lb=table.values[known], ub=table.values[known])
    return table.with_(attackers=(EXTERNAL, knows))


@pytest.fixture
def every_table_is_heavy(monkeypatch):
    low = replace(improve.SEARCH_POLICY, many_rows=5, many_requests=1, rigid_rows=1000, max_echelon_work=0)
    monkeypatch.setattr(improve, "SEARCH_POLICY", low)


@pytest.mark.parametrize("insider", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_other_routes_keep_a_pattern_safe_and_make_it_cheaper(seed, insider):
    problem = SuppressionProblem.of(table := table_of(seed, insider=insider), forced=table.sensitive)
    search = Search(problem=problem, limits=Limits())
    nothing = np.zeros((0, len(search.space)))
    rows, found, failed = construct(search.protector, search.forced_rows, nothing, largest_first=True)
    assert not failed
    pattern = search.space.build_pattern(rows)
    routes = Routes(problem, pattern, (search.space, np.array(found)), NEVER)
    routes.clean(NEVER)
    assert problem.check_requests(routes.pattern)[0].all()
    assert problem.compute_cost(routes.pattern) <= problem.compute_cost(pattern)
    assert not (routes.pattern & ~pattern).any()
    again = Routes(problem, problem.usable | problem.forced, routes.movements, NEVER)
    assert again.improve(np.random.default_rng(1), NEVER, 10) == 10
    assert problem.check_requests(again.pattern)[0].all()
    assert problem.compute_cost(again.pattern) <= problem.compute_cost(routes.pattern)


def test_the_verb_uses_them_and_repeats_itself(every_table_is_heavy):
    table = table_of(4)
    first, second = (cg.suppress(table, method="heuristic", rounds=5, seed=3) for _ in range(2))
    assert first.audit().safe
    assert first.details["rounds"] == 5
    assert (first.suppressed == second.suppressed).all()


@pytest.mark.parametrize("insider", [False, True])
def test_auto_proves_a_bound_of_heavy_tables(every_table_is_heavy, insider):
    table = table_of(4, insider=insider)
    assert Search(problem=SuppressionProblem.of(table, forced=table.sensitive), limits=Limits()).heavy
    release = cg.suppress(table, method="auto", time_limit_s=5)
    assert release.audit().safe
    assert 0 < release.bound <= release.objective
    assert release.objective <= cg.suppress(table, method="heuristic", rounds=5).objective


def test_counted_rounds_of_heavy_tables_give_the_same_pattern(every_table_is_heavy):
    first, second = (cg.suppress(table_of(4), method="auto", rounds=5, time_limit_s=limit) for limit in (40.0, 80.0))
    assert (first.suppressed == second.suppressed).all()
    assert first.bound == second.bound > 0


def test_auto_proves_a_large_two_way_table_at_once(csplib):
    release = cg.suppress(cg.Table.read(csplib("cbs")), time_limit_s=60)
    assert release.status is Status.OPTIMAL
    assert release.objective == release.bound == 403
    assert release.details["rounds"] == 0


@pytest.mark.parametrize("method", ["heuristic", "auto", "exact"])
def test_a_limit_of_nothing_is_a_status(method):
    release = cg.suppress(table_of(1), method=method, time_limit_s=0.0)
    assert release.status is Status.TIME_LIMIT
    assert not release.published or release.audit().safe


def test_a_passed_deadline_confirms_nothing():
    problem = SuppressionProblem.of(table := table_of(2), forced=table.sensitive)
    assert not problem.check_requests(problem.usable | problem.forced, Deadline.from_limit(0.0))[0].all()


def test_many_attackers_are_judged_as_each_alone():
    problem = SuppressionProblem.of(table := table_of(0, insider=True), forced=table.sensitive)
    rng = np.random.default_rng(5)
    for _ in range(5):
        pattern = problem.forced | (problem.usable & (rng.random(table.n_cells) < 0.3))
        met, _ = problem.check_requests(pattern)
        for k in np.unique(problem.requests.attacker).tolist():
            alone = np.flatnonzero(problem.requests.attacker == k)
            down, up = problem.get_slack(k)
            r = problem.requests.select(alone)
            found = compute_ranges(
                Sight(
                    problem.relations,
                    np.where(pattern, -down, 0.0),
                    np.where(pattern, up, 0.0),
                    np.zeros(table.n_cells),
                ),
                AskedRanges(r.cell, r.lower, r.upper, r.sliding),
            )
            assert (met[alone] == found.safe).all()
