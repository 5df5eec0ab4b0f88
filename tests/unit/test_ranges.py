import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from cellguard._engine.ranges import ranges


def grid(shape):
    """Relations of a table of any dimension with totals: the last code of each dimension is the total."""
    index = np.arange(np.prod([s + 1 for s in shape])).reshape([s + 1 for s in shape])
    rows = []
    for axis in range(len(shape)):
        for line in np.moveaxis(index, axis, -1).reshape(-1, shape[axis] + 1):
            row = np.zeros(index.size)
            row[line[:-1]], row[line[-1]] = 1.0, -1.0
            rows.append(row)
    return csr_array(np.array(rows))


def filled(shape, inner):
    a = np.asarray(inner, float).reshape(shape)
    for axis in range(a.ndim):
        a = np.concatenate([a, a.sum(axis=axis, keepdims=True)], axis=axis)
    return a.ravel()


def separate_solver(T, lo, hi, a, cell, sign):
    c = np.zeros(T.shape[1])
    c[cell] = sign
    bounds = [(x, None if np.isinf(y) else y) for x, y in zip(lo, hi, strict=True)]
    found = linprog(c, A_eq=T.toarray(), b_eq=T @ a, bounds=bounds, method="highs")
    return sign * np.inf * -1 if found.status == 3 else sign * found.fun


def random_case(seed):
    rng = np.random.default_rng(seed)
    shape = [(3, 3), (2, 4), (3, 2, 2), (3, 3, 3)][seed % 4]
    T = grid(shape)
    a = filled(shape, rng.integers(0, 40, np.prod(shape)))
    hidden = rng.random(len(a)) < rng.uniform(0.3, 0.9)
    width = np.where(rng.random(len(a)) < 0.3, np.inf, rng.integers(0, 30, len(a)))
    lo = np.where(hidden, np.maximum(0, a - rng.integers(0, 30, len(a))), a)
    hi = np.where(hidden, a + width, a)
    return T, a, lo, hi


@pytest.mark.parametrize("seed", range(12))
def test_exact_ranges_equal_a_separate_solver(seed):
    T, a, lo, hi = random_case(seed)
    cells = np.arange(len(a))
    found = ranges(T, lo, hi, a, cells, exact=True)
    for i in cells:
        assert found.low[i] == pytest.approx(separate_solver(T, lo, hi, a, i, 1), abs=1e-6)
        assert found.high[i] == pytest.approx(separate_solver(T, lo, hi, a, i, -1), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_verdicts_follow_from_exact_ranges(seed):
    T, a, lo, hi = random_case(seed)
    cells = np.arange(len(a))
    rng = np.random.default_rng(seed)
    lower, upper, sliding = (rng.integers(0, 12, len(a)).astype(float) for _ in range(3))
    whole = ranges(T, lo, hi, a, cells, exact=True)
    quick = ranges(T, lo, hi, a, cells, lower=lower, upper=upper, sliding=sliding)
    meets = (
        (whole.low <= a - lower + 1e-6) & (whole.high >= a + upper - 1e-6) & (whole.high - whole.low >= sliding - 1e-6)
    )
    assert (quick.safe == meets).all()
    assert (quick.unsafe == ~meets).all()
