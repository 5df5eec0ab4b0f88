"""What is required for each sensitive cell, by public classes: a rule that derives a width from the place of a set.

Levels are numbers. An attacker who knows the rule knows them as shares of the value, as amounts added to it, or as
smallest widths. A width computed from the level of one cell reveals its value. So every cell gets one of a few classes
(the largest share of the table, a half of it, a quarter, ...) that say how wide a set must be **by its own upper end**.
Counts, whose levels are rounded to whole numbers, have their own rule (:mod:`cellguard.release.count_classes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.lattice import EndLattice, Width
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.table import Table

__all__ = ["AskedCells", "compute_largest_request"]

LARGEST = 0.5
"""Largest promised share: no set of positive numbers is as wide as its upper end."""
SMALLEST = 0.005
"""Smaller shares are treated as this."""


def compute_largest_request(table: Table, name: str) -> FloatArray:
    """Return the most required of each cell against any attacker: "width", "lower" or "upper" of its levels."""
    out = np.zeros(table.n_cells)
    for attacker in list_attackers(table):
        need = compute_required_levels(table, attacker)
        np.maximum.at(out, need.cells, getattr(need, name))
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedCells:
    """The cells to be hidden, in units of the lattice, upward where the values are positive."""

    cells: IntArray
    width: Width
    """Required width of the set of values that must stay possible for an informed attacker."""
    lower: FloatArray
    """Share of its lower end by which the range must go beyond the set, below ..."""
    upper: FloatArray
    """... and of its upper end, above."""
    below: FloatArray
    """Units by which the range must go beyond the set in any case, below ..."""
    above: FloatArray
    """... and above."""
    total: FloatArray
    """What the levels of the true values require, as values."""

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def of(cls, table: Table, lattice: EndLattice) -> AskedCells:
        """Collect the requirements of all attackers: the largest of each kind."""
        total, low, up = (compute_largest_request(table, name) for name in ("width", "lower", "upper"))
        cells = np.flatnonzero(total > 0)
        mirrored = table.values[cells] < 0
        low[cells], up[cells] = np.where(mirrored, up[cells], low[cells]), np.where(mirrored, low[cells], up[cells])
        asked = total[cells]
        total, *levels = (x[cells] / float(lattice.unit) for x in (total, low, up))
        size = np.abs(lattice.convert_to_units(table.values[cells]))
        own = np.where(size > 0, total / np.maximum(size, 1.0), 0.0)
        share, number = _classify_shares(np.minimum(own, LARGEST))
        short = share * size < total * (1.0 - 1e-9)
        # a zero has no share
        floor = np.where(short & (size == 0), 2.0 ** np.ceil(np.log2(np.maximum(total, 1.0))), 1.0)
        sides = []
        for level in levels:
            part = np.where(size > 0, level / np.maximum(size, 1.0), 0.0)
            most = np.zeros(int(number.max(initial=0)) + 1)
            np.maximum.at(most, number, part)
            sides.append(most[number])
        beyond = [np.where(size > 0, 0.0, level) for level in levels]
        width = Width(floor, share, np.zeros(len(cells)), np.zeros(len(cells)))
        return cls(
            cells=cells, width=width, lower=sides[0], upper=sides[1], below=beyond[0], above=beyond[1], total=asked
        )  # fmt: skip


def _classify_shares(share: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the least class that covers each share, and its number: the largest share, half of it, a quarter, ..."""
    top = max(float(share.max(initial=0.0)), SMALLEST)
    number = np.floor(np.log2(top / np.maximum(share, SMALLEST)) + 1e-9).astype(np.int64)
    return top * 2.0 ** -number.astype(np.float64), number
