"""For each kind of derived statistic: safe without it, unsafe with it, found by the audit and repaired by suppression."""

import numpy as np
import pytest

import cellguard as cg

LEVELS = {"lower": 4.0, "upper": 4.0}
SALES, SHOPS = {"indicator": "sales"}, {"indicator": "shops"}


def make_indicators() -> cg.Table:
    """Sales and shops of three regions; sales of A are sensitive, all numbers of shops are published."""
    values = [200.0, 41.0, 65.0, 94.0, 30.0, 7.0, 11.0, 12.0]
    return cg.Table.from_equations(
        values, [[0, 1, 2, 3], [4, 5, 6, 7]], sensitive=[1], fixed=[4, 5, 6, 7], **LEVELS,
        dimensions=("indicator", "region"), codes=(("sales", "shops"), ("Total", "A", "B", "C")),
        coordinates=np.array([(i, r) for i in range(2) for r in range(4)], np.int32),
    )  # fmt: skip


def make_quarter(values, **fields) -> cg.Table:
    return cg.Table.from_leaves({"region": ["A", "B", "C"]}, np.array(values, float), **fields)


def make_cases():
    """The table, its history and the statistic of each kind."""
    before = cg.EarlierRelease.of(cg.suppress(make_quarter([40, 60, 100])), period="2025Q1")
    history = cg.History(period="2025Q2", releases=[before])
    quarter = make_quarter([44.5, 63.2, 90.1], sensitive=[1], **LEVELS)
    indicators, alone = make_indicators(), cg.History()
    yield indicators, alone, cg.Derived(name="mean", kind="mean", of=SALES, by=SHOPS, decimals=2)
    yield indicators, alone, cg.Derived(name="ratio", kind="ratio", of=SALES, by=SHOPS, decimals=2, factor=1000.0)
    yield quarter, alone, cg.Derived(name="share", kind="share", by={"region": "Total"}, decimals=2)
    yield quarter, history, cg.Derived(name="growth", kind="growth", decimals=1)
    yield quarter, history, cg.Derived(name="index", kind="index", period="2025Q1", decimals=1)
    yield quarter, alone, cg.Derived(name="total", kind="total", of={"region": ["A", "C"]}, decimals=0)
    people = cg.Table.from_equations(
        [3.0, 4.0], np.zeros((0, 2)), sensitive=[0], ub=6, integer=True, dimensions=("indicator",),
        codes=(("users", "records"),), coordinates=np.array([[0], [1]], np.int32), sliding=4.0,
    )  # fmt: skip
    of, by = {"indicator": "records"}, {"indicator": "users"}
    # each of at most 6 records is of a user who has at least 1; a median of 2 leaves at most 4 users
    yield people, alone, cg.Derived(name="median", kind="median", of=of, by=by, decimals=0, least=1, values=[({}, 2)])


CASES = {derived.kind: (table, history, derived) for table, history, derived in make_cases()}


def test_every_kind_has_a_case():
    from cellguard.history.derived import KINDS

    assert set(CASES) == set(KINDS)


@pytest.mark.parametrize("kind", CASES)
def test_what_a_figure_discloses_is_found_and_repaired(kind):
    table, history, derived = CASES[kind]
    alone = cg.suppress(table, earlier=history)
    assert alone.audit().safe
    found = cg.audit(alone, earlier=history, derived=[derived], exact=True)
    assert not found.safe
    assert 1 in found.unsafe_cells or kind == "median"
    release = cg.suppress(table, earlier=history, derived=[derived])
    assert release.published, release.explanation
    assert cg.audit(release, exact=True).safe  # with its history and figures
    assert release.suppressed.tolist() == alone.suppressed.tolist()  # a figure is cheaper than a cell
    (figures,) = release.figures
    assert (figures.withheld | (figures.decimals < derived.decimals)).any()
