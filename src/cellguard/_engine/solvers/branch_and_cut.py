"""Binary programs whose rows are found on the way: branch-and-cut on SCIP's lazy constraints.

HiGHS has no callback for rows that an integer point violates; SCIP calls a constraint handler. The
caller says which rows a point violates; everything else (branching, bounding, its own cuts) is
SCIP's business. The claim is checked by the caller, who knows what a feasible point is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.solvers.rows import Row

__all__ = ["LazySolution", "solve_lazy"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
Propose = Callable[[FloatArray, float], FloatArray | None]
"""A feasible 0/1 point near a fractional one, cheaper than a cost; or nothing."""


def solve_lazy(
    cost: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    rows: list[Row],
    *,
    check: Check,
    separate: Separate,
    propose: Propose | None = None,
    start: FloatArray | None = None,
    time_limit_s: float = float("inf"),
    gap: float = 0.0,
    seed: int = 0,
    on_bound: Callable[[float], None] | None = None,
    heuristics: bool = True,
) -> LazySolution:
    """Minimise ``cost y`` over binary y that satisfy all rows, the given ones and those found on the way.

    Parameters
    ----------
    cost, lower, upper
        The binary variables; equal bounds fix one.
    rows
        Rows that are known at the start.
    check, separate, propose
        What the caller knows of the problem.
    start
        A feasible point.
    time_limit_s, gap, seed
        When to stop, and which way to go in ties.
    on_bound
        Called with every better bound.
    heuristics
        Whether SCIP looks for better points; needless for a caller who does.
    """
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
    if not heuristics:
        model.setHeuristics(pyscipopt.SCIP_PARAMSETTING.OFF)
        # only the bound is left to gain: the node that holds it back comes next, and no diving below it
        model.setParams({"nodeselection/bfs/stdpriority": 1_000_000, "nodeselection/bfs/maxplungedepth": 0})
    free = np.flatnonzero(lower < upper)
    constant = float(cost @ lower)
    names = [model.addVar(vtype="B", obj=float(cost[j])) for j in free]
    place = np.full(len(cost), -1, np.int64)
    place[free] = np.arange(len(free))
    for row in rows:
        columns, coefficients, rhs = _substituted(row, lower, upper, place)
        if rhs > 1e-9 or (len(columns) and (coefficients < 0).any()):
            model.addCons(
                pyscipopt.quicksum(float(c) * names[j] for j, c in zip(columns, coefficients, strict=True)) >= rhs,
                removable=True,
            )
    handler = _handler_class()(model, names, free, place, lower, upper, check, separate, on_bound, constant)
    model.includeConshdlr(
        handler, "lazy", "rows found on the way", sepapriority=1000, enfopriority=-1, chckpriority=-1,
        sepafreq=1, propfreq=-1, eagerfreq=-1, maxprerounds=0, delaysepa=False, delayprop=False, needscons=False,
    )  # fmt: skip
    if propose is not None:
        from pyscipopt import scip

        model.includeHeur(
            _proposer_class()(handler, propose), "propose", "the caller's own points", "Y", priority=100000, freq=1,
            timingmask=scip.PY_SCIP_HEURTIMING.AFTERLPNODE,
        )  # fmt: skip
    if start is not None:
        point = model.createSol()
        for j, variable in zip(free, names, strict=True):
            model.setSolVal(point, variable, float(round(start[j])))
        model.addSol(point)
    model.optimize()
    if handler.failure is not None:
        raise handler.failure
    return _result(model, handler, names, free, lower, constant)


def _substituted(row: Row, lower: FloatArray, upper: FloatArray, place: IntArray) -> tuple[IntArray, FloatArray, float]:
    """The row in terms of the free variables."""
    at = place[row.columns]
    fixed = at < 0
    rhs = row.rhs - float(row.coefficients[fixed] @ lower[row.columns[fixed]])
    return at[~fixed], row.coefficients[~fixed], rhs


def _result(
    model: Any, handler: Any, names: list[Any], free: IntArray, lower: FloatArray, constant: float
) -> LazySolution:
    status = {"optimal": SolveStatus.OPTIMAL, "gaplimit": SolveStatus.OPTIMAL, "infeasible": SolveStatus.INFEASIBLE}
    y, objective = None, float("inf")
    if model.getNSols():
        best = model.getBestSol()
        y = lower.copy()
        y[free] = np.rint([model.getSolVal(best, v) for v in names])
        objective = float(model.getSolObjVal(best)) + constant
    bound = float(model.getDualbound()) + constant
    return LazySolution(
        status=status.get(model.getStatus(), SolveStatus.LIMIT),
        objective=objective,
        bound=min(bound, objective) if math.isfinite(bound) and abs(bound) < 1e19 else -math.inf,
        y=y,
        nodes=int(model.getNTotalNodes()),
        rows=handler.added,
    )


def _handler_class() -> Any:
    """The constraint handler; made on first use, because SCIP is loaded then."""
    from pyscipopt import SCIP_RESULT, Conshdlr

    class Handler(Conshdlr):
        def __init__(self, model, names, free, place, lower, upper, check, separate, on_bound, constant):  # type: ignore[no-untyped-def]
            self.names, self.free, self.place = names, free, place
            self.lower, self.upper = lower, upper
            self.check, self.separate = check, separate
            self.on_bound, self.constant, self.best_bound = on_bound, constant, -math.inf
            self.added = 0
            self.node, self.round = -1, 0
            self.pending: list[Row] = []
            self.failure: BaseException | None = None
            self.transformed: list[Any] | None = None

        def point(self, solution: Any = None) -> FloatArray:
            y = self.lower.copy()
            y[self.free] = [self.model.getSolVal(solution, v) for v in self.names]
            return y

        def guard(self, call: Callable[[], Any]) -> Any:
            """Run the caller's code; an exception ends the solve and is raised again afterwards."""
            try:
                return call()
            except BaseException as error:  # noqa: BLE001  (SCIP would swallow it, Ctrl-C included)
                self.failure = self.failure or error
                self.model.interruptSolve()
                return None

        def add(self, rows: list[Row]) -> bool:
            if self.transformed is None:
                self.transformed = [self.model.getTransformedVar(v) for v in self.names]
            cutoff = False
            for row in rows:
                columns, coefficients, rhs = _substituted(row, self.lower, self.upper, self.place)
                cut = self.model.createEmptyRowUnspec(
                    f"row{self.added}", lhs=rhs, rhs=None, local=False, modifiable=False, removable=True
                )
                self.model.cacheRowExtensions(cut)
                for j, c in zip(columns, coefficients, strict=True):
                    self.model.addVarToRow(cut, self.transformed[j], float(c))
                self.model.flushRowExtensions(cut)
                cutoff |= bool(self.model.addCut(cut, forcecut=True))
                self.model.releaseRow(cut)
                self.added += 1
            return cutoff

        def report(self) -> None:
            if self.on_bound is not None:
                bound = float(self.model.getDualbound()) + self.constant
                if bound > self.best_bound and abs(bound) < 1e19:
                    self.best_bound = bound
                    self.on_bound(bound)

        def separation(self) -> dict[str, Any]:
            node = self.model.getCurrentNode()
            number, depth = node.getNumber(), node.getDepth()
            self.round = self.round + 1 if number == self.node else 0
            self.node = number
            y = self.point()
            self.report()
            rows = [r for r in self.pending if r.violation(y) > 1e-4]
            self.pending = []
            rows += self.separate(y, depth, self.round)
            if not rows:
                return {"result": SCIP_RESULT.DIDNOTFIND}
            return {"result": SCIP_RESULT.CUTOFF if self.add(rows) else SCIP_RESULT.SEPARATED}

        def conssepalp(self, constraints: Any, nusefulconss: Any) -> dict[str, Any]:
            return self.guard(self.separation) or {"result": SCIP_RESULT.DIDNOTRUN}

        def enforce(self) -> dict[str, Any]:
            rows = self.check(np.rint(self.point()))
            if not rows:
                return {"result": SCIP_RESULT.FEASIBLE}
            return {"result": SCIP_RESULT.CUTOFF if self.add(rows) else SCIP_RESULT.SEPARATED}

        def consenfolp(self, constraints, nusefulconss, solinfeasible):  # type: ignore[no-untyped-def]
            return self.guard(self.enforce) or {"result": SCIP_RESULT.INFEASIBLE}

        def consenfops(self, constraints, nusefulconss, solinfeasible, objinfeasible):  # type: ignore[no-untyped-def]
            rows = self.guard(lambda: self.check(np.rint(self.point())))
            return {"result": SCIP_RESULT.FEASIBLE if rows == [] else SCIP_RESULT.INFEASIBLE}

        def conscheck(  # type: ignore[no-untyped-def]
            self,
            constraints,
            solution,
            checkintegrality,
            checklprows,
            printreason,
            completely,
        ):
            rows = self.guard(lambda: self.check(np.rint(self.point(solution))))
            if rows == []:
                return {"result": SCIP_RESULT.FEASIBLE}
            self.pending = [*(rows or []), *self.pending][:50]
            return {"result": SCIP_RESULT.INFEASIBLE}

        def conslock(self, constraint, locktype, nlockspos, nlocksneg):  # type: ignore[no-untyped-def]
            for v in self.names:  # a suppressed cell may be needed, a published one may be forbidden
                self.model.addVarLocks(v, nlockspos + nlocksneg, nlockspos + nlocksneg)

    return Handler


def _proposer_class() -> Any:
    from pyscipopt import SCIP_RESULT, Heur

    class Proposer(Heur):
        def __init__(self, handler, propose):  # type: ignore[no-untyped-def]
            self.handler, self.propose = handler, propose

        def heurexec(self, heurtiming: Any, nodeinfeasible: bool) -> dict[str, Any]:
            handler, model = self.handler, self.model
            limit = float(model.getPrimalbound()) + handler.constant
            y = handler.guard(lambda: self.propose(handler.point(), limit))
            if y is None:
                return {"result": SCIP_RESULT.DIDNOTFIND}
            point = model.createSol(self)
            for j, v in zip(handler.free, handler.names, strict=True):
                model.setSolVal(point, v, float(round(y[j])))
            accepted = model.trySol(point)
            return {"result": SCIP_RESULT.FOUNDSOL if accepted else SCIP_RESULT.DIDNOTFIND}

    return Proposer
