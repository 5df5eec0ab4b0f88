"""How the cells of a pattern can move: classes of aliases, an echelon form, and the requests on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.reduce import Reduction, reduce
from cellguard._suppress.problem import Problem
from cellguard.table import BoolArray, FloatArray, IntArray

__all__ = ["Space"]

_DENSE = 6_000_000
"""Entries of an echelon form that may be kept dense."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """The movements that a pattern leaves open. A row is a class of cells that can only move together."""

    problem: Problem
    pattern: BoolArray
    """The suppressed cells."""
    reduction: Reduction
    """Null space of the suppressed cells."""
    cells: IntArray
    """Representative of each row."""
    row: IntArray
    """Row of each cell; -1 for cells that cannot move."""

    @classmethod
    def of(cls, problem: Problem, pattern: BoolArray) -> Space:
        """Reduce the relations between the suppressed cells."""
        reduction = reduce(problem.relations, pattern & problem.usable)
        cells, index = np.unique(reduction.alias[reduction.alias >= 0], return_inverse=True)
        row = np.full(len(pattern), -1, np.int64)
        row[reduction.alias >= 0] = index
        return cls(problem=problem, pattern=pattern, reduction=reduction, cells=cells, row=row)

    @property
    def size(self) -> int:
        """Entries of the echelon form."""
        return len(self.cells) * self.reduction.degrees_of_freedom

    @property
    def dense(self) -> bool:
        """Whether the echelon form may be kept dense."""
        return self.size <= _DENSE

    @cached_property
    def _members(self) -> tuple[IntArray, IntArray, FloatArray]:
        cells = np.flatnonzero(self.row >= 0)
        return cells, self.row[cells], self.reduction.ratio[cells]

    @cached_property
    def lift(self) -> csr_array:
        """Cells by rows: movements of all cells from those of the classes."""
        cells, rows, ratio = self._members
        return csr_array((ratio, (cells, rows)), shape=(len(self.row), len(self.cells)))

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest movement of each row for the external attacker."""
        cells, rows, ratio = self._members
        return _tightest(self.problem.down[cells], self.problem.up[cells], rows, ratio, len(self.cells))

    @cached_property
    def weight(self) -> FloatArray:
        """Cost of each row."""
        cells, rows, _ = self._members
        return np.bincount(rows, self.problem.weight[cells], len(self.cells)).astype(np.float64)

    @cached_property
    def known(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """What attackers know besides: for each its rows and the lowest and highest movement."""
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

    @cached_property
    def requests(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Attacker, row, and how far down, up and how wide: one entry per attacker and row."""
        r = self.problem.requests
        rows = self.row[r.cell]
        ratio = self.reduction.ratio[r.cell]
        keep = rows >= 0
        scale = np.abs(np.where(keep, ratio, 1.0))
        down = np.where(ratio > 0, r.lower, r.upper) / scale
        up = np.where(ratio > 0, r.upper, r.lower) / scale
        slide = r.sliding / scale
        key = r.attacker[keep] * (len(self.cells) + 1) + rows[keep]
        distinct, where = np.unique(key, return_inverse=True)
        merged = []
        for level in (down, up, slide):
            best = np.zeros(len(distinct))
            np.maximum.at(best, where, level[keep])
            merged.append(best)
        return distinct // (len(self.cells) + 1), distinct % (len(self.cells) + 1), merged[0], merged[1], merged[2]

    @property
    def disclosed(self) -> BoolArray:
        """Requests whose cell cannot move at all."""
        return self.row[self.problem.requests.cell] < 0

    def echelon(self) -> tuple[FloatArray, IntArray]:
        """Dense basis of the null space, rows by degrees of freedom, and the row of each column's parameter."""
        W = np.asarray(self.reduction.basis[self.cells].toarray(), np.float64)
        parameters = self.reduction.parameters
        rows = self.row[parameters]
        scale = self.reduction.ratio[parameters]  # a parameter need not be the representative of its class
        return np.ascontiguousarray(W * scale), rows


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
