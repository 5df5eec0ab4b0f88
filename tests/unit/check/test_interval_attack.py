"""Who knows how intervals are made: the narrowest tell him the values, those by classes do not."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.check.attack import interval_attack


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
        release = cg.intervals(table, seed=number + 1)
        assert release.audit().safe
        found = cg.attack(release, knowledge)
        assert found.kept.all(), found.verdict
        assert found.recovered.sum() <= 2
        assert "withstood" in found.verdict


def test_sets_are_known_only_of_a_release_that_was_just_made(tmp_path):
    table = next(iter(tables()))
    path = tmp_path / "release.csv"
    cg.intervals(table, seed=1).save(path)
    with pytest.raises(cg.CellguardError, match="sets"):
        interval_attack(cg.read_release(table, path, method="intervals"), "sets")


def test_knowledge_that_is_not_known():
    with pytest.raises(cg.CellguardError, match="not known"):
        cg.attack(cg.intervals(next(iter(tables())), seed=1), "leves")


def test_the_file_holds_neither_the_sets_nor_the_seed(tmp_path):
    table = next(iter(tables()))
    release = cg.intervals(table, seed=123454321)
    release.save(tmp_path / "release.csv")
    assert "123454321" not in (tmp_path / "release.csv").read_text()
    assert set(release.frame().column_names) & {"inner_lower", "inner_upper"} == set()
