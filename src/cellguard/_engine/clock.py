"""The clock of time limits, and the one noun for when they end."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic as now

__all__ = ["Deadline", "OutOfTimeError", "left", "now", "until"]


class OutOfTimeError(Exception):
    """The deadline came within a step; what was begun is given up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a time limit ends.

    >>> Deadline.never().passed, Deadline.after(0.0).passed
    (False, True)
    >>> Deadline.after(0.0).left
    0.0
    """

    at: float
    """On this module's clock."""

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the end of a limit that begins now."""
        return cls(now() + seconds)

    @classmethod
    def never(cls) -> Deadline:
        """Return the end of no limit at all."""
        return cls(float("inf"))

    @property
    def left(self) -> float:
        """Seconds that are left; 0 when it has passed."""
        return max(0.0, self.at - now())

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return now() >= self.at

    def part(self, share: float) -> Deadline:
        """Return when so much of the time that is left will be over."""
        return Deadline(until(share, self.at))

    def earlier(self, seconds: float) -> Deadline:
        """Return the end of the same limit, or of another one that begins now, whichever is sooner."""
        return Deadline(min(self.at, now() + seconds))


def left(deadline: float, *, least: float = 0.1) -> float:
    """Return the seconds that are left, or a few moments when none are: a solver must be told something."""
    return max(least, deadline - now())


def until(share: float, deadline: float) -> float:
    """Return when so much of the time that is left will be over."""
    start = now()
    return min(deadline, start + share * max(0.0, deadline - start)) if deadline < float("inf") else deadline
