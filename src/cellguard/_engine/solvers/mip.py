"""Mixed-integer linear programs on HiGHS: a claim, a bound, and a time limit for every solve."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, SolveStatus
from cellguard._types import FloatArray

__all__ = ["MixedSolution", "Until", "solve_mixed"]

_FAR = 2.0**30
"""Bounds of whole variables beyond this are not given to the solver, which may never return from numbers of 1e10."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedSolution:
    """The best point that the solver found, and the bound that it proved."""

    status: SolveStatus
    """``OPTIMAL`` within the required gaps; ``LIMIT`` also when no point was found in time."""
    objective: float
    """Infinite when no point was found."""
    bound: float
    """No point has a smaller objective."""
    x: FloatArray
    """The best point, integer variables rounded exactly; NaN when none was found."""

    @property
    def found(self) -> bool:
        """Whether there is a point."""
        return bool(np.isfinite(self.objective))


@dataclass(frozen=True)
class Until:
    """When the solver may stop."""

    time_limit_s: float = float("inf")
    relative_gap: float = 0.0
    absolute_gap: float = 1e-6
    nodes: int | None = None
    """Maximum number of nodes of the tree: unlike a time limit, it stops every run at the same point."""


def solve_mixed(
    model: LinearModel,
    until: Until,
    *,
    start: FloatArray | None = None,
    seed: int = 0,
    threads: int = 1,
    heuristics: bool = True,
) -> MixedSolution:
    """Minimise the cost of a point of the model, some variables whole (all, unless the model says which).

    Parameters
    ----------
    model, until
        The model, and when to stop.
    start
        A point to begin with, used if it is feasible.
    seed, threads
        Of the solver.
    heuristics
        Whether the solver looks for points of its own; switch it off if the start is better than those it would find.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> A = csr_array(np.array([[2.0, 2.0]]))
    >>> model = LinearModel(A, 3.0, np.inf, np.zeros(2), np.ones(2) * 9, np.array([1.0, 2.0]))
    >>> found = solve_mixed(model, Until())
    >>> found.x.tolist(), found.bound
    ([2.0, 0.0], 2.0)
    """
    n = model.A.shape[1]
    integer = np.ones(n, np.bool_) if model.integer is None else model.integer
    cost = np.zeros(n) if model.cost is None else model.cost
    # dropping these bounds keeps the proven bound valid; the point is checked against all of them
    near = np.where(integer & (model.lower < -_FAR) & (cost <= 0), -np.inf, model.lower)
    far = np.where(integer & (model.upper > _FAR) & (cost >= 0), np.inf, model.upper)
    wide = replace(model, lower=near, upper=far, integer=integer)
    program = LinearProgram(wide, replace(ONCE, tolerance=1e-7, threads=threads))
    program.set_options(
        mip_rel_gap=float(until.relative_gap),
        mip_abs_gap=float(until.absolute_gap),
        mip_feasibility_tolerance=1e-7,
        random_seed=int(seed % 2**31),
    )
    if until.nodes is not None:
        program.set_options(mip_max_nodes=until.nodes)
    if not heuristics:
        program.set_options(mip_heuristic_effort=0.0)
    if start is not None:
        program.set_start(start)
    claim = program.solve(time_limit_s=until.time_limit_s)
    x = claim.x.copy()
    x[integer] = np.rint(x[integer])
    objective = float(cost @ x) if model.is_satisfied_by(x) else float("inf")
    bound = float("inf") if claim.status is SolveStatus.INFEASIBLE else claim.bound
    status = claim.status
    if status is SolveStatus.OPTIMAL and not np.isfinite(objective):
        status = SolveStatus.FAILED  # the claim does not hold once whole numbers are made exact
    if not np.isfinite(objective):
        x = np.full(n, np.nan)
    return MixedSolution(status=status, objective=objective, bound=bound, x=x)
