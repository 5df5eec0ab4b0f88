"""Circuits of the widest variables: as wide as promised, and enough for nearly all questions of many views."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from builders import with_margins
from cellguard._core.widest import added, widest
from cellguard._core.witnesses import choose, lower_shares


def two_way(n):
    """Return the relations of a square table with its margins."""
    full, _, relations = with_margins(np.ones((n, n)))
    T = np.zeros((len(relations), full.size))
    for k, (total, *parts) in enumerate(relations):
        T[k, total], T[k, parts] = -1.0, 1.0
    return csr_array(T)


def circuits(T, order, most=10**6, **limit):
    start, index, value = widest(
        T.indptr.astype(np.int64), T.indices.astype(np.int64), T.data, np.asarray(order, np.int64), most, **limit
    )
    return csr_array((value, index, start), shape=(len(start) - 1, T.shape[1]))


@pytest.mark.parametrize("seed", range(10))
def test_no_variable_of_a_circuit_is_narrower_than_its_own(seed):
    rng = np.random.default_rng(seed)
    T = two_way(5)
    room = rng.random(T.shape[1])
    found = circuits(T, np.argsort(-room))
    assert found.shape[0] == T.shape[1] - np.linalg.matrix_rank(T.toarray())
    assert np.linalg.matrix_rank(found.toarray()) == found.shape[0]
    assert not (T @ found.T).toarray().any()
    count = np.bincount(found.indices, minlength=T.shape[1])
    for row in range(found.shape[0]):
        mine = found.indices[found.indptr[row] : found.indptr[row + 1]]
        own = mine[np.argmin(room[mine])]
        assert count[own] == 1  # the narrowest is the one that moves in this circuit only


def test_an_elimination_stops_at_its_limits():
    T = two_way(5)
    order = np.arange(T.shape[1])
    assert circuits(T, order, most=3).shape[0] == 0
    assert circuits(T, order, time_left_s=0.0).shape[0] == 0


def test_circuits_are_added_until_it_is_enough():
    T = csr_array(np.array([[1.0, -1, -1, -1]]))
    found = circuits(T, [0, 1, 2, 3])
    Z = found.indptr.astype(np.int64), found.indices.astype(np.int64), found.data
    every = np.arange(found.shape[0])
    room = np.array([9.0, 2, 2, 2])
    z = added(*Z, every, 0, 5.0, room)
    assert z[0] == 5.0
    assert (np.abs(z) <= room).all()
    assert not (T @ z).any()
    assert len(added(*Z, every, 0, 7.0, room)) == 0


def test_a_question_takes_the_first_movement_that_is_enough():
    share = np.array([[1.0, 0.1], [1.0, 1.0], [1.0, 1.0]])
    start, index, value = np.array([0, 3]), np.array([0, 1, 2]), np.array([4.0, 3.0, -8.0])
    ask = {"variable": np.zeros(3, np.int64), "view": np.array([0, 1, 1]), "enough": np.array([2.0, 2.0, 5.0])}
    best, moved = choose(start, index, value, share, **ask, sign=1.0)
    assert best.tolist() == [0, 1, 1]
    assert moved.tolist() == [4.0, 3.0, 3.0]
    best, moved = choose(start, index, value, share, **ask, sign=-1.0)
    assert best.tolist() == [2, 2, 2]
    assert moved.tolist() == [8.0, 8.0, 8.0]


def test_a_share_is_what_the_slack_of_a_view_allows():
    rng = np.random.default_rng(5)
    moves = np.where(rng.random((6, 9)) < 0.5, rng.normal(0.0, 3.0, (6, 9)), 0.0)
    by_variable = csr_array(moves.T)
    n, views = 40, 4
    variable, view = rng.integers(0, 9, n), rng.integers(0, views, n)
    down, up = rng.uniform(0.0, 4.0, n), rng.uniform(0.0, 4.0, n)
    down[:5] = up[:5] = 0.0
    up[-1] = np.inf
    share = np.ones((6, views))
    index = by_variable.indptr.astype(np.int64), by_variable.indices.astype(np.int64)
    lower_shares(*index, by_variable.data, variable, view, down, up, share)
    expected = np.ones((6, views))
    for i, v, below, above in zip(variable, view, down, up, strict=True):
        for m in np.flatnonzero(moves[:, i]):
            slack = above if moves[m, i] > 0 else below
            expected[m, v] = min(expected[m, v], slack / abs(moves[m, i]))
    assert np.allclose(share, expected, rtol=1e-15, atol=0.0)
