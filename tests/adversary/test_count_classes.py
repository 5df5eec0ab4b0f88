"""Class intervals of counts: the method is run again over all values and many keys."""

from collections import defaultdict
from itertools import islice

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.clock import NEVER
from cellguard.methods.intervals.count_search import CountSearch
from cellguard.release.count_classes import ClassRule

KEYS = range(1, 13)


def make_row(count):
    """Return a row in which a count with levels of 10% is sensitive."""
    bare = cg.Table.from_equations([count, 50, 30, count + 80], [[3, 0, 1, 2]], sensitive=[0], integer=True)
    return bare.with_levels(0.1, 0.1)


def make_square(counts):
    """Return a table of counts with a threshold of 3 and known zeros."""
    table = cg.Table.from_leaves({"r": ["a", "b", "c"], "c": ["x", "y"]}, np.array(counts, float), integer=True)
    table = table.with_known_zeros(np.flatnonzero(table.values == 0))
    return table.with_(lb=np.where(table.values > 0, 1.0, 0.0)).apply(cg.MinFrequency(3))


def publish(table, key):
    """Return the draws with which the search for intervals succeeds, and what they publish."""
    search = CountSearch(table, cg.Key.from_public_number(key))
    found = search.run(NEVER)
    return (None, None) if found is None else (search.turn, np.array(found.published))


def draw_same_classes(table, published, make, draws=300_000, most=10, seed=0):
    """Return some tables that have the published values, and values of the same classes elsewhere."""
    leaves = np.flatnonzero((table.coordinates > 0).all(axis=1))
    rng = np.random.default_rng(seed)
    low, high = published[2:]
    counts = rng.integers(low[leaves], high[leaves] + 1, (draws, len(leaves))).reshape(draws, 3, 2)
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    full = np.concatenate([columns.sum(axis=1)[:, None], columns], axis=1)[:, None, :]
    full = np.concatenate([full, np.concatenate([rows[:, :, None], counts], axis=2)], axis=1).reshape(draws, -1)
    same = ((low <= full) & (full <= high)).all(axis=1)
    others = (make(leaves) for leaves in counts[same])  # that some cell is sensitive is known
    return list(islice((other for other in others if other.sensitive.any()), most)), full[same]


def assert_same_release(others, turn, published, key):
    """Run the method on other tables with the same draws."""
    for other in others:
        search = CountSearch(other, cg.Key.from_public_number(key))
        search.turn = turn.copy()
        again, _, failing = search.try_draws(NEVER)
        assert not len(failing)
        assert (np.array(again) == published).all()


def test_no_published_interval_of_a_count_tells_more_than_its_class():
    """The count 10 was published as 9 to 14, and of all counts only 10 led to that."""
    led_to = defaultdict(set)
    for key in KEYS:
        for count in range(4, 25):
            _, published = publish(make_row(count), key)
            led_to[float(published[0][0]), float(published[1][0])].add(count)
    rule = ClassRule.from_table(make_row(10))
    checked = 0
    for counts in led_to.values():
        if min(counts) > 4 and max(counts) < 24:
            width = rule.take(np.array([0])).compute_width(np.array([float(max(counts))]))[0]
            assert max(counts) - min(counts) >= width
            assert len(counts) == max(counts) - min(counts) + 1
            checked += 1
    assert checked >= 6


def test_the_offset_has_more_than_one_outcome():
    ends = {publish(make_row(11), key)[1][0][0] for key in KEYS}
    assert len(ends) >= 2


@pytest.mark.parametrize("key", [1, 2, 3])
@pytest.mark.parametrize("counts", [[[1, 7], [9, 12], [4, 2]], [[2, 3], [14, 5], [0, 6]], [[1, 1], [8, 22], [3, 30]]])
def test_all_tables_of_the_same_classes_lead_to_the_same_release_under_the_same_draws(counts, key):
    table = make_square(counts)
    turn, published = publish(table, key)
    assert turn is not None
    others, _ = draw_same_classes(table, published, make_square)
    assert len(others) >= 2
    assert_same_release(others, turn, published, key)


@pytest.mark.parametrize("key", [1, 2, 3])
def test_levels_as_shares_lead_to_the_same_release_under_the_same_draws(key):
    def make(values):
        leaves = np.reshape(values, (3, 2))
        table = cg.Table.from_leaves({"r": ["a", "b", "c"], "c": ["x", "y"]}, leaves.astype(float), integer=True)
        chosen = np.zeros(table.n_cells, bool)
        chosen[[4, 8]] = True
        return table.with_(sensitive=chosen).with_levels(0.1, 0.1)

    table = make([20, 33, 10, 41, 27, 18])
    turn, published = publish(table, key)
    assert turn is not None
    others, _ = draw_same_classes(table, published, make)
    assert len(others) >= 3
    assert_same_release(others, turn, published, key)
