"""What one attacker can compute about the cells to protect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.auditing.witnesses import Proof
from cellguard.model.attacker import Attacker
from cellguard.model.levels import Levels
from cellguard.model.table import Table

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.witness import ExactMovements

__all__ = ["Finding"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What one attacker can compute about the cells that must be protected against them."""

    attacker: Attacker
    """Who."""
    levels: Levels = field(repr=False)
    """The cells to be protected and their levels."""
    low: FloatArray = field(repr=False)
    """Lower end of each cell's range: exact, or the least value shown to be possible if only verdicts are required."""
    high: FloatArray = field(repr=False)
    """Upper end of each cell's range."""
    safe: BoolArray = field(repr=False)
    """Cells that reach their levels, with witnesses."""
    unsafe: BoolArray = field(repr=False)
    """Cells proven to miss a level, or disclosed exactly."""
    exact: BoolArray = field(repr=False)
    """Cells whose value the attacker computes exactly."""
    disclosed: IntArray = field(repr=False)
    """All cells of the table, sensitive or not, that are not published and still known exactly."""
    witnesses: ExactMovements | None = field(repr=False, default=None)
    """Exact movements from the true table to feasible tables, one row each (confidential)."""
    low_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell reaches its lower level; -1 is the true table."""
    high_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell reaches its upper level; -1 is the true table."""
    shares: tuple[FloatArray | None, FloatArray | None] = field(repr=False, default=(None, None))
    """How far towards `low_witness` and `high_witness` the attacker's own knowledge allows; None: all the way."""
    programs: int = 0
    """Linear programs that were solved, for all attackers that share witnesses."""

    @property
    def cells(self) -> IntArray:
        """Indices of the cells to be protected."""
        return self.levels.cells

    @property
    def unknown(self) -> BoolArray:
        """Cells that are neither shown safe nor proven unsafe."""
        return ~self.safe & ~self.unsafe

    def build_proof(self, table: Table, tables: Sequence[Mapping[int, Fraction]] | None = None) -> Proof:
        """Return the witnesses of the safe cells as tables of fractions (:func:`cellguard.verify`).

        Attackers may share witnesses: build their tables once with :meth:`build_tables` and pass them for each.
        """
        cells, low, high = (x[self.safe].tolist() for x in (self.cells, self.low_witness, self.high_witness))
        low_share, high_share = (None if x is None else _convert_to_fractions(x[self.safe]) for x in self.shares)
        return Proof(
            attacker=self.attacker.name, cells=cells, low=low, high=high, low_share=low_share, high_share=high_share,
            tables=self.build_tables(table) if tables is None else tables,
        )  # fmt: skip

    def build_tables(self, table: Table) -> list[dict[int, Fraction]]:
        """Return the witnesses as tables of fractions: the cells that differ from the true table."""
        if self.witnesses is None:
            return []
        rows = [self.witnesses.get_row(row) for row in range(self.witnesses.numerators.shape[0])]
        moving = np.array(sorted({i for moved in rows for i in moved}), np.int64)
        a = dict(zip(moving.tolist(), _convert_to_fractions(table.values[moving]), strict=True))
        return [{i: a[i] + m for i, m in moved.items()} for moved in rows]


def _convert_to_fractions(numbers: FloatArray) -> list[Fraction]:
    """Return numbers as printed, so that 0.1 is a tenth; each distinct number is converted once."""
    different, place = np.unique(numbers, return_inverse=True)
    exact = [Fraction(repr(x)) for x in different.tolist()]
    return [exact[k] for k in place.tolist()]
