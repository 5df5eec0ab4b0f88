"""SCIP's side of branch-and-cut: a constraint handler that asks for violated rows. Loads SCIP: import it late."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pyscipopt import SCIP_RESULT, Conshdlr, quicksum

from cellguard._engine.solvers.branch_and_cut import BinaryProgram
from cellguard._engine.solvers.rows import Row
from cellguard._types import FloatArray

__all__ = ["RowsOnTheWay", "quicksum"]


class RowsOnTheWay(Conshdlr):
    """Asks the caller which rows a point violates, whenever SCIP has one."""

    def __init__(self, program: BinaryProgram, names: list[Any], on_bound: Callable[[float], None] | None) -> None:
        self.program, self.names, self.on_bound = program, names, on_bound
        self.best_bound = -math.inf
        self.added = 0
        self.node, self.round = -1, 0
        self.pending: list[Row] = []
        self.failure: BaseException | None = None
        self.transformed: list[Any] | None = None

    def read_point(self, solution: Any = None) -> FloatArray:
        y = self.program.lower.copy()
        y[self.program.free] = [self.model.getSolVal(solution, v) for v in self.names]
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
            columns, coefficients, rhs = self.program.substitute_fixed(row)
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
            bound = float(self.model.getDualbound()) + self.program.constant
            if bound > self.best_bound and abs(bound) < 1e19:
                self.best_bound = bound
                self.on_bound(bound)

    def separate(self) -> dict[str, Any]:
        node = self.model.getCurrentNode()
        number, depth = node.getNumber(), node.getDepth()
        self.round = self.round + 1 if number == self.node else 0
        self.node = number
        y = self.read_point()
        self.report()
        rows = [r for r in self.pending if r.measure_violation(y) > 1e-4]
        self.pending = []
        rows += self.program.separate(y, depth, self.round)
        if not rows:
            return {"result": SCIP_RESULT.DIDNOTFIND}
        return {"result": SCIP_RESULT.CUTOFF if self.add(rows) else SCIP_RESULT.SEPARATED}

    def conssepalp(self, constraints: Any, nusefulconss: Any) -> dict[str, Any]:
        return self.guard(self.separate) or {"result": SCIP_RESULT.DIDNOTRUN}

    def enforce(self) -> dict[str, Any]:
        rows = self.program.check(np.rint(self.read_point()))
        if not rows:
            return {"result": SCIP_RESULT.FEASIBLE}
        return {"result": SCIP_RESULT.CUTOFF if self.add(rows) else SCIP_RESULT.SEPARATED}

    def consenfolp(self, constraints, nusefulconss, solinfeasible):  # type: ignore[no-untyped-def]
        return self.guard(self.enforce) or {"result": SCIP_RESULT.INFEASIBLE}

    def consenfops(self, constraints, nusefulconss, solinfeasible, objinfeasible):  # type: ignore[no-untyped-def]
        rows = self.guard(lambda: self.program.check(np.rint(self.read_point())))
        return {"result": SCIP_RESULT.FEASIBLE if rows == [] else SCIP_RESULT.INFEASIBLE}

    def conscheck(  # type: ignore[no-untyped-def]
        self, constraints, solution, checkintegrality, checklprows, printreason, completely
    ):
        rows = self.guard(lambda: self.program.check(np.rint(self.read_point(solution))))
        if rows == []:
            return {"result": SCIP_RESULT.FEASIBLE}
        self.pending = [*(rows or []), *self.pending][:50]
        return {"result": SCIP_RESULT.INFEASIBLE}

    def conslock(self, constraint, locktype, nlockspos, nlocksneg):  # type: ignore[no-untyped-def]
        for v in self.names:  # a suppressed cell may be needed, a published one may be forbidden
            self.model.addVarLocks(v, nlockspos + nlocksneg, nlockspos + nlocksneg)
