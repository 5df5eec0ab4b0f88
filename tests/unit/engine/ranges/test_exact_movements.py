"""Witnesses made exact: relations and bounds hold without any tolerance."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.ranges.witnesses.exact_fractions import make_movement_exact
from cellguard._engine.ranges.witnesses.witness import Inexact, make_witnesses_exact, refine_witnesses
from cellguard._engine.space.reduce import reduce


def exact(x):
    return Fraction(repr(float(x)))


def assert_exact(T, lo, hi, a, found):
    """Every row of the witnesses is a feasible movement, in fractions."""
    for row in range(found.witnesses.shape[0]):
        z = found.exact_witnesses.get_row(row)
        for r in range(T.shape[0]):
            span = slice(T.indptr[r], T.indptr[r + 1])
            terms = zip(T.indices[span], T.data[span], strict=True)
            assert sum(exact(c) * z.get(int(j), Fraction(0)) for j, c in terms) == 0
        for i, m in z.items():
            assert exact(lo[i]) <= exact(a[i]) + m <= exact(hi[i])


def square(size):
    """Inner cells of a square table whose totals are published."""
    index = np.arange(size * size).reshape(size, size)
    T = np.zeros((2 * size, size * size))
    for k, line in enumerate([*index, *index.T]):
        T[k, line] = 1.0
    return csr_array(T)


@pytest.mark.parametrize("seed", range(12))
def test_cells_that_differ_by_ten_orders_of_magnitude(seed):
    rng = np.random.default_rng(seed)
    T = square(6)
    a = np.round(10 ** rng.uniform(-1, 9, 36), 2)
    lo, hi = a - np.round(0.3 * a, 2), a + np.round(0.3 * a, 2)
    level = np.round(0.05 * a, 3)
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(36), level, level), certify=True)
    assert (found.safe | found.unsafe).all()
    assert_exact(T, lo, hi, a, found)
    safe = np.flatnonzero(found.safe & (level > 0))
    assert len(safe)
    for i in safe:
        moved = [found.exact_witnesses.get_row(int(r))[i] for r in (found.low_witness[i], found.high_witness[i])]
        assert -moved[0] >= exact(level[i]) * Fraction(999999, 1000000)
        assert moved[1] >= exact(level[i]) * Fraction(999999, 1000000)


def test_coefficients_with_many_digits():
    T = csr_array(np.array([[0.12345678, 1.0, -1.0, 0.0], [0.0, 3.3333333, 0.0, -1.0]]))
    a = np.array([100.0, 20.0, 32.345678, 66.666666])
    lo, hi = np.zeros(4), 3 * a
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(4), 0.2 * a, 0.2 * a), certify=True)
    assert found.safe.all()
    assert_exact(T, lo, hi, a, found)


def test_a_cell_without_room_on_one_side_does_not_go_there():
    T = square(3)
    a = np.array([0.0, 3, 7, 2, 0, 1, 5, 6, 0])
    lo, hi = np.zeros(9), np.full(9, 100.0)
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(9), upper=np.full(9, 1.0)), certify=True)
    assert found.safe.any()
    assert_exact(T, lo, hi, a, found)


def test_careful_movement_repairs_noise_and_refuses_nonsense():
    T = square(2)
    a, lo, hi = np.array([1e-2, 5e9, 7e9, 2.0]), np.zeros(4), np.full(4, np.inf)
    noisy = np.array([5e-3, -5e-3 - 1e-7, -5e-3 + 3e-7, 5e-3 + 1e-9])
    moved = make_movement_exact(T, np.arange(4), noisy, (lo, hi, a))
    assert moved is not None
    assert moved[0] == -moved[1] == -moved[2] == moved[3] == Fraction(5, 1000)
    beyond = np.array([-1.0, 1.0, 1.0, -1.0])  # the first cell would become negative
    assert make_movement_exact(T, np.arange(4), beyond, (lo, hi, a)) is None


def entangled(seed, rows, cells):
    """Relations whose null space has many denominators, and one of its movements."""
    rng = np.random.default_rng(seed)
    A = csr_array(rng.integers(1, 60, (rows, cells)).astype(float))
    r = reduce(A)
    return A, r, r.basis @ rng.uniform(-1.0, 1.0, r.degrees_of_freedom)


def test_bases_with_many_denominators_do_not_overflow():
    A, r, z = entangled(3, 12, 16)
    far, zero = np.full(16, 1e6), np.zeros(16)
    given = Inexact(reduction=r, movements=csr_array(z[None, :]), lo=-far, hi=far, point=zero, component=r.component)
    coarse = make_witnesses_exact(given)
    done = refine_witnesses(coarse, given, [(0, int(r.component.max()))])
    moved = done.get_row(0)
    assert all(sum(Fraction(c) * moved.get(j, 0) for j, c in enumerate(row)) == 0 for row in A.toarray().tolist())
    assert np.allclose([float(moved.get(j, 0)) for j in range(16)], z, rtol=1e-6)


def test_a_determinant_of_many_digits_is_found_and_confirmed():
    A, _, z = entangled(11, 40, 46)
    far, zero = np.full(46, 1e9), np.zeros(46)
    moved = make_movement_exact(A, np.arange(46), z, (-far, far, zero))
    assert moved is not None
    assert all(sum(Fraction(c) * moved.get(j, 0) for j, c in enumerate(row)) == 0 for row in A.toarray().tolist())
    assert max(m.denominator for m in moved.values()) > 10**40
    assert np.allclose([float(moved.get(j, 0)) for j in range(46)], z, rtol=1e-6)


def test_decimal_coefficients_are_taken_as_printed():
    T = csr_array(np.array([[-1.0, 0.1, 0.3333]]))
    z = np.array([1.0, 3.0, (1.0 - 0.3) / 0.3333])
    moved = make_movement_exact(T, np.arange(3), z, (np.full(3, -9.0), np.full(3, 9.0), np.zeros(3)))
    assert moved is not None
    assert -moved[0] + Fraction(1, 10) * moved[1] + Fraction(3333, 10000) * moved[2] == 0


@pytest.mark.parametrize("large", [16000000.2, 1000000000000.2])
def test_bounds_are_those_of_the_printed_numbers_not_of_their_differences(large):
    T = csr_array(np.array([[1.0, 1.0]]))
    z = np.array([0.1000000005, -0.1000000005])
    point, hi = np.array([large, 5.0]), np.array([large + 0.1, 10.0])
    moved = make_movement_exact(T, np.arange(2), z, (np.zeros(2), hi, point))
    room = Fraction(repr(float(hi[0]))) - Fraction(repr(large))
    assert moved is None or moved[0] <= room


def test_a_room_that_rounding_widens_does_not_make_a_cell_safe():
    T, far = csr_array(np.array([[1.0, 1.0, -1.0]])), 1000000000000.2
    point = np.array([far, 5.0, far + 5.0])
    lo, hi = np.array([0.0, 4.89995, point[2]]), np.array([1000000000000.3, 10.0, point[2]])
    found = compute_ranges(Sight(T, lo, hi, point), AskedRanges(np.array([0]), upper=np.array([0.10005])), certify=True)
    assert not found.safe.any()


def test_what_the_grid_left_in_a_component_goes_when_fractions_take_over():
    _, r, z = entangled(3, 12, 16)
    far, zero = np.full(16, 1e6), np.zeros(16)
    given = Inexact(reduction=r, movements=csr_array(z[None, :]), lo=-far, hi=far, point=zero, component=r.component)
    coarse = make_witnesses_exact(given)
    left = coarse.numerators.tolil()
    left[0, 3] = 7
    coarse = replace(coarse, numerators=csr_array(left))
    sparse = np.where(np.arange(16) < 4, z, 0.0)  # few cells move: the others are not looked at
    sparse[3] = 0.0
    done = refine_witnesses(coarse, replace(given, movements=csr_array(sparse[None, :])), [(0, int(r.component.max()))])
    assert 0 in done.careful
    assert done.numerators[0, 3] == 0
