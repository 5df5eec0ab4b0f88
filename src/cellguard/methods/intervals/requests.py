"""What must be hidden from whom, as movements of cells and of the variables that are left after reduction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.nouns.attacker import Attacker
from cellguard.nouns.levels import attackers_of, required_levels
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard._engine.space.network import Network
    from cellguard._engine.space.space import Space
    from cellguard.methods.intervals.interior import WidthRequests
    from cellguard.methods.intervals.network_widths import AskedArcs

__all__ = ["Variables", "WidthNeed", "needs"]


@dataclass(frozen=True, kw_only=True, eq=False)
class WidthNeed:
    """Movements that one attacker must hold possible: up and down of the same cells.

    What a sliding level asks beyond the other two may be on either side: `level` has it divided.
    """

    attacker: Attacker
    cell: IntArray
    sign: FloatArray
    level: FloatArray
    """How far the cell must move."""
    base: FloatArray
    """How far at least, however sliding levels are divided."""
    total: FloatArray
    """How far both directions of the cell must reach together; the same in both."""


def needs(table: Table) -> list[WidthNeed]:
    """Every attacker's levels as movements up and down.

    A sliding level larger than lower and upper together is divided in their proportion (evenly when both are 0),
    within the known bounds: safe, optimal when the levels are symmetric and no bound is felt, and otherwise a choice.
    """
    out = []
    for attacker in attackers_of(table):
        need = required_levels(table, attacker)
        lo, hi = (bound[need.cells] for bound in table.bounds(attacker))
        a = table.values[need.cells]
        both = need.lower + need.upper
        total = np.maximum(need.sliding, both)
        # what one side has no room for is left to the other
        base = np.maximum(need.upper, total - (a - lo)), np.maximum(need.lower, total - (hi - a))
        share = np.where(both > 0, need.upper / np.where(both > 0, both, 1.0), 0.5)
        upper = np.clip(share * total, base[0], np.maximum(total - base[1], base[0]))
        level = np.concatenate([upper, np.maximum(total - upper, base[1])])
        slides = total > base[0] + base[1]  # a side that gets nothing of it here may get some elsewhere
        keep = (level > 0) | np.concatenate([slides, slides])
        out.append(
            WidthNeed(
                attacker=attacker,
                cell=np.concatenate([need.cells, need.cells])[keep],
                sign=np.repeat([1.0, -1.0], len(need.cells))[keep],
                level=level[keep],
                base=np.concatenate(base)[keep],
                total=np.concatenate([total, total])[keep],
            )
        )
    return out


class Variables:
    """The needs in the space variables of a reduction, the limits of their widths, and the way back to cells."""

    def __init__(self, table: Table, weight: FloatArray, space: Space) -> None:
        self.table, self.space = table, space
        self.weight = abs(space.lift).T @ weight
        self.most_lower, self.most_upper = space.room(table.values - table.lb, table.ub - table.values)
        asked = needs(table)
        self.stuck = any((space.variable_of[need.cell] < 0).any() for need in asked)
        """Whether some cell that must be hidden cannot move."""
        plain = [need for need in asked if not len(need.attacker.cells)]
        self._own = [need for need in asked if len(need.attacker.cells)]
        own = [self._movements([need], owner) for owner, need in enumerate(self._own, start=1)]
        groups = [self._movements(plain, 0)] if plain else []
        self.symmetric = not own and bool(plain) and self._mirrored(groups[0])
        self._sizes = [len(group) for group in own]
        self.group = _joined_requests([*groups, *own])

    def __len__(self) -> int:
        return len(self.group.cell)

    def _movements(self, group: list[WidthNeed], owner: int) -> WidthRequests:
        """Movements of the variables, upward first: the largest of each kind."""
        from cellguard.methods.intervals.interior import WidthRequests

        cell, sign, level, base, total = (
            np.concatenate([getattr(need, name) for need in group])
            for name in ("cell", "sign", "level", "base", "total")
        )
        n = len(self.space)
        variable = self.space.variable_of[cell]
        moves = np.flatnonzero(variable >= 0)
        cell, variable, sign = cell[moves], variable[moves], sign[moves]
        ratio = self.space.reduction.ratio[cell]
        size, side = np.abs(ratio), np.where(sign * ratio > 0, 0, 1)  # 0 upward
        most, least, both = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
        np.maximum.at(most, (side, variable), level[moves] / size)
        np.maximum.at(least, (side, variable), base[moves] / size)
        np.maximum.at(both, variable, total[moves] / size)
        side, variable = np.nonzero(most > 0)
        return WidthRequests(
            cell=variable, sign=np.where(side == 0, 1.0, -1.0), level=most[side, variable],
            base=least[side, variable], total=both[variable], owner=np.full(len(variable), owner, np.int64),
        )  # fmt: skip

    @staticmethod
    def _mirrored(group: WidthRequests) -> bool:
        """Whether every movement upward is asked for downward, too, and as far."""
        up, down = group.sign > 0, group.sign < 0
        return np.array_equal(group.cell[up], group.cell[down]) and np.allclose(
            group.level[up], group.level[down], rtol=1e-9, atol=0.0
        )

    def requests(self, tied: bool) -> WidthRequests:
        """Movements that must be possible; with one width for both sides the upward ones stand for both."""
        from cellguard.methods.intervals.interior import WidthRequests

        if not tied:
            return self.group
        at = np.flatnonzero(self.group.sign > 0)
        # an even division of what slides is then optimal: average a solution with its mirror image
        level, owner = self.group.level[at], self.group.owner[at]
        cell, sign = self.group.cell[at], self.group.sign[at]
        return WidthRequests(cell=cell, sign=sign, level=level, base=level, total=level, owner=owner)

    def asked_of(self, network: Network) -> Iterator[AskedArcs]:
        """Each attacker's movements as those of a network's arcs."""
        from cellguard.methods.intervals.network_widths import AskedArcs

        t = self.table
        arc = np.full(t.n_cells, -1, np.int64)
        arc[network.cells] = np.arange(len(network.cells))
        for need in needs(t):
            below, above = self._known(need.attacker)
            yield AskedArcs(
                arc=arc[need.cell], sign=need.sign, level=need.level, base=need.base, total=need.total,
                above=above[network.cells], below=below[network.cells],
            )  # fmt: skip

    def own_limits(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Limits of each request's movement, down and up: what its own attacker knew before."""
        if not self._own:
            return None, None
        shape = len(self), len(self.space)
        lower, upper = np.full(shape, np.inf), np.full(shape, np.inf)
        start = len(self) - sum(self._sizes)
        for need, size in zip(self._own, self._sizes, strict=True):
            stop = start + size
            lower[start:stop], upper[start:stop] = self.space.room(*self._known(need.attacker))
            start = stop
        return lower, upper

    def _known(self, attacker: Attacker) -> tuple[FloatArray, FloatArray]:
        """How far down and up an attacker knew beforehand that each cell moves; infinite where he knew no more."""
        t = self.table
        lo, hi = t.bounds(attacker)
        known = np.zeros(t.n_cells, np.bool_)
        known[attacker.cells] = True
        return np.where(known, t.values - lo, np.inf), np.where(known, hi - t.values, np.inf)


def _joined_requests(groups: list[WidthRequests]) -> WidthRequests:
    from cellguard.methods.intervals.interior import WidthRequests

    def every(name: str, dtype: type) -> Any:
        return np.concatenate([np.zeros(0, dtype), *(getattr(group, name) for group in groups)])

    whole = {name: every(name, np.int64) for name in ("cell", "owner")}
    return WidthRequests(**whole, **{name: every(name, np.float64) for name in ("sign", "level", "base", "total")})
