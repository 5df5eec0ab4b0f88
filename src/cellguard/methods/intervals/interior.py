"""Narrowest intervals that hide every request: a structured primal-dual interior point.

Interval protection (baena2018 (9)) chooses widths ``u, l >= 0`` of the published intervals around the
truth. Request k asks that some movement ``z_k`` of the table (``T z_k = 0``) fits between them,
``-l <= z_k <= u``, and moves one cell by its level, ``s_k z_k[c_k] >= level_k``. The whole problem has
one copy of the table per request, but the copies meet only in the widths: each Newton step
eliminates every copy by its own small factorisation and is left with one dense system in the widths.

With ``theta_p = lambda / p`` for the slack ``p = u - z`` (``theta_q`` for ``q = l + z``) and
``G_k = N (N' D_k N)^-1 N'``, ``D_k = theta_p + theta_q + theta_g e_c e_c'``, that system is

    S_uu = diag(sum theta_p) - sum theta_p G_k theta_p
    S_ul =                   + sum theta_p G_k theta_q
    S_ll = diag(sum theta_q) - sum theta_q G_k theta_q

plus diagonals for the limits of the widths. With symmetric levels ``u = l`` is optimal (average a
solution with its mirror image), and one width per cell is enough. ``G_k`` comes from the null space
``N`` or, when the relations ``A`` are few, from ``D^-1 - D^-1 A' (A D^-1 A')^-1 A D^-1``.

Bounds that hold whatever the solver did: scaling each ``z_k`` to its level gives widths that work;
moving the multipliers into the dual feasible set gives a lower bound (:meth:`NewtonState.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import csr_array

from cellguard._engine import clock
from cellguard._engine.clock import OutOfTimeError
from cellguard._types import FloatArray
from cellguard.methods.intervals.newton import NewtonState, WidthRequests

__all__ = ["WidthRequests", "Widths", "memory_bytes", "narrowest_widths", "step_operations"]


_MOST_ITERATIONS = 120
_ROUGH = 0.08
_SHORT = 1e-3
"""A step that is shorter gets nowhere ..."""
_STALLED = 5
"""... and so many of them end the search."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Widths:
    """Widths that work, and a bound that no others can beat."""

    upper: FloatArray
    """How far each interval reaches above the truth."""
    lower: FloatArray
    """How far each interval reaches below the truth."""
    objective: float
    bound: float
    iterations: int


def memory_bytes(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Return what the interior point holds at once, roughly.

    >>> memory_bytes(500, 500, 1000, 100, tied=True) < 1e9 < memory_bytes(5000, 5000, 9000, 3000, tied=True)
    True
    """
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return 8.0 * (20.0 * requests * variables + requests * smaller**2 + 3.0 * widths**2 + 2.0 * freedom * variables)


def step_operations(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Return the floating-point operations of one of its steps, roughly."""
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return requests * (smaller**3 + smaller * variables * (smaller + widths)) + widths**3 / 3.0


def narrowest_widths(
    relations: csr_array,
    basis: csr_array,
    weight: FloatArray,
    requests: WidthRequests,
    *,
    tied: bool,
    most_upper: FloatArray,
    most_lower: FloatArray,
    hard_upper: FloatArray | None = None,
    hard_lower: FloatArray | None = None,
    gap: float = 1e-3,
    time_limit_s: float = np.inf,
    progress: Callable[[float, float], None] | None = None,
    give_up: Callable[[FloatArray], bool] | None = None,
) -> Widths | None:
    """Minimise ``weight @ (u + l)``; None when no widths within their limits can hide the requests.

    Parameters
    ----------
    relations, basis
        Independent relations between the cells, and a basis of their null space.
    tied
        One width for both sides (symmetric levels, limits that do not bind).
    most_upper, most_lower
        Limits of the widths; infinite where there is none, 0 where a side must stay closed.
    hard_upper, hard_lower
        Limits of each request's own movement, requests by cells (what its attacker knew before).
    gap
        Relative distance between objective and bound at which to stop.
    give_up
        Asked with the upper widths as soon as they are roughly right; if it says so, None is returned.
    """
    deadline = clock.now() + time_limit_s
    with np.errstate(all="ignore"):  # what is not finite is no solution, and proves nothing
        try:
            state = NewtonState(
                relations, basis, weight, requests, tied, most_upper, most_lower, hard_upper, hard_lower
            )
        except (LinAlgError, ValueError):
            return None
        state.copies.deadline = deadline
        best, bound, iterations, given_up = _iterate(state, gap, deadline, progress, give_up)
    if given_up:
        return None
    if best is None:
        return None
    objective, upper, lower = best
    return Widths(
        upper=upper,
        lower=lower,
        objective=objective,
        bound=bound,
        iterations=iterations,
    )


def _iterate(
    state: NewtonState,
    gap: float,
    deadline: float,
    progress: Callable[[float, float], None] | None,
    give_up: Callable[[FloatArray], bool] | None,
) -> tuple[tuple[float, FloatArray, FloatArray] | None, float, int, bool]:
    """Step until the gap is small enough; return the best widths, the bound, the iterations, and whether to give up."""
    best: tuple[float, FloatArray, FloatArray] | None = None
    bound = 0.0
    iterations = stalled = 0
    while iterations < _MOST_ITERATIONS and stalled < _STALLED:
        iterations += 1
        widths = state.feasible_widths()
        if widths is not None and (best is None or widths[0] < best[0]):
            best = widths
        bound = max(bound, state.lower_bound())
        value = np.inf if best is None else best[0]
        if progress is not None:
            progress(value, bound)
        if give_up is not None and best is not None and value - bound <= _ROUGH * value:
            if give_up(best[1]):
                return best, bound, iterations, True
            give_up = None
        if (best is not None and value - bound <= gap * value) or clock.now() > deadline:
            break
        try:
            stalled = stalled + 1 if not state.step() >= _SHORT else 0
        except (LinAlgError, ValueError, OutOfTimeError):  # as good as floating point, or the clock, allows
            break
    return best, bound, iterations, False
