"""The clock of time limits."""

from __future__ import annotations

from time import monotonic as now

__all__ = ["now", "until"]


def until(share: float, deadline: float) -> float:
    """Return when so much of the time that is left will be over."""
    start = now()
    return min(deadline, start + share * max(0.0, deadline - start))
