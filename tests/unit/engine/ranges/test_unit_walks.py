"""Walks in units: movements in whole numbers that need no program, and ranges of counts that rest on them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.ranges.search.unit_walks import show_by_walks, walk_in_units


def make_sight(rng: np.random.Generator, shape: tuple[int, ...], room: int) -> Sight:
    """Return what an attacker sees of counts when each cell and margin is published with some room."""
    leaves = rng.poisson(3.0, shape)
    dims = {f"d{d}": [f"{d}-{i}" for i in range(n)] for d, n in enumerate(shape)}
    table = cg.Table.from_leaves(dims, leaves, integer=True)
    a = table.values
    low = np.maximum(a - rng.integers(0, room + 1, len(a)), 0.0)
    return Sight(table.relations, low, a + rng.integers(0, room + 1, len(a)), a, integer=True)


@pytest.mark.parametrize("seed", range(4))
def test_movements_are_whole_additive_and_inside(seed: int) -> None:
    sight = make_sight(np.random.default_rng(seed), (5, 4, 4), 3)
    system = sight.build_system()
    k = len(system.up)
    found = walk_in_units(system, np.full(k, 2.0), np.full(k, 2.0), deadline=Deadline.from_limit(20))
    assert found.shape[0] > 0.8 * k  # most variables go both ways
    assert (found.data == np.rint(found.data)).all()
    assert abs(system.space.relations @ found.T).max() == 0
    movements = found.toarray()
    assert (movements <= system.up).all()
    assert (-movements <= system.down).all()


def enumerate_ends(sight: Sight) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and greatest movement of each cell of a 2 x 2 table, over all tables of counts."""
    down, up = sight.slack
    # relations decide which of all movements are possible
    every = np.array(list(product(*(range(-int(d), int(u) + 1) for d, u in zip(down, up, strict=True)))), float)
    found = every[~(sight.relations @ every.T).any(axis=0)]
    return found.min(axis=0), found.max(axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_ends_and_verdicts_of_counts_agree_with_enumeration(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    sight = make_sight(rng, (2, 2), 1)
    least, most = enumerate_ends(sight)
    cells = np.arange(len(sight.point))
    exact = compute_ranges(sight, AskedRanges(cells), exact=True)
    assert (exact.low - sight.point).tolist() == least.tolist()
    assert (exact.high - sight.point).tolist() == most.tolist()
    levels = rng.integers(0, 2, (3, len(cells))).astype(float)
    asked = AskedRanges(cells, *levels)
    lower, upper, sliding = levels
    true = (-least >= lower) & (most >= upper) & (most - least >= sliding)
    found = compute_ranges(sight, asked)
    assert found.safe.tolist() == true.tolist()
    assert found.unsafe.tolist() == (~true).tolist()
    assert not (show_by_walks(sight, asked, Deadline.from_limit(9)) & ~true).any()


def test_levels_near_the_truth_need_few_programs() -> None:
    sight = make_sight(np.random.default_rng(3), (8, 7, 6), 4)
    cells = np.flatnonzero(np.minimum(*sight.slack) >= 1)
    ones = np.ones(len(cells))
    found = compute_ranges(sight, AskedRanges(cells, ones, ones))
    assert found.safe.mean() > 0.9
    assert found.programs < 0.2 * len(cells)
