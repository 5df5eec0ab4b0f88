"""The clock of time limits."""

from __future__ import annotations

from time import monotonic as now

__all__ = ["left", "now", "until"]


def left(deadline: float, *, least: float = 0.1) -> float:
    """Return the seconds that are left, or a few moments when none are: a solver must be told something."""
    return max(least, deadline - now())


def until(share: float, deadline: float) -> float:
    """Return when so much of the time that is left will be over."""
    start = now()
    return min(deadline, start + share * max(0.0, deadline - start))
