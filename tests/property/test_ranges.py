"""Ranges against a separate solver, against enumeration, and against their own witnesses."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges

SHAPES = ((2, 2), (3, 3), (2, 4), (2, 2, 2), (3, 2, 2))


def relations_of(shape):
    """Relations of a table with totals: the last code of each dimension is the total."""
    index = np.arange(np.prod([s + 1 for s in shape])).reshape([s + 1 for s in shape])
    rows = []
    for axis in range(len(shape)):
        for line in np.moveaxis(index, axis, -1).reshape(-1, shape[axis] + 1):
            row = np.zeros(index.size)
            row[line[:-1]], row[line[-1]] = 1.0, -1.0
            rows.append(row)
    return csr_array(np.array(rows))


@st.composite
def releases(draw, shapes=SHAPES, largest=40, scale=1.0):
    """A table with an interval for every cell: published, hidden, or anything between."""
    shape = draw(st.sampled_from(shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    a = rng.integers(0, largest + 1, shape).astype(float)
    for axis in range(a.ndim):
        a = np.concatenate([a, a.sum(axis=axis, keepdims=True)], axis=axis)
    a = a.ravel() * scale
    n = len(a)
    hidden = rng.random(n) < draw(st.sampled_from([0.3, 0.6, 0.9, 1.0]))
    below, above = rng.integers(0, largest, n) * scale, rng.integers(0, largest, n) * scale
    above = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.3])), np.inf, above)
    lo = np.where(hidden, np.maximum(0.0, a - below), a)
    hi = np.where(hidden, a + above, a)
    levels = {name: rng.integers(0, largest // 3, n) * scale for name in ("lower", "upper", "sliding")}
    return relations_of(shape), lo, hi, a, levels


def separate_solver(T, lo, hi, a, cell):
    bounds = [(x, None if np.isinf(y) else y) for x, y in zip(lo, hi, strict=True)]
    ends = []
    for sign in (1, -1):
        c = np.zeros(T.shape[1])
        c[cell] = sign
        found = linprog(c, A_eq=T, b_eq=T @ a, bounds=bounds, method="highs")
        ends.append(-sign * np.inf if found.status == 3 else sign * found.fun)
    return ends


@settings(max_examples=60)
@given(releases(), st.data())
def test_exact_ranges_equal_a_separate_solver(release, data):
    T, lo, hi, a, _ = release
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(len(a))), exact=True)
    for cell in data.draw(st.lists(st.integers(0, len(a) - 1), min_size=4, max_size=4, unique=True)):
        low, high = separate_solver(T, lo, hi, a, cell)
        assert found.low[cell] == pytest.approx(low, abs=1e-6)
        assert found.high[cell] == pytest.approx(high, abs=1e-6)
        assert found.low_bound[cell] <= low + 1e-6
        assert found.high_bound[cell] >= high - 1e-6


@settings(max_examples=150)
@given(releases())
def test_verdicts_follow_from_exact_ranges(release):
    T, lo, hi, a, levels = release
    cells = np.arange(len(a))
    whole = compute_ranges(Sight(T, lo, hi, a), AskedRanges(cells), exact=True)
    quick = compute_ranges(Sight(T, lo, hi, a), AskedRanges(cells, **levels), certify=True)
    meets = (
        (whole.low <= a - levels["lower"] + 1e-6)
        & (whole.high >= a + levels["upper"] - 1e-6)
        & (whole.high - whole.low >= levels["sliding"] - 1e-6)
    )
    assert (quick.safe == meets).all()
    assert (quick.unsafe == ~meets).all()


@settings(max_examples=100)
@given(releases(scale=0.1) | releases(scale=1e7) | releases(scale=1e-3) | releases(largest=9))
def test_every_safe_verdict_has_exact_witnesses(release):
    T, lo, hi, a, levels = release
    found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.arange(len(a)), **levels), certify=True)
    assert (found.safe | found.unsafe).all()
    k, d = found.exact_witnesses.numerators, found.exact_witnesses.denominator
    assert not (T.astype(np.int64) @ k.T).nnz
    tables = a + found.witnesses.toarray()
    slack = 1e-12 * np.abs(a)
    assert (tables >= lo - slack).all()
    assert (tables <= hi + slack).all()
    assert (d > 0).all()
    for i in np.flatnonzero(found.safe):
        low, high = (tables[r, i] if r >= 0 else a[i] for r in (found.low_witness[i], found.high_witness[i]))
        assert a[i] - low >= levels["lower"][i] * (1 - 2e-6) - slack[i]
        assert high - a[i] >= levels["upper"][i] * (1 - 2e-6) - slack[i]
        assert high - low >= levels["sliding"][i] * (1 - 2e-6) - 2 * slack[i]


@settings(max_examples=60)
@given(releases(shapes=((2, 2), (2, 3), (2, 2, 2)), largest=4))
def test_whole_number_ranges_equal_enumeration(release):
    T, lo, hi, a, levels = release
    hi = np.minimum(hi, a + 5)
    found = compute_ranges(
        Sight(T, lo, hi, a, integer=True), AskedRanges(np.arange(len(a)), **levels), exact=True, certify=True
    )
    possible = enumerate_tables(T, lo, hi, a)
    assert found.low == pytest.approx(possible.min(axis=0))
    assert found.high == pytest.approx(possible.max(axis=0))
    meets = (found.low <= a - levels["lower"]) & (found.high >= a + levels["upper"])
    meets &= found.high - found.low >= levels["sliding"]
    assert (found.safe == meets).all()
    assert (found.unsafe == ~meets).all()


def enumerate_tables(T, lo, hi, a):
    """All tables of whole numbers within the bounds: choose the inner cells, compute the totals."""
    dense = T.toarray()
    totals = np.flatnonzero((dense == -1).any(axis=0))
    inner = np.setdiff1d(np.arange(len(a)), totals)
    choices = [np.arange(lo[i], hi[i] + 1) for i in inner]
    if np.prod([len(c) for c in choices]) > 200_000:
        # the hidden cells with most room keep the enumeration small when they are solved for instead
        return _by_elimination(T, lo, hi, a)
    grid = np.array(list(product(*choices)))
    # every total is a sum of inner cells: express it through the true null space
    N = np.linalg.lstsq(dense[:, totals], -dense[:, inner], rcond=None)[0]
    tables = np.empty((len(grid), len(a)))
    tables[:, inner] = grid
    tables[:, totals] = np.rint(grid @ N.T)
    fits = (tables >= lo - 1e-9).all(axis=1) & (tables <= hi + 1e-9).all(axis=1)
    return tables[fits]


def _by_elimination(T, lo, hi, a):
    """Grow tables cell by cell, dropping those that a finished relation contradicts."""
    dense = T.toarray()
    order = np.argsort(hi - lo, kind="stable")
    tables = np.zeros((1, 0))
    for step, cell in enumerate(order):
        values = np.arange(lo[cell], hi[cell] + 1)
        tables = np.hstack([np.repeat(tables, len(values), axis=0), np.tile(values, len(tables))[:, None]])
        seen = order[: step + 1]
        rest = np.setdiff1d(np.arange(len(a)), seen)
        part = tables @ dense[:, seen].T
        least = (np.minimum(dense[:, rest] * lo[rest], dense[:, rest] * hi[rest])).sum(axis=1)
        most = (np.maximum(dense[:, rest] * lo[rest], dense[:, rest] * hi[rest])).sum(axis=1)
        tables = tables[((part + least <= 1e-9) & (part + most >= -1e-9)).all(axis=1)]
    return tables[:, np.argsort(order)]
