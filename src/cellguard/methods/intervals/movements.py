"""Movements that hide: additive changes of the table, each of which moves some sensitive cells through their sets.

A movement is a vector of whole numbers ``v`` with ``T v = 0``. The table may be at any of its positions 0, 1, ..., n;
the true table is at position t. A sensitive cell that moves by p per step takes n + 1 values, from
``x = a - t p`` to ``y = x + n p`` (mirrored if it moves backward). It is hidden when ``y - x`` is the width required of
a set that ends at y. The necessary p follows from x alone, never from the position: a table at another position of
the movement gets the same movement.

Movements are searched one after the other. The cell that needs most leads; its set is the piece, in a public
partition with a secret offset, in which it lies. A linear program finds the cheapest movement of the leader, on which
other cells that are not yet hidden ride free of charge as far as they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import DUAL, LinearModel, LinearProgram
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.intervals.asked import AskedCells
from cellguard.methods.intervals.lattice import Width, compute_grain, find_pieces

__all__ = ["Cover", "Ground", "Known", "Movement"]

_ENOUGH = 0.8
"""A riding cell needs at least this share of what the smallest step gives."""
_WHOLE_S = 5.0
"""Seconds to find a movement in whole numbers if the first program does not return one."""
_FAR = 2.0**40
"""Maximum length of a step."""
_RIDING = 1e-6
"""Cost of moving a cell that must be hidden anyway by one, as a share of its weight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Movement:
    """A whole-number vector, the number of steps along it, and the position of the true table."""

    cells: IntArray
    """Which cells move (places on the ground)."""
    step: FloatArray
    """By how much they move with one step."""
    steps: float
    position: float


class Known(NamedTuple):
    """Closer bounds of some cells."""

    cells: IntArray
    lower: FloatArray
    upper: FloatArray


class _Path(NamedTuple):
    """A movement to search for: its leader, and how far the leader moves per step."""

    leader: int
    stride: float
    grain: float
    """All steps are multiples of it."""
    steps: float
    position: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Ground:
    """The cells that can move: relations between them, values and bounds in units, and costs."""

    relations: csr_array
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray

    def __len__(self) -> int:
        return len(self.value)


class Cover:
    """The search: how far each cell has been moved so far, and which cells are hidden."""

    def __init__(
        self, ground: Ground, asked: AskedCells, places: IntArray, beyond: float, tight: dict[int, Known]
    ) -> None:
        self.ground, self.asked = ground, asked
        self.place = places
        """Where the cells to be hidden are on the ground; -1 if they cannot move."""
        self.beyond = beyond
        """Share of a movement by which intervals go beyond its ends: slack is reserved for it."""
        self.tight = tight
        """For cells to be hidden from an attacker with special knowledge: that knowledge."""
        m, k = len(ground), len(asked)
        self.moved = np.zeros(m)
        """Total change of each cell by all movements together: the widths of the sets."""
        self.below = np.zeros(m)
        """How far below the truth each cell goes."""
        self.hidden = np.zeros(k, np.bool_)
        self.bound = np.full(m, np.inf)
        """How far later movements may still move each cell without changing steps that were computed from its place."""
        self.given = np.zeros(k)
        """Width that movements gave each cell to be hidden, as far as it counts."""
        self.lost = np.zeros(k)
        """Width that does not count: an attacker from whom the cell must be hidden knows the movement."""
        self.movements: list[Movement] = []
        mirrored = ground.value[places] < 0
        self.sign = np.where(mirrored, -1.0, 1.0)
        self.bottom = np.where(mirrored, -ground.upper[places], ground.lower[places])
        self.begin = np.maximum(self.bottom, 0.0)
        self.end = np.where(mirrored, -ground.lower[places], ground.upper[places])
        A = ground.relations
        self.relations = csr_array(hstack([A, -A, A, -A]))
        """Costs of cells that move forward and backward free of charge, and of others."""
        self.program = LinearProgram(LinearModel(self.relations, 0.0, 0.0, np.zeros(4 * m), np.zeros(4 * m)), DUAL)

    # ------------------------------------------------------------------ search

    def search(self, offset: FloatArray, urgency: FloatArray, deadline: Deadline) -> IntArray:
        """Hide cell after cell; return those that could not be hidden.

        Each cell's partition has an offset between 0 and 1; the largest product of need and urgency leads.
        """
        stuck = self.place < 0
        while not deadline.passed:
            open_ = np.flatnonzero(~self.hidden & ~stuck)
            if not len(open_):
                break
            need = self._compute_width(open_).compute_least(self.find_corner(open_) + self.lost[open_])
            leader = int(open_[np.argmax(need * urgency[open_])])
            if not self._hide_leader(leader, float(offset[leader]), deadline):
                stuck[leader] = True
        return np.flatnonzero(~self.hidden)

    def _compute_width(self, which: IntArray) -> Width:
        w = self.asked.width
        return Width(w.floor[which], w.share[which], w.extra[which], self.given[which])

    def find_corner(self, which: IntArray) -> FloatArray:
        """Return where the set of each cell begins, by the movements so far, in its own direction."""
        at = self.place[which]
        above = self.moved[at] - self.below[at]
        value = np.where(self.sign[which] > 0, self.ground.value[at], -self.ground.value[at])
        return np.asarray(value - np.where(self.sign[which] > 0, self.below[at], above))

    def _hide_leader(self, leader: int, offset: float, deadline: Deadline) -> bool:
        """Hide the leader if possible, preferably with slack beyond the sets."""
        path = self.find_path(leader, offset)
        if path is None:
            return False
        return any(
            self._move_with_leader(path, beyond, deadline) for beyond in sorted({self.beyond, 0.0}, reverse=True)
        )

    def find_path(self, leader: int, offset: float) -> _Path | None:
        """Return how the leader moves: through the numbers of its piece that are a multiple of the stride apart."""
        one = np.array([leader])
        width, lost, here = self._compute_width(one), self.lost[one], self.find_corner(one)
        # further down, no width would be missing
        start = np.minimum(np.maximum(self.begin[one], width.find_latest_start(np.zeros(1)) + 1.0 - lost), here) + lost
        x, y, stride = find_pieces(here + lost, start, self.end[one] - self.given[one], width, np.array([offset]))
        ahead = np.floor((here + lost - x) / stride)
        steps = np.floor((y - (here + lost - ahead * stride)) / stride)
        if not steps[0] > 0:
            return None
        position = ahead if self.sign[leader] > 0 else steps - ahead
        return _Path(leader, *(float(part[0]) for part in (stride, compute_grain(stride), steps, position)))

    def _move_with_leader(self, path: _Path, beyond: float, deadline: Deadline) -> bool:
        """Find the cheapest movement in which the leader makes the stride; return whether there is one."""
        g, m, grain = self.ground, len(self.ground), path.grain
        others = np.flatnonzero(~self.hidden & (self.place >= 0))
        others = others[others != path.leader]
        slack = grain * np.floor(self._compute_slack_per_step(path, beyond) / grain)
        riding = np.stack([self._compute_least_steps(others, path, way, beyond) for way in (1.0, -1.0)])
        # an attacker who must not infer the leader may know a riding cell
        riding = np.where(riding <= slack[:, self.place[others]], riding, 0.0)
        free = np.zeros((2, m))
        free[:, self.place[others]] = riding
        paid = np.maximum(slack - free, 0.0)
        upper = np.concatenate([free[0], free[1], paid[0], paid[1]]) / grain
        lower = np.zeros(4 * m)
        place = int(self.place[path.leader])
        upper[place + m * np.arange(4)] = 0.0
        lower[place] = upper[place] = path.stride / grain
        cost = np.concatenate([_RIDING * g.cost, _RIDING * g.cost, g.cost, g.cost])
        self.program.set_all(cost, lower, upper)
        found = self.program.solve(time_limit_s=deadline.left, duals=False)
        v = self._round_to_whole(found.x, lower, upper, cost, deadline) if found.optimal else None
        if v is None:
            return False
        self._add_movement(path, grain * v, others, riding)
        return True

    def _compute_slack_per_step(self, path: _Path, beyond: float) -> FloatArray:
        """Return by how many units a step may still move each cell, forward and backward."""
        g, steps = self.ground, path.steps
        low, high = g.value - self.below, g.value - self.below + self.moved
        lower, upper = g.lower, g.upper
        if path.leader in self.tight:
            known = self.tight[path.leader]
            lower, upper = lower.copy(), upper.copy()
            np.maximum.at(lower, known.cells, known.lower)
            np.minimum.at(upper, known.cells, known.upper)
        down, up = np.maximum(low - lower, 0.0), np.maximum(upper - high, 0.0)
        behind, ahead = path.position + beyond * steps, steps - path.position + beyond * steps

        def divide_slack(slack: FloatArray, parts: float) -> FloatArray:
            return slack / parts if parts > 0 else np.full(len(slack), np.inf)

        forward = np.minimum(divide_slack(down, behind), divide_slack(up, ahead))
        backward = np.minimum(divide_slack(down, ahead), divide_slack(up, behind))
        most = np.minimum(self.bound / steps, _FAR)
        return np.asarray(np.floor(np.minimum(np.stack([forward, backward]), most) + 1e-9))

    def _compute_least_steps(self, cells: IntArray, path: _Path, way: float, beyond: float) -> FloatArray:
        """Return the least step that hides each cell when it moves this way; 0 if it cannot."""
        width, steps, grain = self._compute_width(cells), path.steps, path.grain
        ahead = np.where(self.sign[cells] * way > 0, path.position, steps - path.position)
        corner, lost = self.find_corner(cells), self.lost[cells]
        low, high = np.ones(len(cells)), np.ceil(width.compute_least(corner + lost) / (steps * grain))
        while (low < high).any():  # bisect: a sufficient step stays sufficient when it grows
            p = np.floor((low + high) / 2)
            good = steps * grain * p >= width.compute_least(corner - ahead * grain * p + lost)
            low, high = np.where(good, low, np.minimum(p + 1, high)), np.where(good, p, high)
        p = grain * high
        # not one grain more than required at this start: other positions of the movement would not choose it
        exact = p == grain * np.ceil(width.compute_least(corner - ahead * p + lost) / (steps * grain))
        over = beyond * steps * p
        below, above = corner - ahead * p, corner + self.given[cells] + lost + (steps - ahead) * p
        fits = exact & (below - over >= self.bottom[cells]) & (above + over <= self.end[cells])
        # a cell that needs less than one grain per step would get far more than it requires
        fits &= width.compute_least(below + lost) >= _ENOUGH * steps * grain
        return np.where(fits, p, 0.0)

    def _round_to_whole(
        self, x: FloatArray, lower: FloatArray, upper: FloatArray, cost: FloatArray, deadline: Deadline
    ) -> FloatArray | None:
        """Return the movement in whole numbers; None if there is none."""
        A, m = self.ground.relations, len(self.ground)

        def join_parts(y: FloatArray) -> FloatArray:
            return np.asarray(y[:m] - y[m : 2 * m] + y[2 * m : 3 * m] - y[3 * m :])

        v = np.rint(join_parts(x))
        if np.abs(v - join_parts(x)).max(initial=0.0) <= 1e-6 and not np.any(A @ v):
            return v
        used = np.flatnonzero(upper > 0)
        model = LinearModel(csr_array(self.relations[:, used]), 0.0, 0.0, lower[used], upper[used], cost[used])
        found = solve_mixed(model, Until(time_limit_s=min(_WHOLE_S, deadline.left), relative_gap=0.05))
        whole = np.zeros(4 * m)
        whole[used] = found.x
        v = join_parts(whole)
        return v if found.found and not np.any(A @ v) else None

    def _add_movement(self, path: _Path, v: FloatArray, others: IntArray, riding: FloatArray) -> None:
        """Add the movement, and record which cells it hides."""
        steps, position = path.steps, path.position
        cells = np.flatnonzero(v)
        mine = v[self.place[others]]
        least = np.where(mine > 0, riding[0], riding[1])
        counts = self._is_hidden_from_attackers(others, path, v)
        done = np.append(others[(mine != 0) & (least > 0) & (np.abs(mine) >= least) & counts], path.leader)
        least_of = np.zeros(len(self.asked))
        least_of[others], least_of[path.leader] = least, path.stride
        self.bound[cells] -= steps * np.abs(v[cells])
        self.bound[self.place[done]] = self._measure_plateau(done, path, v, least_of[done])
        self.given[path.leader] += steps * abs(v[self.place[path.leader]])
        self.given[others] += np.where(counts, steps * np.abs(mine), 0.0)
        self.lost[others] += np.where(counts, 0.0, steps * np.abs(mine))
        self.hidden[done] = True
        self.movements.append(Movement(cells=cells, step=v[cells], steps=steps, position=position))
        self.moved += steps * np.abs(v)
        self.below += np.where(v > 0, v * position, -v * (steps - position))
        # several movements together may hide what none hides alone
        together = others[~self.hidden[others]]
        spare = -self._compute_width(together).compute_missing(self.find_corner(together) + self.lost[together])
        self.hidden[together[spare >= 0]] = True
        slack = (
            self._compute_width(together).find_latest_start(np.zeros(len(together)))
            - self.find_corner(together)
            - self.lost[together]
        )
        self.bound[self.place[together[spare >= 0]]] = np.maximum(slack[spare >= 0], 0.0)

    def _measure_plateau(self, cells: IntArray, path: _Path, v: FloatArray, least: FloatArray) -> FloatArray:
        """Return how far newly hidden cells could be elsewhere, either way, and still be moved in the same way."""
        step, steps = v[self.place[cells]], path.steps
        p = np.abs(step)
        ahead = np.where(self.sign[cells] * step > 0, path.position, steps - path.position)
        width, here = self._compute_width(cells), self.find_corner(cells) + self.lost[cells]
        shorter = p - path.grain
        # up to here one grain less sufficed; a cell moved further than required may be anywhere below
        low = np.where((p == least) & (shorter > 0), width.find_latest_start(steps * shorter) + ahead * p, -np.inf)
        high = width.find_latest_start(steps * p) + ahead * p
        out = np.maximum(np.floor(np.minimum(here - low - 1.0, high - here)), 0.0)
        return np.where(cells == path.leader, 0.0, out)  # the leader's piece must stay the same

    def _is_hidden_from_attackers(self, which: IntArray, path: _Path, v: FloatArray) -> BoolArray:
        """Return for which cells no attacker they must be hidden from knows too much of the present movement."""
        out = np.ones(len(which), np.bool_)
        for k in np.flatnonzero(np.isin(which, list(self.tight))).tolist():
            at, lower, upper = self.tight[int(which[k])]
            step = v[at]
            behind = np.where(step > 0, step * path.position, -step * (path.steps - path.position))
            low = self.ground.value[at] - self.below[at] - behind
            high = low + self.moved[at] + path.steps * np.abs(step)
            out[k] = bool(((step == 0) | ((low >= lower) & (high <= upper))).all())
        return out
