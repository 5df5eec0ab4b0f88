"""Whole numbers for many views: counts move by multiples of a direction, and each view takes as many as fit.

Movements over real numbers mostly have whole-number directions: one cell more here, one less there. So
the movements that met a level over real numbers are tried first: a view takes the greatest multiple within its
bounds. Programs in whole numbers are solved only where no multiple suffices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.numbers.multiples import compute_exact_residuals
from cellguard._engine.ranges.implied import expand_rows
from cellguard._engine.ranges.ranges import compute_ranges
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.views import Views
from cellguard._engine.ranges.witnesses.witness import ExactMovements
from cellguard._engine.space.groups import find_groups
from cellguard._tolerances import LEVEL_LOOKED_FOR, WHOLE_SOLUTION
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["convert_whole_movements", "decide_in_whole_numbers"]

_MULTIPLES = (1, 2, 3, 4, 5, 6, 12, 60)
"""Denominators by which fractional directions are made whole."""
_LARGEST = 2.0**50
MAX_ENTRIES = 1_000_000
"""Numbers in movements that are looked at together; each takes some hundred bytes meanwhile."""

Movement = tuple[IntArray, FloatArray]
"""Variables that move, and by how much."""


def decide_in_whole_numbers(
    tally: Tally, sight: Sight, views: Views, movements: csr_array, deadline: Deadline
) -> tuple[WholeTally, int]:
    """Answer in whole numbers what was answered over real ones; return the new tally, and how many programs it took.

    `movements` of the variables are whole already, and inside everybody's bounds: they are tried first.
    """
    whole = WholeTally(tally)
    whole.record_each(movements)
    for some in _group_movements(tally.pool):
        if deadline.passed or not len(whole.open):
            break
        whole.record_directions(some, deadline)
    return whole, _settle_each_view(whole, sight, views, deadline)


def convert_whole_movements(movements: csr_array) -> ExactMovements:
    """Return movements that are already whole numbers as exact ones."""
    numbers = csr_array(np.rint(movements).astype(np.int64))
    numbers.sum_duplicates()  # sort now: sorting a matrix that shares its columns later would disorder this one
    return ExactMovements(numerators=numbers, denominator=np.ones(numbers.shape[1], np.int64))


class WholeTally(Tally):
    """What whole-number movements show: whole multiples of a direction within a view's bounds, never a part of it."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally.system, tally.questions)
        every = np.arange(len(self.questions))
        self.bound(every, np.floor(tally.low_bound + WHOLE_SOLUTION), np.floor(tally.high_bound + WHOLE_SOLUTION))
        self._tried: set[bytes] = set()
        """Directions that were ticked off: they show nothing new."""

    def note_movement(self, v: FloatArray) -> bool:
        """Tick off what the directions of a feasible movement show, there and back."""
        moving = np.flatnonzero(v)
        return self.record_directions([(moving, v[moving])])

    def record_directions(self, movements: list[Movement], deadline: Deadline = NEVER) -> bool:
        """Tick off what the directions of feasible movements show, the shortest first."""
        helped = False
        for moving, step in _find_whole_directions(self.system, movements):
            if deadline.passed or not len(self.open):
                break
            key = moving.tobytes() + step.tobytes()
            if key in self._tried:
                continue
            self._tried.add(key)
            direction = np.zeros(len(self.system.up))
            direction[moving] = step
            for d in (direction, -direction):
                helped = self._mark_shown(d) or helped
        return helped

    def _compute_share_matrix(self, by_variable: csc_array) -> FloatArray:
        """Return which movements lie inside the bounds of each view: a part of one is not whole."""
        return np.floor(super()._compute_share_matrix(by_variable) + 1e-9)

    def _mark_shown(self, d: FloatArray) -> bool:
        q, s = self.questions, self.system
        some, moving = self._find_moved(d), np.flatnonzero(d)
        if not len(some):
            return False
        slack = np.where(d[moving] > 0, s.up[moving], s.down[moving])
        times = self._count_multiples(d, float(np.floor((slack / np.abs(d[moving])).min() + WHOLE_SOLUTION)))[
            q.view[some]
        ]
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

    def _count_multiples(self, d: FloatArray, most: float) -> FloatArray:
        """Return how many times each view's bounds allow a direction, at most `most` times."""
        known, some = self.questions.known, self._known_on.get_entries(np.flatnonzero(d))
        step = d[self.known_variable[some]]
        slack = np.where(step > 0, known.up[some], known.down[some])
        out = np.full(self.n_views, max(most, 0.0))
        np.minimum.at(out, self.known_view[some], np.floor(slack / np.abs(step) + WHOLE_SOLUTION))
        return out


def _group_movements(pool: list[Movement]) -> Iterator[list[Movement]]:
    """Yield movements, the shortest first, as many together as fit into memory."""
    batch: list[Movement] = []
    entries = 0
    for movement in sorted(pool, key=lambda movement: len(movement[0])):
        if batch and entries + len(movement[0]) > MAX_ENTRIES:
            yield batch
            batch, entries = [], 0
        batch.append(movement)
        entries += len(movement[0])
    if batch:
        yield batch


def _find_whole_directions(system: System, movements: list[Movement]) -> list[Movement]:
    """Return the whole directions in movements, the shortest first: their parts, once they are whole in every cell."""
    space = system.space
    parts = _split_movements(space.relations, movements)
    cells = csr_array(parts @ space.lift.T)
    cells.eliminate_zeros()
    cells.sort_indices()
    made = _make_rows_whole(cells)
    holds = _are_rows_satisfied(system.reduction.relations, made)
    found = csr_array(made[np.flatnonzero(holds)][:, space.cells])
    found.sort_indices()
    ends = found.indptr.tolist()
    directions = []
    for row in np.argsort(np.diff(found.indptr), kind="stable").tolist():
        span = slice(ends[row], ends[row + 1])
        moving, step = found.indices[span].astype(np.int64), found.data[span]
        if len(moving):
            directions.append((moving, step if step[0] > 0 else -step))
    return directions


def _split_movements(relations: csr_array, movements: list[Movement]) -> csr_array:
    """Return the parts of movements that have no relation in common, a row each."""
    n = relations.shape[1]
    variable = np.concatenate([np.zeros(0, np.int64), *(moving for moving, _ in movements)])
    moved = np.concatenate([np.zeros(0), *(v for _, v in movements)])
    row = np.repeat(np.arange(len(movements)), [len(moving) for moving, _ in movements])
    by_variable = csc_array(relations)
    entry, place = expand_rows(by_variable.indptr, variable, np.arange(len(variable)))
    node = row[entry] * relations.shape[0] + by_variable.indices[place]
    nodes, node = np.unique(node, return_inverse=True)
    k = len(variable)
    part = find_groups(entry, k + node.ravel(), k + len(nodes))[:k]
    names, part = np.unique(part, return_inverse=True)
    return csr_array((moved, (part.ravel(), variable)), shape=(len(names), n))


def _make_rows_whole(rows: csr_array) -> csr_array:
    """Return the smallest whole numbers in the ratio of each row; rows without any are left out."""
    rows = csr_array(rows[np.flatnonzero(np.diff(rows.indptr))])
    if not rows.nnz:
        return rows
    start, row = rows.indptr[:-1], np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    z, made = rows.data, np.rint(rows.data)
    wrong = np.maximum.reduceat(np.abs(z - made), start) > WHOLE_SOLUTION
    open_ = wrong | np.logical_or.reduceat(made == 0, start)
    ratio = z / np.minimum.reduceat(np.abs(z), start)[row]
    for k in _MULTIPLES:
        if not open_.any():
            break
        near = np.rint(k * ratio)
        fits = open_ & (np.maximum.reduceat(np.abs(k * ratio - near), start) <= WHOLE_SOLUTION * k)
        made = np.where(fits[row], near, made)
        open_ &= ~fits
    good = ~open_ & (np.maximum.reduceat(np.abs(made), start) <= _LARGEST)
    made = np.where(good[row], made, 1.0)
    made = made / np.gcd.reduceat(made.astype(np.int64), start)[row]
    return csr_array(csr_array((made, rows.indices, rows.indptr), shape=rows.shape)[np.flatnonzero(good)])


def _are_rows_satisfied(relations: csr_array, rows: csr_array) -> BoolArray:
    """Return for which rows the relations hold exactly."""
    if (relations.data == np.rint(relations.data)).all():
        left = csr_array(rows.astype(np.int64) @ relations.astype(np.int64).T)
        left.eliminate_zeros()
        return np.diff(left.indptr) == 0
    ends = rows.indptr.tolist()
    spans = [slice(ends[r], ends[r + 1]) for r in range(rows.shape[0])]
    return np.array([_check_whole_relations(relations, rows.indices[at], rows.data[at]) for at in spans], bool)


def _check_whole_relations(relations: csr_array, moving: IntArray, z: FloatArray) -> bool:
    """Return whether the relations hold exactly."""
    residual = compute_exact_residuals(csr_array(relations[:, moving]), np.zeros(relations.shape[0]), z, 0)
    return residual is not None and not residual.any()


def _settle_each_view(tally: WholeTally, sight: Sight, views: Views, deadline: Deadline) -> int:
    """Solve programs in whole numbers, view by view, where no direction suffices."""
    q, s, programs = tally.questions, tally.system, 0
    for view in np.unique(q.view[tally.open]).tolist():
        mine = tally.open[q.view[tally.open] == view]
        if deadline.passed:
            break
        if not len(mine):
            continue
        at = q.number[mine]
        own = compute_ranges(
            Sight(
                sight.relations,
                *views.get_bounds(view, sight.lo, sight.hi),
                sight.point,
                integer=True,
                shown=sight.shown,
            ),
            AskedRanges(views.cell[at], views.lower[at], views.upper[at], views.sliding[at]),
            time_limit_s=deadline.left,
        )
        programs += own.programs
        for row in range(own.witnesses.shape[0]):
            z = own.witnesses[[row]].toarray()[0]
            tally.note_movement(z[s.space.cells])
        low, high = sight.point[views.cell[at]] - own.low_bound, own.high_bound - sight.point[views.cell[at]]
        low, high = (np.where(q.ratio[mine] > 0, x, y) / np.abs(q.ratio[mine]) for x, y in ((low, high), (high, low)))
        tally.bound(mine, low, high)
    return programs
