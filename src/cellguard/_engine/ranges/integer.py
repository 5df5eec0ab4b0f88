"""Ranges over whole numbers: for counts, where an attacker knows that there are no fractions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.parts import RangeRequest
from cellguard._engine.ranges.range_search import Reach
from cellguard._engine.ranges.system import System
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Solution, Way
from cellguard._types import FloatArray, IntArray

__all__ = ["search_whole_ranges"]

_WAY = Way(presolve=True, solver="choose", tolerance=1e-7)
_WIDE = 1e6
"""Rooms of more whole numbers: there branch-and-bound may not end, limit or not."""
_NEAR_END = 1000.0
"""So near the end over real numbers a whole one is looked for then: what is missing of a wide range does not count."""


def search_whole_ranges(
    system: System, request: RangeRequest, down: FloatArray, up: FloatArray, *, deadline: Deadline
) -> tuple[Reach, csr_array]:
    """Find both ends of every asked cell over movements in whole numbers, component by component.

    Parameters
    ----------
    system, request
        The reduced relations, and what is asked.
    down, up
        Room of every cell, whole numbers or infinite.
    deadline
        When the search stops with what it has.
    """
    reach = Reach.start(np.floor(system.implied_down + 1e-6), np.floor(system.implied_up + 1e-6))
    cells, variable, _ = system.space.members
    component = system.component[variable]
    for c in np.unique(system.component[request.variable]):
        mine = cells[component == c]
        search = _WholeSearch(reach, system, mine, (down[mine], up[mine]), deadline)
        for j in np.unique(request.variable[system.component[request.variable] == c]).tolist():
            for side in (1, -1):
                search.settle(j, side)
    pool = csr_array(np.array(reach.pool)) if reach.pool else csr_array((0, len(system.up)))
    return reach, pool


class _WholeSearch:
    """The whole-number program of one component, and what its solutions teach."""

    def __init__(
        self,
        reach: Reach,
        system: System,
        cells: IntArray,
        room: tuple[FloatArray, FloatArray],
        deadline: Deadline,
    ) -> None:
        down, up = room
        A = csr_array(system.reduction.relations[system.reduction.rows][:, cells])
        A = A[np.flatnonzero(np.diff(A.indptr))]
        self.reach, self.A, self.down, self.up, self.deadline = reach, A, down, up, deadline
        representative = system.reduction.alias[cells] == cells
        self.column = np.flatnonzero(representative)
        self.variable = system.space.variable_of[cells[representative]]
        self.column_of = dict(zip(self.variable.tolist(), self.column.tolist(), strict=True))
        both = np.concatenate([down, up])
        self.wide = bool(both[np.isfinite(both)].max(initial=0.0) > _WIDE)
        self.program = LinearProgram(
            LinearModel(A, 0.0, 0.0, -down, up, integer=None if self.wide else np.ones(len(up), bool)), _WAY
        )
        if not self.wide:
            self.program.options(mip_rel_gap=0.0, mip_abs_gap=0.0)

    def settle(self, j: int, side: int) -> None:
        """Follow one variable to its end on one side."""
        r = self.reach
        reached, bound = (r.high[j], r.high_bound[j]) if side > 0 else (-r.low[j], -r.low_bound[j])
        if reached >= bound or self.deadline.passed:
            return
        column = self.column_of[j]
        solution = self._push(column, side)
        if not np.isfinite(solution.x).all():
            # no movement at all is feasible: this one is unbounded, as the continuous one is
            self._witness_far_away(column, side)
            (r.high if side > 0 else r.low)[j] = side * np.inf
            return
        self._learn(solution)
        proven = np.floor(solution.bound * (1 + 1e-12) + 1e-6) if np.isfinite(solution.bound) else np.inf
        if side > 0:
            r.high_bound[j] = max(min(r.high_bound[j], proven), r.high[j])
        else:
            r.low_bound[j] = min(max(r.low_bound[j], -proven), r.low[j])

    def _push(self, column: int, side: int) -> Solution:
        """Move one cell as far as whole numbers go; in wide ranges, as far as they go near the end of the real ones."""
        end = self._solved(self.program, column, side)
        if not self.wide or not end.optimal or not np.isfinite(end.x).all():
            return end
        place = np.clip(np.rint(end.x), -self.down, self.up)
        low, high = np.maximum(-_NEAR_END, -self.down - place), np.minimum(_NEAR_END, self.up - place)
        left, whole = -(self.A @ place), np.ones(len(place), bool)
        near = self._solved(
            LinearProgram(LinearModel(self.A, left, left, low, high, integer=whole), _WAY), column, side
        )
        x = place + near.x if np.isfinite(near.x).all() else np.zeros(len(place))
        return replace(near, x=x, bound=end.objective + 1e-9 * abs(end.objective))

    def _solved(self, program: LinearProgram, column: int, side: int) -> Solution:
        self.reach.programs += 1
        program.set_costs(np.array([column]), np.array([float(side)]))
        solution = program.solve(maximize=True, time_limit_s=self.deadline.at_least())
        program.set_costs(np.array([column]), np.zeros(1))
        return solution

    def _witness_far_away(self, column: int, side: int) -> None:
        room = np.where(np.isfinite(self.down), self.down, 0.0), np.where(np.isfinite(self.up), self.up, 0.0)
        far = 1000.0 + 10.0 * max(room[0].max(initial=0.0), room[1].max(initial=0.0))
        one = np.array([column])
        self.program.set_bounds(one, -np.minimum(self.down[one], far), np.minimum(self.up[one], far))
        self._learn(self._push(column, side))
        self.program.set_bounds(one, -self.down[one], self.up[one])

    def _learn(self, solution: Solution) -> None:
        """Keep a whole movement, once checked, as witness of every variable that it takes further than before."""
        if not np.isfinite(solution.x).all():
            return
        z = np.rint(solution.x)
        if np.abs(self.A @ z).max(initial=0.0) > 1e-9 or (z > self.up).any() or (-z > self.down).any():
            return
        r, j = self.reach, self.variable
        v = np.zeros(len(r.high))
        v[j] = z[self.column]
        higher, lower = j[v[j] > r.high[j]], j[v[j] < r.low[j]]
        if len(higher) or len(lower):
            r.high[higher], r.low[lower] = v[higher], v[lower]
            r.high_witness[higher] = r.low_witness[lower] = len(r.pool)
            r.pool.append(v)
