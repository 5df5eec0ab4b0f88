"""For each kind of link: releases that are safe alone and unsafe together, found by the audit and repaired."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.release.release import Suppression

LEVELS = {"sensitive": [1], "lower": 4.0, "upper": 4.0}


def withhold(table: cg.Table, cells) -> Suppression:
    suppressed = np.zeros(table.n_cells, bool)
    suppressed[list(cells)] = True
    return Suppression.from_file(table, suppressed=suppressed)


def make(values, **fields):
    fields = LEVELS | fields if "sensitive" not in fields else fields
    return cg.Table.from_leaves({"region": list("ABCDE")[: len(values)]}, np.array(values, float), **fields)


def remember(history_fields, *releases):
    earlier = [cg.EarlierRelease.of(release, period=period) for period, release in releases]
    return cg.History(releases=earlier, **history_fields)


def check_found_and_repaired(release, history, table=None):
    """The release is safe alone, unsafe with the history, and what protect makes instead is safe with it."""
    assert release.audit().safe
    found = cg.audit(release, earlier=history, exact=True)
    assert not found.safe
    repaired = cg.suppress(table or release.table, earlier=history)
    assert repaired.published, repaired.explanation
    assert cg.audit(repaired, earlier=history, exact=True).safe
    assert repaired.audit().safe
    return repaired


def test_identical_cells():
    table = make([10, 20, 30])
    history = remember({}, ("", withhold(table, [1, 2])))
    repaired = check_found_and_repaired(withhold(table, [1, 3]), history)
    assert np.flatnonzero(repaired.suppressed).tolist() == [1, 2]  # what was withheld stays, what was published too


def test_quarters_and_their_year():
    quarters = [make(np.array([10, 20, 30, 40]) + k) for k in range(4)]
    year = make(sum(np.array([10, 20, 30, 40]) + k for k in range(4)), sensitive=[1], lower=4.0, upper=4.0)
    others = [("2025Q1", withhold(quarters[0], [1, 2]))]
    free = {"sensitive": [], "lower": 0.0, "upper": 0.0}
    others += [(f"2025Q{k + 1}", withhold(make(quarters[k].values[1:], **free), [])) for k in (1, 2, 3)]
    history = remember({"period": "2025", "additive": True}, *others)
    repaired = check_found_and_repaired(withhold(year, [1, 3]), history)  # year - Q2 - Q3 - Q4 gives region B of Q1
    assert repaired.suppressed[2]


def test_cumulative_sums():
    first, second = make([10, 20, 30]), make([11, 21, 31])
    both = make([21, 41, 61])
    history = remember(
        {"period": "2025-01..2025-02", "additive": True},
        ("2025-01", withhold(first, [1, 2])), ("2025-02", withhold(second, [1, 2])),
    )  # fmt: skip
    check_found_and_repaired(withhold(both, [1, 3]), history)


def test_missing_quarters_leave_a_rest():
    year = make([12, 90, 90, 90], sensitive=[])
    first = make([10, 20, 30, 40], sensitive=[1], lower=0.0, upper=15.0)
    history = remember({"period": "2025", "additive": True}, ("2025Q1", withhold(first, [1, 2])))
    found = cg.audit(withhold(year, []), earlier=history, exact=True)
    assert found.range(int(found.unsafe_cells[0])) == (0, 12)
    repaired = cg.suppress(year, earlier=history)
    assert cg.audit(repaired, earlier=history).safe


def test_revisions():
    old = make([10, 20, 30, 40], sensitive=[], lower=0.0, upper=0.0)
    new = make([10.1, 20.1, 30.1, 40.1], sensitive=[1], lower=0.5, upper=0.5)
    history = remember({"period": "2025", "revision_percent": 2.0}, ("2025", withhold(old, [])))
    assert not cg.audit(withhold(new, [1, 2]), earlier=history).safe
    refused = cg.suppress(new, earlier=history)
    assert not refused.published
    assert "2025" in refused.explanation
    assert "region=A" in refused.explanation
    assert "accept" in refused.explanation
    wide = remember({"period": "2025", "revision_percent": 10.0}, ("2025", withhold(old, [])))
    assert cg.suppress(new, earlier=wide).published


def test_a_revision_of_a_neighbour_is_repaired():
    old = make([10, 20, 30, 40], sensitive=[1], lower=0.5, upper=0.5)
    new = make([11, 20.2, 30.1, 40.1], sensitive=[1], lower=0.5, upper=0.5)
    history = remember({"period": "2025", "revision_percent": 2.0}, ("2025", withhold(old, [1, 3])))
    repaired = check_found_and_repaired(withhold(new, [1, 2]), history)
    assert repaired.suppressed[3]


def test_the_preceding_period_as_prior_knowledge():
    before, now = make([30, 20, 30, 40]), make([31, 21, 31, 41])
    history = remember({"period": "2025Q2", "prior_percent": 10.0}, ("2025Q1", withhold(before, [1, 3, 4])))
    repaired = check_found_and_repaired(withhold(now, [1, 2]), history)  # B was published and hardly changes
    assert repaired.suppressed[3] or repaired.suppressed[4]


def test_cells_withheld_before_are_preferred():
    before, now = make([10, 20, 21, 22, 23]), make([10, 20, 21, 22, 23])
    for cell in (2, 3, 4, 5):
        history = remember({"period": "2025Q2"}, ("2025Q1", withhold(before, [1, cell])))
        assert np.flatnonzero(cg.suppress(now, earlier=history).suppressed).tolist() == [1, cell]


def test_accepted_cells_do_not_stop_the_others():
    table = make([10, 20, 30, 40], sensitive=[1, 2], lower=4.0, upper=4.0)
    shown = remember({}, ("", withhold(make([10, 20, 30, 40], sensitive=[]), [2, 3])))
    refused = cg.suppress(table, earlier=shown)
    assert refused.status == cg.Status.INFEASIBLE
    accepted = cg.History(releases=shown.releases, accept=True)
    release = cg.suppress(table, earlier=accepted)
    assert release.published
    assert release.suppressed[[1, 2]].all()
    assert release.audit().safe
    assert cg.audit(release, earlier=shown).unsafe_cells.tolist() == [1]


@pytest.mark.parametrize("kind", ["share", "growth"])
def test_derived_figures_are_coarsened_or_withheld_before_cells(kind):
    before, now = make([20, 30, 50, 60], sensitive=[], lower=0.0, upper=0.0), make([20, 31, 52, 63])
    history = remember({"period": "2025Q2"}, ("2025Q1", withhold(before, [])))
    derived = cg.Derived(name="d", kind=kind, by={"region": "Total"} if kind == "share" else {}, decimals=2)
    plain = cg.suppress(now, earlier=history)
    assert not cg.audit(plain, earlier=history, derived=[derived]).safe
    release = cg.suppress(now, earlier=history, derived=[derived])
    assert release.published
    assert release.audit().safe
    assert release.suppressed.tolist() == plain.suppressed.tolist()
    (figures,) = release.figures
    apart = ~release.suppressed[figures.cells]
    assert not figures.withheld[apart].any()
    assert (figures.decimals[apart] == 2).all()
    assert (figures.withheld | (figures.decimals < 2))[~apart].all()


def test_reopened_cells_may_be_published():
    old, now = make([10, 20, 30]), make([10, 20, 30], sensitive=[])
    history = remember({}, ("", withhold(old, [1, 2])))
    assert not cg.audit(withhold(now, []), earlier=history).safe
    reopened = cg.History(releases=history.releases, reopen=True)
    assert cg.audit(withhold(now, []), earlier=reopened).verdict == "nothing checked"


# ---------------------------------------------------------------------- bad input


def test_values_that_differ_without_revisions_are_refused():
    history = remember({}, ("", withhold(make([10, 20, 30]), [1, 2])))
    with pytest.raises(cg.InputError, match=r"other values for 2 cells, .*region=Total\)"):
        cg.audit(withhold(make([10, 20, 31]), [1, 2]), earlier=history)


def test_two_releases_with_one_name_are_refused():
    one = cg.EarlierRelease.of(withhold(make([10, 20, 30]), [1, 2]), period="2025Q1")
    with pytest.raises(cg.InputError, match="two earlier releases are called '2025Q1'"):
        cg.History(releases=[one, one])


def test_another_population_is_refused():
    one = cg.EarlierRelease.of(withhold(make([10, 20, 30]), [1, 2]), population="farms")
    with pytest.raises(cg.InputError, match="'farms'"):
        cg.audit(withhold(make([10, 20, 30]), [1, 2]), earlier=cg.History(releases=[one]))


def test_a_code_with_other_parts_needs_a_correspondence():
    old = cg.Table.from_leaves({"region": {"N": ["a", "b"], "S": ["c", "d"]}}, [10.0, 20, 30, 40])
    new = cg.Table.from_leaves(
        {"region": {"N": ["a", "c"], "S": ["b", "d"]}}, [10.0, 30, 20, 40], sensitive=[2], sliding=1.0
    )
    one = cg.EarlierRelease.of(withhold(old, []), period="old")
    with pytest.raises(cg.InputError, match="code 'N' has other parts"):
        cg.audit(withhold(new, [2, 3]), earlier=cg.History(releases=[one]))
    split = {"region": {"N": None, "S": None}}
    found = cg.audit(withhold(new, [2, 3]), earlier=cg.History(releases=[one], period="old", correspondence=split))
    assert not found.safe  # the leaves are the same cells, and were published


def test_periods_that_do_not_add_up_are_refused():
    parts = [
        (f"2025Q{k}", withhold(make([10, 20, 30], sensitive=[1], sliding=1.0, lower=0, upper=0), [1, 2]))
        for k in (1, 2, 3, 4)
    ]
    history = remember({"period": "2025", "additive": True}, *parts)
    with pytest.raises(cg.InputError, match="not the sum of '2025Q1'"):
        cg.audit(withhold(make([10, 20, 30]), [1, 2]), earlier=history)


def test_several_periods_need_the_period_of_the_release():
    several = [cg.EarlierRelease.of(withhold(make([10, 20, 30]), [1, 2]), period=p) for p in ("2025Q1", "2025Q2")]
    with pytest.raises(cg.InputError, match="several periods"):
        cg.audit(withhold(make([10, 20, 30]), [1, 2]), earlier=several)
