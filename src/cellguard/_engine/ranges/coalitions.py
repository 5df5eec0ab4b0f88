"""Coalitions: one program answers the questions of many views that know little about each other's cells.

A movement that fits the joint knowledge of several attackers fits the knowledge of each. So views whose
knowledge hardly overlaps are put together, and one program pushes everything that is open for any of them: some
cells up, others down, each counting up to its level (salazar2004 section 3.1). What one coalition leaves open goes
into the next round, in another coalition, and finally alone.
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
"""Coalitions shrink when a round settles less than this share of the open questions."""
_SMALLER = 4
_ALONE = 2
"""Coalitions of fewer views are not worth a program: solving for a single view also proves a bound."""
_FREE = 3
"""Number of variables of a relation that stay free in a coalition: with fewer, its members would conflict."""
_MAGNITUDE = 1e3
"""Levels within this factor share one unit of the solver."""


@dataclass(eq=False)
class _Coalition:
    views: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    wanted: set[int] = field(default_factory=set)
    fixed: dict[int, int] = field(default_factory=dict)
    """Number of variables of each relation that are known exactly."""


class Coalitions:
    """Rounds of programs for open questions.

    Parameters
    ----------
    tally
        The tally of the questions; it records the results of the programs.
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
        """Settle questions by coalitions."""
        tally, most, number = self.tally, 1 << 62, 0
        while len(tally.open) and most >= _ALONE and not self.deadline.passed:
            rng = np.random.default_rng(number)
            before, number = len(tally.open), number + 1
            coalitions = self._group_into_coalitions(rng, most)
            for coalition in coalitions:
                if not self.deadline.left:
                    return
                self._ask(coalition, rng)
            if before - len(tally.open) < _SETTLES * before:
                most = min(most, max((len(c.views) for c in coalitions), default=0)) // _SMALLER

    # ------------------------------------------------------------------ forming coalitions

    def _group_into_coalitions(self, rng: np.random.Generator, most: int) -> list[_Coalition]:
        """Put every view with an open question into the first coalition where it conflicts with no member."""
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
            rows = self._find_relations(known[self.exactly[span]])
            theirs = set(known.tolist())
            for c in out:
                if (
                    len(c.views) < most
                    and c.known.isdisjoint(mine)
                    and c.wanted.isdisjoint(theirs)
                    and self._can_join(c, rows)
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

    def _find_relations(self, variables: IntArray) -> dict[int, int]:
        out: dict[int, int] = {}
        for j in variables.tolist():
            for row in self.columns.indices[self.columns.indptr[j] : self.columns.indptr[j + 1]].tolist():
                out[row] = out.get(row, 0) + 1
        return out

    def _can_join(self, c: _Coalition, rows: dict[int, int]) -> bool:
        return all(row not in c.fixed or c.fixed[row] + n <= self.length[row] - _FREE for row, n in rows.items())

    # ------------------------------------------------------------------ solving

    def _ask(self, coalition: _Coalition, rng: np.random.Generator) -> None:
        """Push the open variables of a coalition."""
        tally = self.tally
        member = np.zeros(tally.n_views, bool)
        member[coalition.views] = True
        some = tally.open[member[tally.questions.view[tally.open]]]
        if not len(some):
            return
        down, up = tally.get_slack(member)
        levels = tally.draw_levels(some, down, up, rng)
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
        found = program.solve(maximize=True, time_limit_s=self.deadline.get_seconds_at_least(), duals=False)
        v = np.zeros(len(up))
        v[columns] = np.clip(found.x * unit, -down[columns], up[columns])
        if np.isfinite(v).all() and (np.abs(self.A @ v) <= 1e-9 * (self.size @ np.abs(v) + unit)).all():
            self.tally.note_movement(v)
