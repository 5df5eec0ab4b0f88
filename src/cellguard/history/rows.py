"""Linear rows between cells: sums and bounds, with whole coefficients so that whole cells stay whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Rows", "convert_to_fraction"]


def convert_to_fraction(number: float) -> Fraction:
    """Return a number as printed, so that 0.1 is a tenth."""
    return Fraction(repr(float(number)))


@dataclass(kw_only=True)
class Rows:
    """Rows ``sum of coefficients times cells = rhs``, or ``>= rhs`` with a further cell for the surplus."""

    n_cells: int
    """Number of cells before surplus cells are added."""
    whole: bool = False
    """Whether all cells are counts, so that every surplus must be whole."""
    entries: list[tuple[IntArray, IntArray, FloatArray]] = field(default_factory=list)
    """Row, cell and coefficient."""
    rhs: list[FloatArray] = field(default_factory=list)
    least: list[FloatArray] = field(default_factory=list)
    """Lower bound of the surplus of each row; NaN for a row without one."""
    kinds: list[str] = field(default_factory=list)
    """What each block of rows is, for reports."""
    count: int = 0

    def add(
        self, kind: str, cells: IntArray, coefficients: FloatArray, *, rhs: float = 0.0,
        surplus: FloatArray | float | None = None,
    ) -> None:  # fmt: skip
        """Add rows: one per row of `cells`, where -1 stands for no cell.

        With `surplus`, the rows are inequalities: their surplus is at least this much.
        """
        n, width = cells.shape
        which = cells >= 0
        row = np.repeat(self.count + np.arange(n), width).reshape(n, width)
        values = np.broadcast_to(coefficients, cells.shape)
        self.entries.append((row[which], cells[which], values[which].astype(np.float64)))
        self.rhs.append(np.full(n, float(rhs)))
        self.least.append(np.broadcast_to(np.nan if surplus is None else surplus, n).astype(np.float64))
        self.kinds += [kind] * n
        self.count += n

    def build(self) -> tuple[csr_array, FloatArray, FloatArray]:
        """Return the matrix with columns for the surplus cells, the right-hand sides, and the least surplus."""
        from scipy.sparse import csr_array

        none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        row, cell, value = (np.concatenate(part) for part in zip(none, *self.entries, strict=True))
        least = np.concatenate([np.zeros(0), *self.least])
        open_ = np.flatnonzero(~np.isnan(least))
        row = np.concatenate([row, open_])
        cell = np.concatenate([cell, self.n_cells + np.arange(len(open_))])
        value = np.concatenate([value, np.full(len(open_), -1.0)])
        shape = (self.count, self.n_cells + len(open_))
        return csr_array((value, (row, cell)), shape=shape), np.concatenate([np.zeros(0), *self.rhs]), least[open_]

    def find_rows_of(self, cells: BoolArray) -> BoolArray:
        """Return which rows have one of the cells."""
        out = np.zeros(self.count, bool)
        for row, cell, _ in self.entries:
            out[row[cells[cell]]] = True
        return out
