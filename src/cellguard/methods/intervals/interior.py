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

from cellguard._engine.clock import OutOfTimeError
from cellguard._engine.standing import Standing
from cellguard._types import FloatArray
from cellguard.methods.intervals.newton import NewtonState, WidthProgram
from cellguard.methods.limits import Limits

__all__ = ["FoundWidths", "bytes_of_width_program", "narrowest_widths", "operations_of_width_step"]

_MOST_ITERATIONS = 120
_ROUGH = 0.08
_SHORT = 1e-3
"""A step that is shorter gets nowhere ..."""
_STALLED = 5
"""... and so many of them end the search."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundWidths:
    """Widths that work, of variables or of all cells, and a bound that no others can beat."""

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
    """Whether the widths are a vertex: none is tiny for want of a better place."""


def bytes_of_width_program(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Return what the interior point holds at once, roughly.

    >>> small, large = (500, 500, 1000, 100), (5000, 5000, 9000, 3000)
    >>> bytes_of_width_program(*small, tied=True) < 1e9 < bytes_of_width_program(*large, tied=True)
    True
    """
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return 8.0 * (20.0 * requests * variables + requests * smaller**2 + 3.0 * widths**2 + 2.0 * freedom * variables)


def operations_of_width_step(rank: int, freedom: int, variables: int, requests: int, *, tied: bool) -> float:
    """Return the floating-point operations of one of its steps, roughly."""
    smaller, widths = min(rank, freedom), variables if tied else 2 * variables
    return requests * (smaller**3 + smaller * variables * (smaller + widths)) + widths**3 / 3.0


def narrowest_widths(
    program: WidthProgram, limits: Limits, give_up: Callable[[FloatArray], bool] | None
) -> FoundWidths | None:
    """Minimise ``weight @ (u + l)``; None when no widths within their limits can hide the requests.

    Whoever may give up is asked with the upper widths as soon as they are roughly right: if so, None is returned.
    """
    with np.errstate(all="ignore"):  # what is not finite is no solution, and proves nothing
        try:
            state = NewtonState(program)
        except (LinAlgError, ValueError):
            return None
        state.copies.deadline = limits.deadline
        return _iterate_widths(state, limits, give_up)


def _iterate_widths(
    state: NewtonState, limits: Limits, give_up: Callable[[FloatArray], bool] | None
) -> FoundWidths | None:
    """Step until the gap is small enough; None if there is nothing, or it is given up."""
    found = Standing[tuple[FloatArray, FloatArray]](bound=0.0, gap=limits.gap)
    iterations = stalled = 0
    while iterations < _MOST_ITERATIONS and stalled < _STALLED:
        iterations += 1
        widths = state.feasible_widths()
        if widths is not None:
            found.take(widths[1:], widths[0])
        found.prove(state.lower_bound())
        limits.tell(found.cost, found.bound)
        if give_up is not None and found.best is not None and found.missing <= _ROUGH * found.cost:
            if give_up(found.best[0]):
                return None
            give_up = None
        if found.closed() or limits.deadline.passed:
            break
        try:
            stalled = stalled + 1 if not state.step() >= _SHORT else 0
        except (LinAlgError, ValueError, OutOfTimeError):  # as good as floating point, or the clock, allows
            break
    if found.best is None:
        return None
    upper, lower = found.best
    return FoundWidths(
        lower=lower, upper=upper, bound=found.bound, iterations=iterations, requests=len(state.rows), tied=state.tied
    )  # fmt: skip
