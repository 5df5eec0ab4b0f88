"""The tally: what is shown and what is proven of every question, and the movements that show it.

A feasible movement serves every view in whose bounds it lies; one that does not may do so when it is scaled
down. So one movement answers many questions at once.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.ranges.implied import expanded_for_views
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.views import Questions
from cellguard._tolerances import CALM_MOVEMENT, LEVEL_LOOKED_FOR, LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Tally"]

_FEW = 3
"""Views of a variable that are not worth a movement of their own here: coalitions ask for them."""

_AT_ONCE = 20_000_000
"""So many pairs of a movement and a view are looked at together."""
_STRETCH = 4.0
"""A movement that is turned around grows at most by this."""


class Tally:
    """What feasible movements reach for each question, and what proven bounds leave."""

    def __init__(self, system: System, questions: Questions) -> None:
        self.system, self.questions = system, questions
        n, q = len(questions), questions
        self.high, self.low = np.zeros(n), np.zeros(n)
        self.high_bound, self.low_bound = system.implied_up[q.variable], system.implied_down[q.variable]
        self.high_row, self.low_row = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self.high_share, self.low_share = np.ones(n), np.ones(n)
        self.pool: list[tuple[IntArray, FloatArray]] = []
        self.known_view = q.known.key // q.known.n_variables
        self.known_variable = q.known.key % q.known.n_variables
        self.n_views = int(max(q.view.max(initial=-1), self.known_view.max(initial=-1))) + 1
        # a movement of a few variables is no answer to questions about others: there may be millions of those
        self._questions_on = _Listed(q.variable, len(system.up))
        self._known_on = _Listed(self.known_variable, len(system.up))
        self._is_open, self._open = np.ones(n, bool), np.arange(n)
        self._answered = 0
        """Of the questions in `_open` so many are not open any more."""
        self.update()

    # ------------------------------------------------------------------ where it stands

    @property
    def open(self) -> IntArray:
        """Questions that are neither answered nor proven to have no answer."""
        if self._answered:  # what is answered once stays so
            self._open, self._answered = self._open[self._is_open[self._open]], 0
        return self._open

    def _unmet(self, some: IntArray | slice) -> BoolArray:
        """Which questions have no witness for every level."""
        q, high, low = self.questions, self.high[some], self.low[some]
        short = (high < q.need_high[some] * LEVEL_LOOKED_FOR) | (low < q.need_low[some] * LEVEL_LOOKED_FOR)
        return np.asarray(short | (high + low < q.need_width[some] * LEVEL_LOOKED_FOR))

    def _out_of_reach(self, some: IntArray | slice) -> BoolArray:
        """Which questions have a level beyond a proven bound."""
        q, keep, high, low = self.questions, 1 - LEVEL_SHARE, self.high_bound[some], self.low_bound[some]
        beyond = (high < q.need_high[some] * keep) | (low < q.need_low[some] * keep)
        return np.asarray(beyond | (high + low < q.need_width[some] * keep))

    def update(self, some: IntArray | None = None) -> None:
        """Find out again which questions are open: all, or some of those that were."""
        which = slice(None) if some is None else some
        before = np.count_nonzero(self._is_open[which])
        self._is_open[which] &= self._unmet(which) & ~self._out_of_reach(which)
        self._answered += int(before - np.count_nonzero(self._is_open[which]))

    def waiting(self) -> IntArray:
        """Return the variables that several views wait for, those with the highest levels first."""
        q, some = self.questions, self.open
        level = np.zeros(len(self.system.up))
        np.maximum.at(level, q.variable[some], q.both_ways(some))
        several = np.flatnonzero(np.bincount(q.variable[some], minlength=len(level)) > _FEW)
        return several[np.argsort(-level[several], kind="stable")]

    def waiting_for(self, variable: int) -> IntArray:
        """Return the open questions about a variable; none where they are so few that no program is worth it."""
        some = self._questions_on.of(np.array([variable]))
        some = some[self._is_open[some]]
        return some if len(some) > _FEW else some[:0]

    def not_shown(self) -> IntArray:
        """Return the open questions about variables of which no movement shows even a stranger what they ask."""
        q, some = self.questions, self.open
        furthest = np.zeros((2, len(self.system.up)))
        for side, got in enumerate((self.low, self.high)):
            np.maximum.at(furthest[side], q.variable, got)
        low, high = furthest[:, q.variable[some]]
        met = (high >= q.need_high[some]) & (low >= q.need_low[some]) & (low + high >= q.need_width[some])
        return some[~met]

    def still_open(self, some: IntArray) -> IntArray:
        """Return which of some questions are open, without a look at all others."""
        at = np.minimum(np.searchsorted(self.open, some), max(len(self.open) - 1, 0))
        return some[self.open[at] == some] if len(self.open) else some[:0]

    def bound(self, some: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Take proven bounds of some questions: none goes further down or up."""
        self.low_bound[some] = np.minimum(self.low_bound[some], low)
        self.high_bound[some] = np.minimum(self.high_bound[some], high)
        self.update(some)

    # ------------------------------------------------------------------ what to look for

    def room_of(self, member: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the variables can move down and up in the eyes of all members at once."""
        known = self.questions.known
        down, up = self.system.down.copy(), self.system.up.copy()
        theirs = np.flatnonzero(member[self.known_view])
        np.minimum.at(down, self.known_variable[theirs], known.down[theirs])
        np.minimum.at(up, self.known_variable[theirs], known.up[theirs])
        return down, up

    def known_by(self, views: IntArray) -> FloatArray:
        """Return how many of some views know each variable better than everybody does."""
        member = np.zeros(self.n_views, bool)
        member[views] = True
        return np.bincount(self.known_variable[member[self.known_view]], minlength=len(self.system.up)).astype(float)

    def levels(self, some: IntArray, down: FloatArray, up: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return how far each variable is to be pushed, up or (negative) down; of two open sides one is drawn."""
        q = self.questions
        variable = q.variable[some]
        high, low = np.zeros(len(up)), np.zeros(len(up))
        narrow = q.need_width[some] - self.high[some] - self.low[some] > 0
        for level, need, got in ((high, q.need_high, self.high), (low, q.need_low, self.low)):
            other = self.low if got is self.high else self.high
            want = np.where(got[some] < need[some], need[some], 0.0)
            want = np.where(narrow, np.maximum(want, q.need_width[some] - other[some]), want)
            np.maximum.at(level, variable, want)
        high, low = np.minimum(high, up), np.minimum(low, down)
        falls = np.where((high > 0) & (low > 0), rng.random(len(up)) < 0.5, low > 0)
        return np.where(falls, -low, high)

    # ------------------------------------------------------------------ movements

    def learn(self, v: FloatArray) -> bool:
        """Tick off what a feasible movement shows, and what it shows turned around; return whether it helped."""
        helped = self._tick(v)
        return self._tick(self._turned(v)) or helped

    def _turned(self, v: FloatArray) -> FloatArray:
        """Return the movement turned around, each component as far as everybody's bounds allow."""
        s = self.system
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(v > 0, s.down / v, np.where(v < 0, s.up / -v, np.inf))
        factor = np.full(s.n_components, _STRETCH)
        np.minimum.at(factor, s.component, room)
        return -v * factor[s.component]

    def _shares(self, v: FloatArray) -> FloatArray:
        """Return for each view how much of a movement lies inside its bounds, at most all of it."""
        known, some = self.questions.known, self._known_on.of(np.flatnonzero(v))
        c, up, down = v[self.known_variable[some]], known.up[some], known.down[some]
        share = np.ones(len(c))
        over, under = c > up, -c > down
        share[over] = up[over] / c[over]
        share[under] = down[under] / -c[under]
        out = np.ones(self.n_views)
        np.minimum.at(out, self.known_view[some], share)
        return out

    def _tick(self, v: FloatArray) -> bool:
        v, q = self._without_noise(v), self.questions
        some = self._moved(v)
        if not len(some):
            return False
        moved = v[q.variable[some]]
        share = self._shares(v)[q.view[some]]
        reached = share * moved
        helped = False
        for sign, need, (got, row, shares) in (
            (1, q.need_high, (self.high, self.high_row, self.high_share)),
            (-1, q.need_low, (self.low, self.low_row, self.low_share)),
        ):
            enough = np.maximum(need[some], q.need_width[some])
            further = np.flatnonzero(
                (sign * reached > got[some] * (1 + CALM_MOVEMENT)) & (got[some] < enough * LEVEL_LOOKED_FOR)
            )
            at, size = some[further], np.abs(moved[further])
            part = _tallied_with_slack(share[further], enough[further] / size)
            got[at], row[at], shares[at] = part * size, len(self.pool), part
            helped = helped or len(at) > 0
        if not helped:
            return False
        moving = np.flatnonzero(v)
        self.pool.append((moving, v[moving]))
        self.update(some)
        return True

    def learn_each(self, movements: csr_array) -> None:
        """Answer open questions by movements: each by the shortest one that goes far enough in its view's eyes.

        A movement of few variables stands in the way of few views. Where none goes far enough, the furthest counts.
        """
        if not movements.shape[0] or not len(self.open):
            return
        order = np.argsort(np.diff(movements.indptr), kind="stable")
        for some in np.array_split(order, -(-len(order) * self.n_views // _AT_ONCE)):
            short_first = csr_array(movements[some])
            by_variable = csc_array(short_first)
            by_variable.sort_indices()
            self._assign(self.open, by_variable)
            for r in range(short_first.shape[0]):
                span = slice(short_first.indptr[r], short_first.indptr[r + 1])
                self.pool.append((short_first.indices[span].astype(np.int64), short_first.data[span]))

    def _assign(self, some: IntArray, by_variable: csc_array) -> None:
        """Let some questions choose among movements (rows), which join the pool next."""
        from cellguard._core.witnesses import choose

        q, shares = self.questions, self._shares_of(by_variable)
        start, index = by_variable.indptr.astype(np.int64), by_variable.indices.astype(np.int64)
        variable, view = q.variable[some], q.view[some]
        for sign, need, (got, row, share) in (
            (1.0, q.need_high, (self.high, self.high_row, self.high_share)),
            (-1.0, q.need_low, (self.low, self.low_row, self.low_share)),
        ):
            enough = np.maximum(need[some], q.need_width[some])
            best, moved = choose(start, index, by_variable.data, shares, variable, view, enough, sign)
            most = shares[best, view]
            helps = (most * moved > got[some] * (1 + CALM_MOVEMENT)) & (got[some] < enough * LEVEL_LOOKED_FOR)
            further = np.flatnonzero(helps)
            at, moved = some[further], moved[further]
            part = _tallied_with_slack(most[further], enough[further] / moved)
            got[at], row[at], share[at] = part * moved, len(self.pool) + best[further], part
        self.update(some)

    def _shares_of(self, by_variable: csc_array) -> FloatArray:
        """Return how much of each movement (row) lies inside the bounds of each view (column)."""
        known = self.questions.known
        entry, place = expanded_for_views(by_variable.indptr, self.known_variable, np.arange(len(self.known_variable)))
        size, rises = np.abs(by_variable.data[place]), by_variable.data[place] > 0
        room = np.where(rises, known.up[entry], known.down[entry])
        limit = np.ones(len(size))
        over = size > room
        limit[over] = room[over] / size[over]
        out = np.ones((by_variable.shape[0], self.n_views))
        np.minimum.at(out, (by_variable.indices[place], self.known_view[entry]), limit)
        return out

    def _moved(self, v: FloatArray) -> IntArray:
        """Return the open questions about variables that a movement moves."""
        moving = np.flatnonzero(v)
        if len(self._open) - self._answered < self._questions_on.count(moving):
            return self.open[v[self.questions.variable[self.open]] != 0]
        some = self._questions_on.of(moving)
        return some[self._is_open[some]]

    def _without_noise(self, v: FloatArray) -> FloatArray:
        s = self.system
        largest = np.zeros(s.n_components)
        np.maximum.at(largest, s.component, np.abs(v))
        return np.where(np.abs(v) > CALM_MOVEMENT * largest[s.component], v, 0.0)

    def movements(self) -> csr_array:
        """Return the movements that are needed, a row each; rows are numbered anew."""
        rows = np.unique(np.concatenate([self.high_row, self.low_row, [-1]]))[1:]
        place = np.full(len(self.pool) + 1, -1, np.int64)  # the last entry is what -1 finds
        place[rows] = np.arange(len(rows))
        self.high_row, self.low_row = place[self.high_row], place[self.low_row]
        self.pool = [self.pool[i] for i in rows.tolist()]
        lengths = np.array([len(moving) for moving, _ in self.pool], np.int64)
        column = np.concatenate([np.zeros(0, np.int64), *(moving for moving, _ in self.pool)])
        value = np.concatenate([np.zeros(0), *(v for _, v in self.pool)])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return csr_array((value, column, indptr), shape=(len(self.pool), len(self.system.up)))


class _Listed:
    """The numbers of entries, variable by variable."""

    def __init__(self, variable: IntArray, n_variables: int) -> None:
        self._order = np.argsort(variable, kind="stable")
        self._start = np.concatenate([[0], np.cumsum(np.bincount(variable, minlength=n_variables))])

    def count(self, variables: IntArray) -> int:
        """Return how many entries some variables have."""
        return int((self._start[variables + 1] - self._start[variables]).sum())

    def of(self, variables: IntArray) -> IntArray:
        """Return the entries of some variables."""
        return self._order[expanded_for_views(self._start, variables, variables)[1]]


def _tallied_with_slack(most: FloatArray, enough: FloatArray) -> FloatArray:
    """Where a movement must be scaled down, go half way to what would be enough: ends are only met inexactly."""
    return np.where((most < 1.0) & (enough < most), (most + enough) / 2, most)
