"""Class intervals of counts: which cells are opened, and a check that uses only what is published.

**One draw.** Numbers are drawn for every cell from the key: the cuts of its classes, by how much they exceed the
necessary width, and costs. These draws, public numbers (relations, known bounds, shares, threshold) and *the classes of
the cells to be hidden* determine a pattern: cheap movements ``d`` with ``T d = 0`` through every cell to be hidden, and
for each other cell on them the amplitude by which it must be able to move. Those cells are published as classes of an
even partition whose length is a drawn multiple of the amplitude. All other cells are published unchanged. The collar
of a cell to be hidden follows from its class: it reaches as far as the levels of any value of the class go beyond its
ends.

**Bands.** A movement needs slack. So the search may use the *band* of a cell that is not hidden: bands begin at
drawn numbers times powers of 4. Classes stay within their band, and never reach down to values that would be hidden.

**Lemma.** Let R be the release of a table t under some draws. Every table t' with the same relations that has the
values of t where R publishes them, and values of the same classes elsewhere, leads to R under the same draws, if the
same rule makes it sensitive. *Proof.* Cells to be hidden have the same classes in t and t', the others the same bands,
so the pattern is the same; hence the partitions are the same, hence the classes of all opened cells.
The check below is a function of the classes and the published values, so it accepts both or neither.

**The check.** By integer programs over exactly these tables, each hidden cell must range over a width of at least
``W(y)``, where y is the upper end of its class; and with the published ends every level of every value of the class
must be met. Where it fails, the cells concerned are drawn again, from the same distribution. The draws that succeed
could have been the first ones, for every t' of the lemma. So an attacker who knows everything but key and data
excludes none of these tables, and neither does one who learns the successful draws. Tables that succeed less often are
more probable than others by at most the ratio of the probabilities of success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.solvers.lp import DUAL, LinearModel, LinearProgram
from cellguard._engine.space.groups import place_in_group
from cellguard._engine.space.reduce import reduce
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.intervals.grid import Published
from cellguard.methods.intervals.problem import Ends, may_become_intervals
from cellguard.methods.intervals.secret import Secret
from cellguard.model.key import Key
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.table import Table
from cellguard.release.count_classes import ClassRule, cut_classes, cut_even_classes

__all__ = ["CountClasses", "CountSearch"]

MAX_ROUNDS = 60
"""Draws before the search gives up."""
MAX_NAMED_CELLS = 3
"""Maximum number of cells that an explanation names."""
COST_SPREAD = 0.5
"""Costs are multiplied by exp(spread * g), g logistic and secret."""
HIDDEN_COST = 0.3
"""Share of its cost at which a movement uses another cell to be hidden: that cell is open in any case."""
WIDER_PROBABILITIES = {"wide": 0.1, "paths": 0.1, "length": 0.25, "unbanded": 0.2}
"""Probability that a drawn factor or number of movements is one step more than the least; two steps: its square, ..."""
MAX_STEPS_WIDER = 8
"""Maximum number of steps by which a drawn factor exceeds the least."""
BAND_RATIO = 4.0
"""Bands of values begin at LEAST_BAND * BAND_RATIO ** (k + u) above the known lower bound, k whole and u drawn."""
LEAST_BAND = 2.0
"""Factor of all these beginnings, in units of the values."""
LARGEST_STEP = 16.0
"""No cell moves more than this many times as far as the cell that a movement must hide."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountClasses:
    """Accepted class intervals of counts."""

    published: Published
    promised: IntArray
    """The sensitive cells, all of which keep their width."""
    movements: int
    rounds: int
    """Number of draws that were rejected before."""


class _Hidden(NamedTuple):
    """The cells to be hidden under some draws: their classes, and the intervals with their collars."""

    cells: IntArray
    first: FloatArray
    last: FloatArray
    low: FloatArray
    high: FloatArray


class _Bands(NamedTuple):
    """The band of each cell: its class stays within it, so the search may use it."""

    first: FloatArray
    last: FloatArray

    @property
    def slack(self) -> FloatArray:
        """The largest amplitude for which a band has a class."""
        return np.maximum((self.last - self.first) / 2.0, 0.0)


class _Pattern(NamedTuple):
    """How far each cell that is not to be hidden must be able to move, and the movements of each cell to be hidden."""

    amplitude: FloatArray
    paths: dict[int, IntArray]


class CountSearch:
    """Draw classes and movements until the check accepts them."""

    def __init__(self, table: Table, key: Key) -> None:
        self.table = t = table
        self.secret = Secret(t, key)
        self.rule = ClassRule.from_table(t)
        asked = [compute_required_levels(t, attacker).cells for attacker in list_attackers(t)]
        self.sensitive = np.unique(np.concatenate([np.zeros(0, np.int64), *asked]))
        self.required = set(self.sensitive.tolist())
        self.sign = np.where(t.values < 0, -1.0, 1.0)
        """The sign of a value counts as known; classes of negative values are mirrored."""
        lower, upper = self._flip_ends(t.lb, t.ub)
        self.start, self.stop = np.maximum(np.ceil(lower - 1e-9), 0.0), np.floor(upper + 1e-9)
        self.may_open = may_become_intervals(t)
        reduction = reduce(t.relations, self.may_open)
        self.ground = np.flatnonzero(~reduction.determined)
        self.place = place_in_group(self.ground, t.n_cells)
        A = csr_array(t.relations[reduction.rows][:, self.ground])
        bounds = np.zeros(2 * len(self.ground))
        self.program = LinearProgram(LinearModel(csr_array(hstack([A, -A])), 0.0, 0.0, bounds, bounds), DUAL)
        self.cost = _compute_public_costs(t)[self.ground]
        self.known = self._find_known_cells()
        self.turn = np.zeros(t.n_cells, np.int64)
        """How often each cell has been drawn again."""
        self.failed = np.zeros(t.n_cells, np.int64)
        """How often each cell failed."""
        self.rounds = 0

    def run(self, deadline: Deadline) -> CountClasses | None:
        """Return intervals that the check accepts; None if none are found in time, or after many draws."""
        for number in range(MAX_ROUNDS):
            published, pattern, failing = self.try_draws(deadline)
            if deadline.passed:
                return None
            if not len(failing):
                return CountClasses(
                    published=published, promised=self.sensitive, movements=len(pattern.paths), rounds=number
                )
            self.failed[failing] += 1
            self.rounds = number + 1
            self._draw_again(failing, pattern)
        return None

    def explain_failure(self) -> str:
        """Explain why no draw was accepted, by the cells that failed most often."""
        worst = np.argsort(-self.failed, kind="stable")[:MAX_NAMED_CELLS]
        names = ", ".join(self.table.label(int(cell)) for cell in worst if self.failed[cell])
        return (
            f"none of {self.rounds} draws of classes keeps what is promised of every sensitive count; those that "
            f"failed most often are {names}. The counts around them are too small, or known, so that they cannot "
            "move far enough. More time hardly helps: merge codes with few units, or use suppression."
        )

    def try_draws(self, deadline: Deadline) -> tuple[Published, _Pattern, IntArray]:
        """Return what the present draws publish, the movements, and the cells that fail the check."""
        hidden, bands = self._draw_hidden(), self._draw_bands()
        pattern, stuck = self._find_pattern(hidden, bands, deadline)
        published = self._publish(hidden, bands, pattern)
        return published, pattern, stuck if len(stuck) else self._check(hidden, published, deadline)

    # ------------------------------------------------------------------ draws

    def _draw(self, purpose: str, cells: IntArray) -> FloatArray:
        out = np.zeros(len(cells))
        turn = self.turn[cells]
        for number in np.unique(turn).tolist():
            mine = turn == number
            out[mine] = self.secret.draw_uniform(f"{purpose} {number}", cells[mine])
        return out

    def _draw_steps(self, purpose: str, cells: IntArray) -> FloatArray:
        """Draw 0, 1, 2, ... with geometric probabilities."""
        u = np.maximum(self._draw(purpose, cells), 1e-12)
        return np.asarray(np.minimum(np.floor(np.log(u) / np.log(WIDER_PROBABILITIES[purpose])), MAX_STEPS_WIDER))

    def _draw_hidden(self) -> _Hidden:
        """Return the cells to be hidden: the sensitive ones, and those whose class begins below the threshold."""
        t, rule = self.table, self.rule
        first, last = self._cut(np.abs(t.values))
        chosen = np.zeros(t.n_cells, np.bool_)
        chosen[self.sensitive] = True
        chosen |= self.may_open & (rule.least > 1.0) & (first <= rule.least)
        cells = np.flatnonzero(chosen)
        first, last = first[cells], last[cells]
        below, above = rule.take(cells).compute_collar(first, last)
        lower, upper = self._flip_ends(t.lb, t.ub)
        low, high = np.maximum(first - below, lower[cells]), np.minimum(last + above, upper[cells])
        return _Hidden(cells, first, last, low, high)

    def _cut(self, values: FloatArray) -> Ends:
        """Return the ends of the classes of the threshold, or of the levels, that hold some values of all cells."""
        every = np.arange(self.table.n_cells)
        rule = self.rule
        wider = ClassRule(rule.lower, rule.upper, rule.sliding, rule.least * 2.0 ** self._draw_steps("wide", every))
        return cut_classes(values, self.start, self.stop, wider, self._draw("class", every))

    def _draw_bands(self) -> _Bands:
        """Return the band in which each value lies: from a drawn number times a power of 4 to the next one.

        The draw leaves some cells without bands. No band contains a value whose class begins below the threshold: such
        a cell would be hidden.
        """
        t, start, stop = self.table, self.start, self.stop
        every = np.arange(t.n_cells)
        threshold = self.rule.least
        beyond = self._cut(np.clip(threshold, start, stop))[1] + 1.0
        start = np.where((threshold > 1.0) & (start <= threshold), beyond, start)
        base = LEAST_BAND * BAND_RATIO ** self._draw("band", every)
        above = np.maximum(np.abs(t.values) - start, 0.0)  # cells to be hidden need no band
        number = np.floor(np.log(np.maximum(above, 1.0) / base) / np.log(BAND_RATIO)) + np.array(
            [[-1.0], [0.0], [1.0], [2.0]]
        )
        cuts = np.where(number < 0, 0.0, np.floor(base * BAND_RATIO ** np.maximum(number, 0.0)))
        first = np.where(cuts <= above, cuts, 0.0).max(axis=0)
        last = np.where(cuts > above, cuts, np.inf).min(axis=0) - 1.0
        free = self._draw_steps("unbanded", every) > 0
        return _Bands(np.where(free, start, start + first), np.where(free, stop, np.minimum(start + last, stop)))

    def _flip_ends(
        self, low: FloatArray, high: FloatArray, cells: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ends mirrored where values are negative."""
        negative = (self.sign if cells is None else self.sign[cells]) < 0
        return np.where(negative, -high, low), np.where(negative, -low, high)

    def _draw_again(self, failing: IntArray, pattern: _Pattern) -> None:
        """Draw again for some cells, and for all cells that their movements use."""
        T = abs(self.table.relations)
        again = np.zeros(self.table.n_cells, np.bool_)
        again[failing] = True
        for cell in failing.tolist():
            if cell in pattern.paths:
                again[pattern.paths[cell]] = True
            else:  # there was no movement: wider classes around it may allow one
                here = np.zeros(self.table.n_cells)
                here[cell] = 1.0
                again |= (T.T @ (T @ here)) > 0
        self.turn[again] += 1

    # ------------------------------------------------------------------ pattern

    def _find_known_cells(self) -> dict[int, IntArray]:
        """Return the cells about which an attacker knows something, by the cell to be hidden from that attacker."""
        known: dict[int, list[IntArray]] = {}
        for attacker in list_attackers(self.table):
            if len(attacker.cells):
                for cell in compute_required_levels(self.table, attacker).cells.tolist():
                    known.setdefault(cell, []).append(attacker.cells[attacker.cells != cell])
        return {cell: np.unique(np.concatenate(cells)) for cell, cells in known.items()}

    def _find_pattern(self, hidden: _Hidden, bands: _Bands, deadline: Deadline) -> tuple[_Pattern, IntArray]:
        """Return movements through all cells to be hidden, and the cells without any movement."""
        index = place_in_group(hidden.cells, self.table.n_cells)
        outer = hidden.high - hidden.low
        order = np.argsort(self._draw("order", hidden.cells), kind="stable")
        extra = self._draw_steps("paths", hidden.cells)
        reached = np.zeros(len(hidden.cells), np.bool_)
        pattern = _Pattern(np.zeros(self.table.n_cells), {})
        common = np.exp(COST_SPREAD * _convert_to_logistic(self.secret.draw_uniform("cost", self.ground)))
        stuck, slack = [], bands.slack[self.ground]
        for k in order.tolist():
            cell = int(hidden.cells[k])
            if (reached[k] and not extra[k]) or deadline.passed:
                continue
            penalty = np.ones(len(self.ground))
            for _ in range(int(extra[k]) + 1):
                found = self._find_movement(hidden, k, slack, common * penalty, deadline)
                if found is None:
                    break
                at = np.flatnonzero(np.abs(found) > 1e-9)
                cells, steps = self.ground[at], np.abs(found[at])
                ridden = index[cells]
                partner = ridden >= 0
                needs = outer[ridden[partner]] / steps[partner]
                wide = steps[partner] * self._select_inner(hidden)[k] >= self._select_inner(hidden)[ridden[partner]]
                free = cells[~partner]
                most = float((slack[at[~partner]] / steps[~partner]).min(initial=np.inf))
                wide &= needs <= most + 1e-6
                reached[ridden[partner][wide]] = True
                scale = float(needs[wide].max(initial=outer[k]))
                pattern.amplitude[free] = np.maximum(
                    pattern.amplitude[free], np.ceil(steps[~partner] * scale - 1e-6)
                )  # fmt: skip
                for rider in np.append(hidden.cells[ridden[partner][wide]], cell).tolist():
                    pattern.paths[rider] = np.union1d(pattern.paths.get(rider, cells[:0]), cells)
                penalty[at] = 10.0
            if cell not in pattern.paths and (self.place[cell] >= 0 or cell in self.required):
                stuck.append(cell)
        return pattern, np.array(stuck, np.int64)

    def _select_inner(self, hidden: _Hidden) -> FloatArray:
        return np.maximum(hidden.last - hidden.first, 1.0)

    def _find_movement(
        self, hidden: _Hidden, k: int, free: FloatArray, factor: FloatArray, deadline: Deadline
    ) -> FloatArray | None:
        """Return a cheap movement that moves a cell by 1; None if there is none."""
        m, cell = len(self.ground), int(hidden.cells[k])
        place = int(self.place[cell])
        if place < 0:
            return None
        width = self._select_inner(hidden)
        outer = max(float(hidden.high[k] - hidden.low[k]), 1.0)
        slack = np.minimum(free / outer, LARGEST_STEP) * width[k]
        at = self.place[hidden.cells]
        movable = at >= 0
        slack[at[movable]] = np.minimum(LARGEST_STEP * width[k], width[movable])
        cost = self.cost * factor
        blur = self.secret.draw_uniform(f"path {cell} {self.turn[cell]}", self.ground)
        cost = cost * np.exp(COST_SPREAD * _convert_to_logistic(blur))
        cost[at[movable]] *= HIDDEN_COST
        if cell in self.known:
            known = self.place[self.known[cell]]
            slack[known[known >= 0]] = 0.0
        upper = np.concatenate([slack, slack]) / width[k]
        lower = np.zeros(2 * m)
        lower[place] = upper[place] = 1.0
        upper[m + place] = 0.0
        self.program.set_all(np.concatenate([cost, cost]), lower, upper)
        found = self.program.solve(time_limit_s=deadline.get_seconds_at_least(), duals=False)
        return found.x[:m] - found.x[m:] if found.optimal else None

    # ------------------------------------------------------------------ publish and check

    def _publish(self, hidden: _Hidden, bands: _Bands, pattern: _Pattern) -> Published:
        """Return the intervals, and the classes inside them."""
        t = self.table
        ends = [t.values.copy() for _ in range(4)]
        open_ = np.flatnonzero(pattern.amplitude > 0)
        length = pattern.amplitude[open_] * 2.0 ** (1.0 + self._draw_steps("length", open_)) + 1.0
        length = np.minimum(length, bands.last[open_] - bands.first[open_] + 1.0)
        even = cut_even_classes(
            np.abs(t.values[open_]), bands.first[open_], bands.last[open_], length, self._draw("shift", open_)
        )  # fmt: skip
        for at, (low, high) in ((open_, even), (hidden.cells, (hidden.low, hidden.high))):
            ends[0][at], ends[1][at] = self._flip_ends(low, high, at)
        for at, (first, last) in ((open_, even), (hidden.cells, (hidden.first, hidden.last))):
            ends[2][at], ends[3][at] = self._flip_ends(first, last, at)
        return Published(*ends)

    def _check(self, hidden: _Hidden, published: Published, deadline: Deadline) -> IntArray:
        """Return the cells that keep less than promised, for any true table of the lemma.

        The external attacker is checked for companions, too: which cells of a class are sensitive follows from values.
        """
        t = self.table
        width, collar = np.zeros(t.n_cells), np.zeros(t.n_cells, np.bool_)
        width[hidden.cells] = self.rule.take(hidden.cells).compute_width(hidden.last)
        collar[hidden.cells] = (hidden.low < hidden.first) | (hidden.high > hidden.last)
        movable = hidden.cells[self.place[hidden.cells] >= 0]
        bad = np.zeros(t.n_cells, np.bool_)
        for attacker in list_attackers(t):
            cells = compute_required_levels(t, attacker).cells
            if not len(attacker.cells):
                cells = np.union1d(cells, movable)
            if not len(cells):
                continue
            lo, hi = t.bounds(attacker)
            asked = np.minimum(width[cells], hi[cells] - lo[cells])
            bad[cells] |= ~self._find_reaching(published[2:], (lo, hi), AskedRanges(cells, sliding=asked), deadline)
            if collar[cells].any():
                down = t.values[cells] - np.maximum(published.lower, lo)[cells]
                up = np.minimum(published.upper, hi)[cells] - t.values[cells]
                bad[cells] |= ~self._find_reaching(published[:2], (lo, hi), AskedRanges(cells, down, up), deadline)
        return np.flatnonzero(bad)

    def _find_reaching(self, ends: Ends, bounds: Ends, asked: AskedRanges, deadline: Deadline) -> BoolArray:
        """Return the cells whose range over the whole numbers within some ends is as wide as required."""
        low, high = np.maximum(bounds[0], ends[0]), np.minimum(bounds[1], ends[1])
        sight = Sight(self.table.relations, low, high, self.table.values, integer=True)
        return compute_ranges(sight, asked, time_limit_s=deadline.get_seconds_at_least()).safe


def _convert_to_logistic(uniform: FloatArray) -> FloatArray:
    u = np.clip(uniform, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(u / (1 - u)))


def _compute_public_costs(table: Table) -> FloatArray:
    """Return costs that do not depend on any value.

    Weights that rise or fall with the values depend on them. They are replaced by the number of inner cells that add up
    to the cell. Other weights are treated as public.
    """
    by_value = table.weights[np.argsort(np.abs(table.values), kind="stable")]
    if np.ptp(by_value) > 0 and ((np.diff(by_value) >= 0).all() or (np.diff(by_value) <= 0).all()):
        return _count_inner_cells(table)
    return np.maximum(table.weights, 1e-6 * float(table.weights.max(initial=0.0)) or 1.0)


def _count_inner_cells(table: Table) -> FloatArray:
    """Return for every cell the number of inner cells of which it is the sum."""
    T = table.relations
    rows = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
    positive = np.bincount(rows, T.data > 0, T.shape[0])
    negative = np.bincount(rows, T.data < 0, T.shape[0])
    lone = np.where(positive == 1, 1.0, np.where(negative == 1, -1.0, 0.0))
    total = (np.sign(T.data) == lone[rows]) & (lone[rows] != 0)
    is_total = np.zeros((T.shape[0]), np.int64)
    is_total[rows[total]] = T.indices[total]
    size = np.ones(table.n_cells)
    for _ in range(20):  # no hierarchy is deeper
        parts = np.bincount(rows[~total], size[T.indices[~total]], T.shape[0])
        larger = size.copy()
        np.maximum.at(larger, is_total[lone != 0], parts[lone != 0])
        if (larger == size).all():
            break
        size = larger
    return size
