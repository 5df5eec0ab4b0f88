"""The problem as a program: a column per choice, independent rows only.

The price of a cell is convex in x with kinks at 0 and 1, so a cell with more than two choices gets
up to three columns: steps below 0, the step from 0 to 1, and steps above 1. Cells without a choice
leave the program, and of the relations between the others only independent ones stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.reduce import reduce
from cellguard._rounding.problem import Problem

__all__ = ["Model", "Pieces", "make_model", "make_pieces"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """``min constant + cost y`` subject to ``A y = rhs`` and ``0 <= y <= upper``; ``x = start + sign y``."""

    A: csr_array
    """Independent relations between the columns."""
    rhs: FloatArray
    """Right-hand sides."""
    cost: FloatArray
    """Price of a step of each column."""
    upper: FloatArray
    """Most steps of each column."""
    cell: IntArray
    """The cell that each column moves."""
    sign: FloatArray
    """1 for steps up, -1 for steps down."""
    start: IntArray
    """x of every cell when no column moves."""
    constant: float
    """Price of `start`."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    def x(self, y: FloatArray) -> IntArray:
        """Return x of every cell for whole y."""
        x = self.start.copy()
        np.add.at(x, self.cell, np.rint(self.sign * y).astype(np.int64))
        return x

    def x_relaxed(self, y: FloatArray) -> FloatArray:
        """Return x of every cell for any y."""
        x = self.start.astype(np.float64)
        np.add.at(x, self.cell, self.sign * y)
        return x

    def y(self, x: IntArray) -> FloatArray:
        """Return the columns that give x."""
        return Pieces(self.cell, self.upper, self.cost, self.sign, self.start).y(x)


class Pieces(NamedTuple):
    """Columns for cells with a convex price: ``x = start + sign y``, ``0 <= y <= upper``."""

    cell: IntArray
    """The cell that each column moves; the columns of a cell follow each other: below, 0 to 1, above."""
    upper: FloatArray
    """Most steps of each column."""
    cost: FloatArray
    """Price of a step of each column."""
    sign: FloatArray
    """1 for steps up, -1 for steps down."""
    start: IntArray
    """x of every cell when no column moves."""

    def y(self, x: IntArray) -> FloatArray:
        """Return the columns that give x: the step from 0 to 1 first, since it is the cheapest."""
        left = (x - self.start)[self.cell] * self.sign
        y = np.clip(left, 0.0, self.upper)
        # a cell's columns follow each other in this order: 0 to 1, above 1
        again = np.flatnonzero((self.sign[1:] > 0) & (self.cell[1:] == self.cell[:-1]) & (self.sign[:-1] > 0)) + 1
        y[again] = np.clip(left[again] - self.upper[again - 1], 0.0, self.upper[again])
        return np.asarray(y)


def make_pieces(low: IntArray, high: IntArray, slope: FloatArray, outer: FloatArray) -> Pieces:
    """Return the columns of cells with x from `low` to `high`, kinks at 0 and 1."""
    start = np.clip(0, low, high)
    kink = np.maximum(start, 1)
    parts = [
        (start - low, outer, -1.0),
        (((low <= 0) & (high > 0)).astype(np.int64), slope, 1.0),
        (high - kink, outer, 1.0),
    ]
    cell = np.concatenate([np.flatnonzero(steps > 0) for steps, _, _ in parts])
    upper = np.concatenate([steps[steps > 0] for steps, _, _ in parts]).astype(np.float64)
    cost = np.concatenate([price[steps > 0] for steps, price, _ in parts])
    sign = np.concatenate([np.full(int((steps > 0).sum()), s) for steps, _, s in parts])
    order = np.argsort(cell, kind="stable")
    return Pieces(cell[order], upper[order], cost[order], sign[order], start)


def make_model(problem: Problem) -> Model:
    """Write the problem as a program."""
    p = problem
    cell, upper, cost, sign, start = make_pieces(p.low, p.high, p.slope, p.weights * p.base)
    # a cell without a choice that is not at its true value takes part in the relations as well
    moving = p.free | (p.published(start) != p.values)
    rows = reduce(p.relations, moving).rows
    T = p.relations[rows]
    A = csr_array(T[:, cell])
    A.data = A.data * (p.base[cell] * sign)[A.indices]
    rhs = p.rhs[rows] - T @ p.published(start)
    if len(np.unique(p.base[moving])) == 1:  # one base: whole numbers all over
        unit = p.base[moving][0]
        A.data, rhs = _snap(A.data / unit), _snap(rhs / unit)
    elif A.nnz:
        scale = abs(A).max(axis=1).toarray().ravel()
        scale[scale == 0] = 1.0
        A.data, rhs = A.data / np.repeat(scale, np.diff(A.indptr)), rhs / scale
    return Model(A=A, rhs=rhs, cost=cost, upper=upper, cell=cell, sign=sign, start=start, constant=p.loss(start))


def _snap(numbers: FloatArray) -> FloatArray:
    """Make numbers whole that only rounding keeps from being so."""
    whole = np.rint(numbers)
    return np.asarray(np.where(np.abs(numbers - whole) < 1e-6, whole, numbers))
