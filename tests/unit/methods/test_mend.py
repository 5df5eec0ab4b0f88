"""A pattern that somebody sees through is mended: nothing is published again, and the audit accepts it."""

import inspect

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.clock import NEVER
from cellguard.methods.limits import Limits
from cellguard.methods.respondents import _against_no_respondents, _Rounds
from cellguard.methods.suppress.mend import mended_pattern
from cellguard.methods.suppress.verb import _mend_pattern
from cellguard.nouns.levels import table_with_respondent_attackers
from cellguard.nouns.release import Status, Suppression


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
    more = mended_pattern(release.suppressed, found, NEVER)
    assert more is not None
    assert more[release.suppressed].all()
    again = Suppression(table=found.release.table, status=naive.status, objective=0.0, suppressed=more)
    assert cg.audit(again).safe


def test_an_audit_without_time_mends_nothing():
    table = survey(0)
    release = cg.suppress(table, method="heuristic", rounds=0)
    assert mended_pattern(release.suppressed, cg.audit(release), NEVER) is None  # nothing to mend


@pytest.mark.parametrize("seed", range(3))
def test_one_rough_search_is_enough(seed):
    """A pattern that was planned against nobody inside is closed at once, without another search."""
    rounds = _Rounds(inspect.unwrap(cg.suppress), (), {}, Limits(time_limit_s=60.0))
    rounds.quick, rounds.mend = {"method": "heuristic", "rounds": 3}, _mend_pattern
    searches = []
    protect = rounds._protect
    rounds._protect = lambda *asked: searches.append(asked) or protect(*asked)
    planned, release = rounds._first(_against_no_respondents(table_with_respondent_attackers(survey(seed))))
    assert len(searches) == 1
    assert release.audit().safe
    assert any(len(a.sensitive) for a in planned.attackers if a.derived)  # and the next search knows of it


def test_what_is_mended_is_not_called_optimal():
    table = survey(1)
    naive = cg.suppress(table.with_(insiders=False), method="heuristic", rounds=3)
    release = Suppression(table=table, status=Status.OPTIMAL, objective=naive.objective, suppressed=naive.suppressed)
    assert _mend_pattern(release, cg.audit(release), NEVER).status is Status.FEASIBLE
