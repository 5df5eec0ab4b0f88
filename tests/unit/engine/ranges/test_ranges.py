"""The range engine: what is decided without a program, units, parts, and limits."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import block_diag, csr_array

from cellguard._engine.ranges import parts
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges

SQUARE = csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]))
"""Four cells of a 2 x 2 table whose totals are published."""


def cells(*values):
    return np.array(values, float)


def test_cells_that_the_relations_disclose_need_no_program():
    T = csr_array(np.array([[-1.0, 1, 1, 0], [0, 0, 1, 1]]))
    a = cells(9, 4, 5, 3)
    lo, hi = cells(9, 0, 5, 0), cells(9, 99, 5, 99)  # the third cell is published: the others follow
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.array([1, 3])), exact=True)
    assert found.programs == 0
    assert found.disclosed.tolist() == [False, True, False, True]
    assert found.low.tolist() == found.high.tolist() == [4, 3]


def test_cells_that_the_bounds_disclose_need_no_program():
    T = csr_array(np.array([[-1.0, 1, 1, 1]]))
    a, lo, hi = np.zeros(4), np.zeros(4), cells(0, 9, 9, 9)  # three parts of a published zero
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.array([1]), upper=cells(2)))
    assert found.programs == 0
    assert found.disclosed.tolist() == [False, True, True, True]
    assert found.unsafe.all()


def test_one_degree_of_freedom_has_the_range_of_its_aliases():
    a = cells(5, 7, 8, 2)
    found = compute_ranges(Sight(SQUARE, np.zeros(4), np.full(4, np.inf), a), AskedRanges(np.arange(4)), exact=True)
    assert found.low.tolist() == [3, 0, 1, 0]
    assert found.high.tolist() == [12, 9, 10, 9]


def test_an_infinite_range_is_infinite_and_has_witnesses():
    T = csr_array(np.array([[-1.0, 1, 1]]))
    a = cells(9, 4, 5)
    found = compute_ranges(
        Sight(T, np.zeros(3), np.full(3, np.inf), a),
        AskedRanges(np.arange(3), upper=np.full(3, 1e5)),
        exact=True,
        certify=True,
    )
    assert np.isinf(found.high).all()
    assert found.low.tolist() == [0, 0, 0]
    assert found.safe.all()
    assert (found.witnesses.toarray()[found.high_witness, np.arange(3)] >= 1e5 * (1 - 1e-6)).all()


def test_aliases_with_different_levels_are_judged_each_by_its_own():
    a = cells(5, 7, 8, 2)
    found = compute_ranges(
        Sight(SQUARE, np.zeros(4), np.full(4, np.inf), a), AskedRanges(np.arange(4), upper=cells(2, 3, 2, 7))
    )
    assert found.safe.tolist() == [True, False, True, True]
    assert found.unsafe.tolist() == [False, True, False, False]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_tolerances_are_relative_to_each_cell(scale):
    # a small cell among large ones: half of its level must not pass for the whole
    T = csr_array(block_diag([SQUARE, SQUARE]))
    a = np.concatenate([cells(5, 7, 8, 2), 1e6 * cells(5, 7, 8, 2)]) * scale
    T = csr_array(np.vstack([T.toarray(), np.zeros((0, 8))]))
    upper = np.concatenate([cells(2, 2, 2, 2), 1e6 * cells(2, 2, 2, 2)]) * scale
    for factor, safe in ((1.0, True), (1.001, False)):
        need = np.concatenate([upper[:4] * factor, upper[4:]])
        found = compute_ranges(Sight(T, a - upper, a + upper, a), AskedRanges(np.arange(8), need, need), certify=True)
        assert found.safe[:4].tolist() == [safe] * 4
        assert found.unsafe[:4].tolist() == [not safe] * 4
        assert found.safe[4:].all()


def test_parts_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    T = csr_array(block_diag([SQUARE] * 30))
    T = csr_array(np.vstack([T.toarray(), (rng.random((5, 120)) < 0.02).astype(float)]))
    a = rng.integers(0, 50, 120).astype(float)
    lo, hi = np.maximum(a - 20, 0), a + 20
    levels = {"lower": np.full(120, 3.0), "upper": np.full(120, 3.0)}
    whole = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(120), **levels), exact=True, certify=True)
    monkeypatch.setattr(parts, "PART_SIZE", 7)
    monkeypatch.setattr(parts, "CHUNK_SIZE", 3)
    pieces = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(120), **levels), exact=True, certify=True)
    assert pieces.low == pytest.approx(whole.low)
    assert pieces.high == pytest.approx(whole.high)
    assert (pieces.safe == whole.safe).all()
    with parallel_config("threading"):
        threads = compute_ranges(
            Sight(T, lo, hi, a), AskedRanges(np.arange(120), **levels), exact=True, certify=True, jobs=2
        )
    assert (threads.low == pieces.low).all()
    assert (threads.witnesses != pieces.witnesses).nnz == 0


def test_what_the_time_limit_leaves_open_is_unknown():
    rng = np.random.default_rng(0)
    a = rng.integers(1, 50, 60).astype(float)
    T = csr_array((rng.random((12, 60)) < 0.3).astype(float))
    found = compute_ranges(
        Sight(T, np.zeros(60), a + 50, a), AskedRanges(np.arange(60), upper=np.full(60, 20.0)), time_limit_s=0.0
    )
    assert found.programs == 0
    assert not found.safe.any()
    assert not found.unsafe.all()


def test_relations_with_other_coefficients_than_one():
    T = csr_array(np.array([[2.0, 1, -1, 0], [0.5, 0, 0, -1]]))
    a = cells(4, 3, 11, 2)
    found = compute_ranges(
        Sight(T, np.zeros(4), cells(10, 10, 11, 9), a),
        AskedRanges(np.arange(4), cells(3, 3, 1, 1)),
        exact=True,
        certify=True,
    )
    assert found.low.tolist() == [0, 0, 0, 0]
    assert found.high.tolist() == [5.5, 10, 11, 2.75]
    assert found.safe.all()
