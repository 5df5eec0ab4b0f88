"""Rounds against respondents: what one has proven stays proven in the next, in which more is asked."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import cellguard as cg
from cellguard.methods.limits import Limits
from cellguard.methods.respondents import _Rounds
from cellguard.nouns.release import Status, Suppression


def test_the_bound_that_is_told_never_falls():
    table = cg.Table.from_leaves({"sex": ["f", "m"]}, [3.0, 4.0])
    told = []
    proven = iter([[(9.0, 5.0), (8.0, 7.0)], [(9.5, float("nan")), (9.5, 2.0), (9.0, 8.0)]])

    def verb(table, *, time_limit_s, progress):
        steps = next(proven)
        for cost, bound in steps:
            progress(cost, bound)
        nothing = np.zeros(table.n_cells, bool)
        last = steps[-1]
        return Suppression(table=table, status=Status.FEASIBLE, objective=last[0], bound=last[1], suppressed=nothing)

    rounds = _Rounds(verb, (), {"progress": lambda cost, bound: told.append((cost, bound))}, Limits(time_limit_s=9))
    for _ in range(2):
        rounds._protect(table, 1.0)
    assert told == [(9.0, 5.0), (8.0, 7.0), (9.5, 7.0), (9.5, 7.0), (9.0, 8.0)]


def mending(costs):
    """Return rounds of a verb that ends of itself and is seen through, and how often it was called."""
    table = cg.Table.from_leaves({"sex": ["f", "m"]}, [3.0, 4.0])
    calls = []

    def release(cost):
        nothing = np.zeros(table.n_cells, bool)
        return Suppression(table=table, status=Status.FEASIBLE, objective=cost, suppressed=nothing)

    def verb(table, *, time_limit_s):
        calls.append(time_limit_s)
        return release(costs[0])

    rounds = _Rounds(verb, (), {}, Limits(time_limit_s=100.0))
    rounds.mend = lambda *_: release(costs[1])
    rounds._audit = lambda seen: SimpleNamespace(safe=seen.objective > costs[0], checked=1, findings=())
    return rounds, table, calls


def test_a_round_that_is_mended_for_next_to_nothing_is_not_planned_again():
    rounds, table, calls = mending((100.0, 101.0))
    assert rounds.run(table, near=True).objective == 101.0
    assert len(calls) == 1


def test_a_round_that_is_mended_dearly_is_planned_again():
    rounds, table, calls = mending((100.0, 110.0))
    assert rounds.run(table, near=True).objective == 110.0
    assert len(calls) > 1


def test_what_can_be_mended_gets_half_of_the_time_at_once():
    rounds, table, calls = mending((100.0, 101.0))
    rounds.run(table, near=True)
    assert 40.0 < calls[0] <= 50.0
