"""Protection: which cells are sensitive, how much protection each requires, and against whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import Levels
from cellguard.model.parts.contents import Contents

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["ProtectedCells"]

MIN_WHOLE_NUMBERS = 2.0
"""Minimum for a width in whole numbers; if a table has counts and magnitudes, a smaller width is a share."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProtectedCells(Contents):
    """Cells with the protection that they require against each attacker."""

    sensitive: BoolArray
    """Cells that must be protected."""
    lower: FloatArray
    """Lower protection level of each cell, a distance; 0 where the cell is not sensitive."""
    upper: FloatArray
    """Upper protection level of each cell, a distance."""
    sliding: FloatArray
    """Sliding protection level of each cell: the width its range must have."""
    attackers: tuple[Attacker, ...] = (EXTERNAL,)
    """Attackers against whom the release must be safe; respondents are added (`insiders`)."""
    insiders: bool | None = None
    """Respondents as attackers. None: add them when the table is protected or audited, if its contributors are
    known. True: they are among the attackers. False: ignore them."""
    smallest_width: float | None = None
    """Smallest width for a sensitive cell without levels: for a count, this many whole numbers (3 unless given); for a
    magnitude, this share of its value (0.1 unless given; :mod:`cellguard.model.levels`)."""
    flags: Any = None
    """Which rule made each cell sensitive (:class:`cellguard.rules.Flags`), when rules did."""
    _smallest: FloatArray | None = field(default=None, init=False, repr=False)

    @property
    def smallest_width_of_counts(self) -> float | None:
        """Number of whole numbers required for a sensitive count without levels, if given."""
        given = self.smallest_width
        return None if given is not None and self.counted is not None and given < MIN_WHOLE_NUMBERS else given

    @property
    def smallest_width_of_others(self) -> float | None:
        """Share of its value required as width for a sensitive magnitude without levels, if given."""
        given = self.smallest_width
        return None if given is not None and self.counted is not None and given >= MIN_WHOLE_NUMBERS else given

    @property
    def sensitive_cells(self) -> IntArray:
        """Indices of the sensitive cells."""
        return np.flatnonzero(self.sensitive)

    def levels(self, attacker: Attacker = EXTERNAL) -> Levels:
        """Return the protection required against the attacker: their own levels, or the table's."""
        if attacker.sensitive is not None:
            return Levels(
                cells=attacker.sensitive, lower=attacker.lower, upper=attacker.upper, sliding=attacker.sliding
            )
        s = self.sensitive_cells
        return Levels(cells=s, lower=self.lower[s], upper=self.upper[s], sliding=self.sliding[s])

    def reasons(self, cell: int | Mapping[str, str] | Sequence[str]) -> tuple[str, ...]:
        """Return which rules made the cell sensitive and why, without revealing any contribution.

        A cell that was declared safe by hand has no reason.
        """
        from cellguard.model.parts.cells import find_cell

        place = find_cell(cast("Table", self), cell)
        listed = () if self.flags is None else tuple(self.flags.list_reasons(place))
        return listed if self.sensitive[place] else ()

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of cells, sensitive cells and relations."""
        return {"cells": self.n_cells, "sensitive": int(self.sensitive.sum()), "relations": self.n_relations}
