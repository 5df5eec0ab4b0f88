"""The closest table within bounds: reduce once, solve many times, certify every answer.

``min distance(z)`` subject to ``T z = 0`` and ``lower <= z <= upper`` (castro2004 (3) with the
senses fixed). The reduction, the linear algebra and the symbolic work depend only on the relations and
the fixed cells, so an :class:`Adjuster` is built once per table and used for every norm, sense,
weight and attack (castro2012 solves 2050 such problems on 25 structures).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.closest_problem import ClosestProblem, Movers
from cellguard._engine.closest.distance import Certificate, Target, certify_closest, is_proven_infeasible
from cellguard._engine.closest.interior import InteriorPoint, Point, Projection
from cellguard._engine.closest.newton_systems import IterativeNormal, choose_newton_system
from cellguard._engine.closest.simplex import solve_closest_by_simplex
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.space.reduce import reduce
from cellguard._engine.threads import limit_blas_threads
from cellguard._tolerances import EXACT_RELATION, PROVEN_GAP
from cellguard._types import BoolArray, FloatArray

__all__ = ["Adjuster", "Closest"]

_OUTSIDE = 1e-3
"""A movement that misses a relation or bound by more than this share is rejected."""
_CLOSER = 0.99
"""An unproven movement is replaced by another with less than this share of its distance."""
_LARGE = 100_000
"""Number of movers from which factorizations may take minutes where conjugate gradients take seconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Closest:
    """The closest movement within the bounds, and its proof."""

    z: FloatArray
    """Movement of each cell; NaN when there is none."""
    certificate: Certificate | None
    """What the multipliers prove, independently of the solver; None when there is no movement."""
    relations: FloatArray
    """Multiplier of each relation."""
    lower: FloatArray
    """Multiplier of each cell's lower bound, at least 0."""
    upper: FloatArray
    """Multiplier of each cell's upper bound, at least 0."""
    feasible: bool
    """False when no movement satisfies the bounds."""
    iterations: int
    """Iterations of the interior point."""

    @property
    def proven(self) -> bool:
        """Whether the movement satisfies relations and bounds, and nothing is closer, up to rounding."""
        proof = self.certificate
        return proof is not None and proof.gap <= PROVEN_GAP and max(proof.residual, proof.violation) <= EXACT_RELATION

    @property
    def outside(self) -> bool:
        """Whether the movement misses relations or bounds by more than rounding: the interior point failed."""
        proof = self.certificate
        return proof is not None and not max(proof.residual, proof.violation) <= _OUTSIDE

    @property
    def objective(self) -> float:
        """Distance of the movement; NaN when there is none."""
        return self.certificate.objective if self.certificate else float("nan")

    @property
    def bound(self) -> float:
        """Proven lower bound on the cost of every movement; NaN when there is none."""
        return self.certificate.bound if self.certificate else float("nan")


class Adjuster:
    """Finds closest tables for one set of relations and fixed cells.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> adjuster = Adjuster(T)
    >>> from cellguard._engine.closest.distance import Distance
    >>> distance = Distance.of(3, square=np.array([1 / 20, 1 / 12, 1 / 8]))
    >>> found = adjuster.solve(Target(np.array([4.0, -12, -8]), np.full(3, np.inf), distance))
    >>> found.z.round(6).tolist()
    [4.0, 2.4, 1.6]
    """

    def __init__(self, relations: csr_array, fixed: BoolArray | None = None) -> None:
        self.relations = relations
        self.n = relations.shape[1]
        self.fixed = np.zeros(self.n, bool) if fixed is None else np.asarray(fixed, bool)
        self.reduction = reduce(relations, ~self.fixed)
        self.movers = Movers(self.reduction)

    # ------------------------------------------------------------------ linear algebra, computed once

    @cached_property
    def projection(self) -> Projection:
        """The solver of the Newton systems that is cheapest for this structure."""
        return choose_newton_system(self.movers.relations, lambda: self.reduction.space.basis)

    @cached_property
    def iterative(self) -> Projection:
        """The solver for large tables with square distances."""
        return IterativeNormal(self.movers.relations)

    def _get_projection(self, problem: ClosestProblem) -> Projection:
        large = self.movers.n > _LARGE and self.movers.relations.shape[0] > _LARGE // 20
        return self.iterative if large and problem.curved else self.projection

    @cached_property
    def _independent(self) -> csr_array:
        """Independent relations, as many as the rank, in the order of elimination."""
        return self.relations[self.reduction.order[0]]

    @cached_property
    def _factors(self) -> Any:
        """LU factors of the independent relations on the cells that they determine: nearly triangular in this order."""
        from scipy.sparse.linalg import splu

        M = self._independent[:, self.reduction.order[1]].tocsc()
        return splu(M, permc_spec="NATURAL", relax=1, panel_size=1)

    def complete(self, z: FloatArray) -> FloatArray:
        """Return the movement with the parameters of z that satisfies every relation."""
        out = np.zeros(self.n)
        p, basic = self.reduction.parameters, self.reduction.order[1]
        out[p] = z[p]
        if len(basic):
            out[basic] = self._factors.solve(-(self._independent @ out))
        out[self.reduction.determined] = 0.0
        return out

    def find_multipliers(self, force: FloatArray) -> FloatArray:
        """Return y with ``T'y = force``, for a force that is orthogonal to every movement."""
        y = np.zeros(self.relations.shape[0])
        rows, basic = self.reduction.order
        if len(basic):
            y[rows] = self._factors.solve(force[basic], trans="T")
        return y

    # ------------------------------------------------------------------ one solve

    def solve(
        self,
        target: Target,
        *,
        tolerance: float | None = None,
        vertex: bool = True,
        deadline: Deadline = NEVER,
        solver: str = "interior",
    ) -> Closest:
        """Find the closest movement within the bounds.

        Parameters
        ----------
        target
            Bounds and distance. Fixed cells do not move, regardless of their bounds.
        tolerance
            Of the interior point, relative to the objective; 1e-12, or 1e-9 before the search for a vertex.
        vertex
            Whether to end at a vertex of the closest movements when only absolute movements count:
            as many cells as possible keep their values exactly.
        deadline
            When to stop and return the best movement so far.
        solver
            ``"simplex"`` solves the linear programs of castro2004 (4) and (6) instead, if the distance has no squares.
        """
        lower, upper = np.where(self.fixed, 0.0, target.lower), np.where(self.fixed, 0.0, target.upper)
        soft = None if target.soft is None else np.where(self.fixed, np.inf, target.soft)
        target = Target(lower, upper, target.distance, soft)
        stuck = self.reduction.determined
        impossible = (lower[stuck] > 0).any() or (upper[stuck] < 0).any() or (lower > upper).any()
        if impossible and soft is None:
            return self._build_empty_point()
        if (lower <= 0).all() and (upper >= 0).all():
            return self._certify_point(np.zeros(self.n), target, 0)
        if solver == "simplex":
            return self._solve_by_simplex(target, deadline)
        problem = ClosestProblem(self.movers, target)
        if (problem.lower > problem.upper).any():
            return self._build_empty_point()
        to_vertex = vertex and problem.flat
        projection = self._get_projection(problem)
        with limit_blas_threads(projection.threads):
            run = InteriorPoint(problem.build_program(), projection)
            point = run.run(
                tolerance=tolerance or (1e-9 if to_vertex else 1e-12),
                deadline=deadline,
                impossible=partial(self._is_proven_infeasible, problem, target) if soft is None else None,
            )
            if point.impossible:
                return self._build_empty_point()
            v = problem.find_vertex(point, deadline) if to_vertex else None
            if v is not None:
                point = replace(point, v=v) if point.converged else run.settle(v)
        z = self.movers.expand_to_cells(point.v) * problem.unit
        found = self._certify_point(self.complete(z), target, point.iterations, problem.compute_forces(point, z))
        if found.proven or soft is not None:
            return found
        status, v = problem.solve_by_simplex(deadline)
        if status is SolveStatus.INFEASIBLE:
            return self._build_empty_point()
        if v is None:
            return found
        # a movement within the bounds without a proof; the interior point may have gone far beyond it
        other = self._certify_point(
            self.complete(self.movers.expand_to_cells(v) * problem.unit), target, point.iterations
        )
        further = not found.objective <= other.objective / _CLOSER
        return other if found.outside or (further and not other.outside) else found

    def _solve_by_simplex(self, target: Target, deadline: Deadline) -> Closest:
        """Find a closest vertex by the simplex method, and certify it like any other movement."""
        found = solve_closest_by_simplex(self.relations, target, deadline)
        if found.status is not SolveStatus.OPTIMAL:
            return self._build_empty_point()
        return Closest(
            z=found.z,
            certificate=certify_closest(self.relations, found.z, found.relations, target, found.share),
            relations=found.relations,
            lower=found.lower,
            upper=found.upper,
            feasible=True,
            iterations=0,
        )

    def _is_proven_infeasible(self, problem: ClosestProblem, target: Target, point: Point) -> bool:
        """Whether the multipliers of a point prove that no movement satisfies the bounds."""
        y = self.find_multipliers(problem.compute_forces(point, np.zeros(self.n))[0])
        return is_proven_infeasible(self.relations, y, target.lower, target.upper)

    def _certify_point(
        self, z: FloatArray, target: Target, iterations: int, forces: tuple[FloatArray, ...] | None = None
    ) -> Closest:
        force, bounds, share = forces or (np.zeros(self.n), np.zeros((2, self.n)), None)
        y = self.find_multipliers(force) if force.any() else np.zeros(self.relations.shape[0])
        return Closest(
            z=z,
            certificate=certify_closest(self.relations, z, y, target, share),
            relations=y,
            lower=bounds[0],
            upper=bounds[1],
            feasible=True,
            iterations=iterations,
        )

    def _build_empty_point(self) -> Closest:
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
