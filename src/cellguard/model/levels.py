"""The protection that a sensitive cell requires: the definition of safe shared by methods, audit and verify.

A sensitive cell is never published unchanged. No attacker can infer it exactly, or more precisely than
its protection levels. A rule may flag a cell without measuring how much protection it needs; the levels are
then zero. Zero levels do not count as met: the cell's range must have the **smallest width** instead:

- for a count, as many whole numbers as a threshold rule of 3 distinguishes (`WHOLE_NUMBERS`, or what the rule says);
  for a large count, a share of it;
- for a magnitude, a share of the value (`SHARE`);
- for a zero, the same share of the values around it: a published zero reveals what every contributor gave.

Where only whole numbers are possible, levels are whole: a range 0.4 wide around a count contains no other count.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._hooks import call_hook
from cellguard._tolerances import WHOLE_BOUND
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.parts.sums import add_up_lower_bounds

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = [
    "LEAST_WIDTH",
    "MAX_WHOLE_LEVEL",
    "Levels",
    "add_respondents",
    "compute_movement_levels",
    "compute_required_levels",
    "get_smallest_widths",
    "keep_level_widths_of_table",
    "list_attackers",
    "scale_rising_surplus",
]  # fmt: skip


LEAST_WIDTH = 1e-7
"""A range narrower than this share of the value is an exact disclosure."""
WHOLE_NUMBERS = 3.0
"""Number of whole numbers that stay possible for a sensitive count without levels: the usual threshold."""
MAX_WHOLE_LEVEL = 5.0
"""Levels of fewer units are required in whole numbers where values are whole."""
SHARE = 0.1
"""Width of the range of a sensitive magnitude without levels, as a share of its value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """The protection required against one attacker: cells and their three levels (salazar2004 section 2)."""

    cells: IntArray
    """Indices of the cells to protect."""
    lower: FloatArray
    """The range must reach down to value - lower."""
    upper: FloatArray
    """The range must reach up to value + upper."""
    sliding: FloatArray
    """The range must be at least this wide."""

    def select(self, which: BoolArray | IntArray) -> Levels:
        """Return the requirement for some of the cells."""
        return Levels(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def width(self) -> FloatArray:
        """Required width of each cell's range, regardless of its position."""
        return np.maximum(self.sliding, self.lower + self.upper)

    def any(self) -> BoolArray:
        """Return which of the cells have a level."""
        return np.asarray((self.lower > 0) | (self.upper > 0) | (self.sliding > 0))


def list_attackers(table: Table) -> tuple[Attacker, ...]:
    """Return every attacker against whom a release must be safe; the external attacker is always included.

    Describing an attacker does not exempt the release from protecting against all others. An attacker who already
    knows a cell leaves little of it to protect, and the external attacker must not learn as much.
    """
    if any(_is_external(attacker) for attacker in table.attackers):
        return table.attackers
    taken = any(attacker.name == EXTERNAL.name for attacker in table.attackers)  # another attacker has the name
    return (replace(EXTERNAL, name="external attacker") if taken else EXTERNAL, *table.attackers)


def _is_external(attacker: Attacker) -> bool:
    """Return whether this is the external attacker: without knowledge, and kept from every sensitive cell.

    The name counts too: in a cluster of a publication a described attacker may know nothing, but is still described.
    """
    return attacker.name == EXTERNAL.name and len(attacker.cells) == 0 and attacker.sensitive is None


def add_respondents(table: Table) -> Table:
    """Return the table with all prior knowledge of attackers (:func:`cellguard.attackers.derive.derive_attackers`)."""
    known: Table = call_hook("derive_attackers", table)
    return known


def compute_required_levels(table: Table, attacker: Attacker = EXTERNAL, *, everywhere: bool = False) -> Levels:
    """Return the required protection: the attacker's levels, and the smallest width where there are none.

    Methods plan against a respondent near the cells they know. With `everywhere`, every sensitive cell that the
    respondent's own knowledge leaves open is protected against them, as the audit requires.

    No level exceeds the slack that the attacker's own knowledge leaves. No level can be met for a cell they know.

    >>> from cellguard.model.table import Table
    >>> t = Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0, 1], upper=[4, 0])
    >>> compute_required_levels(t).sliding
    array([2.e-06, 5.e+00])
    >>> counts = Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], integer=True)
    >>> compute_required_levels(counts).sliding
    array([2.])
    """
    need = table.levels(EXTERNAL if everywhere and attacker.derived else attacker)
    if everywhere and attacker.only is not None:
        need = need.select(np.isin(need.cells, attacker.only))
    known = _add_up_description(table, attacker)
    lo, hi = attacker.tighten_certainly(need.cells, known[need.cells], table.ub[need.cells])
    if everywhere and attacker.derived:
        unknown = hi > lo  # a cell that the attacker contributes to alone cannot be hidden from them
        need, lo, hi = need.select(unknown), lo[unknown], hi[unknown]
    cells = need.cells
    a = table.values[cells]
    reach = a - lo
    lower = np.minimum(need.lower, np.maximum(reach, 0.0))
    upper = np.minimum(need.upper, np.maximum(hi - a, 0.0))
    asked = (lower > 0) | (upper > 0) | (need.sliding > 0)  # a side without slack becomes a required width
    sliding = np.where(asked, need.sliding, get_smallest_widths(table)[cells])
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(a))
    counts = table.count_cells[cells]
    whole = counts | (table.whole_cells[cells] & (np.maximum(np.maximum(lower, upper), sliding) < MAX_WHOLE_LEVEL))
    if whole.any():
        lower, upper, sliding = (
            np.where(whole, np.ceil(x * (1 - WHOLE_BOUND) - WHOLE_BOUND), x) for x in (lower, upper, sliding)
        )
        least = np.where(whole, 1.0, least)
    return Levels(
        cells=cells,
        lower=np.minimum(lower, np.maximum(reach, 0.0)),
        upper=np.minimum(upper, np.maximum(hi - a, 0.0)),
        sliding=np.maximum(np.minimum(sliding, hi - lo), least),  # a cell that the attacker already knows is never safe
    )


def _add_up_description(table: Table, attacker: Attacker) -> FloatArray:
    """Return the lower bounds that a described attacker knows before the release, after adding up.

    Who knows a part of a total knows the total at least as well, whatever is published. Contributors who were derived
    from the table have added up already.
    """
    if attacker.derived or not len(attacker.cells) or not table.has_public_knowledge:
        return table.lb
    lb = table.lb.copy()
    lb[attacker.cells] = np.maximum(lb[attacker.cells], np.minimum(attacker.lb, table.values[attacker.cells]))
    return add_up_lower_bounds(table, lb, table.fixed & (table.values == 0))


def compute_movement_levels(table: Table, attacker: Attacker = EXTERNAL) -> Levels:
    """Return how far a changed value must be from the true value (castro2012 (1d)); infinite where no value fits.

    A published value x is safe outside ``(a - lower, a + upper)``. If the sliding level requires more than
    both sides, half of the excess is added to each, or as the known bounds allow. A side without a level
    requires as much as the other, so that x = a is never safe. A side without slack for its distance cannot
    be used.

    >>> from cellguard.model.table import Table
    >>> t = Table.from_equations([3, 9, 12], [[2, 0, 1]], sensitive=[0, 1], upper=[4, 0], sliding=[0, 6])
    >>> found = compute_movement_levels(t)
    >>> found.lower, found.upper
    (array([inf,  3.]), array([4., 3.]))
    """
    need = compute_required_levels(table, attacker)
    cells, lower, upper = need.cells, need.lower, need.upper
    a = table.values[cells]
    down, up = np.maximum(a - table.lb[cells], 0.0), np.maximum(table.ub[cells] - a, 0.0)
    missing = np.maximum(need.sliding - lower - upper, 0.0)
    counts = table.count_cells[cells]
    half = np.where(counts, np.floor(missing / 2.0), missing / 2.0)
    more_down = np.minimum(half, np.maximum(down - lower, 0.0))
    more_up = np.minimum(missing - more_down, np.maximum(up - upper, 0.0))
    more_down = np.minimum(missing - more_up, np.maximum(down - lower, 0.0))
    # a sliding level that both sides meet up to rounding adds nothing
    noise = LEAST_WIDTH * np.maximum(1.0, np.abs(a))
    sides = [np.where(missing > noise, level + more, level) for level, more in ((lower, more_down), (upper, more_up))]
    lower, upper = np.where(sides[0] > 0, sides[0], sides[1]), np.where(sides[1] > 0, sides[1], sides[0])
    least = np.where(counts, 1.0, noise)
    lower, upper = np.maximum(lower, least), np.maximum(upper, least)
    lo, hi = attacker.tighten(cells, table.lb[cells], table.ub[cells])
    open_ = hi > lo  # a cell that the attacker already knows is never safe
    return Levels(
        cells=cells,
        lower=np.where(open_ & (lower <= down), lower, np.inf),
        upper=np.where(open_ & (upper <= up), upper, np.inf),
        sliding=np.zeros(len(cells)),
    )


# ---------------------------------------------------------------------- the smallest width


def get_smallest_widths(table: Table) -> FloatArray:
    """Return the required width of each sensitive cell's range where no level requires more; 0 for other cells."""
    if table._smallest is None:
        object.__setattr__(table, "_smallest", _compute_smallest_widths(table))
    return table._smallest  # type: ignore[return-value]


_WIDTHS_FOLLOW_FROM = {"values", "relations", "rhs", "sensitive", "smallest_width", "integer", "counted"}
"""Fields of a table that determine its smallest widths."""


def keep_level_widths_of_table(width: FloatArray, table: Table, changed: AbstractSet[str] = frozenset()) -> None:
    """Give a table known smallest widths; a part of a table takes those of the whole.

    Do nothing if they depend on a field that changed, or if an attacker must be kept from a cell without a width.
    """
    asked = (a.sensitive for a in table.attackers if a.sensitive is not None)
    if not changed & _WIDTHS_FOLLOW_FROM and all((width[cells] > 0).all() for cells in asked):
        object.__setattr__(table, "_smallest", width)


def _compute_smallest_widths(table: Table) -> FloatArray:
    asked, counts = _find_protected_cells(table), table.count_cells
    numbers, share = table.smallest_width_of_counts, table.smallest_width_of_others
    # for a large count, a share of it, as for a magnitude
    many = np.ceil(SHARE * np.abs(table.values)) if numbers is None else 0.0
    of_counts = np.maximum(max(1.0, np.ceil((numbers or WHOLE_NUMBERS) - 1)), many)
    share = SHARE if share is None else share
    width = np.where(asked, np.where(counts, of_counts, share * np.abs(table.values)), 0.0)
    zeros = np.flatnonzero(asked & ~counts & (table.values == 0))
    if len(zeros):
        width[zeros] = share * _measure_neighbours(table, zeros)
    return width


def _find_protected_cells(table: Table) -> BoolArray:
    """Return the cells that must be protected against at least one attacker."""
    asked = table.sensitive.copy()
    for attacker in table.attackers:
        if attacker.sensitive is not None:
            asked[attacker.sensitive] = True
    return asked


def _measure_neighbours(table: Table, cells: IntArray) -> FloatArray:
    """Return the median size of the cells that share a relation with each given cell; the table's if all are 0."""
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


MAX_RISING_FACTOR = 4.0
"""Largest growth factor of a surplus: enough for lower and upper levels of up to a third of the value each."""


def scale_rising_surplus(value: FloatArray, upper: FloatArray, width: FloatArray) -> FloatArray:
    """Return the factor by which a surplus of `width` must grow in a cell that every attacker knows to have risen.

    For a cell published as ``x = a (1 + q + u e)`` with a secret u in [0, 1], the values from ``x / (1 + q + e)`` to
    ``x / (1 + q)`` stay possible: a width of at least ``a e / (1 + q + e)``, which is less than ``a e``. The width is
    at least ``a d`` for every u when ``e = d (1 + q) / (1 - d)``. For a cell that fell, ``e = d`` is enough.

    >>> scale_rising_surplus(np.array([100.0]), np.array([10.0]), np.array([20.0]))
    array([1.375])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(value > width, (value + upper) / (value - width), MAX_RISING_FACTOR)
    return np.where(value > 0, np.clip(factor, 1.0, MAX_RISING_FACTOR), 1.0)
