"""The tally: what is shown and what is proven of every question, and the movements that show it.

A feasible movement serves every view in whose bounds it lies; one that does not may do so when it is scaled
down. So one movement answers many questions at once.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.implied import expand
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.views import Questions
from cellguard._tolerances import CALM_MOVEMENT, LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Tally"]


_KEEP = 1.0 - LEVEL_SHARE / 2
"""What is looked for: half of the tolerance is left for making witnesses exact."""
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
        self._is_open = np.ones(n, bool)
        self._open: IntArray | None = None
        self.update()

    # ------------------------------------------------------------------ where it stands

    @property
    def open(self) -> IntArray:
        """Questions that are neither answered nor proven to have no answer."""
        if self._open is None:
            self._open = np.flatnonzero(self._is_open)
        return self._open

    def _unmet(self, some: IntArray | slice) -> BoolArray:
        """Which questions have no witness for every level."""
        q, high, low = self.questions, self.high[some], self.low[some]
        short = (high < q.need_high[some] * _KEEP) | (low < q.need_low[some] * _KEEP)
        return np.asarray(short | (high + low < q.need_width[some] * _KEEP))

    def _out_of_reach(self, some: IntArray | slice) -> BoolArray:
        """Which questions have a level beyond a proven bound."""
        q, keep, high, low = self.questions, 1 - LEVEL_SHARE, self.high_bound[some], self.low_bound[some]
        beyond = (high < q.need_high[some] * keep) | (low < q.need_low[some] * keep)
        return np.asarray(beyond | (high + low < q.need_width[some] * keep))

    def update(self, some: IntArray | None = None) -> None:
        """Find out again which questions are open: all, or some of those that were."""
        which = slice(None) if some is None else some
        self._is_open[which] = self._unmet(which) & ~self._out_of_reach(which)
        self._open = None

    def still_open(self, some: IntArray) -> IntArray:
        """Return which of some questions are open, without a look at all others."""
        at = np.minimum(np.searchsorted(self.open, some), max(len(self.open) - 1, 0))
        return some[self.open[at] == some] if len(self.open) else some[:0]

    def bound(self, some: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Take proven bounds of some questions: none goes further down or up."""
        self.low_bound[some] = np.minimum(self.low_bound[some], low)
        self.high_bound[some] = np.minimum(self.high_bound[some], high)
        self.update(some)

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
        some = self._questions_on.of(np.flatnonzero(v))
        some = some[self._is_open[some]]
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
            enough = np.maximum(need, q.need_width)[some]
            further = np.flatnonzero((sign * reached > got[some] * (1 + CALM_MOVEMENT)) & (got[some] < enough * _KEEP))
            at, size = some[further], np.abs(moved[further])
            part = _with_slack(share[further], enough[further] / size)
            got[at], row[at], shares[at] = part * size, len(self.pool), part
            helped = helped or len(at) > 0
        if not helped:
            return False
        moving = np.flatnonzero(v)
        self.pool.append((moving, v[moving]))
        self.update(some)
        return True

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

    def of(self, variables: IntArray) -> IntArray:
        """Return the entries of some variables."""
        return self._order[expand(self._start, variables, variables)[1]]


def _with_slack(most: FloatArray, enough: FloatArray) -> FloatArray:
    """Where a movement must be scaled down, go half way to what would be enough: ends are only met inexactly."""
    return np.where((most < 1.0) & (enough < most), (most + enough) / 2, most)
