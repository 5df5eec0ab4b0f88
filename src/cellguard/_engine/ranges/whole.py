"""Whole numbers for many views: counts move by multiples of a direction, and each view takes as many as fit.

Movements over real numbers are mostly found in directions of whole numbers: one cell more here, one less there. So
what showed a level kept over real numbers is tried first: a view takes the greatest multiple that lies in its
bounds. Programs in whole numbers are left for what no multiple shows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.numbers.multiples import residuals_of_decimal_numbers
from cellguard._engine.ranges.cheapest import parts_of_witness
from cellguard._engine.ranges.ranges import ranges
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.views import Views
from cellguard._engine.ranges.witness import ExactMovements
from cellguard._tolerances import LEVEL_LOOKED_FOR, WHOLE_SOLUTION
from cellguard._types import FloatArray, IntArray

__all__ = ["tally_in_whole_numbers", "whole_witnesses"]

_MULTIPLES = (1, 2, 3, 4, 5, 6, 12, 60)
"""Directions in fractions with these denominators are made whole."""
_LARGEST = 2.0**50


def tally_in_whole_numbers(tally: Tally, sight: Sight, views: Views, deadline: Deadline) -> tuple[WholeTally, int]:
    """Answer in whole numbers what was answered over real ones; return the new tally, and how many programs it took."""
    whole = WholeTally(tally)
    for moving, v in sorted(tally.pool, key=lambda movement: len(movement[0])):
        if deadline.passed or not len(whole.open):
            break
        z = np.zeros(len(tally.system.up))
        z[moving] = v
        whole.learn(z)
    return whole, _view_by_view(whole, sight, views, deadline)


def whole_witnesses(movements: csr_array) -> ExactMovements:
    """Return movements that are whole numbers already as exact ones."""
    numbers = csr_array(np.rint(movements).astype(np.int64))
    numbers.sum_duplicates()  # in order: whoever sorts a matrix that shares its columns would disorder this one
    return ExactMovements(numerators=numbers, denominator=np.ones(numbers.shape[1], np.int64))


class WholeTally(Tally):
    """What movements in whole numbers show: as many times a direction as a view allows, never a part of it."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally.system, tally.questions)
        every = np.arange(len(self.questions))
        self.bound(every, np.floor(tally.low_bound + WHOLE_SOLUTION), np.floor(tally.high_bound + WHOLE_SOLUTION))

    def learn(self, v: FloatArray) -> bool:
        """Tick off what the directions of a feasible movement show, there and back."""
        helped = False
        for direction in self._directions(v):
            for d in (direction, -direction):
                helped = self._tick(d) or helped
        return helped

    def _directions(self, v: FloatArray) -> Iterator[FloatArray]:
        """Yield the whole directions in a movement: its parts, once they are whole in every cell."""
        s = self.system
        for part in parts_of_witness(s.space.relations, v):
            cells = s.space.lift @ part
            moving = np.flatnonzero(cells)
            z = _witness_made_whole(cells[moving])
            if z is None or not _whole_witness_holds(s.reduction.relations, moving, z):
                continue
            whole = np.zeros(len(cells))
            whole[moving] = z
            yield whole[s.space.cells]

    def _tick(self, d: FloatArray) -> bool:
        q, s = self.questions, self.system
        some, moving = self._moved(d), np.flatnonzero(d)
        if not len(some):
            return False
        room = np.where(d[moving] > 0, s.up[moving], s.down[moving])
        times = self._times(d, float(np.floor((room / np.abs(d[moving])).min() + WHOLE_SOLUTION)))[q.view[some]]
        moved = d[q.variable[some]]
        helped = False
        for sign, need, (got, row) in (
            (1, q.need_high, (self.high, self.high_row)),
            (-1, q.need_low, (self.low, self.low_row)),
        ):
            enough = np.maximum(need[some], q.need_width[some]) * LEVEL_LOOKED_FOR
            wants = np.flatnonzero((sign * moved > 0) & (got[some] < enough))
            size = sign * moved[wants]
            count = np.minimum(times[wants], np.ceil(enough[wants] / size - 1e-9))
            further = count * size > got[some[wants]]
            at, count = some[wants[further]], count[further]
            got[at] = count * size[further]
            for k in np.unique(count).tolist():
                row[at[count == k]] = len(self.pool)
                self.pool.append((moving, k * d[moving]))
            helped = helped or len(at) > 0
        if helped:
            self.update(some)
        return helped

    def _times(self, d: FloatArray, most: float) -> FloatArray:
        """Return how many times each view lets everything move by a direction, at most so many."""
        known, some = self.questions.known, self._known_on.of(np.flatnonzero(d))
        step = d[self.known_variable[some]]
        room = np.where(step > 0, known.up[some], known.down[some])
        out = np.full(self.n_views, max(most, 0.0))
        np.minimum.at(out, self.known_view[some], np.floor(room / np.abs(step) + WHOLE_SOLUTION))
        return out


def _witness_made_whole(z: FloatArray) -> FloatArray | None:
    """Return the smallest whole numbers in the ratio of the given ones; None where there are none to be seen."""
    if not len(z):
        return None
    as_it_is = np.rint(z)
    if np.abs(z - as_it_is).max() > WHOLE_SOLUTION or (as_it_is == 0).any():
        ratio = z / np.abs(z).min()
        for k in _MULTIPLES:
            as_it_is = np.rint(k * ratio)
            if np.abs(k * ratio - as_it_is).max() <= WHOLE_SOLUTION * k:
                break
        else:
            return None
    if np.abs(as_it_is).max() > _LARGEST:
        return None
    return np.asarray(as_it_is / np.gcd.reduce(as_it_is.astype(np.int64)))


def _whole_witness_holds(relations: csr_array, moving: IntArray, z: FloatArray) -> bool:
    """Whether the relations hold exactly."""
    residual = residuals_of_decimal_numbers(csr_array(relations[:, moving]), np.zeros(relations.shape[0]), z, 0)
    return residual is not None and not residual.any()


def _view_by_view(tally: WholeTally, sight: Sight, views: Views, deadline: Deadline) -> int:
    """Ask programs in whole numbers, for each view alone, what no direction shows."""
    q, s, programs = tally.questions, tally.system, 0
    for view in np.unique(q.view[tally.open]).tolist():
        mine = tally.open[q.view[tally.open] == view]
        if deadline.passed:
            break
        if not len(mine):
            continue
        at = q.number[mine]
        own = ranges(
            Sight(sight.relations, *views.bounds(view, sight.lo, sight.hi), sight.point, integer=True),
            AskedRanges(views.cell[at], views.lower[at], views.upper[at], views.sliding[at]),
            time_limit_s=deadline.left,
        )
        programs += own.programs
        for row in range(own.witnesses.shape[0]):
            z = own.witnesses[[row]].toarray()[0]
            tally.learn(z[s.space.cells])
        low, high = sight.point[views.cell[at]] - own.low_bound, own.high_bound - sight.point[views.cell[at]]
        low, high = (np.where(q.ratio[mine] > 0, x, y) / np.abs(q.ratio[mine]) for x, y in ((low, high), (high, low)))
        tally.bound(mine, low, high)
    return programs
