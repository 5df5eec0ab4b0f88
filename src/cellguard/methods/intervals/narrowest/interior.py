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

Two bounds hold regardless of the solver. Scaling each ``z_k`` to its level gives widths that work;
moving the multipliers into the dual feasible set gives a lower bound (:meth:`NewtonState.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from cellguard._engine.clock import OutOfTimeError
from cellguard._engine.standing import Standing
from cellguard._types import FloatArray
from cellguard.methods.intervals.narrowest.newton import NewtonState, WidthProgram
from cellguard.methods.limits import Limits

__all__ = ["FoundWidths", "estimate_bytes", "estimate_operations", "minimize_widths"]

_MOST_ITERATIONS = 120
_ROUGH = 0.08
_SHORT = 1e-3
"""A step shorter than this makes no progress ..."""
_STALLED = 5
"""... and this many of them end the search."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundWidths:
    """Widths that work, of variables or of all cells, and a proven lower bound on their cost."""

    lower: FloatArray
    """How far each interval reaches below the truth."""
    upper: FloatArray
    """How far each interval reaches above the truth."""
    bound: float
    iterations: int
    requests: int
    tied: bool = False
    """Whether one width served both sides."""
    vertex: bool = False
    """Whether the widths are a vertex: no width is tiny merely because the solver stopped in the interior."""


def estimate_bytes(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Estimate the memory of the interior point in bytes.

    >>> small, large = (500, 500, 1000, 100), (5000, 5000, 9000, 3000)
    >>> estimate_bytes(*small, tied=True) < 1e9 < estimate_bytes(*large, tied=True)
    True
    """
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return 8.0 * (20.0 * requests * variables + requests * smaller**2 + 3.0 * widths**2 + 2.0 * freedom * variables)


def estimate_operations(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Estimate the floating-point operations of one of its steps."""
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return requests * (smaller**3 + smaller * variables * (smaller + widths)) + widths**3 / 3.0


def minimize_widths(
    program: WidthProgram, limits: Limits, give_up: Callable[[FloatArray], bool] | None
) -> FoundWidths | None:
    """Minimise ``weight @ (u + l)``; None when no widths within their limits can hide the requests.

    The callback `give_up` receives the upper widths once they are roughly right; if it returns true, return None.
    """
    with np.errstate(all="ignore"):  # a result that is not finite is no solution and proves nothing
        try:
            state = NewtonState(program)
        except (LinAlgError, ValueError):
            return None
        state.copies.deadline = limits.deadline
        return _iterate_widths(state, limits, give_up)


def _iterate_widths(
    state: NewtonState, limits: Limits, give_up: Callable[[FloatArray], bool] | None
) -> FoundWidths | None:
    """Step until the gap is small enough; None if there is no solution, or the search gives up."""
    found = Standing[tuple[FloatArray, FloatArray]](bound=0.0, gap=limits.gap)
    iterations = stalled = 0
    while iterations < _MOST_ITERATIONS and stalled < _STALLED:
        iterations += 1
        widths = state.compute_feasible_widths()
        if widths is not None:
            found.take(widths[1:], widths[0])
        found.prove(state.lower_bound())
        limits.tell(found.cost, found.bound)
        if give_up is not None and found.best is not None and found.missing <= _ROUGH * found.cost:
            if give_up(found.best[0]):
                return None
            give_up = None
        if found.is_closed() or limits.deadline.passed:
            break
        try:
            stalled = stalled + 1 if not state.take_step() >= _SHORT else 0
        except (LinAlgError, ValueError, OutOfTimeError):  # the limit of floating point, or of the time, is reached
            break
    if found.best is None:
        return None
    upper, lower = found.best
    return FoundWidths(
        lower=lower, upper=upper, bound=found.bound, iterations=iterations, requests=len(state.rows), tied=state.tied
    )  # fmt: skip
