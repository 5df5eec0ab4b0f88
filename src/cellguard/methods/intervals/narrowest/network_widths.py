"""Narrowest intervals of a table that is a network: linear programs whose rows are cuts.

A movement can be hidden if every cut around its arc has enough capacity: the widths of the arcs that leave the near
side (above for forward arcs, below for backward arcs) add up to at least its level. These rows suffice (max-flow
min-cut). The rows of the single nodes are most of them, and flows find the others. A few rounds end at a vertex: an
optimum with few open cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.rows import Pool, Relaxation, Row
from cellguard._engine.space.network import Network
from cellguard._types import BoolArray, ByteArray, FloatArray, IntArray
from cellguard.methods.intervals.requests import AskedArcs
from cellguard.methods.limits import Limits

__all__ = ["NetworkWidths"]

_TOGETHER = 256
"""Movements processed between two checks of the clock."""


@dataclass(kw_only=True, eq=False)
class NetworkWidths:
    """Minimise ``weight @ (upper + lower)`` such that every required movement fits between them."""

    network: Network
    weight: FloatArray
    asked: list[AskedArcs]
    most_upper: FloatArray
    most_lower: FloatArray
    tied: bool
    """One width for both sides, without limits."""
    bound: float = 0.0
    """Proven lower bound on the cost."""
    rounds: int = 0

    def __post_init__(self) -> None:
        levels = np.concatenate([each.level for each in self.asked])
        self.unit = float(np.median(levels[levels > 0]))
        self.price = float(np.median(self.weight))
        C = len(self.weight)
        least = np.zeros((2, C))
        self._shift = {id(each): np.full(len(each.cell), -1, np.int64) for each in self.asked}
        slides: list[FloatArray] = []  # one variable per pair: the upward share of the sliding level
        for each in self.asked:
            shift = self._shift[id(each)]
            one, other, slide = each.list_divided() if not self.tied else (*[np.zeros(0, np.int64)] * 2, np.zeros(0))
            first = 2 * C + sum(len(s) for s in slides)
            shift[one] = shift[other] = first + np.arange(len(one))
            slides.append(np.asarray(slide / self.unit, np.float64))
            level = np.where(shift >= 0, each.base, each.level)
            # an arc's own width is at least its level
            np.maximum.at(least, ((each.sign < 0).astype(np.int64), each.cell), level / self.unit)
        self._slide = np.concatenate([np.zeros(0), *slides])
        most = np.stack([self.most_upper, self.most_lower]) / self.unit
        if self.tied:
            least, most = least.max(axis=0, keepdims=True), np.full((1, C), np.inf)
        none = np.zeros(len(self._slide))
        cost = np.concatenate([np.tile(self.weight / self.price * (2.0 if self.tied else 1.0), len(least)), none])
        lower = np.concatenate([least.ravel(), none])
        self._relaxation = Relaxation(cost, lower, np.maximum(np.concatenate([most.ravel(), self._slide]), lower))
        self._pool = Pool(len(cost))
        self._relaxation.add(self._pool.add([*self._build_node_rows(), *self._build_own_width_rows()]))

    def _build_own_width_rows(self) -> Iterator[Row]:
        """Build the rows that make an arc's own width at least its level, even if that level is variable."""
        none = np.zeros(0, np.int64)
        for each in self.asked:
            for k in np.flatnonzero(self._shift[id(each)] >= 0).tolist():
                mine = each.cell[k : k + 1]
                yield self._build_row(each, k, *((mine, none) if each.sign[k] > 0 else (none, mine)))

    def _compute_levels(self, each: AskedArcs, x: FloatArray) -> FloatArray:
        """Return how far each movement must go, given how the widths divide the sliding levels."""
        shift = self._shift[id(each)]
        some = shift >= 0
        taken = x[np.where(some, shift, 0)]
        slide = np.append(self._slide, 0.0)[np.where(some, shift - 2 * len(self.weight), -1)]
        divided = each.base / self.unit + np.where(each.sign > 0, taken, slide - taken)
        return np.where(some, divided, each.level / self.unit)

    def solve(self, limits: Limits) -> tuple[FloatArray, FloatArray] | None:
        """Add cuts until every movement fits; return the widths above and below, None at the deadline.

        The bound holds in any case.
        """
        deadline = limits.deadline
        while True:
            solution = self._relaxation.solve(deadline.get_seconds_at_least())
            if not solution.optimal:
                return None
            self.rounds += 1
            self.bound = max(self.bound, self._relaxation.prove(solution.row_dual)[0] * self.unit * self.price)
            limits.tell(np.inf, self.bound)
            x = np.clip(solution.x, self._relaxation.lower, np.maximum(self._relaxation.upper, self._relaxation.lower))
            rows = list(self._find_violated_cuts(x, deadline))
            if not rows:
                return self._compute_widths(x, deadline)
            if deadline.passed:
                return None
            if len(self._relaxation.rows) > 3 * len(x):
                self._relaxation.remove_slack_rows(x, 0.5)
                self._pool = Pool(len(x))
            fresh = self._pool.add(rows)
            if not fresh:  # violated only by a rounding error
                return self._compute_widths(x, deadline)
            self._relaxation.add(fresh)

    def _compute_widths(self, x: FloatArray, deadline: Deadline) -> tuple[FloatArray, FloatArray] | None:
        """Return the widths, widened by the rounding loss; None if not all movements were checked."""
        short, C = 1.0, len(self.weight)
        for each in self.asked:
            for _, level, reached, _ in self._compute_flows(each, x, deadline):
                some = level > 1e-12
                short = min(short, float((reached[some] / level[some]).min(initial=1.0)))
        if deadline.passed or short < 1.0 - 1e-6:
            return None
        x = x / short * self.unit
        return (x[:C], x[:C]) if self.tied else (x[:C], x[C : 2 * C])

    def _compute_flows(
        self, each: AskedArcs, x: FloatArray, deadline: Deadline
    ) -> Iterator[tuple[int, FloatArray, FloatArray, ByteArray]]:
        """Yield movements in batches: the first one's number, levels, how far they get, and the cuts."""
        levels, slack = self._compute_levels(each, x), self._compute_slack(each, x)
        for first in range(0, len(each), _TOGETHER):
            if deadline.passed:
                return
            part = slice(first, first + _TOGETHER)
            yield first, levels[part], *self.network.narrow(each.cell[part], each.sign[part], levels[part], *slack)

    def _compute_slack(self, each: AskedArcs, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        C = len(self.weight)
        if self.tied:
            return x[:C], x[:C]
        return np.minimum(x[:C], each.above / self.unit), np.minimum(x[C : 2 * C], each.below / self.unit)

    def _build_node_rows(self) -> Iterator[Row]:
        """Build rows for both ends of every movement: what leaves one on other arcs, and what reaches the other."""
        for each in self.asked:
            up = each.sign > 0
            source = np.where(up, self.network.head[each.cell], self.network.tail[each.cell])
            target = np.where(up, self.network.tail[each.cell], self.network.head[each.cell])
            for k in np.flatnonzero(source != target).tolist():
                for node, leaves in ((source[k], True), (target[k], False)):
                    above, below = self.network.list_arcs(int(node))
                    columns = above if leaves else below, below if leaves else above
                    yield self._build_row(each, k, *(column[column != each.cell[k]] for column in columns))

    def _find_violated_cuts(self, x: FloatArray, deadline: Deadline) -> Iterator[Row]:
        for each in self.asked:
            slack = np.concatenate(self._compute_slack(each, x))
            known = np.zeros(len(slack), np.bool_) if self.tied else slack < x[: len(slack)]
            for first, level, reached, sides in self._compute_flows(each, x, deadline):
                short = reached < level * (1.0 - 1e-7)
                more = reached[short] < level[short] * (1.0 - 1e-7) - 1e-12  # ignore tiny levels
                for k, side in zip((first + np.flatnonzero(short)[more]).tolist(), sides[more], strict=True):
                    yield self._cut(each, k, side == 1, known)
                    yield self._cut(each, k, side != 2, known)

    def _cut(self, each: AskedArcs, k: int, near: BoolArray, known: BoolArray) -> Row:
        """Return the cut around some nodes; tighter knowledge of an attacker replaces the widths."""
        C = len(self.weight)
        from_tail, from_head = near[self.network.tail], near[self.network.head]
        leaves = np.concatenate([from_tail & ~from_head, from_head & ~from_tail])
        leaves[[each.cell[k], each.cell[k] + C]] = False
        fixed = np.concatenate([each.above, each.below])[leaves & known].sum()
        leaves &= ~known
        return self._build_row(each, k, np.flatnonzero(leaves[:C]), np.flatnonzero(leaves[C:]), float(fixed))

    def _build_row(self, each: AskedArcs, k: int, above: IntArray, below: IntArray, fixed: float = 0.0) -> Row:
        """Build a row: the widths above and below of some arcs, plus the fixed part, add up to the level."""
        both = np.union1d(above, below) if self.tied else np.concatenate([above, below + len(self.weight)])
        shift = int(self._shift[id(each)][k])
        if shift < 0:
            return Row(both, np.ones(len(both)), (float(each.level[k]) - fixed) / self.unit)
        # upward: the base plus its share of the sliding level; downward: the base plus the rest
        up = each.sign[k] > 0
        rest = 0.0 if up else float(self._slide[shift - 2 * len(self.weight)])
        columns, entries = np.append(both, shift), np.append(np.ones(len(both)), -1.0 if up else 1.0)
        return Row(columns, entries, (float(each.base[k]) - fixed) / self.unit + rest)
