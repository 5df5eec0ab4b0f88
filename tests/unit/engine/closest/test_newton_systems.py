"""Newton systems: every way to solve them gives the minimiser, and the interior point ends where it must."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.sparse import csr_array

from cellguard._engine.closest.interior import InteriorPoint, PointInequalities, Program
from cellguard._engine.closest.newton_systems import DenseNormal, IterativeNormal, NullSpace, SparseNormal
from cellguard._engine.space.reduce import select_independent_rows

RELATIONS = np.array([[-1.0, 1, 1, 0, 0, 0], [0, 0, -1, 1, 2, 0], [0, -1, 0, 0, 1, 1]])


def minimiser(theta, g, v):
    """The closest x by dense algebra: 1/2 x' Theta x - g x with A (v + x) = 0."""
    m = len(RELATIONS)
    K = np.block([[np.diag(theta), RELATIONS.T], [RELATIONS, np.zeros((m, m))]])
    return np.linalg.solve(K, np.concatenate([g, -RELATIONS @ v]))[: len(g)]


@pytest.mark.parametrize("way", [NullSpace, DenseNormal, SparseNormal, IterativeNormal])
def test_every_way_gives_the_minimiser(way):
    rng = np.random.default_rng(0)
    N = null_space(RELATIONS)
    system = way(csr_array(N) if way is NullSpace else csr_array(RELATIONS))
    for _ in range(3):
        theta, g = rng.uniform(0.1, 9.0, 6), rng.normal(size=6)
        v = N @ rng.normal(size=3)
        system.factor(theta)
        for start in (None, v):
            np.testing.assert_allclose(system.solve(g, start), minimiser(theta, g, 0.0 * v), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("way", [DenseNormal, SparseNormal])
def test_what_left_the_relations_is_brought_back(way):
    rng = np.random.default_rng(1)
    theta, g, off = rng.uniform(0.1, 9.0, 6), rng.normal(size=6), 1e-6 * rng.normal(size=6)
    system = way(csr_array(RELATIONS))
    system.factor(theta)
    np.testing.assert_allclose(RELATIONS @ (off + system.solve(g, off)), 0.0, atol=1e-14)


def test_numbers_beyond_what_can_be_computed_with_end_the_search():
    none, one = np.zeros(0), np.ones(1)
    rows = PointInequalities(mover=np.zeros(1, np.int64), sign=one, aux=np.zeros(1, np.int64), lift=0.0 * one, side=one)
    program = Program(
        linear=0.0 * one, quadratic=1e300 * one, rows=rows, aux_cost=none, aux_quadratic=none, first_pair=1
    )
    run = InteriorPoint(program, NullSpace(csr_array(np.eye(1))))
    run.point.multiplier[:] = 1e308
    run.point.slack[:] = 1e-308
    assert not run.run().converged


def test_rows_that_others_imply_are_left_out():
    T = csr_array(np.vstack([RELATIONS, RELATIONS[0] + RELATIONS[1], 0.0 * RELATIONS[0], RELATIONS[2]]))
    rows = select_independent_rows(T)
    assert len(rows) == np.linalg.matrix_rank(T.toarray()[rows]) == 3
