"""The informed intruder against adjusted tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.adjuster import adjuster_of
from cellguard._engine.soft import closest_soft
from cellguard.adjust import PLAIN
from cellguard.attack.scenarios import CLASSES, _distribution
from cellguard.cli import main
from cellguard.exceptions import ReleaseError, UnknownCodeError


@pytest.fixture
def release() -> cg.Release:
    return cg.adjust(cg.examples.castro2004_figure1(), norm="l1", **PLAIN)


def test_who_knows_the_bounds_recomputes_the_table() -> None:
    release = cg.adjust(cg.examples.castro2004_figure3(), norm="l1", **PLAIN)
    found = cg.attack(release, "C", replications=3, seed=1)
    assert found.distribution["0"] == 100.0
    assert found.verdict.startswith("disclosed")
    assert np.allclose(found.estimates, release.table.values[found.cells])


def test_who_guesses_levels_and_senses_does_not(release: cg.Release) -> None:
    found = cg.attack(release, "B1", replications=5, seed=1)
    assert found.distribution["0"] == 0.0
    assert sum(found.distribution.values()) == pytest.approx(100.0)
    assert set(found.per_cell()) == set(found.cells.tolist())


def test_the_same_seed_gives_the_same_guesses(release: cg.Release) -> None:
    one, two = (cg.attack(release, "B2", replications=2, seed=7) for _ in range(2))
    assert np.array_equal(one.estimates, two.estimates)
    parallel = cg.attack(release, "B2", replications=2, seed=7, n_jobs=2)
    assert np.allclose(one.estimates, parallel.estimates)


def test_estimates_are_additive_tables(release: cg.Release) -> None:
    """What the intruder computes satisfies the relations, soft bounds or not."""
    t = release.table
    z = closest_soft(
        adjuster_of(t.relations, t.fixed),
        np.where(t.sensitive, 3.0, -t.values),
        np.where(t.sensitive, 2.0, t.values),  # contradicts the lower bound: must be softened
        absolute=np.ones(t.n_cells),
        penalty=np.full(t.n_cells, 100.0),
    )
    assert np.abs(t.relations @ z).max() < 1e-7
    assert (z[t.sensitive] >= 2 - 1e-6).all()


def test_soft_bounds_that_fit_are_met_at_the_least_distance() -> None:
    t = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    lower, upper = np.array([-12.0, -8.0, 4.0]), np.full(3, np.inf)
    z = closest_soft(adjuster_of(t.relations, t.fixed), lower, upper, square=1 / t.values, penalty=np.full(3, 1000.0))
    assert np.allclose(z, [2.4, 1.6, 4.0], atol=1e-5)


def test_classes_are_closed_on_the_right() -> None:
    shares = _distribution(np.array([0.0, 1e-9, 5.0, 5.1, 10.0, 20.0, 100.0, 101.0]))
    assert [shares[c] * 8 / 100 for c in CLASSES] == [2, 1, 2, 1, 0, 0, 1, 1]


def test_wrong_calls_are_refused(release: cg.Release) -> None:
    with pytest.raises(UnknownCodeError, match="did you mean"):
        cg.attack(release, "b2")
    with pytest.raises(cg.InputError):
        cg.attack(release, "B2", replications=0)
    with pytest.raises(cg.InputError):
        cg.attack(release, "B2", level_error=-1)
    with pytest.raises(cg.InputError, match="beta"):
        cg.attack(release, "B2", beta=-1)
    with pytest.raises(cg.InputError, match="published"):
        cg.attack(release, "B2", levels_around="truth")
    with pytest.raises(ReleaseError, match="matching_attack"):
        cg.attack(cg.examples.salazar2004_figure2()["suppress"])
    with pytest.raises(ReleaseError):
        cg.attack(cg.adjust(cg.examples.castro2004_figure1(), norm="linf", **PLAIN))


def test_the_command_attacks_a_table_and_a_release(tmp_path, capfd, release: cg.Release) -> None:
    table, published = tmp_path / "t.jj", tmp_path / "r.csv"
    release.table.write(table)
    assert main(["attack", str(table), "--scenario", "C", "--replications", "2", "--json", "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out)["distribution"]["0"] >= 75.0
    cg.adjust(cg.Table.read(table), norm="l1", **PLAIN).save(published)
    assert main(["attack", str(table), str(published), "--scenario", "C", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["distribution"]["0"] >= 75.0
    assert main(["attack", str(table), "--scenario", "D"]) == 1
