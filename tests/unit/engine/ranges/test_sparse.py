"""Sparse movements for many views: they answer what programs would, and fall apart where nothing holds them together."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from builders import with_margins
from cellguard._engine.clock import NEVER
from cellguard._engine.ranges.many import Sight, Views, compute_ranges_for_views
from cellguard._engine.ranges.ranges import AskedRanges, compute_ranges
from cellguard._engine.ranges.witnesses.cheapest import split_movement
from cellguard._engine.ranges.witnesses.sparse_witnesses import find_sparse_witnesses


def square(rng, n):
    """Return a square table of which about half is withheld: what the public sees of it."""
    full, index, relations = with_margins(rng.integers(1, 60, (n, n)))
    T = np.zeros((len(relations), full.size))
    for k, (total, *parts) in enumerate(relations):
        T[k, total], T[k, parts] = -1.0, 1.0
    a = full.ravel()
    hidden = rng.random(a.size) < 0.6
    hidden[index[-1, -1]] = False
    return csr_array(T), np.where(hidden, 0.0, a), np.where(hidden, 3 * a + 10, a), a, np.flatnonzero(hidden)


@pytest.mark.parametrize("seed", range(12))
def test_the_verdicts_are_those_of_programs(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    T, lo, hi, a, hidden = square(rng, 6)
    knows = [rng.choice(hidden, 2, replace=False) for _ in range(12)]
    known = np.concatenate(knows)
    asked = [(k, c) for k in range(len(knows)) for c in hidden if c not in knows[k]]
    view, cell = (np.array(x) for x in zip(*asked, strict=True))
    level = np.ceil(0.3 * a[cell])
    views = Views(
        known_ptr=np.arange(0, len(known) + 1, 2), known_cell=known, known_lo=a[known], known_hi=a[known],
        view=view, cell=cell, lower=level, upper=level, sliding=np.zeros(len(cell)),
    )  # fmt: skip
    by_programs = compute_ranges_for_views(Sight(T, lo, hi, a), views, certify=True)
    monkeypatch.setattr("cellguard._engine.ranges.many._MANY", 0)
    sparse = compute_ranges_for_views(Sight(T, lo, hi, a), views, certify=True)
    assert sparse.safe.any()
    assert np.array_equal(sparse.safe, by_programs.safe)
    assert np.array_equal(sparse.unsafe, by_programs.unsafe)


def test_a_movement_falls_apart_where_nothing_holds_it_together():
    T = csr_array(np.kron(np.eye(3), [1.0, 1.0, -1.0]))
    z = np.array([2.0, 0, 2, 0, -3, -3, 0, 0, 0])
    parts = split_movement(T, z)
    assert len(parts) == 2
    assert np.array_equal(sum(parts), z)
    for part in parts:
        assert not (T @ part).any()


@pytest.mark.parametrize("seed", range(12))
def test_sparse_witnesses_are_exact_and_show_what_ranges_show(seed):
    rng = np.random.default_rng(seed)
    T, lo, hi, a, hidden = square(rng, 6)
    level = np.ceil(0.3 * a[hidden])
    sight, asked = Sight(T, lo, hi, a), AskedRanges(hidden, level, level)
    found = find_sparse_witnesses(sight, asked, NEVER)
    assert np.array_equal(found.met, compute_ranges(sight, asked, certify=True).safe)
    assert found.met.any()
    slides = AskedRanges(hidden, level, level, 3 * level)  # what slides may be divided in more ways than it tries
    assert not (
        find_sparse_witnesses(sight, slides, NEVER).met & ~compute_ranges(sight, slides, certify=True).safe
    ).any()
    for row in range(found.movements.numerators.shape[0]):
        z = found.movements.get_row(row)
        for k in range(T.shape[0]):
            span = slice(T.indptr[k], T.indptr[k + 1])
            terms = zip(T.indices[span].tolist(), T.data[span].tolist(), strict=True)
            assert sum(Fraction(c) * z.get(j, Fraction(0)) for j, c in terms) == 0
        assert all(Fraction(lo[i]) <= Fraction(a[i]) + moved <= Fraction(hi[i]) for i, moved in z.items())
