"""Narrowest intervals of a table that is a network: linear programs whose rows are cuts.

A movement can be hidden if every cut around its arc lets it through: the widths of the arcs that leave the near side,
those above where they leave forward and those below where they leave backward, add up to its level at least. Those
rows are all there is (max-flow min-cut), the rows of the single nodes are most of it, and the others are found by
flows. A few rounds end at a vertex: an optimum, with few open cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cellguard._engine import clock
from cellguard._engine.network import Network
from cellguard._engine.rows import Pool, Relaxation, Row

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
    """One width for both sides; what attackers know does not count then."""
    bound: float = 0.0
    """No widths cost less."""
    rounds: int = 0
    upper: FloatArray | None = field(default=None, init=False)
    lower: FloatArray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.unit = float(np.median(np.concatenate([each.level for each in self.asked])))
        self.price = float(np.median(self.weight))
        least = np.zeros((2, len(self.weight)))
        for each in self.asked:  # an arc's own width is at least its level
            np.maximum.at(least, ((each.sign < 0).astype(np.int64), each.arc), each.level / self.unit)
        most = np.stack([self.most_upper, self.most_lower]) / self.unit
        if self.tied:
            least, most = least.max(axis=0, keepdims=True), most.min(axis=0, keepdims=True)
        cost = np.tile(self.weight / self.price * (2.0 if self.tied else 1.0), len(least))
        lower = least.ravel()
        self._relaxation = Relaxation(cost, lower, np.maximum(most.ravel(), lower))
        self._pool = Pool(len(cost))
        self._relaxation.add(self._pool.add(list(self._around_nodes())))

    def solve(self, deadline: float, progress: Callable[[float, float], None] | None = None) -> bool:
        """Cut until every movement fits; returns whether that was reached. The bound holds in any case."""
        while True:
            solution = self._relaxation.solve(max(0.1, deadline - clock.now()))
            if not solution.optimal:
                return False
            self.rounds += 1
            self.bound = max(self.bound, self._relaxation.proven(solution.row_dual) * self.unit * self.price)
            if progress is not None:
                progress(np.inf, self.bound)
            x = np.maximum(solution.x, self._relaxation.lower)
            rows = list(self._violated(x, deadline))
            if not rows:
                return self._keep(x, deadline)
            if clock.now() > deadline:
                return False
            if len(self._relaxation.rows) > 3 * len(x):
                self._relaxation.purge(x, 0.5)
                self._pool = Pool(len(x))
            fresh = self._pool.add(rows)
            if not fresh:  # violated by a rounding error only
                return self._keep(x, deadline)
            self._relaxation.add(fresh)

    def _keep(self, x: FloatArray, deadline: float) -> bool:
        """Take the widths, made wider by what rounding has lost."""
        if clock.now() > deadline:
            return False
        short = 1.0
        for each in self.asked:
            reached, _ = self._narrow(each, x, slice(None))
            short = min(short, float((reached * self.unit / each.level).min(initial=1.0)))
        if short < 1.0 - 1e-6:
            return False
        x = x / short
        C = len(self.weight)
        self.upper, self.lower = x[:C] * self.unit, x[-C:] * self.unit
        return True

    def _narrow(self, each: Asked, x: FloatArray, part: slice) -> tuple[FloatArray, NDArray[np.int8]]:
        upper, lower = self._room(each, x)
        return self.network.narrow(each.arc[part], each.sign[part], each.level[part] / self.unit, upper, lower)

    def _room(self, each: Asked, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        C = len(self.weight)
        if self.tied:
            return x, x
        return np.minimum(x[:C], each.above / self.unit), np.minimum(x[C:], each.below / self.unit)

    def _around_nodes(self) -> Iterator[Row]:
        """Both ends of every movement, without what attackers know."""
        nodes = np.arange(self.network.n_nodes)
        nothing = np.zeros(2 * len(self.weight), np.bool_)
        for each in self.asked:
            up = each.sign > 0
            source = np.where(up, self.network.head[each.arc], self.network.tail[each.arc])
            target = np.where(up, self.network.tail[each.arc], self.network.head[each.arc])
            for k in np.flatnonzero(source != target).tolist():
                yield self._row(each, k, nodes == source[k], nothing)
                yield self._row(each, k, nodes != target[k], nothing)

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
                    yield self._row(each, k, side == 1, known)
                    yield self._row(each, k, side != 2, known)

    def _row(self, each: Asked, k: int, near: BoolArray, known: BoolArray) -> Row:
        """Return the cut around some nodes: what leaves them on other ways is at least the level."""
        C = len(self.weight)
        from_tail, from_head = near[self.network.tail], near[self.network.head]
        leaves = np.concatenate([from_tail & ~from_head, from_head & ~from_tail])
        leaves[[each.arc[k], each.arc[k] + C]] = False
        fixed = leaves & known
        limits = np.concatenate([each.above, each.below])
        rhs = float(each.level[k] - limits[fixed].sum()) / self.unit
        columns = np.flatnonzero(leaves & ~known)
        if self.tied:
            columns = np.unique(columns % C)
        return Row(columns, np.ones(len(columns)), rhs)
