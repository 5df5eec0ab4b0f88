"""Walks side by side: the same pattern on one core and on several, and nothing lost when somebody stops them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard._engine.clock import NEVER
from cellguard.methods.limits import Limits
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search import walks
from cellguard.methods.suppress.search.improve import Search


@pytest.fixture
def soon_side_by_side(monkeypatch):
    short = replace(walks.WALK_POLICY, rounds_alone=20, turn_rounds=10, rounds_before_ruin=3, rounds_per_ruin=7)
    monkeypatch.setattr(walks, "WALK_POLICY", short)


def started(seed: int = 3) -> Search:
    table = generate.hierarchical(seed, branching=((4, 3), (4,), (3, 3)))
    search = Search(problem=SuppressionProblem.of(table, forced=table.sensitive), limits=Limits(seed=seed))
    assert search.start(NEVER)
    return search


def test_the_pattern_of_some_rounds_does_not_depend_on_the_threads(soon_side_by_side):
    table = generate.hierarchical(3, branching=((4, 3), (4,), (3, 3)))
    made = [cg.suppress(table, method="heuristic", rounds=203, seed=5, threads=n) for n in (1, 2, 3)]
    assert {release.details["rounds"] for release in made} == {203}
    assert len({release.suppressed.tobytes() for release in made}) == 1
    assert made[0].audit().safe


def test_walks_hand_on_what_they_find(soon_side_by_side):
    search = started()
    told: list[float] = []
    search.limits = Limits(threads=2, progress=lambda cost, _: told.append(cost))
    before = search.cost
    search.improve(NEVER, 300)
    assert search.rounds == 300
    assert search.cost <= before
    assert told == sorted(told, reverse=True)
    assert search.problem.check_requests(search.best)[0].all()
    assert search.problem.compute_cost(search.best) == search.cost


def test_who_is_behind_goes_on_from_the_best():
    search = started()
    best, dear = (walks.Current(cost=cost, Z=np.zeros((1, 1)), bank=np.zeros((1, 1))) for cost in (1.0, 2.0))
    two = [walks.Walk(search.copy_with(np.random.default_rng(k)), start) for k, start in enumerate((dear, best))]
    two[1].fresh = [np.ones(len(search.space))]
    pool = len(two[0].search.pool)
    walks._share_patterns(two)
    assert two[0].current is best
    assert two[0].best is best
    assert len(two[0].search.pool) == pool + 1
    assert len(two[1].search.pool) == pool
    assert not two[1].fresh


def test_an_interrupt_keeps_what_was_found(soon_side_by_side, monkeypatch):
    search = started()
    calls = []
    together = walks.run_on_threads

    def interrupted(threads, tasks):
        calls.append(len(tasks))
        found = together(threads, tasks)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(walks, "run_on_threads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.improve(NEVER, 10_000)
    assert calls[-1] == walks.WALK_POLICY.walks
    assert search.rounds == 20 + 4 * 10 * walks.WALK_POLICY.walks
    assert search.problem.check_requests(search.best)[0].all()
