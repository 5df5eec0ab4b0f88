"""How the cells of a pattern can move: classes of aliases, an echelon form, and the requests on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._engine.space.space import Space, compute_group_slack, convert_slack_to_variables
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["Known", "Levels", "PatternSpace"]

Known = tuple[IntArray, IntArray, FloatArray, FloatArray]
"""What attackers know besides: where each one's entries begin, their rows, and the bounds of their movements."""
Levels = tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]
"""Requests: attacker, row, and how far down, up and in all the row must be able to move."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternSpace:
    """The movements of some cells, the others held fixed. A row is a class of cells that can only move together."""

    problem: SuppressionProblem
    variables: Space
    """The reduced space: its variables are the rows."""

    @classmethod
    def of(cls, problem: SuppressionProblem, cells: BoolArray) -> PatternSpace:
        """Reduce the relations between the cells."""
        return cls(problem=problem, variables=reduce(problem.relations, cells & problem.usable).space)

    def __len__(self) -> int:
        return len(self.variables)

    @property
    def reduction(self) -> Reduction:
        """Null space of the cells."""
        return self.variables.reduction

    @property
    def cells(self) -> IntArray:
        """Representative of each row."""
        return self.variables.cells

    @property
    def row(self) -> IntArray:
        """Row of each cell; -1 for cells that cannot move."""
        return self.variables.variable_of

    @property
    def members(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells that can move, the row of each, and its movement divided by that of the row."""
        return self.variables.members

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest movement of each row for the external attacker."""
        below, above = self.variables.compute_slack(self.problem.down, self.problem.up)
        return -below, above

    @cached_property
    def weight(self) -> FloatArray:
        """Cost of each row."""
        cells, rows, _ = self.members
        return np.bincount(rows, self.problem.weight[cells], len(self)).astype(np.float64)

    @cached_property
    def keep(self) -> BoolArray:
        """Rows that must be able to move."""
        keep = np.zeros(len(self), bool)
        keep[self.requests[1]] = True
        return keep

    @cached_property
    def known(self) -> Known:
        """What attackers know besides, in terms of the rows."""
        p = self.problem
        counts, rows, lows, highs = [0], [], [], []
        for k in range(p.n_attackers):
            span = slice(p.known_ptr[k], p.known_ptr[k + 1])
            cells = p.known_cell[span]
            inside = self.row[cells] >= 0
            cells = cells[inside]
            at, where = np.unique(self.row[cells], return_inverse=True)
            known = p.known_down[span][inside], p.known_up[span][inside]
            below, above = compute_group_slack(self.reduction.ratio[cells], *known, where, len(at))
            counts.append(counts[-1] + len(at))
            rows.append(at)
            lows.append(-below)
            highs.append(above)
        return (
            np.asarray(counts, np.int64),
            np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64),
            np.concatenate([*lows, np.zeros(0)]),
            np.concatenate([*highs, np.zeros(0)]),
        )

    def get_bounds(self, attacker: int) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest movement of each row for an attacker."""
        ptr, row, known_low, known_high = self.known
        low, high = self.bounds
        span = slice(ptr[attacker], ptr[attacker + 1])
        if span.start == span.stop:
            return low, high
        low, high = low.copy(), high.copy()
        low[row[span]] = np.maximum(low[row[span]], known_low[span])
        high[row[span]] = np.minimum(high[row[span]], known_high[span])
        return low, high

    @cached_property
    def requests(self) -> Levels:
        """The problem's requests, merged: one entry per attacker and row."""
        r = self.problem.requests
        rows = self.row[r.cell]
        ratio = self.reduction.ratio[r.cell]
        inside = rows >= 0
        scale = np.where(inside, ratio, 1.0)
        down, up = convert_slack_to_variables(scale, r.lower, r.upper)
        key = r.attacker[inside] * (len(self) + 1) + rows[inside]
        distinct, where = np.unique(key, return_inverse=True)
        merged = []
        for level in (down, up, r.sliding / np.abs(scale)):
            highest = np.zeros(len(distinct))
            np.maximum.at(highest, where, level[inside])
            merged.append(highest)
        return distinct // (len(self) + 1), distinct % (len(self) + 1), merged[0], merged[1], merged[2]

    @cached_property
    def disclosed(self) -> IntArray:
        """Requests of the problem whose cell cannot move at all."""
        return np.flatnonzero(self.row[self.problem.requests.cell] < 0)

    def convert_to_rows(self, movements: Any) -> FloatArray:
        """Movements of all cells in terms of the rows, one line each."""
        return np.ascontiguousarray(np.atleast_2d(movements)[:, self.cells], np.float64)

    def translate_movements(self, other: PatternSpace, movements: FloatArray) -> FloatArray:
        """Movements of another space in terms of these rows."""
        row = other.row[self.cells]
        if not movements.shape[1]:  # nothing moves there, as in a table without sensitive cells
            return np.zeros((len(movements), len(row)))
        return np.ascontiguousarray(movements[:, row] * np.where(row >= 0, other.reduction.ratio[self.cells], 0.0))

    def lift_movements(self, movements: FloatArray) -> csr_array:
        """Movements of the rows as movements of all cells, one line each."""
        return csr_array(csr_array(np.reshape(movements, (len(movements), len(self)))) @ self.variables.lift.T)

    def build_pattern(self, rows: BoolArray) -> BoolArray:
        """The pattern in which these rows and the forced cells are suppressed."""
        cells, row, _ = self.members
        pattern = self.problem.forced.copy()
        pattern[cells[rows[row]]] = True
        return pattern
