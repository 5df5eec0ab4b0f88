"""Levels of sensitive cells as cuts on what is published (salazar2004 section 3.1, figure 4)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.ranges import Sight, compute_ranges
from cellguard._engine.ranges.search.cuts import Separator
from cellguard._engine.ranges.search.unit_walks import show_by_walks
from cellguard._engine.solvers.rows import Row, build_matrix
from cellguard._types import FloatArray, IntArray
from cellguard.methods.demands import Demand
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["LevelCuts", "LevelsOpenError"]

_MANY = 100
"""From this number of cells on, only those that joint attacks leave open are attacked one by one."""
_GRACE_S = 3.0
"""Seconds spent on a table even after the deadline, before its levels are left open."""


class LevelsOpenError(Exception):
    """The deadline passed before it was clear whether a table meets every level."""


class LevelCuts:
    """Finds the capacity constraints that a table violates, until a deadline."""

    def __init__(self, problem: RoundingProblem, demands: list[Demand], deadline: Deadline) -> None:
        self.problem, self.deadline = problem, deadline
        self.demands = [demand for demand in demands if len(demand.cells)]
        self._kept: dict[int, Separator] = {}

    def find_violated(self, x: FloatArray, *, max_cuts: int) -> tuple[csr_array, FloatArray]:
        """Return cuts ``C x >= c`` that x, whole or not, violates; none when every level is met."""
        p = self.problem
        slack = p.floor - p.table.values  # v - a = floor - a + base x
        movement = slack + p.base * x
        down, up = p.distance - movement, p.distance + movement
        rows: list[Row] = []
        for number in range(len(self.demands)):
            separator = self._build_separator(number, down, up)
            for cut in () if separator is None else separator.separate(down, up, max_cuts=max_cuts):
                row = cut.build_row(up=(p.distance + slack, p.base), down=(p.distance - slack, -p.base))
                rows.append(tighten_level_cut(row, p.low[row.columns], p.high[row.columns]))
        return build_matrix(rows, p.n_cells), np.array([row.rhs for row in rows])

    def _build_separator(self, number: int, down: FloatArray, up: FloatArray) -> Separator | None:
        """Return what attacks the cells in question one by one; None if joint attacks show them all safe."""
        demand = self.demands[number]
        table, a = self.problem.table, self.problem.table.values
        lo, hi = np.maximum(demand.lb, a - np.maximum(down, 0.0)), np.minimum(demand.ub, a + np.maximum(up, 0.0))
        sight, left = Sight(table.relations, lo, hi, a), np.arange(len(demand.cells))
        if table.integer:  # movements in whole numbers are shown without a program; the audit asks for them anyway
            left = np.flatnonzero(~show_by_walks(sight, demand.build_request(), self.deadline))
            if not len(left):
                return None
        if len(demand.cells) <= _MANY:
            if number not in self._kept:
                self._kept[number] = self._run_attacks(demand, slice(None))
            return self._kept[number]
        found = compute_ranges(
            sight, demand.build_request(left), time_limit_s=self.deadline.get_seconds_at_least(_GRACE_S)
        )
        open_ = left[~found.safe]
        if len(open_) and self.deadline.passed:
            raise LevelsOpenError
        return self._run_attacks(demand, open_) if len(open_) else None

    def _run_attacks(self, demand: Demand, which: IntArray | slice) -> Separator:
        p = self.problem
        return demand.build_separator(p.table, (p.distance > 0) & (demand.ub > demand.lb), which)


def tighten_level_cut(row: Row, low: IntArray, high: IntArray) -> Row:
    """Cut coefficients down to what a single step can need (salazar2004 section 3.1).

    In steps t from the bound at which a cell helps least, the cut reads ``sum delta t >= delta_0`` with
    ``delta >= 0``; one step of a cell with ``delta > delta_0`` suffices, so ``delta_0`` does as well.

    >>> row = Row(np.array([4, 7]), np.array([5.0, -9.0]), -6.0)
    >>> row = tighten_level_cut(row, np.zeros(2, int), np.ones(2, int))
    >>> row.coefficients, row.rhs
    (array([ 3., -3.]), 0.0)
    """
    start = np.where(row.coefficients > 0, low, high)
    left = row.rhs - float(row.coefficients @ start)
    if left <= 0:
        return row
    small = np.sign(row.coefficients) * np.minimum(np.abs(row.coefficients), left)
    return Row(row.columns, small, left + float(small @ start))
