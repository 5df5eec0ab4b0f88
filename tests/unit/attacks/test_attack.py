"""The informed intruder against adjusted tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Distance, Target
from cellguard.attacks.decimals import DecimalIntruder
from cellguard.attacks.intruder import Knowledge, ProgramIntruder
from cellguard.attacks.scenarios import CLASSES, _summarize_errors
from cellguard.cli import main
from cellguard.exceptions import ReleaseError, UnknownCodeError
from cellguard.methods.adjust.adjust import PLAIN
from cellguard.methods.adjust.senses import add_surplus, needs_of_adjustment


@pytest.fixture
def release() -> cg.Release:
    return cg.adjust(cg.examples.castro2004_figure1(), norm="l1", **PLAIN)


def test_who_knows_the_bounds_recomputes_the_table() -> None:
    release = cg.adjust(cg.examples.castro2004_figure3(), norm="l1", **PLAIN)
    found = cg.attack(release, "C", replications=3, seed=1)
    assert found.distribution["0"] == 100.0
    assert found.verdict.startswith("disclosed")
    assert np.allclose(found.estimates, release.table.values[found.cells])


def test_who_knows_the_senses_errs_on_no_side_that_b1_would(release: cg.Release) -> None:
    """B1 draws the senses, B2 knows them: only in B1 can a cell that rose be taken for one that fell."""
    rose = release.values > release.table.values
    wrong = {}
    for scenario in ("B1", "B2"):
        found = cg.attack(release, scenario, replications=20, seed=1)
        moved = release.values[found.cells] - found.estimates  # the movement that the attacker infers
        wrong[scenario] = np.where(rose[found.cells], moved < -1e-6, moved > 1e-6).sum()
    assert wrong["B1"] > 0
    assert wrong["B2"] == 0


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
    target = Target(
        np.where(t.sensitive, 3.0, -t.values),
        np.where(t.sensitive, 2.0, t.values),  # contradicts the lower bound: must be softened
        Distance.of(t.n_cells, absolute=np.ones(t.n_cells)),
        soft=np.full(t.n_cells, 100.0),
    )
    z = Adjuster(t.relations, t.fixed).solve(target, tolerance=1e-9).z
    assert np.abs(t.relations @ z).max() < 1e-7
    assert (z[t.sensitive] >= 2 - 1e-6).all()


def test_soft_bounds_that_fit_are_met_at_the_least_distance() -> None:
    t = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    lower, upper = np.array([-12.0, -8.0, 4.0]), np.full(3, np.inf)
    target = Target(lower, upper, Distance.of(3, square=1 / t.values), soft=np.full(3, 1000.0))
    z = Adjuster(t.relations, t.fixed).solve(target, tolerance=1e-9).z
    assert np.allclose(z, [2.4, 1.6, 4.0], atol=1e-5)


def test_classes_are_closed_on_the_right() -> None:
    shares = _summarize_errors(np.array([0.0, 1e-9, 5.0, 5.1, 10.0, 20.0, 100.0, 101.0]))
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
    plain = ["--senses", "upper", "--surplus", "0"]
    options = [*plain, "--scenario", "C", "--replications", "2", "--json"]
    assert main(["attack", str(table), *options, "--real", "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out)["distribution"]["0"] >= 75.0
    cg.adjust(cg.Table.read(table), norm="l1", **PLAIN).save(published)
    assert main(["attack", str(table), str(published), *options, "--may-stay"]) == 0
    assert json.loads(capfd.readouterr().out)["distribution"]["0"] >= 75.0
    assert main(["attack", str(table), "--scenario", "D"]) == 1


# ---------------------------------------------------------------- what he knows besides


def test_who_knows_the_weight_function_recomputes_an_l2_table_exactly(csplib) -> None:
    """Proposition 2 of castro2004: with all terms known L2 has one solution; the papers' weights are others here."""
    release = cg.adjust(cg.Table.read(csplib("table1")), norm="l2", weights="unit", **PLAIN)
    assert cg.attack(release, "C", replications=2, seed=1).distribution["0"] == 100.0
    guessed = cg.attack(release, "C", replications=2, seed=1, weights="inverse_square")
    assert guessed.distribution["0"] < 95.0


def test_who_knows_the_weight_function_but_not_its_values_does_not_recompute_all_of_an_l2_table(csplib) -> None:
    """Proposition 2 needs the weights as numbers: with w = 1/a^2 that is knowing a. Scenario C guesses a."""
    table = cg.Table.read(csplib("hier13"))
    by_function = cg.adjust(table, norm="l2", weights="inverse_square", **PLAIN)
    assert 90.0 < cg.attack(by_function, "C", replications=4, seed=1).distribution["0"] < 100.0
    as_numbers = cg.adjust(table, norm="l2", weights=1.0 / np.maximum(table.values, 1.0) ** 2, **PLAIN)
    assert cg.attack(as_numbers, "C", replications=2, seed=1).distribution["0"] == 100.0


@pytest.mark.parametrize("senses", ["upper", "lower"])
@pytest.mark.parametrize("scenario", ["B2", "decimals"])
def test_every_true_value_is_within_beta_of_the_published_one(senses: str, scenario: str) -> None:
    """castro2012 section 5 asks for a in [x (1 - beta), x (1 + beta)]; |x - a| / a is too small for cells that fall."""
    table = money().with_levels(0.2, 0.2)
    release = cg.adjust(table, norm="l1", senses=senses, surplus=0, integer=False)
    beta = cg.attack(release, scenario, replications=1).beta
    s = table.sensitive
    x, a = release.values[s], table.values[s]
    assert (a >= x * (1 - beta) - 1e-9).all()
    assert (a <= x * (1 + beta) + 1e-9).all()
    assert beta == pytest.approx(0.25 if senses == "lower" else 0.2, rel=1e-6)


@pytest.mark.parametrize("senses", ["upper", "lower"])
@pytest.mark.parametrize("level", [0.1, 0.2, 0.3])
def test_public_senses_leave_a_width_of_both_levels(senses: str, level: float) -> None:
    """Whatever was drawn, the values that could have led to a published one fill both levels together."""
    table = money().with_levels(level, level)
    surplus = 0.5 if senses == "lower" and level > 0.2 else 1.0  # nothing is left of a value less all of that
    widths = []
    for seed in range(1, 13):
        release = cg.adjust(table, norm="l1", senses=senses, surplus=surplus, integer=False, key=key(seed))
        if "surplus" in release.explanation:
            continue
        intruder = DecimalIntruder(release)
        x = release.values[intruder.cells]
        if senses == "upper":
            possible = x / (1 + level) - x / (1 + level + intruder.extra_up)
        else:
            possible = x / (1 - level - intruder.extra) - x / (1 - level)
        widths.append(possible / (2 * level * surplus * table.values[intruder.cells]))
    assert widths
    assert min(w.min() for w in widths) >= 1.0 - 1e-9


@pytest.mark.parametrize("level", [0.1, 0.2, 0.3])
def test_the_largest_surplus_of_public_senses_is_what_a_width_of_both_levels_needs(level: float) -> None:
    """Computed from the distances that the release uses: values up to the largest surplus stay possible.

    With the surplus of secret senses doubled, the width was .77 to .91 of both levels at 10%, .53 to .77 at 30%.
    """
    table = money().with_levels(level, level)
    table = table.with_(ub=np.full(table.n_cells, np.inf))
    need = needs_of_adjustment(table)
    a = table.values[need.cells]
    extra = add_surplus(table, need, 1.0, 0.0, None).upper[need.cells] / a - level
    x = a * (1.0 + level)  # the narrowest range belongs to the smallest surplus
    possible = x / (1.0 + level) - x / (1.0 + level + extra)
    assert (possible / (2.0 * level * a)).min() >= 1.0 - 1e-9
    assert (possible / (2.0 * level * a)).max() <= 1.0 + 1e-9


def test_no_movement_is_always_allowed_where_13_says_so() -> None:
    """(13) bounds both halves of a movement by 0 or more; (11) forces a cell whose guess leaves its known bounds."""
    table = cg.Table.from_equations(
        [100.0, 50, 50, 200], [[3, 0, 1, 2]], ub=[101, 60, 60, 300], sensitive=[1], lower=[5], upper=[5]
    )
    release = cg.adjust(table, norm="l1", senses="upper", surplus=0, integer=False)
    as_11 = ProgramIntruder(release, "B3", Knowledge())
    as_13 = ProgramIntruder(release, "B3", Knowledge(may_stay=True))
    guess = release.values * 1.2  # cell 0 is guessed above what it can be
    assert as_11._compute_slack(guess)[0][0] > 0
    low, high = as_13._compute_slack(guess)
    assert (low <= 0).all()
    assert (high >= 0).all()
    assert low.tolist() == np.minimum(guess - table.ub, 0.0).tolist()  # minus the upper bound of z-, u - x, at least 0
    assert high.tolist() == np.maximum(guess - table.lb, 0.0).tolist()  # the upper bound of z+, x - l, at least 0


def test_who_knows_less_finds_less_or_as_much(csplib) -> None:
    """Norm, weights and bounds hide nothing; the senses hide much, and which cells are sensitive hides everything."""
    plain = cg.adjust(cg.Table.read(csplib("hier13")), norm="l1", weights="inverse", **PLAIN)

    def exact(**knows: object) -> float:
        return cg.attack(plain, "B3", replications=2, seed=1, **knows).distribution["0"]

    assert exact() == 100.0
    assert min(exact(bounds=False), exact(norm="l2"), exact(weights="unit")) > 90.0
    assert 5.0 < exact(senses="drawn") < 70.0
    assert exact(sensitive=False) < 5.0


def test_weights_that_were_given_are_known_too() -> None:
    table = cg.examples.castro2004_figure1()
    weights = np.linspace(1.0, 3.0, table.n_cells)
    release = cg.adjust(table, norm="l2", weights=weights, **PLAIN)
    assert cg.attack(release, "C", replications=2).distribution["0"] == 100.0


@pytest.mark.parametrize(
    "knows",
    [
        {"senses": "free"},
        {"senses": "drawn"},
        {"sensitive": False},
        {"bounds": False},
        {"may_stay": True},
        {"norm": "l2"},
        {"weights": "unit"},
    ],
)
@pytest.mark.parametrize("scenario", ["B1", "B3"])
def test_whoever_knows_less_still_gets_a_table(release: cg.Release, scenario: str, knows: dict) -> None:
    found = cg.attack(release, scenario, replications=2, seed=1, **knows)
    assert np.isfinite(found.estimates).all()
    assert sum(found.distribution.values()) == pytest.approx(100.0)


def test_who_leaves_the_senses_free_cannot_tell_the_sides_of_a_single_cell() -> None:
    """(9) of castro2012: with the levels known and the senses free both sides cost the same."""
    release = cg.adjust(cg.examples.castro2004_figure3(), norm="l1", **PLAIN)
    found = cg.attack(release, "B3", replications=4, seed=1, senses="free")
    assert np.isclose(np.abs(found.estimates - release.values[found.cells]), release.table.upper[found.cells]).all()


def test_a_norm_without_scenarios_can_be_attacked_by_another(release: cg.Release) -> None:
    other = cg.adjust(release.table, norm="linf", **PLAIN)
    assert np.isfinite(cg.attack(other, "B3", replications=1, norm="l1").estimates).all()


def test_unknown_knowledge_is_refused(release: cg.Release) -> None:
    with pytest.raises(UnknownCodeError, match="did you mean"):
        cg.attack(release, "B2", level_eror=0.1)
    for wrong in ({"senses": "up"}, {"norm": "l3"}, {"weights": "heavy"}):
        with pytest.raises(cg.CellguardError):
            cg.attack(release, "B2", **wrong)
    with pytest.raises(cg.InputError):
        cg.attack(release, "decimals", level_error=0.1)
    with pytest.raises(cg.InputError):
        cg.attack(release, "decimals", shares=(1.5, 0.1))


# ---------------------------------------------------------------- decimals


def money(seed: int = 1) -> cg.Table:
    """Turnover with two decimals by 20 x 12 codes; 80 sensitive cells, levels of 10%."""
    rng = np.random.default_rng(seed)
    dims = {"r": [f"r{i}" for i in range(20)], "c": [f"c{i}" for i in range(12)]}
    table = cg.Table.from_leaves(dims, np.round(rng.lognormal(5, 1.5, (20, 12)), 2))
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1))
    return table.with_(sensitive=np.isin(np.arange(table.n_cells), rng.choice(inner, 80, replace=False))).with_levels(
        0.1, 0.1
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_decimals_give_a_plain_table_away(norm: str) -> None:
    plain = cg.adjust(money(), norm=norm, **PLAIN)
    found = cg.attack(plain, "decimals", replications=1)
    assert found.distribution["0"] == 100.0
    assert found.summary()["alone"] == 80
    by_key = cg.adjust(money(), norm=norm, senses="key", surplus=0, integer=False, key=key(1))
    assert cg.attack(by_key, "decimals", replications=1).distribution["0"] > 85.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_decimals_do_not_give_what_is_published_by_default(norm: str) -> None:
    release = cg.adjust(money(), norm=norm, key=key(1))
    found = cg.attack(release, "decimals", replications=10, seed=1)
    assert found.distribution["0"] < 1.0
    assert found.candidates is not None
    assert found.candidates.min() > 20
    a = release.table.values[found.cells]
    # what he must hold possible is as wide as both levels together, up to the curvature of 1 / x
    assert (found.candidates * 0.01 / (0.2 * a) > 0.8).all()


def test_the_grid_alone_is_not_enough() -> None:
    release = cg.adjust(money(), norm="l1", surplus=0, key=key(1))
    found = cg.attack(release, "decimals", replications=20, seed=1)
    assert found.candidates is not None
    assert np.median(found.candidates) <= 2
    assert found.distribution["0"] > 30.0


def test_surplus_takes_the_exact_values_from_who_knows_senses_and_levels() -> None:
    release = cg.adjust(money(), norm="l1", key=key(1))
    for scenario in ("B3", "C"):
        assert cg.attack(release, scenario, replications=2, seed=1).distribution["0"] == 0.0


def test_whole_numbers_without_a_grid_of_their_own() -> None:
    table = money().with_(values=money().values * np.pi, lower=money().lower * np.pi, upper=money().upper * np.pi)
    plain = cg.adjust(table, norm="l1", **PLAIN)
    found = cg.attack(plain, "decimals", replications=1)  # nothing tells the sides apart, but the sense is known
    assert found.distribution["0"] == 100.0
    assert np.isinf(found.candidates).all()


def test_who_knows_no_bounds_still_solves_his_program(csplib) -> None:
    """Infinite bounds once ended the interior point after three steps, far from any table."""
    table = cg.Table.read(csplib("targus")).with_levels(0.1, 0.1)
    plain = cg.adjust(table, norm="l2", weights="inverse_square", **PLAIN)
    found = cg.attack(plain, "B3", replications=2, bounds=False)
    assert found.distribution["0"] == 100.0


def test_a_zero_that_moved_a_little_weighs_no_more_than_a_one(csplib) -> None:
    """L2 moves zeros of cbs by 1e-10; 1 over the square of that once outweighed the whole table."""
    release = cg.adjust(cg.Table.read(csplib("cbs")), norm="l2", weights="inverse_square", **PLAIN)
    assert cg.attack(release, "B3", replications=1).distribution["0"] > 90.0
