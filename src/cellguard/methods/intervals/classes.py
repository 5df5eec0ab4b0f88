"""Intervals that reveal only that the truth lies in them: sets of possible tables, and a collar around them.

docs/methods/intervals-informed.md explains the computation and why it resists an attacker who knows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline, now
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.space.groups import place_in_group
from cellguard._engine.space.reduce import reduce
from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.asked import AskedCells
from cellguard.methods.intervals.grid import ClassGrid, Published
from cellguard.methods.intervals.lattice import EndLattice
from cellguard.methods.intervals.movements import Cover, Ground, Known
from cellguard.methods.intervals.problem import Ends, compute_positive_weights, may_become_intervals
from cellguard.methods.intervals.secret import Secret
from cellguard.model.key import Key
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.table import Table

__all__ = ["Classes", "build_classes"]

_SPREAD = 0.2
"""The costs and the order that guide the search are multiplied by exp(spread * g), g logistic and secret."""
_FURTHER = 0.25
"""Intervals are widened beyond the sets in steps of this share of a width that is certainly sufficient."""
_SEARCHING = 0.6
"""Share of the time for the search; cells still exposed after it are hidden one by one."""
_PATIENCE_S = 30.0
"""Seconds allowed for a second search if there is no time limit."""
_SEARCHES = 8
"""How often the search restarts when cells could not be hidden, ..."""
_FIRST = 1e6
"""... with those first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Classes:
    """What is published, and what stays possible for an informed attacker: all but the data and the key is known."""

    published: Published
    promised: IntArray
    """The cells whose sets are as wide as their levels require."""
    asked: int
    """Number of cells to be hidden."""
    movements: int
    grid: ClassGrid | None
    """The grid that can open more cells."""


def build_classes(table: Table, key: Key, deadline: Deadline) -> Classes:
    """Find movements that hide every sensitive cell, and the intervals around them."""
    if any(len(compute_required_levels(table, attacker).cells) for attacker in list_attackers(table)):
        return _ClassSearch(table, key).run(deadline)
    a = table.values
    return Classes(
        published=Published(a, a, a, a), promised=np.zeros(0, np.int64), asked=0, movements=0, grid=None
    )  # fmt: skip


class _ClassSearch:
    def __init__(self, table: Table, key: Key) -> None:
        self.table = t = table
        self.secret = Secret(t, key)
        least = [compute_required_levels(t, attacker).width for attacker in list_attackers(t)]
        every = np.concatenate([np.zeros(0), *least])
        self.lattice = EndLattice.of(t, float(every[every > 0].min(initial=np.inf)) if (every > 0).any() else 1.0)
        self.asked = AskedCells.of(t, self.lattice)
        self.reduction = reduce(t.relations, may_become_intervals(t))
        self.cells = np.flatnonzero(~self.reduction.determined)
        self.place = place_in_group(self.cells, t.n_cells)
        self.ground = self._compute_ground()
        self.tight = self._collect_other_knowledge()
        share = self.asked.width.share
        ends = np.maximum(self.asked.lower * (1 - share), self.asked.upper) / share
        self.beyond = float(ends.max(initial=0.0))
        self.grid = ClassGrid(t, self.lattice, self.secret)
        self.cover = self._build_cover()

    def _build_cover(self) -> Cover:
        return Cover(self.ground, self.asked, self.place[self.asked.cells], self.beyond, self.tight)

    def run(self, deadline: Deadline) -> Classes:
        """Search; when some cells cannot be hidden, search again with those first."""
        cells = self.asked.cells
        offset = self.secret.draw_uniform("grid", cells)
        urgency = np.exp(_SPREAD * self._draw_logistic("order", cells))
        best = None
        searching = deadline.take_share(_SEARCHING)
        for _ in range(_SEARCHES):
            begin = now()
            cover = self._build_cover()
            left = cover.search(offset, urgency, searching)
            if best is None or len(left) < best:
                best, self.cover = len(left), cover
            movable = left[cover.place[left] >= 0]
            if not len(movable) or 2.0 * now() - begin > min(searching.at, begin + _PATIENCE_S):
                break
            urgency[movable] *= _FIRST
        return self._compute_published_ends(deadline)

    def _draw_logistic(self, purpose: str, cells: IntArray) -> FloatArray:
        u = np.clip(self.secret.draw_uniform(purpose, cells), 1e-12, 1 - 1e-12)
        return np.asarray(np.log(u / (1 - u)))

    def _compute_ground(self) -> Ground:
        t, at = self.table, self.cells
        units = self.lattice.convert_to_units
        value = np.floor(units(t.values[at]) + 1e-9)
        lower, upper = np.ceil(units(t.lb[at]) - 1e-9), np.floor(units(t.ub[at]) + 1e-9)
        weight = compute_positive_weights(t)[at]
        cost = (
            weight / float(np.median(weight)) * np.exp(_SPREAD * self._draw_logistic("cost", at)) if len(at) else weight
        )
        relations = csr_array(t.relations[self.reduction.rows][:, at])
        return Ground(relations=relations, value=value, lower=lower, upper=upper, cost=cost)

    def _collect_other_knowledge(self) -> dict[int, Known]:
        """Return what attackers with special knowledge know about other cells, for the cells to be hidden from them."""
        t, units = self.table, self.lattice.convert_to_units
        index = place_in_group(self.asked.cells, t.n_cells)
        known: dict[int, list[Known]] = {}
        for attacker in list_attackers(t):
            at = attacker.cells[self.place[attacker.cells] >= 0]
            if not len(at):
                continue
            lo, hi = (bound[at] for bound in t.bounds(attacker))
            mine = Known(self.place[at], np.ceil(units(lo) - 1e-9), np.floor(units(hi) + 1e-9))
            for cell in compute_required_levels(t, attacker).cells.tolist():
                other = at != cell
                known.setdefault(int(index[cell]), []).append(Known(*(part[other] for part in mine)))
        return {k: Known(*(np.concatenate(part) for part in zip(*v, strict=True))) for k, v in known.items()}

    # ------------------------------------------------------------------ ends

    def _compute_published_ends(self, deadline: Deadline) -> Classes:
        c = self.cover
        inner = self.ground.value - c.below, self.ground.value - c.below + c.moved
        published = Published(*self._compute_ends(inner, deadline), *self._convert_to_values(inner))
        bare = np.flatnonzero(~c.hidden)
        if len(bare):  # if there is no time for it, the audit will find it
            published = self.grid.widen_intervals(published, self.asked.cells[bare], deadline) or published
        given = self.lattice.convert_to_values(c.given)
        return Classes(
            published=published,
            promised=self.asked.cells[c.hidden & (given >= self.asked.total * (1 - 1e-9))],
            asked=len(self.asked),
            movements=len(c.movements),
            grid=self.grid,
        )

    def _compute_ends(self, inner: Ends, deadline: Deadline) -> Ends:
        """Return the ends of the intervals: as far beyond the sets as every level of every table in them requires."""
        down, up = self._compute_beyond()
        most, movers = self._limit_continuations(down, up)
        further = np.zeros(len(most))
        hidden = np.flatnonzero(self.cover.hidden)
        while True:
            ends = self._convert_to_values(self._extend_ends(inner, further, down, up))
            short = self._find_short_cells(hidden, inner, down, up, ends, deadline)
            raised = (np.asarray(movers[short].sum(axis=0)).ravel() > 0) & (further < most)
            if not raised.any():
                return ends
            further = np.where(raised, np.minimum(further + _FURTHER * most, most), further)

    def _convert_to_values(self, units: Ends) -> Ends:
        """Return ends as values, within the known bounds; if the values lie on no grid, one unit further up."""
        t = self.table
        moved = self.cover.moved > 0
        at = self.cells[moved]
        over = 0.0 if self.lattice.whole else 1.0
        low, high = t.values.copy(), t.values.copy()
        low[at] = np.clip(self.lattice.convert_to_values(units[0][moved]), t.lb[at], t.values[at])
        high[at] = np.clip(self.lattice.convert_to_values(units[1][moved] + over), t.values[at], t.ub[at])
        return low, high

    def _compute_beyond(self) -> Ends:
        """Return how far below and above its set the range of each hidden cell must reach, in units."""
        a, c = self.asked, self.cover
        x = c.find_corner(np.arange(len(a)))
        y = x + c.moved[c.place]
        near = np.ceil(a.lower * np.maximum(x, 0.0) + a.below - 1e-9)
        far = np.ceil(a.upper * np.maximum(y, 0.0) + a.above - 1e-9)
        return np.where(c.sign > 0, near, far), np.where(c.sign > 0, far, near)

    def _limit_continuations(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the maximum share by which each movement continues beyond its ends, and the movements of each cell."""
        c = self.cover
        asked = np.zeros(len(c.place))
        asked[c.hidden] = np.maximum(down, up)[c.hidden] / c.moved[c.place[c.hidden]]
        V = csr_array(csr_array(self._expand_movements()[:, c.place]) > 0).astype(np.float64)
        most = np.asarray(V.multiply(asked[None, :]).max(axis=1).todense()).ravel() if V.shape[0] else np.zeros(0)
        if self.lattice.whole:  # whole steps ensure that there are tables of whole numbers, too
            steps = np.array([movement.steps for movement in c.movements])
            most = np.ceil(most * steps - 1e-9) / steps
        return most, csr_array(V.T)

    def _expand_movements(self) -> csr_array:
        """Return the movements, one row each, as the total change of the cells over all their steps."""
        c = self.cover
        rows = np.repeat(np.arange(len(c.movements)), [len(m.cells) for m in c.movements])
        columns = np.concatenate([np.zeros(0, np.int64), *(m.cells for m in c.movements)])
        entries = np.concatenate([np.zeros(0), *(m.steps * np.abs(m.step) for m in c.movements)])
        return csr_array((entries, (rows, columns)), shape=(len(c.movements), len(self.ground)))

    def _extend_ends(self, inner: Ends, further: FloatArray, down: FloatArray, up: FloatArray) -> Ends:
        """Return ends beyond the sets: for hidden cells as required, for others as far as their movements continue."""
        c, g = self.cover, self.ground
        more = np.ceil(self._expand_movements().T @ further - 1e-9)
        mine = np.flatnonzero(c.hidden)
        below, above = more.copy(), more.copy()
        np.maximum.at(below, c.place[mine], down[mine])
        np.maximum.at(above, c.place[mine], up[mine])
        return np.maximum(inner[0] - below, g.lower), np.minimum(inner[1] + above, g.upper)

    def _find_short_cells(
        self, hidden: IntArray, inner: Ends, down: FloatArray, up: FloatArray, ends: Ends, deadline: Deadline
    ) -> IntArray:
        """Return the cells whose range does not reach far enough beyond their sets.

        The test is public: it requires the same ends of the same range for every true table of the sets.
        """
        t, at = self.table, self.cover.place[hidden]
        cells = self.asked.cells[hidden]
        first = np.maximum(self.lattice.convert_to_values(inner[0][at] - down[hidden]), t.lb[cells])
        last = np.minimum(self.lattice.convert_to_values(inner[1][at] + up[hidden]), t.ub[cells])
        a = t.values[cells]
        found = compute_ranges(
            Sight(t.relations, *ends, t.values),
            AskedRanges(cells, np.maximum(a - first, 0.0), np.maximum(last - a, 0.0)),
            time_limit_s=deadline.get_seconds_at_least(),
        )
        return hidden[~found.safe] if not deadline.passed else hidden[:0]
