"""The linear programs' adapter: warm changes, rows in and out, honest statuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, SolveStatus


def square() -> LinearProgram:
    return LinearProgram(LinearModel(csr_array(np.array([[1.0, 1.0]])), 0, 4, np.zeros(2), np.full(2, 3.0)))


def test_costs_and_bounds_change_in_bulk() -> None:
    lp = square()
    lp.set_costs(np.array([0, 1]), np.array([1.0, 2.0]))
    assert lp.solve(maximize=True).objective == 7.0
    lp.set_bounds(np.array([0, 1]), np.zeros(2), np.array([1.0, 1.0]))
    assert lp.solve(maximize=True).objective == 3.0
    assert lp.solve().objective == 0.0


def test_duals_explain_the_objective() -> None:
    lp = square()
    lp.set_costs(np.array([0, 1]), np.array([1.0, 2.0]))
    s = lp.solve(maximize=True)
    assert np.isclose(s.row_dual @ [4.0] + s.reduced_cost @ s.x, s.objective)


def test_rows_come_and_go() -> None:
    lp = square()
    lp.set_costs(np.array([0, 1]), np.ones(2))
    lp.add_rows(csr_array(np.array([[1.0, 0.0], [0.0, 1.0]])), np.full(2, -np.inf), np.array([0.5, 1.0]))
    assert lp.solve(maximize=True).objective == 1.5
    lp.delete_rows(np.array([1]))
    assert lp.solve(maximize=True).objective == 4.0


def test_infeasible_and_unbounded_are_told_apart() -> None:
    lp = square()
    lp.set_row_sides(0, 7.0, 8.0)
    assert lp.solve().status is SolveStatus.INFEASIBLE
    free = LinearProgram(LinearModel(csr_array((0, 1)), 0, 0, np.zeros(1), np.full(1, np.inf), np.ones(1)))
    assert free.solve(maximize=True).status is SolveStatus.UNBOUNDED


def knapsack(threads: int) -> LinearProgram:
    rng = np.random.default_rng(0)
    A = rng.integers(5, 60, (6, 40)).astype(float)
    price = -rng.integers(10, 99, 40).astype(float)
    whole = np.ones(40, bool)
    model = LinearModel(csr_array(A), -np.inf, A.sum(axis=1) / 3, np.zeros(40), np.ones(40), price, integer=whole)
    return LinearProgram(model, replace(ONCE, threads=threads))


def test_programs_with_other_numbers_of_threads_are_solved_one_after_the_other() -> None:
    found = [knapsack(threads).solve() for threads in (1, 2, 1)]
    assert [s.status for s in found] == [SolveStatus.OPTIMAL] * 3
    assert len({s.objective for s in found}) == 1
    first = knapsack(1)
    assert knapsack(2).solve().optimal
    assert first.solve().optimal


def test_another_user_of_highs_with_more_threads_does_no_harm() -> None:
    """HiGHS refuses to start with another number of threads than the process began with: PuLP, for one, sets four."""
    import highspy

    highspy.Highs.resetGlobalScheduler(True)
    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", 4)
    other.addVariable(0, 1)
    try:
        assert other.run() == highspy.HighsStatus.kOk
        lp = square()
        lp.set_costs(np.array([0, 1]), np.array([1.0, 2.0]))
        assert lp.solve(maximize=True).objective == 7.0
    finally:
        highspy.Highs.resetGlobalScheduler(True)
