"""The cuts against brute force: violated where they were found, satisfied by every safe release."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.ranges.search.cuts import Separator
from cellguard._engine.space.reduce import reduce


def table_3x3():
    """A 2 x 2 table with totals: nine cells, six relations."""
    index = np.arange(9).reshape(3, 3)
    T = np.zeros((6, 9))
    for k, line in enumerate([*index, *index.T]):
        T[k, line[:2]], T[k, line[2]] = 1.0, -1.0
    inner = np.array([[20.0, 50], [8, 19]])
    a = np.block([[inner, inner.sum(1, keepdims=True)], [inner.sum(0, keepdims=True), inner.sum()]])
    return csr_array(T), a.ravel()


def room_of(rng, n):
    kind = rng.integers(3)
    hidden = rng.random(n) < 0.6
    if kind == 0:
        return np.where(hidden, rng.integers(0, 9, n), 0.0), np.where(hidden, rng.integers(0, 9, n), 0.0)
    both = np.where(hidden, rng.integers(0, 9, n), 0.0)
    return both, both.copy()


def is_safe(T, a, down, up, cells, lower, upper, sliding):
    return bool(compute_ranges(Sight(T, a - down, a + up, a), AskedRanges(cells, lower, upper, sliding)).safe.all())


@pytest.mark.parametrize("nearest_next", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_cuts_hold_for_every_safe_release_and_fail_where_they_were_found(seed, nearest_next):
    T, a = table_3x3()
    rng = np.random.default_rng(seed)
    cells = np.array([0, 4])
    levels = {name: rng.integers(0, 4, 2).astype(float) for name in ("lower", "upper", "sliding")}
    known_down, known_up = rng.integers(4, 9, 9).astype(float), rng.integers(4, 9, 9).astype(float)
    separator = Separator(T, AskedRanges(cells, **levels), known=(known_down, known_up), nearest_next=nearest_next)
    rooms = [(known_down, known_up), *(room_of(rng, 9) for _ in range(40))]
    safe, cuts = [], []
    for down, up in rooms:
        found = separator.separate(down, up)
        joined = np.minimum(down, known_down), np.minimum(up, known_up)
        assert bool(found) != is_safe(T, a, *joined, cells, **levels)
        for cut in found:
            assert cut.compute_activity(down, up) < cut.level
        cuts += found
        if not found:
            safe.append((down, up))
    assert cuts
    assert safe
    for cut, (down, up) in product(cuts, safe):
        assert cut.compute_activity(down, up) >= cut.level - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_multipliers_are_the_derivatives_of_the_range(seed):
    T, _a = table_3x3()
    rng = np.random.default_rng(seed)
    down, up = rng.uniform(1, 9, 9), rng.uniform(1, 9, 9)
    separator = Separator(T, AskedRanges(np.array([0]), np.ones(1), np.ones(1)))
    h = 1e-4
    for direction in (1, -1):
        separator.set_room(down, up)
        attack = separator.attack(0, direction)
        assert attack.reached == pytest.approx(attack.bound)
        for i in range(9):
            for room, multiplier in ((up, attack.alpha[i]), (down, attack.beta[i])):
                changed = room.copy()
                changed[i] += h
                separator.set_room(*((down, changed) if room is up else (changed, up)))
                gain = separator.attack(0, direction).reached - attack.reached
                assert gain / h == pytest.approx(multiplier, abs=1e-6)


def test_multipliers_reproduce_the_objective_on_the_null_space():
    T, _a = table_3x3()
    separator = Separator(T, AskedRanges(np.array([0]), np.ones(1), np.ones(1)))
    rng = np.random.default_rng(5)
    separator.set_room(rng.uniform(0, 9, 9), rng.uniform(0, 9, 9))
    N = reduce(T).basis.toarray()
    for direction in (1, -1):
        attack = separator.attack(0, direction)
        assert (attack.alpha - attack.beta) @ N == pytest.approx(direction * N[0], abs=1e-12)


def test_the_row_of_a_cut_forbids_what_it_was_found_for():
    T, a = table_3x3()
    separator = Separator(T, AskedRanges(np.array([4]), np.array([5.0]), np.array([5.0])))
    y = np.zeros(9)
    y[4] = 1.0
    cuts = separator.separate(a * y, 2 * a * y)
    assert {cut.side for cut in cuts} == {"lower", "upper"}
    zero = np.zeros(9)
    for cut in cuts:
        row = cut.build_row(up=(zero, 2 * a), down=(zero, a))
        assert row.rhs == 5.0
        assert row.measure_violation(y) > 0
        assert row.measure_violation(np.ones(9)) <= 0


def test_a_cell_that_nothing_can_protect_gives_a_cut_without_support():
    T = csr_array(np.array([[-1.0, 1, 0], [0, 1, 0]]))  # the second relation fixes cell 1
    separator = Separator(T, AskedRanges(np.array([1]), np.array([1.0]), np.array([1.0])))
    cuts = separator.separate(np.full(3, 9.0), np.full(3, 9.0))
    assert len(cuts) == 2
    assert all(len(cut.support) == 0 and cut.known == 0.0 < cut.level for cut in cuts)


def test_no_more_cuts_than_asked_for():
    T, _a = table_3x3()
    separator = Separator(T, AskedRanges(np.array([0, 1, 4]), np.full(3, 4.0), np.full(3, 4.0)))
    assert len(separator.separate(np.zeros(9), np.zeros(9))) == 6
    assert len(separator.separate(np.zeros(9), np.zeros(9), max_cuts=2)) == 2
