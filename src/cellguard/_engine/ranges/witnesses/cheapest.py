"""The cheapest movement of one variable: ``min sum c |z|`` with ``A z = 0``, bounds and ``z_p = level``.

Its support is small: a cheap set of partners for the cell to be protected, and a witness that conflicts with
few attackers. Everything is divided by the level, so that tolerances mean the same for small and large cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array, sparray

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard._engine.space.groups import find_groups
from cellguard._tolerances import NO_MOVEMENT
from cellguard._types import FloatArray

__all__ = [
    "AskedMovement",
    "compute_witness_costs",
    "find_cheapest_witness",
    "limit_program_seconds",
    "remove_movement_noise",
    "split_movement",
    "split_witness_program",
]

_STEEP = 100.0
"""Largest factor on the cost per unit of a partner with little slack: it protects little."""
_LIMIT_S = 60.0
"""Seconds after which a program counts as unsolvable: a solver can hang."""


def compute_witness_costs(weight: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
    """Return costs per unit of movement, with slack measured in levels and weights in units of a typical one."""
    steep = np.clip(1.0 / np.maximum(np.minimum(below, above), 1e-300), 1.0, _STEEP)
    return (weight + 1e-4 / max(len(weight), 1) ** 0.5) * steep


@dataclass(frozen=True, eq=False)
class AskedMovement:
    """One variable, its signed movement, and the bounds and costs of all."""

    row: int
    move: float
    weight: FloatArray
    """Cost of each variable in units of a typical one; 0 for those already open."""
    low: FloatArray
    """Bounds of the movements."""
    high: FloatArray


def find_cheapest_witness(
    A: sparray,
    asked: AskedMovement,
    *,
    exact: bool = False,
    program: LinearProgram | None = None,
    deadline: Deadline = NEVER,
) -> FloatArray | None:
    """Return the cheapest z with ``A z = 0`` and ``z[row] = move``, or None when there is none.

    Parameters
    ----------
    A
        The relations.
    asked
        Which variable moves, how far, and the costs.
    exact
        Keep even movements as small as rounding: cells with little slack among large ones.
    program
        The :func:`split_witness_program` of A, if available: building it can take longer than solving it.
    deadline
        When to give up.
    """
    row, move, low, high = asked.row, asked.move, asked.low, asked.high
    k, level = len(asked.weight), abs(move)
    scale = 4.0 ** np.ceil(np.log(level) / np.log(4.0))  # levels of similar size share it: few bounds change
    at, other = (row, k + row) if move > 0 else (k + row, row)
    lower, upper = np.zeros(2 * k), np.concatenate([high, -low]) / scale
    if upper[at] < level / scale * (1.0 - 1e-7):
        return None
    lower[at] = upper[at] = level / scale
    upper[other] = 0.0
    cost = compute_witness_costs(asked.weight, -low / level, high / level)
    both = np.concatenate([cost, cost])
    both[at] = 0.0
    v = _solve_split_program(split_witness_program(A) if program is None else program, both, lower, upper, deadline)
    return None if v is None else remove_movement_noise(v, scale, exact=exact)


def _solve_split_program(
    program: LinearProgram, cost: FloatArray, lower: FloatArray, upper: FloatArray, deadline: Deadline
) -> FloatArray | None:
    """Solve the split program; return movements up minus movements down, or None."""
    program.set_all(cost, lower, upper)
    program.discard_basis()  # warm starts were slower
    s = program.solve(time_limit_s=limit_program_seconds(deadline), duals=False)
    k = len(cost) // 2
    return np.asarray(s.x[:k] - s.x[k:]) if s.optimal else None


def limit_program_seconds(deadline: Deadline) -> float:
    """Return the seconds that one program may take."""
    return max(0.01, min(_LIMIT_S, deadline.left))


def split_movement(A: csr_array, z: FloatArray) -> list[FloatArray]:
    """Return the parts of a movement that have no relation in common."""
    used = np.flatnonzero(z)
    block = csr_array(A[:, used]).tocoo()
    relation, place = block.coords
    part = find_groups(place, len(used) + relation, len(used) + A.shape[0])[: len(used)]
    out = []
    for p in np.unique(part):
        alone = np.zeros(len(z))
        mine = used[part == p]
        alone[mine] = z[mine]
        out.append(alone)
    return out


def split_witness_program(A: sparray) -> LinearProgram:
    """Return a program for movements up minus movements down, both at least 0; bounds and costs are set later."""
    nothing, A = np.zeros(2 * A.shape[1]), csc_array(A)
    start = np.concatenate([A.indptr, A.indptr[-1] + A.indptr[1:]])
    both = csc_array(
        (np.concatenate([A.data, -A.data]), np.tile(A.indices, 2), start), shape=(A.shape[0], 2 * A.shape[1])
    )
    program = LinearProgram(LinearModel(both, 0.0, 0.0, nothing, nothing), Way(simplex="dual", tolerance=1e-7))
    program.set_options(dual_simplex_cost_perturbation_multiplier=0.0)  # a few dozen pivots: perturbing takes longer
    return program


def remove_movement_noise(v: FloatArray, scale: float, *, exact: bool) -> FloatArray:
    """Return the movement in the table's unit, without rounding noise."""
    v[np.abs(v) < (1e-13 if exact else NO_MOVEMENT)] = 0.0
    return v * scale
