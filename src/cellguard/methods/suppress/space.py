"""How the cells of a pattern can move: classes of aliases, an echelon form, and the requests on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["Known", "Levels", "Space"]

Known = tuple[IntArray, IntArray, FloatArray, FloatArray]
"""What attackers know besides: where each one's entries begin, their rows, and the bounds of their movements."""
Levels = tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]
"""Requests: attacker, row, and how far down, up and in all the row must be able to move."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """The movements of some cells, the others held fast. A row is a class of cells that can only move together."""

    problem: SuppressionProblem
    reduction: Reduction
    """Null space of the cells."""
    cells: IntArray
    """Representative of each row."""
    row: IntArray
    """Row of each cell; -1 for cells that cannot move."""

    @classmethod
    def of(cls, problem: SuppressionProblem, cells: BoolArray) -> Space:
        """Reduce the relations between the cells."""
        reduction = reduce(problem.relations, cells & problem.usable)
        movers, index = np.unique(reduction.alias[reduction.alias >= 0], return_inverse=True)
        row = np.full(len(cells), -1, np.int64)
        row[reduction.alias >= 0] = index
        return cls(problem=problem, reduction=reduction, cells=movers, row=row)

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def members(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells that can move, the row of each, and its movement divided by that of the row."""
        cells = np.flatnonzero(self.row >= 0)
        return cells, self.row[cells], self.reduction.ratio[cells]

    @cached_property
    def lift(self) -> csr_array:
        """Cells by rows: movements of all cells from those of the rows."""
        cells, rows, ratio = self.members
        return csr_array((ratio, (cells, rows)), shape=(len(self.row), len(self)))

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest movement of each row for the external attacker."""
        cells, rows, ratio = self.members
        return _tightest(self.problem.down[cells], self.problem.up[cells], rows, ratio, len(self))

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
            low, high = _tightest(
                p.known_down[span][inside], p.known_up[span][inside], where, self.reduction.ratio[cells], len(at)
            )
            counts.append(counts[-1] + len(at))
            rows.append(at)
            lows.append(low)
            highs.append(high)
        return (
            np.asarray(counts, np.int64),
            np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64),
            np.concatenate([*lows, np.zeros(0)]),
            np.concatenate([*highs, np.zeros(0)]),
        )

    def bounds_of(self, attacker: int) -> tuple[FloatArray, FloatArray]:
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
        scale = np.abs(np.where(inside, ratio, 1.0))
        down = np.where(ratio > 0, r.lower, r.upper) / scale
        up = np.where(ratio > 0, r.upper, r.lower) / scale
        key = r.attacker[inside] * (len(self) + 1) + rows[inside]
        distinct, where = np.unique(key, return_inverse=True)
        merged = []
        for level in (down, up, r.sliding / scale):
            highest = np.zeros(len(distinct))
            np.maximum.at(highest, where, level[inside])
            merged.append(highest)
        return distinct // (len(self) + 1), distinct % (len(self) + 1), merged[0], merged[1], merged[2]

    @cached_property
    def disclosed(self) -> IntArray:
        """Requests of the problem whose cell cannot move at all."""
        return np.flatnonzero(self.row[self.problem.requests.cell] < 0)

    def echelon(self) -> tuple[FloatArray, IntArray]:
        """Dense basis of the null space, degrees of freedom by rows, and the row of each parameter."""
        N = self.reduction.basis[self.cells].toarray()
        parameters = self.reduction.parameters
        scale = self.reduction.ratio[parameters]  # a parameter need not be the representative of its class
        return np.ascontiguousarray((N * scale).T, np.float64), self.row[parameters]

    def rows_of(self, movements: Any) -> FloatArray:
        """Movements of all cells in terms of the rows, one line each."""
        return np.ascontiguousarray(np.atleast_2d(movements)[:, self.cells], np.float64)

    def translated(self, other: Space, movements: FloatArray) -> FloatArray:
        """Movements of another space in terms of these rows."""
        row = other.row[self.cells]
        if not movements.shape[1]:  # nothing moves there, as in a table without sensitive cells
            return np.zeros((len(movements), len(row)))
        return np.ascontiguousarray(movements[:, row] * np.where(row >= 0, other.reduction.ratio[self.cells], 0.0))

    def pattern(self, rows: BoolArray) -> BoolArray:
        """The pattern in which these rows and the forced cells are suppressed."""
        cells, row, _ = self.members
        pattern = self.problem.forced.copy()
        pattern[cells[rows[row]]] = True
        return pattern


def _tightest(
    down: FloatArray, up: FloatArray, group: IntArray, ratio: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """The interval of movements that all members of each group allow, in the group's own unit."""
    scale = np.abs(ratio)
    low = np.where(ratio > 0, down, up) / scale
    high = np.where(ratio > 0, up, down) / scale
    lows, highs = np.full(n, np.inf), np.full(n, np.inf)
    np.minimum.at(lows, group, low)
    np.minimum.at(highs, group, high)
    return -lows, highs
