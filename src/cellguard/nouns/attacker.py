"""Who attacks: what somebody knows about the cells before the release is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["EXTERNAL", "Attacker"]


def _frozen_attacker_array(values: ArrayLike, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.array(values, dtype=dtype).ravel()
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attacker:
    """Somebody with prior knowledge: tighter bounds on some cells (salazar2004 section 2).

    The external attacker knows the bounds of the table and nothing else. A respondent knows at
    least his own contribution; a coalition knows the sum of its members' contributions.

    >>> Attacker(name="firm 12", cells=[3], lb=[40.0], ub=[np.inf])
    Attacker('firm 12', tighter bounds on 1 cell)
    """

    name: str
    """How reports call the attacker."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Indices of the cells on which the attacker has tighter bounds than the table's."""
    lb: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Lower bounds known for `cells`."""
    ub: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Upper bounds known for `cells`."""
    sensitive: IntArray | None = None
    """Cells to be protected against this attacker; None for the table's sensitive cells and levels."""
    lower: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Lower protection levels of `sensitive` against this attacker."""
    upper: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Upper protection levels of `sensitive` against this attacker."""
    sliding: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Sliding protection levels of `sensitive` against this attacker."""
    derived: bool = False
    """Whether he was found from the table itself, as a respondent is (:func:`cellguard.data.insiders`)."""

    def __post_init__(self) -> None:
        for name in ("lb", "ub", "lower", "upper", "sliding"):
            object.__setattr__(self, name, _frozen_attacker_array(getattr(self, name), np.float64))
        object.__setattr__(self, "cells", _frozen_attacker_array(self.cells, np.int64))
        if not (len(self.cells) == len(self.lb) == len(self.ub)):
            raise InputError(
                f"attacker {self.name!r}: cells, lb and ub have {len(self.cells)}, {len(self.lb)} "
                f"and {len(self.ub)} entries; they must be equally long."
            )
        if len(np.unique(self.cells)) != len(self.cells):
            raise InputError(f"attacker {self.name!r}: a cell is named twice.")
        if np.isnan(self.lb).any() or np.isnan(self.ub).any() or (self.lb > self.ub).any():
            raise InputError(f"attacker {self.name!r}: each lb must be a number not above its ub.")
        if self.sensitive is None:
            return
        object.__setattr__(self, "sensitive", _frozen_attacker_array(self.sensitive, np.int64))
        s = len(self.sensitive)
        for name in ("lower", "upper", "sliding"):
            levels = getattr(self, name)
            if len(levels) == 0 and s:
                object.__setattr__(self, name, _frozen_attacker_array(np.zeros(s), np.float64))
            elif len(levels) != s or not np.isfinite(levels).all() or (levels < 0).any():
                raise InputError(
                    f"attacker {self.name!r}: {name} needs one finite level of at least 0 for each "
                    f"of its {s} sensitive cells."
                )

    @classmethod
    def respondent(
        cls,
        table: Table,
        cell: int | Mapping[str, str],
        contribution: float,
        *,
        name: str | None = None,
        levels: tuple[float, float] | None = None,
    ) -> Attacker:
        """Make the attacker who contributed to a cell, and so knows that it is at least his contribution.

        Parameters
        ----------
        table
            The table he is part of; contributions to it are not negative.
        cell
            Index of the cell, or its codes; dimensions that are left out are at their total.
        contribution
            What he contributed. Totals above need no bound of their own: the relations imply it.
        name
            How reports call him; he is named after the cell unless given.
        levels
            Lower and upper level of his cell against him, as shares of what the others contributed
            to it (salazar2004 section 2); the table's cells and levels when not given.

        Examples
        --------
        >>> from cellguard import Table
        >>> t = Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
        >>> Attacker.respondent(t, 0, 12.0)
        Attacker('respondent in cell 0', tighter bounds on 1 cell)
        """
        index = table.cell(cell) if isinstance(cell, Mapping) else int(cell)
        if name is None and 0 <= index < table.n_cells:
            name = f"respondent in {table.label(index)}"
        return cls.coalition(table, [(index, contribution)], name=name or "respondent", levels=levels)

    @classmethod
    def coalition(
        cls,
        table: Table,
        contributions: Sequence[tuple[int | Mapping[str, str], float]],
        *,
        name: str = "coalition",
        levels: tuple[float, float] | None = None,
    ) -> Attacker:
        """Make the attacker that several respondents, or one with several contributions, are together.

        Parameters
        ----------
        table
            The table they are part of.
        contributions
            A cell (index or codes) and a contribution to it, as often as needed: those to one cell
            add up.
        name, levels
            See :meth:`respondent`.
        """
        known: dict[int, float] = {}
        for cell, amount in contributions:
            index = int(cell) if not isinstance(cell, Mapping) else table.cell(cell)
            if not 0 <= index < table.n_cells:
                raise InputError(f"attacker {name!r} names a cell outside 0..{table.n_cells - 1}.")
            if not (np.isfinite(amount) and amount >= 0):
                raise InputError(f"attacker {name!r}: a contribution to {table.label(index)} is not at least 0.")
            known[index] = known.get(index, 0.0) + float(amount)
        cells = np.array(sorted(known), dtype=np.int64)
        own = np.array([known[i] for i in cells.tolist()])
        others = table.values[cells] - own
        over = others < -1e-9 * np.maximum(1.0, own)
        if over.any():
            raise InputError(
                f"attacker {name!r}: the contributions to {table.label(int(cells[np.argmax(over)]))} exceed its value.",
                hint="is it the right cell? Knowing your own contribution bounds a cell only if none is negative.",
            )
        others = np.maximum(others, 0.0)
        own_levels: dict[str, Any] = {}
        if levels is not None:
            lower, upper = levels
            room = np.maximum(table.ub[cells] - table.values[cells], 0.0)
            own_levels = {"sensitive": cells, "lower": lower * others, "upper": np.minimum(upper * others, room)}
        lb = np.maximum(table.lb[cells], np.minimum(own, table.values[cells]))
        return cls(name=name, cells=cells, lb=lb, ub=table.ub[cells], **own_levels)

    def moved(self, place: IntArray) -> Attacker:
        """Return what he knows where the cells stand elsewhere: cell i at ``place[i]``, or nowhere if that is -1."""
        known = place[self.cells] >= 0
        changes: dict[str, Any] = {"cells": place[self.cells[known]], "lb": self.lb[known], "ub": self.ub[known]}
        if self.sensitive is not None:
            mine = place[self.sensitive] >= 0
            changes |= {"sensitive": place[self.sensitive[mine]]}
            changes |= {name: getattr(self, name)[mine] for name in ("lower", "upper", "sliding")}
        return replace(self, **changes)

    def __repr__(self) -> str:
        n = len(self.cells)
        return f"Attacker({self.name!r}, tighter bounds on {n} cell{'' if n == 1 else 's'})"


EXTERNAL = Attacker(name="external")
"""The intruder from outside, who knows the bounds of the table and nothing else."""
