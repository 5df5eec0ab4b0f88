"""The problem as a program: a column per choice, independent rows only.

The price of a cell is convex in x with kinks at 0 and 1, so a cell with more than two choices gets
up to three columns: steps below 0, the step from 0 to 1, and steps above 1. A cell that must not be
published as it is has a hole at 0: its columns are steps below -1, one column that leads from -1 to 1,
and steps above 1, with rows that allow the first only where the second is not taken, and the third only
where it is. Cells without a choice leave the program, and of the relations between the others only
independent ones stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.space.reduce import reduce
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["Model", "Pieces", "make_rounding_model", "make_rounding_pieces"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Columns for cells with a convex price: ``x = start + sign y``, ``0 <= y <= upper``."""

    cell: IntArray
    """The cell that each column moves; the columns of a cell follow each other: below, 0 to 1, above."""
    upper: FloatArray
    """Most steps of each column."""
    cost: FloatArray
    """Price of a step of each column."""
    sign: FloatArray
    """1 for steps up, -1 for steps down, 2 across a hole."""
    start: IntArray
    """x of every cell when no column moves."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    def compute_x(self, y: FloatArray) -> IntArray:
        """Return x of every cell for whole y."""
        x = self.start.copy()
        np.add.at(x, self.cell, np.rint(self.sign * y).astype(np.int64))
        return x

    def compute_relaxed_x(self, y: FloatArray) -> FloatArray:
        """Return x of every cell for any y."""
        x = self.start.astype(np.float64)
        np.add.at(x, self.cell, self.sign * y)
        return x

    def compute_y(self, x: IntArray) -> FloatArray:
        """Return the columns that give x: the step from 0 to 1 (or across a hole) first, since it is the cheapest."""
        left = (x - self.start)[self.cell] / self.sign
        y = np.clip(np.floor(left), 0.0, self.upper)
        # a cell's columns follow each other: one that leads to 1, one above 1
        first = np.flatnonzero((self.sign[1:] > 0) & (self.cell[1:] == self.cell[:-1]) & (self.sign[:-1] > 0))
        again = first + 1
        y[again] = np.clip(left[again] - self.sign[first] * self.upper[first], 0.0, self.upper[again])
        return np.asarray(y)

    def build_links(self) -> tuple[csr_array, FloatArray]:
        """Return the rows of holes: ``y_below <= upper (1 - y_across)`` and ``y_above <= upper y_across``."""
        across = np.flatnonzero(self.sign == 2)
        below, above = across[across > 0] - 1, across[across < len(self.cell) - 1] + 1
        below = below[(self.cell[below] == self.cell[below + 1]) & (self.sign[below] < 0)]
        above = above[(self.cell[above] == self.cell[above - 1]) & (self.sign[above] > 0)]
        other, hole = np.concatenate([below, above]), np.concatenate([below + 1, above - 1])
        size = self.upper[other]
        n, side = len(other), np.concatenate([-np.ones(len(below)), np.ones(len(above))])
        rows = np.tile(np.arange(n), 2)
        data = np.concatenate([-np.ones(n), side * size])
        C = csr_array((data, (rows, np.concatenate([other, hole]))), shape=(n, len(self.cell)))
        return C, np.where(side < 0, -size, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Model(Pieces):
    """``min constant + cost y`` subject to ``A y = rhs`` and the rows of holes."""

    A: csr_array
    """Independent relations between the columns."""
    rhs: FloatArray
    """Right-hand sides."""
    constant: float
    """Price of `start`."""
    link_rows: csr_array
    """Rows over the columns: a hole is crossed before steps above it, and not after steps below it."""
    link_sides: FloatArray
    """What these rows are at least."""


def make_rounding_pieces(
    low: IntArray, high: IntArray, slope: FloatArray, outer: FloatArray, hole: BoolArray | None = None
) -> Pieces:
    """Return the columns of cells with x from `low` to `high`, kinks at 0 and 1, or at -1 and 1 around a hole."""
    hole = np.zeros(len(low), np.bool_) if hole is None else hole
    start = np.where(hole, -1, np.clip(0, low, high))
    kink = np.maximum(start, 1)
    parts = [
        (start - low, outer, np.full(len(low), -1.0)),
        # from -1 to 1 the price falls by an outer step and changes by the slope
        (((low <= 0) & (high > 0)).astype(np.int64), np.where(hole, slope - outer, slope), np.where(hole, 2.0, 1.0)),
        (high - kink, outer, np.ones(len(low))),
    ]
    there = [np.flatnonzero(steps > 0) for steps, _, _ in parts]
    cell = np.concatenate(there)
    order = np.argsort(cell, kind="stable")
    upper, cost, sign = (
        np.concatenate([part[which] for part, which in zip(kind, there, strict=True)])[order]
        for kind in zip(*parts, strict=True)
    )
    return Pieces(cell=cell[order], upper=upper.astype(np.float64), cost=cost, sign=sign, start=start)


def make_rounding_model(problem: RoundingProblem) -> Model:
    """Write the problem as a program."""
    p = problem
    pieces = make_rounding_pieces(p.low, p.high, p.slope, p.weights * p.base, p.hole)
    # a cell without a choice that is not at its true value takes part in the relations as well
    moving = p.free | (p.compute_published(pieces.start) != p.table.values)
    rows = reduce(p.table.relations, moving).rows
    A = csr_array(p.table.relations[rows][:, pieces.cell])
    A.data = A.data * (p.base[pieces.cell] * pieces.sign)[A.indices]
    rhs = -p.compute_residuals(pieces.start)[rows]
    if len(np.unique(p.base[moving])) == 1:  # one base: whole numbers all over
        unit = p.base[moving][0]
        A.data, rhs = _round_near_whole(A.data / unit), _round_near_whole(rhs / unit)
    elif A.nnz:
        scale = abs(A).max(axis=1).toarray().ravel()
        scale[scale == 0] = 1.0
        A.data, rhs = A.data / np.repeat(scale, np.diff(A.indptr)), rhs / scale
    links, sides = pieces.build_links()
    constant = p.compute_loss(pieces.start)
    return Model(**vars(pieces), A=A, rhs=rhs, constant=constant, link_rows=links, link_sides=sides)


def _round_near_whole(numbers: FloatArray) -> FloatArray:
    """Make numbers whole that only rounding keeps from being so."""
    whole = np.rint(numbers)
    return np.asarray(np.where(np.abs(numbers - whole) < 1e-6, whole, numbers))
