"""Intervals around single cells from a grid of public classes with a secret offset: where no movement hides a cell.

Every cell that must be opened by some width gets the class c, the least power of 2 (in units of the table's grid) that
covers it. What is published is the piece of a partition into pieces of 2 c, with a secret offset, in which the value
lies, and c more on either side: who knows all that still holds every value of the piece possible, as far as this cell
tells. What the relations tell beyond that is measured (:func:`cellguard.attack`), not promised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.asked import most_asked_of_interval
from cellguard.methods.intervals.lattice import EndLattice
from cellguard.methods.intervals.problem import may_become_intervals, widths_that_hide
from cellguard.methods.intervals.secret import Secret
from cellguard.nouns.table import Table

__all__ = ["ClassGrid", "Published"]


class Published(NamedTuple):
    """Ends of the intervals, and of the sets inside them that stay possible cell by cell."""

    lower: FloatArray
    upper: FloatArray
    inner_lower: FloatArray
    inner_upper: FloatArray


class ClassGrid:
    """Widen intervals by classes."""

    def __init__(self, table: Table, lattice: EndLattice, secret: Secret) -> None:
        self.table, self.lattice = table, lattice
        self.offset = secret.uniform("other", np.arange(table.n_cells))
        self.least = most_asked_of_interval(table, "width") / 2.0
        """Half of what the levels of each cell ask for together."""

    def widened(self, given: Published, cells: IntArray, deadline: Deadline, *, times: float = 1.0) -> Published | None:
        """Hide some cells, too: by joint movements, `times` as wide as they need; None if there are none in time."""
        found = widths_that_hide(self.table, cells, deadline)
        if found is None:
            return None
        return self.around(given, times * np.maximum(found.lower, found.upper))

    def withheld(self, given: Published, cells: IntArray | None = None) -> Published:
        """Publish next to nothing of the cells in the relations of some cells, or of all."""
        t = self.table
        T = abs(t.relations)
        here = np.zeros(t.n_cells)
        here[slice(None) if cells is None else cells] = 1.0
        near = ((T.T @ (T @ here) > 0) | (here > 0)) & may_become_intervals(t)
        largest = max(float(np.abs(t.values[near]).max(initial=0.0)), 8.0 * float(self.least.max(initial=0.0)))
        return self.around(given, np.where(near, 2.0 * largest, 0.0))

    def around(self, given: Published, width: FloatArray) -> Published:
        """Return intervals that reach so far to both sides of every value, where that is more than nothing.

        What is open already grows by its class on both sides: the set inside it stays as it was.
        """
        t, units = self.table, self.lattice.units
        unit = float(self.lattice.unit)
        at = np.flatnonzero(width > 0)
        far = np.maximum(width[at], self.least[at]) / unit
        c = 2.0 ** np.ceil(np.log2(np.maximum(far * (1.0 - 1e-9), 1.0)))
        lo, hi = np.ceil(units(t.lb[at]) - 1e-9), np.floor(units(t.ub[at]) + 1e-9)
        x, y = _interval_piece(np.floor(units(t.values[at]) + 1e-9), lo, hi, 2.0 * c, self.offset[at])
        over = 0.0 if self.lattice.whole else 1.0  # values between two multiples of the unit
        out = [end.copy() for end in given]
        closed = given.upper[at] <= given.lower[at]
        first, last = self.lattice.values(x), self.lattice.values(y + over)
        out[2][at] = np.where(closed, first, given.inner_lower[at])
        out[3][at] = np.where(closed, last, given.inner_upper[at])
        step = self.lattice.values(c)
        out[0][at] = np.maximum(np.where(closed, first, given.lower[at]) - step, t.lb[at])
        out[1][at] = np.minimum(np.where(closed, last, given.upper[at]) + step, t.ub[at])
        return Published(*out)


def _interval_piece(
    value: FloatArray, lower: FloatArray, upper: FloatArray, length: FloatArray, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the piece that holds each value; pieces cut short by a bound join the next.

    >>> one = lambda *x: [float(end[0]) for end in _interval_piece(*(np.array([y]) for y in x))]
    >>> one(17.0, 0.0, np.inf, 8.0, 0.5), one(5.0, 0.0, np.inf, 8.0, 0.5), one(1.0, 0.0, np.inf, 8.0, 0.5)
    ([12.0, 20.0], [0.0, 12.0], [0.0, 12.0])
    """
    start = np.where(np.isfinite(lower), lower, 0.0) + np.floor(offset * length)
    number = np.floor((value - start) / length)
    bounded = np.isfinite(lower)
    # the first whole piece takes what lies below it along
    number = np.where(bounded, np.maximum(number, 0.0), number)
    x = start + number * length
    first = bounded & (number == 0)
    with np.errstate(invalid="ignore"):
        whole = np.maximum(np.floor((upper - start) / length), 1.0)  # pieces that fit below the upper bound
    last = np.isfinite(upper) & (number >= whole - 1.0)
    x = np.where(last & ~first, start + (whole - 1.0) * length, x)
    y = np.where(last, upper, x + length)
    return np.where(first, lower, x), np.maximum(y, value)
