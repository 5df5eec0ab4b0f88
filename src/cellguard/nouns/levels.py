"""What is asked for a sensitive cell: the one meaning of safe that methods, audit and verify share.

A sensitive cell is never published as it is, never known exactly and never closer than its levels,
for every attacker. A rule that flags a cell without measuring how much protection it needs leaves
its levels at zero; they do not count as met, but ask for the **smallest width**:

- of a count, so many whole numbers as a threshold rule of 3 tells apart (`WHOLE_NUMBERS`, or what the rule says), of a
  large one a share of it;
- of a magnitude, a share of the value (`SHARE`);
- of a zero, the same share of the values around it: a published zero tells what every contributor gave.

Where only whole numbers are possible, levels are whole: a range of 0.4 around a count is no range.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import WHOLE_BOUND
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.nouns.attacker import EXTERNAL, Attacker

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = [
    "LEAST_WIDTH", "Levels", "attackers_of_table", "keep_level_widths_of_table", "movement_levels", "required_levels",
    "smallest_level_widths_of_table", "table_with_respondent_attackers",
]  # fmt: skip


LEAST_WIDTH = 1e-7
"""Narrower than this share of its value, a range discloses its cell exactly."""
WHOLE_NUMBERS = 3.0
"""So many whole numbers stay possible for a sensitive count without levels: the usual threshold."""
SHARE = 0.1
"""The range of a sensitive magnitude without levels is this share of its value wide."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """What one attacker must not narrow: cells and their three levels (salazar2004 section 2)."""

    cells: IntArray
    """Indices of the cells to protect."""
    lower: FloatArray
    """The range must reach down to value - lower."""
    upper: FloatArray
    """The range must reach up to value + upper."""
    sliding: FloatArray
    """The range must be at least this wide."""

    def some(self, which: BoolArray | IntArray) -> Levels:
        """Return those of some of the cells."""
        return Levels(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def width(self) -> FloatArray:
        """How wide the range of each cell must be, wherever it lies."""
        return np.maximum(self.sliding, self.lower + self.upper)

    def any(self) -> BoolArray:
        """Which of the cells have a level at all."""
        return np.asarray((self.lower > 0) | (self.upper > 0) | (self.sliding > 0))


def attackers_of_table(table: Table) -> tuple[Attacker, ...]:
    """Return everybody the table's releases must withstand: at least the external attacker.

    Who describes an attacker of some cells does not mean that everybody else may know the others: unless one of
    the attackers must be kept from all that is sensitive, the external one is among them.
    """
    if any(a.sensitive is None for a in table.attackers):
        return table.attackers
    return (EXTERNAL, *table.attackers)


def table_with_respondent_attackers(table: Table) -> Table:
    """Return the table with its respondents among the attackers, where it knows them and nobody said otherwise.

    Who is alone in a cell knows it, whatever is published; who is one of two knows at least his part. Every
    method and the audit ask for this first, so that what one calls a success the other accepts.
    """
    found = any(attacker.derived for attacker in table.attackers)
    if table.insiders is False or found or not table.sensitive.any():
        return table
    from cellguard.data.insiders import can_tell_insiders, with_insiders

    return with_insiders(table) if can_tell_insiders(table) else table


def required_levels(table: Table, attacker: Attacker = EXTERNAL, *, everywhere: bool = False) -> Levels:
    """Return what a release must withstand: the attacker's levels, and the smallest width where there are none.

    Methods plan against a respondent near the cells he knows; with `everywhere` he is held off every sensitive cell
    that his own knowledge leaves open, which is what the audit asks.

    No level exceeds the room that the attacker's own knowledge leaves; of a cell that he knows, none can be met.

    >>> from cellguard.nouns.table import Table
    >>> t = Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0, 1], upper=[4, 0])
    >>> required_levels(t).sliding
    array([2.e-06, 5.e+00])
    >>> counts = Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], integer=True)
    >>> required_levels(counts).sliding
    array([2.])
    """
    need = table.levels(EXTERNAL if everywhere and attacker.derived else attacker)
    lo, hi = _bounds_known_to_attacker(table, attacker, need.cells)
    if everywhere and attacker.derived:
        unknown = hi > lo  # of what he is alone in nothing can be hidden from him
        need, lo, hi = need.some(unknown), lo[unknown], hi[unknown]
    cells = need.cells
    a = table.values[cells]
    sliding = np.where(need.any(), need.sliding, smallest_level_widths_of_table(table)[cells])
    lower, upper, least = need.lower, need.upper, LEAST_WIDTH * np.maximum(1.0, np.abs(a))
    if table.integer:
        lower, upper, sliding = (np.ceil(x * (1 - WHOLE_BOUND) - WHOLE_BOUND) for x in (lower, upper, sliding))
        least = np.ones(len(cells))
    return Levels(
        cells=cells,
        lower=np.minimum(lower, np.maximum(a - lo, 0.0)),
        upper=np.minimum(upper, np.maximum(hi - a, 0.0)),
        sliding=np.maximum(np.minimum(sliding, hi - lo), least),  # a cell that he knows already is never safe
    )


def _bounds_known_to_attacker(table: Table, attacker: Attacker, cells: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what the attacker knows of some cells before the release; cheap for one who knows few."""
    lo, hi = table.lb[cells], table.ub[cells]
    if len(attacker.cells) and len(cells):
        order = np.argsort(attacker.cells, kind="stable")
        mine = attacker.cells[order]
        place = np.minimum(np.searchsorted(mine, cells), len(mine) - 1)
        hit = mine[place] == cells
        lo[hit] = np.maximum(lo[hit], attacker.lb[order][place[hit]])
        hi[hit] = np.minimum(hi[hit], attacker.ub[order][place[hit]])
    return lo, hi


def movement_levels(table: Table, attacker: Attacker = EXTERNAL) -> Levels:
    """Return how far a changed value must be from the truth (castro2012 (1d)); infinite where no value fits.

    A published value x is safe outside ``(a - lower, a + upper)``. What the sliding level asks beyond
    both sides is added half to each, or where the known bounds leave room. A side without a level
    asks for as much as the other, so that x = a is never safe; a side without room for its distance is
    no way out at all.

    >>> from cellguard.nouns.table import Table
    >>> t = Table.from_equations([3, 9, 12], [[2, 0, 1]], sensitive=[0, 1], upper=[4, 0], sliding=[0, 6])
    >>> found = movement_levels(t)
    >>> found.lower, found.upper
    (array([inf,  3.]), array([4., 3.]))
    """
    need = required_levels(table, attacker)
    cells, lower, upper = need.cells, need.lower, need.upper
    a = table.values[cells]
    down, up = np.maximum(a - table.lb[cells], 0.0), np.maximum(table.ub[cells] - a, 0.0)
    missing = np.maximum(need.sliding - lower - upper, 0.0)
    half = np.floor(missing / 2.0) if table.integer else missing / 2.0
    more_down = np.minimum(half, np.maximum(down - lower, 0.0))
    more_up = np.minimum(missing - more_down, np.maximum(up - upper, 0.0))
    more_down = np.minimum(missing - more_up, np.maximum(down - lower, 0.0))
    # a sliding level that both sides meet up to rounding adds nothing
    noise = LEAST_WIDTH * np.maximum(1.0, np.abs(a))
    sides = [np.where(missing > noise, level + more, level) for level, more in ((lower, more_down), (upper, more_up))]
    lower, upper = np.where(sides[0] > 0, sides[0], sides[1]), np.where(sides[1] > 0, sides[1], sides[0])
    least = 1.0 if table.integer else noise
    lower, upper = np.maximum(lower, least), np.maximum(upper, least)
    lo, hi = _bounds_known_to_attacker(table, attacker, cells)
    open_ = hi > lo  # a cell that he knows already is never safe
    return Levels(
        cells=cells,
        lower=np.where(open_ & (lower <= down), lower, np.inf),
        upper=np.where(open_ & (upper <= up), upper, np.inf),
        sliding=np.zeros(len(cells)),
    )


# ---------------------------------------------------------------------- the smallest width


def smallest_level_widths_of_table(table: Table) -> FloatArray:
    """Return the width that each sensitive cell's range must have where no level says more; 0 for the others."""
    if table._smallest is None:
        object.__setattr__(table, "_smallest", _computed_level_widths_of_table(table))
    return table._smallest  # type: ignore[return-value]


_WIDTHS_FOLLOW_FROM = {"values", "relations", "rhs", "sensitive", "smallest_width", "integer"}
"""Fields of a table from which its smallest widths follow."""


def keep_level_widths_of_table(width: FloatArray, table: Table, changed: AbstractSet[str] = frozenset()) -> None:
    """Let a table have widths that are known: of a part of a table, those of the whole.

    Not where they follow from a field that changed, nor where somebody must be kept from a cell that has none.
    """
    asked = (a.sensitive for a in table.attackers if a.sensitive is not None)
    if not changed & _WIDTHS_FOLLOW_FROM and all((width[cells] > 0).all() for cells in asked):
        object.__setattr__(table, "_smallest", width)


def _computed_level_widths_of_table(table: Table) -> FloatArray:
    given, asked = table.smallest_width, _table_cells_needing_levels(table)
    if table.integer:  # of a large count, as of a magnitude, a share of it
        many = np.ceil(SHARE * np.abs(table.values)) if given is None else 0.0
        return np.where(asked, np.maximum(max(1.0, np.ceil((given or WHOLE_NUMBERS) - 1)), many), 0.0)
    share = SHARE if given is None else given
    width = np.where(asked, share * np.abs(table.values), 0.0)
    zeros = np.flatnonzero(asked & (table.values == 0))
    if len(zeros):
        width[zeros] = share * _table_sizes_around_zeros(table, zeros)
    return width


def _table_cells_needing_levels(table: Table) -> BoolArray:
    """Return the cells that must be protected against somebody."""
    asked = table.sensitive.copy()
    for attacker in table.attackers:
        if attacker.sensitive is not None:
            asked[attacker.sensitive] = True
    return asked


def _table_sizes_around_zeros(table: Table, cells: IntArray) -> FloatArray:
    """Return the middle size of the cells in a relation with each of some cells; the table's where all are 0."""
    size = np.abs(table.values)
    T = table.relations
    rows = T.tocsc()
    overall = float(np.median(size[size > 0])) if (size > 0).any() else 1.0
    out = np.full(len(cells), overall)
    for k, cell in enumerate(cells.tolist()):
        relations = rows.indices[rows.indptr[cell] : rows.indptr[cell + 1]]
        near = np.concatenate([T.indices[T.indptr[r] : T.indptr[r + 1]] for r in relations] or [cells[:0]])
        around = size[near]
        around = around[around > 0]
        if len(around):
            out[k] = np.median(around)
    return out
