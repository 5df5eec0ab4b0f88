"""What the rules of publication tell: a reader of the release alone, with whole numbers and cells that are not empty."""

import warnings

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import cellguard as cg
from builders import key
from cellguard.attackers import add_public_knowledge
from cellguard.model.levels import compute_required_levels
from cellguard.release.release import Intervals, Rounding, Status, Suppression

FINDING = [[3, 2, 2], [1, 1, 1], [1, 6, 4]]


def count_table(leaves, **fields):
    leaves = np.asarray(leaves)
    dims = {f"d{k}": [f"{'xyz'[k]}{i}" for i in range(size)] for k, size in enumerate(leaves.shape)}
    return cg.Table.from_leaves(dims, leaves, integer=True, insiders=False, **fields)


def attack(table, low, high, *, not_empty=True):
    """Return the range of every sensitive cell for a reader who knows that cells which are not published are not empty.

    Written without anything of ours: programs in whole numbers over what a release publishes.
    """
    zero = table.values == 0
    if not_empty:
        low, high = np.where(zero, 0, np.maximum(low, 1)), np.where(zero, 0, high)
    limits = Bounds(np.maximum(low, 0), np.minimum(high, 1000))
    sums = LinearConstraint(table.relations, table.rhs, table.rhs)
    ranges = []
    for cell in table.sensitive_cells:
        cost = np.zeros(table.n_cells)
        cost[cell] = 1
        ends = [
            milp(sign * cost, integrality=np.ones(table.n_cells), bounds=limits, constraints=sums) for sign in (1, -1)
        ]
        assert all(end.success for end in ends)
        ranges.append((round(ends[0].fun), round(-ends[1].fun)))
    return ranges


def read(release):
    """Return what a reader sees of each cell, as an interval."""
    if isinstance(release, Suppression):
        hidden = release.suppressed
        return np.where(hidden, 0, release.table.values), np.where(hidden, 1000, release.table.values)
    if isinstance(release, Intervals):
        return release.lower, release.upper
    reach = release.base * release.step - 1 if isinstance(release, Rounding) else release.distance
    return np.ceil(release.values - reach - 1e-9), np.floor(release.values + reach + 1e-9)


def draw_intervals(table):
    """Return intervals by the first of three keys that leads to some: not every draw of small tables is accepted."""
    drawn = (cg.intervals(table, key=key(number), time_limit_s=60) for number in (1, 2, 3))
    last = None
    for last in drawn:
        if last.published:
            break
    return last


METHODS = {
    "suppress": lambda table: cg.suppress(table, time_limit_s=60),
    "intervals": draw_intervals,
    "round": lambda table: cg.round(table, base=5, time_limit_s=60),
    "perturb": lambda table: cg.perturb(table, distance=5, key=key(1), time_limit_s=60),
}


def test_withheld_counts_are_not_empty():
    """Row 2 has total 3 and three withheld cells: each is 1."""
    table = count_table(FINDING).apply(cg.MinFrequency(3))
    naive = Suppression(
        table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive | (table.values <= 3)
    )
    assert not naive.audit().safe
    release = cg.suppress(table, time_limit_s=5)
    assert release.audit().safe
    assert all(high - low >= 2 for low, high in attack(table, *read(release)))


def enumerate_values(table, low, high, *, beyond=3):
    """Return how many values each sensitive cell takes in all tables of whole numbers that a reader holds possible.

    Every table is written down: inner cells up to `beyond` above their values, and all totals from them.
    """
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1))
    sums = np.array(
        [
            [all(total in (0, own) for total, own in zip(cell, table.coordinates[leaf], strict=True)) for leaf in inner]
            for cell in table.coordinates
        ]
    )
    zero = table.values == 0
    low, high = np.where(zero, 0, np.maximum(low, 1)), np.where(zero, 0, high)
    choices = [np.arange(low[c], min(high[c], table.values[c] + beyond) + 1) for c in inner]
    tables = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(-1, len(inner)) @ sums.T
    possible = tables[((tables >= low) & (tables <= high)).all(axis=1)]
    assert (possible == table.values).all(axis=1).any()
    return [len(np.unique(possible[:, cell])) for cell in table.sensitive_cells]


def release_many(method, shape, seeds):
    """Yield releases of tables that have something to hide; every table must have one.

    Classes of a table in three dimensions may end without: the search for classes of counts is limited there.
    """
    asked = published = 0
    for seed in range(seeds):
        table = count_table(np.random.default_rng([seed, *shape]).poisson(2.5, shape)).apply(cg.MinFrequency(3))
        if not table.sensitive.any():
            continue
        asked += 1
        release = METHODS[method](table)
        if release.published:
            published += 1
            assert release.audit().safe
            yield seed, table, release
    assert published >= asked - (method == "intervals" and len(shape) == 3), (published, asked)
    assert published >= 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (2, 2, 3)])
def test_no_reader_counts_fewer_values_than_the_rule_promises(method, shape):
    for seed, table, release in release_many(method, shape, 4):
        widths = [high - low for low, high in attack(table, *read(release))]
        assert min(widths) >= 2, (seed, widths)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_three_values_stay_possible_among_all_tables(method, shape):
    for seed, table, release in release_many(method, shape, 8):
        numbers = enumerate_values(table, *read(release))
        assert min(numbers) >= 3, (seed, numbers)


def test_sensitive_zeros_may_be_withheld():
    table = count_table([[5, 0, 7], [5, 9, 9]])
    small = (table.values <= 3) & table.inner
    table = table.with_(sensitive=small)
    assert add_public_knowledge(table).lb.max() == 0
    assert not add_public_knowledge(table).fixed.any()


def test_whoever_says_so_has_unknown_zeros():
    table = count_table([[2, 0, 7], [5, 9, 9]], known_zeros=False).apply(cg.MinFrequency(3))
    known = add_public_knowledge(table)
    assert known.lb.max() == 0
    assert not known.fixed.any()
    release = cg.suppress(table, time_limit_s=5)
    assert release.audit().safe
    assert all(high - low >= 2 for low, high in attack(table, *read(release), not_empty=False))


def test_what_is_known_is_taken_back_when_the_table_changes():
    table = count_table([[2, 0, 7], [5, 9, 9]]).apply(cg.MinFrequency(3))
    known = add_public_knowledge(table)
    assert known.fixed.sum() == 1
    assert known.lb[table.values > 0].min() == 1
    assert add_public_knowledge(known) is known
    sensitive = known.with_(sensitive=table.sensitive | ((table.values == 0) & table.inner))
    assert not sensitive.fixed.any()
    assert add_public_knowledge(sensitive).lb.max() == 0
    assert np.array_equal(known.remove_public_knowledge().lb, table.lb)
    assert known.with_(weights=np.ones(table.n_cells)).lb[table.values > 0].min() == 1


def test_bounds_that_were_given_are_never_loosened():
    table = count_table([[2, 4], [5, 9]], lb=2.0, ub=40.0).apply(cg.MinFrequency(3))
    known = add_public_knowledge(table)
    assert (known.lb >= table.lb).all()
    assert (known.ub <= table.ub).all()


def test_negative_values_stay_possible():
    table = cg.Table.from_equations([2, -3, -1], [[2, 0, 1]], lb=-10.0, sensitive=[0], integer=True)
    assert (add_public_knowledge(table).lb == -10).all()


def test_levels_without_room_below_are_asked_for_as_a_width():
    """A count of 1 cannot be hidden below: three values upwards are asked for."""
    table = cg.Table.from_equations([1, 5, 6], [[2, 0, 1]], sensitive=[0], lower=[1], integer=True)
    need = compute_required_levels(add_public_knowledge(table))
    assert need.lower.tolist() == [0]
    assert need.sliding.tolist() == [2]


def test_magnitudes_are_at_least_a_unit_of_their_last_decimal():
    records = {"r": ["a", "a", "b", "b"], "s": ["x", "y", "x", "x"], "v": [1.25, 3.5, 2.0, 4.0]}
    table = cg.tabulate(records, ["r", "s"], "v").apply(cg.MinFrequency(2))
    known = add_public_knowledge(table)
    assert known.known_zeros
    assert known.lb[table.values > 0].min() == 0.01
    assert add_public_knowledge(cg.tabulate(records, ["r", "s"], "v", known_zeros=False)).lb.max() == 0
    raw = cg.Table.from_equations([3.5, 2.0, 5.5], [[2, 0, 1]], sensitive=[0])
    assert add_public_knowledge(raw).lb.max() == 0


def test_the_choice_is_stored_with_the_table(tmp_path):
    for known_zeros in (None, True, False):
        table = count_table([[2, 4], [5, 9]], known_zeros=known_zeros).apply(cg.MinFrequency(3))
        for stored in (table, add_public_knowledge(table)):
            stored.write(tmp_path / "t.csv")
            back = cg.Table.read(tmp_path / "t.csv")
            assert back.known_zeros is known_zeros
            assert np.array_equal(back.lb, table.lb)


def test_contributors_of_cells_without_a_lower_bound_are_attackers():
    """What everybody knows of a cell without a bound is nothing: the difference of two infinities was a warning."""
    frame = {"r": ["a", "b", "c", "d"], "value": [20.5, 31.0, 42.0, 9.0], "n": [1.0, 1.0, 5.0, 6.0]}
    table = cg.Table.from_frame(frame, ["r"], counts="n", lb=-np.inf).apply(cg.MinFrequency(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = cg.suppress(table)
        assert release.published
        assert release.audit().safe


def test_a_cell_that_must_be_published_does_not_lower_what_is_asked():
    """4 = 1 + 3, and the 3 is always published: nobody may learn that the total is at least 4, so nothing is safe."""
    table = cg.Table.from_equations([4, 1, 3], [[0, 1, 2]], sensitive=[0, 1], lower=1, upper=1, integer=True)
    table = table.with_(fixed=np.array([False, False, True]))
    assert compute_required_levels(add_public_knowledge(table)).lower.tolist() == [1, 0]
    assert not cg.suppress(table).published
    assert not cg.perturb(table, base=4).published
