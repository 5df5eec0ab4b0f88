"""Suppression: safe patterns, as cheap as they get."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from builders import table_with_margins
from cellguard import generate
from cellguard.datasets.examples import salazar2004_figure1
from cellguard.release.release import Suppression

QUICK = {"method": "heuristic", "rounds": 30}


def figure_1(**levels):
    return salazar2004_figure1().with_(**{name: _at(11, level) for name, level in levels.items()})


def _at(cell, level):
    out = np.zeros(16)
    out[cell] = level
    return out


def grid(rows, columns, sensitive, *, level=2.0, **more):
    """A two-way table with margins, all cells different."""
    inner = 10.0 + np.arange(rows * columns).reshape(rows, columns) % 7
    return table_with_margins(inner, sensitive=sensitive, lower=level, upper=level, **more)


@pytest.mark.parametrize("method", ["heuristic", "exact", "auto"])
def test_no_dearer_than_figure_2a(method):
    table = figure_1(lower=10.0, upper=8.0, sliding=0.0)
    release = cg.suppress(table, method=method, rounds=30)
    assert release.audit().safe
    assert release.cost <= 8 + 17 + 12


@pytest.mark.parametrize("name", ["targus", "table7"])
def test_patterns_of_csplib_are_safe(csplib, name):
    assert cg.suppress(cg.Table.read(csplib(name)), **QUICK).audit().safe


@pytest.mark.parametrize(("name", "optimum"), [("targus", 2033155), ("table8", 103)])
def test_optima_that_two_other_codes_found(csplib, name, optimum):
    release = cg.suppress(cg.Table.read(csplib(name)), method="exact")
    assert release.status is cg.Status.OPTIMAL
    assert release.objective == pytest.approx(optimum)
    assert release.cost == release.objective
    assert release.audit().safe


def test_the_same_seed_gives_the_same_pattern():
    table = generate.hierarchical(3, branching=((3, 3), (4,)), sensitive=0.2)
    for options in (QUICK, {"method": "auto"}):
        first, again = (cg.suppress(table, seed=7, **options) for _ in range(2))
        assert np.array_equal(first.suppressed, again.suppressed)


def test_the_bound_is_below_the_cost():
    release = cg.suppress(generate.onehier(2, rows=6, columns=6, families=1, sensitive=0.1), time_limit_s=3)
    assert 0 < release.bound <= release.objective
    assert release.status is cg.Status.OPTIMAL


# ------------------------------------------------------------------ what the user may ask for


def test_cells_that_must_be_published_are():
    table = grid(4, 4, [0])
    cell = int(np.flatnonzero(cg.suppress(table, **QUICK).secondary)[0])
    kept = cg.suppress(table, must_publish=[cell], **QUICK)
    assert not kept.suppressed[cell]
    assert kept.audit().safe


def test_cells_suppressed_before_stay_suppressed():
    table = grid(4, 4, [0])
    release = cg.suppress(table, already_suppressed=[18], **QUICK)
    assert release.suppressed[18]
    assert release.audit().safe


def test_preferred_cells_are_taken():
    table = grid(4, 4, [0])
    wanted = [3, 15, 18]  # the corners of a box with cell 0
    release = cg.suppress(table, prefer=wanted, method="exact")
    assert release.suppressed[wanted].all()


@pytest.mark.parametrize("weights", ["unit", "value", "log", "sqrt", "power", "frequency", "table", np.arange(25.0)])
def test_kinds_of_costs(weights):
    table = grid(4, 4, [0], counts=np.full(25, 3.0))
    release = cg.suppress(table, weights=weights, method="exact")
    assert release.audit().safe
    assert release.cost == pytest.approx(release.table.weights[release.secondary].sum())


def test_unit_costs_take_the_fewest_cells():
    assert int(cg.suppress(grid(4, 4, [0]), weights="unit", method="exact").secondary.sum()) == 3


def test_cells_that_cost_nothing_are_published_unless_needed():
    table = grid(4, 4, [0], weights=np.zeros(25))
    release = cg.suppress(table, **QUICK)
    assert release.audit().safe
    assert int(release.secondary.sum()) == 3


def test_sliding_levels_are_met():
    table = grid(4, 4, [0], level=0.0, sliding=9.0)
    for method in ("heuristic", "exact"):
        release = cg.suppress(table, method=method, rounds=30)
        low, high = release.audit(exact=True).ranges["external"][1:]
        assert high[0] - low[0] >= 9 - 1e-6


def test_a_respondent_alone_in_a_cell_does_not_undo_the_pattern():
    table = grid(4, 4, [0, 1], attackers=())
    others = np.array([1])
    alone = cg.Attacker(
        name="alone in cell 0", cells=[0], lb=table.values[:1], ub=table.values[:1],
        sensitive=others, lower=[2.0], upper=[2.0],
    )  # fmt: skip
    table = table.with_(attackers=(cg.Attacker(name="external"), alone))
    for method in ("heuristic", "exact"):
        assert cg.suppress(table, method=method, rounds=30).audit().safe


def test_asymmetric_levels_cost_no_more():
    table = generate.onehier(5, rows=8, columns=8, families=1, sensitive=0.15)
    symmetric, asymmetric = (
        cg.suppress(table.with_levels(lower, 0.2), method="exact", time_limit_s=20) for lower in (0.2, 0.05)
    )
    assert symmetric.status == asymmetric.status == cg.Status.OPTIMAL
    assert asymmetric.objective <= symmetric.objective * (1 + 1e-9)


def test_whoever_interrupts_gets_the_best_pattern_so_far():
    def tired(cost, bound):
        raise KeyboardInterrupt

    release = cg.suppress(grid(5, 5, [0, 7]), progress=tired)
    assert release.audit().safe


# ------------------------------------------------------------------ bad input


def test_a_sensitive_cell_that_must_be_published_is_refused():
    with pytest.raises(cg.InputError, match="must be published"):
        cg.suppress(grid(4, 4, [0]), must_publish=[0])


def test_a_cell_that_must_be_both_is_refused():
    with pytest.raises(cg.InputError, match="must be published"):
        cg.suppress(grid(4, 4, [0]), must_publish=[3], already_suppressed=[3])


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "magic"},
        {"time_limit_s": -1},
        {"weights": [1.0, 2.0]},
        {"weights": "frequency"},
        {"weights": "power", "power": -1.0},
        {"must_publish": [99]},
        {"prefer": [True]},
    ],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(cg.InputError):
        cg.suppress(grid(4, 4, [0]), **wrong)


def test_infeasible_says_which_cell_and_what_to_free():
    table = cg.Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[2], lower=[2], fixed=[1, 2])
    release = cg.suppress(table)
    assert release.status is cg.Status.INFEASIBLE
    assert "cell 0" in release.explanation
    assert "cell 1" in release.explanation or "cell 2" in release.explanation
    freed = table.with_(
        fixed=np.array([False, "cell 1" not in release.explanation, "cell 2" not in release.explanation])
    )
    assert cg.suppress(freed, **QUICK).audit().safe


def test_infeasible_whatever_is_freed():
    table = cg.Table.from_equations(
        [3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[2], lower=[2], lb=[0, 3.5, 6.5], ub=[9, 4.5, 7.5]
    )
    release = cg.suppress(table)
    assert release.status is cg.Status.INFEASIBLE
    assert "bounds" in release.explanation


def test_a_large_cell_among_small_ones_hides_behind_its_totals_in_large_tables_too():
    from cellguard._engine.clock import NEVER
    from cellguard.methods.limits import Limits
    from cellguard.methods.suppress.problem import SuppressionProblem
    from cellguard.methods.suppress.search.neighbourhoods import LargeSearch

    table = generate.hierarchical(1, branching=((4, 5), (4, 4), (3,)), sensitive=0.3, zeros=0.05)
    search = LargeSearch(problem=SuppressionProblem.of(table, forced=table.sensitive), limits=Limits())
    assert search.start(NEVER)
    release = Suppression(table=table, status=cg.Status.FEASIBLE, objective=search.cost, suppressed=search.best)
    assert release.audit().safe


@pytest.mark.parametrize("method", ["heuristic", "exact", "auto"])
def test_nothing_is_withheld_where_nothing_is_sensitive(method):
    table = cg.Table.from_leaves({"r": ["N", "S"], "s": ["f", "m"]}, [[3.0, 4.0], [6.0, 2.0]])
    release = cg.suppress(table, method=method, time_limit_s=5, rounds=3)
    assert release.published
    assert not release.suppressed.any()


def test_cells_that_move_with_a_sensitive_one_count_in_the_bound_too():
    table = generate.hierarchical(2, branching=((2, 3), (2, 2), (2,)), sensitive=0.2, zeros=0.1)
    known = np.random.default_rng(2).random(table.n_cells) < 0.5
    table = table.with_(
        ub=np.where(known, 1.5 * table.values, np.inf),
        lower=np.where(table.sensitive, 0.1 * table.values, 0.0),
        upper=np.where(table.sensitive, 0.2 * table.values, 0.0),
    )
    release = cg.suppress(table, method="exact")
    assert release.status is cg.Status.OPTIMAL
    assert release.bound == pytest.approx(release.objective)
