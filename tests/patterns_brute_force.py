"""Every pattern of a small table, judged by plain linear programs that share no code with the product."""

from __future__ import annotations

import highspy
import numpy as np

import cellguard as cg

MISSING = 1e-6
"""By how much a range may fall short of a level, as a share of the largest value."""


class Patterns:
    """All patterns of a table: their costs, the cells that can move at all, and whether they are safe."""

    def __init__(self, table: cg.Table) -> None:
        self.table = table
        free = np.flatnonzero(~table.sensitive & ~table.fixed)
        assert len(free) <= 14, "too many patterns for a brute force"
        chosen = (np.arange(1 << len(free))[:, None] >> np.arange(len(free))) & 1 == 1
        self.hidden = np.repeat(table.sensitive[None], len(chosen), axis=0)
        self.hidden[:, free] = chosen
        self.cost = chosen @ table.weights[free]
        self._core = _find_cores(table, self.hidden)
        self._programs = [_AttackerProgram(table, attacker) for attacker in table.attackers]
        self._safe: dict[bytes, bool] = {}

    def find_least_cost(self, published: np.ndarray | None = None) -> float:
        """Return the cost of the cheapest safe pattern that publishes these cells; infinite if none is safe."""
        allowed = np.ones(len(self.cost), bool)
        if published is not None:
            allowed = ~(self.hidden & published).any(axis=1)
        for k in np.argsort(np.where(allowed, self.cost, np.inf), kind="stable")[: allowed.sum()]:
            if self.is_safe(self._core[k]):
                return float(self.cost[k])
        return np.inf

    def is_safe(self, hidden: np.ndarray) -> bool:
        """Return whether no attacker infers a sensitive cell more precisely than its levels allow."""
        key = hidden.tobytes()
        if key not in self._safe:
            self._safe[key] = all(program.finds_nothing(hidden) for program in self._programs)
        return self._safe[key]


def _find_cores(table: cg.Table, hidden: np.ndarray) -> np.ndarray:
    """Publish, again and again, a cell that is the only one withheld in a relation: everybody can compute it."""
    incidence = (table.relations != 0).toarray()
    core = hidden.copy()
    while True:
        single = core.astype(int) @ incidence.T.astype(int) == 1
        known = core & (single.astype(int) @ incidence.astype(int) > 0)
        if not known.any():
            return core
        core &= ~known


class _AttackerProgram:
    """The ranges that an attacker computes."""

    def __init__(self, table: cg.Table, attacker: cg.Attacker) -> None:
        self._table = table
        self._low, self._high = table.bounds(attacker)
        self._needs = table.levels(attacker)
        self._solver = highspy.Highs()
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        self._solver.addVars(table.n_cells, table.values, table.values)
        relations, rhs = table.relations.tocsr(), np.broadcast_to(table.rhs, table.relations.shape[0])
        for r in range(relations.shape[0]):
            span = slice(relations.indptr[r], relations.indptr[r + 1])
            columns = relations.indices[span].astype(np.int32)
            self._solver.addRow(rhs[r], rhs[r], len(columns), columns, relations.data[span].astype(float))

    def finds_nothing(self, hidden: np.ndarray) -> bool:
        """Return whether the attacker's range of every cell to be protected is wide enough."""
        values, needs = self._table.values, self._needs
        missing = MISSING * max(1.0, float(np.abs(values).max()))
        n = self._table.n_cells
        low, high = np.where(hidden, self._low, values), np.where(hidden, self._high, values)
        self._solver.changeColsBounds(n, np.arange(n, dtype=np.int32), low, high)
        for k, cell in enumerate(needs.cells.tolist()):
            if not hidden[cell] and max(needs.lower[k], needs.upper[k], needs.sliding[k]) > 0:
                return False
            a, (least, most) = values[cell], (self._find_extreme(cell, sign) for sign in (1.0, -1.0))
            room = a - least - needs.lower[k], most - a - needs.upper[k], most - least - needs.sliding[k]
            if min(room) < -missing:
                return False
        return True

    def _find_extreme(self, cell: int, sign: float) -> float:
        self._solver.changeColCost(cell, sign)
        self._solver.run()
        assert self._solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        value = sign * self._solver.getInfo().objective_function_value
        self._solver.changeColCost(cell, 0.0)
        return float(value)
