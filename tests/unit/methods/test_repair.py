"""A pattern that somebody sees through is mended: nothing is published again, and the audit accepts it."""

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.clock import NEVER
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard.methods.limits import Limits
from cellguard.methods.procedure import Candidate, Problem
from cellguard.methods.respondents import RespondentRounds, _clear_respondent_requests
from cellguard.methods.suppress.everyone import complete_pattern
from cellguard.methods.suppress.repair import repair_pattern
from cellguard.methods.suppress.suppress import SuppressProcedure
from cellguard.model.levels import add_respondents
from cellguard.release.release import Status, Suppression


def survey(seed):
    """Return a table of turnover in which many are alone in a cell."""
    rng = np.random.default_rng(seed)
    n = 160
    frame = {
        "region": np.array([f"r{k}" for k in rng.integers(0, 6, n)]),
        "branch": np.array([f"b{k}" for k in rng.integers(0, 12, n)]),
        "turnover": np.ceil(rng.pareto(1.1, n) * 50) + 1,
        "firm": np.arange(n).astype(str),
    }
    table = cg.tabulate(frame, by=["region", "branch"], value="turnover", holding="firm")
    return table.apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))


@pytest.mark.parametrize("seed", range(6))
def test_what_respondents_see_through_is_closed(seed):
    table = survey(seed)
    naive = cg.suppress(table.with_(insiders=False), method="heuristic", rounds=3)
    release = Suppression(table=table, status=naive.status, objective=0.0, suppressed=naive.suppressed)
    found = cg.audit(release)
    assert not found.safe
    more = repair_pattern(release.suppressed, found, NEVER)
    assert more is not None
    assert more[release.suppressed].all()
    again = Suppression(table=found.release.table, status=naive.status, objective=0.0, suppressed=more)
    assert cg.audit(again).safe


def test_an_audit_without_time_mends_nothing():
    table = survey(0)
    release = cg.suppress(table, method="heuristic", rounds=0)
    assert repair_pattern(release.suppressed, cg.audit(release), NEVER) is None  # nothing to mend


@pytest.mark.parametrize("seed", range(3))
def test_one_quick_search_is_enough(seed):
    """A pattern that was planned against no respondent is completed at once, without another search."""
    rounds = RespondentRounds(SuppressProcedure(), Limits(time_limit_s=60.0))
    searches = []
    solve = rounds._solve
    rounds._solve = lambda *asked: searches.append(asked) or solve(*asked)
    table = _clear_respondent_requests(add_respondents(survey(seed)))
    planned = rounds._find_quick(table)
    assert len(searches) == 1
    assert rounds.accepted.release.audit().safe
    assert any(len(a.sensitive) for a in planned.attackers if a.derived)  # and the next search knows of it


@pytest.mark.parametrize("seed", range(4))
def test_a_pattern_is_completed_against_every_respondent(seed):
    table = add_respondents(survey(seed))
    naive = cg.suppress(table.with_(insiders=False, attackers=()), method="heuristic", rounds=3)
    completed = complete_pattern(table, naive.suppressed, NEVER, ShownMovements())
    assert completed is not None
    assert completed.withheld[naive.suppressed].all()
    assert len(completed.cell) > 0
    release = Suppression(table=table, status=naive.status, objective=0.0, suppressed=completed.withheld)
    assert cg.audit(release).safe
    assert not len(complete_pattern(table, completed.withheld, NEVER, ShownMovements()).cell)  # nothing is left


def test_progress_reports_safe_patterns_only():
    """Patterns that respondents can still undo are cheaper: a curve with them would rise at the end."""
    told = []
    release = cg.suppress(survey(3), time_limit_s=3.0, progress=lambda cost, _: told.append(cost))
    assert told
    assert told == sorted(told, reverse=True)
    assert told[-1] == release.objective


def test_what_is_mended_is_not_called_optimal():
    table = survey(1)
    naive = cg.suppress(table.with_(insiders=False), method="heuristic", rounds=3)
    release = Suppression(table=table, status=Status.OPTIMAL, objective=naive.objective, suppressed=naive.suppressed)
    candidate = Candidate(release=release, problem=Problem(table=table))
    repaired = SuppressProcedure().repair(candidate, cg.audit(release), Limits(time_limit_s=60.0))
    assert repaired.release.status is Status.FEASIBLE
