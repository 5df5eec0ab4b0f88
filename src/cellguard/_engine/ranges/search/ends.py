"""Both ends of every variable of a large system, without witnesses.

Most ends are where single relations already bound the variable, so a bound is known and only a movement that attains
it is missing. Variables that share no relation are pushed to such ends together: one program then settles
thousands of them (of 41,000 variables, 40 programs settle 92% of the ends in 30 s). The others are pushed one by
one, and the prices of each program prove its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.search.attacker_program import MovementProgram
from cellguard._engine.ranges.system import System
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._tolerances import NO_DISTANCE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Ends", "search_ends"]

_WORTHWHILE = 0.01
"""Push together while a program settles this share of the requested ends."""
_MAGNITUDE = 1e3
"""Ends within this factor share one unit of the solver."""
_REACHED = 1e-7
"""Share of an end: a movement that goes so far attains it; the rest is the solver's rounding."""
_PICKS = 4
"""Rounds in which variables that share no relation are picked; the fourth adds few."""


@dataclass(kw_only=True, eq=False)
class Ends:
    """How far each variable can move: what movements attain, and what is proven."""

    high: FloatArray
    low: FloatArray
    high_bound: FloatArray
    low_bound: FloatArray
    noise: float = 0.0
    """Distances below this are rounding."""
    programs: int = 0

    def find_open(self, side: int) -> BoolArray:
        """Return the variables whose end on this side is not settled."""
        reached, bound = (self.high, self.high_bound) if side > 0 else (-self.low, -self.low_bound)
        near = _REACHED * np.where(np.isinf(bound), 0.0, bound) + self.noise
        return np.asarray(reached < bound - near)

    def note_movement(self, v: FloatArray | None) -> None:
        """Record how far a feasible movement takes the variables."""
        if v is not None:
            self.high, self.low = np.maximum(self.high, v), np.minimum(self.low, v)


def search_ends(system: System, deadline: Deadline) -> Ends:
    """Search for both ends of all variables until the deadline."""
    n = len(system.up)
    ends = Ends(high=np.zeros(n), low=np.zeros(n), high_bound=system.implied_up.copy(), low_bound=-system.implied_down)
    if n:
        _EndSearch(system, ends, deadline).run()
    return ends


class _EndSearch:
    def __init__(self, system: System, ends: Ends, deadline: Deadline) -> None:
        self.ends, self.deadline = ends, deadline
        self.component, self.n_components = system.component, system.n_components
        self.A = system.space.relations
        self.row = np.repeat(np.arange(self.A.shape[0]), np.diff(self.A.indptr))
        widths = np.concatenate([ends.high_bound, -ends.low_bound])
        widths = widths[np.isfinite(widths) & (widths > 0)]
        self.unit = float(np.median(widths)) if len(widths) else 1.0
        ends.noise = NO_DISTANCE * min(1.0, self.unit)
        self.program = MovementProgram(self.A, system.space.basis, system.down, system.up, unit=self.unit)

    def run(self) -> None:
        self._push_together()
        for side in (1, -1):
            self._push_single(side)
        self.ends.programs = self.program.solves

    # ------------------------------------------------------------------ together

    def _push_together(self) -> None:
        rng, ends = np.random.default_rng(0), self.ends
        while not self.deadline.passed:
            up = ends.find_open(1) & np.isfinite(ends.high_bound)
            down = ends.find_open(-1) & np.isfinite(ends.low_bound)
            before = int(up.sum() + down.sum())
            chosen = self._pick_unrelated(up | down, rng)
            rise = chosen & up & (~down | (rng.random(len(up)) < 0.5))
            fall = chosen & ~rise
            asked = np.flatnonzero(chosen)
            if len(asked) <= self.n_components and len(asked) < 64:
                return
            weights = np.zeros(len(up))
            weights[rise], weights[fall] = 1.0 / ends.high_bound[rise], 1.0 / ends.low_bound[fall]
            push = self.program.push(
                asked, weights[asked] * self.unit, time_limit_s=self.deadline.get_seconds_at_least()
            )
            ends.note_movement(push.movement)
            up, down = ends.find_open(1), ends.find_open(-1)
            left = int((up & np.isfinite(ends.high_bound)).sum() + (down & np.isfinite(ends.low_bound)).sum())
            if before - left < _WORTHWHILE * len(asked):
                return

    def _pick_unrelated(self, wanted: BoolArray, rng: np.random.Generator) -> BoolArray:
        """Return some of the wanted variables, no two of which share a relation."""
        A, row, column = self.A, self.row, self.A.indices
        chosen, left = np.zeros(len(wanted), bool), wanted.copy()
        for _ in range(_PICKS):
            rank = np.where(left, rng.random(len(left)), -1.0)
            best = np.full(A.shape[0], -1.0)
            np.maximum.at(best, row, rank[column])
            first = left.copy()
            first[column[rank[column] < best[row]]] = False
            chosen |= first
            taken = np.zeros(A.shape[0], bool)
            taken[row[chosen[column]]] = True
            left &= ~chosen
            left[column[taken[row]]] = False
        return chosen

    # ------------------------------------------------------------------ one by one

    def _push_single(self, side: int) -> None:
        """Settle what is left, large ends apart from small ones, beside which these would be lost."""
        bound = self.ends.high_bound if side > 0 else -self.ends.low_bound
        left = np.flatnonzero(self.ends.find_open(side))
        size = np.where(np.isfinite(bound[left]), bound[left], self.unit)
        while len(left):
            unit = float(size.max())
            alike = size >= unit / _MAGNITUDE
            self.program.measure_in(unit / np.sqrt(_MAGNITUDE))
            for chosen in _take_turns(left[alike], self.component):
                if self.deadline.passed:
                    return
                self._settle(chosen[self.ends.find_open(side)[chosen]], side)
            left, size = left[~alike], size[~alike]

    def _settle(self, chosen: IntArray, side: int) -> None:
        """Push variables of different components to their ends, and prove them."""
        if not len(chosen):
            return
        ends, limit = self.ends, self.deadline.get_seconds_at_least()
        push = self.program.push(chosen, np.full(len(chosen), float(side)), time_limit_s=limit)
        if push.status is SolveStatus.UNBOUNDED:
            if len(chosen) == 1:
                (ends.high if side > 0 else ends.low)[chosen] = side * np.inf
            for j in chosen if len(chosen) > 1 else ():
                self._settle(np.array([j]), side)
            return
        ends.note_movement(push.movement)
        if push.optimal:
            proven = self.program.compute_group_bounds(push.prices, self.component, self.n_components)
            proven = proven[self.component[chosen]]
            if side > 0:
                ends.high_bound[chosen] = np.minimum(ends.high_bound[chosen], np.maximum(proven, ends.high[chosen]))
            else:
                ends.low_bound[chosen] = np.maximum(ends.low_bound[chosen], -np.maximum(proven, -ends.low[chosen]))


def _take_turns(variables: IntArray, component: IntArray) -> list[IntArray]:
    """Return the variables in rounds, one of each component in a round."""
    order = np.argsort(component[variables], kind="stable")
    own = component[variables][order]
    first = np.concatenate([[0], np.flatnonzero(np.diff(own)) + 1])
    turn = np.arange(len(own)) - np.repeat(first, np.diff(np.append(first, len(own))))
    by_turn = np.argsort(turn, kind="stable")
    return np.split(variables[order][by_turn], np.cumsum(np.bincount(turn))[:-1])
