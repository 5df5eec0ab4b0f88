"""Rounding by areas: the coordinates of a table, flows, cycles, and roundings with bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

import cellguard as cg
from cellguard._core.flows import FAR, cheapest_flow, negative_cycle
from cellguard._engine.numbers.multiples import split_into_multiples
from cellguard._engine.space.network import build_adjacency
from cellguard.datasets.generate import census, cube, geography
from cellguard.methods.rounding.areas.area_relaxation import AreaRelaxation
from cellguard.methods.rounding.areas.blocks import find_blocks
from cellguard.methods.rounding.areas.grid import Prices, make_area_grid
from cellguard.methods.rounding.problem import Bases, make_rounding_problem


def shuffled(table, seed=0):
    """Return the table with its cells and relations in random order, and nothing known but its equations."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(table.n_cells)
    T = table.relations[:, order][rng.permutation(table.n_relations)]
    return cg.Table.from_equations(table.values[order], csr_array(T), weights=1.0)


@pytest.fixture(scope="module")
def small_census():
    return shuffled(census(2, wards=40, districts=4, ages=6, living=3, mean=400.0))


@pytest.mark.parametrize(
    ("table", "shape"),
    [
        (cube(1, sides=(4, 5, 6)), (7, 5, 6)),
        (census(1, wards=12, districts=3, ages=5, living=3), (16, 6, 9)),
    ],
)
def test_coordinates_are_found_from_the_relations_alone(table, shape):
    table = shuffled(table)
    blocks = find_blocks(table.relations)
    assert blocks.cells.shape == shape
    assert sorted(blocks.cells.ravel()) == list(range(table.n_cells))
    a = table.values[blocks.cells]
    for g in np.unique(blocks.parent[blocks.parent >= 0]):
        np.testing.assert_array_equal(a[blocks.parent == g].sum(axis=0), a[g])
    np.testing.assert_array_equal(a[:, :-1].sum(axis=1), a[:, -1])
    for relation in range(blocks.n_relations):
        parts = a[..., blocks.part_of == relation].sum(axis=-1)
        np.testing.assert_array_equal(parts, a[..., blocks.total_of == relation][..., 0])


@pytest.mark.parametrize(
    "table",
    [
        geography(1, wards=60, authorities=12, counties=6, regions=4),
        cube(1, sides=(3, 3, 3, 3)),
        cube(1, sides=(4, 4)),
        cg.Table.from_equations([1, 2, 3], [[2, 0, 1]]),
    ],
)
def test_other_tables_have_none(table):
    assert find_blocks(table.relations) is None


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_flows_are_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 7)), int(rng.integers(5, 14))
    tail, head = rng.integers(0, n, m), rng.integers(0, n, m)
    steps = rng.integers(0, 4, m)
    first = np.concatenate([[0], np.cumsum(steps)])
    low = rng.integers(-2, 2, m)
    prices = np.concatenate([np.sort(rng.integers(-3, 4, k)) for k in steps] or [np.zeros(0)]).astype(float)
    some = low + np.array([rng.integers(0, k + 1) for k in steps])  # a flow exists
    need = np.zeros(n, np.int64)
    np.add.at(need, head, some)
    np.subtract.at(need, tail, some)
    flow = np.empty(m, np.int64)
    assert cheapest_flow((tail, head, *build_adjacency(tail, head, n)), need, low, first, prices, flow) == 0
    found = sum(prices[first[j] : first[j] + flow[j]].sum() for j in range(m))
    arc = np.repeat(np.arange(m), steps)
    A = np.zeros((n, len(arc)))
    np.add.at(A, (head[arc], np.arange(len(arc))), 1.0)
    np.subtract.at(A, (tail[arc], np.arange(len(arc))), 1.0)
    start = np.zeros(n)
    np.add.at(start, head, low)
    np.subtract.at(start, tail, low)
    keep = np.arange(n - 1)  # the last node is the outside
    best = linprog(prices, A_eq=A[keep], b_eq=(need - start)[keep], bounds=(0, 1)) if len(arc) else None
    assert found == pytest.approx(best.fun if best is not None else 0.0)
    carried = low + flow
    balance = np.zeros(n, np.int64)
    np.add.at(balance, head, carried)
    np.subtract.at(balance, tail, carried)
    np.testing.assert_array_equal(balance[:-1], need[:-1])


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_a_negative_cycle_is_found_if_there_is_one(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 7)), int(rng.integers(3, 12))
    tail, head = rng.integers(0, n, m), rng.integers(0, n, m)
    up = np.where(rng.random(m) < 0.3, FAR, rng.integers(-1, 6, m).astype(float))
    down = np.where(rng.random(m) < 0.3, FAR, rng.integers(0, 6, m).astype(float))
    down = np.maximum(down, -up)  # a step and its reverse do not gain together
    cycle = negative_cycle((tail, head, *build_adjacency(tail, head, n)), up, down)
    shortest = np.full((n, n), np.inf)
    for j in range(m):
        shortest[tail[j], head[j]] = min(shortest[tail[j], head[j]], up[j])
        shortest[head[j], tail[j]] = min(shortest[head[j], tail[j]], down[j])
    for k in range(n):
        shortest = np.minimum(shortest, shortest[:, k : k + 1] + shortest[k : k + 1])
    assert (len(cycle) > 0) == bool((np.diag(shortest) < 0).any())
    if len(cycle):
        assert sum(up[j] if j >= 0 else down[~j] for j in cycle) < 0
        ends = [(tail[j], head[j]) if j >= 0 else (head[~j], tail[~j]) for j in cycle]
        assert sorted(e[0] for e in ends) == sorted(e[1] for e in ends)


def test_prices_towards_a_point_are_the_distance_from_it():
    p = Prices.from_distance(np.array([0.25, -1.5, 2.0]))
    assert p.kink.tolist() == [0, -2, 2]
    assert p.slope.tolist() == [0.5, 0.0, 1.0]


def test_a_relaxation_follows_what_is_decided():
    """After one area is fixed, a few hundred steps lead near the optimum that solving again would give."""
    table = cube(8, sides=(8, 9, 10))
    base = np.full(table.n_cells, 5.0)
    bases = Bases(base=base, lattice=split_into_multiples(table.values, base)[0], step=1, unit=1.0)
    problem = make_rounding_problem(table, bases, table.weights, [], np.zeros(table.n_cells, bool))
    grid = make_area_grid(problem, find_blocks(table.relations))
    areas = grid.parts[grid.top]
    free = AreaRelaxation(grid, areas, grid.area_sums[grid.top], parent=grid.top)
    assert free.solve()
    assert free.bound == pytest.approx(
        free.constant + grid.scale * (free.pieces.cost @ free.y), abs=1e-3
    )  # the bound of the duals is the price of the relaxed solution
    whole = np.rint(free.x[0]).astype(np.int64)
    free.settle(0, whole)
    free.follow(4000)
    np.testing.assert_array_equal(free.x[0], whole)
    again = AreaRelaxation(grid, areas, grid.area_sums[grid.top], parent=grid.top)
    again.pieces.upper[again.area == 0] = 0.0
    again.rhs = free.sides
    again.solve()
    price = free.pieces.cost[free.area > 0] @ free.y[free.area > 0]
    assert price == pytest.approx(again.pieces.cost @ again.y, abs=0.1)
    assert np.abs(free.A @ free.y - free.rhs).max() < 0.05


def check(table, release, base=5):
    v = release.values
    np.testing.assert_array_equal(table.relations @ v, 0)
    assert (v % base == 0).all()
    assert (np.abs(v - table.values) < release.step * base).all()
    assert release.objective == pytest.approx(np.abs(v - table.values).sum())
    assert release.bound <= release.objective
    assert release.audit().unsafe == 0


def test_a_census_is_rounded_close_to_its_bound(small_census):
    release = cg.round(small_census, weights="unit", method="areas")
    check(small_census, release)
    assert release.status in ("optimal", "feasible")
    assert release.gap < 0.03


def test_within_a_gap_is_not_optimal(small_census):
    release = cg.round(small_census, weights="unit", method="areas", gap=0.05)
    assert 0 < release.gap <= 0.05
    assert release.status == "feasible"


def test_the_same_seed_gives_the_same_table(small_census):
    first, second = (cg.round(small_census, weights="unit", method="areas", gap=0.05, seed=3) for _ in range(2))
    assert first.values.tolist() == second.values.tolist()


def test_areas_and_proof_agree_on_a_small_cube():
    table = shuffled(cube(3, sides=(6, 6, 6)))
    exact, areas = cg.round(table, weights="unit", method="exact"), cg.round(table, method="areas")
    check(table, areas)
    assert exact.status == "optimal"
    assert areas.bound <= exact.objective <= areas.objective
    assert areas.objective <= 1.1 * exact.objective


def test_areas_first_then_a_proof():
    table = shuffled(cube(4, sides=(5, 6, 40)))
    release = cg.round(table, weights="unit", gap=0.01, time_limit_s=60)
    check(table, release)
    assert release.gap <= 0.01


def test_larger_steps():
    table = shuffled(cube(5, sides=(8, 8, 8)))
    plain, wide = cg.round(table, weights="unit", method="areas"), cg.round(table, method="areas", step=2)
    check(table, wide)
    assert wide.step == 2
    assert wide.bound <= plain.objective + 1e-6


def test_levels_are_met():
    table = census(6, wards=15, districts=3, ages=5, living=3, mean=300.0, threshold=4)
    s = table.sensitive_cells
    # a count of 1 that must reach down to 0 would have to be rounded down, and so many of them have no rounding
    table = table.with_(
        lower=_spread(table.n_cells, s, np.minimum(1.0, table.values[s] - 1)),
        upper=_spread(table.n_cells, s, 1.0),
        sliding=np.zeros(table.n_cells),
    )
    release = cg.round(table, weights="unit", method="areas", time_limit_s=600)
    assert release.published
    check(table, release)
    assert release.audit().checked == len(s)


def _spread(n, cells, levels):
    out = np.zeros(n)
    out[cells] = levels
    return out


def test_what_an_insider_knows_does_not_bind_the_release():
    """He knows all cells of some areas within 1, so that only the published intervals of others leave room."""
    table = census(7, wards=12, districts=2, ages=3, living=2, mean=200.0)
    a = table.values
    known = np.arange(0, table.n_cells, 3)
    s = np.setdiff1d(np.flatnonzero((a > 2) & (a < 40)), known)[:10]
    insider = cg.Attacker(
        name="insider", cells=known, lb=np.maximum(a[known] - 1, 0), ub=a[known] + 1,
        sensitive=s, lower=np.ones(len(s)), upper=np.ones(len(s)),
    )  # fmt: skip
    table = table.with_(attackers=(insider,), known_zeros=False)
    release = cg.round(table, method="areas", max_step=1, keep_multiples=True)
    assert release.published
    assert release.audit().safe


def test_no_coordinates_no_areas():
    with pytest.raises(cg.InputError, match="method 'areas' needs"):
        cg.round(cg.Table.from_equations([1, 2, 3], [[2, 0, 1]]), method="areas")
    with pytest.raises(cg.InputError, match="method 'fast' is not known"):
        cg.round(cg.Table.from_equations([1, 2, 3], [[2, 0, 1]]), method="fast")


def test_the_limit_is_kept(small_census):
    release = cg.round(small_census, weights="unit", method="areas", time_limit_s=0.0)
    assert release.status == "time_limit"
    assert release.published
    check(small_census, release)
