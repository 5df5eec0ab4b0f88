"""The closest table by the simplex method: castro2004 (4) for L1 and (6) for L-infinity, as printed there.

The interior point is the default: it solves the reduced problem, for every distance. The simplex method is the other
solver of castro2004 table 3. It ends at a vertex of the linear program in ``z+`` and ``z-``, but takes longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.distance import Target
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, SolveStatus, Way
from cellguard._types import FloatArray

__all__ = ["VertexFound", "solve_closest_by_simplex"]

_WAY = Way(simplex="dual", presolve=True)


class VertexFound(NamedTuple):
    """A vertex, and the multipliers that prove that it is closest."""

    status: SolveStatus
    z: FloatArray
    relations: FloatArray
    """Multiplier of each relation."""
    lower: FloatArray
    """Multiplier of each cell's lower bound, at least 0."""
    upper: FloatArray
    """Multiplier of each cell's upper bound, at least 0."""
    share: FloatArray | None
    """Each cell's share of its group's largest movement; None if the distance has no maximum."""


def solve_closest_by_simplex(relations: csr_array, target: Target, deadline: Deadline = NEVER) -> VertexFound:
    """Solve the linear program of a distance without squares.

    >>> from cellguard._engine.closest.distance import Distance
    >>> target = Target(np.array([4.0, -12, -8]), np.full(3, np.inf), Distance.of(3, absolute=np.array([1, 1, 2.0])))
    >>> found = solve_closest_by_simplex(csr_array(np.array([[-1.0, 1, 1]])), target)
    >>> found.z.tolist(), found.lower.tolist()
    ([4.0, 4.0, 0.0], [2.0, 0.0, 0.0])
    """
    d, (m, n) = target.distance, relations.shape
    low, high = target.lower, target.upper
    groups = [g for g in (0, 1) if d.largest[d.group == g].any()] if d.largest.any() else []
    caps = np.flatnonzero(d.largest > 0) if groups else np.zeros(0, np.int64)
    k = len(caps)
    rows: list[list[csr_array | None]] = [[relations, -relations, None]]
    sides = np.zeros(m), np.zeros(m)
    if k:
        size = csr_array(diags_array(d.largest))[caps]
        tau = csr_array((-np.ones(k), (np.arange(k), np.searchsorted(groups, d.group[caps]))), shape=(k, len(groups)))
        rows.append([size, size, tau])
        sides = np.concatenate([sides[0], np.full(k, -np.inf)]), np.concatenate([sides[1], np.zeros(k)])
    else:
        rows[0].pop()
    bounds = (
        np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0), np.zeros(len(groups))]),
        np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0), np.full(len(groups), np.inf)]),
    )
    cost = np.concatenate([d.absolute, d.absolute, np.ones(len(groups))])
    model = LinearModel(csr_array(block_array(rows)), *sides, *bounds, cost)
    found = LinearProgram(model, _WAY).solve(time_limit_s=deadline.get_seconds_at_least())
    if not found.optimal:
        nothing = np.full(n, np.nan)
        return VertexFound(found.status, nothing, np.zeros(m), nothing, nothing, None)
    up, down = found.reduced_cost[:n], found.reduced_cost[n : 2 * n]
    share = None
    if k:
        share = np.zeros(n)
        share[caps] = -found.row_dual[m:]
    return VertexFound(
        status=found.status,
        z=found.x[:n] - found.x[n : 2 * n],
        relations=found.row_dual[:m],
        lower=np.where(low > 0, np.maximum(up, 0.0), np.where(low < 0, np.maximum(-down, 0.0), 0.0)),
        upper=np.where(high < 0, np.maximum(down, 0.0), np.where(high > 0, np.maximum(-up, 0.0), 0.0)),
        share=share,
    )
