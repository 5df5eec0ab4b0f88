"""Ranges over whole numbers: for counts, where an attacker knows that all values are whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.parts import RangeRequest
from cellguard._engine.ranges.search.known_movements import stack_movements, take_movement
from cellguard._engine.ranges.search.range_search import Reach
from cellguard._engine.ranges.search.unit_walks import MAX_UNITS, find_improving, get_needs, walk_in_units
from cellguard._engine.ranges.system import System
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Solution, SolveStatus, Way
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import FloatArray, IntArray

__all__ = ["search_whole_ranges"]

_WAY = Way(presolve=True, solver="choose", tolerance=1e-7)
_RELAXED_WAY = Way(tolerance=1e-9)
_WIDE = 1e6
"""Slack, in whole numbers, beyond which branch-and-bound may not end, even with a time limit."""
_NEAR_END = 1000.0
"""In wide ranges, search whole numbers within this distance of the end over real numbers; more is negligible there."""

_LIMITS_OF_OTHERS = (1.0, 100.0, np.inf)
"""How far other cells may move when an unlimited one does, in multiples of its distance; the first mostly suffices."""


def search_whole_ranges(
    system: System,
    request: RangeRequest,
    down: FloatArray,
    up: FloatArray,
    *,
    deadline: Deadline,
    exact: bool = True,
) -> tuple[Reach, csr_array]:
    """Find both ends of every requested cell over whole-number movements, component by component.

    Walks in units come first: what they reach needs no program.

    Parameters
    ----------
    system, request
        The reduced relations, and the request.
    down, up
        Slack of every cell, whole numbers or infinite.
    deadline
        When the search stops with what it has.
    exact
        Follow every variable to its ends; otherwise stop where its levels are met.
    """
    reach = Reach.start(np.floor(system.implied_down + 1e-6), np.floor(system.implied_up + 1e-6))
    needs = get_needs(system, request)
    _record_walks(reach, system, request, needs, deadline=deadline, exact=exact)
    farthest = max(float(need[np.isfinite(need)].max(initial=0.0)) for need in needs)
    if exact:
        ends = np.full(len(system.up), np.inf)
        needs = ends, ends, ends
    cells, variable, _ = system.space.members
    component = system.component[variable]
    for c in np.unique(system.component[request.variable]):
        mine = cells[component == c]
        search = _WholeSearch(reach, system, mine, (down[mine], up[mine]), deadline, (*needs, farthest))
        for j in np.unique(request.variable[system.component[request.variable] == c]).tolist():
            for side in (1, -1):
                search.settle(j, side)
    return reach, stack_movements(reach.pool, len(system.up))


def _record_walks(
    reach: Reach,
    system: System,
    request: RangeRequest,
    needs: tuple[FloatArray, FloatArray, FloatArray],
    *,
    deadline: Deadline,
    exact: bool,
) -> None:
    """Reach by walks what they reach: the levels, and where that is near, the ends."""
    low, high, width = needs
    down, up = np.maximum(low, width), np.maximum(high, width)
    if exact:
        asked = np.zeros(len(system.up), bool)
        asked[request.variable] = True
        down = np.where(asked & (-reach.low_bound <= MAX_UNITS), -reach.low_bound, down)
        up = np.where(asked & (reach.high_bound <= MAX_UNITS), reach.high_bound, up)
    found = walk_in_units(system, down, up, deadline=deadline)
    for row in find_improving(found, reach.low, reach.high).tolist():
        v = found[[row]].toarray()[0]
        reach.high_witness[v > reach.high] = reach.low_witness[v < reach.low] = len(reach.pool)
        reach.high, reach.low = np.maximum(reach.high, v), np.minimum(reach.low, v)
        reach.pool.append(take_movement(v))


class _WholeSearch:
    """The whole-number program of one component, and the movements it finds."""

    def __init__(
        self,
        reach: Reach,
        system: System,
        cells: IntArray,
        slack: tuple[FloatArray, FloatArray],
        deadline: Deadline,
        needs: tuple[FloatArray, FloatArray, FloatArray, float],
    ) -> None:
        *down_up_all, farthest = needs
        self.needs = tuple(down_up_all)
        """How far down, up and in all each variable must go; infinite: to its ends."""
        self.farthest = farthest
        """The farthest that any level asks for: a witness of an unlimited variable goes farther."""
        down, up = slack
        A = csr_array(system.reduction.relations[system.reduction.rows][:, cells])
        A = A[np.flatnonzero(np.diff(A.indptr))]
        self.reach, self.A, self.down, self.up, self.deadline = reach, A, down, up, deadline
        representative = system.reduction.alias[cells] == cells
        self.column = np.flatnonzero(representative)
        self.variable = system.space.variable_of[cells[representative]]
        self.column_of = dict(zip(self.variable.tolist(), self.column.tolist(), strict=True))
        both = np.concatenate([down, up])
        self.wide = bool(both[np.isfinite(both)].max(initial=0.0) > _WIDE)
        self.program = self._build_program(-down, up)
        self.relaxed: LinearProgram | None = None
        """The same over real numbers: its ends are whole more often than not, and prove what walks have reached."""
        if not self.wide:
            self.relaxed = LinearProgram(LinearModel(A, 0.0, 0.0, -down, up), _RELAXED_WAY)

    def _build_program(self, low: FloatArray, high: FloatArray) -> LinearProgram:
        """Return the program of movements between two bounds: over real numbers if ranges are wide."""
        whole = None if self.wide else np.ones(len(high), bool)
        program = LinearProgram(LinearModel(self.A, 0.0, 0.0, low, high, integer=whole), _WAY)
        if not self.wide:
            program.set_options(mip_rel_gap=0.0, mip_abs_gap=0.0)
        return program

    def settle(self, j: int, side: int) -> None:
        """Move one variable to its end on one side."""
        r = self.reach
        reached, bound = (r.high[j], r.high_bound[j]) if side > 0 else (-r.low[j], -r.low_bound[j])
        if reached >= bound or self.deadline.passed or self._is_met(j, side):
            return
        column = self.column_of[j]
        solution = self._relax(column, side, reached)
        if solution is None:
            solution = self._push(column, side)
        if not np.isfinite(solution.x).all():
            # no movement is always feasible: this one is unbounded, as the continuous one is
            self._find_distant_witness(column, side)
            (r.high if side > 0 else r.low)[j] = side * np.inf
            return
        self._keep_movement(solution)
        proven = np.floor(solution.bound * (1 + 1e-12) + 1e-6) if np.isfinite(solution.bound) else np.inf
        if side > 0:
            r.high_bound[j] = max(min(r.high_bound[j], proven), r.high[j])
        else:
            r.low_bound[j] = min(max(r.low_bound[j], -proven), r.low[j])

    def _is_met(self, j: int, side: int) -> bool:
        """Whether a variable goes as far as asked, to this side and in all."""
        low, high, width = self.needs
        up, down = self.reach.high[j], -self.reach.low[j]
        own = up >= high[j] if side > 0 else down >= low[j]
        return bool(own and up + down >= width[j])

    def _relax(self, column: int, side: int, reached: float) -> Solution | None:
        """Push over real numbers; None unless the end is whole, or shows that nothing goes further than reached."""
        if self.relaxed is None:
            return None
        end = self._solve_program(self.relaxed, column, side)
        if not end.optimal or not np.isfinite(end.x).all():
            return None
        whole = np.abs(end.x - np.rint(end.x)).max(initial=0.0) < WHOLE_SOLUTION
        proven = reached >= np.floor(end.objective + WHOLE_SOLUTION)
        return replace(end, bound=end.objective) if whole or proven else None

    def _push(self, column: int, side: int) -> Solution:
        """Move one cell as far as whole numbers allow; in wide ranges, near the end over real numbers."""
        end = self._solve_program(self.program, column, side)
        if end.status in (SolveStatus.UNBOUNDED, SolveStatus.INFEASIBLE):  # staying is feasible: it is unbounded
            return replace(end, x=np.full(len(end.x), np.inf))  # some solvers leave a point of an earlier program
        if not self.wide or not end.optimal or not np.isfinite(end.x).all():
            return end
        place = np.clip(np.rint(end.x), -self.down, self.up)
        low, high = np.maximum(-_NEAR_END, -self.down - place), np.minimum(_NEAR_END, self.up - place)
        left, whole = -(self.A @ place), np.ones(len(place), bool)
        near = self._solve_program(
            LinearProgram(LinearModel(self.A, left, left, low, high, integer=whole), _WAY), column, side
        )
        x = place + near.x if np.isfinite(near.x).all() else np.zeros(len(place))
        return replace(near, x=x, bound=end.objective + 1e-9 * abs(end.objective))

    def _solve_program(self, program: LinearProgram, column: int, side: int) -> Solution:
        self.reach.programs += 1
        program.set_costs(np.array([column]), np.array([float(side)]))
        solution = program.solve(maximize=True, time_limit_s=self.deadline.get_seconds_at_least())
        program.set_costs(np.array([column]), np.zeros(1))
        return solution

    def _find_distant_witness(self, column: int, side: int) -> None:
        """Find a movement of an unlimited cell beyond every level.

        All cells are limited, since solvers may call a program unbounded in which only the moved cell is.
        """
        slack = np.where(np.isfinite(self.down), self.down, 0.0), np.where(np.isfinite(self.up), self.up, 0.0)
        far = 1000.0 + 10.0 * max(slack[0].max(initial=0.0), slack[1].max(initial=0.0)) + 2.0 * self.farthest
        unlimited = self.program
        for factor in _LIMITS_OF_OTHERS:
            low, high = np.maximum(-self.down, -factor * far), np.minimum(self.up, factor * far)
            low[column], high[column] = max(low[column], -far), min(high[column], far)
            self.program = self._build_program(low, high)  # a ray of the last solve misleads solvers
            solution = self._push(column, side)
            if self._keep_movement(solution) and abs(solution.x[column]) >= self.farthest:
                break
        self.program = unlimited

    def _keep_movement(self, solution: Solution) -> bool:
        """Check a whole movement, and keep it as witness of every variable that it takes further than before.

        Return whether it is a movement.
        """
        if not np.isfinite(solution.x).all():
            return False
        z = np.rint(solution.x)
        if np.abs(self.A @ z).max(initial=0.0) > 1e-9 or (z > self.up).any() or (-z > self.down).any():
            return False
        r, j = self.reach, self.variable
        v = np.zeros(len(r.high))
        v[j] = z[self.column]
        higher, lower = j[v[j] > r.high[j]], j[v[j] < r.low[j]]
        if len(higher) or len(lower):
            r.high[higher], r.low[lower] = v[higher], v[lower]
            r.high_witness[higher] = r.low_witness[lower] = len(r.pool)
            r.pool.append(take_movement(v))
        return True
