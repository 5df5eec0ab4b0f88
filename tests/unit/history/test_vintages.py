"""Revisions over time: each figure and each sum is of the values that were out together, not of the newest ones."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.release.release import Suppression


def withhold(table: cg.Table, cells=(), figures=()) -> Suppression:
    suppressed = np.zeros(table.n_cells, bool)
    suppressed[list(cells)] = True
    return Suppression.from_file(table, suppressed=suppressed, figures=tuple(figures))


def make(values, **fields):
    return cg.Table.from_leaves({"region": list("ABCD")[: len(values)]}, np.array(values, float), **fields)


def earlier(name, period, release):
    return cg.EarlierRelease.of(release, name=name, period=period)


SENSITIVE = {"sensitive": [1], "lower": 4.0, "upper": 4.0}


def make_growth(first, second):
    """The figures of the growth of A from one release to the next."""
    growth = cg.Derived(name="growth", kind="growth", of={"region": "A"}, decimals=1)
    history = cg.History(period="2025Q2", releases=[earlier("first", "2025Q1", first)])
    return cg.audit(second, earlier=history, derived=[growth]).release.system.figures


def test_a_growth_rate_refers_to_the_value_that_was_out_then():
    """The growth of A is that from its first value; a revision of 15% bounds that value, and so A of the second."""
    first = withhold(make([40, 60, 80], **SENSITIVE), [1, 2])
    second = withhold(make([50, 66, 88], **SENSITIVE), [1, 2])
    told = withhold(second.table, [1, 2], make_growth(first, second))
    history = cg.History(
        period="2025Q1", revision_percent=20.0,
        releases=[earlier("first", "2025Q1", first), earlier("second", "2025Q2", told)],
    )  # fmt: skip
    found = cg.audit(withhold(make([46, 60.5, 80])), earlier=history, exact=True)
    low, high = found.range({"release": "2025Q2", "region": "A"})
    assert low == pytest.approx(1.2495 * 46 / 1.2)
    assert high == pytest.approx(1.2505 * (100 - 60.5 / 1.2), rel=1e-4)


def test_a_year_is_the_sum_of_the_quarters_that_were_out_with_it():
    """Two quarters of A are withheld, and the year gives their sum; a revision shows one of them, and so the other."""
    values = [np.array([10.0 + k, 20, 30, 40]) for k in range(4)]
    quarters = [withhold(make(values[k], **SENSITIVE), [1, 2]) for k in (0, 1)]
    quarters += [withhold(make(values[k])) for k in (2, 3)]
    out = [earlier(f"q{k + 1}", f"2025Q{k + 1}", quarter) for k, quarter in enumerate(quarters)]
    late = withhold(make([11.1, 20.1, 30, 40]))  # the second quarter, revised
    links = {"period": "2025Q2", "revision_percent": 40.0, "additive": True}
    alone = cg.audit(late, earlier=cg.History(releases=out, **links), exact=True)
    assert alone.range({"release": "2025Q2, version 2", "region": "A"}) == pytest.approx((11.1 / 1.4, 31 - 20.1 / 1.4))
    year = earlier("year", "2025", withhold(make(np.sum(values, axis=0))))
    close = cg.History(releases=[*out, year], **{**links, "revision_percent": 2.0})
    found = cg.audit(late, earlier=close, exact=True)
    low, high = found.range({"release": "2025Q1", "region": "A"})
    assert (low, high) == pytest.approx((20.1 / 1.02 - 10, 21 - 11.1 / 1.02))
    assert not found.safe


def test_a_revision_that_breaks_a_sum_needs_no_tolerance():
    parts = [earlier(f"q{k}", f"2025Q{k}", withhold(make([10, 20, 30], **SENSITIVE), [1, 2])) for k in (1, 2, 3, 4)]
    year = earlier("year", "2025", withhold(make([40, 80, 120], **SENSITIVE), [1, 2]))
    revised = withhold(make([10.5, 20.5, 30], **SENSITIVE), [1, 2])
    history = cg.History(period="2025Q4", releases=[*parts, year], revision_percent=10.0, additive=True)
    assert cg.audit(revised, earlier=history, exact=True).exact == 0
    strict = cg.History(period="2025Q4", releases=[*parts, year], additive=True)
    with pytest.raises(cg.InputError, match="published other values"):
        cg.audit(revised, earlier=strict)


def test_a_release_that_withholds_everything_is_a_version_of_its_own():
    """Nothing that it shows differs from the revision, but the year is the sum of what it withheld."""
    first, old, new = make([10, 20.5, 30]), make([11, 21, 31], **SENSITIVE), make([11.2, 21, 31], **SENSITIVE)
    both = make([21, 41.5, 61])
    out = [
        earlier("a", "2025Q1", withhold(first)), earlier("b", "2025Q2", withhold(old, [0, 1, 2, 3])),
        earlier("c", "2025H1", withhold(both, [3])),
    ]  # fmt: skip
    history = cg.History(period="2025Q2", releases=out, additive=True, revision_percent=5.0)
    found = cg.audit(withhold(new, [1, 2]), earlier=history, exact=True)
    assert found.range({"release": "2025Q2, version 2", "region": "A"}) == pytest.approx((11, 11))
    assert found.range({"release": "2025Q2", "region": "A"}) == pytest.approx((11 * 0.95, 11 * 1.05))


def test_figures_about_a_release_that_is_not_given_are_refused():
    first, second = withhold(make([40, 60, 80])), withhold(make([50, 66, 88], **SENSITIVE), [1, 2])
    told = withhold(second.table, [1, 2], make_growth(first, second))
    history = cg.History(period="2025Q3", releases=[earlier("second", "2025Q2", told)])
    with pytest.raises(cg.InputError, match="'growth': no earlier release is about the preceding period"):
        cg.audit(withhold(make([51, 67, 89])), earlier=history)


def test_names_of_periods_in_sums_may_be_spelt_in_any_way():
    first, second = make([10, 20, 30], **SENSITIVE), make([11, 21, 31], **SENSITIVE)
    both = make([21, 41, 61], **SENSITIVE)
    parts = [earlier("a", "2025-q1", withhold(first, [1, 2])), earlier("b", "2025-q3", withhold(second, [1, 2]))]
    history = cg.History(period="odd", releases=parts, sums={"odd": ["2025q1", "2025Q3"]})
    assert not cg.audit(withhold(both, [1, 3]), earlier=history).safe
