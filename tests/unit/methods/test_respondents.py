"""Rounds against respondents: what one has proven stays proven in the next, in which more is asked."""

from __future__ import annotations

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
