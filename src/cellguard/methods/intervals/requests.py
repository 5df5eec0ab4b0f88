"""What must be hidden from whom, as movements of cells and of the variables that are left after reduction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard.nouns.attacker import Attacker
from cellguard.nouns.levels import attackers_of, required_levels
from cellguard.nouns.table import FloatArray, IntArray, Table

if TYPE_CHECKING:
    from cellguard._engine.space.network import Network
    from cellguard._engine.space.reduce import Merged
    from cellguard.methods.intervals.interior import Requests
    from cellguard.methods.intervals.network_widths import Asked

__all__ = ["Need", "Variables", "needs", "splits_sliding_levels"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Need:
    """Movements that one attacker must hold possible."""

    attacker: Attacker
    cell: IntArray
    sign: FloatArray
    level: FloatArray


def needs(table: Table) -> list[Need]:
    """Every attacker's levels as movements up and down; sliding levels as the parts that are missing.

    A sliding level larger than lower and upper together is split in their proportion (evenly when
    both are 0): safe, and optimal when the levels are symmetric.
    """
    out = []
    for attacker in attackers_of(table):
        need = required_levels(table, attacker)
        both = need.lower + need.upper
        grow = np.where(need.sliding > both, need.sliding / np.where(both > 0, both, 1.0), 1.0)
        lo, _ = table.bounds(attacker)
        lower = np.where(both > 0, need.lower * grow, need.sliding / 2)
        lower = np.minimum(lower, np.maximum(table.values[need.cells] - lo[need.cells], need.lower))
        upper = np.maximum(need.upper, np.where(need.sliding > both, need.sliding - lower, 0.0))
        cells = np.concatenate([need.cells, need.cells])
        sign = np.repeat([1.0, -1.0], len(need.cells))
        level = np.concatenate([upper, lower])
        keep = level > 0
        out.append(Need(attacker=attacker, cell=cells[keep], sign=sign[keep], level=level[keep]))
    return out


def splits_sliding_levels(table: Table) -> bool:
    """Whether some sliding level asks for more than the other two, in a way that `needs` has to choose."""
    for attacker in attackers_of(table):
        need = required_levels(table, attacker)
        chosen = (need.sliding > need.lower + need.upper) & (need.lower != need.upper)
        if chosen.any():
            return True
    return False


class Variables:
    """The needs in the merged variables of a reduction, the limits of their widths, and the way back to cells."""

    def __init__(self, table: Table, weight: FloatArray, merged: Merged) -> None:
        self.table, self.merged = table, merged
        self.weight = abs(merged.lift).T @ weight
        self.most_lower, self.most_upper = merged.room(table.values - table.lb, table.ub - table.values)
        asked = needs(table)
        self.stuck = any((merged.variable[need.cell] < 0).any() for need in asked)
        """Whether some cell that must be hidden cannot move."""
        plain = [need for need in asked if not len(need.attacker.cells)]
        self._own = [need for need in asked if len(need.attacker.cells)]
        self._groups = [self._movements(plain)] if plain else []
        self.symmetric = not self._own and bool(plain) and self._mirrored(*self._groups[0][:3])
        self._groups += [self._movements([need]) for need in self._own]
        every = [*self._groups, (np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0, np.int64))]
        self.cell: IntArray = np.concatenate([group[0] for group in every])
        self.sign: FloatArray = np.concatenate([group[1] for group in every])
        self.level: FloatArray = np.concatenate([group[2] for group in every])
        self.origin: IntArray = np.concatenate([group[3] for group in every])

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def external(self) -> bool:
        """Whether no attacker knows more than the table's bounds."""
        return not self._own

    def _movements(self, group: list[Need]) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """Variable, direction and level of each movement, and the cell that asks for it: the largest of each kind."""
        cell = np.concatenate([need.cell for need in group])
        sign, level = np.concatenate([need.sign for need in group]), np.concatenate([need.level for need in group])
        variable = self.merged.variable[cell]
        moves = np.flatnonzero(variable >= 0)
        cell, variable, sign, level = cell[moves], variable[moves], sign[moves], level[moves]
        ratio = np.asarray(self.merged.lift[cell, variable]).ravel() if len(cell) else np.zeros(0)
        level, sign = level / np.abs(ratio), np.where(sign * ratio > 0, 1.0, -1.0)
        order = np.lexsort((cell, -level, variable, -sign))  # upward first, the largest level of a variable first
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(variable[order]) != 0) | (np.diff(sign[order]) != 0)
        at = order[first]
        return variable[at], sign[at], level[at], cell[at]

    @staticmethod
    def _mirrored(cell: IntArray, sign: FloatArray, level: FloatArray) -> bool:
        """Whether every movement upward is asked for downward, too, and as far."""
        up, down = sign > 0, sign < 0
        return np.array_equal(cell[up], cell[down]) and np.allclose(level[up], level[down], rtol=1e-9, atol=0.0)

    def requests(self, tied: bool) -> Requests:
        """Movements that must be possible; with one width for both sides the upward ones stand for both."""
        from cellguard.methods.intervals.interior import Requests

        at = self._asked(tied)
        return Requests(cell=self.cell[at], sign=self.sign[at], level=self.level[at])

    def _asked(self, tied: bool) -> IntArray:
        return np.flatnonzero(self.sign > 0) if tied else np.arange(len(self.cell))

    def asked_of(self, network: Network) -> Iterator[Asked]:
        """Each attacker's movements as those of a network's arcs."""
        from cellguard.methods.intervals.network_widths import Asked

        t = self.table
        arc = np.full(t.n_cells, -1, np.int64)
        arc[network.cells] = np.arange(len(network.cells))
        for need in needs(t):
            below, above = self._known(need.attacker)
            yield Asked(
                arc=arc[need.cell], sign=need.sign, level=need.level,
                above=above[network.cells], below=below[network.cells],
            )  # fmt: skip

    def own_limits(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Limits of each request's movement, down and up: what its own attacker knew before."""
        if not self._own:
            return None, None
        shape = len(self), len(self.merged.cells)
        lower, upper = np.full(shape, np.inf), np.full(shape, np.inf)
        start = len(self) - sum(len(group[0]) for group in self._groups[-len(self._own) :])
        for need, group in zip(self._own, self._groups[-len(self._own) :], strict=True):
            stop = start + len(group[0])
            lower[start:stop], upper[start:stop] = self.merged.room(*self._known(need.attacker))
            start = stop
        return lower, upper

    def _known(self, attacker: Attacker) -> tuple[FloatArray, FloatArray]:
        """How far down and up an attacker knew beforehand that each cell moves; infinite where he knew no more."""
        t = self.table
        lo, hi = t.bounds(attacker)
        known = np.zeros(t.n_cells, np.bool_)
        known[attacker.cells] = True
        return np.where(known, t.values - lo, np.inf), np.where(known, hi - t.values, np.inf)
