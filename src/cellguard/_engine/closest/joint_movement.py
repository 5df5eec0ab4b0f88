"""One movement for many requests at once: a first safe answer within seconds, for any table.

    min   sum weight |z|
    s.t.  A z = 0,  z >= need where something is needed,  -down <= z <= up

It costs more than one movement for each request, since cells that could protect one another separately must do so
together; but it is one program instead of hundreds. Two solvers find it. A **linear program** ends at a vertex: the
cheapest movement, in which few cells move. The **interior point** of adjustment takes a second where degenerate
programs would take minutes. It updates the costs a few times, so that a cell costs its weight regardless of how far
it moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Distance, Target
from cellguard._engine.solvers.lp import ONCE, solve_lp_for_least_movement
from cellguard._tolerances import NO_ROW
from cellguard._types import BoolArray, FloatArray

__all__ = ["JointRequest", "find_joint_movement", "find_joint_movement_by_interior_point", "find_joint_movement_by_lp"]

_SIMPLEX = 1000
"""Number of cells above which the solver's interior point is faster than simplex from scratch."""
_TIMES = 3
"""Number of cost updates."""
_SMALL = 0.05
"""Movements below this share of a typical need cost as much as one of this size."""
_SUPPORT = (1e-3, 1e-5, 1e-6)
"""Smallest movements that count, in typical needs, tried in turn: the fewer cells move the better."""
_FREE = 1e-6
"""Cost of moving a cell of weight 0, in typical costs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointRequest:
    """What one movement must achieve."""

    relations: csr_array
    weight: FloatArray
    """Cost of moving each cell."""
    need: FloatArray
    """How far each cell must go up; 0 where nothing is required."""
    down: FloatArray
    """How far each cell may go down ..."""
    up: FloatArray
    """... and up."""

    @property
    def lower(self) -> FloatArray:
        """The least movement of each cell."""
        return np.where(self.need > 0, self.need, -self.down)


Solver: TypeAlias = Callable[[JointRequest, Deadline], FloatArray | None]


def find_joint_movement(request: JointRequest, deadline: Deadline, *, solver: Solver) -> FloatArray | None:
    """Return a movement that meets the whole request; None if there is none, or none is found in time.

    >>> T, one, need = csr_array([[-1.0, 1, 1]]), np.ones(3), np.array([2.0, 0, 0])
    >>> request = JointRequest(relations=T, weight=one, need=need, down=one, up=np.array([3.0, 2, 0]))
    >>> find_joint_movement(request, Deadline.from_limit(9.0), solver=find_joint_movement_by_lp).tolist()
    [2.0, 2.0, 0.0]
    """
    if (request.need > request.up).any():
        return None
    return solver(request, deadline)


def find_joint_movement_by_lp(request: JointRequest, deadline: Deadline) -> FloatArray | None:
    """Solve once, ending at a vertex."""
    need, cost = request.need, request.weight / float(np.median(request.weight))
    way = replace(ONCE, solver="ipm" if len(need) > _SIMPLEX else "simplex")  # with crossover: few cells are moved
    _, z = solve_lp_for_least_movement(
        request.relations, request.lower, request.up, cost, way, deadline.get_seconds_at_least()
    )
    return None if z is None else np.where(np.abs(z) <= 1e-9 * float(need.max(initial=1.0)), 0.0, z)


def find_joint_movement_by_interior_point(request: JointRequest, deadline: Deadline) -> FloatArray | None:
    """Solve with updated costs, then exactly for the few cells that move."""
    weight, need, still = request.weight, request.need, (request.down <= 0) & (request.up <= 0)
    unit = float(np.median(need[need > 0]))
    lower, upper = request.lower / unit, request.up / unit

    def build_target(cost: FloatArray) -> Target:
        return Target(lower, upper, Distance.of(len(cost), absolute=cost))

    adjuster = Adjuster(request.relations, still)
    cost = _compute_unit_costs(weight, np.ones(len(weight)))
    size = np.zeros(len(weight))
    for _ in range(_TIMES):
        found = adjuster.solve(build_target(cost), tolerance=1e-3, deadline=deadline)
        if not found.feasible or deadline.passed:
            return None
        size = np.abs(found.z)
        cost = _compute_unit_costs(weight, np.maximum(size, _SMALL))
    for least in _SUPPORT:
        unused: BoolArray = (size < least) & (weight > 0)
        exact = Adjuster(request.relations, unused | still).solve(
            build_target(cost), tolerance=1e-9, vertex=False, deadline=deadline
        )
        if exact.certificate is not None and exact.certificate.violation < 1e-6:
            return np.where(unused | (np.abs(exact.z) < NO_ROW), 0.0, exact.z * unit)
    return None


def _compute_unit_costs(weight: FloatArray, size: FloatArray) -> FloatArray:
    """Return the costs per unit at which a movement of this size costs the weight of its cell."""
    cost = weight / size
    typical = float(np.median(cost[cost > 0])) if (cost > 0).any() else 1.0
    return np.maximum(cost / typical, _FREE)
