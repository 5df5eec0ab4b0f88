"""Narrowest intervals of a table that is a network: linear programs whose rows are cuts.

A movement can be hidden if every cut around its arc lets it through: the widths of the arcs that leave the near side,
those above where they leave forward and those below where they leave backward, add up to its level at least. Those
rows are all there is (max-flow min-cut), the rows of the single nodes are most of it, and the others are found by
flows. A few rounds end at a vertex: an optimum, with few open cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cellguard._engine import clock
from cellguard._engine.solvers.rows import Pool, Relaxation, Row
from cellguard._engine.space.network import Network

__all__ = ["Asked", "NetworkWidths"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_TOGETHER = 256
"""Movements that are looked at between two looks at the clock."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Movements of arcs that one attacker must hold possible, and how far he knew beforehand that each arc moves."""

    arc: IntArray
    sign: FloatArray
    level: FloatArray
    above: FloatArray
    below: FloatArray


@dataclass(kw_only=True, eq=False)
class NetworkWidths:
    """Minimise ``weight @ (upper + lower)`` such that every movement asked for fits between them."""

    network: Network
    weight: FloatArray
    asked: list[Asked]
    most_upper: FloatArray
    most_lower: FloatArray
    tied: bool
    """One width for both sides, without limits."""
    bound: float = 0.0
    """No widths cost less."""
    rounds: int = 0

    def __post_init__(self) -> None:
        self.unit = float(np.median(np.concatenate([each.level for each in self.asked])))
        self.price = float(np.median(self.weight))
        least = np.zeros((2, len(self.weight)))
        for each in self.asked:  # an arc's own width is at least its level
            np.maximum.at(least, ((each.sign < 0).astype(np.int64), each.arc), each.level / self.unit)
        most = np.stack([self.most_upper, self.most_lower]) / self.unit
        if self.tied:
            least, most = least.max(axis=0, keepdims=True), np.full((1, len(self.weight)), np.inf)
        cost = np.tile(self.weight / self.price * (2.0 if self.tied else 1.0), len(least))
        lower = least.ravel()
        self._relaxation = Relaxation(cost, lower, np.maximum(most.ravel(), lower))
        self._pool = Pool(len(cost))
        self._relaxation.add(self._pool.add(list(self._around_nodes())))

    def solve(
        self, deadline: float, progress: Callable[[float, float], None] | None = None
    ) -> tuple[FloatArray, FloatArray] | None:
        """Cut until every movement fits; return the widths above and below, None at the deadline.

        The bound holds in any case.
        """
        while True:
            solution = self._relaxation.solve(max(0.1, deadline - clock.now()))
            if not solution.optimal:
                return None
            self.rounds += 1
            self.bound = max(self.bound, self._relaxation.proven(solution.row_dual) * self.unit * self.price)
            if progress is not None:
                progress(np.inf, self.bound)
            x = np.maximum(solution.x, self._relaxation.lower)
            rows = list(self._violated(x, deadline))
            if not rows:
                return self._widths(x, deadline)
            if clock.now() > deadline:
                return None
            if len(self._relaxation.rows) > 3 * len(x):
                self._relaxation.purge(x, 0.5)
                self._pool = Pool(len(x))
            fresh = self._pool.add(rows)
            if not fresh:  # violated by a rounding error only
                return self._widths(x, deadline)
            self._relaxation.add(fresh)

    def _widths(self, x: FloatArray, deadline: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the widths, made wider by what rounding has lost."""
        if clock.now() > deadline:  # not all movements were looked at
            return None
        short = 1.0
        for each in self.asked:
            reached, _ = self._narrow(each, x, slice(None))
            short = min(short, float((reached * self.unit / each.level).min(initial=1.0)))
        if short < 1.0 - 1e-6:
            return None
        x = x / short * self.unit
        C = len(self.weight)
        return x[:C], x[-C:]

    def _narrow(self, each: Asked, x: FloatArray, part: slice) -> tuple[FloatArray, NDArray[np.int8]]:
        upper, lower = self._room(each, x)
        return self.network.narrow(each.arc[part], each.sign[part], each.level[part] / self.unit, upper, lower)

    def _room(self, each: Asked, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        C = len(self.weight)
        if self.tied:
            return x, x
        return np.minimum(x[:C], each.above / self.unit), np.minimum(x[C:], each.below / self.unit)

    def _around_nodes(self) -> Iterator[Row]:
        """Both ends of every movement: what leaves the one on other ways, and what reaches the other."""
        for each in self.asked:
            up = each.sign > 0
            source = np.where(up, self.network.head[each.arc], self.network.tail[each.arc])
            target = np.where(up, self.network.tail[each.arc], self.network.head[each.arc])
            for k in np.flatnonzero(source != target).tolist():
                for node, leaves in ((source[k], True), (target[k], False)):
                    above, below = self.network.ways(int(node))
                    columns = above if leaves else below, below if leaves else above
                    yield self._row(each, k, *(column[column != each.arc[k]] for column in columns))

    def _violated(self, x: FloatArray, deadline: float) -> Iterator[Row]:
        for each in self.asked:
            room = np.concatenate(self._room(each, x))
            known = np.zeros(len(room), np.bool_) if self.tied else room < x
            for first in range(0, len(each.arc), _TOGETHER):
                if clock.now() > deadline:
                    return
                reached, sides = self._narrow(each, x, slice(first, first + _TOGETHER))
                level = each.level[first : first + _TOGETHER] / self.unit
                short = first + np.flatnonzero(reached < level * (1.0 - 1e-7))
                for k, side in zip(short.tolist(), sides, strict=True):
                    yield self._cut(each, k, side == 1, known)
                    yield self._cut(each, k, side != 2, known)

    def _cut(self, each: Asked, k: int, near: BoolArray, known: BoolArray) -> Row:
        """Return the cut around some nodes; where an attacker knew more than the widths tell, that is what counts."""
        C = len(self.weight)
        from_tail, from_head = near[self.network.tail], near[self.network.head]
        leaves = np.concatenate([from_tail & ~from_head, from_head & ~from_tail])
        leaves[[each.arc[k], each.arc[k] + C]] = False
        fixed = np.concatenate([each.above, each.below])[leaves & known].sum()
        leaves &= ~known
        return self._row(each, k, np.flatnonzero(leaves[:C]), np.flatnonzero(leaves[C:]), float(fixed))

    def _row(self, each: Asked, k: int, above: IntArray, below: IntArray, fixed: float = 0.0) -> Row:
        """The widths above and below of some arcs, and what is fixed, add up to the level."""
        both = np.union1d(above, below) if self.tied else np.concatenate([above, below + len(self.weight)])
        return Row(both, np.ones(len(both)), (float(each.level[k]) - fixed) / self.unit)
