"""What an attacker sees around the true table, which cells are asked about, and what the search finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.system import System, find_unknown_cells
from cellguard._types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.shown import ShownMovements
    from cellguard._engine.ranges.witnesses.witness import ExactMovements

__all__ = ["AskedRanges", "ShownRanges", "Sight"]


@dataclass(frozen=True, eq=False)
class Sight:
    """The tables that an attacker cannot exclude."""

    relations: csr_array
    """One row each; `point` satisfies them."""
    lo: FloatArray
    """Interval of each cell that the release and the attacker's knowledge leave; contains `point`."""
    hi: FloatArray
    point: FloatArray
    """The true table."""
    integer: bool = False
    """Only whole numbers are possible; `point` must be whole."""
    shown: ShownMovements | None = None
    """Movements that were shown possible before; new ones are added."""

    def __post_init__(self) -> None:
        if self.integer:
            object.__setattr__(self, "lo", np.ceil(self.lo - 1e-9))
            object.__setattr__(self, "hi", np.floor(self.hi + 1e-9))

    @cached_property
    def slack(self) -> tuple[FloatArray, FloatArray]:
        """How far each cell can move down and up."""
        return np.maximum(self.point - self.lo, 0.0), np.maximum(self.hi - self.point, 0.0)

    def build_system(self) -> System:
        """Return the reduced system of the movements."""
        return System.of(self.relations, find_unknown_cells(self.lo, self.hi, self.point), *self.slack)


@dataclass(frozen=True, eq=False)
class AskedRanges:
    """Cells, and how far their ranges must reach below and above the truth and in total; not at all unless given."""

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
    """What an attacker can compute about the cells asked about, in their order."""

    low: FloatArray
    """The least value that a feasible table attains."""
    high: FloatArray
    """The greatest value that a feasible table attains."""
    low_bound: FloatArray
    """Proven: no feasible table has a smaller value."""
    high_bound: FloatArray
    """Proven: no feasible table has a greater value."""
    safe: BoolArray
    """Whether the witnesses show that the levels are met."""
    unsafe: BoolArray
    """Whether a proven bound lies inside a level. A cell may be neither safe nor unsafe: unknown."""
    witnesses: csr_array
    """Feasible movements of the whole table, one row each."""
    exact_witnesses: ExactMovements | None
    """The same as exact fractions, when `certify`."""
    low_witness: IntArray
    """The row of `witnesses` in which a cell reaches its lower level; -1: the true table."""
    high_witness: IntArray
    """The row of `witnesses` in which a cell reaches its upper level; -1: the true table."""
    programs: int
    """Number of linear programs solved."""
