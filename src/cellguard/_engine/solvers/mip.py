"""Mixed-integer linear programs on HiGHS: a claim, a bound, and a limit on every solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import sparray

from cellguard._engine.solvers.lp import LinearProgram, SolveStatus
from cellguard._types import BoolArray, FloatArray

__all__ = ["MixedSolution", "solve_mixed"]

_FAR = 2.0**30
"""Bounds of whole variables further out are left out for the solver, which may never return from numbers of 1e10."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedSolution:
    """What the solver found, and what it proved."""

    status: SolveStatus
    """``OPTIMAL`` within the gaps that were asked for; ``LIMIT`` also when nothing was found in time."""
    objective: float
    """Infinite when no point was found."""
    bound: float
    """No point has a smaller objective."""
    x: FloatArray
    """The best point, integer variables exactly so; NaN when none was found."""

    @property
    def found(self) -> bool:
        """Whether there is a point."""
        return bool(np.isfinite(self.objective))


def solve_mixed(
    A: sparray,
    row_lower: FloatArray | float,
    row_upper: FloatArray | float,
    lower: FloatArray,
    upper: FloatArray,
    cost: FloatArray,
    *,
    integer: BoolArray | None = None,
    start: FloatArray | None = None,
    time_limit_s: float = float("inf"),
    relative_gap: float = 0.0,
    absolute_gap: float = 1e-6,
    seed: int = 0,
    threads: int = 1,
    heuristics: bool = True,
) -> MixedSolution:
    """Minimise ``cost x`` subject to ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``, some x whole.

    Parameters
    ----------
    A, row_lower, row_upper, lower, upper, cost
        The linear program.
    integer
        Which variables are whole numbers; all unless given.
    start
        A point to begin with, used if it is feasible.
    time_limit_s, relative_gap, absolute_gap
        When to stop.
    seed, threads
        Of the solver.
    heuristics
        Whether the solver shall look for points of its own; not where the start is better than what it would find.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> A = csr_array(np.array([[2.0, 2.0]]))
    >>> found = solve_mixed(A, 3.0, np.inf, np.zeros(2), np.ones(2) * 9, np.array([1.0, 2.0]))
    >>> found.x.tolist(), found.bound
    ([2.0, 0.0], 2.0)
    """
    n = len(cost)
    if integer is None:
        integer = np.ones(n, np.bool_)
    # without them a bound is a bound and nothing else improves the cost; the point is checked against all of them
    near = np.where(integer & (lower < -_FAR) & (cost <= 0), -np.inf, lower)
    far = np.where(integer & (upper > _FAR) & (cost >= 0), np.inf, upper)
    program = LinearProgram(
        A, row_lower, row_upper, near, far, cost, simplex="dual", presolve=True, tolerance=1e-7, threads=threads
    )
    highs = program.solver
    kinds = program.variable_types(integer)
    highs.changeColsIntegrality(n, np.arange(n, dtype=np.int32), kinds)
    program.options(
        mip_rel_gap=float(relative_gap),
        mip_abs_gap=float(absolute_gap),
        mip_feasibility_tolerance=1e-7,
        random_seed=int(seed % 2**31),
    )
    if not heuristics:
        program.options(mip_heuristic_effort=0.0)
    if start is not None:
        program.set_start(start)
    claim = program.solve(time_limit_s=time_limit_s)
    bound = float(highs.getInfo().mip_dual_bound)
    x = claim.x.copy()
    x[integer] = np.rint(x[integer])
    objective = float(cost @ x) if _holds(A, x, row_lower, row_upper, lower, upper) else float("inf")
    if claim.status is SolveStatus.INFEASIBLE:
        bound = float("inf")
    status = claim.status
    if status is SolveStatus.OPTIMAL and not np.isfinite(objective):
        status = SolveStatus.FAILED  # the claim does not hold once whole numbers are made exact
    if not np.isfinite(objective):
        x = np.full(n, np.nan)
    return MixedSolution(status=status, objective=objective, bound=bound, x=x)


def _holds(
    A: sparray,
    x: FloatArray,
    row_lower: FloatArray | float,
    row_upper: FloatArray | float,
    lower: FloatArray,
    upper: FloatArray,
) -> bool:
    """Whether a point satisfies every row and bound, whatever the solver says."""
    if not np.isfinite(x).all():
        return False
    activity = A @ x
    slack = 1e-6 * np.maximum(1.0, abs(A) @ np.abs(x))
    inside = bool(((x >= lower - 1e-6) & (x <= upper + 1e-6)).all())
    return inside and bool(((activity >= row_lower - slack) & (activity <= row_upper + slack)).all())
