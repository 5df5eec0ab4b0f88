"""Rounds against respondents: what one has proven stays proven in the next, in which more is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

import cellguard as cg
from cellguard.methods.limits import Limits
from cellguard.methods.procedure import Candidate, Problem, Procedure
from cellguard.methods.respondents import RespondentRounds
from cellguard.release.release import Status, Suppression

TABLE = cg.Table.from_leaves({"sex": ["f", "m"]}, [3.0, 4.0])


def suppression(cost: float, bound: float = float("nan")) -> Suppression:
    nothing = np.zeros(TABLE.n_cells, bool)
    return Suppression(table=TABLE, status=Status.FEASIBLE, objective=cost, bound=bound, suppressed=nothing)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted(Procedure):
    """A method that reports what it is told to, and can repair whatever the audit finds."""

    plans_near_respondents = True
    repairs_every_finding = True
    steps: Any
    """Costs and bounds of each search, as they are reported."""
    repaired: float = 0.0
    """Cost of a repaired release."""
    limits: list[float] = field(default_factory=list)
    """Seconds that each search had."""

    def solve(self, problem, limits):
        self.limits.append(limits.time_limit_s)
        reports = next(self.steps)
        for report in reports:
            limits.tell(*report)
        return Candidate(release=suppression(*reports[-1]), problem=problem)

    def repair(self, candidate, findings, limits):  # noqa: ARG002 - the contract of a method
        return replace(candidate, release=suppression(self.repaired))


def test_the_bound_that_is_told_never_falls():
    told = []
    proven = iter([[(9.0, 5.0), (8.0, 7.0)], [(9.5, float("nan")), (9.5, 2.0), (9.0, 8.0)]])
    limits = Limits(time_limit_s=9, progress=lambda cost, bound: told.append((cost, bound)))
    rounds = RespondentRounds(Scripted(steps=proven), limits)
    rounds._solve(TABLE, 1.0)
    assert told == []  # nothing that the audit accepted, so no progress
    rounds.accepted = Candidate(release=suppression(10.0, 1.0), problem=Problem(table=TABLE))
    rounds._solve(TABLE, 1.0)
    assert told == [(10.0, 8.0)]  # the accepted cost, and only bounds above the best of all rounds


def repairing(planned: float, repaired: float) -> tuple[RespondentRounds, list[float]]:
    """Return rounds of a method whose releases disclose something until they are repaired, and its time limits."""
    procedure = Scripted(steps=iter([[(planned, float("nan"))]] * 20), repaired=repaired)
    rounds = RespondentRounds(procedure, Limits(time_limit_s=100.0))
    rounds._audit = lambda seen: SimpleNamespace(safe=seen.release.objective > planned, checked=1, findings=())
    return rounds, procedure.limits


def test_a_round_that_is_repaired_for_next_to_nothing_is_not_planned_again():
    rounds, limits = repairing(100.0, 101.0)
    assert rounds.run(TABLE).release.objective == 101.0
    assert len(limits) == 1


def test_a_round_that_is_repaired_at_a_high_cost_is_planned_again():
    rounds, limits = repairing(100.0, 110.0)
    assert rounds.run(TABLE).release.objective == 110.0
    assert len(limits) > 1


def test_what_can_be_repaired_gets_half_of_the_time_at_once():
    rounds, limits = repairing(100.0, 101.0)
    rounds.run(TABLE)
    assert 40.0 < limits[0] <= 50.0
