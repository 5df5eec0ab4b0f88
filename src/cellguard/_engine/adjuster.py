"""The closest table within bounds: reduce once, solve many times, certify every answer.

``min distance(z)`` subject to ``T z = 0`` and ``lower <= z <= upper`` (castro2004 (3) with the
senses fixed). The reduction, the linear algebra and the symbolic work belong to the relations and
the fixed cells only, so an :class:`Adjuster` is made once per table and used for every norm, sense,
weight and attack (castro2012 solves 2050 such problems on 25 structures).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.distance import Certificate, Distance, certify
from cellguard._engine.interior import Inequalities, Point, Program, Projection, minimize
from cellguard._engine.lp import LinearProgram, SolveStatus
from cellguard._engine.projection import cheapest
from cellguard._engine.reduce import reduce

__all__ = ["Adjuster", "Closest", "adjuster_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_GAP = 1e-7
"""A smaller proven gap is called optimal: what rounding leaves of zero."""
_VIOLATION = 1e-9
"""As much of a bound or relation may rounding miss."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Closest:
    """The closest movement within the bounds, and its proof."""

    z: FloatArray
    """Movement of each cell; NaN when there is none."""
    certificate: Certificate | None
    """What was proven, independently of the solver; None when there is no movement."""
    relations: FloatArray
    """Multiplier of each relation."""
    lower: FloatArray
    """Multiplier of each cell's lower bound, at least 0."""
    upper: FloatArray
    """Multiplier of each cell's upper bound, at least 0."""
    feasible: bool
    """False when no movement satisfies the bounds."""
    iterations: int
    """Steps of the interior point."""

    @property
    def proven(self) -> bool:
        """Whether the movement satisfies relations and bounds, and nothing is closer, up to rounding."""
        proof = self.certificate
        return proof is not None and proof.gap <= _GAP and max(proof.residual, proof.violation) <= _VIOLATION

    @property
    def objective(self) -> float:
        """Distance of the movement; NaN when there is none."""
        return self.certificate.objective if self.certificate else float("nan")

    @property
    def bound(self) -> float:
        """What every movement costs at least; NaN when there is none."""
        return self.certificate.bound if self.certificate else float("nan")


class Adjuster:
    """Finds closest tables for one set of relations and fixed cells.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> adjuster = Adjuster(T)
    >>> found = adjuster.solve(
    ...     np.array([4.0, -12, -8]), np.full(3, np.inf), Distance.of(3, square=np.array([1 / 20, 1 / 12, 1 / 8]))
    ... )
    >>> found.z.round(6).tolist()
    [4.0, 2.4, 1.6]
    """

    def __init__(self, relations: csr_array, fixed: BoolArray | None = None) -> None:
        self.relations = relations
        self.n = relations.shape[1]
        self.fixed = np.zeros(self.n, bool) if fixed is None else np.asarray(fixed, bool)
        self.reduction = reduce(relations, ~self.fixed)
        self.merged = self.reduction.merged
        self.cell = np.flatnonzero(self.reduction.alias >= 0)
        self.mover = self.merged.lift.indices.astype(np.int64)
        self.ratio = self.merged.lift.data
        self.n_movers = len(self.merged.cells)

    # ------------------------------------------------------------------ linear algebra, made once

    @cached_property
    def projection(self) -> Projection:
        """The solver of the Newton systems that is cheapest for this structure."""
        return cheapest(self.merged.relations, lambda: self.reduction.basis[self.merged.cells])

    @cached_property
    def _basic(self) -> IntArray:
        """Cells that the relations determine once the parameters are chosen."""
        basic = ~self.fixed
        basic[self.reduction.parameters] = False
        return np.flatnonzero(basic)

    @cached_property
    def _factors(self) -> Any:
        """LU factors of the independent relations on the basic cells: nearly triangular."""
        from scipy.sparse.linalg import splu

        return splu(self.relations[self.reduction.rows][:, self._basic].tocsc())

    def complete(self, z: FloatArray) -> FloatArray:
        """Return the movement with the parameters of z that satisfies every relation."""
        out = np.zeros(self.n)
        p = self.reduction.parameters
        out[p] = z[p]
        if len(self._basic):
            out[self._basic] = self._factors.solve(-(self.relations[self.reduction.rows] @ out))
        out[self.reduction.determined] = 0.0
        return out

    def multipliers(self, force: FloatArray) -> FloatArray:
        """Return y with ``T'y = force``, for a force that no movement feels."""
        y = np.zeros(self.relations.shape[0])
        if len(self._basic):
            y[self.reduction.rows] = self._factors.solve(force[self._basic], trans="T")
        return y

    # ------------------------------------------------------------------ one solve

    def solve(
        self,
        lower: FloatArray,
        upper: FloatArray,
        distance: Distance,
        *,
        tolerance: float | None = None,
        vertex: bool = True,
    ) -> Closest:
        """Find the closest movement within the bounds.

        Parameters
        ----------
        lower, upper
            Bounds of each cell's movement, possibly infinite. Fixed cells do not move whatever
            their bounds.
        distance
            What is minimised.
        tolerance
            Of the interior point, relative to the objective; 1e-12, or 1e-9 before a vertex is looked for.
        vertex
            Whether to end at a vertex of the closest movements when only absolute movements count:
            as many cells as possible keep their values exactly.
        """
        lower, upper = np.where(self.fixed, 0.0, lower), np.where(self.fixed, 0.0, upper)
        stuck = self.reduction.determined
        if (lower[stuck] > 0).any() or (upper[stuck] < 0).any() or (lower > upper).any():
            return self._nothing()
        if (lower <= 0).all() and (upper >= 0).all():
            still = np.zeros(self.n)
            return self._finish(still, still, np.zeros((2, self.n)), lower, upper, distance, None, 0)
        problem = _Problem(self, lower, upper, distance)
        tolerance = tolerance or (1e-9 if problem.flat and vertex else 1e-12)
        if (problem.lower > problem.upper).any():
            return self._nothing()
        point = minimize(problem.program(), self.projection, tolerance=tolerance)
        if problem.flat and vertex:
            problem.to_vertex(point)
        z, force, bounds, share = problem.cells(point)
        found = self._finish(self.complete(z), force, bounds, lower, upper, distance, share, point.iterations)
        if found.proven or self._feasible(problem):
            return found
        return self._nothing()

    def _feasible(self, problem: _Problem) -> bool:
        """Whether any movement satisfies the bounds, decided by the simplex method."""
        lp = LinearProgram(self.merged.relations, 0.0, 0.0, problem.lower, problem.upper, simplex="dual", presolve=True)
        return lp.solve().status is not SolveStatus.INFEASIBLE

    def _finish(
        self,
        z: FloatArray,
        force: FloatArray,
        bounds: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        distance: Distance,
        share: FloatArray | None,
        iterations: int,
    ) -> Closest:
        y = self.multipliers(force) if force.any() else np.zeros(self.relations.shape[0])
        proof = certify(self.relations, z, y, lower, upper, distance, share)
        return Closest(
            z=z, certificate=proof, relations=y, lower=bounds[0], upper=bounds[1], feasible=True, iterations=iterations
        )

    def _nothing(self) -> Closest:
        nothing = np.full(self.n, np.nan)
        return Closest(
            z=nothing,
            certificate=None,
            relations=np.zeros(self.relations.shape[0]),
            lower=nothing,
            upper=nothing,
            feasible=False,
            iterations=0,
        )


_RECENT: list[tuple[Any, bytes, Adjuster]] = []
"""The last adjusters: tables that differ in values, levels or weights share one."""


def adjuster_of(relations: csr_array, fixed: BoolArray) -> Adjuster:
    """Return the adjuster of a structure, from the last few when it is among them."""
    mask = np.packbits(fixed).tobytes()
    for structure, where, adjuster in _RECENT:
        if structure is relations and where == mask:
            return adjuster
    adjuster = Adjuster(relations, fixed)
    _RECENT.insert(0, (relations, mask, adjuster))
    del _RECENT[4:]
    return adjuster


class _Problem:
    """One problem between movers: cells that move together share bounds and add their weights."""

    def __init__(self, adjuster: Adjuster, lower: FloatArray, upper: FloatArray, distance: Distance) -> None:
        self.k, self.d = adjuster, distance
        cell, mover, ratio, N = adjuster.cell, adjuster.mover, adjuster.ratio, adjuster.n_movers
        size = np.abs(ratio)
        low, high = lower[cell], upper[cell]
        # a typical movement is the unit: values may be 1e11, levels 1e5 (toysarah)
        needs = np.maximum(low, -high)
        self.unit = float(np.median(needs[needs > 0])) if (needs > 0).any() else 1.0
        start = np.where(ratio > 0, low, high) / ratio / self.unit
        stop = np.where(ratio > 0, high, low) / ratio / self.unit
        self.lower, self.lower_cell = _tightest(N, cell, mover, start, np.maximum)
        self.upper, self.upper_cell = _tightest(N, cell, mover, stop, np.minimum)
        self.absolute = np.asarray(np.bincount(mover, distance.absolute[cell] * size, N) * self.unit, np.float64)
        self.square = np.asarray(np.bincount(mover, distance.square[cell] * size**2, N) * self.unit**2, np.float64)
        self.caps = []
        for g in (0, 1):
            weight = np.where(distance.group[cell] == g, distance.largest[cell] * size, 0.0) * self.unit
            most, owner = _tightest(N, cell, mover, weight, np.maximum)
            self.caps.append((most, owner))

    @property
    def flat(self) -> bool:
        """Whether only absolute movements count, so that vertices are among the closest."""
        return bool(self.absolute.any()) and not self.square.any() and not any(most.any() for most, _ in self.caps)

    def to_vertex(self, point: Point) -> None:
        """Move the point to a vertex of the closest movements, if one is found at once.

        At the end of an interior point it is plain which rows are active: their multipliers are
        larger than their slacks. With the movers of active rows held there a small linear program is
        left, nearly always with one solution.
        """
        active = point.multiplier > point.slack
        n_low, P, first = len(self.low), len(self.split), len(self.low) + len(self.high)
        lower, upper = self.lower.copy(), self.upper.copy()
        not_negative, not_positive = active[first : first + P], active[first + P : first + 2 * P]
        lower[self.split[not_negative]] = 0.0
        upper[self.split[not_positive]] = 0.0
        at_low, at_high = self.low[active[:n_low]], self.high[active[n_low:first]]
        upper[at_low] = lower[at_low] = self.lower[at_low]
        lower[at_high] = upper[at_high] = self.upper[at_high]
        held = lower >= upper
        v = np.where(held, lower, 0.0)
        A = self.k.merged.relations
        side = -(A @ v)
        cost = np.where(point.v > 0, 1.0, -1.0) * self.absolute
        lp = LinearProgram(A[:, ~held], side, side, lower[~held], upper[~held], cost[~held], presolve=True)
        found = lp.solve()
        if not found.optimal:
            return
        v[~held] = found.x
        if self.absolute @ np.abs(v) <= (1.0 + _GAP / 10) * (self.absolute @ np.abs(point.v)):
            point.v = v

    def program(self) -> Program:
        """The rows of the interior point: bounds, then absolute values, then largest movements."""
        rises, falls = self.lower >= 0, self.upper <= 0
        linear = np.where(rises, self.absolute, np.where(falls, -self.absolute, 0.0))
        self.split = np.flatnonzero((self.absolute > 0) & ~rises & ~falls)
        self.low, self.high = np.flatnonzero(np.isfinite(self.lower)), np.flatnonzero(np.isfinite(self.upper))
        P, k = len(self.split), len(self.low) + len(self.high)
        one = np.ones
        mover = [self.low, self.high, self.split, self.split]
        sign = [one(len(self.low)), -one(len(self.high)), -one(P), one(P)]
        aux: list[Any] = [np.zeros(k, np.int64), np.arange(P), np.arange(P)]
        lift, side = [np.zeros(k), one(2 * P)], [self.lower[self.low], -self.upper[self.high], np.zeros(2 * P)]
        cost = [self.absolute[self.split]]
        self.cap_rows: list[tuple[IntArray, IntArray, float]] = []
        for most, owner in self.caps:
            capped = np.flatnonzero(most > 0)
            if not len(capped):
                continue
            for rows, direction in ((capped[self.upper[capped] > 0], -1.0), (capped[self.lower[capped] < 0], 1.0)):
                mover.append(rows)
                sign.append(np.full(len(rows), direction))
                aux.append(np.full(len(rows), P + len(cost) - 1))
                lift.append(1.0 / most[rows])
                side.append(np.zeros(len(rows)))
                self.cap_rows.append((rows, owner[rows], direction))
            cost.append(np.ones(1))
        inequalities = Inequalities(
            mover=np.concatenate(mover),
            sign=np.concatenate(sign),
            aux=np.concatenate(aux),
            lift=np.concatenate(lift),
            side=np.concatenate(side),
        )
        return Program(
            linear=linear,
            quadratic=2.0 * self.square,
            rows=inequalities,
            aux_cost=np.concatenate(cost),
            n_pairs=P,
            first_pair=k,
        )

    def cells(self, point: Point) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return movement, force, multipliers of the bounds, and shares of the maxima, cell by cell.

        The force of a cell is its marginal cost less what its own bounds bear; together the forces
        are multipliers times relations, which no movement feels.
        """
        k, d, unit = self.k, self.d, self.unit
        cell, mover, ratio, n = k.cell, k.mover, k.ratio, k.n
        y = point.multiplier
        z = np.zeros(n)
        z[cell] = ratio * point.v[mover] * unit
        lean = np.where(self.lower >= 0, 1.0, np.where(self.upper <= 0, -1.0, 0.0))  # slope of |v|
        P, first = len(self.split), len(self.low) + len(self.high)
        if P:
            lean[self.split] = (y[first : first + P] - y[first + P : first + 2 * P]) / self.absolute[self.split]
        force = 2.0 * d.square * z
        force[cell] += d.absolute[cell] * np.sign(ratio) * np.clip(lean[mover], -1.0, 1.0)
        ratio_of = np.zeros(n)
        ratio_of[cell] = ratio
        bounds = np.zeros((2, n))
        for rows, owner, weight, which in (
            (self.low, self.lower_cell, y[: len(self.low)], 0),
            (self.high, self.upper_cell, y[len(self.low) : first], 1),
        ):
            i = owner[rows]
            side = np.where(ratio_of[i] > 0, which, 1 - which)
            np.add.at(bounds, (side, i), weight / np.abs(ratio_of[i]) / unit)
        force += bounds[1] - bounds[0]
        share = np.zeros(n)
        at = first + 2 * P
        for rows, owner, direction in self.cap_rows:
            weight = y[at : at + len(rows)]
            at += len(rows)
            i = owner
            np.add.at(share, i, weight / (d.largest[i] * np.abs(ratio_of[i]) * unit))
            np.add.at(force, i, -direction * weight / ratio_of[i] / unit)
        return z, force, bounds, share


def _tightest(
    n: int, cell: IntArray, mover: IntArray, value: FloatArray, choose: np.ufunc
) -> tuple[FloatArray, IntArray]:
    """Return the largest (or smallest) value of each mover, and the cell that has it."""
    best = np.full(n, -np.inf if choose is np.maximum else np.inf)
    choose.at(best, mover, value)
    owner = np.zeros(n, np.int64)
    holds = value == best[mover]
    owner[mover[holds]] = cell[holds]
    return best, owner
