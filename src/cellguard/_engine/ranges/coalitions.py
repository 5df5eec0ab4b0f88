"""Coalitions: one program answers the questions of many views that hardly know anything of each other's cells.

A movement that fits what several attackers know together fits what each of them knows. So views are put together
whose knowledge lies apart, and one program pushes everything that is open for any of them: some cells up,
others down, each counting up to its level (salazar2004 section 3.1). What one coalition leaves open goes
into the next round, in other company, and at last alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram
from cellguard._types import FloatArray, IntArray

__all__ = ["Coalitions"]


_SETTLES = 0.1
"""Coalitions become smaller when a round settles less than this share of what is open."""
_SMALLER = 4
_ALONE = 2
"""Coalitions of fewer views are not worth a program: alone, a bound is proven as well."""
_FREE = 3
"""So many variables of a relation stay free in a coalition: with fewer, its members stand in each other's way."""
_MAGNITUDE = 1e3
"""Levels within this factor are served by one unit of the solver."""


@dataclass(eq=False)
class _Coalition:
    views: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    wanted: set[int] = field(default_factory=set)
    fixed: dict[int, int] = field(default_factory=dict)
    """How many variables of a relation are known exactly."""


class Coalitions:
    """Rounds of programs for what is open.

    Parameters
    ----------
    tally
        What is known of the questions; it learns from the programs.
    deadline
        When to stop.
    """

    def __init__(self, tally: Tally, deadline: Deadline) -> None:
        self.tally, self.deadline = tally, deadline
        self.A = tally.system.space.relations
        self.columns = csr_array(self.A.T)
        self.size = abs(self.A)
        self.length = np.diff(self.A.indptr)
        self.programs = 0
        known = tally.questions.known
        self.start = np.searchsorted(tally.known_view, np.arange(tally.n_views + 1))
        self.exactly = (known.down == 0) & (known.up == 0)

    def run(self) -> None:
        """Settle what coalitions can settle."""
        tally, most, number = self.tally, 1 << 62, 0
        while len(tally.open) and most >= _ALONE and not self.deadline.passed:
            rng = np.random.default_rng(number)
            before, number = len(tally.open), number + 1
            coalitions = self._put_together(rng, most)
            for coalition in coalitions:
                if not self.deadline.left:
                    return
                self._ask(coalition, rng)
            if before - len(tally.open) < _SETTLES * before:
                most = min(most, max((len(c.views) for c in coalitions), default=0)) // _SMALLER

    # ------------------------------------------------------------------ who with whom

    def _put_together(self, rng: np.random.Generator, most: int) -> list[_Coalition]:
        """Put every view with an open question into the first coalition in which it stands in nobody's way."""
        q, open_ = self.tally.questions, self.tally.open
        order = np.argsort(q.view[open_], kind="stable")
        views, first = np.unique(q.view[open_][order], return_index=True)
        wanted = np.split(q.variable[open_][order], first[1:])
        out: list[_Coalition] = []
        for at in rng.permutation(len(views)).tolist():
            if self.deadline.passed:
                break
            view, mine = int(views[at]), set(wanted[at].tolist())
            span = slice(self.start[view], self.start[view + 1])
            known = self.tally.known_variable[span]
            rows = self._relations(known[self.exactly[span]])
            theirs = set(known.tolist())
            for c in out:
                if (
                    len(c.views) < most
                    and c.known.isdisjoint(mine)
                    and c.wanted.isdisjoint(theirs)
                    and self._fits(c, rows)
                ):
                    break
            else:
                c = _Coalition()
                out.append(c)
            c.views.append(view)
            c.known |= theirs
            c.wanted |= mine
            for row, n in rows.items():
                c.fixed[row] = c.fixed.get(row, 0) + n
        return out

    def _relations(self, variables: IntArray) -> dict[int, int]:
        out: dict[int, int] = {}
        for j in variables.tolist():
            for row in self.columns.indices[self.columns.indptr[j] : self.columns.indptr[j + 1]].tolist():
                out[row] = out.get(row, 0) + 1
        return out

    def _fits(self, c: _Coalition, rows: dict[int, int]) -> bool:
        return all(row not in c.fixed or c.fixed[row] + n <= self.length[row] - _FREE for row, n in rows.items())

    # ------------------------------------------------------------------ what is asked

    def _ask(self, coalition: _Coalition, rng: np.random.Generator) -> None:
        """Push what is open for a coalition."""
        tally = self.tally
        member = np.zeros(tally.n_views, bool)
        member[coalition.views] = True
        some = tally.open[member[tally.questions.view[tally.open]]]
        if not len(some):
            return
        down, up = tally.room_of(member)
        levels = tally.levels(some, down, up, rng)
        while levels.any() and not self.deadline.passed:
            top = np.abs(levels) >= np.abs(levels).max() / _MAGNITUDE
            self._push(np.where(top, levels, 0.0), down, up)
            levels[top] = 0.0

    def _push(self, levels: FloatArray, down: FloatArray, up: FloatArray) -> None:
        variables = np.flatnonzero(levels)
        level = np.abs(levels[variables])
        unit = float(level.min())
        low, high = -down, up.copy()
        rises = levels > 0
        high[rises] = np.minimum(high[rises], levels[rises])
        low[levels < 0] = np.maximum(low, levels)[levels < 0]
        cost = np.zeros(len(up))
        cost[variables] = np.sign(levels[variables]) * unit / level
        part = np.isin(self.tally.system.component, self.tally.system.component[variables])
        A, columns = self.A, np.flatnonzero(part)
        if len(columns) < len(part):
            A = csr_array(A[:, columns])
            A = csr_array(A[np.flatnonzero(np.diff(A.indptr))])
        program = LinearProgram(
            LinearModel(A, 0.0, 0.0, low[columns] / unit, high[columns] / unit, cost[columns]), ONCE
        )
        self.programs += 1
        found = program.solve(maximize=True, time_limit_s=self.deadline.at_least(), duals=False)
        v = np.zeros(len(up))
        v[columns] = np.clip(found.x * unit, -down[columns], up[columns])
        if np.isfinite(v).all() and (np.abs(self.A @ v) <= 1e-9 * (self.size @ np.abs(v) + unit)).all():
            self.tally.learn(v)
