"""One movement for all requests, and what makes large tables bearable besides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.search import range_search as search
from cellguard._engine.space.echelon_form import EchelonForm
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search import improve, pattern
from cellguard.methods.suppress.search.joint_movement import find_pattern_movement
from cellguard.methods.suppress.search.space import PatternSpace
from cellguard.model.levels import list_attackers


def small() -> cg.Table:
    return generate.hierarchical(5, branching=((3, 2), (3,), (2, 2)))


def space_of(table: cg.Table) -> PatternSpace:
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    return PatternSpace.of(problem, problem.usable)


@pytest.mark.parametrize("seed", range(4))
def test_one_movement_meets_all_requests_there_and_back(seed):
    space = space_of(generate.hierarchical(seed))
    requests = np.arange(len(space.requests[0]))
    z = find_pattern_movement(space, requests, np.where(space.keep, 0.0, space.weight))
    assert z is not None
    low, high = space.bounds
    A = space.variables.relations
    assert (np.abs(A @ z) <= 1e-9 * (abs(A) @ np.abs(z) + 1.0)).all()
    assert (np.abs(z) <= np.minimum(-low, high) * (1 + 1e-6) + 1e-9).all()
    _, row, down, up, slide = space.requests
    assert (z[row] >= np.maximum(np.maximum(down, up), slide / 2) * (1 - 1e-6)).all()


def test_no_joint_movement_where_a_level_exceeds_the_room():
    table = cg.Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[5], lower=[1], lb=[0, 0, 0])
    space = space_of(table)
    assert find_pattern_movement(space, np.arange(1), space.weight) is None  # down by 5 is impossible


@pytest.mark.parametrize("attackers", [1, 2])
def test_a_search_that_starts_jointly_ends_safe(monkeypatch, attackers):
    low = replace(improve.SEARCH_POLICY, many_rows=0, rigid_rows=0, many_requests=1)
    monkeypatch.setattr(improve, "SEARCH_POLICY", low)
    table = generate.hierarchical(3)
    if attackers == 2:
        knows = np.flatnonzero(table.values > 0)[-3:]
        a = table.values[knows]
        second = cg.Attacker(name="neighbour", cells=knows, lb=0.5 * a, ub=2.0 * a)
        table = table.with_(attackers=(*list_attackers(table), second))
    assert len(list_attackers(table)) == attackers
    release = cg.suppress(table, method="heuristic", rounds=5, time_limit_s=60)
    assert release.audit().safe


def test_cleaning_goes_on_where_it_stopped(monkeypatch):
    table = small()
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    proof = pattern.prove_pattern(problem, problem.usable | problem.forced)
    monkeypatch.setattr(pattern, "_TRIES", 5)
    left, _ = pattern.clean_pattern(proof)
    assert problem.check_requests(left)[0].all()
    kept = np.flatnonzero(left & ~problem.forced & (problem.weight > 0))
    assert len(kept)
    for cell in kept:  # nothing more can be spared
        assert not problem.check_requests(left & (np.arange(len(left)) != cell))[0].all()


def test_what_the_deadline_leaves_untried_stays_and_is_safe():
    table = small()
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    proof = pattern.prove_pattern(problem, problem.usable | problem.forced)
    assert proof.safe
    everything, _ = pattern.clean_pattern(proof, deadline=Deadline.from_limit(-1.0))
    assert problem.check_requests(everything)[0].all()
    assert problem.compute_cost(everything) > problem.compute_cost(pattern.clean_pattern(proof)[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_search_agrees_with_the_programs(monkeypatch, seed):
    table = generate.hierarchical(seed)
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    some = problem.forced | (problem.usable & (np.random.default_rng(seed).random(table.n_cells) < 0.5))
    by_programs = problem.check_requests(some)[0]
    monkeypatch.setattr(search, "LARGE", 0)
    assert (problem.check_requests(some)[0] == by_programs).all()
    assert by_programs.any()


def test_movements_of_an_echelon_form_stay_inside_the_room():
    table = generate.hierarchical(1)
    space = space_of(table)
    N = space.reduction.basis[space.cells]
    low, high = space.bounds
    form = EchelonForm(N, -low, high)
    row = np.unique(space.requests[1])[:5]
    need = np.tile(0.5 * np.minimum(-low, high)[row], (3, 1))
    movements, failed = form.find_movements(row, need, patience=10)
    Z = np.array(movements)
    assert failed == 0
    assert np.allclose(np.clip(Z, low, high), Z, rtol=1e-9)
    assert (Z[:, row].max(axis=0) >= need[0] * (1 - 1e-6)).all()


def test_no_movements_are_lifted_to_none():
    """A search whose time was over before it had a movement ended as an internal error."""
    space = space_of(small())
    assert space.lift_movements(np.array([])).shape == (0, len(space.problem.forced))
