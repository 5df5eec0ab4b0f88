"""Contents: the value of each cell, and what every attacker knows about it before anything is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellguard._types import BoolArray, FloatArray
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.parts.structure import Structure

__all__ = ["Contents"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents(Structure):
    """Cells with their values (confidential), weights, and public knowledge about them."""

    values: FloatArray
    """The true value of each cell (confidential)."""
    lb: FloatArray
    """Lower bound of the cell that every attacker knows."""
    ub: FloatArray
    """Upper bound of the cell that every attacker knows (may be infinite)."""
    weights: FloatArray
    """Information lost when the cell is suppressed or moved by one unit."""
    fixed: BoolArray
    """Cells that must be published unchanged."""
    counts: FloatArray | None = None
    """Number of contributors of each cell, when known; infinite where only other cells of a publication have one."""
    integer: bool = False
    """Whether the cells are counts, so that only whole numbers are possible. Attackers know this too."""
    counted: BoolArray | None = None
    """Which cells are counts, where a publication has other indicators as well; None: all if `integer`, else none."""
    whole: bool = False
    """Whether attackers take values for whole numbers where all of an indicator are, though they are not counts:
    employees, animals. :func:`cellguard.tabulate` and :meth:`from_frame` say so unless told otherwise."""
    known_zeros: bool | None = None
    """Whether every attacker knows which cells are empty, so that a withheld cell is not. None: for counts only.
    True: for any table. False: a zero may be withheld (:mod:`cellguard.attackers.public`)."""
    _given: Mapping[str, Any] | None = field(default=None, init=False, repr=False)
    _whole_cells: BoolArray | None = field(default=None, init=False, repr=False)

    @property
    def has_public_knowledge(self) -> bool:
        """Whether its bounds include what the rules of publication reveal."""
        return self._given is not None

    @property
    def given_lb(self) -> FloatArray:
        """Lower bounds as given; a published value may lie between them and the bounds that attackers derive."""
        return self.lb if self._given is None else np.asarray(self._given["lb"])

    @property
    def zeros_are_known(self) -> bool:
        """Whether every attacker knows which cells of the table, or of one of its indicators, are empty."""
        return self.known_zeros is not False and (bool(self.known_zeros) or bool(self.count_cells.any()))

    @property
    def count_cells(self) -> BoolArray:
        """Which cells are counts."""
        return np.full(self.n_cells, self.integer) if self.counted is None else self.counted

    @property
    def whole_cells(self) -> BoolArray:
        """Which cells attackers know to be whole numbers: counts, and values without fractions in all of their part."""
        if self._whole_cells is None:
            object.__setattr__(self, "_whole_cells", _find_whole_cells(self))
        return self._whole_cells  # type: ignore[return-value]

    def bounds(self, attacker: Attacker = EXTERNAL) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each cell before the release: the tighter of the table's and the attacker's."""
        lo, hi = self.lb, self.ub
        if len(attacker.cells):
            lo, hi = lo.copy(), hi.copy()
            lo[attacker.cells] = np.maximum(lo[attacker.cells], attacker.lb)
            hi[attacker.cells] = np.minimum(hi[attacker.cells], attacker.ub)
        return lo, hi


def _find_whole_cells(table: Contents) -> BoolArray:
    """Return the cells that attackers know to be whole numbers.

    Counts are; and, if the table says `whole`, all cells of a part of it (cells that relations tie together) without a
    fraction anywhere.
    """
    counts = table.count_cells
    if not table.whole or counts.all():
        return counts
    broken = table.values != np.rint(table.values)
    if not broken.any():
        return np.ones(table.n_cells, bool)
    from cellguard._engine.space.groups import find_groups

    relation, cell = table.relations.tocoo().coords
    part = find_groups(cell, table.n_cells + relation, table.n_cells + table.n_relations)[: table.n_cells]
    return counts | ~np.isin(part, part[broken])
