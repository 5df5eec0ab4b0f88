"""The limits common to all methods: time, gap, seed, threads, and the progress callback.

Reaching a limit is a status, never an error. Time limits are kept to within 5% and 2 seconds, including the audit of
the returned release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cellguard._engine.clock import Deadline, now
from cellguard.exceptions import InputError

__all__ = ["DEFAULT_TIME_LIMIT_S", "LONGEST_LIMIT_S", "MOST_THREADS", "Limits", "Progress", "validate_time_limit"]

DEFAULT_TIME_LIMIT_S = 60.0
"""Default for every method: after this many seconds the best safe result is returned, with its gap."""
LONGEST_LIMIT_S = 31 * 86_400.0
"""The longest time limit of a job or a command: a month. An infinite limit is a mistake in a file."""
MOST_THREADS = 1024
"""More threads than a machine for such work has cores."""
_AFTER = 0.1
"""Share of the time limit left for the final audit after an overrun search. A late release is better than none."""
_GRACE_S = 1.0
"""Seconds by which the final audit may exceed the limit in any case."""
_GRACE_SHARE = 0.04
"""Share of the limit by which it may exceed the limit in addition."""

Progress: TypeAlias = Callable[[float, float], None]
"""Callback that receives the objective and its proven bound."""


def validate_time_limit(seconds: float) -> float:
    """Return the seconds a method may take, at least 0; an infinite limit becomes the largest that a clock can hold."""
    if not seconds >= 0:
        raise InputError(f"time_limit_s {seconds!r}: a number of seconds of at least 0 is needed.")
    return min(float(seconds), 1e9)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a call may take, and when the result is good enough.

    >>> Limits(time_limit_s=0).deadline.passed
    True
    """

    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    """Seconds after which the best result so far is returned."""
    gap: float = 0.0
    """Relative distance to the proven bound that is good enough."""
    seed: int = 0
    """Seed of every random choice."""
    threads: int = 1
    """Processor cores."""
    progress: Progress | None = None
    """Callback that receives progress updates."""
    begin: float = field(default_factory=now)
    """When the call started, on the engine's clock."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_limit_s", validate_time_limit(self.time_limit_s))
        if not self.gap >= 0:
            raise InputError(f"gap {self.gap!r}: a number of at least 0 is needed.")
        if not 1 <= self.threads <= MOST_THREADS:
            raise InputError(
                f"threads {self.threads!r}: a whole number from 1 to {MOST_THREADS:,} is needed.",
                hint="more threads than the machine has cores do not help.",
            )

    @property
    def deadline(self) -> Deadline:
        """When the search must end."""
        return Deadline(self.begin + self.time_limit_s)

    @property
    def last_word(self) -> Deadline:
        """When the audit of the returned release must end."""
        planned = self.deadline.move_later(self.grace_s)
        return Deadline(max(planned.at, now() + _AFTER * self.time_limit_s))

    @property
    def grace_s(self) -> float:
        """How much longer than the limit the final audit may take."""
        return _GRACE_S + _GRACE_SHARE * self.time_limit_s

    @property
    def spent_s(self) -> float:
        """Seconds since the call started."""
        return now() - self.begin

    def take_share(self, share: float) -> Limits:
        """Return the same limits with a share of the total time."""
        return replace(self, time_limit_s=share * self.time_limit_s)

    def start_again(self, time_limit_s: float) -> Limits:
        """Return the same limits with another time limit, which starts now."""
        return replace(self, time_limit_s=time_limit_s, begin=now())

    def tell(self, objective: float, bound: float) -> None:
        """Report progress to the callback, if there is one."""
        if self.progress is not None:
            self.progress(objective, bound)
