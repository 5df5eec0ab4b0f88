"""The search for ranges within one part of a table: which programs to solve, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.search.attacker_program import MovementProgram, Push
from cellguard._engine.ranges.search.known_movements import Movement, choose_witnesses, take_movement
from cellguard._engine.ranges.witnesses.shown import LARGE
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._tolerances import LEVEL_LOOKED_FOR, LEVEL_SHARE
from cellguard._types import FloatArray, IntArray

__all__ = ["RangePart", "Reach", "search_ranges"]


_HUGE = 4000
"""Parts with this many variables and open levels are searched by small programs around single cells."""
_DENSE = 1_000_000
"""Large parts with at most this many entries in echelon form use the compiled simplex, where programs may stall."""
_CLOCK_INTERVAL = 8
"""Number of variables searched between two looks at the clock."""
_MAX_FAILURES = 5
"""Number of failures after which programs, which prove bounds, take over."""
_WORTHWHILE = 0.02
"""Repeat the joint program while it settles this share of the open levels."""
_MAGNITUDE = 1e3
"""Levels within this factor share one unit of the solver."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RangePart:
    """Some components of the merged system, with the request for their variables."""

    A: csr_array
    """Independent relations between the variables."""
    N: csr_array
    """Basis of their null space."""
    down: FloatArray
    """How far each variable can move down."""
    up: FloatArray
    """How far each variable can move up."""
    implied_down: FloatArray
    """What the relations leave of `down`: a proven bound."""
    implied_up: FloatArray
    """What the relations leave of `up`: a proven bound."""
    component: IntArray
    """Component of each variable, from 0."""
    asked: IntArray
    """Requested variables, once for every requested cell."""
    need_high: FloatArray
    """How far up each of them must reach."""
    need_low: FloatArray
    """How far down each of them must reach."""
    need_width: FloatArray
    """How far apart its ends must be."""
    exact: bool
    """Whether both ends are required, not only verdicts."""
    deadline: Deadline
    """When the search stops with what it has found."""
    shown: csr_array | None = None
    """Movements that were shown possible before, one row each; they are checked again."""


@dataclass(kw_only=True, eq=False)
class Reach:
    """Results for the variables of a part; a row of `pool` is a feasible movement."""

    high: FloatArray
    """How far up a feasible movement goes."""
    low: FloatArray
    """How far down a feasible movement goes, at most 0."""
    high_bound: FloatArray
    """Proven: none goes further up."""
    low_bound: FloatArray
    """Proven: none goes further down."""
    high_witness: IntArray
    """The row of the pool that goes as far up as the highest level requires, or as it can; -1: none."""
    low_witness: IntArray
    """The row of the pool that goes as far down as the highest level requires, or as it can; -1: none."""
    pool: list[Movement] = field(default_factory=list)
    """Feasible movements: the variables that move, and by how much."""
    programs: int = 0
    """Number of linear programs solved."""

    @classmethod
    def start(cls, down: FloatArray, up: FloatArray) -> Reach:
        """Return the start: nothing is reached yet, and the slack is the only bound."""
        k = len(up)
        return cls(
            high=np.zeros(k),
            low=np.zeros(k),
            high_bound=up.copy(),
            low_bound=-down,
            high_witness=np.full(k, -1, np.int64),
            low_witness=np.full(k, -1, np.int64),
        )

    def keep_needed(self) -> None:
        """Drop movements that no level needs any more."""
        needed = np.unique(np.concatenate([self.high_witness, self.low_witness, [-1]]))[1:]
        place = np.full(len(self.pool) + 1, -1, np.int64)  # index -1 finds the last entry
        place[needed] = np.arange(len(needed))
        self.high_witness, self.low_witness = place[self.high_witness], place[self.low_witness]
        self.pool = [self.pool[i] for i in needed]


def search_ranges(part: RangePart) -> Reach:
    """Search for the values that the part's variables can reach."""
    return _RangeSearch(part).run()


class _RangeSearch:
    def __init__(self, part: RangePart) -> None:
        self.part = part
        k = len(part.up)
        self.reach = Reach.start(part.implied_down, part.implied_up)
        self.n_components = int(part.component.max(initial=-1)) + 1
        self.is_asked = np.zeros(k, bool)
        self.is_asked[part.asked] = True
        # the highest level of each variable: beyond it a movement needs no witness
        self.enough_high, self.enough_low = np.zeros(k), np.zeros(k)
        np.maximum.at(self.enough_high, part.asked, np.maximum(part.need_high, part.need_width))
        np.maximum.at(self.enough_low, part.asked, np.maximum(part.need_low, part.need_width))
        self.given_up = {1: np.zeros(k, bool), -1: np.zeros(k, bool)}
        levels = np.maximum(self.enough_high, self.enough_low)
        self.unit = float(levels.max(initial=0.0)) or float(np.min(part.up + part.down, initial=1.0)) or 1.0

    @cached_property
    def program(self) -> MovementProgram:
        """The program over all variables: none is built where known movements reach every level."""
        part = self.part
        return MovementProgram(part.A, part.N, part.down, part.up, unit=self.unit)

    def run(self) -> Reach:
        if len(self.part.up) > LARGE:
            self._use_known_movements()
            if not self._is_settled() and np.prod(self.part.N.shape) <= _DENSE:
                self._search_with_core()
            if not self._is_settled():
                self._search_small_movements()
        for side in (1, -1):
            self._search_levels(side)
        self._search_widths()
        if self.part.exact:
            self._find_ends()
        self.reach.programs = self.program.solves if "program" in vars(self) else 0
        self.reach.keep_needed()
        return self.reach

    # ------------------------------------------------------------------ open levels

    def _get_side(self, side: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the levels of the requested cells, and the reach and bounds of their variables, counted outward."""
        r = self.reach
        if side > 0:
            return self.part.need_high, r.high, r.high_bound
        return self.part.need_low, -r.low, -r.low_bound

    def _find_unsettled(self, side: int) -> tuple[IntArray, FloatArray]:
        """Return the variables with a level on this side that is neither reached nor proven out of reach.

        Aliases may have different levels: the highest that is still open is the one to reach.
        """
        need, got, bound = self._get_side(side)
        asked = self.part.asked
        open_ = (got[asked] < need * LEVEL_LOOKED_FOR) & (bound[asked] >= need * (1 - LEVEL_SHARE))
        open_ &= ~self.given_up[side][asked]
        variables, place = np.unique(asked[open_], return_inverse=True)
        level = np.zeros(len(variables))
        np.maximum.at(level, place, need[open_])
        return variables, level

    def _is_settled(self) -> bool:
        """Return whether no level is open on either side."""
        return not any(len(self._find_unsettled(side)[0]) for side in (1, -1))

    # ------------------------------------------------------------------ verdicts

    def _search_levels(self, side: int) -> None:
        """Reach the levels of one side: all open ones together while that helps, then one by one."""
        together = True
        while not self.part.deadline.passed:
            missing, level = self._find_unsettled(side)
            if len(missing) == 0:
                return
            large = level >= level.max() / _MAGNITUDE
            missing, level = missing[large], level[large]
            if together and len(missing) > 1:
                self.program.measure_in(float(level.min()))
                self._note_push(self.program.push_together(missing, level, side, time_limit_s=self._get_seconds_left()))
                left = len(np.intersect1d(self._find_unsettled(side)[0], missing))
                together = len(missing) - left > 0.05 * len(missing)
                continue
            self._settle_components(missing, level, side)
            together = True

    def _use_known_movements(self) -> None:
        """Mark the levels that known movements reach."""
        part, r = self.part, self.reach
        if part.shown is None:
            return
        chosen = choose_witnesses(
            part.shown, part.A, (part.down, part.up), (part.component, self.n_components),
            (np.where(self.is_asked, self.enough_low, 0.0), np.where(self.is_asked, self.enough_high, 0.0)),
        )  # fmt: skip
        r.low, r.high, r.low_witness, r.high_witness = chosen.low, chosen.high, chosen.low_row, chosen.high_row
        r.pool = chosen.pool

    def _search_with_core(self) -> None:
        """Reach levels by the compiled simplex in the null space: the fewer degrees of freedom, the faster."""
        from cellguard._engine.space.echelon_form import EchelonForm

        part = self.part
        form = EchelonForm(part.N, part.down, part.up)
        asked, place = np.unique(part.asked, return_inverse=True)
        need = np.zeros((3, len(asked)))
        for level, given in zip(need, (part.need_low, part.need_high, part.need_width), strict=True):
            np.maximum.at(level, place, given)
        failures = 0
        for first in range(0, len(asked), _CLOCK_INTERVAL):
            if part.deadline.passed or failures >= _MAX_FAILURES:
                return
            some = slice(first, first + _CLOCK_INTERVAL)
            movements, failed = form.find_movements(
                asked[some], need[:, some], _MAX_FAILURES - failures, self._get_seconds_left()
            )
            failures += failed
            for v in movements:
                self._note_push(Push.of(self.program.check_movement(v)))

    def _search_small_movements(self) -> None:
        """Reach most levels of a large part by movements of a few variables, without a program over all variables."""
        from cellguard._engine.ranges.search.small_movements import SmallMovements

        moves = SmallMovements(self.part.N, self.part.down, self.part.up, self.part.deadline)
        while not self.part.deadline.passed:
            wanted = [(side, *self._find_unsettled(side)) for side in (1, -1)]
            before = sum(len(variables) for _, variables, _ in wanted)
            if before == 0:
                return
            self._note_push(Push.of(moves.combine_movements(wanted)))
            if before - sum(len(self._find_unsettled(side)[0]) for side in (1, -1)) < _WORTHWHILE * before:
                break
        for side in (1, -1) if len(self.part.up) > _HUGE else ():
            for j, level in zip(*self._find_unsettled(side), strict=True):
                if self.part.deadline.passed:
                    return
                self._note_push(Push.of(moves.find_around(int(j), side, float(level))))

    def _settle_components(self, missing: IntArray, level: FloatArray, side: int) -> None:
        """Settle the highest level of every component: components are independent, so one program serves all."""
        order = np.lexsort((-level, self.part.component[missing]))
        _, first = np.unique(self.part.component[missing][order], return_index=True)
        chosen = missing[order][first]
        self._settle(chosen, side, float(level.min()))
        still = np.intersect1d(self._find_unsettled(side)[0], chosen)
        self.given_up[side][still] = True

    def _search_widths(self) -> None:
        """Reach sliding levels: find both ends of every range that is too narrow so far."""
        r, asked = self.reach, self.part.asked
        short = (r.high - r.low)[asked] < self.part.need_width * LEVEL_LOOKED_FOR
        possible = (r.high_bound - r.low_bound)[asked] >= self.part.need_width * (1 - LEVEL_SHARE)
        self._settle_all(np.unique(asked[short & possible]))

    def _find_ends(self) -> None:
        self._settle_all(np.unique(self.part.asked))

    # ------------------------------------------------------------------ one variable per component, to its end

    def _settle_all(self, variables: IntArray) -> None:
        """Find both ends of the variables, small ones apart from large ones, beside which they would be lost."""
        size = np.maximum(self.enough_high, self.enough_low)[variables]
        size = np.where(size > 0, size, self.unit)
        while len(variables):
            unit = float(size.max())
            alike = size >= unit / _MAGNITUDE
            self._settle_alike(variables[alike], unit)
            variables, size = variables[~alike], size[~alike]

    def _settle_alike(self, variables: IntArray, unit: float) -> None:
        """Find both ends of variables of similar size, one of each component at a time."""
        component = self.part.component[variables]
        order = np.argsort(component, kind="stable")
        first = np.concatenate([[0], np.flatnonzero(np.diff(component[order])) + 1])
        turn = np.arange(len(variables)) - np.repeat(first, np.diff(np.append(first, len(variables))))
        by_turn = np.argsort(turn, kind="stable")
        rounds = np.split(variables[order][by_turn], np.cumsum(np.bincount(turn))[:-1])
        for side in (1, -1):
            for chosen in rounds:
                if self.part.deadline.passed:
                    return
                self._settle(chosen, side, unit)

    def _settle(self, chosen: IntArray, side: int, unit: float) -> None:
        """Solve for variables of different components to their ends, and prove bounds for them."""
        _, got, bound = self._get_side(side)
        chosen = chosen[got[chosen] < bound[chosen]]
        if len(chosen) == 0:
            return
        self.program.measure_in(unit)
        push = self.program.push(chosen, np.full(len(chosen), float(side)), time_limit_s=self._get_seconds_left())
        if push.status is SolveStatus.UNBOUNDED:
            if len(chosen) > 1:
                for j in chosen:
                    self._settle(np.array([j]), side, unit)
            else:
                self._find_unbounded_witness(int(chosen[0]), side)
            return
        self._note_push(push)
        if push.optimal:
            proven = self.program.compute_group_bounds(push.prices, self.part.component, self.n_components)
            proven = np.maximum(proven[self.part.component[chosen]], got[chosen])
            r = self.reach
            if side > 0:
                r.high_bound[chosen] = np.minimum(r.high_bound[chosen], proven)
            else:
                r.low_bound[chosen] = np.maximum(r.low_bound[chosen], -proven)

    def _find_unbounded_witness(self, j: int, side: int) -> None:
        """Replace an infinite range by a witness far beyond every level."""
        far, one = np.array([10.0 * max(self.program.unit, self.enough_high[j], self.enough_low[j])]), np.array([j])
        infinite = np.array([np.inf])
        self.program.cap(one, *((infinite, far) if side > 0 else (far, infinite)))
        self._note_push(self.program.push(one, np.array([float(side)]), time_limit_s=self._get_seconds_left()))
        self.program.remove_caps(one)
        if self.part.exact:
            (self.reach.high if side > 0 else self.reach.low)[j] = side * np.inf

    # ------------------------------------------------------------------ results of programs

    def _note_push(self, push: Push) -> None:
        """Mark every level that the movement reaches, and keep it if a level needs it as a witness."""
        v = push.movement
        if v is None:
            return
        r = self.reach
        higher, lower = self.is_asked & (v > r.high), self.is_asked & (v < r.low)
        needed_high = higher & (r.high < self.enough_high * LEVEL_LOOKED_FOR)
        needed_low = lower & (-r.low < self.enough_low * LEVEL_LOOKED_FOR)
        r.high[higher], r.low[lower] = v[higher], v[lower]
        if needed_high.any() or needed_low.any():
            r.high_witness[needed_high] = r.low_witness[needed_low] = len(r.pool)
            r.pool.append(take_movement(v))

    def _get_seconds_left(self) -> float:
        return self.part.deadline.get_seconds_at_least()
