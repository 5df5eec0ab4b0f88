"""The reduction agrees with dense linear algebra, and finds what cannot move without any solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from cellguard._engine.space.reduce import compute_residues, reduce


def crossed(shape: tuple[int, ...]) -> csr_array:
    """Relations of a flat table with all margins; the last position of each axis is the total."""
    full = tuple(s + 1 for s in shape)
    index = np.arange(np.prod(full)).reshape(full)
    rows = []
    for axis in range(len(full)):
        for line in np.moveaxis(index, axis, -1).reshape(-1, full[axis]):
            row = np.zeros(index.size)
            row[line], row[line[-1]] = 1.0, -1.0
            rows.append(row)
    return csr_array(np.array(rows))


def check(T: csr_array, free: np.ndarray) -> None:
    r = reduce(T, free)
    dense = T.toarray()
    N = r.basis.toarray()
    assert r.rank == (np.linalg.matrix_rank(dense[:, free]) if free.any() else 0)
    assert r.degrees_of_freedom == free.sum() - r.rank == N.shape[1]
    assert np.abs(dense @ N).max(initial=0) < 1e-9
    assert not N[~free].any()
    assert np.linalg.matrix_rank(N) == N.shape[1] if N.size else True
    assert np.array_equal(r.determined, ~N.any(axis=1))
    assert np.linalg.matrix_rank(dense[r.rows][:, free]) == r.rank if r.rank else True
    moves = r.alias >= 0
    assert np.allclose(N[moves], r.ratio[moves, None] * N[r.alias[moves]])
    directions = N[np.unique(r.alias[moves])]
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    parallel = np.abs(directions @ directions.T) - np.eye(len(directions))
    assert parallel.max(initial=0) < 1 - 1e-9
    merged = r.space
    assert merged.relations.shape == (len(merged.cells) - r.degrees_of_freedom, len(merged.cells))
    assert np.abs(merged.relations @ N[merged.cells]).max(initial=0) < 1e-9
    assert np.allclose(merged.lift @ N[merged.cells], N)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.sampled_from([(3,), (2, 3), (3, 4), (2, 2, 2), (2, 3, 2)]),
    share=st.floats(0.1, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_pattern_agrees_with_dense_algebra(shape: tuple[int, ...], share: float, seed: int) -> None:
    T = crossed(shape)
    check(T, np.random.default_rng(seed).random(T.shape[1]) < share)


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 6), cells=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_any_small_integer_system_agrees_with_dense_algebra(rows: int, cells: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(csr_array(rng.integers(-2, 3, (rows, cells)).astype(float)), np.ones(cells, bool))


def test_two_relations_with_the_same_total_make_its_parts_move_against_each_other() -> None:
    T = csr_array(np.array([[-1.0, 1, 1, 0], [-1.0, 1, 0, 1]]))
    r = reduce(T)
    assert r.alias.tolist() == [0, 1, 2, 2]


def test_opposite_movement_has_ratio_minus_one() -> None:
    r = reduce(csr_array(np.array([[1.0, 1.0]])))
    assert r.alias.tolist() == [0, 0]
    assert r.ratio.tolist() == [1.0, -1.0]


def test_a_lone_free_cell_of_a_relation_is_disclosed() -> None:
    T = csr_array(np.array([[-1.0, 1, 1]]))
    r = reduce(T, np.array([False, True, False]))
    assert r.determined.all()
    assert r.degrees_of_freedom == 0


def test_cyclic_definitions_are_broken() -> None:
    T = csr_array(np.array([[-1.0, 1, 1, 0], [1.0, -1, 0, 1]]))  # each is the total of the other
    check(T, np.ones(4, bool))


def test_components_are_apart() -> None:
    T = csr_array(np.array([[-1.0, 1, 1, 0, 0, 0], [0, 0, 0, -1, 1, 1]]))
    assert reduce(T).component.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("x", [0.5, -0.75, 3.0, 1e-3, 12345.678])
def test_residues_of_binary_fractions_are_exact(x: float) -> None:
    numerator, denominator = x.as_integer_ratio()
    p = 2147483647
    assert compute_residues(np.array([x, 0.25]))[0] == numerator * pow(denominator, -1, p) % p


def test_no_cells_and_no_relations() -> None:
    assert reduce(csr_array((0, 3))).degrees_of_freedom == 3
    assert reduce(csr_array((0, 0))).rank == 0


@pytest.mark.parametrize("seed", range(60))
def test_merged_relations_are_as_many_as_their_rank_also_with_thirds(seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 4, (int(rng.integers(2, 7)), int(rng.integers(4, 11)))).astype(float)
    A *= rng.random(A.shape) < 0.6
    r = reduce(csr_array(A))
    relations = r.space.relations.toarray()
    assert len(relations) == len(r.space.cells) - r.degrees_of_freedom
    assert not relations.size or np.linalg.matrix_rank(relations) == len(relations)


def test_small_pivots_do_not_let_the_basis_grow() -> None:
    k = 10  # x_i = -20 x_{i+1}: whoever solves for x_0 computes 20^10
    T = csr_array((np.tile([1.0, 20.0], k), np.ravel([[i, i + 1] for i in range(k)]), np.arange(0, 2 * k + 1, 2)))
    basis = reduce(T).basis
    assert np.abs(basis.data).max() <= 1.0
    assert np.abs(T @ basis).max() < 1e-12


def test_relations_between_variables_are_those_between_their_cells():
    rng = np.random.default_rng(3)
    for _ in range(20):
        T = csr_array(rng.integers(-1, 2, (6, 9)).astype(float))
        space = reduce(T, rng.random(9) < 0.8).space
        A, dense = space.relations.toarray(), (T @ space.lift).toarray()
        assert len(A) == len(space) - space.reduction.degrees_of_freedom == np.linalg.matrix_rank(A)
        assert np.linalg.matrix_rank(np.vstack([A, dense]), tol=1e-9) == len(A)  # nothing else is asked
        assert not (A == 0).all(axis=1).any()
