from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard._rounding.model import make_model
from cellguard._rounding.problem import make_problem
from cellguard.exceptions import LevelError


def row(*parts, **fields):
    """Make a row of cells with its total, which comes last."""
    n = len(parts)
    return cg.Table.from_equations([*parts, sum(parts)], [[n, *range(n)]], **{"weights": 1.0, **fields})


def test_a_table_of_multiples_stays():
    release = cg.round(row(5, 10, 0), base=5)
    assert release.values.tolist() == [5, 10, 0, 15]
    assert (release.status, release.objective, release.gap) == ("optimal", 0.0, 0.0)


def test_a_multiple_is_published_with_the_same_distance_as_any_other_cell():
    release = cg.round(row(5, 7, 3), base=5)
    assert release.distance.tolist() == [5.0] * 4


def test_a_fixed_cell_stays_and_counts_as_known():
    release = cg.round(row(5, 7, 3, fixed=[0]), base=5, step=2)
    assert release.values[0] == 5
    assert release.distance.tolist() == [0.0, 10.0, 10.0, 10.0]


def test_known_bounds_are_respected():
    assert cg.round(row(3, 4, 6, ub=[4, np.inf, np.inf, np.inf]), base=5).values[0] == 0
    assert cg.round(row(1, 4, 6, lb=[1, 0, 0, 0]), base=5).values[0] == 5


def test_bounds_that_hold_no_multiple_do_not_forbid_rounding():
    release = cg.round(row(3, 4, 6, lb=[3, 0, 0, 0], ub=[4, np.inf, np.inf, np.inf]), base=5)
    assert release.status == "optimal"


def test_weights_decide_which_cell_moves():
    light_first = cg.round(row(3, 2, 5, weights=[1, 9, 1, 1]), base=5, weights="table")
    light_second = cg.round(row(2, 3, 5, weights=[9, 1, 1, 1]), base=5, weights="table")
    assert light_first.values.tolist() == [5, 0, 5, 10]
    assert light_second.values.tolist() == [0, 5, 5, 10]
    assert cg.round(row(3, 2, 5), base=5, weights=[9, 1, 1, 1]).objective == 9 * 2 + 2


def test_a_fractional_base_takes_fractional_values():
    release = cg.round(row(0.3, 0.4, 0.6), base=0.5)
    assert release.values.tolist() == pytest.approx([0.5, 0.5, 0.5, 1.5])


def test_negative_values():
    release = cg.round(row(-3, 4, -6, lb=-np.inf), base=5)
    assert (release.values % 5 == 0).all()
    assert (np.abs(release.values - [-3, 4, -6, -5]) < 5).all()
    assert release.values[:3].sum() == release.values[3] == -5


def test_the_summary_has_what_the_command_line_prints():
    summary = cg.round(row(3, 4, 6, sensitive=[0], upper=[1]), base=5).summary()
    for name in ("method", "status", "objective", "bound", "gap", "base", "step", "loss", "distance", "seconds"):
        assert name in summary
    assert (summary["method"], summary["base"], summary["step"]) == ("round", 5.0, 1)


def test_no_time_gives_no_release_and_no_error():
    table = row(*range(1, 400))
    release = cg.round(table, base=7, time_limit_s=0.0)
    assert release.status in ("time_limit", "optimal")
    assert release.published == (release.status == "optimal")


def test_infeasible_says_why():
    table = row(3, 4, 6, sensitive=[0], lower=[2], upper=[3])
    release = cg.round(table, base=5, step=1, weights="unit")
    assert release.published or "meets every level" in release.explanation


@pytest.mark.parametrize("base", [0, -5, np.nan, np.inf])
def test_a_base_must_be_positive(base):
    with pytest.raises(cg.InputError, match="positive number"):
        cg.round(row(3, 4), base=base)


def test_a_bad_base_among_many_is_named():
    with pytest.raises(cg.InputError, match="the base of cell 1 is 0"):
        cg.round(row(3, 4), base=[5, 0, 5])


def test_as_many_bases_as_cells():
    with pytest.raises(cg.InputError, match="2 bases were given for 3 cells"):
        cg.round(row(3, 4), base=[5, 5])


def test_fractional_values_need_a_fractional_base():
    with pytest.raises(cg.InputError, match=r"cell 1 .*fractional value") as error:
        cg.round(row(3, 4.25), base=5)
    assert "4.25" not in str(error.value)


def test_a_fixed_cell_must_be_a_multiple():
    with pytest.raises(cg.InputError, match="cell 0: the cell must be published as it is"):
        cg.round(row(3, 4, fixed=[0]), base=5)


@pytest.mark.parametrize("levels", [{"lower": 7, "upper": 4}, {"sliding": 11}])
def test_levels_wider_than_two_bases_are_refused(levels):
    with pytest.raises(LevelError, match=r"cell 0: .*at most 2 x base"):
        cg.round(row(30, 4, sensitive=[0], **levels), base=5)


@pytest.mark.parametrize("option", [{"step": 0}, {"max_step": 0}, {"gap": -1.0}, {"time_limit_s": -1.0}])
def test_bad_options(option):
    with pytest.raises(cg.InputError, match=next(iter(option))):
        cg.round(row(3, 4), **option)


def test_columns_and_cells_translate_both_ways():
    """x -> y -> x, and the price of y is the price of x, for cells with up to three columns."""
    table = row(3, 10, 6)
    n = table.n_cells
    problem = make_problem(
        relations=table.relations, rhs=table.rhs, values=table.values, base=np.full(n, 5.0), step=3,
        weights=np.array([1.0, 2.0, 3.0, 4.0]), lb=table.lb, ub=table.ub, least=np.full(n, -np.inf),
        most=np.full(n, np.inf), fixed=np.zeros(n, bool),
    )  # fmt: skip
    model = make_model(problem)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.integers(problem.low, problem.high + 1)
        y = model.y(x)
        assert model.x(y).tolist() == x.tolist()
        assert model.constant + model.cost @ y == pytest.approx(problem.loss(x))
