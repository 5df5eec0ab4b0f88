"""What an attacker sees around the true table, what is asked of some cells, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.system import System, cells_in_range_system
from cellguard._types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cellguard._engine.ranges.witness import ExactMovements

__all__ = ["AskedRanges", "ShownRanges", "Sight"]


@dataclass(frozen=True, eq=False)
class Sight:
    """The tables that an attacker must hold possible."""

    relations: csr_array
    """One row each; `point` satisfies them."""
    lo: FloatArray
    """Interval of each cell that the release and the attacker's knowledge leave; contains `point`."""
    hi: FloatArray
    point: FloatArray
    """The true table."""
    integer: bool = False
    """Only whole numbers are possible; `point` must be whole."""

    def __post_init__(self) -> None:
        if self.integer:
            object.__setattr__(self, "lo", np.ceil(self.lo - 1e-9))
            object.__setattr__(self, "hi", np.floor(self.hi + 1e-9))

    @cached_property
    def room(self) -> tuple[FloatArray, FloatArray]:
        """How far each cell can move down and up."""
        return np.maximum(self.point - self.lo, 0.0), np.maximum(self.hi - self.point, 0.0)

    def system(self) -> System:
        """Return the reduced system of its movements."""
        return System.of(self.relations, cells_in_range_system(self.lo, self.hi, self.point), *self.room)


@dataclass(frozen=True, eq=False)
class AskedRanges:
    """Cells, and how far their ranges must reach below and above the truth and in all; not at all unless given."""

    cells: IntArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    sliding: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", np.asarray(self.cells, np.int64))

    @property
    def levels(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The three distances of each cell."""
        n = len(self.cells)
        down, up, slide = (
            np.zeros(n) if x is None else np.asarray(x, np.float64) for x in (self.lower, self.upper, self.sliding)
        )
        return down, up, slide


@dataclass(frozen=True, kw_only=True, eq=False)
class ShownRanges:
    """What an attacker can compute of what was asked for, in its order."""

    low: FloatArray
    """The least value that a feasible table attains."""
    high: FloatArray
    """The greatest value that a feasible table attains."""
    low_bound: FloatArray
    """Proven: no feasible table has a smaller value."""
    high_bound: FloatArray
    """Proven: no feasible table has a greater value."""
    safe: BoolArray
    """Where levels are met, shown by the witnesses."""
    unsafe: BoolArray
    """Where a proven bound lies inside a level. It may be neither: unknown."""
    witnesses: csr_array
    """Feasible movements of the whole table, one row each."""
    exact_witnesses: ExactMovements | None
    """The same as exact fractions, when `certify`."""
    low_witness: IntArray
    """The row of `witnesses` in which a cell reaches its lower level; -1: the true table."""
    high_witness: IntArray
    """The row of `witnesses` in which a cell reaches its upper level; -1: the true table."""
    programs: int
    """How many linear programs were solved."""
