"""What the levels of sensitive cells require of published numbers, attacker by attacker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellguard._engine.ranges.search.cuts import Separator
from cellguard._engine.ranges.sight import AskedRanges
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import LevelError
from cellguard.model.checks import refuse_cells
from cellguard.model.levels import Levels, compute_required_levels, list_attackers
from cellguard.model.table import Table

__all__ = [
    "Demand",
    "build_demands",
    "find_demanded_cells",
    "limit_published_values",
    "list_required_levels",
    "refuse_wide_demands",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand(Levels):
    """What one attacker must not narrow, and what they knew before."""

    lb: FloatArray
    """Known lower bound of every cell of the table."""
    ub: FloatArray
    """Known upper bound of every cell of the table."""

    def build_request(self, which: IntArray | slice = slice(None)) -> AskedRanges:
        """Return the request for some of its cells, by their places; by default for all of them."""
        return AskedRanges(self.cells[which], self.lower[which], self.upper[which], self.sliding[which])

    def build_separator(self, table: Table, free: BoolArray, which: IntArray | slice = slice(None)) -> Separator:
        """Return a separator that finds cuts for these cells, where cells in `free` may be published with slack."""
        known = table.values - self.lb, self.ub - table.values
        return Separator(table.relations, self.build_request(which), known=known, free=free)


def list_required_levels(table: Table) -> tuple[Levels, ...]:
    """Return the attackers that a release must resist, with their levels."""
    return tuple(compute_required_levels(table, attacker) for attacker in list_attackers(table))


def limit_published_values(
    demands: list[Demand], values: FloatArray, distance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and greatest published value of each cell that its own levels allow.

    The attacker sees ``v - d <= y <= v + d``; a level beyond that reach is missed regardless of what the other
    cells publish (the trivial fixings of salazar2004 section 3.1).
    """
    least, most = np.full(len(values), -np.inf), np.full(len(values), np.inf)
    for demand in demands:
        c, a, d = demand.cells, values[demand.cells], distance[demand.cells]
        np.maximum.at(least, c, np.where(demand.upper > 0, a + demand.upper - d, -np.inf))
        np.minimum.at(most, c, np.where(demand.lower > 0, a - demand.lower + d, np.inf))
        wide = demand.sliding > 0
        np.maximum.at(least, c, np.where(wide, demand.lb[c] + demand.sliding - d, -np.inf))
        np.minimum.at(most, c, np.where(wide, demand.ub[c] - demand.sliding + d, np.inf))
    return least, most


def refuse_wide_demands(table: Table, needs: Sequence[Levels], reach: FloatArray, what: str, hint: str) -> None:
    """Refuse levels wider than what is published allows: max(SPL, UPL + LPL) <= 2 r (salazar2004 section 4).

    `reach` is how far from its published value each cell may lie; `what` describes the range that is too narrow.
    """
    for need, attacker in zip(needs, list_attackers(table), strict=True):
        bad = np.zeros(table.n_cells, bool)
        bad[need.cells[need.width > 2 * reach[need.cells] * (1 + 1e-9)]] = True
        told = f"its levels against attacker {attacker.name!r} require a wider range than {what}"
        refuse_cells(table, bad, told, hint, LevelError)


def build_demands(table: Table, needs: Sequence[Levels]) -> list[Demand]:
    """Return what must be protected against each attacker of a table, and what they know; counts in whole numbers."""
    out = []
    for need, attacker in zip(needs, list_attackers(table), strict=True):
        lb, ub = table.bounds(attacker)
        if table.integer:
            lb, ub = np.ceil(lb - 1e-9), np.floor(ub + 1e-9)
        out.append(Demand(cells=need.cells, lower=need.lower, upper=need.upper, sliding=need.sliding, lb=lb, ub=ub))
    return out


def find_demanded_cells(n_cells: int, needs: Sequence[Levels]) -> BoolArray:
    """Return the cells that need protection: they are never published unchanged."""
    asked = np.zeros(n_cells, np.bool_)
    for need in needs:
        asked[need.cells[need.any()]] = True
    return asked
