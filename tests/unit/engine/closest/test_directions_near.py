"""Senses that contradict each other: proven so by multipliers, and flipped without a mixed-integer program."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard._engine.clock import NEVER
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.closest_problem import ClosestProblem
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.distance import Distance, Target, is_proven_infeasible
from cellguard._engine.solvers.lp import SolveStatus
from cellguard.methods.adjust.whole import select_disjoint_sets


def crowded(seed: int, share: float) -> cg.Table:
    """Totals are sensitive like others, and none can go further than 10%: many senses have no table."""
    table = generate.hierarchical(seed=seed, branching=((3, 2), (4,)), sensitive=0.0, zeros=0.0)
    chosen = np.random.default_rng(seed).random(table.n_cells) < share
    levels = np.where(chosen, 0.05 * table.values, 0.0)
    room = {"lb": 0.9 * table.values, "ub": 1.1 * table.values}
    return table.with_(sensitive=chosen, lower=levels, upper=levels, **room)


def get_bounds(table: cg.Table, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = table.lb - table.values, table.ub - table.values
    s = table.sensitive
    return np.where(s & up, table.upper, low), np.where(s & ~up, -table.lower, high)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("highest", [1.1, np.inf])
@pytest.mark.parametrize("seed", range(10))
def test_a_contradiction_is_what_the_simplex_method_calls_infeasible(seed, share, highest, monkeypatch):
    table = crowded(seed, share)
    table = table.with_(ub=highest * table.values)
    up = np.random.default_rng(1000 + seed).random(table.n_cells) < 0.5
    target = Target(*get_bounds(table, up), Distance.of(table.n_cells, square=1.0 / table.values))
    adjuster = Adjuster(table.relations)
    feasible = ClosestProblem(adjuster.movers, target).solve_by_simplex()[0] is not SolveStatus.INFEASIBLE
    monkeypatch.setattr(ClosestProblem, "solve_by_simplex", lambda *_: pytest.fail("the multipliers tell it"))
    assert adjuster.solve(target).feasible == feasible


def test_what_can_be_is_never_contradicted():
    rng = np.random.default_rng(5)
    table = crowded(1, 0.5)
    adjuster = Adjuster(table.relations)
    for _ in range(200):
        z = adjuster.complete(rng.normal(size=table.n_cells))
        width = rng.random(table.n_cells) * rng.choice([1e-6, 1.0, np.inf], table.n_cells)
        y = rng.normal(size=table.n_relations)
        assert not is_proven_infeasible(table.relations, y, z - width, z + width)


def test_most_flips_are_found_without_a_mixed_program(monkeypatch):
    monkeypatch.setattr(Senses, "find_possible", lambda *_: None)
    found = []
    for seed in range(30):
        table = crowded(seed, 0.2)
        up = np.random.default_rng(1000 + seed).random(table.n_cells) < 0.5
        distance, adjuster = Distance.of(table.n_cells, square=1.0 / table.values), Adjuster(table.relations)
        if adjuster.solve(Target(*get_bounds(table, up), distance)).feasible:
            continue
        s, room = table.sensitive, (table.lb - table.values, table.ub - table.values)
        search = Senses(adjuster, room, np.where(s, table.lower, 0.0), np.where(s, table.upper, 0.0), distance)
        tables = (
            adjuster.solve(Target(*get_bounds(table, other), distance)) for other in search.propose_near(up, NEVER)
        )
        found.append(any(one.feasible for one in tables))
    assert len(found) > 10
    assert np.mean(found) > 0.6


def test_sets_apart_are_those_of_a_greedy_choice():
    rng = np.random.default_rng(3)
    for _ in range(50):
        sets = [rng.choice(40, rng.integers(1, 6), replace=False) for _ in range(rng.integers(0, 30))]
        touched, greedy = np.zeros(40, bool), []
        for cells in sets:
            greedy.append(not touched[cells].any())
            if greedy[-1]:
                touched[cells] = True
        rank = np.repeat(np.arange(len(sets)), [len(cells) for cells in sets])
        assert select_disjoint_sets(np.concatenate([*sets, np.zeros(0, int)]).astype(int), rank, 40).tolist() == greedy
