"""Intervals around single cells from a grid of public classes with a secret offset: if no movement hides a cell.

Every cell that must be opened by some width gets the class c, the least power of 2 (in units of the table's grid) that
covers it. A partition into pieces of 2 c has a secret offset. The release publishes the piece in which the value
lies, and c more on either side: an informed attacker still considers every value of the piece possible, as far as this
cell tells. What the relations reveal beyond that is measured (:func:`cellguard.attack`), not promised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.asked import compute_largest_request
from cellguard.methods.intervals.lattice import EndLattice
from cellguard.methods.intervals.problem import find_hiding_widths, may_become_intervals
from cellguard.methods.intervals.secret import Secret
from cellguard.model.table import Table
from cellguard.release.count_classes import cut_even_classes

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
        self.offset = secret.draw_uniform("other", np.arange(table.n_cells))
        self.least = compute_largest_request(table, "width") / 2.0
        """Half of what the levels of each cell require together."""

    def widen_intervals(
        self, given: Published, cells: IntArray, deadline: Deadline, *, times: float = 1.0
    ) -> Published | None:
        """Hide some cells, too: by joint movements, `times` as wide as they need; None if none are found in time."""
        found = find_hiding_widths(self.table, cells, deadline)
        if found is None:
            return None
        return self.build_around(given, times * np.maximum(found.lower, found.upper))

    def withhold_around(self, given: Published, cells: IntArray | None = None) -> Published:
        """Publish almost nothing about the cells in the relations of some cells, or about all cells."""
        t = self.table
        T = abs(t.relations)
        here = np.zeros(t.n_cells)
        here[slice(None) if cells is None else cells] = 1.0
        near = ((T.T @ (T @ here) > 0) | (here > 0)) & may_become_intervals(t)
        largest = max(float(np.abs(t.values[near]).max(initial=0.0)), 8.0 * float(self.least.max(initial=0.0)))
        return self.build_around(given, np.where(near, 2.0 * largest, 0.0))

    def build_around(self, given: Published, width: FloatArray) -> Published:
        """Return intervals that reach the given distance to both sides of every value, if it is above 0.

        An interval that is already open grows by its class on both sides: the set inside it does not change.
        """
        t, units = self.table, self.lattice.convert_to_units
        unit = float(self.lattice.unit)
        at = np.flatnonzero(width > 0)
        far = np.maximum(width[at], self.least[at]) / unit
        c = 2.0 ** np.ceil(np.log2(np.maximum(far * (1.0 - 1e-9), 1.0)))
        lo, hi = np.ceil(units(t.lb[at]) - 1e-9), np.floor(units(t.ub[at]) + 1e-9)
        x, y = cut_even_classes(np.floor(units(t.values[at]) + 1e-9), lo, hi, 2.0 * c, self.offset[at])
        over = 0.0 if self.lattice.whole else 1.0  # values between two multiples of the unit
        out = [end.copy() for end in given]
        closed = given.upper[at] <= given.lower[at]
        first, last = self.lattice.convert_to_values(x), self.lattice.convert_to_values(y + over)
        out[2][at] = np.where(closed, first, given.inner_lower[at])
        out[3][at] = np.where(closed, last, given.inner_upper[at])
        step = self.lattice.convert_to_values(c)
        out[0][at] = np.maximum(np.where(closed, first, given.lower[at]) - step, t.lb[at])
        out[1][at] = np.minimum(np.where(closed, last, given.upper[at]) + step, t.ub[at])
        return Published(*out)
