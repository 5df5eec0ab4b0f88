"""The clock of time limits, and the one noun for when they end.

Nothing else in the engine and the methods looks at the time: what takes long is handed a :class:`Deadline`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from time import monotonic as now

__all__ = ["MOMENT_S", "NEVER", "Deadline", "OutOfTimeError", "now"]

MOMENT_S = 0.05
"""What is quick is done even when no time is left: a solver must be told some seconds."""


class OutOfTimeError(Exception):
    """The deadline came within a step; what was begun is given up."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a time limit ends.

    >>> NEVER.passed, Deadline.after(0.0).passed
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

    @property
    def left(self) -> float:
        """Seconds that are left; 0 when it has passed."""
        return max(0.0, self.at - now())

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return now() >= self.at

    def at_least(self, seconds: float = MOMENT_S) -> float:
        """Seconds that are left, or these few when none are."""
        return max(seconds, self.at - now())

    def part(self, share: float) -> Deadline:
        """Return when so much of the time that is left will be over."""
        begin = now()
        return Deadline(min(self.at, begin + share * max(0.0, self.at - begin))) if self.at < float("inf") else self

    def earlier(self, seconds: float) -> Deadline:
        """Return the end of the same limit, or of another one that begins now, whichever is sooner."""
        return Deadline(min(self.at, now() + seconds))

    def later(self, seconds: float) -> Deadline:
        """Return so many seconds after the end."""
        return Deadline(self.at + seconds)

    def __reduce__(self) -> tuple[object, tuple[float]]:
        # clocks that start with the machine differ between machines: on its way a deadline is told by the calendar's
        return _deadline_from_wall_clock, (self.at - now() + time.time(),)


def _deadline_from_wall_clock(wall: float) -> Deadline:
    return Deadline(wall - time.time() + now())


NEVER = Deadline(float("inf"))
"""The end of no limit at all."""
