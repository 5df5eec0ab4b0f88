"""The compiled search and attack against plain enumeration, written without looking at them."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from cellguard._core import twoway as core
from cellguard._engine.counts import twoway

MINIMUM, WIDTH = 2, 3


def completions(rows, columns, cells):
    """Every way to fill the cells with counts that have these sums by row and column."""
    if not cells:
        return [()] if not any(rows) and not any(columns) else []
    (i, j), rest = cells[0], cells[1:]
    out = []
    least = 0 if any(cell[0] == i for cell in rest) else rows[i]
    for v in range(least, min(rows[i], columns[j]) + 1):
        r, c = list(rows), list(columns)
        r[i] -= v
        c[j] -= v
        out += [(v, *others) for others in completions(tuple(r), tuple(c), rest)]
    return out


@lru_cache(maxsize=500_000)
def known(rows, columns, cells):
    """Candidates of a pattern with these hidden sums, and the width of each cell."""
    ways = completions(rows, columns, cells)
    found = np.array(ways, np.int64).reshape(len(ways), len(cells))
    return found, np.ptp(found, axis=0)


@lru_cache
def all_patterns(shape):
    grids = [np.array(bits, bool).reshape(shape) for bits in product((False, True), repeat=shape[0] * shape[1])]
    return np.array(grids), [tuple((int(i), int(j)) for i, j in np.argwhere(p)) for p in grids]


def look(x, pattern, cells=None):
    cells = tuple((int(i), int(j)) for i, j in np.argwhere(pattern)) if cells is None else cells
    hidden = np.where(pattern, x, 0)
    return *known(tuple(hidden.sum(axis=1).tolist()), tuple(hidden.sum(axis=0).tolist()), cells), cells


def candidates(x, pattern):
    found, _, cells = look(x, pattern)
    return found, cells


def safe(x, pattern, sensitive, cells=None):
    if (sensitive & ~pattern).any():
        return False
    _, spread, cells = look(x, pattern, cells)
    return all(spread[k] >= WIDTH for k, cell in enumerate(cells) if sensitive[cell])


def optimum(x, law):
    """The cheapest safe pattern, found by trying all of them."""
    sensitive, cost = law.find_sensitive(x), law.compute_cost(x)
    patterns, cells = all_patterns(x.shape)
    hide = ~(patterns | ~sensitive).all(axis=(1, 2))
    total = (patterns * cost).sum(axis=(1, 2))
    ranked = (k for k in np.argsort(total, kind="stable") if not hide[k])
    return next((patterns[k] for k in ranked if safe(x, patterns[k], sensitive, cells[k])), None)


def some_law(shape, seed, **changes):
    base = twoway.UNIT + np.random.default_rng(seed).integers(1, 1 << 24, shape)
    return twoway.CountLaw(**({"minimum": MINIMUM, "width": WIDTH, "base": base} | changes))


def some_table(seed, shape=(3, 3)):
    return np.random.default_rng(seed).integers(0, 8, shape)


def some_laws(shape, seed):
    """The kinds of rule: zeros sensitive or not, loss by cells or by counts."""
    yield some_law(shape, seed)
    yield some_law(shape, seed, smallest=1)
    yield some_law(shape, seed, base=some_law(shape, seed).base - twoway.UNIT, slope=twoway.UNIT)


@pytest.mark.parametrize("shape", [(2, 2), (2, 4), (3, 3)])
def test_optimal_pattern_equals_trying_all(shape):
    for seed in range(40):
        x = some_table(seed, shape)
        for law in some_laws(shape, seed):
            found, _ = twoway.find_optimal_pattern(x, law)
            expected = optimum(x, law)
            assert (found is None) == (expected is None), seed
            assert found is None or np.array_equal(found, expected), seed


def test_feasibility_intervals_equal_plain_enumeration():
    rng = np.random.default_rng(4)
    for seed in range(60):
        x = some_table(seed, (3, 4))
        pattern = rng.random(x.shape) < 0.6
        low, high = twoway.compute_feasible_intervals(x, pattern)
        found, cells = candidates(x, pattern)
        assert np.array_equal(low[~pattern], x[~pattern])
        for k, (i, j) in enumerate(cells):
            assert (low[i, j], high[i, j]) == (found[:, k].min(), found[:, k].max())


def test_candidates_equal_plain_enumeration():
    rng = np.random.default_rng(5)
    for seed in range(60):
        x = some_table(seed, (3, 4))
        pattern = rng.random(x.shape) < 0.5
        expected, _ = candidates(x, pattern)
        found = twoway.enumerate_candidate_tables(x, pattern, 100_000)
        assert twoway.number_of_count_tables(x, pattern, 10**9) == len(expected) == len(found)
        assert (found[:, ~pattern] == x[~pattern]).all()
        assert {tuple(y) for y in found[:, pattern].tolist()} == {tuple(y) for y in expected.tolist()}


def survivors(x, pattern, law, survive):
    """Algorithm 1 of the paper, and its two weaker attackers."""
    found, cells = candidates(x, pattern)
    for row in found:
        y = x.copy()
        for value, cell in zip(row, cells, strict=True):
            y[cell] = value
        sensitive = law.find_sensitive(y)
        if survive == "optimal":
            keeps = np.array_equal(optimum(y, law), pattern)
        else:
            keeps = safe(y, pattern, sensitive)
            for cell in cells if survive == "minimal" else ():
                less = pattern.copy()
                less[cell] = False
                keeps &= not safe(y, less, sensitive)
        if keeps:
            yield y


@pytest.mark.parametrize("survive", ["safe", "minimal", "optimal"])
def test_attack_equals_plain_enumeration(survive):
    attacked = 0
    for seed in range(220):
        x = some_table(seed)
        law = next(iter([*some_laws(x.shape, seed)][seed % 3 :]))
        pattern, _ = twoway.find_optimal_pattern(x, law)
        if pattern is None or not pattern.any():
            continue
        found = twoway.compute_effective_intervals(x, pattern, law, survive=survive, limit=10**6)
        expected = np.array(list(survivors(x, pattern, law, survive)))
        assert found.finished
        assert np.array_equal(found.low, expected.min(axis=0)), seed
        assert np.array_equal(found.high, expected.max(axis=0)), seed
        assert np.array_equal(found.low, found.inner_low), seed
        assert np.array_equal(found.high, found.inner_high), seed
        if survive == "minimal":
            wide = expected.max(axis=0) - expected.min(axis=0) >= WIDTH
            may = pattern & (expected.min(axis=0) < MINIMUM)
            assert twoway.check_widths(x, pattern, law, limit=10**6).passed == bool(wide[may].all()), seed
        attacked += 1
    assert attacked > 150


def first_candidate(x, pattern):
    """The first in reading order, with which every attack begins."""
    rows = (pattern << np.arange(pattern.shape[1])).sum(axis=1)
    return core.first_candidate(np.ascontiguousarray(x), rows)


def test_attack_depends_on_what_is_published_only():
    compared = 0
    for seed in range(40):
        x = some_table(seed, (4, 4))
        law = some_law(x.shape, seed)
        pattern, _ = twoway.find_optimal_pattern(x, law)
        if pattern is None:
            continue
        for y in twoway.enumerate_candidate_tables(x, pattern, 20):
            assert np.array_equal(first_candidate(x, pattern), first_candidate(y, pattern))
            one, other = (twoway.compute_effective_intervals(t, pattern, law, limit=200) for t in (x, y))
            assert one.work == other.work
            assert np.array_equal(one.low, other.low)
            assert np.array_equal(one.inner_high, other.inner_high)
            compared += not np.array_equal(x, y)
    assert compared > 40


def test_unfinished_ends_are_outer_bounds():
    rng = np.random.default_rng(3)
    short = 0
    for _ in range(30):
        x = np.abs(np.rint(rng.normal(15, 10, (5, 5)))).astype(np.int64)
        law = some_law(x.shape, 1, minimum=5, width=8)
        pattern, _ = twoway.find_optimal_pattern(x, law)
        full = twoway.compute_effective_intervals(x, pattern, law, limit=10**7)
        cut = twoway.compute_effective_intervals(x, pattern, law, limit=40)
        assert (cut.low <= full.low).all()
        assert (cut.high >= full.high).all()
        assert ((cut.inner_low >= full.low) | (cut.inner_low > cut.inner_high)).all()
        assert (cut.inner_high <= full.high).all()
        short += not cut.finished
    assert short


def test_search_stops_at_its_limit():
    x = np.abs(np.rint(np.random.default_rng(2).normal(15, 10, (8, 8)))).astype(np.int64)
    law = some_law(x.shape, 1, minimum=5, width=8)
    _, nodes = twoway.find_optimal_pattern(x, law, limit=5)
    assert nodes == 6


def test_share_of_draws_counts_the_optima():
    x = some_table(3)
    law = some_law(x.shape, 3)
    pattern, _ = twoway.find_optimal_pattern(x, law)
    draws = np.array([some_law(x.shape, seed).base for seed in range(20)])
    expected = np.mean([np.array_equal(optimum(x, some_law(x.shape, seed)), pattern) for seed in range(20)])
    assert twoway.estimate_optimal_shares(x[None], pattern, law, draws, limit=10**6).tolist() == [expected]
