"""One movement for many requests at once: a first safe pattern within seconds, whatever the table.

``min sum c |z|`` with ``A z = 0``, ``|z| <= room`` and ``z_p >= level`` for all cells p that are asked for.
It is dearer than one movement for each, since cells that could hide one another apart must do so
together; but the interior point of adjustment solves it in a second where hundreds of degenerate
programs would take minutes. The costs are chosen again a few times so that a cell costs what it weighs
however far it moves.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Distance, Target
from cellguard._tolerances import NO_ROW
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.space import PatternSpace

__all__ = ["jointly"]

_TIMES = 3
"""How often costs are chosen."""
_SMALL = 0.05
"""Movements below this share of a typical level cost as if they were as large."""
_SUPPORT = (1e-3, 1e-5, 1e-6)
"""Movements that count, in typical levels: the fewer cells the better, if they suffice."""
_FREE = 1e-6
"""Cost of what is open anyway, in typical ones."""


def jointly(
    space: PatternSpace, requests: IntArray, weight: FloatArray, deadline: Deadline = NEVER
) -> FloatArray | None:
    """Return one movement that meets all requests of an attacker, there and back; None if none is found.

    Parameters
    ----------
    space
        The rows that can move.
    requests
        Numbers of the requests, all of the same attacker.
    weight
        Cost of each row; 0 for those that are open already.
    deadline
        When to give up.
    """
    attackers, rows, *levels = space.requests
    row, (down, up, slide) = rows[requests], (level[requests] for level in levels)
    low, high = space.bounds_of(int(attackers[requests[0]]))
    room = np.minimum(-low, high)
    need = np.zeros(len(space))
    np.maximum.at(need, row, np.maximum(np.maximum(down, up), slide / 2.0))
    unit = float(np.median(need[row]))
    lower, upper = np.where(need > 0, need, -room) / unit, room / unit
    if (lower > upper).any():
        return None

    def target(cost: FloatArray) -> Target:
        return Target(lower, upper, Distance.of(len(cost), absolute=cost))

    relations = csr_array(space.variables.relations)
    adjuster = Adjuster(relations, room <= 0)
    cost = _costs(weight, np.ones(len(weight)))
    size = np.zeros(len(weight))
    for _ in range(_TIMES):
        found = adjuster.solve(target(cost), tolerance=1e-3, deadline=deadline)
        if not found.feasible or deadline.passed:
            return None
        size = np.abs(found.z)
        cost = _costs(weight, np.maximum(size, _SMALL))
    for least in _SUPPORT:
        unused: BoolArray = (size < least) & (weight > 0)
        exact = Adjuster(relations, unused | (room <= 0)).solve(
            target(cost), tolerance=1e-9, vertex=False, deadline=deadline
        )
        if exact.certificate is not None and exact.certificate.violation < 1e-6:
            return np.where(unused | (np.abs(exact.z) < NO_ROW), 0.0, exact.z * unit)
    return None


def _costs(weight: FloatArray, size: FloatArray) -> FloatArray:
    """Costs per unit of movement at which a movement of this size costs what its cell weighs."""
    cost = weight / size
    typical = float(np.median(cost[cost > 0])) if (cost > 0).any() else 1.0
    return np.maximum(cost / typical, _FREE)
