"""Attackers: what each of them knows about the cells before the release is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard._deprecation import OldName
from cellguard._quantities import Ratio, check_ratio
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["EXTERNAL", "Attacker"]


def _freeze_array(values: ArrayLike, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.array(values, dtype=dtype).ravel()
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attacker:
    """An attacker with prior knowledge: tighter bounds on some cells (salazar2004 section 2).

    The external attacker knows only the bounds of the table. A respondent knows at least
    their own contribution; a coalition knows the sum of its members' contributions.

    >>> Attacker(name="firm 12", cells=[3], lb=[40.0], ub=[np.inf])
    Attacker('firm 12', tighter bounds on 1 cell)
    """

    name: str
    """Name of the attacker in reports."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Indices of the cells on which the attacker has tighter bounds than the table's."""
    lb: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Lower bounds known for `cells`."""
    ub: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Upper bounds known for `cells`."""
    certain: FloatArray | None = None
    """What the attacker certainly knows of `cells` if `lb` is only the most that they may know; levels are reduced by
    this and no more. None: `lb` is certain."""
    sensitive: IntArray | None = None
    """Cells to be protected against this attacker; None for the table's sensitive cells and levels."""
    lower: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Lower protection levels of `sensitive` against this attacker."""
    upper: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Upper protection levels of `sensitive` against this attacker."""
    sliding: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Sliding protection levels of `sensitive` against this attacker."""
    derived: bool = False
    """Whether the attacker was derived from the table, as respondents are (:func:`cellguard.insiders`)."""
    only: IntArray | None = None
    """For a respondent: protect only these cells, because a better informed respondent covers all others."""

    def __post_init__(self) -> None:
        for name in ("lb", "ub", "lower", "upper", "sliding"):
            object.__setattr__(self, name, _freeze_array(getattr(self, name), np.float64))
        object.__setattr__(self, "cells", _freeze_array(self.cells, np.int64))
        if not (len(self.cells) == len(self.lb) == len(self.ub)):
            raise InputError(
                f"attacker {self.name!r}: cells, lb and ub have {len(self.cells)}, {len(self.lb)} "
                f"and {len(self.ub)} entries; they must be equally long."
            )
        if self.certain is not None:
            object.__setattr__(self, "certain", _freeze_array(self.certain, np.float64))
        if len(np.unique(self.cells)) != len(self.cells):
            raise InputError(f"attacker {self.name!r}: a cell is named twice.")
        if np.isnan(self.lb).any() or np.isnan(self.ub).any() or (self.lb > self.ub).any():
            raise InputError(f"attacker {self.name!r}: each lb must be a number not above its ub.")
        if self.sensitive is None:
            return
        object.__setattr__(self, "sensitive", _freeze_array(self.sensitive, np.int64))
        s = len(self.sensitive)
        for name in ("lower", "upper", "sliding"):
            levels = getattr(self, name)
            if len(levels) == 0 and s:
                object.__setattr__(self, name, _freeze_array(np.zeros(s), np.float64))
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
        levels: tuple[Ratio, Ratio] | None = None,
    ) -> Attacker:
        """Make the attacker who contributed to a cell, and so knows that it is at least their contribution.

        Parameters
        ----------
        table
            The table that contains the respondent; contributions to it are not negative.
        cell
            Index of the cell, or its codes; omitted dimensions are at their total.
        contribution
            The amount contributed. Totals above need no bound of their own: the relations imply it.
        name
            Name of the respondent in reports; derived from the cell unless given.
        levels
            Lower and upper level of the cell against the respondent, as shares of what the others contributed
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
        levels: tuple[Ratio, Ratio] | None = None,
    ) -> Attacker:
        """Make the attacker formed by several respondents, or by one respondent with several contributions.

        Parameters
        ----------
        table
            The table that contains the respondents.
        contributions
            Pairs of a cell (index or codes) and a contribution to it; contributions to the same
            cell add up.
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
            check_ratio(f"attacker {name!r}, lower level", lower)
            check_ratio(f"attacker {name!r}, upper level", upper)
            slack = np.maximum(table.ub[cells] - table.values[cells], 0.0)
            own_levels = {"sensitive": cells, "lower": lower * others, "upper": np.minimum(upper * others, slack)}
        lb = np.maximum(table.lb[cells], np.minimum(own, table.values[cells]))
        return cls(name=name, cells=cells, lb=lb, ub=table.ub[cells], **own_levels)

    def reduce_levels(self, values: FloatArray, lb: FloatArray, ub: FloatArray) -> Attacker:
        """Return the attacker with levels reduced to what the known bounds of all cells allow."""
        s = self.sensitive
        if s is None or self.derived or not len(s):
            return self
        lo, hi = lb.copy(), ub.copy()
        lo[self.cells] = np.maximum(lo[self.cells], self.lb)
        hi[self.cells] = np.minimum(hi[self.cells], self.ub)
        return replace(
            self,
            lower=np.minimum(self.lower, np.maximum(values - lo, 0.0)[s]),
            upper=np.minimum(self.upper, np.maximum(hi - values, 0.0)[s]),
            sliding=np.minimum(self.sliding, (hi - lo)[s]),
        )

    within = OldName("reduce_levels")

    def tighten(self, cells: IntArray, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of some cells, tightened where the attacker knows more; fast when they know few cells."""
        return self._tighten(cells, lo, hi, self.lb)

    def tighten_certainly(self, cells: IntArray, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of some cells, tightened by what the attacker certainly knows; no level exceeds these."""
        return self._tighten(cells, lo, hi, self.lb if self.certain is None else self.certain)

    def _tighten(
        self, cells: IntArray, lo: FloatArray, hi: FloatArray, known: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if not len(self.cells) or not len(cells):
            return lo, hi
        order = np.argsort(self.cells, kind="stable")
        mine = self.cells[order]
        place = np.minimum(np.searchsorted(mine, cells), len(mine) - 1)
        hit = mine[place] == cells
        lo, hi = lo.copy(), hi.copy()
        lo[hit] = np.maximum(lo[hit], known[order][place[hit]])
        hi[hit] = np.minimum(hi[hit], self.ub[order][place[hit]])
        return lo, hi

    def move_to(self, place: IntArray) -> Attacker:
        """Return the attacker after cells are renumbered: cell i becomes ``place[i]``, or is dropped if that is -1."""
        known = place[self.cells] >= 0
        changes: dict[str, Any] = {"cells": place[self.cells[known]], "lb": self.lb[known], "ub": self.ub[known]}
        if self.certain is not None:
            changes["certain"] = self.certain[known]
        if self.sensitive is not None:
            mine = place[self.sensitive] >= 0
            changes |= {"sensitive": place[self.sensitive[mine]]}
            changes |= {name: getattr(self, name)[mine] for name in ("lower", "upper", "sliding")}
        if self.only is not None:
            changes["only"] = place[self.only][place[self.only] >= 0]
        return replace(self, **changes)

    def __repr__(self) -> str:
        n = len(self.cells)
        return f"Attacker({self.name!r}, tighter bounds on {n} cell{'' if n == 1 else 's'})"


EXTERNAL = Attacker(name="external")
"""The external attacker: knows only the bounds of the table."""
