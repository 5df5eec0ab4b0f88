"""Binary programs whose rows are found during the search: branch-and-cut on SCIP's lazy constraints.

HiGHS has no callback for rows that an integer point violates; SCIP calls a constraint handler. The
caller says which rows a point violates; SCIP does everything else (branching, bounding, its own cuts).
The caller checks the claim, because only the caller knows what a feasible point is.
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
"""Rounds of rows at the root of the tree: the caller has solved the root, and nodes cost less than more rounds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LazySolution:
    """The best point found, and the proven bound."""

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
    """Rows added during the search."""


Separate = Callable[[FloatArray, int, int], list[Row]]
"""Rows violated by a fractional point, given the depth of the node and the round at the node."""
Check = Callable[[FloatArray], list[Row]]
"""Rows violated by a 0/1 point; none when it is feasible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BinaryProgram:
    """Minimise ``cost y`` over binary y that satisfy all rows, given or found during the search."""

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
        """The variables that are not fixed: SCIP sees only these."""
        return np.flatnonzero(self.lower < self.upper)

    @cached_property
    def place(self) -> IntArray:
        """Position of each variable among the free ones; -1 for the fixed."""
        return place_in_group(self.free, len(self.cost))

    @property
    def constant(self) -> float:
        """Cost of the fixed variables."""
        return float(self.cost @ self.lower)

    def substitute_fixed(self, row: Row) -> tuple[IntArray, FloatArray, float]:
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

    Given a feasible point to start from, SCIP looks for no other and only raises the bound. The seed breaks
    ties; `on_bound` is called with every better bound.
    """
    from cellguard._engine.solvers.scip_rows import RowsOnTheWay, quicksum

    model = _build_scip_model(until.time_limit_s, until.relative_gap, seed, bound_only=start is not None)
    model.setParam("limits/totalnodes", nodes)
    names = [model.addVar(vtype="B", obj=float(program.cost[j])) for j in program.free]
    for row in program.rows:
        columns, coefficients, rhs = program.substitute_fixed(row)
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
    return _read_scip_solution(model, program, names, handler.added)


def _build_scip_model(time_limit_s: float, gap: float, seed: int, *, bound_only: bool) -> Any:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParams(
        {
            "limits/time": min(time_limit_s, 1e9),
            "limits/gap": gap,
            "randomization/randomseedshift": int(seed % 2**30),
            "misc/catchctrlc": False,
            "misc/allowstrongdualreds": False,  # rows not yet added could forbid what these reductions fix
            "misc/allowweakdualreds": False,
            "conflict/enable": False,
        }
    )
    if bound_only:
        model.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
        # only the bound can improve: take the node with the least bound next, and never dive below it
        model.setParams({"nodeselection/bfs/stdpriority": 1_000_000, "nodeselection/bfs/maxplungedepth": 0})
        model.setParam("separating/maxroundsroot", _ROOT_ROUNDS)
    return model


def _read_scip_solution(model: Any, program: BinaryProgram, names: list[Any], added: int) -> LazySolution:
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
