"""Derived statistics: each is used as it was published, with its rounding, against enumeration of counts."""

import itertools
from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
import pytest

import cellguard as cg
from cellguard.release.release import Suppression


def withhold(table: cg.Table, cells) -> Suppression:
    suppressed = np.zeros(table.n_cells, bool)
    suppressed[list(cells)] = True
    return Suppression.from_file(table, suppressed=suppressed)


def round_half_up(number: Fraction, decimals: int) -> Fraction:
    unit = Fraction(1, 10**decimals)
    return floor(number / unit + Fraction(1, 2)) * unit


def enumerate_tables(withheld, relations, fixed, most, accepts):
    """Return every assignment of whole numbers from 1 that satisfies sums (total, parts) and a condition."""
    out = []
    for numbers in itertools.product(range(1, most + 1), repeat=len(withheld)):
        values = {**fixed, **dict(zip(withheld, numbers, strict=True))}
        if all(values[total] == sum(values[p] for p in parts) for total, parts in relations) and accepts(values):
            out.append(values)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_means_and_shares_of_counts_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    people, visits = rng.integers(1, 6, 3), rng.integers(1, 9, 3)
    codes = [("people", r) for r in ("Total", *"ABC")] + [("visits", r) for r in ("Total", *"ABC")]
    values = [people.sum(), *people, visits.sum(), *visits]
    table = cg.Table.from_equations(
        values, [[0, 1, 2, 3], [4, 5, 6, 7]], sensitive=[1, 5], integer=True, dimensions=("indicator", "region"),
        codes=(("people", "visits"), ("Total", "A", "B", "C")),
        coordinates=np.array([(i, r) for i in range(2) for r in range(4)], np.int32),
    )  # fmt: skip
    release = withhold(table, [1, 2, 5, 6])
    decimals = int(rng.integers(0, 3))
    derived = [
        cg.Derived(
            name="visits per person", kind="mean", of={"indicator": "visits"}, by={"indicator": "people"},
            decimals=decimals,
        ),
        cg.Derived(name="share of people", kind="share", of={"indicator": "people"}, by={"region": "Total"}, decimals=0),
    ]  # fmt: skip
    found = cg.audit(release, derived=derived, exact=True)
    truth = dict(zip(codes, map(int, values), strict=True))

    def accepts(v):
        mean = all(
            round_half_up(Fraction(v["visits", r], v["people", r]), decimals)
            == round_half_up(Fraction(truth["visits", r], truth["people", r]), decimals)
            for r in ("Total", *"ABC")
        )
        share = all(
            round_half_up(Fraction(100 * v["people", r], v["people", "Total"]), 0)
            == round_half_up(Fraction(100 * truth["people", r], truth["people", "Total"]), 0)
            for r in "ABC"
        )
        return mean and share

    withheld = [codes[i] for i in (1, 2, 5, 6)]
    fixed = {code: truth[code] for code in codes if code not in withheld}
    sums = [((i, "Total"), [(i, r) for r in "ABC"]) for i in ("people", "visits")]
    every = enumerate_tables(withheld, sums, fixed, 16, accepts)
    for cell in (1, 5):
        numbers = [v[codes[cell]] for v in every]
        assert found.range(cell) == (min(numbers), max(numbers))


def make_users_and_records(users, records):
    return cg.Table.from_equations(
        [users, records], np.zeros((0, 2)), sensitive=[0, 1], ub=4, integer=True, dimensions=("indicator",),
        codes=(("users", "records"),), coordinates=np.array([[0], [1]], np.int32),
    )  # fmt: skip


def test_a_mean_of_1_33_and_a_median_of_1_give_three_people():
    table = make_users_and_records(3, 4)
    release = withhold(table, [0, 1])
    assert release.audit(exact=True).range(0) == (1, 4)
    of, by = {"indicator": "records"}, {"indicator": "users"}
    mean = cg.Derived(name="mean", kind="mean", of=of, by=by, decimals=2)
    median = cg.Derived(name="median", kind="median", of=of, by=by, decimals=0, least=1, values=[({}, 1)])
    found = cg.audit(release, derived=[mean, median], exact=True)
    assert (found.range(0), found.range(1), found.exact) == ((3, 3), (4, 4), 2)


def test_a_median_between_two_numbers_has_an_even_number_of_people():
    release = withhold(make_users_and_records(2, 3), [0, 1])
    of, by = {"indicator": "records"}, {"indicator": "users"}
    median = cg.Derived(name="median", kind="median", of=of, by=by, decimals=1, least=1, values=[({}, 1.5)])
    found = cg.audit(release, derived=[median], exact=True)
    assert found.range(0) == (2, 2)  # four people with a median of 1.5 have at least five records


def test_180_in_the_title_and_177_adults_give_3_others():
    table = cg.Table.from_equations(
        [177, 3], np.zeros((0, 2)), sensitive=[1], integer=True, dimensions=("age",), codes=(("adult", "other"),),
        coordinates=np.array([[0], [1]], np.int32),
    )  # fmt: skip
    release = withhold(table, [1])
    assert release.audit().safe
    title = cg.Derived(name="N in the title", kind="total", decimals=0)
    assert cg.audit(release, derived=[title], exact=True).range(1) == (3, 3)
    rounded = cg.Derived(name="N in the title", kind="total", decimals=-1)
    assert cg.audit(release, derived=[rounded], exact=True).range(1) == (1, 7)


def make_quarter(values, **fields):
    fields = {"sensitive": [1], "lower": 5.0, "upper": 5.0, **fields}
    return cg.Table.from_leaves({"region": ["A", "B", "C"]}, np.array(values, float), **fields)


@pytest.mark.parametrize(
    ("derived", "earlier_cells"),
    [
        (cg.Derived(name="growth", kind="growth", decimals=1), []),
        (cg.Derived(name="index", kind="index", period="2025Q1", decimals=1), []),
        (cg.Derived(name="share", kind="share", by={"region": "Total"}, decimals=2), [1, 2]),
        (cg.Derived(name="sum", kind="total", of={"region": ["A", "C"]}, decimals=0), [1, 2]),
    ],
)
def test_each_kind_discloses_what_is_safe_without_it(derived, earlier_cells):
    before, now = make_quarter([40, 60, 100], sensitive=[], lower=0, upper=0), make_quarter([44, 63, 90])
    first = withhold(before, earlier_cells)
    release = withhold(now, [1, 2])
    history = cg.History(period="2025Q2", releases=[cg.EarlierRelease.of(first, period="2025Q1")])
    assert cg.audit(release, earlier=history).safe
    found = cg.audit(release, earlier=history, derived=[derived], exact=True)
    assert not found.safe
    low, high = found.range(1)
    assert low <= 44 <= high
    assert high - low < 1


def test_a_figure_of_published_cells_says_nothing_new():
    release = withhold(make_quarter([40, 60, 100]), [1, 2])
    share = cg.Derived(name="share", kind="share", of={"region": "C"}, by={"region": "Total"}, decimals=3)
    found = cg.audit(release, derived=[share])
    assert found.safe
    assert (found.release.system.counts.one_side, found.release.system.counts.two_sides) == (0, 0)


def test_figures_that_contradict_the_table_are_refused():
    release = withhold(make_quarter([40, 60, 100]), [1, 2])
    wrong = cg.Derived(name="share", kind="share", by={"region": "Total"}, decimals=0, values=[({"region": "A"}, 25.0)])
    with pytest.raises(cg.InputError, match=r"'share': 1 figures contradict .*\(A\)"):
        cg.audit(release, derived=[wrong])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "men"}, "unknown kind"),
        ({"kind": "mean"}, "by what it is divided"),
        ({"kind": "index"}, "base period"),
        ({"kind": "total", "decimals": 12}, "decimals"),
        ({"kind": "total", "factor": 0}, "factor"),
    ],
)
def test_wrong_declarations_are_refused(fields, message):
    with pytest.raises(cg.InputError, match=message):
        cg.Derived(name="d", **fields)


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        (cg.Derived(name="d", kind="share", by={"regoin": "Total"}), "unknown dimension"),
        (cg.Derived(name="d", kind="share", by={"region": "Totl"}), "no code"),
        (cg.Derived(name="d", kind="growth"), "preceding period"),
        (cg.Derived(name="d", kind="index", period="2020"), "'2020'"),
    ],
)
def test_statistics_that_do_not_fit_the_table_are_refused(derived, message):
    with pytest.raises(cg.CellguardError, match=message):
        cg.audit(withhold(make_quarter([40, 60, 100]), [1, 2]), derived=[derived])


def test_figures_of_an_earlier_release_count_later():
    first = withhold(make_quarter([40, 60, 100], sensitive=[1], lower=5.0, upper=5.0), [1, 2])
    share = cg.Derived(name="share", kind="share", of={"region": "A"}, by={"region": "Total"}, decimals=1)
    system = cg.audit(first, derived=[share]).release.system
    silent = cg.EarlierRelease.of(first, period="2025Q1")
    telling = cg.EarlierRelease.of(replace(first, figures=system.figures), period="2025Q1")
    now = withhold(make_quarter([41, 61, 100]), [1, 2])
    for earlier, safe in ((silent, True), (telling, False)):
        history = cg.History(period="2025Q2", releases=[earlier], prior_percent=10.0)
        assert cg.audit(now, earlier=history).safe is safe
