from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.numbers.multiples import split_into_multiples
from cellguard.exceptions import LevelError, ReleaseError
from cellguard.methods.rounding.model import make_rounding_model
from cellguard.methods.rounding.problem import Bases, make_rounding_problem
from cellguard.release.release import Rounding


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
    assert release.distance.tolist() == [4.0] * 4  # less than a base, and values are whole


def test_a_fixed_cell_stays_and_counts_as_known():
    release = cg.round(row(5, 7, 3, fixed=[0]), base=5, step=2)
    assert release.values[0] == 5
    assert release.distance.tolist() == [0.0, 9.0, 9.0, 9.0]


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
    summary = cg.round(row(3, 4, 6, sensitive=[0], upper=[1]), base=5).summary(internal=True)
    for name in ("method", "status", "objective", "bound", "gap", "base", "step", "loss", "distance", "seconds"):
        assert name in summary
    assert "distance" not in cg.round(row(3, 4, 6, sensitive=[0], upper=[1]), base=5).summary()
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


def test_decimals_are_rounded_to_a_whole_base():
    """Multiples are decided in units of the last decimal, so amounts need not be whole."""
    table = row(3, 4.25, 12.5, sensitive=[1], lower=1, upper=2)
    release = cg.round(table, base=5)
    assert (release.values % 5 == 0).all()
    assert release.distance.tolist() == [4.99] * 4
    assert release.audit().safe


def test_a_fixed_cell_must_be_a_multiple():
    with pytest.raises(cg.InputError, match="cell 0: the cell must be published unchanged"):
        cg.round(row(3, 4, fixed=[0]), base=5)


@pytest.mark.parametrize("levels", [{"lower": 7, "upper": 4}, {"sliding": 11}])
def test_levels_wider_than_two_bases_are_refused(levels):
    with pytest.raises(LevelError, match=r"cell 0: .*at most 2 x base"):
        cg.round(row(30, 4, sensitive=[0], **levels), base=5)


@pytest.mark.parametrize("option", [{"step": 0}, {"max_step": 0}, {"gap": -1.0}, {"time_limit_s": -1.0}])
def test_bad_options(option):
    with pytest.raises(cg.InputError, match=next(iter(option))):
        cg.round(row(3, 4), **option)


@pytest.mark.parametrize("moved", [False, True])
def test_columns_and_cells_translate_both_ways(moved):
    """x -> y -> x, and the price of y is the price of x, for cells with up to three columns and with holes."""
    table = row(3, 10, 6)
    n = table.n_cells
    base, wide = np.full(n, 5.0), np.full(n, np.inf)
    table = table.with_(lb=-wide)
    bases = Bases(base=base, lattice=split_into_multiples(table.values, base)[0], step=3, unit=1.0)
    problem = make_rounding_problem(table, bases, np.array([1.0, 2.0, 3.0, 4.0]), [], np.full(n, moved))
    assert problem.hole.tolist() == [False, moved, False, False]
    model = make_rounding_model(problem)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.integers(problem.low, problem.high + 1)
        x = np.where(problem.hole & (x == 0), 1, x)
        y = model.compute_y(x)
        assert (model.link_rows @ y >= model.link_sides).all()
        assert model.compute_x(y).tolist() == x.tolist()
        assert model.constant + model.cost @ y == pytest.approx(problem.compute_loss(x))


# ---------------------------------------------------------------- multiples are a matter of whole numbers


def test_large_values_are_rounded_like_small_ones():
    """A tolerance relative to the quotient let 7,000,000,001 stay, and the 25 beside it followed by subtraction."""
    table = row(7_000_000_001, 25, 12, sensitive=[1], lower=2, upper=2, weights=1.0)
    release = cg.round(table, base=5)
    assert (release.values % 5 == 0).all()
    assert release.values[:3].sum() == release.values[3]
    assert release.audit().safe


@pytest.mark.parametrize("size", [1e8, 5e8, 1e12, 2.0**53 - 100])
def test_residues_of_large_values_do_not_pass(size):
    table = row(*(size + k for k in (1, 2)), lb=0.0) if size < 1e15 else row(size + 1, 2, 3)
    release = cg.round(table, base=5)
    assert (np.fmod(release.values, 5) == 0).all()
    lo, hi = release.published_bounds()
    assert ((lo <= table.values) & (table.values <= hi)).all()


def test_values_beyond_whole_numbers_are_refused_by_label_and_without_their_value():
    with pytest.raises(cg.InputError, match=r"cell 0 \(and 1 more\): the value is too large") as error:
        cg.round(row(2.0**53 + 2, 4), base=5)
    assert "9007" not in str(error.value)


def test_the_audit_refuses_what_is_no_multiple():
    table = row(7_000_000_001, 25, sensitive=[1], lower=2, upper=2)
    release = Rounding(
        table=table, status="feasible", objective=0.0, values=table.values + [0, -1, -1], base=np.full(3, 5.0)
    )
    with pytest.raises(ReleaseError, match=r"cell 0 \(and 1 more\): .*not a multiple"):
        release.audit()


def test_the_audit_refuses_a_large_table_that_does_not_add_up():
    table = row(7_000_000_001, 7_000_000_003)
    release = Rounding(
        table=table, status="feasible", objective=0.0, base=np.full(3, 5.0),
        values=np.array([7_000_000_000.0, 7_000_000_005, 14_000_000_000]),
    )  # fmt: skip
    with pytest.raises(ReleaseError, match="1 of 1 relations"):
        release.audit()


@pytest.mark.parametrize(
    ("values", "base"), [((0.3, 0.4, 0.6), 0.5), ((12.37, 0.05, 3.2), 0.1), ((1.1, 2.2, 3.3), 0.3)]
)
def test_decimals_are_multiples_as_they_are_printed(values, base, tmp_path):
    table = row(*values, sensitive=[0], sliding=base)
    release = cg.round(table, base=base)
    shares = [Fraction(repr(v)) / Fraction(repr(base)) for v in release.values.tolist()]
    assert all(share.denominator == 1 for share in shares)
    release.save(tmp_path / "r.csv")
    again = cg.read_release(table, tmp_path / "r.csv", base=base, step=release.step)
    assert (again.values == release.values).all()
    assert again.audit().safe


def test_a_continuous_table_has_the_closed_interval():
    table = row(1 / 3, 2 / 7, sensitive=[0], sliding=0.5)
    release = cg.round(table, base=0.5)
    assert release.unit == 0.0
    assert release.distance.tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("base", "message"), [(1 / 3, "more than nine decimals"), (2.5, "more decimals than the values")]
)
def test_bases_that_no_grid_holds_are_refused(base, message):
    with pytest.raises(cg.InputError, match=message):
        cg.round(row(3, 4), base=base)


# ---------------------------------------------------------------- what is really possible


def test_no_cell_moves_by_a_whole_base_and_the_attacker_knows_it():
    """3 of [0, 4] and [1, 9]: a whole base away on either side there is nothing."""
    table = row(3, 40, 50, sensitive=[0], sliding=8, integer=True, lb=-np.inf)
    low, high = cg.round(table, base=5).published_bounds()
    assert (high - low).tolist() == [8.0] * 4
    with pytest.raises(LevelError):
        cg.round(table.with_(sliding=np.array([9.0, 0, 0, 0])), base=5)


def test_the_truth_is_never_published_for_a_sensitive_cell():
    table = row(5, 7, 3, sensitive=[0], sliding=2, integer=True)
    release = cg.round(table, base=5)
    assert release.step == 2
    assert release.values[0] in (0, 10)
    assert release.audit().safe
    paper = cg.round(table, base=5, keep_multiples=True)
    assert (paper.step, paper.values[0]) == (1, 5)
    assert paper.audit().safe
    assert not replace(paper, keep_multiples=False).audit().safe


def test_a_sensitive_multiple_that_cannot_move_is_named():
    release = cg.round(row(5, 7, 3, sensitive=[0], sliding=2), base=5, step=1)
    assert release.status == "infeasible"
    assert "cell 0: the cell is sensitive" in release.explanation


def test_a_sensitive_zero_moves_up():
    table = row(0, 7, 3, sensitive=[0], integer=True)
    release = cg.round(table, base=5)
    assert (release.step, release.values[0]) == (2, 5)
    assert release.audit().safe


def test_a_sensitive_count_without_levels_is_left_three_whole_numbers():
    table = row(1, 7, 3, sensitive=[0], integer=True)
    release = cg.round(table, base=5)
    _, low, high = release.audit(exact=True).ranges["external"]
    assert (high - low)[0] >= 2


def amounts():
    """Weighted amounts with cents, of which some cells are sensitive."""
    rng = np.random.default_rng(7)
    values = np.round(rng.lognormal(6, 1, (5, 4)), 2)
    t = cg.Table.from_leaves({"region": list("abcde"), "size": list("wxyz")}, values)
    few = np.isin(np.arange(t.n_cells), [t.cell({"region": "a", "size": "w"}), t.cell({"region": "c", "size": "z"})])
    return t.with_(sensitive=few, lower=0.1 * t.values * few, upper=0.1 * t.values * few)


@pytest.mark.parametrize("base", [2.5, 100, 1000])
def test_totals_of_amounts_go_to_their_nearest_multiple_where_asked(base):
    t = amounts()
    t = t.with_(lower=np.minimum(t.lower, base / 4), upper=np.minimum(t.upper, base / 4))
    plain = cg.round(t, base, weights="inverse", time_limit_s=10)
    release = cg.round(t, base, keep=["total", ["region"]], weights="inverse", time_limit_s=10)
    kept = (t.coordinates[:, 1] == 0) & ~t.sensitive
    assert np.allclose(release.values[kept], np.floor(t.values[kept] / base + 0.5) * base)
    assert base == 100 or not np.allclose(plain.values[kept], release.values[kept])
    assert release.audit().safe
    assert np.allclose(np.mod(release.values / base + 0.5, 1), 0.5)


def test_whoever_knows_that_totals_were_kept_is_an_attacker():
    release = cg.round(amounts(), 1000, keep=["total"], time_limit_s=10)
    low, high = release.published_bounds()
    assert high[0] - low[0] <= 1000
    assert (high - low)[1:].max() > 1900


def test_kept_totals_of_a_publication_are_known_too():
    t = amounts()
    publication = cg.Publication.of({"one": t, "other": amounts().with_(name="other").with_weights("unit")})
    release = cg.round(publication, 1000, keep=["total"], time_limit_s=10)
    low, high = release.published_bounds()
    assert (high - low).min() <= 1000
    assert release.audit().safe
