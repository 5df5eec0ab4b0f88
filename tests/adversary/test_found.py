"""Everything the adversary ever found, as small tables written by hand."""

import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from scipy.sparse import csr_array

import cellguard as cg
from adversary import informed
from adversary.campaign import run_case, trial
from adversary.cases import Case, count_decimals
from adversary.checker import judge
from adversary.commands import command
from adversary.counts import matching
from adversary.generator import case
from adversary.respondents import list_respondents
from adversary.widths import least_width
from adversary.written import read
from builders import key
from cellguard.methods.adjust.task import _pull_inside_bounds
from cellguard.model.linked.publication import Part
from cellguard.testing import assert_additive


def found(table, method, tmp_path, *, shares=None, figures=None, **options):
    """Return what is wrong with a release: the kinds of violations."""
    made = Case(table, (), shares, count_decimals(table.values))
    rng = np.random.default_rng(1)
    return [v.kind for v in trial(made, method, options, tmp_path, rng, Counter() if figures is None else figures)]


def square(leaves, **fields):
    rows, columns = np.shape(leaves)
    dims = {"r": [f"r{k}" for k in range(rows)], "c": [f"c{k}" for k in range(columns)]}
    return cg.Table.from_leaves(dims, leaves, **fields)


# ---------------------------------------------------------------------- rounding


def test_a_large_value_is_rounded_like_any_other(tmp_path):
    """7000000001 was left as it is with base 5: 1e-9 of the quotient hid its residue."""
    table = cg.Table.from_equations([7000000026, 7000000001, 25], [[0, 1, 2]], sensitive=[2], lower=2, upper=2)
    assert not found(table, "round", tmp_path, base=5.0)


@pytest.mark.parametrize("level", [1, 2])
def test_counts_move_by_less_than_the_base(tmp_path, level):
    """The audit took v - base and v + base themselves for possible."""
    leaves = [[1, 4, 2], [3, 0, 6], [7, 2, 1]]
    for cell in (5, 6, 9, 14, 15):
        table = square(leaves, sensitive=[cell], lower=min(level, 1), upper=level, integer=True)
        assert not found(table, "round", tmp_path, base=2.0)
        assert not found(table, "round", tmp_path, base=3.0)


def test_unbiased_rounding_keeps_its_limit(tmp_path):
    """A base of 515 took 50 seconds with a limit of 5: a table of base x base shares was drawn up first."""
    table = cg.Table.from_equations([1300, 400, 900], [[0, 1, 2]], sensitive=[1], lower=100, upper=100)
    begin = time.process_time()
    with suppress(cg.InputError):  # refused as too large, with a hint, is an answer
        cg.round(table, 400.0, objective="unbiased", time_limit_s=1.0, key=key(1))
    assert time.process_time() - begin < 8


def test_unbiased_rounding_says_which_bases_it_knows(tmp_path):
    """A base of a thousand million asked for a matrix of its pairs of residues."""
    table = square([[7, 4], [3, 9]], integer=True, sensitive=[5], lower=1, upper=1)
    with pytest.raises(cg.CellguardError, match="up to 500"):
        cg.round(table, base=1337157790, objective="unbiased")
    assert not found(table, "round", tmp_path, base=1337157790.0, objective="unbiased")


def test_a_rounding_that_was_asked_for_again_is_not_proven_best(tmp_path):
    """Every value a multiple already: more was asked for than the levels, and the bound of that was published."""
    table = case(20261122, 1698, edition=1).table
    assert not found(table, "round", tmp_path, base=3.0, keep_multiples=True, seed=1582430613)


def test_a_rounding_with_kept_totals_is_planned_against_its_respondents():
    """Whoever changes a table's bounds loses its respondents: the audit had more attackers than the plan, a crash."""
    firms = {"r": list("aaabbbccc"), "c": list("xyzxyzxyz"), "v": [40, 7, 9, 31, 52, 8, 60, 17, 28]}
    table = cg.tabulate(firms, by=["r", "c"], value="v").apply(cg.MinFrequency(2, percent=10))
    release = cg.round(table, base=20, keep=["total"], max_step=2)
    assert release.published
    assert any(attacker.derived for attacker in release.table.attackers)
    assert release.audit().safe


# ---------------------------------------------------------------------- perturbation


def test_perturbation_withstands_its_own_description(tmp_path):
    """The published value lies between the same multiples as the truth; the audit took v - base to v + base."""
    for leaves, cell, level in (([[38.2, 16.2], [2.5, 1.0]], 4, 4), ([[1.7, 7.5], [40.2, 38.8]], 5, 3)):
        table = square(leaves, sensitive=[cell], lower=level, upper=level)
        assert not found(table, "perturb", tmp_path, base=5.0)


def test_perturbed_counts_are_counts(tmp_path):
    table = square([[2, 5, 9], [4, 1, 7]], sensitive=[9], lower=1, upper=1, integer=True)
    for options in ({"distance": 4.0}, {"distance": 2.5}, {"base": 5.0}, {"base": 2.5}):
        assert not found(table, "perturb", tmp_path, **options)


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("position", ["classes", "narrowest"])
def test_intervals_do_not_tell_the_values_they_hide(tmp_path, position):
    """Middle, width and ends gave the value to whoever knew the percentage; of the narrowest they still do."""
    figures = Counter()
    rng = np.random.default_rng(7)
    for number in range(6):
        leaves = np.round(rng.lognormal(4, 1, (5, 5)), 2)
        table = square(leaves, sensitive=rng.choice(36, 6, replace=False)).with_levels(0.1, 0.1)
        options = {"key": key(number + 1), "position": position}
        found(table, "intervals", tmp_path, shares=(0.1, 0.1), figures=figures, **options)
    figures = {name.replace(position, "default"): figure for name, figure in figures.items()}
    assert figures["intervals[default]: sensitive intervals"] > 20
    told = [text for text in informed.verdict(figures) if "intervals" in text]
    assert bool(told) is (position == "narrowest")


def test_values_without_a_grid_are_attacked_too(tmp_path):
    """The adversary stumbled over sets of endlessly many numbers."""
    figures = Counter()
    table = square(np.array([[100, 200], [400, 50]]) / 7, sensitive=[4]).with_levels(0.1, 0.1)
    assert not found(table, "intervals", tmp_path, figures=figures, key=key(1))
    assert figures["intervals[default]: tables"] == 1


def test_sliding_levels_are_not_split_evenly(tmp_path):
    """An even split of a sliding level was called optimal where bounds make another one cheaper."""
    lb = [0, 0, 18, 0, 0, 0]
    table = cg.Table.from_equations(
        [20, 50, 20, 30, 40, 80],
        [[5, 1, 3], [1, 0, 3], [4, 0, 2]],
        sensitive=[0],
        sliding=10,
        lb=lb,
        weights=[1, 2, 3, 4, 5, 6],
    )
    release = cg.intervals(table, position="narrowest")
    assert release.bound <= least_width(table) * (1 + 1e-5)


def test_limits_of_widths_prove_no_more_than_they_absorb():
    """Multipliers were scaled down as if the limits still absorbed what they did before: a bound of 10.9 for 6.44."""
    table = cg.Table.from_equations(
        [179.65917968750, 3130.841796875, 24.6640625, 121664.0625, 885.5224609375, 127901.08203125],
        csr_array(np.array([[0.0, 4.0, -2.0, 2.0, 0.0, -2.0]])),
        ub=[539.6591796875, 9392.841796875, 74.6640625, 364993.0625, 2657.5224609375, 383704.08203125],
        sensitive=[0, 2, 5],
        sliding=[539.6591796875, 74.6640625, 25550.00269862694],
    )
    table = table.with_(weights=1 / table.values)
    release = cg.intervals(table, position="narrowest", gap=0.01)
    assert release.bound <= least_width(table) * (1 + 1e-5)


def test_intervals_by_classes_fit_between_bounds():
    """Called infeasible, when positions were random, because a larger level did not fit between the bounds."""
    table = cg.Table.from_equations(
        [10, 4, 6], [[0, 1, 2]], sensitive=[1], lower=2, upper=2, lb=[10, 0, 4], ub=[10, 9, 8]
    )
    for seed in range(1, 6):
        assert cg.intervals(table, key=key(seed)).published


def test_a_width_without_weight_costs_a_millionth(tmp_path):
    """A sensitive 0 has no weight; its interval counts in the objective, and the adversary thought it did not."""
    table = cg.Table.from_equations(
        [7e5, 3e5, 4e5, 0], [[0, 1, 2]], sensitive=[3], lower=0, upper=5e4, weights=[7e5, 3e5, 4e5, 0]
    )
    figures = Counter()
    assert not found(table, "intervals", tmp_path, figures=figures)
    assert figures["intervals: full program"] == 1
    assert cg.intervals(table, position="narrowest").objective == pytest.approx(4e5 * 1e-6 * 5e4, rel=1e-3)


def test_halves_and_doubles_without_bounds(tmp_path):
    """Whole steps with a room of 1e12: the solver did not come back, whatever its limit."""
    T = np.zeros((4, 10))
    T[0, [3, 6]] = -1, -1
    T[1, [0, 5, 7]] = 0.5, 1, -1
    T[2, [1, 8]] = 1, -2
    T[3, [3, 4, 7, 8, 9]] = 1, -2, 1, 2, -2
    a = np.array([0.5, 1, 1, 1, 1, 1, -1, 1.25, 0.5, 0.625])
    levels = {"sensitive": [1, 3, 4, 6], "lower": 0.05, "upper": 0.2, "lb": -np.inf}
    table = cg.Table.from_equations(a, csr_array(T), **levels)
    assert not found(table, "intervals", tmp_path, key=key(1), time_limit_s=5.0)


def test_a_level_of_next_to_nothing_is_no_cut():
    """What slides was divided as all and 1e-13: the flow fell short of that by less than counts, and it crashed."""
    assert cg.intervals(case(20261201, 236, edition=1).table, position="narrowest").published


@pytest.fixture
def thousands_beside_millions_of_millions():
    """Two indicators that share nothing but a publication."""
    by = {"r": ["r0", "r1"], "a": ["a1", "a2"]}
    leaves = {
        "one": [[6374.193359375, 81.17578125], [35.5556640625, 17.271484375]],
        "other": [[1096.716796875, 42.9482421875], [2286.09375, 11603317881.873047]],
    }
    parts = [Part(name=n, indicator=n, table=cg.Table.from_leaves(by, x)) for n, x in leaves.items()]
    table = cg.Publication.of(parts).table
    a, cells = table.values, [0, 4, 7, 8, 14, 15]
    sliding = np.zeros(len(a))
    sliding[cells] = 4615.48078669812, 2625.84025415223, 107.5556640625, 52.271484375, 128.9482421875, 9170100230.35999
    return table.with_(sensitive=sliding > 0, sliding=sliding, ub=a + np.ceil(2 * a)).with_weights("sqrt")


def test_small_widths_beside_large_ones_are_not_taken_for_nothing(thousands_beside_millions_of_millions, tmp_path):
    """The audit looked for both ends of 50 in units of 1e10, and refused what was safe."""
    assert not found(thousands_beside_millions_of_millions, "intervals", tmp_path, position="narrowest")


def test_sets_of_a_publication_are_those_of_its_clusters(thousands_beside_millions_of_millions):
    """The sets of one cluster stood for all of them."""
    release = cg.intervals(thousands_beside_millions_of_millions, key=key(5))
    low, high = (release.internal[f"inner_{side}"] for side in ("lower", "upper"))
    assert len(low) == release.table.n_cells
    assert ((release.lower <= low) & (low <= high) & (high <= release.upper)).all()


def test_ends_of_counts_are_whole(tmp_path):
    table = square([[1, 5, 9], [4, 2, 7]], sensitive=[5, 10], integer=True)
    assert not found(table, "intervals", tmp_path)


# ---------------------------------------------------------------------- adjustment


def test_money_is_not_recovered_from_its_decimals(tmp_path):
    """x / 1.1 or x / 0.9, whichever has two decimals, was the value in 73 of 80 cells."""
    figures = Counter()
    rng = np.random.default_rng(3)
    kinds = []
    for number in range(8):
        leaves = np.round(rng.lognormal(4, 1, (6, 6)), 2)
        table = square(leaves, sensitive=rng.choice(49, 10, replace=False)).with_levels(0.1, 0.1)
        kinds += found(
            table, "adjust", tmp_path, shares=(0.1, 0.1), figures=figures, norm="l1", senses="key", key=key(number + 1)
        )
    assert not kinds
    assert figures["adjust: sensitive cells with decimals"] > 60
    assert figures["adjust: hits by decimals"] < 8


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_adjusted_row_of_millions_beside_millions_of_millions_adds_up(norm):
    """Movements that a cell of 1e12 would not notice were taken back in its neighbours of 1e6."""
    table = square([[1e-3, 2e12, 5.0], [3e3, 4e-3, 1e12], [7.0, 1e6, 2e-3]], sensitive=[13], lower=0.7, upper=0.7)
    for seed in range(1, 9):
        assert_additive(cg.adjust(table, norm=norm, key=key(seed)))


def test_bounds_of_totals_that_may_be_given_up(tmp_path):
    """Allowed, done and said: the adversary held it against the release. Not allowed, nothing is published."""
    table = cg.Table.from_equations(
        [1, 1, 0], [[0, 1, 2]], sensitive=[1], lower=1, upper=2, lb=0, ub=[2, 5, 2], integer=True
    )
    upward = {"senses": "upper", "surplus": 0.0}
    assert not found(table, "adjust", tmp_path, repair="relations", **upward)
    assert cg.adjust(table, repair="relations", **upward).details["changed_bounds"]
    assert not cg.adjust(table, repair=None, **upward).published


def test_senses_are_chosen_on_the_grid_that_is_published(tmp_path):
    """Known bounds off the grid: rising looks cheaper by fractions that are not published, and was called the optimum."""
    table = cg.Table.from_equations(
        [10, 10, 10, 10, 40], [[4, 0, 1, 2, 3]], sensitive=[0], lower=2, upper=2, fixed=[4],
        lb=[0, 8.5, 0, 10, 0], ub=[20, 10, 10, 20, 99], weights=[1, 1, 10, 3.5, 1],
    )  # fmt: skip
    figures = Counter()
    options = {"norm": "l1", "senses": "optimal", "surplus": 0.0, "weights": "table"}
    assert not found(table, "adjust", tmp_path, figures=figures, **options)
    assert figures["adjust: enumerated"] == 1


def test_a_bound_on_the_grid_is_compared_with_the_grid(tmp_path):
    """The adversary compared tables in tenths with tables in any numbers, which come closer."""
    table = cg.Table.from_equations([30.5, 12.3, 18.2], [[0, 1, 2]], sensitive=[1], lower=1.23, upper=1.23)
    assert not found(table, "adjust", tmp_path, norm="l1", senses="optimal", surplus=0.0)


@pytest.mark.parametrize("integer", [False, True])
def test_adjustment_never_publishes_a_sensitive_cell_as_it_is(tmp_path, integer):
    """Levels of zero counted as met."""
    table = square([[1, 15, 9], [14, 2, 17]], sensitive=[5, 10], integer=integer)
    for norm in ("l1", "l2", "linf", "l12"):
        assert not found(table, "adjust", tmp_path, norm=norm)


def test_cells_without_weight_in_no_relation(tmp_path):
    """An overflow in the interior point, where a cell costs nothing and nothing holds it."""
    T = csr_array(np.array([[0.5, 0, 0, 0, 0, 0, 0, 3.0, -1.0]]))
    lb, ub = [-3, -3, -3, -3, -2, 0, -1, 0, -3], [2, 2, 2, 2, 2, 5, 2, 7, 1]
    table = cg.Table.from_equations([0, 0, 0, 0, 1, 3, 0, 2, -1], T, rhs=[7], lb=lb, ub=ub, sensitive=[2], integer=True)
    options = {
        "norm": "l12",
        "senses": "lower",
        "weights": "value",
        "omega": 0.5,
        "square_weights": "unit",
        "squares": [0],
    }
    cg.adjust(table, key=key(1), **options)


def test_a_large_count_moves_by_more_than_one(tmp_path):
    """Moved by 1 of 843,406,258: a range as narrow as that counts as known exactly."""
    table = cg.Table.from_equations([900000000, 843406258, 56593742], [[0, 1, 2]], sensitive=[1], integer=True)
    assert not found(table, "adjust", tmp_path, norm="l1")


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "l12"])
@pytest.mark.parametrize("repair", [None, "senses", "relations"])
def test_adjustment_of_degenerate_tables(tmp_path, norm, repair):
    """Free cells in no relation, a = b, two parts of a fixed total, fixed margins: LAPACK met an empty matrix."""
    loose = cg.Table.from_equations([20.5, 50, 70.5, 8], [[2, 0, 1]], sensitive=[3], lower=2, upper=2, fixed=[0, 1, 2])
    equal = cg.Table.from_equations([20.5, 20.5], [[0, 1]], sensitive=[0], lower=2, upper=2)
    parts = cg.Table.from_equations([70.5, 20.5, 50], [[0, 1, 2]], sensitive=[1], lower=2, upper=2, fixed=[0])
    margins = square([[20.5, 8], [14, 5]], sensitive=[4], lower=2, upper=2, fixed=[0, 1, 2, 3, 6])
    for table in (loose, equal, parts, margins):
        for senses in ("upper", "lower", "optimal"):
            assert "crash" not in found(table, "adjust", tmp_path, norm=norm, repair=repair, senses=senses)


def test_what_rounding_leaves_beside_zeros_adds_up(tmp_path):
    """Two cells were published as 0 and their third as 4e-11: the relation between them did not hold."""
    table = case(20261121, 423, edition=1).table
    options = {"repair": "relations", "weights": "inverse_sqrt", "surplus": 0.0, "key": key(175753425)}
    assert not found(table, "adjust", tmp_path, norm="linf", senses="lower", **options)
    table = case(20261122, 1629, edition=1).table  # the third is sensitive
    options = {"repair": "relations", "noise": 0.01, "keep": [0], "key": key(327168428)}
    assert not found(table, "adjust", tmp_path, norm="l12", senses="optimal", **options)


def test_small_cells_beside_thousands_of_millions_add_up(tmp_path):
    """Of a relation between cells of 0.8 the seventh digit was wrong: they were what is left of large ones."""
    table = case(20261202, 2543, edition=1).table
    options = {"omega": 0.9, "square_weights": "unit", "squares": [0], "gap": 0.01, "key": key(635415341)}
    assert not found(table, "adjust", tmp_path, norm="l12", senses="optimal", time_limit_s=5.0, **options)


def test_an_interior_point_that_loses_its_way_is_not_published(tmp_path):
    """A count of 7 was published as 1.6e20, and its sums missed by thousands: far outside the levels, and no table."""
    table = case(20261203, 4571, edition=1).table
    options = {"senses": "key", "repair": "senses", "surplus": 2.0, "key": key(2051853073)}
    assert not found(table, "adjust", tmp_path, norm="l1", time_limit_s=5.0, **options)
    assert cg.adjust(table, norm="l1", time_limit_s=5.0, **options).values.max() < 1e12


def test_an_interior_point_that_goes_far_beyond_the_closest_table_is_not_published():
    """Weights of 1e-22 beside 1e2 and no bounds: values of 1e27 were published of a table of 1e10."""
    assert run_case(20261123, 1303, ["adjust"], edition=1).found == []
    table = case(20261123, 1303, edition=1).table
    release = cg.adjust(table, norm="l1", weights="inverse_square", key=key(1178244176))
    assert np.abs(release.values).max() < 2 * table.values.max()
    assert release.gap < 0.01


def test_senses_of_cells_without_any_bound_are_looked_for():
    """No bound and no level in a part of the search: an average over no rows was taken."""
    table = case(20261203, 8443, edition=1).table
    options = {"repair": "senses", "weights": "value", "key": key(254601701), "time_limit_s": 5}
    assert cg.adjust(table, norm="l2", senses="optimal", **options).published


def test_multipliers_of_a_singular_system_are_left_as_they_are():
    """Everything sensitive, one maximum, zeros beside billions: balancing the multipliers met a singular matrix."""
    table = case(20261120, 784, edition=1).table
    release = cg.adjust(table, norm="linf", senses="key", repair="senses", key=key(587576948), time_limit_s=5)
    assert not release.published or release.audit().safe


@pytest.mark.filterwarnings("error")
def test_prices_of_very_different_sizes_make_no_false_infeasible():
    """Weights 1/a² of .002 and 9e10: Newton's step overflowed, HiGHS refused a number, then called it infeasible."""
    leaves = np.array([90084597157.93555, 433879.7841796875, 0.001953125, 40594.8447265625, 0, 9291.4814453125, 0, 0])
    leaves[7] = 315865199.8017578
    table = cg.Table.from_leaves({d: ["a", "b"] for d in "xyz"}, leaves.reshape(2, 2, 2), sensitive=[4, 7, 21])
    table = table.with_levels(0.5, 0.5)
    release = cg.adjust(
        table, norm="linf", senses="optimal", weights="inverse_square", key=key(2069093021), time_limit_s=5
    )
    assert release.status is not cg.Status.INFEASIBLE
    assert cg.adjust(table, norm="l2", key=key(1)).published


def test_an_adjusted_cell_does_not_leave_its_bounds_by_the_tolerance_of_a_program():
    """The largest movement of all, by a linear program: a total left what everybody knows by 1e-5."""
    assert run_case(20261121, 2259, ["adjust"], edition=1).found == []
    table = square([[20.0, 50, 10], [8, 19, 22]], sensitive=[5], lower=[9.0], upper=[9.0])
    movement = table.values * np.where(np.arange(table.n_cells) == 1, 1 + 1e-8, -0.5)
    inside = _pull_inside_bounds(table.with_(ub=2 * table.values), movement)
    assert movement[1] > table.values[1] >= inside[1]
    assert np.allclose(inside, movement, rtol=2e-8, atol=0)  # all of it, so that sums hold


# ---------------------------------------------------------------------- whole numbers


def test_counts_of_thousands_of_millions_are_audited_in_time():
    """Branch-and-bound over whole numbers in ranges of 1e9 did not end, whatever the limit."""
    table = case(20261202, 2833, edition=1).table
    release = cg.intervals(table, position="narrowest", gap=1e-4, key=key(86149849), time_limit_s=5)
    assert release.audit(integer=True, time_limit_s=10).safe


def test_counts_of_thousands_of_millions_are_perturbed_in_time():
    """The same with a base of 4.5e9: branch-and-bound is not asked any more."""
    release = cg.perturb(
        case(20261204, 8808, edition=1).table, base=4499947872.0, draw="nearest", key=key(1031458512), time_limit_s=5
    )
    assert not release.published or release.audit().safe


# ---------------------------------------------------------------------- suppression


def test_counts_without_a_lower_bound_are_suppressed(tmp_path):
    """The enumeration of counts asked for the integer part of minus infinity."""
    table = square([[1, 5], [6, 7]], sensitive=[4], integer=True, lb=-np.inf)
    assert "crash" not in found(table, "suppress", tmp_path, time_limit_s=3.0)


def test_withholding_everything_is_not_called_infeasible(tmp_path):
    """0.27 beside 8e10: a program in floating point said that a cell cannot be protected."""
    leaves = [[79879628986.90234, 0.275390625], [13514031453.048828, 1827.845703125], [6617563281.402344, 6015.8046875]]
    table = square(leaves, sensitive=np.ones(12, bool)).with_levels(0.25, 0.25)
    assert cg.suppress(table, rounds=1).status is not cg.Status.INFEASIBLE


def test_what_everybody_knows_is_never_safe(tmp_path):
    """A sensitive 0 that cannot be anything else: refusing is what the manual says, and the adversary disputed it."""
    leaves = np.array([[50, 0], [59, 7], [28, 6]])
    table = square(leaves, integer=True, sensitive=[4, 5], sliding=[17, 0])
    table = table.with_(ub=np.where(table.values == 0, 0.0, np.inf))
    for method in ("suppress", "intervals"):
        assert not found(table, method, tmp_path)
        assert getattr(cg, method)(table).status == "infeasible"


def test_the_command_line_is_judged_by_what_it_was_told(tmp_path):
    """Cells that must be published were held against a command that was not told of them."""
    table = square([[984, 900], [360, 1092], [612, 612]], sensitive=[4], sliding=553.0)
    made = Case(table, (), None, 0)
    withheld = np.flatnonzero(cg.suppress(table).suppressed & ~table.sensitive).tolist()
    assert not list(command(made, "suppress", {"must_publish": withheld}, tmp_path, Counter()))


def test_an_attacker_from_whom_nothing_is_kept(tmp_path):
    """Who has no questions came first, and the audit crashed."""
    nobody = cg.Attacker(name="nobody", cells=[1], lb=[0.0], ub=[99.0], sensitive=[], lower=[], upper=[], sliding=[])
    table = square([[20, 50], [8, 19]], sensitive=[4], lower=3, upper=3)
    table = table.with_(attackers=(nobody, cg.Attacker(name="external", cells=[], lb=[], ub=[])))
    assert not found(table, "suppress", tmp_path)


def test_a_sensitive_margin_of_counts_is_withheld(tmp_path):
    """Small two-way counts are protected by looking at all patterns of inner cells: margins were published."""
    table = square([[4, 2], [1, 1], [1, 3]], integer=True, insiders=False, sensitive=[5, 6, 7, 8, 10], sliding=2)
    assert table.values[6] == 2
    assert not found(table, "suppress", tmp_path)
    assert cg.suppress(table).suppressed[6]
    with pytest.raises(cg.CellguardError, match="sensitive margin"):
        cg.suppress(table, resist="matching")


def test_withheld_cells_are_marked_alike(tmp_path):
    table = square([[20, 50, 10], [8, 19, 22], [17, 32, 12]], sensitive=[10], lower=4, upper=4)
    assert not found(table, "suppress", tmp_path, rounds=1)


@pytest.mark.parametrize("integer", [False, True])
def test_suppressed_cells_without_levels(tmp_path, integer):
    table = square([[0, 15, 9], [14, 2, 17], [3, 8, 11]], sensitive=[5, 10], integer=integer)
    assert not found(table, "suppress", tmp_path, rounds=1)


def test_a_dimension_of_one_code_is_no_grid_for_the_matching_attack():
    """Each inner cell alone in a relation: the search for rows and columns looked for a second cell there."""
    dims = {"x": {"g": ["a"], "h": ["b"], "i": ["c", "d", "e"]}, "y": ["p", "q"]}
    table = cg.Table.from_leaves(dims, [[1, 3], [1, 3], [2, 2], [5, 4], [1, 3]], sensitive=[], integer=True)
    table = table.apply(cg.MinFrequency(3))
    with pytest.raises(cg.InputError, match="not a two-way table"):
        cg.suppress(table, resist="matching")


@pytest.mark.parametrize("number", [2, 9, 20])
def test_a_pattern_withstands_whichever_threshold_the_attacker_has_read(number):
    """The table does not say its threshold; 5 was taken for it, and who knew that it was 2 excluded more tables."""
    table = cg.generate.frequency(number, rows=3, columns=4, threshold=2, width=4.0)
    fitting = [m for m in range(1, 9) if ((table.values < m) == table.sensitive)[table.inner].all()]
    assert len(fitting) > 1
    for seed in range(1, 9):
        release = cg.suppress(table, resist="matching", key=key(seed))
        assert release.published
        for threshold in fitting:
            assert not list(matching(release, list(release.suppressed), threshold))
    assert cg.suppress(table, resist=cg.CountRule(minimum=2, width=4), key=key(1)).options["rule"]["minimum"] == 2
    assert cg.suppress(table, resist="matching", key=key(1)).options["rule"] is None  # the one taken would tell a bound


def test_large_counts_beside_small_ones_have_no_more_rules():
    """Every minimum up to the smallest published count was tried: 40,000 of them, a minute for nine cells."""
    leaves = [[2, 20000, 30000], [25000, 1, 28000], [26000, 27000, 29000]]
    table = square(leaves, sensitive=[], integer=True)
    small = (table.values < 3) & table.inner
    table = table.with_(sensitive=small, sliding=np.where(small, 2.0, 0.0))
    assert cg.suppress(table, resist="matching", key=key(1)).published
    many = table.with_(
        sensitive=(table.values < 20001) & table.inner, sliding=np.where((table.values < 20001) & table.inner, 2.0, 0.0)
    )
    with pytest.raises(cg.InputError, match="more than 100"):
        cg.suppress(many, resist="matching", key=key(1))


def test_an_attacker_who_knows_a_lower_threshold_than_the_usual_one():
    assert run_case(20261122, 9790, ["suppress"], edition=1).found == []


# ---------------------------------------------------------------------- respondents


def firms(cells):
    """Return records from (row, column) -> contributions."""
    rows = [(r, c, x) for (r, c), xs in cells.items() for x in xs]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("region", "branch", "x"))}
    return columns | {"holding": [str(k) for k in range(len(rows))]}


def judged(records, table, method, tmp_path, **options):
    made = Case(table, ("records",), None, None, records)
    return [v.kind for v in trial(made, method, options, tmp_path, np.random.default_rng(1), Counter())]


@pytest.mark.parametrize("method", ["suppress", "intervals"])
def test_who_is_alone_does_not_learn_the_opposite_corner(tmp_path, method):
    """Two sensitive cells at opposite corners of a withheld block: in no relation, and still one movement."""
    records = firms({
        ("r0", "c0"): [60, 25, 20, 19], ("r0", "c1"): [38, 9], ("r0", "c2"): [100, 90, 80],
        ("r1", "c0"): [13], ("r1", "c1"): [46, 25, 22, 9], ("r1", "c2"): [100, 90, 80],
        ("r2", "c0"): [50, 45, 40], ("r2", "c1"): [50, 45, 40], ("r2", "c2"): [100, 90, 80],
    })  # fmt: skip
    table = cg.tabulate(records, ["region", "branch"], "x").apply(cg.MinFrequency(3))
    assert not judged(records, table, method, tmp_path)


def test_who_is_alone_in_a_count_is_an_attacker(tmp_path):
    sizes = {("r0", "c0"): 1, ("r0", "c1"): 2, ("r1", "c0"): 3, ("r1", "c1"): 4, ("r2", "c0"): 3, ("r2", "c1"): 5}
    records = firms({cell: [1] * n for cell, n in sizes.items()})
    table = cg.tabulate(records, ["region", "branch"]).apply(cg.MinFrequency(3))
    release = cg.suppress(table, rounds=3)
    release.save(tmp_path / "release.csv")
    alone = list_respondents(Case(table, ("records",), None, None, records))
    assert not list(judge(table, release, read(tmp_path / "release.csv", table), {}, alone))


@pytest.mark.parametrize(("method", "number"), [("perturb", 228), ("intervals", 513)])
def test_of_a_count_one_of_two_knows_his_part(method, number):
    """Who is one of two in a count, or a holding with several records, was no attacker of counts."""
    assert not run_case(20261203, number, [method], edition=1).found


@pytest.mark.parametrize(("method", "number"), [("perturb", 110), ("round", 297)])
def test_attackers_without_a_question_do_not_end_a_repair(method, number):
    """A contributor whom the audit had nothing to ask about was missing from what a repair asks for: a crash."""
    assert not run_case(6006, number, [method]).found


def test_units_that_others_gave_do_not_take_a_level_away():
    """Of whole-valued sums a unit is not small: what other contributors gave at least lowered a level from 3 to 2."""
    assert not run_case(7007, 291, ["intervals"]).found
