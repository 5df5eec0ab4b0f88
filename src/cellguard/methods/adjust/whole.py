"""Whole numbers near the closest movement: for counts, and for amounts in cents.

Every movement is a combination of the columns of a basis of the null space. With a basis of whole numbers, whole
coefficients give whole movements. So the closest movement is rounded there, where any rounding satisfies the
relations, and improved by unit steps along the columns until none of them helps (within a ten-thousandth of the real
optimum on most of CSPLIB, in a tenth of a second). If steps are large compared with the movements, in tables of small
counts, a mixed-integer program over the whole numbers around the closest movement is tried too: a convex function is
exactly a sum of unit steps with growing prices, and the relations of two-way tables are totally unimodular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Target
from cellguard._engine.solvers.lp import LinearModel
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["find_whole_movement", "scale_columns_to_whole", "select_disjoint_sets"]

_REACH = (0, 1, 4)
"""Whole numbers further out than the two next to the closest movement, tried one after the other."""
_PROGRAM_S = 10.0
"""Seconds for the mixed-integer program if a movement is already known."""
_MULTIPLES = (*range(1, 101), 120, 125, 150, 200, 210, 250, 360, 400, 420, 500, 600, 840, 1000, 2000, 2520, 5000)
"""Multiples of a column of the basis that are tried to make it whole."""
_KICKS = 40
"""How often the price of missed bounds is raised."""
_MAX_ROUNDS = 300
"""Maximum number of rounds of steps of one length."""
_MAX_STEPS = 2000
"""Maximum number of steps in one round."""


def find_whole_movement(
    adjuster: Adjuster,
    target: Target,
    near: FloatArray,
    *,
    bound: float = float("nan"),
    gap: float = 1e-3,
    deadline: Deadline = NEVER,
) -> FloatArray | None:
    """Return a movement in whole numbers within the bounds, close to `near`; None if none was found.

    Its distance is kept small. If the norm has a maximum, it stays near the closest one in real numbers, `near`,
    instead. It is close enough when it costs at most a share `gap` more than `bound`, a lower bound on the cost.
    """
    low, high = np.ceil(target.lower - 1e-7), np.floor(target.upper + 1e-7)
    free = ~adjuster.reduction.determined
    if ((low > high) & free).any():
        return None
    d = target.distance
    loss = _Loss(d.absolute + d.largest, d.square, near if d.largest.any() else np.zeros_like(near))
    wanted = _Wanted(adjuster, np.where(free, low, 0.0), np.where(free, high, 0.0), loss, near, deadline)
    found = _find_by_steps(wanted)
    close = np.isfinite(bound) and found is not None and d.compute_value(found) <= (1.0 + gap) * bound
    if found is not None and (close or deadline.passed):
        return found
    other = _find_by_program(wanted, _PROGRAM_S if found is not None else np.inf)
    return found if other is None or (found is not None and d.compute_value(found) <= d.compute_value(other)) else other


class _Loss(NamedTuple):
    """Cost of each cell's movement: its part of the distance; for a maximum norm, its distance from the best."""

    absolute: FloatArray
    square: FloatArray
    centre: FloatArray

    def restrict_to_cells(self, cells: IntArray) -> _Loss:
        return _Loss(*(part[cells] for part in self))

    def compute_at(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.absolute * np.abs(z - self.centre) + self.square * z**2)


class _Wanted(NamedTuple):
    """A whole movement of one structure, near another movement."""

    adjuster: Adjuster
    low: FloatArray
    high: FloatArray
    loss: _Loss
    near: FloatArray
    deadline: Deadline


# ---------------------------------------------------------------------- steps along the basis


def _find_by_steps(wanted: _Wanted) -> FloatArray | None:
    """Return a whole movement within the bounds; None if there is none, or no multiple of a column is whole."""
    reduction, deadline = wanted.adjuster.reduction, wanted.deadline
    basis, multiple = scale_columns_to_whole(reduction.basis)
    if basis is None:
        return None
    search = _Descent(basis, wanted)
    out = basis @ np.rint(wanted.near[reduction.parameters] / multiple)
    z = out[search.cells]
    for _ in range(_KICKS):
        # with numbers of very different sizes, the real optimum misses small cells by many units
        step = 4.0 ** np.ceil(np.log(max(1.0, float(search.measure_missed(z).max(initial=0.0)))) / np.log(4.0))
        while step >= 1.0:
            z = search.improve(z, step, deadline)
            step /= 4.0
        missed = search.measure_missed(z) > 0
        if not missed.any():
            out[search.cells] = z
            return np.asarray(out)
        if deadline.passed:
            break
        search.price = np.where(missed, 4.0 * search.price, search.price)
    return None


class _Descent:
    """A whole movement that is improved by unit steps along the columns of the basis."""

    def __init__(self, basis: csr_array, wanted: _Wanted) -> None:
        loss, cells = wanted.loss, np.flatnonzero(np.diff(basis.indptr))
        marginal = loss.absolute + loss.square * (2.0 * np.abs(wanted.near) + 1.0)
        # so expensive that no gain elsewhere pays for missing a bound by one
        typical = float(np.median(marginal[marginal > 0])) if marginal.any() else 1.0
        self.cells = cells
        """Those that move."""
        self.price = np.maximum(1e4 * typical, 10.0 * marginal)[cells]
        self.low, self.high, self.loss = wanted.low[cells], wanted.high[cells], loss.restrict_to_cells(cells)
        self.columns = csc_array(basis[cells])
        self.by_coefficient = [(c, self._select_by_coefficient(c)) for c in np.unique(self.columns.data)]

    def _select_by_coefficient(self, coefficient: float) -> csr_array:
        """Return columns by cells: where a column has this coefficient."""
        there = self.columns.data == coefficient
        start = np.concatenate([[0], np.cumsum(there)])[self.columns.indptr]
        return csr_array((np.ones(start[-1]), self.columns.indices[there], start), shape=self.columns.shape[::-1])

    def measure_missed(self, z: FloatArray) -> FloatArray:
        """Return by how much each cell misses its bounds."""
        return np.maximum(np.maximum(self.low - z, z - self.high), 0.0)

    def compute_cost(self, z: FloatArray) -> FloatArray:
        """Return the cost of each cell."""
        return self.loss.compute_at(z) + self.price * self.measure_missed(z)

    def improve(self, z: FloatArray, step: float, deadline: Deadline) -> FloatArray:
        """Take the best steps of this length that do not touch each other, until none helps."""
        z = z.copy()
        for _ in range(_MAX_ROUNDS):
            now = self.compute_cost(z)
            # a cell that goes up with one column goes down with another: each shift is priced once
            shifts = {way * c for way in (step, -step) for c, _ in self.by_coefficient}
            dearer = {shift: self.compute_cost(z + shift) - now for shift in shifts}
            up, down = (sum(matrix @ dearer[way * c] for c, matrix in self.by_coefficient) for way in (step, -step))
            gain = np.minimum(up, down)
            better = np.flatnonzero(gain < -1e-12 * max(float(now.sum()), 1e-300))
            if not len(better) or deadline.passed:
                break
            best = better[np.argsort(gain[better], kind="stable")][:_MAX_STEPS]
            steps = self.columns[:, best]
            rank = np.repeat(np.arange(len(best)), np.diff(steps.indptr))
            taken = select_disjoint_sets(steps.indices, rank, len(z))[rank]
            way = np.where(up[best] < down[best], step, -step)
            z[steps.indices[taken]] += steps.data[taken] * way[rank[taken]]
        return z


def select_disjoint_sets(cell: IntArray, rank: IntArray, n_cells: int) -> BoolArray:
    """Return which sets of cells are taken if each one, in order, is taken unless it touches one taken before.

    Each entry is one cell and the number of its set, set by set. A set that comes first in all its cells is taken
    regardless of the others, and those it touches never are. All of these are found at once, until no set is left.

    >>> select_disjoint_sets(np.array([0, 1, 1, 2, 2, 3]), np.array([0, 0, 1, 1, 2, 2]), 4).tolist()
    [True, False, True]
    """
    n = int(rank[-1]) + 1 if len(rank) else 0
    taken = np.zeros(n, bool)
    first = np.empty(n_cells, np.int64)
    while len(rank):
        first[cell[::-1]] = rank[::-1]  # the first of several sets is written last
        present = np.bincount(rank, minlength=n) > 0
        wins = present & (np.bincount(rank[first[cell] != rank], minlength=n) == 0)
        taken |= wins
        touched = np.zeros(n_cells, bool)
        touched[cell[wins[rank]]] = True
        left = np.bincount(rank[touched[cell]], minlength=n)[rank] == 0
        cell, rank = cell[left], rank[left]
    return taken


def scale_columns_to_whole(basis: csr_array) -> tuple[csr_array | None, FloatArray]:
    """Return the smallest whole multiples of the columns, and which multiples; None where one has none.

    Relations whose coefficients are not all 1 let cells move by halves of each other.
    """
    multiple = np.ones(basis.shape[1])
    if (basis.data == np.rint(basis.data)).all():
        return basis, multiple
    columns = csc_array(basis)
    each = np.repeat(np.arange(basis.shape[1]), np.diff(columns.indptr))
    left = np.ones(basis.shape[1], bool)
    for k in _MULTIPLES:
        off = np.zeros(basis.shape[1])
        np.maximum.at(off, each, np.abs(k * columns.data - np.rint(k * columns.data)))
        now = left & (off < 1e-7 * k)
        multiple[now] = k
        left &= ~now
        if not left.any():
            data = np.rint(columns.data * multiple[each])
            return csr_array(csc_array((data, columns.indices, columns.indptr), shape=basis.shape)), multiple
    return None, multiple


# ---------------------------------------------------------------------- a mixed-integer program


def _find_by_program(wanted: _Wanted, seconds: float) -> FloatArray | None:
    """Choose among the whole numbers around the closest movement; go further out only if none of them fits."""
    adjuster, deadline = wanted.adjuster, wanted.deadline
    cells = np.flatnonzero(~adjuster.reduction.determined)
    A = csr_array(adjuster.relations[adjuster.reduction.rows][:, cells])
    for reach in _REACH if np.isinf(seconds) else _REACH[:1]:
        found = _find_near(A, wanted, cells, reach, min(seconds, deadline.get_seconds_at_least()))
        if found is not None:
            out = np.zeros(len(wanted.near))
            out[cells] = found
            return out
        if deadline.passed:
            break
    return None


def _find_near(A: csr_array, wanted: _Wanted, cells: IntArray, reach: int, time_limit_s: float) -> FloatArray | None:
    """Choose whole numbers at most `reach` further than the two next to z (for a whole z: than its neighbours)."""
    z, low, high = (x[cells] for x in (wanted.near, wanted.low, wanted.high))
    loss = wanted.loss.restrict_to_cells(cells)
    first = np.clip(np.floor(z) - reach - (z == np.rint(z)), low, high)
    last = np.clip(np.floor(z) + 1 + reach, low, high)
    steps = int((last - first).max(initial=0.0))
    x = first
    if steps:
        prices = [loss.compute_at(first + k + 1) - loss.compute_at(first + k) for k in range(steps)]
        open_ = [(first + k < last).astype(np.float64) for k in range(steps)]
        side, zero = -(A @ first), np.zeros(len(z) * steps)
        every = csr_array(hstack([A] * steps))
        model = LinearModel(every, side, side, zero, np.concatenate(open_), np.concatenate(prices))
        found = solve_mixed(model, Until(time_limit_s=time_limit_s, relative_gap=1e-4, absolute_gap=0.0))
        if not found.found:
            return None
        x = np.asarray(first + found.x.reshape(steps, -1).sum(axis=0))
    return x if not (A @ x).any() else None
