"""Whole numbers for many views: the verdicts are those of all whole tables, one by one."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from cellguard._engine.ranges.many import Sight, Views, compute_ranges_for_views
from cellguard._engine.ranges.search.whole import _make_rows_whole

N = 9
ROWS = [[3 * i + j for j in range(3)] for i in range(3)]
LINES = [*ROWS, *[list(column) for column in zip(*ROWS, strict=True)]]
RELATIONS = csr_array(np.array([[float(cell in line) for cell in range(N)] for line in LINES]))


def whole_tables(truth, lo, hi):
    """Return every table of whole numbers with the sums of the true one, within bounds."""
    free = [range(int(lo[c]), int(hi[c]) + 1) for c in (0, 1, 3, 4)]
    sums = RELATIONS @ truth
    out = []
    for a, b, c, d in product(*free):
        x = np.array([[a, b, sums[0] - a - b], [c, d, sums[1] - c - d], [0, 0, 0]])
        x[2] = sums[3:] - x[:2].sum(axis=0)
        x = x.ravel()
        if (x >= lo).all() and (x <= hi).all():
            out.append(x)
    return np.array(out)


def drawn(seed):
    """Return a table of small counts, who knows what of it, and what is asked."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, N).astype(float)
    hidden = rng.random(N) < 0.8
    lo, hi = np.where(hidden, 0.0, truth), np.where(hidden, 8.0, truth)
    known = [np.flatnonzero(rng.random(N) < 0.2) for _ in range(4)]
    cells = np.flatnonzero(hidden)
    views = Views(
        known_ptr=np.cumsum([0, *map(len, known)]),
        known_cell=np.concatenate(known),
        known_lo=np.concatenate([truth[k] for k in known]),
        known_hi=np.concatenate([truth[k] + (rng.random(len(k)) < 0.3) for k in known]),
        view=np.repeat(np.arange(4), len(cells)),
        cell=np.tile(cells, 4),
        lower=np.tile(rng.integers(0, 2, len(cells)) * 0.5, 4),
        upper=np.tile(rng.integers(0, 3, len(cells)) * 0.8, 4),
        sliding=np.tile(rng.integers(0, 4, len(cells)) * 1.0, 4),
    )
    return truth, lo, hi, views


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_are_those_of_all_whole_tables(seed):
    truth, lo, hi, views = drawn(seed)
    found = compute_ranges_for_views(Sight(RELATIONS, lo, hi, truth, integer=True), views, certify=True)
    assert (found.safe | found.unsafe).all()
    safe = []
    for view, cell, lower, upper, sliding in zip(
        views.view, views.cell, views.lower, views.upper, views.sliding, strict=True
    ):
        x = whole_tables(truth, *views.get_bounds(view, lo, hi))[:, cell]
        down, up = truth[cell] - x.min(), x.max() - truth[cell]
        safe.append(down >= lower and up >= upper and down + up >= sliding)
    assert found.safe.tolist() == safe
    tables = found.exact_witnesses
    assert (tables.denominator == 1).all()
    assert not (RELATIONS @ tables.numerators.T).toarray().any()


def test_some_are_safe_and_some_are_not():
    counted = [0, 0]
    for seed in range(40):
        truth, lo, hi, views = drawn(seed)
        found = compute_ranges_for_views(Sight(RELATIONS, lo, hi, truth, integer=True), views)
        counted[0] += int(found.safe.sum())
        counted[1] += int(found.unsafe.sum())
    assert min(counted) > 50


@pytest.mark.parametrize(
    ("given", "whole"),
    [([2.0, -4.0, 6.0], [1, -2, 3]), ([0.5, -0.75], [2, -3]), ([1 / 3, -1.0], [1, -3]), ([0.1, np.pi], None)],
)
def test_directions_are_the_smallest_whole_ones(given, whole):
    made = _make_rows_whole(csr_array(np.array([[0.0] * len(given), given, [3.0] * len(given)])))
    assert made.toarray().tolist() == ([] if whole is None else [whole]) + [[1] * len(given)]
