"""When the senses leave no table: flip some of them, or let totals change (castro2004 sections 2 and 5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.distance import Distance, Target
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.adjust.senses import Need
from cellguard.nouns.table import Table

__all__ = ["REPAIRS", "bounded_totals", "flipped", "room_of", "with_cells_freed"]

REPAIRS = ("senses", "relations")

_PRICE = 1e3
"""A fixed cell costs so many times more to change than the most expensive other one."""


def flipped(
    adjuster: Adjuster,
    room: tuple[FloatArray, FloatArray],
    need: Need,
    up: BoolArray,
    distance: Distance,
    deadline: Deadline,
) -> Iterator[BoolArray]:
    """Yield senses that may leave a table, with few flips: the quickest to find first, those of a program last."""
    if (need.cells & adjuster.reduction.determined).any():  # whichever way, such a cell cannot move
        return
    yield from Senses(adjuster, room, need.lower, need.upper, distance).near(up, deadline)


def room_of(table: Table) -> tuple[FloatArray, FloatArray]:
    """Return how far the known bounds let each cell go down (at most 0) and up; fixed cells nowhere."""
    low, high = np.minimum(table.lb - table.values, 0.0), np.maximum(table.ub - table.values, 0.0)
    return np.where(table.fixed, 0.0, low), np.where(table.fixed, 0.0, high)


def bounded_totals(table: Table) -> BoolArray:
    """Return the totals that are neither fixed nor sensitive, and whose known bounds may be in the way."""
    total = np.zeros(table.n_cells, bool)
    total[table.relations.indices[table.relations.data < 0]] = True
    return total & ~table.fixed & ~table.sensitive & (np.isfinite(table.lb) | np.isfinite(table.ub))


def with_cells_freed(
    table: Table, bounds: tuple[FloatArray, FloatArray], distance: Distance, unbounded: BoolArray
) -> Target:
    """Return bounds and prices of the problem in which fixed cells may change too, at a large price.

    A relation whose total is fixed is relaxed by as much as the total changes, and still holds. Totals in `unbounded`
    lose their bounds, at the same price: with a large penalty for changes of margins there is always a table
    (castro2004 section 5), unless inner cells themselves have no room.
    """
    d, free = distance, ~table.fixed & ~unbounded
    needed = np.maximum(bounds[0], -bounds[1])
    needed = needed[np.isfinite(needed) & (needed > 0)]
    typical = float(np.median(needed)) if len(needed) else 1.0
    marginal = (d.absolute + d.largest + 2.0 * d.square * typical)[free]
    prices = Distance(
        # a price per unit, whatever the norm: only so cells that need not change do not change at all
        absolute=np.where(free, d.absolute, _PRICE * max(float(marginal.max(initial=0.0)), 1e-300)),
        square=np.where(free, d.square, 0.0),
        largest=np.where(free, d.largest, 0.0),
        group=d.group,
    )
    low = np.where(table.fixed, np.minimum(table.lb - table.values, 0.0), bounds[0])
    high = np.where(table.fixed, np.maximum(table.ub - table.values, 0.0), bounds[1])
    return Target(np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high), prices)
