"""Compiled parts of the suppression against plain linear algebra and a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from cellguard._core.circuits import excess, express, lightest
from cellguard._core.echelon import echelon, eliminate, pivot, push, strongest
from cellguard._core.patterns import without
from cellguard._core.windows import Windows
from cellguard._engine.space.reduce import reduce


def random_space(seed, rows=6, columns=14):
    rng = np.random.default_rng(seed)
    A = rng.integers(-1, 2, (rows, columns)).astype(float)
    r = reduce(csr_array(A))
    return A, np.ascontiguousarray(r.basis.toarray().T), r.parameters.astype(np.int64), rng


@pytest.mark.parametrize("seed", range(8))
def test_push_reaches_what_a_general_solver_does(seed):
    A, Z, parameter, rng = random_space(seed)
    low, high = -rng.uniform(0.5, 3, 14), rng.uniform(0.5, 3, 14)
    for row in range(14):
        if not Z[:, row].any():
            continue
        truth = linprog(-np.eye(14)[row], A_eq=A, b_eq=np.zeros(len(A)), bounds=np.column_stack([low, high])).fun
        z = np.zeros(14)
        reached = push(Z, parameter, z, low, high, row, 1.0, 100.0)
        assert reached == pytest.approx(-truth, rel=1e-6, abs=1e-9)
        assert np.abs(A @ z).max() < 1e-9
        assert (z <= high * (1 + 1e-12)).all()
        assert (z >= low * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(4))
def test_pivots_and_eliminations_stay_in_the_space(seed):
    A, Z, parameter, _ = random_space(seed)
    free = int(np.flatnonzero(np.abs(Z).sum(axis=0) > 1)[0])
    j = strongest(Z, free)
    whole, before = Z.copy(), parameter.copy()
    changed, old = eliminate(Z, parameter, free, j)
    V, p = Z[:-1], parameter[:-1]
    assert np.abs(A @ V.T).max() < 1e-9
    assert not V[:, free].any()
    assert np.allclose(V[:, p], np.eye(len(V)))
    Z[changed] = old
    assert np.array_equal(Z[np.argsort(parameter)], whole[np.argsort(before)])
    W = Z.copy()
    pivot(W, parameter, free, len(Z) - 1)
    assert np.allclose(W[:, parameter], np.eye(len(W)))
    assert np.linalg.matrix_rank(np.vstack([W, Z])) == len(Z)


def test_echelon_drops_what_is_dependent():
    _, Z, _, rng = random_space(1)
    mixed = np.vstack([Z, rng.integers(-2, 3, (3, len(Z))) @ Z])
    V, p = echelon(mixed)
    assert len(V) == len(Z)
    assert np.allclose(V[:, p], np.eye(len(V)))


@pytest.mark.parametrize("seed", range(4))
def test_the_lightest_variables_become_parameters(seed):
    A, Z, parameter, rng = random_space(seed)
    y = rng.uniform(0, 1, 14)
    order = np.argsort(y)
    lightest(Z, parameter, order)
    assert np.allclose(Z[:, parameter], np.eye(len(Z)))
    assert np.abs(A @ Z.T).max() < 1e-8
    chosen, rank = [], 0
    for i in order:
        if np.linalg.matrix_rank(Z[:, [*chosen, i]]) > rank:
            chosen.append(i)
            rank += 1
    assert sorted(parameter) == sorted(chosen)
    over = excess(Z, parameter, y)
    i = int(np.argmax(over))
    used = parameter[np.abs(Z[:, i]) > 1e-6]
    assert over[i] == pytest.approx(0.0 if i in parameter else y[i] - y[used].sum())


def test_a_variable_by_the_first_that_suffice():
    _, Z, parameter, _ = random_space(2)
    p = int(np.setdiff1d(np.flatnonzero(Z.any(axis=0)), parameter)[0])
    coefficients = express(Z, p, parameter)
    assert np.allclose(Z[:, parameter] @ coefficients, Z[:, p])
    assert not express(Z, p, parameter[np.abs(Z[:, p]) < 1e-9]).any()


def test_a_window_closes():
    n = 12
    index = np.arange(n * n).reshape(n, n)
    T = csr_array(
        (np.ones(2 * n * n), np.concatenate([index.ravel(), index.T.ravel()]), np.arange(0, 2 * n * n + 1, n)),
        shape=(2 * n, n * n),
    )
    C = T.tocsc()
    cost = np.random.default_rng(0).uniform(1, 2, n * n)
    arrays = [a.astype(np.int64) for a in (T.indptr, T.indices, C.indptr, C.indices)]
    cells = Windows(*arrays).around(17, cost, np.ones(n * n, bool), 3, 1, 500)
    assert len(cells) == 16  # four rows by four columns
    assert 17 in cells
    inside = np.zeros(n * n, bool)
    inside[cells] = True
    assert set((T @ inside).tolist()) <= {0.0, 4.0}


def test_a_movement_that_cancels_is_not_blown_up_from_its_rounding():
    used = np.array([3.0, 0.1, -0.7])
    bank = np.array([used / 7.0, [1.0, 1.0, 1.0]])
    left = without(bank, used, 0)
    assert not left[0].any()
    assert left[1] == pytest.approx(bank[1] - used / 3.0)
