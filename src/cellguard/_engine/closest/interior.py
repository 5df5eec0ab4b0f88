"""One primal-dual interior point for the closest safe table, in every norm.

The problem, between movers v (cells that move together are one mover)::

    min   sum c v + 1/2 q v^2 + cost a + 1/2 curve a^2    a are auxiliaries
    s.t.  A v = 0                             the relations
          sign v[mover] + lift a[aux] >= side   one row per inequality

Inequalities have one mover and at most one auxiliary each. That is enough for bounds, absolute
values (``t -/+ v >= 0``, castro2004 (4)), largest deviations (``tau h -/+ v >= 0``, castro2004
(6)) and soft bounds (``v + e >= l, e >= 0``). So a Newton step needs one symmetric system,
``min 1/2 dv' Theta dv - g dv, A dv = 0`` with a diagonal Theta: :mod:`cellguard._engine.closest.newton_systems`
solves it in the null space or by the normal equations, whichever is smaller. The method is
Mehrotra's predictor-corrector (S. J. Wright, Primal-Dual Interior-Point Methods, SIAM 1997,
chapter 10). Movers start at 0 and never leave ``A v = 0``; only the inequalities start violated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cellguard._core.interior import Newton
from cellguard._engine.clock import NEVER, Deadline
from cellguard._tolerances import EXACT_RELATION
from cellguard._types import FloatArray, IntArray

__all__ = ["InteriorPoint", "Point", "PointInequalities", "Program", "Projection"]


@dataclass(frozen=True)
class InteriorPolicy:
    """Where the iteration starts, and when it stops; chosen by trial on the tables of CSPLIB.

    No measurement is recorded here for the single numbers.
    """

    first_product: float = 100.0
    """Initial products of multipliers and slacks, in typical costs."""
    least_slack: float = 0.01
    """Smallest initial slack, in typical movements."""
    close: float = 1e-6
    """Error (gap plus violation) below which rounding may prevent progress."""
    patience: int = 2
    """Iterations without progress that are allowed there."""
    stands: float = 0.99
    """A step there that leaves more than this share of the error ends the iteration: the next would gain nothing."""
    balanced: float = 1e-6
    """Largest correction of a multiplier after a run, relative to the largest."""
    stalled: float = 1e-3
    """The same at exact movers."""
    active_weight: float = 1e9
    """Weight of active rows."""


_POLICY = InteriorPolicy()
_STUCK = 0.8
"""Rows violated by more than this share of the violation one step earlier may be infeasible together."""
_NOTHING = 1e-40
"""Products that shrink to this share of the first count as 0."""
_DIVERGED = 1e14
"""Products that grow by this factor mean that the iteration diverges: no point satisfies the rows."""


class Projection(Protocol):
    """Solves ``min 1/2 x' diag(theta) x - g x`` subject to ``A (v + x) = 0``."""

    threads: int
    """Number of cores that its factorization can use."""

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta > 0."""

    def solve(self, g: FloatArray, v: FloatArray | None = None, *, rough: bool = False) -> FloatArray:
        """Return the minimiser for one g; v is 0 unless given, and violates the relations only by rounding.

        A rough answer is a search direction only: its last digits do not matter.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class PointInequalities:
    """Rows ``sign v[mover] + lift a[aux] >= side``; `lift` 0 where there is no auxiliary."""

    mover: IntArray
    sign: FloatArray
    aux: IntArray
    lift: FloatArray
    side: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A separable convex program between movers.

    Auxiliaries ``a[:n_pairs]`` appear in exactly two rows and with one mover (pairs k and
    k + n_pairs of the rows from `first_pair` on); the last ones may appear with any number.
    """

    linear: FloatArray
    quadratic: FloatArray
    rows: PointInequalities
    aux_cost: FloatArray
    aux_quadratic: FloatArray
    constant: float = 0.0
    n_pairs: int = 0
    first_pair: int = 0


@dataclass(kw_only=True, eq=False)
class Point:
    """The current iterate: movers, auxiliaries, slacks and their multipliers."""

    v: FloatArray
    a: FloatArray
    slack: FloatArray
    multiplier: FloatArray
    objective: float = float("nan")
    gap: float = float("inf")
    """Sum of the products of slacks and multipliers: the distance of the objective from its bound."""
    violation: float = float("inf")
    """Largest violation of a row."""
    iterations: int = 0
    converged: bool = False
    impossible: bool = False
    """Whether the multipliers prove that no point satisfies the rows."""


class InteriorPoint:
    """One run: its state, and its Newton system reduced to the movers.

    Parameters
    ----------
    program, projection
        The problem, in units of a typical movement, and the solver of its Newton systems.
    """

    def __init__(self, program: Program, projection: Projection) -> None:
        self.p, self.projection = program, projection
        self.n, self.n_aux = len(program.linear), len(program.aux_cost)
        r = program.rows
        k, P = program.first_pair, program.n_pairs
        self.one, self.two, self.rest = slice(k, k + P), slice(k + P, k + 2 * P), slice(k + 2 * P, None)
        self.n_shared = self.n_aux - P
        self.curved = bool(program.quadratic.any() or program.aux_quadratic.any())
        self.newton = Newton(
            *(program.linear, program.quadratic, (r.mover, r.aux), (r.sign, r.lift, r.side)),
            *((program.aux_cost, program.aux_quadratic), (k, P)),
        )
        self.point = self._start()

    # ------------------------------------------------------------------ Newton

    def _eliminate_auxiliaries(self, theta: FloatArray) -> None:
        """Eliminate the auxiliaries from ``Q + G' diag(theta) G`` and factor the rest."""
        self.projection.factor(self.newton.condense(theta))
        if self.n_shared:
            r, rest = self.p.rows, self.rest
            which = r.aux[rest] - self.p.n_pairs
            coupling = r.sign[rest] * r.lift[rest] * theta[rest]
            self.border = np.stack(
                [np.bincount(r.mover[rest], np.where(which == g, coupling, 0.0), self.n) for g in range(self.n_shared)]
            )
            F = np.bincount(which, r.lift[rest] ** 2 * theta[rest], self.n_shared)
            self.behind = np.stack([self.projection.solve(e) for e in self.border])
            self.schur = np.diag(F) - self.border @ self.behind.T

    def _solve(
        self, sides: tuple[FloatArray, FloatArray], *, restore: bool = True, rough: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Solve the condensed system for right-hand sides of movers and shared auxiliaries."""
        g, h = sides
        dv = self.projection.solve(g, self.point.v if restore else None, rough=rough)
        if not self.n_shared:
            return dv, h
        shared = np.asarray(np.linalg.solve(self.schur, h - self.border @ dv), np.float64)
        return dv - shared @ self.behind, shared

    # ------------------------------------------------------------------ the method

    def _start(self) -> Point:
        """Return the start: movers at 0 and all products of slack and multiplier equal, far from any bound.

        The cost of a mover or a maximum decides the product; a product 100 times larger saves iterations
        on tables whose values differ by many orders of magnitude.
        """
        p, r = self.p, self.p.rows
        P, k = p.n_pairs, p.first_pair
        v, a = np.zeros(self.n), np.zeros(self.n_aux)
        for g in range(P, self.n_aux):
            lifts = r.lift[self.rest][r.aux[self.rest] == g]
            a[g] = _POLICY.first_product / (float(np.median(lifts)) if len(lifts) else 1.0)  # nothing may move
        n_rest = max(1, len(r.side[self.rest]))
        costs = (p.linear, p.quadratic, p.aux_cost[:P], a[P:] / n_rest)
        mu = _POLICY.first_product * max(float(np.median(np.abs(c[c != 0]))) if c.any() else 0.0 for c in costs)
        a[:P] = 2.0 * mu / p.aux_cost[:P]
        slack = np.maximum(np.abs(r.side), _POLICY.least_slack)
        slack[k:] = np.maximum(r.lift[k:] * a[r.aux[k:]] - r.side[k:], _POLICY.least_slack)
        return Point(v=v, a=a, slack=slack, multiplier=mu / slack)

    def run(
        self,
        *,
        tolerance: float = 1e-12,
        max_iterations: int = 100,
        deadline: Deadline = NEVER,
        impossible: Callable[[Point], bool] | None = None,
    ) -> Point:
        """Iterate until the gap is below the tolerance, relative to the objective, or rounding stops the progress.

        While rows stay violated, `impossible` checks whether the multipliers prove that they always will be.
        """
        if not len(self.point.slack):  # nothing is required: no movement is the closest
            self.point = replace(self.point, objective=self.p.constant, gap=0.0, violation=0.0, converged=True)
            return self.point
        x, best, best_quality, stalled, before = self.point, replace(self.point), np.inf, 0, np.inf
        first = float(x.slack @ x.multiplier) / len(x.slack)
        for _ in range(max_iterations):
            self._compute_residuals()
            # where moving costs nothing, no gap is small relative to the objective
            nothing_left = self.mu <= _NOTHING * first
            if (self.relative_gap <= tolerance or nothing_left) and x.violation <= EXACT_RELATION:
                best = replace(x, converged=True)
                break
            if impossible is not None and x.violation > max(_STUCK * before, EXACT_RELATION) and impossible(x):
                self.point = replace(x, impossible=True)
                return self.point
            before = x.violation
            quality = self.relative_gap + x.violation
            stalled = stalled + 1 if best_quality < _POLICY.close and quality > 0.5 * best_quality else 0
            stands = stalled > 0 and quality > _POLICY.stands * best_quality
            if quality < best_quality:
                best, best_quality = replace(x), quality
            if stands or stalled > _POLICY.patience or self.mu > _DIVERGED * first or deadline.passed:
                break
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):  # beyond the floating-point range
                    self._eliminate_auxiliaries(x.multiplier / x.slack)
                    self._take_step()
            except (np.linalg.LinAlgError, ArithmeticError):
                break
        self.point = replace(best, iterations=x.iterations)
        if x.iterations:
            self._refine_multipliers(_POLICY.balanced)
        return self.point

    def settle(self, v: FloatArray) -> Point:
        """Return the point moved to closest movers v that are known exactly, with the multipliers that prove them.

        Rows that are slack there have no multiplier; the imbalance that remains goes to the others.
        """
        before, r, k = self.point, self.p.rows, self.p.first_pair
        slack = r.sign * v[r.mover] - r.side
        a = np.concatenate([np.maximum(-slack[self.one], -slack[self.two]), before.a[self.p.n_pairs :]])
        slack[k:] += r.lift[k:] * a[r.aux[k:]]
        tight = slack <= EXACT_RELATION * np.maximum(1.0, np.abs(r.side))
        self.point = replace(
            before, v=v, slack=np.maximum(slack, 0.0), multiplier=np.where(tight, before.multiplier, 0.0)
        )
        try:
            self._eliminate_auxiliaries(np.where(tight, _POLICY.active_weight, 1.0))
        except (np.linalg.LinAlgError, ArithmeticError):
            return replace(before, v=v)
        return self.point if self._refine_multipliers(_POLICY.stalled) else replace(before, v=v)

    def _refine_multipliers(self, limit: float) -> bool:
        """Balance the multipliers to the last digit; return False if the current factors are too inaccurate.

        The rounding error goes to rows with large weights theta, where a bound is active and absorbs it.
        On a cell that is free to move it would spoil the proof.
        """
        for _ in range(2):
            self._compute_residuals()
            try:
                step = self.newton.balanced(*self._solve(self.newton.balance(), restore=False))
            except (np.linalg.LinAlgError, ArithmeticError):
                return False
            if np.abs(step).max() > limit * self.point.multiplier.max():
                return False
            self.point.multiplier = np.maximum(self.point.multiplier + step, 0.0)
        return True

    def _compute_residuals(self) -> None:
        """Compute the residuals of the optimality conditions."""
        x = self.point
        x.gap, x.objective, x.violation = self.newton.stand(x.v, x.a, x.slack, x.multiplier)
        x.objective += self.p.constant
        self.mu = x.gap / len(x.slack)
        self.relative_gap = x.gap / max(abs(x.objective), 1e-300)

    def _take_step(self) -> None:
        """Predict with full steps, then correct towards the centre by the error of the prediction."""
        x, newton = self.point, self.newton
        newton.follow(*self._solve(newton.predict(), rough=True))
        newton.follow(*self._solve(newton.correct()))
        keep = 1.0 - min(0.005, max(1e-6, self.relative_gap))
        # with squares the two residuals are linked: both take one step
        x.v, x.a, x.slack, x.multiplier = newton.advance(keep, self.curved)
        x.iterations += 1
