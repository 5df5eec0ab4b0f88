"""Why nothing satisfies the bounds: a set of relations and bounds that conflict, none of which can be left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import DUAL, ONCE, LinearModel, LinearProgram, SolveStatus
from cellguard._types import FloatArray, IntArray

__all__ = ["Conflict", "find_conflict"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflict:
    """Relations and bounds that cannot hold together."""

    relations: IntArray
    """Numbers of the relations."""
    lower: IntArray
    """Cells whose lower bounds take part."""
    upper: IntArray
    """Cells whose upper bounds take part."""
    irreducible: bool
    """Whether leaving out any one of them would end the conflict."""


def find_conflict(
    relations: csr_array, lower: FloatArray, upper: FloatArray, *, time_limit_s: float = 20.0
) -> Conflict | None:
    """Return a conflict of ``T z = 0`` with ``lower <= z <= upper``, or None when there is none.

    The multipliers of a program that pays for every missed bound name the few relations that matter;
    what of them can be left out one by one is left out.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> found = find_conflict(T, np.array([-1.0, 2, 0]), np.array([1.0, 9, 9]))
    >>> found.relations.tolist(), found.lower.tolist(), found.upper.tolist()
    ([0], [1, 2], [0])
    """
    deadline = Deadline.after(time_limit_s)
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        one = crossed[:1]
        return Conflict(relations=np.zeros(0, np.int64), lower=one, upper=one, irreducible=True)
    needs = np.maximum(np.maximum(lower, -upper), 0.0)
    unit = float(np.median(needs[needs > 0])) if (needs > 0).any() else 1.0
    low, high = lower / unit, upper / unit
    rows = _support(relations, low, high, time_limit_s)
    if rows is None:
        return None
    return _Filter(relations, rows, low, high, deadline).run()


def _support(T: csr_array, low: FloatArray, high: FloatArray, time_limit_s: float) -> IntArray | None:
    """Relations with a multiplier when every missed bound is paid for; None when none need be missed."""
    n = T.shape[1]
    I = eye_array(n, format="csr")
    M = csr_array(hstack([T, T @ I, T @ -I]))  # z inside the bounds, plus what is above, minus what is below
    start, stop = np.where(np.isfinite(low), low, -np.inf), np.where(np.isfinite(high), high, np.inf)
    more, less = np.where(np.isfinite(high), np.inf, 0.0), np.where(np.isfinite(low), np.inf, 0.0)
    least, most = np.concatenate([start, np.zeros(2 * n)]), np.concatenate([stop, more, less])
    model = LinearModel(M, 0.0, 0.0, least, most, np.concatenate([np.zeros(n), np.ones(2 * n)]))
    solution = LinearProgram(model, ONCE).solve(time_limit_s=time_limit_s)
    if solution.optimal and solution.objective < 1e-9:
        return None
    if not solution.optimal:
        return np.arange(T.shape[0])
    return np.flatnonzero(np.abs(solution.row_dual) > 1e-9)


class _Filter:
    """Leaves out what the conflict does not need, one by one."""

    def __init__(self, T: csr_array, rows: IntArray, low: FloatArray, high: FloatArray, deadline: Deadline) -> None:
        part = csr_array(T[rows])
        self.cells = np.unique(part.indices)
        self.rows, self.deadline = rows, deadline
        self.low, self.high = low[self.cells].copy(), high[self.cells].copy()
        self.lp = LinearProgram(LinearModel(csr_array(part[:, self.cells]), 0.0, 0.0, self.low, self.high), DUAL)
        self.timely = True

    def _infeasible(self) -> bool:
        if self.deadline.passed:
            self.timely = False
            return False
        left = self.deadline.at_least()
        return self.lp.solve(time_limit_s=min(5.0, left)).status is SolveStatus.INFEASIBLE

    def run(self) -> Conflict:
        keep = np.ones(len(self.rows), bool)
        if self._infeasible():  # otherwise the tolerances of the two programs disagree: keep all
            for k in range(len(self.rows)):
                self.lp.set_row_sides(k, -np.inf, np.inf)
                keep[k] = not self._infeasible()
                if keep[k]:
                    self.lp.set_row_sides(k, 0.0, 0.0)
            for bound, endless in ((self.low, -np.inf), (self.high, np.inf)):
                for c in np.flatnonzero(np.isfinite(bound)).tolist():
                    before, bound[c] = bound[c], endless
                    self._set(c)
                    if not self._infeasible():
                        bound[c] = before
                        self._set(c)
        else:
            self.timely = False
        return Conflict(
            relations=self.rows[keep],
            lower=self.cells[np.isfinite(self.low)],
            upper=self.cells[np.isfinite(self.high)],
            irreducible=self.timely,
        )

    def _set(self, c: int) -> None:
        at = np.array([c])
        self.lp.set_bounds(at, self.low[at], self.high[at])
