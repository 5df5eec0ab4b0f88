"""Binary programs whose rows are found on the way: branch-and-cut on SCIP's lazy constraints.

HiGHS has no callback for rows that an integer point violates; SCIP calls a constraint handler. The
caller says which rows a point violates; everything else (branching, bounding, its own cuts) is
SCIP's business. The claim is checked by the caller, who knows what a feasible point is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.solvers.mip import Until
from cellguard._engine.solvers.rows import Row
from cellguard._engine.space.groups import place_in_group
from cellguard._tolerances import NO_ROW
from cellguard._types import FloatArray, IntArray

__all__ = ["BinaryProgram", "LazySolution", "solve_lazy"]

_ROOT_ROUNDS = 10
"""Rounds of rows at the root of the tree: the caller has solved the root, and nodes cost less than what is left."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LazySolution:
    """What was found, and what was proved."""

    status: SolveStatus
    """``OPTIMAL`` within the gap; ``LIMIT`` when time or nodes ran out; ``INFEASIBLE``."""
    objective: float
    """Cost of the best point; infinite when none was found."""
    bound: float
    """No point costs less."""
    y: FloatArray | None
    """The best point."""
    nodes: int
    """Nodes of the tree."""
    rows: int
    """Rows that were added on the way."""


Separate = Callable[[FloatArray, int, int], list[Row]]
"""Rows violated by a fractional point, given the depth of the node and the round at the node."""
Check = Callable[[FloatArray], list[Row]]
"""Rows violated by a 0/1 point; none when it is feasible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryProgram:
    """Minimise ``cost y`` over binary y that satisfy all rows, the given ones and those found on the way."""

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    """Equal bounds fix a variable."""
    rows: list[Row]
    """Rows that are known at the start."""
    check: Check
    separate: Separate

    @cached_property
    def free(self) -> IntArray:
        """The variables that are not fixed: those that SCIP sees."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def place(self) -> IntArray:
        """Where a variable stands among the free ones; -1 for the fixed."""
        return place_in_group(self.free, len(self.cost))

    @property
    def constant(self) -> float:
        """Cost of what is fixed."""
        return float(self.cost @ self.lower)

    def substituted(self, row: Row) -> tuple[IntArray, FloatArray, float]:
        """Return the row in terms of the free variables."""
        at = self.place[row.columns]
        fixed = at < 0
        rhs = row.rhs - float(row.coefficients[fixed] @ self.lower[row.columns[fixed]])
        return at[~fixed], row.coefficients[~fixed], rhs


def solve_lazy(
    program: BinaryProgram,
    *,
    start: FloatArray | None,
    until: Until,
    nodes: int,
    seed: int,
    on_bound: Callable[[float], None] | None,
) -> LazySolution:
    """Solve a binary program by branch-and-cut.

    With a feasible point to start from SCIP looks for no other, and raises the bound only. The seed says which way to
    go in ties; `on_bound` is called with every better bound.
    """
    from cellguard._engine.solvers.scip_rows import RowsOnTheWay, quicksum

    model = _scip_model(until.time_limit_s, until.relative_gap, seed, bound_only=start is not None)
    model.setParam("limits/totalnodes", nodes)
    names = [model.addVar(vtype="B", obj=float(program.cost[j])) for j in program.free]
    for row in program.rows:
        columns, coefficients, rhs = program.substituted(row)
        if rhs > NO_ROW or (len(columns) and (coefficients < 0).any()):
            terms = (float(c) * names[j] for j, c in zip(columns, coefficients, strict=True))
            model.addCons(quicksum(terms) >= rhs, removable=True)
    handler = RowsOnTheWay(program, names, on_bound)
    model.includeConshdlr(
        handler, "lazy", "rows found on the way", sepapriority=1000, enfopriority=-1, chckpriority=-1,
        sepafreq=1, propfreq=-1, eagerfreq=-1, maxprerounds=0, delaysepa=False, delayprop=False, needscons=False,
    )  # fmt: skip
    if start is not None:
        point = model.createSol()
        for j, variable in zip(program.free, names, strict=True):
            model.setSolVal(point, variable, float(round(start[j])))
        model.addSol(point)
    model.optimize()
    if handler.failure is not None:
        raise handler.failure
    return _scip_solution(model, program, names, handler.added)


def _scip_model(time_limit_s: float, gap: float, seed: int, *, bound_only: bool) -> Any:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParams(
        {
            "limits/time": min(time_limit_s, 1e9),
            "limits/gap": gap,
            "randomization/randomseedshift": int(seed % 2**30),
            "misc/catchctrlc": False,
            "misc/allowstrongdualreds": False,  # rows that are not there yet could forbid what they fix
            "misc/allowweakdualreds": False,
            "conflict/enable": False,
        }
    )
    if bound_only:
        model.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
        # only the bound is left to gain: the node that holds it back comes next, and no diving below it
        model.setParams({"nodeselection/bfs/stdpriority": 1_000_000, "nodeselection/bfs/maxplungedepth": 0})
        model.setParam("separating/maxroundsroot", _ROOT_ROUNDS)
    return model


def _scip_solution(model: Any, program: BinaryProgram, names: list[Any], added: int) -> LazySolution:
    status = {"optimal": SolveStatus.OPTIMAL, "gaplimit": SolveStatus.OPTIMAL, "infeasible": SolveStatus.INFEASIBLE}
    y, objective = None, float("inf")
    if model.getNSols():
        best = model.getBestSol()
        y = program.lower.copy()
        y[program.free] = np.rint([model.getSolVal(best, v) for v in names])
        objective = float(model.getSolObjVal(best)) + program.constant
    bound = float(model.getDualbound()) + program.constant
    return LazySolution(
        status=status.get(model.getStatus(), SolveStatus.LIMIT),
        objective=objective,
        bound=min(bound, objective) if math.isfinite(bound) and abs(bound) < 1e19 else -math.inf,
        y=y,
        nodes=int(model.getNTotalNodes()),
        rows=added,
    )
