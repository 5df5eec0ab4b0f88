"""The clock of time limits, and the :class:`Deadline` at which they end.

No other module of the engine and the methods reads the time: functions that may take long receive a deadline.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from time import monotonic as now

__all__ = ["MOMENT_S", "NEVER", "Deadline", "OutOfTimeError", "now"]

MOMENT_S = 0.05
"""Seconds that a solver gets even when no time is left, so that quick work is still done."""


class OutOfTimeError(Exception):
    """The deadline passed within a step; the work begun is abandoned."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a time limit ends.

    >>> NEVER.passed, Deadline.from_limit(0.0).passed
    (False, True)
    >>> Deadline.from_limit(0.0).left
    0.0
    """

    at: float
    """In seconds of this module's clock."""

    @classmethod
    def from_limit(cls, seconds: float) -> Deadline:
        """Return the deadline of a limit that begins now."""
        return cls(now() + seconds)

    @property
    def left(self) -> float:
        """Seconds left; 0 after the deadline."""
        return max(0.0, self.at - now())

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return now() >= self.at

    def get_seconds_at_least(self, seconds: float = MOMENT_S) -> float:
        """Return the seconds left, but at least `seconds`."""
        return max(seconds, self.at - now())

    def take_share(self, share: float) -> Deadline:
        """Return the deadline after this share of the time left."""
        begin = now()
        return Deadline(min(self.at, begin + share * max(0.0, self.at - begin))) if self.at < float("inf") else self

    def choose_earlier(self, seconds: float) -> Deadline:
        """Return this deadline, or the end of another limit that begins now, whichever is earlier."""
        return Deadline(min(self.at, now() + seconds))

    def choose_later(self, seconds: float) -> Deadline:
        """Return this deadline, or the end of another limit that begins now, whichever is later."""
        return Deadline(max(self.at, now() + seconds))

    def move_later(self, seconds: float) -> Deadline:
        """Return the deadline moved by this many seconds."""
        return Deadline(self.at + seconds)

    def __reduce__(self) -> tuple[object, tuple[float]]:
        # monotonic clocks differ between machines: pickle the deadline by the wall clock
        return _convert_from_wall_clock, (self.at - now() + time.time(),)


def _convert_from_wall_clock(wall: float) -> Deadline:
    return Deadline(wall - time.time() + now())


NEVER = Deadline(float("inf"))
"""A deadline that never passes."""
