"""Who knows how intervals are made: the narrowest tell him the values, those by classes do not."""

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.attacks import attack_intervals
from cellguard.release.release import Intervals, Status


def tables(count=6):
    """Return tables of money with levels of 10%, some sensitive cells each."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        leaves = np.round(rng.lognormal(6, 1, (6, 6)))
        dims = {"a": [f"r{i}" for i in range(6)], "b": [f"c{i}" for i in range(6)]}
        table = cg.Table.from_leaves(dims, leaves)
        s = np.zeros(table.n_cells, bool)
        s[rng.choice(table.n_cells, 8, replace=False)] = True
        yield table.with_(sensitive=s & (table.values < table.values.max())).with_levels(0.1, 0.1)


@pytest.mark.parametrize("knowledge", ["levels", "formulas"])
def test_the_narrowest_intervals_tell_most_values(knowledge):
    found = [cg.attack(cg.intervals(t, position="narrowest"), knowledge) for t in tables()]
    recovered = np.concatenate([f.recovered for f in found])
    assert recovered.mean() > 0.6
    assert sum("disclosed" in f.verdict for f in found) >= 5


@pytest.mark.parametrize("knowledge", ["levels", "formulas", "sets"])
def test_intervals_by_classes_leave_what_the_levels_ask(knowledge):
    for number, table in enumerate(tables()):
        release = cg.intervals(table, key=key(number + 1))
        assert release.audit().safe
        found = cg.attack(release, knowledge)
        assert found.kept.all(), found.verdict
        assert found.recovered.sum() <= 2
        assert "withstood" in found.verdict


def test_sets_are_known_only_of_a_release_that_was_just_made(tmp_path):
    table = next(iter(tables()))
    path = tmp_path / "release.csv"
    cg.intervals(table, key=key(1)).save(path)
    with pytest.raises(cg.CellguardError, match="sets"):
        attack_intervals(cg.read_release(table, path, method="intervals"), "sets")


def test_knowledge_that_is_not_known():
    with pytest.raises(cg.CellguardError, match="not known"):
        cg.attack(cg.intervals(next(iter(tables())), key=key(1)), "leves")


def test_the_file_holds_neither_the_sets_nor_the_key(tmp_path):
    table = next(iter(tables()))
    release = cg.intervals(table)
    release.save(tmp_path / "release.csv")
    assert release.options["key"].to_hex() not in (tmp_path / "release.csv").read_text()
    assert set(release.frame().column_names) & {"inner_lower", "inner_upper"} == set()


def test_an_interval_of_a_count_that_follows_from_no_class_is_not_called_protected():
    """The count 10 with levels of 10% was published as 9 to 14: no other count led to that."""
    table = cg.Table.from_equations([10, 50, 60], [[2, 0, 1]], sensitive=[0], integer=True).with_levels(0.1, 0.1)
    ends = {"lower": np.array([9.0, 46, 60]), "upper": np.array([14.0, 51, 60])}
    old = Intervals(table=table, status=Status.FEASIBLE, objective=0.0, **ends)
    assert old.audit().safe
    for knowledge in ("levels", "formulas"):
        found = cg.attack(old, knowledge)
        assert not found.kept.any()
        assert "withstood" not in found.verdict
    for number in range(1, 6):
        found = cg.attack(cg.intervals(table, key=key(number)), "levels")
        assert found.kept.all(), found.verdict
        assert found.explained.all()
