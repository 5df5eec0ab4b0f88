"""The plain model first: a rounding without levels, led to the nearest one that meets them.

The plain model, without levels, is often solved in a fraction of the time that the same model takes with a few cuts.
So it is solved first, and its bound says how much the levels cost at most. A rounding that misses a few levels needs
few changes. A program that minimises the number of changes has a relaxation that is nearly whole, because almost every
column is where the objective wants it to be, so it is solved at the root of its tree, where the same program with the
true price takes many times as long (Fischetti and Monaci 2014, "Proximity search for 0-1 mixed-integer convex
programming"). Among equally near roundings the true price decides.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._types import FloatArray, IntArray
from cellguard.methods.limits import Limits
from cellguard.methods.rounding.exact import RoundingOutcome, TreeSearch
from cellguard.methods.rounding.level_cuts import LevelCuts, LevelsOpenError
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["GOOD_ENOUGH_GAP", "KnownRounding", "round_plainly"]

MAX_PLAIN_COLUMNS = 25_000
"""Larger programs are not given to branch-and-bound before their relaxation is known."""
PLAIN_TIME_SHARE = 0.3
"""Share of the time left that the plain model may take."""
MAX_NEAREST_ROUNDS = 20
"""Maximum number of rounds of cuts that lead a plain solution to a table that meets every level."""
GOOD_ENOUGH_GAP = 0.01
"""Gap at which a plain solution led to the levels is not improved any more, as a share of the cost."""
NEARLY_WHOLE = 0.05
"""Share of fractional columns up to which a relaxation is made whole quickly, as those of networks are."""
MAX_PROOF_ROUNDS = 6
"""Maximum number of times that such a program is solved with the levels that its last solution missed."""
IMPROVE_SHARES = (0.5, 0.25, 0.1)
"""Shares of the gap that an improvement must close; the next one is tried where nothing was found."""
PRICE_OF_CHANGE = 1.0
"""Price of one change, in units of the largest price of a step."""
MAX_NODES = 20
"""Maximum number of nodes of the tree: what is near is found at its root, or not at all."""
TIME_SHARE = 0.2
"""Share of the time left that one program may take."""


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownRounding:
    """A rounding of an earlier search, against fewer attackers or for lower levels."""

    x: IntArray
    """Additive; it may miss levels."""
    bound: float
    """What no rounding costs less than, with fewer requirements and so with more."""


def round_plainly(
    problem: RoundingProblem, cuts: LevelCuts, limits: Limits, known: KnownRounding | None = None
) -> RoundingOutcome:
    """Solve the plain model, without levels, and lead its solution to the levels that it misses.

    Levels only restrict the plain model, so its bound holds for them too: a plain optimum that meets every level is
    optimal. A rounding that is known already takes the place of the plain solution.
    """
    search = _PlainSearch(problem, cuts, limits)
    if 0 < search.model.n_columns <= MAX_PLAIN_COLUMNS:
        with suppress(LevelsOpenError):
            if known is None or not search.start_from(known):
                search.solve_plain(limits.deadline.take_share(PLAIN_TIME_SHARE))
    return search.get_outcome()


class _PlainSearch(TreeSearch):
    """A search that starts from the plain solution, or from a rounding that is known."""

    def solve_plain(self, deadline: Deadline) -> None:
        """Solve the whole program without levels, and lead its solution to the nearest one that meets them."""
        m = self.model
        found = self.solve_whole(np.zeros(m.n_columns), np.ones(m.n_columns, np.bool_), deadline)
        self.plain_rounds = 1
        self.prove(self.problem.round_up_to_attainable(m.constant + found.bound, m.constant))
        if found.found and not self.accept(m.compute_x(found.x)) and self.find_nearest_safe(found.x):
            self.prove_nearly_whole()
            self.improve_nearby()

    def start_from(self, known: KnownRounding) -> bool:
        """Lead a known rounding to the levels that it misses; return whether that was possible."""
        self.prove(known.bound)
        if not self.problem.is_rounding(known.x):
            return False
        if not self.accept(known.x) and not self.find_nearest_safe(self.model.compute_y(known.x)):
            return False
        self.improve_nearby()
        return True

    def prove_nearly_whole(self) -> None:
        """Solve the program with its cuts where that is quick: where the relaxation is nearly whole."""
        m = self.model
        for _ in range(MAX_PROOF_ROUNDS):
            relaxed = LinearProgram(self.program, replace(ONCE, tolerance=1e-7)).solve(
                time_limit_s=PLAIN_TIME_SHARE * self.limits.deadline.left
            )
            if not relaxed.optimal:
                return
            self.prove(self.problem.round_up_to_attainable(m.constant + relaxed.objective, m.constant))
            if (np.abs(relaxed.x - np.rint(relaxed.x)) > 1e-6).mean() > NEARLY_WHOLE:
                return
            deadline = self.limits.deadline.take_share(PLAIN_TIME_SHARE)
            found = self.solve_whole(np.zeros(m.n_columns), np.ones(m.n_columns, np.bool_), deadline)
            self.prove(self.problem.round_up_to_attainable(m.constant + found.bound, m.constant))
            if not found.found or self.accept(m.compute_x(found.x)):
                return

    def find_nearest_safe(self, y: FloatArray) -> bool:
        """Lead columns to the nearest ones that meet every level; return whether there are any within the limits."""
        deadline = self.limits.deadline
        for _ in range(MAX_NEAREST_ROUNDS):
            found = _solve_nearest(self.program, y, deadline)
            if found is None:
                return False
            self.plain_rounds += 1
            y = found
            if self.accept(self.model.compute_x(y)):
                return True
        return False

    def improve_nearby(self) -> None:
        """Take nearby roundings that close a share of the gap, until it is small enough or none is found nearby."""
        m, deadline = self.model, self.limits.deadline
        shares = list(IMPROVE_SHARES)
        for _ in range(MAX_NEAREST_ROUNDS):
            small = self.missing <= GOOD_ENOUGH_GAP * abs(self.cost)
            if self.best is None or small or not shares or self.is_closed() or deadline.passed:
                return
            most = self.cost - max(self.problem.unit, shares[0] * self.missing) - m.constant
            found = _solve_nearest(self.program, m.compute_y(self.best), deadline, most=most)
            if found is None:
                shares.pop(0)
            else:
                self.accept(m.compute_x(found))


def _solve_nearest(
    program: LinearModel, y: FloatArray, deadline: Deadline, *, most: float | None = None
) -> FloatArray | None:
    """Return whole columns of the program near `y`, with a true price of at most `most`; None if none were found.

    Parameters
    ----------
    program
        The rows that the columns must satisfy, and their true prices.
    y
        Whole columns within their bounds that may violate rows.
    deadline
        When to stop at the latest.
    most
        Largest true price, if it matters.
    """
    price = np.zeros(len(y)) if program.cost is None else program.cost
    change = PRICE_OF_CHANGE * max(1.0, float(np.abs(price).max(initial=0.0)))
    away = np.where(y <= program.lower, change, np.where(y >= program.upper, -change, 0.0))
    near = replace(program, cost=price + away)
    if most is not None:
        near = replace(
            near,
            A=csr_array(vstack([program.A, csr_array(price[None, :])])),
            row_lower=np.append(program.row_lower, -np.inf),
            row_upper=np.append(program.row_upper, most),
        )
    until = Until(time_limit_s=TIME_SHARE * deadline.left, relative_gap=0.0, nodes=MAX_NODES)
    found = solve_mixed(near, until)
    return found.x if found.found else None
