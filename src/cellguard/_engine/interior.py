"""One primal-dual interior point for the closest safe table, in every norm.

The problem, between movers v (cells that move together are one mover)::

    min   sum c v + 1/2 q v^2 + cost a        v moves, a are auxiliaries
    s.t.  A v = 0                             the relations
          sign v[mover] + lift a[aux] >= side   one row per inequality

Inequalities have one mover and at most one auxiliary each, which is all that bounds, absolute
values (``t -/+ v >= 0``, castro2004 (4)), largest deviations (``tau h -/+ v >= 0``, castro2004
(6)) and soft bounds (``v + e >= l, e >= 0``) need. So a Newton step needs one symmetric system,
``min 1/2 dv' Theta dv - g dv, A dv = 0`` with a diagonal Theta: :mod:`cellguard._engine.projection`
solves it in the null space or by the normal equations, whichever is smaller. The method is
Mehrotra's predictor-corrector (S. J. Wright, Primal-Dual Interior-Point Methods, SIAM 1997,
chapter 10). Movers start at 0 and never leave ``A v = 0``; only the inequalities start violated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Inequalities", "Point", "Program", "Projection", "minimize"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Projection(Protocol):
    """Solves ``min 1/2 x' diag(theta) x - g x`` subject to ``A x = 0``."""

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta > 0."""

    def solve(self, g: FloatArray) -> FloatArray:
        """Return the minimiser for one g."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inequalities:
    """Rows ``sign v[mover] + lift a[aux] >= side``; `lift` 0 where there is no auxiliary."""

    mover: IntArray
    sign: FloatArray
    aux: IntArray
    lift: FloatArray
    side: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A separable convex program between movers.

    Auxiliaries ``a[:n_pairs]`` stand in exactly two rows and with one mover (pairs k and
    k + n_pairs of the rows from `first_pair` on); the last ones may stand with any number.
    """

    linear: FloatArray
    quadratic: FloatArray
    rows: Inequalities
    aux_cost: FloatArray
    n_pairs: int = 0
    first_pair: int = 0


@dataclass(kw_only=True, eq=False)
class Point:
    """Where the iteration stands: movers, auxiliaries, slacks and their multipliers."""

    v: FloatArray
    a: FloatArray
    slack: FloatArray
    multiplier: FloatArray
    iterations: int = 0
    converged: bool = False
    history: list[tuple[float, float, float]] = field(default_factory=list)


def minimize(
    program: Program, projection: Projection, *, scale: float = 1.0, tolerance: float = 1e-12, max_iterations: int = 100
) -> Point:
    """Minimise the program.

    Parameters
    ----------
    program, projection
        The problem, and the solver of its Newton systems.
    scale
        A typical movement: sets the first slacks.
    tolerance
        Of the complementarity gap, relative to the objective.
    max_iterations
        A limit; the point it ends at is returned.
    """
    return _Iteration(program, projection, scale).run(tolerance, max_iterations)


class _Iteration:
    """The state of one run and its Newton system, condensed to the movers."""

    def __init__(self, program: Program, projection: Projection, scale: float) -> None:
        self.p, self.projection = program, projection
        self.n, self.n_aux = len(program.linear), len(program.aux_cost)
        r = program.rows
        k, P = program.first_pair, program.n_pairs
        self.one, self.two, self.rest = slice(k, k + P), slice(k + P, k + 2 * P), slice(k + 2 * P, None)
        self.pair_mover = r.mover[self.one]
        self.n_shared = self.n_aux - P
        self.point = self._start(scale)

    # ------------------------------------------------------------------ the rows as an operator

    def _rows(self, v: FloatArray, a: FloatArray) -> FloatArray:
        """``G x`` of the inequalities."""
        r = self.p.rows
        out = r.sign * v[r.mover]
        if self.n_aux:
            k = self.p.first_pair
            out[k:] += r.lift[k:] * a[r.aux[k:]]
        return out

    def _movers(self, w: FloatArray) -> FloatArray:
        """``G' w``, the part on the movers."""
        r = self.p.rows
        return np.bincount(r.mover, r.sign * w, self.n)

    def _aux(self, w: FloatArray) -> FloatArray:
        """``G' w``, the part on the auxiliaries."""
        r, k = self.p.rows, self.p.first_pair
        return np.bincount(r.aux[k:], r.lift[k:] * w[k:], self.n_aux)

    # ------------------------------------------------------------------ Newton

    def _condense(self, theta: FloatArray) -> None:
        """Eliminate the auxiliaries from ``Q + G' diag(theta) G`` and factor what is left."""
        r, P = self.p.rows, self.p.n_pairs
        one, two, rest = self.one, self.two, self.rest
        weight = r.sign**2 * theta
        weight[one] = weight[two] = 0.0
        diagonal = self.p.quadratic + np.bincount(r.mover, weight, self.n)
        if P:  # theta1 theta2 / (theta1 + theta2), without cancellation
            s1, k1, t1, s2, k2, t2 = r.sign[one], r.lift[one], theta[one], r.sign[two], r.lift[two], theta[two]
            self.pair_F = k1**2 * t1 + k2**2 * t2
            self.pair_E = s1 * k1 * t1 + s2 * k2 * t2
            diagonal += np.bincount(self.pair_mover, t1 * t2 * (s1 * k2 - s2 * k1) ** 2 / self.pair_F, self.n)
        self.projection.factor(np.maximum(diagonal, 1e-300))
        if self.n_shared:
            which = r.aux[rest] - P
            coupling = r.sign[rest] * r.lift[rest] * theta[rest]
            self.border = np.stack(
                [np.bincount(r.mover[rest], np.where(which == g, coupling, 0.0), self.n) for g in range(self.n_shared)]
            )
            F = np.bincount(which, r.lift[rest] ** 2 * theta[rest], self.n_shared)
            self.behind = np.stack([self.projection.solve(e) for e in self.border])
            self.schur = np.diag(F) - self.border @ self.behind.T

    def _solve(self, g: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve the condensed system for right-hand sides of movers and auxiliaries."""
        P = self.p.n_pairs
        if P:
            g = g - np.bincount(self.pair_mover, self.pair_E * h[:P] / self.pair_F, self.n)
        dv = self.projection.solve(g)
        da = np.zeros(self.n_aux)
        if self.n_shared:
            shared = np.linalg.solve(self.schur, h[P:] - self.border @ dv)
            dv = dv - shared @ self.behind
            da[P:] = shared
        if P:
            da[:P] = (h[:P] - self.pair_E * dv[self.pair_mover]) / self.pair_F
        return dv, da

    # ------------------------------------------------------------------ the method

    def _start(self, scale: float) -> Point:
        """Movers at 0, slacks where the rows are or at least a typical movement away."""
        p, r = self.p, self.p.rows
        v, a = np.zeros(self.n), np.zeros(self.n_aux)
        slack = np.maximum(np.abs(self._rows(v, a) - r.side), scale)
        force = float(np.median(np.abs(p.linear[p.linear != 0]))) if (p.linear != 0).any() else 0.0
        force = max(force, float(np.median(p.quadratic)) * scale, float(np.median(p.aux_cost)) if self.n_aux else 0.0)
        return Point(v=v, a=a, slack=slack, multiplier=np.full(len(slack), force))

    def run(self, tolerance: float, max_iterations: int) -> Point:
        p, r, x = self.p, self.p.rows, self.point
        rows = len(x.slack)
        for _ in range(max_iterations):
            s, y = x.slack, x.multiplier
            primal = self._rows(x.v, x.a) - s - r.side
            force = p.quadratic * x.v + p.linear - self._movers(y)
            aux_force = p.aux_cost - self._aux(y) if self.n_aux else np.zeros(0)
            mu = float(s @ y) / rows
            objective = float(p.linear @ x.v + 0.5 * (p.quadratic * x.v) @ x.v + p.aux_cost @ x.a)
            violation = float(np.abs(primal / np.maximum(1.0, np.abs(r.side))).max())
            x.history.append((objective, mu * rows, violation))
            if mu * rows <= tolerance * abs(objective) and violation < 1e-9:
                x.converged = True
                break
            theta = y / s
            self._condense(theta)

            def direction(target: FloatArray) -> tuple[FloatArray, ...]:
                b = (target - y * primal) / s
                h = self._aux(b) - aux_force if self.n_aux else np.zeros(0)
                dv, da = self._solve(self._movers(b) - force, h)
                ds = self._rows(dv, da) + primal
                return dv, da, ds, (target - y * ds) / s

            *_, ds, dy = direction(-s * y)  # noqa: B023
            up, down = _step(s, ds), _step(y, dy)
            after = float((s + up * ds) @ (y + down * dy)) / rows
            sigma = (after / mu) ** 3
            dv, da, ds, dy = direction(sigma * mu - s * y - ds * dy)
            up, down = _step(s, ds), _step(y, dy)
            if p.quadratic.any():
                up = down = min(up, down)
            keep = max(0.9, 1.0 - mu) if False else 0.995
            up, down = min(1.0, keep * up), min(1.0, keep * down)
            x.v, x.a, x.slack, x.multiplier = x.v + up * dv, x.a + up * da, s + up * ds, y + down * dy
            x.iterations += 1
        return x


def _step(x: FloatArray, dx: FloatArray) -> float:
    """Longest step up to 1/0.995 that keeps x + step dx positive."""
    worst = float((dx / x).min(initial=0.0))
    return 1.0 / 0.995 if worst >= -0.995 else -1.0 / worst
