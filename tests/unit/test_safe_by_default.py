"""What was once published under a green "safe": each of these tests failed before."""

import json
from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.exceptions import LevelError, ReleaseError
from cellguard.model.levels import compute_required_levels
from cellguard.release.release import Intervals, Status, Suppression


def counts(rule=None) -> cg.Table:
    """A table of counts with ones and twos in it."""
    rng = np.random.default_rng(4)
    leaves = rng.poisson(7, (6, 5)) + 4.0
    leaves[1, 2], leaves[3, 0], leaves[4, 4] = 1, 2, 1
    dims = {"region": [f"r{i}" for i in range(6)], "age": [f"a{i}" for i in range(5)]}
    table = cg.Table.from_leaves(dims, leaves, integer=True, weights=1.0)
    return table.apply(cg.MinFrequency(3) if rule is None else rule)


FIRMS = {
    "region": ["N", "N"] + ["N"] * 9 + ["S"] * 9 + ["W"] * 9,
    "size": ["a", "b"] + ["a", "a", "a", "b", "b", "b", "c", "c", "c"] * 3,
    "x": [50.0, 40.0] + [30.0 + i for i in range(27)],
}


def magnitudes() -> cg.Table:
    """Two firms alone in their cells hide each other from strangers, not from each other."""
    frame = {name: column[:2] + column[11:] for name, column in FIRMS.items()}
    return cg.tabulate(frame, ["region", "size"], "x").apply(cg.MinFrequency(2))


METHODS = {
    "suppress": lambda t: cg.suppress(t, time_limit_s=10),
    "adjust": lambda t: cg.adjust(t, norm="l1", repair="senses"),
    "intervals": lambda t: cg.intervals(t, time_limit_s=10),
    "round": lambda t: cg.round(t, base=5, time_limit_s=10),
    "perturb": lambda t: cg.perturb(t, base=5),
}


# ---------------------------------------------------------------- 1: levels of zero


@pytest.mark.parametrize("method", METHODS)
def test_a_rule_without_a_measure_is_no_licence_to_publish(method):
    table = counts()
    release = METHODS[method](table)
    assert release.published, release.explanation
    found = release.audit()
    assert found.safe
    assert found.checked == 3
    s = table.sensitive
    if method != "intervals":  # the middle of an interval is nothing that is published
        assert (release.get_point_values()[s] != table.values[s]).all()


def test_a_threshold_on_counts_asks_for_as_many_whole_numbers():
    table = counts(cg.MinFrequency(4))
    assert set(compute_required_levels(table).sliding) == {3.0}
    low, high = (table.values + side * np.where(table.sensitive, 1.0, 0.0) for side in (-1, 1))
    release = Intervals(table=table, status=Status.FEASIBLE, objective=0.0, lower=low, upper=high)
    with pytest.raises(ReleaseError, match="refuses"):  # one number beside the truth is not enough
        release.refuse_unless_safe()


def test_a_threshold_on_magnitudes_falls_back_on_a_percentage():
    table = magnitudes()
    assert table.upper[table.sensitive].tolist() == (0.1 * table.values[table.sensitive]).tolist()


def test_a_sensitive_zero_gets_its_width_from_the_cells_around():
    frame = {"region": ["N", "S", "W"] * 3, "branch": ["f", "f", "f", "m", "m", "m", "k", "k", "k"]}
    frame |= {"value": [0.0, 40, 60, 30, 80, 20, 70, 50, 90], "firms": [1, 9, 9, 8, 9, 9, 9, 9, 9]}
    table = cg.Table.from_frame(frame, ["region", "branch"], counts="firms").apply(cg.MinFrequency(2))
    zero = table.cell({"region": "N", "branch": "f"})
    assert table.sensitive_cells.tolist() == [zero]
    width = compute_required_levels(table).sliding[0]
    assert 1 < width < 20
    release = cg.suppress(table, time_limit_s=5)
    assert release.audit().safe
    low, high = release.audit(exact=True).range(zero)
    assert (low, high >= width) == (0.0, True)


@pytest.mark.parametrize(
    "rule", [lambda: cg.PPercent(0.1), lambda: cg.Dominance(1, 0.85), lambda: cg.MinFrequency(3, 0.2)]
)
def test_shares_are_no_percentages(rule):
    with pytest.raises(LevelError, match="is a share, not a percentage"):
        rule()


# ---------------------------------------------------------------- 2: whole numbers


def test_counts_are_audited_as_counts():
    table = counts().with_(smallest_width=2.0).with_(sliding=np.where(counts().sensitive, 0.4, 0.0))
    room = np.where(table.sensitive, 0.2, 0.0)
    totals = room * 0 + 0.6  # so that the relations leave the intervals as they are
    release = Intervals(
        table=table, status=Status.FEASIBLE, objective=0.0,
        lower=table.values - np.where(table.sensitive, room, totals),
        upper=table.values + np.where(table.sensitive, room, totals),
    )  # fmt: skip
    assert cg.audit(release, integer=False).exact == 0
    assert cg.audit(release).exact == 3  # 0.8 to 1.2 is a count of 1


# ---------------------------------------------------------------- 3: respondents


def test_respondents_are_attackers_unless_told_otherwise():
    table = magnitudes()
    release = cg.suppress(table, time_limit_s=5)
    assert len(release.table.attackers) > 1
    assert release.audit().safe
    careless = cg.suppress(table.with_(insiders=False), time_limit_s=5)
    assert len(careless.table.attackers) == 1
    seen = cg.with_insiders(table)
    audit = Suppression(table=seen, status=Status.FEASIBLE, objective=0.0, suppressed=careless.suppressed).audit()
    assert not audit.safe


def test_changed_levels_find_the_respondents_again():
    table = cg.with_insiders(magnitudes())
    assert table.insiders
    changed = table.with_levels(0.2, 0.2)
    assert changed.insiders is True  # still wanted
    # derived again for the new levels, as from the table without respondents
    again = cg.with_insiders(magnitudes().with_levels(0.2, 0.2))
    assert len(changed.attackers) == len(again.attackers) > 1
    for one, other in zip(changed.attackers, again.attackers, strict=True):
        assert one.name == other.name
        for name in ("cells", "lb", "ub", "sensitive", "lower", "upper", "sliding"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (mine is None) is (theirs is None)
            assert mine is None or np.array_equal(mine, theirs), name
    assert table.with_(name="x").insiders


# ---------------------------------------------------------------- 7: nothing checked


def test_nothing_checked_is_not_safe(tmp_path, capsys):
    table = counts().with_(sensitive=np.zeros(42, bool), lower=np.zeros(42), upper=np.zeros(42), sliding=np.zeros(42))
    release = cg.suppress(table)
    found = release.audit()
    assert (found.safe, found.verdict) == (False, "nothing checked")
    with pytest.raises(ReleaseError, match="nothing was checked"):
        release.save(tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
    table.write(tmp_path / "t.jj")
    assert main(["suppress", str(tmp_path / "t.jj"), "--json", "--quiet"]) == 2
    assert json.loads(capsys.readouterr().out)["audit"] == {"safe": False, "checked": 0, "exact": 0, "unsafe": 0}
    assert main(["suppress", str(tmp_path / "t.jj"), "--json", "--quiet", "--allow-nothing-sensitive"]) == 0


# ---------------------------------------------------------------- 8: doors and figures


def test_what_the_audit_refuses_is_not_saved(tmp_path):
    table = counts()
    bare = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive.copy())
    with pytest.raises(ReleaseError, match="the audit refuses it: 3 of 3 cells are not safe"):
        bare.save(tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
    bare.save(tmp_path / "x.csv", allow_unsafe=True)
    assert "NOT SAFE" in (tmp_path / "x.csv").read_text().splitlines()[1]


def test_what_was_audited_cannot_be_changed_before_it_is_saved():
    release = cg.suppress(counts())
    with pytest.raises(ValueError, match="read-only"):
        release.suppressed[:] = False


def test_costs_are_told_inside_only(tmp_path, capsys):
    table = counts()
    table.write(tmp_path / "t.csv")
    assert main(["suppress", str(tmp_path / "t.csv"), "--json"]) == 0
    shown = capsys.readouterr()
    outside = json.loads(shown.out)
    assert not {"objective", "bound", "cost", "loss"} & set(outside)
    assert {"gap", "status", "primary", "secondary", "audit"} <= set(outside)
    assert "cost" not in shown.err.replace(str(tmp_path), "")
    assert main(["suppress", str(tmp_path / "t.csv"), "--json", "--quiet", "--internal"]) == 0
    assert {"objective", "bound", "cost", "loss"} <= set(json.loads(capsys.readouterr().out))


def opposite_corner() -> cg.Table:
    """Two sensitive cells at opposite corners of the cheapest pattern: they share no relation."""
    rows = {"r": [], "c": [], "x": []}
    cells = {
        ("r0", "c0"): (60, 25, 20, 19), ("r0", "c1"): (38, 9), ("r0", "c2"): (100, 90, 80),
        ("r1", "c0"): (13,), ("r1", "c1"): (46, 25, 22, 9), ("r1", "c2"): (100, 90, 80),
        ("r2", "c0"): (50, 45, 40), ("r2", "c1"): (50, 45, 40), ("r2", "c2"): (100, 90, 80),
    }  # fmt: skip
    for (r, c), amounts in cells.items():
        for x in amounts:
            for name, value in zip(rows, (r, c, x), strict=True):
                rows[name].append(value)
    return cg.tabulate(rows, ["r", "c"], "x").apply(cg.MinFrequency(3))


@pytest.mark.parametrize("method", ["suppress", "intervals", "round", "perturb"])
def test_who_is_alone_in_a_cell_does_not_learn_the_opposite_corner(method):
    table = opposite_corner()
    far, own = table.cell({"r": "r0", "c": "c1"}), table.cell({"r": "r1", "c": "c0"})
    assert table.sensitive_cells.tolist() == [far, own]
    lone = cg.Attacker(
        name="who is alone", cells=[own], lb=[13.0], ub=[13.0], sensitive=[far],
        lower=[table.lower[far]], upper=[table.upper[far]],
    )  # fmt: skip
    release = {**METHODS, "round": lambda t: cg.round(t, base=50), "perturb": lambda t: cg.perturb(t, base=50)}[method](
        table
    )
    assert release.published, release.explanation
    seen = replace(release, table=table.with_(attackers=(lone,), insiders=False))
    assert cg.audit(seen).safe


def test_a_part_of_an_audit_is_no_licence_to_save(tmp_path):
    table = counts().with_(sliding=np.where(counts().sensitive, 0.4, 0.0), smallest_width=2.0)
    room = np.where(table.sensitive, 0.2, 0.6)
    release = Intervals(
        table=table, status=Status.FEASIBLE, objective=0.0, lower=table.values - room, upper=table.values + room
    )
    release.audit(integer=False)
    with pytest.raises(ReleaseError, match="refuses"):
        release.save(tmp_path / "x.csv")
