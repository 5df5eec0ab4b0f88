"""One movement for all requests, and what makes large tables bearable besides."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard._engine.clock import Deadline
from cellguard._engine.ranges import range_search as search
from cellguard._engine.space.echelon_form import EchelonForm
from cellguard.methods.suppress import improve, pattern
from cellguard.methods.suppress.joint_movement import joint_movement_of_pattern
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.space import PatternSpace
from cellguard.nouns.levels import attackers_of_table


def small() -> cg.Table:
    return generate.hierarchical(5, branching=((3, 2), (3,), (2, 2)))


def space_of(table: cg.Table) -> PatternSpace:
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    return PatternSpace.of(problem, problem.usable)


@pytest.mark.parametrize("seed", range(4))
def test_one_movement_meets_all_requests_there_and_back(seed):
    space = space_of(generate.hierarchical(seed))
    requests = np.arange(len(space.requests[0]))
    z = joint_movement_of_pattern(space, requests, np.where(space.keep, 0.0, space.weight))
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
    assert joint_movement_of_pattern(space, np.arange(1), space.weight) is None  # down by 5 is impossible


@pytest.mark.parametrize("attackers", [1, 2])
def test_a_search_that_starts_jointly_ends_safe(monkeypatch, attackers):
    monkeypatch.setattr(improve, "_MANY_ROWS", 0)
    monkeypatch.setattr(improve, "_RIGID", 0)
    monkeypatch.setattr(improve, "_MANY_REQUESTS", 1)
    table = generate.hierarchical(3)
    if attackers == 2:
        knows = np.flatnonzero(table.values > 0)[-3:]
        a = table.values[knows]
        second = cg.Attacker(name="neighbour", cells=knows, lb=0.5 * a, ub=2.0 * a)
        table = table.with_(attackers=(*attackers_of_table(table), second))
    assert len(attackers_of_table(table)) == attackers
    release = cg.suppress(table, method="heuristic", rounds=5, time_limit_s=60)
    assert release.audit().safe


def test_cleaning_goes_on_where_it_stopped(monkeypatch):
    table = small()
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    proof = pattern.prove_pattern(problem, problem.usable | problem.forced)
    monkeypatch.setattr(pattern, "_TRIES", 5)
    left, _ = pattern.clean_pattern(proof)
    assert problem.verdicts(left)[0].all()
    kept = np.flatnonzero(left & ~problem.forced & (problem.weight > 0))
    assert len(kept)
    for cell in kept:  # nothing more can be spared
        assert not problem.verdicts(left & (np.arange(len(left)) != cell))[0].all()


def test_what_the_deadline_leaves_untried_stays_and_is_safe():
    table = small()
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    proof = pattern.prove_pattern(problem, problem.usable | problem.forced)
    assert proof.safe
    everything, _ = pattern.clean_pattern(proof, deadline=Deadline.after(-1.0))
    assert problem.verdicts(everything)[0].all()
    assert problem.cost(everything) > problem.cost(pattern.clean_pattern(proof)[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_search_agrees_with_the_programs(monkeypatch, seed):
    table = generate.hierarchical(seed)
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    some = problem.forced | (problem.usable & (np.random.default_rng(seed).random(table.n_cells) < 0.5))
    by_programs = problem.verdicts(some)[0]
    monkeypatch.setattr(search, "LARGE", 0)
    assert (problem.verdicts(some)[0] == by_programs).all()
    assert by_programs.any()


def test_movements_of_an_echelon_form_stay_inside_the_room():
    table = generate.hierarchical(1)
    space = space_of(table)
    N = space.reduction.basis[space.cells]
    low, high = space.bounds
    form = EchelonForm(N, -low, high)
    row = np.unique(space.requests[1])[:5]
    need = np.tile(0.5 * np.minimum(-low, high)[row], (3, 1))
    movements, failed = form.reach(row, need, patience=10)
    Z = np.array(movements)
    assert failed == 0
    assert np.allclose(np.clip(Z, low, high), Z, rtol=1e-9)
    assert (Z[:, row].max(axis=0) >= need[0] * (1 - 1e-6)).all()


def test_no_movements_are_lifted_to_none():
    """A search whose time was over before it had a movement ended as an internal error."""
    space = space_of(small())
    assert space.lifted(np.array([])).shape == (0, len(space.problem.forced))
