"""Sparse Cholesky: any pattern, any order, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array, tril

from cellguard._core.ordering import minimum_degree
from cellguard._engine.solvers.cholesky import SparseCholesky


def spd(n, density, seed):
    rng = np.random.default_rng(seed)
    A = random_array((n, n), density=density, rng=rng, format="csr")
    return csr_array(A @ A.T + csr_array(np.diag(rng.uniform(0.1, 1.0, n))))


def lower(S):
    L = csr_array(tril(S))
    L.sort_indices()
    return L


@given(st.integers(1, 60), st.floats(0.0, 0.5), st.integers(0, 10**6))
def test_solves_like_numpy(n, density, seed):
    S = spd(n, density, seed)
    L = lower(S)
    factors = SparseCholesky(L)
    assert sorted(factors.order) == list(range(n))
    assert factors.factor(L.data) == 0
    b = np.random.default_rng(seed).normal(size=n)
    assert factors.solve(b) == pytest.approx(np.linalg.solve(S.toarray(), b), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize(("n", "density"), [(300, 0.02), (800, 0.002), (250, 1.0)])
def test_larger_patterns_and_new_numbers(n, density):
    S = spd(n, density, 1)
    factors = SparseCholesky(lower(S))
    for _ in range(2):
        factors.factor(lower(S).data)
        x = np.linspace(-1, 1, n)
        assert factors.solve(S @ x) == pytest.approx(x, abs=1e-7)
        S = csr_array(S.multiply(np.outer(*[np.linspace(1, 2, n)] * 2)))


def test_a_singular_matrix_raises_pivots_and_still_solves_what_can_be_solved():
    N = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    L = lower(csr_array(N @ N.T))
    factors = SparseCholesky(L)
    assert factors.factor(L.data) == 1
    x = factors.solve(np.array([2.0, 2.0, 3.0]))
    assert N @ N.T @ x == pytest.approx([2, 2, 3])


def test_an_arrow_is_ordered_without_fill():
    n = 200
    S = np.eye(n) * n
    S[0, :] = S[:, 0] = 1.0
    S[0, 0] = n
    factors = SparseCholesky(lower(csr_array(S)))
    assert factors.n_values < 3 * n


def test_a_path_is_ordered_with_degrees_of_two():
    n = 1000
    indptr = np.concatenate([[0], np.cumsum([1, *[2] * (n - 2), 1])])
    indices = np.concatenate([[1], *[[i - 1, i + 1] for i in range(1, n - 1)], [n - 2]])
    assert sorted(minimum_degree(indptr, indices)) == list(range(n))


def test_a_large_factor_is_dissected_where_that_saves_work(monkeypatch):
    from cellguard._engine.solvers import cholesky

    pytest.importorskip("pymetis")
    side = 40
    cell = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([cell[1:].ravel(), cell[:-1].ravel()]), np.stack([cell[:, 1:].ravel(), cell[:, :-1].ravel()])], axis=1
    )
    S = csr_array((np.full(pairs.shape[1], -1.0), pairs), shape=(side**2, side**2))
    S = lower(csr_array(S + csr_array(np.diag(np.full(side**2, 4.1)))))
    plain = SparseCholesky(S)
    monkeypatch.setattr(cholesky, "_DISSECT", 0.0)
    dissected = SparseCholesky(S)
    for factors in (plain, dissected):
        factors.factor(S.data)
    b = np.ones(side**2)
    assert plain.solve(b) == pytest.approx(dissected.solve(b))
