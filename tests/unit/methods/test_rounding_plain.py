"""Rounding starts from the plain model: no levels at first, and only those that its optimum misses after that."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

import cellguard as cg
from cellguard._engine.clock import NEVER
from cellguard._engine.numbers.multiples import split_into_multiples
from cellguard.methods.limits import Limits
from cellguard.methods.rounding.choose import _join_outcomes
from cellguard.methods.rounding.exact import RoundingOutcome
from cellguard.methods.rounding.level_cuts import LevelCuts
from cellguard.methods.rounding.plain import GOOD_ENOUGH_GAP, KnownRounding, round_plainly
from cellguard.methods.rounding.problem import Bases, make_rounding_problem

BASE = 3.0
KEY = cg.Key.from_public_number(1)


def make_counts(leaves: np.ndarray, level: float = 0.0, below: float = 0.0) -> cg.Table:
    """Return a table of counts with all margins; positive leaves below a number keep `level` on both sides."""
    codes = [[f"{'xyz'[d]}{i}" for i in range(n)] for d, n in enumerate(leaves.shape)]
    dims = {"xyz"[d]: c for d, c in enumerate(codes)}
    table = cg.Table.from_leaves(dims, leaves, weights=1.0, integer=True, insiders=False).with_(known_zeros=False)
    totals = np.unique(table.relations.indices[table.relations.data < 0])
    small = (table.values > 0) & (table.values < below)
    small[totals] = False
    levels = np.where(small, level, 0.0)
    return table.with_(sensitive=levels > 0, lower=np.minimum(levels, table.values), upper=levels)


def find_plain_optimum(table: cg.Table, base: float) -> float:
    """Return the least distance of a zero-restricted rounding without levels, from another program."""
    a = table.values
    floor = np.floor(a / base) * base
    side = (table.rhs - table.relations @ floor) / base
    found = milp(
        base - 2 * (a - floor), integrality=np.ones(len(a)), bounds=Bounds(0, np.where(a == floor, 0, 1)),
        constraints=LinearConstraint(table.relations, side, side), options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    return float(found.fun + (a - floor).sum())


@pytest.mark.parametrize("shape", [(6, 5), (4, 4, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_levels_that_do_not_bind_cost_nothing(shape: tuple[int, ...], seed: int) -> None:
    leaves = np.random.default_rng(seed).poisson(9.0, shape)
    table = make_counts(leaves, level=1.0, below=5.0)
    release = cg.round(table, 5, step=1, keep_multiples=True, time_limit_s=60, key=KEY)
    assert release.details["plain_rounds"] == 1
    assert release.details["cuts"] == 0
    assert str(release.status) == "optimal"
    assert release.objective == pytest.approx(find_plain_optimum(table, 5.0))
    assert release.audit().safe


def iter_tables(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return every 2 x 2 table of counts whose cells and margins lie within bounds; the order is that of the cells."""
    ranges = [np.arange(int(l), int(h) + 1) for l, h in zip(low, high, strict=True)]
    leaves = np.array(list(product(*(ranges[i] for i in LEAVES))), float)
    full = leaves @ INTO.T
    return full[((full >= low) & (full <= high)).all(axis=1)]


def _find_places() -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the four inner cells, and how all nine cells are made of them."""
    columns, places = [], []
    for k in range(4):
        unit = np.zeros(4)
        unit[k] = 1
        values = make_counts(unit.reshape(2, 2)).values
        columns.append(values)
    into = np.array(columns).T
    places = [int(np.flatnonzero((into == np.eye(4)[k]).all(axis=1))[0]) for k in range(4)]
    return np.array(places), into


LEAVES, INTO = _find_places()


def is_safe(table: cg.Table, published: np.ndarray) -> bool:
    """Whether every sensitive cell keeps its levels, over all tables of counts that are consistent."""
    low, high = np.maximum(published - BASE + 1, 0.0), published + BASE - 1
    possible = iter_tables(low, high)
    s = table.sensitive
    enough = (possible.min(axis=0) <= table.values - table.lower) & (possible.max(axis=0) >= table.values + table.upper)
    return bool(enough[s].all() and (published != table.values)[s].all())


@pytest.mark.parametrize("seed", range(25))
def test_small_tables_agree_with_brute_force(seed: int) -> None:
    rng = np.random.default_rng([31, seed])
    table = make_counts(rng.integers(0, 8, (2, 2)).astype(float), level=float(rng.integers(1, 3)), below=5.0)
    a = table.values
    floor = np.floor(a / BASE) * BASE
    options = [[f] if f == v else [f, f + BASE] for f, v in zip(floor, a, strict=True)]
    all_of_them = np.array(list(product(*(options[i] for i in LEAVES)))) @ INTO.T
    zero_restricted = all_of_them[(np.abs(all_of_them - a) < BASE).all(axis=1)]
    costs = [float(np.abs(v - a).sum()) for v in zero_restricted if is_safe(table, v)]
    release = cg.round(table, BASE, step=1, time_limit_s=30, key=KEY)
    if not costs:
        assert not release.published
        assert str(release.status) == "infeasible"
    else:
        assert str(release.status) == "optimal"
        assert release.objective == min(costs)
        assert is_safe(table, release.values)


class _OneCut:
    """Levels that ask for one cell to be rounded up."""

    def __init__(self, cell: int) -> None:
        self.cell = cell

    def find_violated(self, x: np.ndarray, *, max_cuts: int) -> tuple[csr_array, np.ndarray]:
        missed = 1 if max_cuts and x[self.cell] < 1 - 1e-9 else 0
        return csr_array((np.ones(missed), ([0] * missed, [self.cell] * missed)), (missed, len(x))), np.ones(missed)


def test_what_the_plain_optimum_misses_is_added_as_cuts() -> None:
    leaves = np.random.default_rng(5).poisson(9.0, (4, 5)).astype(float)
    table = make_counts(leaves)
    n, a = table.n_cells, table.values
    lattice, _ = split_into_multiples(a, np.full(n, 5.0), slack=1)
    bases = Bases(base=np.full(n, 5.0), lattice=lattice, step=1, unit=1.0)
    problem = make_rounding_problem(table, bases, np.ones(n), [], np.zeros(n, bool))
    plain = round_plainly(problem, LevelCuts(problem, [], NEVER), Limits())
    assert (plain.plain_rounds, plain.cuts) == (1, 0)
    assert plain.objective == find_plain_optimum(table, 5.0)
    assert plain.x is not None
    cell = int(np.flatnonzero(problem.free & (plain.x == 0))[0])
    found = round_plainly(problem, cast("LevelCuts", _OneCut(cell)), Limits())
    assert found.plain_rounds == 2
    assert found.cuts == 1
    assert not found.limit
    assert found.x is not None
    assert found.x[cell] == 1
    forced = replace(problem, low=np.where(np.arange(n) == cell, 1, problem.low))
    assert found.objective == round_plainly(forced, LevelCuts(forced, [], NEVER), Limits()).objective
    assert found.objective >= plain.objective


def test_joined_searches_keep_the_better_rounding_and_the_better_bound() -> None:
    first = RoundingOutcome(x=np.zeros(1, np.int64), objective=10.0, bound=4.0, limit=True, plain_rounds=2)
    second = RoundingOutcome(x=None, objective=np.inf, bound=10.0, limit=True)
    both = _join_outcomes(second, first, Limits())
    assert both.x is first.x
    assert (both.bound, both.limit, both.plain_rounds) == (10.0, False, 2)


def test_large_tables_end_near_the_bound_without_a_proof() -> None:
    leaves = np.random.default_rng(8).poisson(2.0, (14, 8, 6)).astype(float)
    table = make_counts(leaves, level=1.0, below=3.0)
    n, a = table.n_cells, table.values
    lattice, _ = split_into_multiples(a, np.full(n, 5.0), slack=1)
    bases = Bases(base=np.full(n, 5.0), lattice=lattice, step=1, unit=1.0)
    problem = make_rounding_problem(table, bases, np.ones(n), [], np.zeros(n, bool))
    assert problem.free.sum() > 500
    plain = round_plainly(problem, LevelCuts(problem, [], NEVER), Limits())
    assert plain.x is not None
    cell = int(np.flatnonzero(problem.free & (plain.x == 0))[0])
    known = KnownRounding(x=plain.x, bound=plain.bound)
    found = round_plainly(problem, cast("LevelCuts", _OneCut(cell)), Limits(), known)
    assert found.x is not None
    assert problem.is_rounding(found.x)
    assert found.x[cell] == 1
    assert plain.bound <= found.bound <= found.objective
    assert found.objective - found.bound <= GOOD_ENOUGH_GAP * found.objective
    assert (found.x != plain.x).mean() < 0.1  # a few changes are enough
