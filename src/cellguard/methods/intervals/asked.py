"""What is asked for each sensitive cell, by public classes: the rule by which a width follows from where a set lies.

Levels are numbers; who knows the rule knows them as shares of the value, as numbers added to it, or as smallest widths.
A width that is computed from the level of one cell tells its value. So every cell gets one of a few classes (the
largest share of the table, a half of it, a quarter, ...) that say how wide a set must be **by its own upper end**.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.lattice import EndLattice, Width
from cellguard.nouns.levels import attackers_of_table, required_levels
from cellguard.nouns.table import Table

__all__ = ["AskedCells", "most_asked_of_interval"]

LARGEST = 0.5
"""No set of positive numbers is as wide as its upper end: a share of more than this is promised as this."""
SMALLEST = 0.005
"""Smaller shares are treated as this."""


def most_asked_of_interval(table: Table, name: str) -> FloatArray:
    """Return the most that is asked of each cell against any attacker: "width", "lower" or "upper" of its levels."""
    out = np.zeros(table.n_cells)
    for attacker in attackers_of_table(table):
        need = required_levels(table, attacker)
        np.maximum.at(out, need.cells, getattr(need, name))
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedCells:
    """The cells to be hidden, in units of the lattice, upward where the values are positive."""

    cells: IntArray
    width: Width
    """Of the set of values that must stay possible for who knows the method."""
    lower: FloatArray
    """Share of its lower end by which the range must go beyond the set, below ..."""
    upper: FloatArray
    """... and of its upper end, above."""
    below: FloatArray
    """Units by which the range must go beyond the set in any case, below ..."""
    above: FloatArray
    """... and above."""
    total: FloatArray
    """What the levels of the true values ask for, as values."""

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def of(cls, table: Table, lattice: EndLattice) -> AskedCells:
        """Gather what is asked against all attackers: the most of each kind."""
        total, low, up = (most_asked_of_interval(table, name) for name in ("width", "lower", "upper"))
        cells = np.flatnonzero(total > 0)
        mirrored = table.values[cells] < 0
        low[cells], up[cells] = np.where(mirrored, up[cells], low[cells]), np.where(mirrored, low[cells], up[cells])
        asked = total[cells]
        total, *levels = (x[cells] / float(lattice.unit) for x in (total, low, up))
        size = np.abs(lattice.units(table.values[cells]))
        rounded = 1.0 if table.integer else 0.0  # levels of counts are rounded up: so much is not a share of the value
        own = np.where(size > 0, np.maximum(total - 2.0 * rounded, 0.0) / np.maximum(size, 1.0), 0.0)
        share, number = _interval_classes_of_share(np.minimum(own, LARGEST))
        extra = np.full(len(cells), 2.0 * rounded)
        short = share * size + extra < total * (1.0 - 1e-9)
        # a smallest width of counts is the same number for all; a zero has no share
        alone = (levels[0] == 0) & (levels[1] == 0) if table.integer else np.zeros(len(cells), np.bool_)
        floor = np.where(
            alone, total, np.where(short & (size == 0), 2.0 ** np.ceil(np.log2(np.maximum(total, 1.0))), 1.0)
        )
        extra = np.where(alone, 0.0, extra)
        share = np.where(alone, SMALLEST, share)
        sides = []
        for level in levels:
            part = np.where(size > 0, np.maximum(level - rounded, 0.0) / np.maximum(size, 1.0), 0.0)
            most = np.zeros(int(number.max(initial=0)) + 1)
            np.maximum.at(most, number, part)
            sides.append(np.where(alone, 0.0, most[number]))
        beyond = [np.where(size > 0, rounded * (level > 0), level) for level in levels]
        width = Width(floor, share, extra, np.zeros(len(cells)))
        lower, upper, below, above = *sides, *beyond
        return cls(cells=cells, width=width, lower=lower, upper=upper, below=below, above=above, total=asked)


def _interval_classes_of_share(share: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the least class that covers each share, and its number: the largest share, half of it, a quarter, ..."""
    top = max(float(share.max(initial=0.0)), SMALLEST)
    number = np.floor(np.log2(top / np.maximum(share, SMALLEST)) + 1e-9).astype(np.int64)
    return top * 2.0 ** -number.astype(np.float64), number
