"""The tally: what is shown and proven for every question, and the movements that show it.

A feasible movement serves every view whose bounds contain it; others may be served when it is scaled
down. So one movement answers many questions at once.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.ranges.implied import expand_rows
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.views import Questions
from cellguard._tolerances import CALM_MOVEMENT, LEVEL_LOOKED_FOR, LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Tally"]

_FEW = 3
"""Number of views of a variable below which no separate movement is sought here: coalitions handle them."""

_AT_ONCE = 20_000_000
"""Number of pairs of a movement and a view examined together."""
_STRETCH = 4.0
"""Factor by which a reversed movement may grow."""


class Tally:
    """What feasible movements reach for each question, and the proven bounds."""

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
        # a movement of a few variables answers no question about others, of which there may be millions
        self._questions_on = _Listed(q.variable, len(system.up))
        self._known_on = _Listed(self.known_variable, len(system.up))
        self._is_open, self._open = np.ones(n, bool), np.arange(n)
        self._answered = 0
        """Number of questions in `_open` that are no longer open."""
        self.update()

    # ------------------------------------------------------------------ open questions

    @property
    def open(self) -> IntArray:
        """Questions that are neither answered nor proven to have no answer."""
        if self._answered:  # an answered question stays answered
            self._open, self._answered = self._open[self._is_open[self._open]], 0
        return self._open

    def _find_unmet(self, some: IntArray | slice) -> BoolArray:
        """Return which questions lack a witness for some level."""
        q, high, low = self.questions, self.high[some], self.low[some]
        short = (high < q.need_high[some] * LEVEL_LOOKED_FOR) | (low < q.need_low[some] * LEVEL_LOOKED_FOR)
        return np.asarray(short | (high + low < q.need_width[some] * LEVEL_LOOKED_FOR))

    def find_unmet(self) -> BoolArray:
        """Return which questions lack a witness for some level."""
        return self._find_unmet(slice(None))

    def _find_out_of_reach(self, some: IntArray | slice) -> BoolArray:
        """Return which questions have a level beyond a proven bound."""
        q, keep, high, low = self.questions, 1 - LEVEL_SHARE, self.high_bound[some], self.low_bound[some]
        beyond = (high < q.need_high[some] * keep) | (low < q.need_low[some] * keep)
        return np.asarray(beyond | (high + low < q.need_width[some] * keep))

    def update(self, some: IntArray | None = None) -> None:
        """Update which questions are open: all, or some of those that were."""
        which = slice(None) if some is None else some
        before = np.count_nonzero(self._is_open[which])
        self._is_open[which] &= self._find_unmet(which) & ~self._find_out_of_reach(which)
        self._answered += int(before - np.count_nonzero(self._is_open[which]))

    def list_waiting(self) -> IntArray:
        """Return the variables with open questions of several views, highest levels first."""
        q, some = self.questions, self.open
        level = np.zeros(len(self.system.up))
        np.maximum.at(level, q.variable[some], q.get_both_distances(some))
        several = np.flatnonzero(np.bincount(q.variable[some], minlength=len(level)) > _FEW)
        return several[np.argsort(-level[several], kind="stable")]

    def find_open_questions(self, variable: int) -> IntArray:
        """Return the open questions about a variable; none if they are too few for a program."""
        some = self._questions_on.get_entries(np.array([variable]))
        some = some[self._is_open[some]]
        return some if len(some) > _FEW else some[:0]

    def find_unshown_questions(self) -> IntArray:
        """Return the open questions that no movement answers even for an attacker without further knowledge."""
        q, some = self.questions, self.open
        furthest = np.zeros((2, len(self.system.up)))
        for side, got in enumerate((self.low, self.high)):
            np.maximum.at(furthest[side], q.variable, got)
        low, high = furthest[:, q.variable[some]]
        met = (high >= q.need_high[some]) & (low >= q.need_low[some]) & (low + high >= q.need_width[some])
        return some[~met]

    def filter_open(self, some: IntArray) -> IntArray:
        """Return which of some questions are open, without examining all others."""
        at = np.minimum(np.searchsorted(self.open, some), max(len(self.open) - 1, 0))
        return some[self.open[at] == some] if len(self.open) else some[:0]

    def bound(self, some: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Record proven bounds of some questions: no movement goes further down or up."""
        self.low_bound[some] = np.minimum(self.low_bound[some], low)
        self.high_bound[some] = np.minimum(self.high_bound[some], high)
        self.update(some)

    # ------------------------------------------------------------------ search targets

    def get_slack(self, member: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the variables can move down and up within the bounds of all members."""
        known = self.questions.known
        down, up = self.system.down.copy(), self.system.up.copy()
        theirs = np.flatnonzero(member[self.known_view])
        np.minimum.at(down, self.known_variable[theirs], known.down[theirs])
        np.minimum.at(up, self.known_variable[theirs], known.up[theirs])
        return down, up

    def count_knowing_views(self, views: IntArray) -> FloatArray:
        """Return how many of some views have tighter bounds on each variable than the public ones."""
        member = np.zeros(self.n_views, bool)
        member[views] = True
        return np.bincount(self.known_variable[member[self.known_view]], minlength=len(self.system.up)).astype(float)

    def draw_levels(self, some: IntArray, down: FloatArray, up: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return how far to push each variable, up or (negative) down; draw one of two open sides."""
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

    def note_movement(self, v: FloatArray) -> bool:
        """Mark what a feasible movement and its reverse show; return whether it helped."""
        helped = self._mark_shown(v)
        return self._mark_shown(self._reverse_movement(v)) or helped

    def _reverse_movement(self, v: FloatArray) -> FloatArray:
        """Return the reversed movement, each component as far as the public bounds allow."""
        s = self.system
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = np.where(v > 0, s.down / v, np.where(v < 0, s.up / -v, np.inf))
        factor = np.full(s.n_components, _STRETCH)
        np.minimum.at(factor, s.component, slack)
        return -v * factor[s.component]

    def _compute_shares(self, v: FloatArray) -> FloatArray:
        """Return, for each view, the share of a movement that lies inside its bounds, at most 1."""
        known, some = self.questions.known, self._known_on.get_entries(np.flatnonzero(v))
        c, up, down = v[self.known_variable[some]], known.up[some], known.down[some]
        share = np.ones(len(c))
        over, under = c > up, -c > down
        share[over] = up[over] / c[over]
        share[under] = down[under] / -c[under]
        out = np.ones(self.n_views)
        np.minimum.at(out, self.known_view[some], share)
        return out

    def _mark_shown(self, v: FloatArray) -> bool:
        v, q = self._remove_noise(v), self.questions
        some = self._find_moved(v)
        if not len(some):
            return False
        moved = v[q.variable[some]]
        share = self._compute_shares(v)[q.view[some]]
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
            part = _add_slack(share[further], enough[further] / size)
            got[at], row[at], shares[at] = part * size, len(self.pool), part
            helped = helped or len(at) > 0
        if not helped:
            return False
        moving = np.flatnonzero(v)
        self.pool.append((moving, v[moving]))
        self.update(some)
        return True

    def record_each(self, movements: csr_array) -> None:
        """Answer open questions by movements: each by the shortest one that goes far enough within its view's bounds.

        A movement of few variables conflicts with few views. Where none goes far enough, the furthest counts.
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
        """Assign movements (rows, which join the pool next) to some questions."""
        from cellguard._core.witnesses import choose

        q, shares = self.questions, self._compute_share_matrix(by_variable)
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
            part = _add_slack(most[further], enough[further] / moved)
            got[at], row[at], share[at] = part * moved, len(self.pool) + best[further], part
        self.update(some)

    def _compute_share_matrix(self, by_variable: csc_array) -> FloatArray:
        """Return the share of each movement (row) that lies inside the bounds of each view (column)."""
        from cellguard._core.witnesses import lower_shares

        known = self.questions.known
        start, index = by_variable.indptr.astype(np.int64), by_variable.indices.astype(np.int64)
        out = np.ones((by_variable.shape[0], self.n_views))
        lower_shares(
            start, index, by_variable.data, self.known_variable, self.known_view, known.down, known.up, out
        )  # a loop is fifty times as fast as index arrays: most entries of what views know limit nothing
        return out

    def _find_moved(self, v: FloatArray) -> IntArray:
        """Return the open questions about variables that a movement moves."""
        moving = np.flatnonzero(v)
        if len(self._open) - self._answered < self._questions_on.count(moving):
            return self.open[v[self.questions.variable[self.open]] != 0]
        some = self._questions_on.get_entries(moving)
        return some[self._is_open[some]]

    def _remove_noise(self, v: FloatArray) -> FloatArray:
        s = self.system
        largest = np.zeros(s.n_components)
        np.maximum.at(largest, s.component, np.abs(v))
        return np.where(np.abs(v) > CALM_MOVEMENT * largest[s.component], v, 0.0)

    def list_movements(self) -> csr_array:
        """Return the movements in use, a row each; rows are renumbered."""
        rows = np.unique(np.concatenate([self.high_row, self.low_row, [-1]]))[1:]
        place = np.full(len(self.pool) + 1, -1, np.int64)  # index -1 finds the last entry
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

    def get_entries(self, variables: IntArray) -> IntArray:
        """Return the entries of some variables."""
        return self._order[expand_rows(self._start, variables, variables)[1]]


def _add_slack(most: FloatArray, enough: FloatArray) -> FloatArray:
    """Where a movement must be scaled down, go half way to what would be enough: ends are only met inexactly."""
    return np.where((most < 1.0) & (enough < most), (most + enough) / 2, most)
