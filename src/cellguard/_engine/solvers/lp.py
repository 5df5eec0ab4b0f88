"""Linear programs on HiGHS: one model kept warm, changed in bulk; every answer is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from threading import local
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, sparray

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InternalError

__all__ = [
    "DUAL",
    "ONCE",
    "WARM",
    "LinearModel",
    "LinearProgram",
    "Solution",
    "SolveStatus",
    "Way",
    "solve_lp_for_least_movement",
]


class SolveStatus(StrEnum):
    """Status that the solver claims."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A claim of the solver, with the data to check it."""

    status: SolveStatus
    objective: float
    x: FloatArray
    row_dual: FloatArray
    """Sensitivity of the objective to each row's side; of either sign, 0 for slack rows."""
    reduced_cost: FloatArray
    """Sensitivity of the objective to each variable's bound: ``cost - A' row_dual``."""
    bound: float = float("nan")
    """For whole variables: the bound of the objective that branch and bound proved."""

    @property
    def optimal(self) -> bool:
        """Whether the solver claims an optimum."""
        return self.status is SolveStatus.OPTIMAL


@dataclass(frozen=True, eq=False)
class LinearModel:
    """``min cost x`` subject to ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``, some x whole."""

    A: sparray
    row_lower: FloatArray | float
    row_upper: FloatArray | float
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray | None = None
    """Zero unless given."""
    integer: BoolArray | None = None
    """Which variables are whole numbers; none unless given."""

    def is_satisfied_by(self, x: FloatArray) -> bool:
        """Return whether a point satisfies every row and bound, independently of the solver."""
        if not np.isfinite(x).all():
            return False
        activity = self.A @ x
        slack = 1e-6 * np.maximum(1.0, abs(self.A) @ np.abs(x))
        inside = bool(((x >= self.lower - 1e-6) & (x <= self.upper + 1e-6)).all())
        return inside and bool(((activity >= self.row_lower - slack) & (activity <= self.row_upper + slack)).all())

    def compute_duality_bound(self, row_dual: FloatArray) -> float:
        """Return a lower bound of the minimum that holds for any multipliers, even if the solver was wrong.

        Each row's multiplier is paired with the side that its sign allows, and the reduced cost of each
        variable with the worse of its bounds; an infinite one gives no bound at all.

        >>> model = LinearModel(csr_array(np.ones((1, 2))), 4, 4, np.zeros(2), np.full(2, 3.0), np.ones(2))
        >>> model.compute_duality_bound(np.ones(1))
        4.0
        """

        def bound_worst_case(multiplier: FloatArray, low: FloatArray | float, high: FloatArray | float) -> float:
            side = np.where(multiplier > 0, low, high)
            used = multiplier != 0
            return float(multiplier[used] @ side[used])

        cost = np.zeros(self.A.shape[1]) if self.cost is None else self.cost
        reduced = cost - self.A.T @ row_dual
        reduced[np.abs(reduced) < 1e-11 * (1.0 + np.abs(cost))] = 0.0
        return bound_worst_case(row_dual, self.row_lower, self.row_upper) + bound_worst_case(
            reduced, self.lower, self.upper
        )


@dataclass(frozen=True)
class Way:
    """How to solve a program."""

    solver: str = "simplex"
    simplex: str = "primal"
    presolve: bool = False
    crossover: bool = True
    tolerance: float = 1e-9
    threads: int = 1


WARM = Way()
"""For the attacker's programs: only costs change, and the last vertex stays feasible."""
DUAL = Way(simplex="dual")
"""Bounds and rows change: the last multipliers remain valid."""
ONCE = Way(simplex="dual", presolve=True)
"""Solved once, or always from scratch."""
_SCHEDULED = local()
"""Number of threads that HiGHS uses in this thread of the interpreter."""


class LinearProgram:
    """``min c x`` (or max) subject to ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``.

    The model stays in the solver between solves, so that changing a few costs or bounds takes only a few pivots.

    >>> lp = LinearProgram(LinearModel(csr_array(np.ones((1, 2))), 4, 4, np.zeros(2), np.array([3.0, 3.0])))
    >>> lp.set_costs(np.array([0]), np.array([1.0]))
    >>> lp.solve().objective, lp.solve(maximize=True).objective
    (1.0, 3.0)
    """

    def __init__(self, program: LinearModel, way: Way = WARM) -> None:
        import highspy

        self._highs = highspy
        A = csc_array(program.A)
        m, n = A.shape
        self.n_rows, self.n_columns = m, n
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, m
        model.col_cost_ = np.zeros(n) if program.cost is None else np.asarray(program.cost, np.float64)
        model.col_lower_ = np.ascontiguousarray(program.lower, np.float64)
        model.col_upper_ = np.ascontiguousarray(program.upper, np.float64)
        model.row_lower_ = np.ascontiguousarray(np.broadcast_to(program.row_lower, m), np.float64)
        model.row_upper_ = np.ascontiguousarray(np.broadcast_to(program.row_upper, m), np.float64)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = A.indptr.astype(np.int32)
        model.a_matrix_.index_ = A.indices.astype(np.int32)
        model.a_matrix_.value_ = A.data.astype(np.float64)
        self.is_mip = program.integer is not None and bool(program.integer.any())
        if program.integer is not None and self.is_mip:
            kinds = highspy.HighsVarType
            model.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in program.integer]
        self._sent: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self.solver = highspy.Highs()
        self.set_options(
            output_flag=False,
            threads=way.threads,
            solver=way.solver,
            presolve="on" if way.presolve else "off",
            run_crossover="on" if way.crossover else "off",
            simplex_strategy=4 if way.simplex == "primal" else 1,
            primal_feasibility_tolerance=way.tolerance,
            dual_feasibility_tolerance=way.tolerance,
        )
        if self.solver.passModel(model) == highspy.HighsStatus.kError:
            raise InternalError("the linear program was refused by its solver")

    def set_options(self, **values: Any) -> None:
        """Set options of HiGHS by their own names."""
        for name, value in values.items():
            if self.solver.setOptionValue(name, value) == self._highs.HighsStatus.kError:
                raise InternalError(f"option {name!r} was refused by the solver")

    def set_costs(self, columns: IntArray, costs: FloatArray) -> None:
        """Change some costs at once."""
        if len(columns):
            self.solver.changeColsCost(len(columns), np.asarray(columns, np.int32), np.asarray(costs, np.float64))

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change some variables' bounds at once."""
        if len(columns):
            self.solver.changeColsBounds(
                len(columns),
                np.asarray(columns, np.int32),
                np.asarray(lower, np.float64),
                np.asarray(upper, np.float64),
            )

    def set_all(self, costs: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        """Set the cost and bounds of every variable; send only what differs from the last call.

        Do not mix this with the other methods that change them.
        """
        if self._sent is None:
            costs_changed = bounds_changed = np.arange(self.n_columns)
        else:
            costs_changed = np.flatnonzero(costs != self._sent[0])
            bounds_changed = np.flatnonzero((lower != self._sent[1]) | (upper != self._sent[2]))
        self.set_costs(costs_changed, costs[costs_changed])
        self.set_bounds(bounds_changed, lower[bounds_changed], upper[bounds_changed])
        self._sent = costs, lower, upper

    def set_row_sides(self, row: int, lower: float, upper: float) -> None:
        """Change the sides of one row."""
        self.solver.changeRowBounds(row, lower, upper)

    def set_rows_sides(self, rows: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the sides of some rows at once."""
        if len(rows):
            self.solver.changeRowsBounds(
                len(rows), np.asarray(rows, np.int32), np.asarray(lower, np.float64), np.asarray(upper, np.float64)
            )

    def discard_basis(self) -> None:
        """Discard the last vertex: the next solve starts from scratch."""
        self.solver.clearSolver()

    def add_rows(self, A: csr_array, lower: FloatArray, upper: FloatArray) -> None:
        """Append rows, such as cuts."""
        self.solver.addRows(
            A.shape[0],
            np.ascontiguousarray(lower, np.float64),
            np.ascontiguousarray(upper, np.float64),
            A.nnz,
            A.indptr[:-1].astype(np.int32),
            A.indices.astype(np.int32),
            A.data.astype(np.float64),
        )
        self.n_rows += A.shape[0]

    def delete_rows(self, rows: IntArray) -> None:
        """Remove rows, such as cuts that became slack; later rows are renumbered."""
        if len(rows):
            self.solver.deleteRows(len(rows), np.asarray(rows, np.int32))
            self.n_rows -= len(rows)

    def set_start(self, x: FloatArray) -> None:
        """Set a starting point (for whole-number programs)."""
        columns = np.arange(self.n_columns, dtype=np.int32)
        self.solver.setSolution(len(columns), columns, np.ascontiguousarray(x, np.float64))

    def solve(self, *, maximize: bool = False, time_limit_s: float = float("inf"), duals: bool = True) -> Solution:
        """Solve from where the last solve ended. Every solve has a limit, because a solver can hang.

        Fetching the multipliers takes as long as a small solve; leave them out where they are not needed.
        """
        highspy = self._highs
        sense = highspy.ObjSense.kMaximize if maximize else highspy.ObjSense.kMinimize
        self.solver.changeObjectiveSense(sense)
        # the clock of HiGHS accumulates over the solves of one model
        limit = min(time_limit_s, 3600.0) + self.solver.getRunTime()
        self.solver.setOptionValue("time_limit", limit)
        self._schedule()
        if self.solver.run() == highspy.HighsStatus.kError:
            # Another user of HiGHS in this process chose another number of threads: it refuses to start until reset.
            highspy.Highs.resetGlobalScheduler(True)
            self.solver.run()
        status = self._translate_status(self.solver.getModelStatus())
        point = self.solver.getSolution()
        x = np.array(point.col_value, dtype=np.float64)
        if status in (SolveStatus.INFEASIBLE, SolveStatus.FAILED) or len(x) != self.n_columns:
            x = np.full(self.n_columns, np.nan)
        return Solution(
            status=status,
            objective=float(self.solver.getInfo().objective_function_value),
            x=x,
            row_dual=np.array(point.row_dual if duals else [], dtype=np.float64),
            reduced_cost=np.array(point.col_dual if duals else [], dtype=np.float64),
            bound=float(self.solver.getInfo().mip_dual_bound) if self.is_mip else float("nan"),
        )

    def _schedule(self) -> None:
        """Reset the scheduler of HiGHS when the number of threads changes: it refuses to solve otherwise."""
        threads = self.solver.getOptionValue("threads")[1]
        if getattr(_SCHEDULED, "threads", threads) != threads:
            self._highs.Highs.resetGlobalScheduler(True)
        _SCHEDULED.threads = threads

    @property
    def stalled(self) -> bool:
        """Whether the last solve ended at its limit of iterations."""
        return bool(self.solver.getModelStatus() == self._highs.HighsModelStatus.kIterationLimit)

    def solve_anew(self, *, maximize: bool = False, time_limit_s: float = float("inf")) -> Solution:
        """Solve from scratch by dual simplex: a fallback when a warm start fails."""
        _, strategy = self.solver.getOptionValue("simplex_strategy")
        self.discard_basis()
        self.set_options(simplex_strategy=1)
        try:
            return self.solve(maximize=maximize, time_limit_s=time_limit_s)
        finally:
            self.set_options(simplex_strategy=strategy)

    def solve_by_interior_point(self, *, time_limit_s: float = float("inf")) -> Solution | None:
        """Solve by interior point and return its last point, regardless of its status; None if there is none.

        Without crossover HiGHS may call a good point imprecise: check whatever you use it for.
        """
        solution = self.solve(time_limit_s=time_limit_s)
        x, dual = np.array(self.solver.getSolution().col_value, dtype=np.float64), solution.row_dual
        there = len(x) == self.n_columns and len(dual) == self.n_rows and np.isfinite(np.append(x, dual)).all()
        return replace(solution, x=x) if there and solution.status is not SolveStatus.INFEASIBLE else None

    def _translate_status(self, claimed: Any) -> SolveStatus:
        kinds = self._highs.HighsModelStatus
        return {
            kinds.kOptimal: SolveStatus.OPTIMAL,
            kinds.kInfeasible: SolveStatus.INFEASIBLE,
            kinds.kUnbounded: SolveStatus.UNBOUNDED,
            kinds.kUnboundedOrInfeasible: SolveStatus.INFEASIBLE,
            kinds.kTimeLimit: SolveStatus.LIMIT,
            kinds.kIterationLimit: SolveStatus.LIMIT,
            kinds.kInterrupt: SolveStatus.LIMIT,
            kinds.kObjectiveBound: SolveStatus.LIMIT,
        }.get(claimed, SolveStatus.FAILED)


def solve_lp_for_least_movement(
    A: csr_array, lower: FloatArray, upper: FloatArray, cost: FloatArray, way: Way, time_limit_s: float
) -> tuple[SolveStatus, FloatArray | None]:
    """Return the status, and the movement z with the least ``cost |z|``, ``A z = 0`` within bounds, or None.

    >>> A, most = csr_array([[-1.0, 1, 1]]), np.array([3.0, 2, 0])
    >>> solve_lp_for_least_movement(A, np.array([2.0, -1, -1]), most, np.ones(3), ONCE, 9.0)[1].tolist()
    [2.0, 2.0, 0.0]
    """
    n = len(cost)
    low, high = np.concatenate([lower, -upper]), np.concatenate([upper, -lower])  # movements up, then movements down
    parts = csr_array(hstack([A, -A])), 0.0, 0.0, np.maximum(low, 0.0), np.maximum(high, 0.0), np.tile(cost, 2)
    found = LinearProgram(LinearModel(*parts), way).solve(time_limit_s=time_limit_s, duals=False)
    return found.status, found.x[:n] - found.x[n:] if found.optimal else None
