"""Respondents as attackers: what they know, and that methods and audit hold them off."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import InputError
from cellguard.release.release import Status, Suppression

# Two lone firms in region N; every other cell has several.
FIRMS = {
    "region": ["N", "N"] + [r for r in "SWE" for _ in range(9)],
    "size": ["a", "b"] + ["a", "a", "a", "b", "b", "b", "c", "c", "c"] * 3,
    "x": [50.0, 40.0] + [30.0 + i for i in range(27)],
}


@pytest.fixture
def table() -> cg.Table:
    return cg.tabulate(FIRMS, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))


def at(table: cg.Table, *codes: str) -> int:
    return list(zip(*table.cell_codes().values(), strict=True)).index(codes)


def withheld(table: cg.Table, *cells: int) -> Suppression:
    mask = np.zeros(table.n_cells, bool)
    mask[list(cells)] = True
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=mask)


def test_what_a_lone_respondent_knows(table):
    first, second = cg.insiders(table, at_most=1)
    lone = at(table, "N", "a")
    own = dict(zip(first.cells.tolist(), zip(first.lb, first.ub, strict=True), strict=True))
    assert own[lone] == (50, 50)
    assert own[at(table, "N", "Total")] == (51, np.inf)  # at least their own share, and a unit of what is not empty
    assert first.sensitive.tolist() == [at(table, "N", "b")]
    assert second.sensitive.tolist() == [lone]


def test_the_audit_sees_what_an_insider_can_undo(table):
    # N,a and N,b hide each other from strangers, together with S,a and S,b ...
    pattern = [at(table, *codes) for codes in (("N", "a"), ("N", "b"), ("S", "a"), ("S", "b"))]
    assert withheld(table.with_(insiders=False), *pattern).audit().safe
    # ... but the firm in N,a knows it, and subtracts
    careful = cg.with_insiders(table, at_most=1)
    verdict = withheld(careful, *pattern).audit()
    assert not verdict.safe
    assert len(careful.attackers) == 3


def test_suppression_holds_insiders_off(table):
    careful = cg.with_insiders(table)
    release = cg.suppress(careful, time_limit_s=1)
    assert release.published
    assert release.audit().safe
    assert release.suppressed.sum() > cg.suppress(table.with_(insiders=False), time_limit_s=1).suppressed.sum()


def test_a_holding_in_several_cells_is_one_attacker():
    frame = {**FIRMS, "group": ["g", "h"] + [f"f{i}" for i in range(24)] + ["g", "x1", "x2"]}
    table = cg.tabulate(frame, ["region", "size"], "x", holding="group").apply(cg.MinFrequency(2, percent=10))
    names = {a.name: a for a in cg.insiders(table, at_most=1)}
    # the holding that is alone in N,a is one of three in E,c: he knows a part of that one too
    knows = [a for a in names.values() if {at(table, "N", "a"), at(table, "E", "c")} <= set(a.cells.tolist())]
    assert len(knows) == 1
    e, total = at(table, "E", "c"), at(table, "Total", "Total")
    bounds = dict(zip(knows[0].cells.tolist(), knows[0].lb.tolist(), strict=True))
    assert bounds[e] == frame["x"][26]
    assert bounds[total] == 50 + frame["x"][26] + 9  # and a unit of each of the nine other cells that are not empty


def test_two_respondents():
    frame = {"r": ["A", "A", "B", "B", "B", "C", "C", "C"], "x": [60.0, 20.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]}
    table = cg.tabulate(frame, ["r"], "x").apply(cg.PPercent(10))
    assert table.sensitive_cells.tolist() == [at(table, "A")]
    assert cg.insiders(table, at_most=1) == ()
    big, small = cg.insiders(table, at_most=2)
    assert dict(zip(big.cells.tolist(), big.lb.tolist(), strict=True))[at(table, "A")] == 60
    # against the larger one the lower level cannot be more than what is not his
    assert big.lower[0] <= 20
    assert small.upper[0] == table.upper[at(table, "A")]


def test_scope_and_what_is_refused(table):
    near, every = cg.insiders(table, at_most=1), cg.insiders(table, at_most=1, scope="all")
    assert all(len(n.sensitive) <= len(e.sensitive) for n, e in zip(near, every, strict=True))
    again = cg.with_insiders(cg.with_insiders(table))
    assert len(again.attackers) == len(cg.with_insiders(table).attackers)
    with pytest.raises(InputError, match="who contributed"):
        cg.insiders(cg.Table.from_equations([1, 2, 3], [[2, 0, 1]]))
    with pytest.raises(InputError, match="at_most"):
        cg.insiders(table, at_most=3)
    with pytest.raises(InputError, match="scope"):
        cg.insiders(table, scope="far")


def test_numbers_of_contributors_are_enough(table):
    """A ready table knows who must be there, not who they are: lone cells of one relation are one respondent."""
    frame = {"r": ["A", "A", "B", "B"], "s": ["x", "y", "x", "y"], "v": [5.0, 0.0, 30.0, 40.0], "n": [1, 0, 9, 2]}
    ready = cg.Table.from_frame(frame, ["r", "s"], value="v", counts=None).with_(counts=None)
    counts = cg.Table.from_frame({**frame, "v": frame["n"]}, ["r", "s"], value="v").values
    ready = ready.with_(counts=counts).apply(cg.MinFrequency(3))
    (lone,) = cg.insiders(ready)  # without the largest contributions nothing is known of the two in (B, y)
    known = {ready.label(c): (lo, hi) for c, lo, hi in zip(lone.cells, lone.lb, lone.ub, strict=True)}
    assert known["(r=A, s=Total)"] == known["(r=A, s=x)"] == (5.0, 5.0)
    assert known["(r=Total, s=x)"] == (5.0, np.inf)  # a total is at least what he gave


def test_negative_contributions_and_shadows_tell_nothing_about_the_whole():
    frame = {"r": ["A", "B", "B"], "x": [5.0, 6.0, -7.0], "s": [1.0, 2.0, 3.0]}
    table = cg.tabulate(frame, ["r"], "x").apply(cg.MinFrequency(3, percent=10))
    assert cg.insiders(table)
    for attacker in cg.insiders(table):
        assert (attacker.lb == attacker.ub).all()  # only what he is alone in
    shadowed = cg.tabulate({**frame, "x": [5.0, 6.0, 7.0]}, ["r"], "x", shadow="s").apply(
        cg.MinFrequency(3, percent=10)
    )
    assert cg.insiders(shadowed)
    for attacker in cg.insiders(shadowed):  # what they gave to the published variable, not to the other one
        total = attacker.cells == at(shadowed, "Total")
        assert set(attacker.lb[~total].tolist()) <= {5.0, 7.0}
        assert set(attacker.lb[total].tolist()) <= {6.0, 8.0}  # and a unit of the part that is not empty


def test_a_weighted_respondent_adds_up_what_he_knows():
    """Alone in a cell he knows it, weight included: of the total above nothing below it can be asked of a release."""
    records = {
        "region": ["N", "N", "S", "S", "S", "W", "W"],
        "size": ["a", "b", "a", "a", "b", "a", "b"],
        "x": [1000.0, 90.0, 300.0, 200.0, 150.0, 400.0, 350.0],
        "w": [1.5, 1.25, 2.0, 1.0, 3.0, 2.0, 2.0],
    }
    t = cg.tabulate(records, ["region", "size"], "x", weight="w").apply(cg.MinFrequency(3, percent=10))
    lone, total = t.cell({"region": "N", "size": "a"}), t.cell({"region": "N"})
    who = next(a for a in cg.insiders(t) if lone in a.cells and a.lb[list(a.cells).index(lone)] == t.values[lone])
    assert who.lb[list(who.cells).index(total)] >= t.values[lone]
    asked = dict(zip(who.sensitive.tolist(), who.lower.tolist(), strict=True))
    assert asked[total] <= t.values[total] - t.values[lone]


def test_what_somebody_gave_of_one_indicator_says_nothing_of_another():
    # alone in the north, he gave 90 of turnover and 10 of exports: the exports of all are at least 10, not 90
    dims = {"region": ["N", "S"]}
    parts = [
        cg.Part(name=name, indicator=name, table=cg.Table.from_leaves(dims, leaves, counts=np.array([8.0, 1, 7])))
        for name, leaves in {"turnover": [90, 900], "exports": [10, 300], "domestic": [80, 600]}.items()
    ]
    found = cg.Publication.of(parts, equations=["turnover = domestic + exports"]).apply(cg.MinFrequency(2))
    (insider,) = cg.insiders(found.table)
    least = dict(zip((found.table.label(int(cell)) for cell in insider.cells), insider.lb.tolist(), strict=True))
    assert least["(indicator=exports, region=Total)"] == 10
    assert least["(indicator=turnover, region=Total)"] == 90


def test_a_lone_respondent_is_one_person_in_all_indicators():
    # alone in the north; in the south somebody exports for 90, as much as he sells for
    firms = {
        "region": ["N", "S", "S", "S", "S"],
        "size": ["a", "b", "b", "a", "a"],
        "domestic": [80.0, 200, 35, 44, 51],
        "exports": [10.0, 90, 7, 6, 5],
    }
    firms["turnover"] = [a + b for a, b in zip(firms["domestic"], firms["exports"], strict=True)]
    parts = [
        cg.Part(name=f"{by} {x}", indicator=x, table=cg.tabulate(firms, [by], x, top=2).apply(cg.MinFrequency(2)))
        for x in ("turnover", "domestic", "exports")
        for by in ("region", "size")
    ]
    found = cg.Publication.of(parts, equations=["turnover = domestic + exports"])
    north = [
        a
        for a in cg.insiders(found.table)
        if any("region=N" in found.table.label(int(c)) for c in a.cells[a.lb == a.ub])
    ]
    assert len(north) == 1
    known = {found.table.label(int(c)): low for c, low in zip(north[0].cells, north[0].lb, strict=True)}
    for name, value in {"turnover": 90, "domestic": 80, "exports": 10}.items():
        assert known[f"(indicator={name}, region=N, size=Total)"] == value
    assert not any("exports" in label and "region=S" in label for label in known)
    assert len(north[0].sensitive) == 0  # what he knows himself is not asked of him
    assert cg.suppress(found, time_limit_s=5).published


@pytest.mark.parametrize(
    "options", [{"weight": "w"}, {"weight": "w", "decimals": 1}, {"weight": "third", "decimals": 2}, {"shadow": "head"}]
)
def test_what_somebody_concludes_is_not_asked_to_be_hidden_from_him(options):
    # in p everybody has form l: whoever is alone in p, x knows as much of (p, all sizes) as of (p, form l)
    firms = {
        "act": ["p", "p", "q", "q", "q", "q", "q"], "size": ["x", "y", "x", "y", "x", "y", "y"],
        "form": ["l", "l", "l", "m", "m", "l", "m"], "t": [60.0, 30, 50, 40, 30, 20, 25], "w": [2.0, 1, 1, 1, 1, 1, 1],
        "third": [1 / 3, 1, 1, 1, 1, 1, 1], "head": [6.0, 3, 5, 4, 3, 2, 2],
    }  # fmt: skip
    found = cg.tabulate_publication(
        firms, ["act", "size", "form"], {"sizes": ["act", "size"], "forms": ["act", "form"]},
        indicators={"t": "t"}, **options,
    )  # fmt: skip
    release = cg.suppress(found.apply(cg.MinFrequency(4, percent=70)), time_limit_s=5)
    assert release.published, release.explanation
    assert release.audit().safe


def test_a_relation_with_several_cells_on_both_sides_is_no_total():
    # a + b = c + d, and e = c + d: who is alone in a knows nothing of d alone
    T = np.array([[1.0, 1, -1, -1, 0], [0, 0, 1, 1, -1]])
    table = cg.Table.from_equations(
        [30.0, 70, 60, 40, 100], T, counts=[1, 8, 6, 5, 11], sensitive=[0, 3], lower=[3, 0, 0, 4, 0],
        upper=[3, 0, 0, 4, 0],
    )  # fmt: skip
    (only,) = cg.insiders(table, at_most=1, scope="all")
    assert only.cells.tolist() == [0]
    assert only.lower.tolist() == [4.0]
