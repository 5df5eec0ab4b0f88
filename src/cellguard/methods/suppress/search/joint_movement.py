"""The requests of one attacker as one joint movement of the rows of a pattern."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.joint_movement import (
    JointRequest,
    find_joint_movement,
    find_joint_movement_by_interior_point,
)
from cellguard._types import FloatArray, IntArray
from cellguard.methods.suppress.search.space import PatternSpace

__all__ = ["find_pattern_movement"]


def find_pattern_movement(
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
    low, high = space.get_bounds(int(attackers[requests[0]]))
    slack = np.minimum(-low, high)
    need = np.zeros(len(space))
    np.maximum.at(need, row, np.maximum(np.maximum(down, up), slide / 2.0))
    relations = csr_array(space.variables.relations)
    request = JointRequest(relations=relations, weight=weight, need=need, down=slack, up=slack)
    return find_joint_movement(request, deadline, solver=find_joint_movement_by_interior_point)
