"""What must be hidden from which attacker, as movements of cells and of the variables that remain after reduction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from cellguard._engine.space.groups import place_in_group
from cellguard._engine.space.network import Network
from cellguard._engine.space.space import Space
from cellguard._types import FloatArray, IntArray
from cellguard.model.attacker import Attacker
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.table import Table

__all__ = ["AskedArcs", "Variables", "WidthNeed", "WidthRequests", "needs_of_intervals"]


@dataclass(frozen=True, kw_only=True, eq=False)
class _AskedMovements:
    """Movements that must stay possible: each moves `cell[k]` by at least `level[k]` in the direction `sign[k]`.

    The part of a sliding level beyond the other two may be on either side: `level` has one of many ways to divide it.
    """

    cell: IntArray
    """The cell that moves, or the variable or arc that represents it."""
    sign: FloatArray
    level: FloatArray
    """How far it must move."""
    base: FloatArray
    """Minimum movement regardless of how sliding levels are divided; both directions together reach ..."""
    total: FloatArray
    """... this, the same in both."""

    def __len__(self) -> int:
        return len(self.cell)

    def _split_pairs(self, key: IntArray, noise: float) -> tuple[IntArray, IntArray, FloatArray]:
        """Return pairs of one key, up and down, that share a sliding level, and how much they share."""
        up, down = np.flatnonzero(self.sign > 0), np.flatnonzero(self.sign < 0)
        _, one, other = np.intersect1d(key[up], key[down], return_indices=True)
        one, other = up[one], down[other]
        slide = self.total[one] - self.base[one] - self.base[other]
        some = slide > noise * self.total[one]
        return one[some], other[some], slide[some]


@dataclass(frozen=True, kw_only=True, eq=False)
class WidthNeed(_AskedMovements):
    """Movements of cells that one attacker must consider possible."""

    attacker: Attacker


@dataclass(frozen=True, kw_only=True, eq=False)
class WidthRequests(_AskedMovements):
    """Movements of variables, against all attackers."""

    owner: IntArray
    """The attacker who must not narrow it; a sliding level couples only the directions of one attacker."""

    def list_divided(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return pairs of requests, up and down, that share a sliding level, and how much they share."""
        return self._split_pairs(self.owner * (int(self.cell.max(initial=0)) + 1) + self.cell, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedArcs(_AskedMovements):
    """Movements of arcs that one attacker must consider possible, and how far they knew before that each arc moves."""

    above: FloatArray
    below: FloatArray

    def list_divided(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return pairs of movements, up and down, that share a sliding level, and how much they share."""
        return self._split_pairs(self.cell, 1e-9)


def needs_of_intervals(table: Table) -> list[WidthNeed]:
    """Return every attacker's levels as movements up and down.

    A sliding level larger than lower and upper together is divided in their proportion (evenly when both are 0),
    within the known bounds: safe, optimal if the levels are symmetric and no bound is active, otherwise a choice.
    """
    out = []
    for attacker in list_attackers(table):
        need = compute_required_levels(table, attacker)
        lo, hi = (bound[need.cells] for bound in table.bounds(attacker))
        a = table.values[need.cells]
        both = need.lower + need.upper
        total = np.maximum(need.sliding, both)
        # what does not fit on one side goes to the other
        base = np.maximum(need.upper, total - (a - lo)), np.maximum(need.lower, total - (hi - a))
        share = np.where(both > 0, need.upper / np.where(both > 0, both, 1.0), 0.5)
        upper = np.clip(share * total, base[0], np.maximum(total - base[1], base[0]))
        level = np.concatenate([upper, np.maximum(total - upper, base[1])])
        slides = total > base[0] + base[1]  # a side that gets nothing here may get some elsewhere
        keep = (level > 0) | np.tile(slides, 2)
        out.append(
            WidthNeed(
                attacker=attacker,
                cell=np.tile(need.cells, 2)[keep],
                sign=np.repeat([1.0, -1.0], len(need.cells))[keep],
                level=level[keep],
                base=np.concatenate(base)[keep],
                total=np.tile(total, 2)[keep],
            )
        )
    return out


class Variables:
    """The required movements in the variables of a reduction, the limits of their widths, and the way back to cells."""

    def __init__(self, table: Table, weight: FloatArray, space: Space) -> None:
        self.table, self.space = table, space
        self.weight = abs(space.lift).T @ weight
        self.most_lower, self.most_upper = space.compute_slack(table.values - table.lb, table.ub - table.values)
        self.asked = needs_of_intervals(table)
        self.stuck = any((space.variable_of[need.cell] < 0).any() for need in self.asked)
        """Whether a cell that must be hidden cannot move."""
        self._own = [need for need in self.asked if len(need.attacker.cells)]
        plain = [need for need in self.asked if not len(need.attacker.cells)]
        groups = [
            self._list_movements(group, owner) for owner, group in enumerate([plain, *([need] for need in self._own)])
        ]
        self.symmetric = not self._own and _are_requests_symmetric(groups[0])
        self.group = WidthRequests(
            **{part.name: np.concatenate([getattr(g, part.name) for g in groups]) for part in fields(WidthRequests)}
        )

    def __len__(self) -> int:
        return len(self.group)

    def _list_movements(self, group: list[WidthNeed], owner: int) -> WidthRequests:
        """Return the movements of the variables, upward first: the largest of each kind."""
        n, ratio = len(self.space), self.space.reduction.ratio
        most, least, both = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
        for need in group:
            moves = np.flatnonzero(self.space.variable_of[need.cell] >= 0)
            cell = need.cell[moves]
            variable, size = self.space.variable_of[cell], np.abs(ratio[cell])
            side = np.where(need.sign[moves] * ratio[cell] > 0, 0, 1)  # 0 upward
            np.maximum.at(most, (side, variable), need.level[moves] / size)
            np.maximum.at(least, (side, variable), need.base[moves] / size)
            np.maximum.at(both, variable, need.total[moves] / size)
        side, variable = np.nonzero(most > 0)
        return WidthRequests(
            cell=variable, sign=np.where(side == 0, 1.0, -1.0), level=most[side, variable],
            base=least[side, variable], total=both[variable], owner=np.full(len(variable), owner, np.int64),
        )  # fmt: skip

    def list_requests(self, tied: bool) -> WidthRequests:
        """Return the movements that must be possible; with one width for both sides, the upward ones represent both."""
        if not tied:
            return self.group
        at = np.flatnonzero(self.group.sign > 0)
        # dividing sliding levels evenly is then optimal: average a solution with its mirror image
        cell, sign, level, owner = (getattr(self.group, name)[at] for name in ("cell", "sign", "level", "owner"))
        return WidthRequests(cell=cell, sign=sign, level=level, base=level, total=level, owner=owner)

    def translate_to_network(self, network: Network) -> Iterator[AskedArcs]:
        """Return each attacker's movements as movements of a network's arcs."""
        arc = place_in_group(network.cells, self.table.n_cells)
        for need in self.asked:
            below, above = self._get_known(need.attacker)
            yield AskedArcs(
                cell=arc[need.cell], sign=need.sign, level=need.level, base=need.base, total=need.total,
                above=above[network.cells], below=below[network.cells],
            )  # fmt: skip

    def compute_own_limits(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the limits of each request's movement, down and up: what its own attacker knew before."""
        if not self._own:
            return None, None
        shape = len(self), len(self.space)
        lower, upper = np.full(shape, np.inf), np.full(shape, np.inf)
        for owner, need in enumerate(self._own, start=1):
            mine = self.group.owner == owner
            lower[mine], upper[mine] = self.space.compute_slack(*self._get_known(need.attacker))
        return lower, upper

    def _get_known(self, attacker: Attacker) -> tuple[FloatArray, FloatArray]:
        """Return how far down and up an attacker knew before that each cell moves; infinite if they knew no more."""
        t = self.table
        lo, hi = t.bounds(attacker)
        known = np.zeros(t.n_cells, np.bool_)
        known[attacker.cells] = True
        return np.where(known, t.values - lo, np.inf), np.where(known, hi - t.values, np.inf)


def _are_requests_symmetric(group: WidthRequests) -> bool:
    """Return whether every upward movement is also required downward, equally far."""
    up, down = group.sign > 0, group.sign < 0
    return np.array_equal(group.cell[up], group.cell[down]) and np.allclose(
        group.level[up], group.level[down], rtol=1e-9, atol=0.0
    )
