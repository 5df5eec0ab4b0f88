"""What every verb is limited by, once: time, gap, seed, threads, and who is told of progress.

A reached limit is a status, never an error, and limits are kept: by at most 5% and 2 seconds, the audit of
what is returned included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cellguard._engine.clock import Deadline, now
from cellguard.exceptions import InputError

__all__ = ["DEFAULT_TIME_LIMIT_S", "Limits", "Progress", "time_limit_of_method"]

DEFAULT_TIME_LIMIT_S = 60.0
"""Of every verb: after this the best safe result is returned, with its gap."""
_AFTER = 0.1
"""Of a limit that a search has overrun so much is left for that audit: no release is worse than a late one."""
_GRACE_S, _GRACE = 1.0, 0.04
"""The audit of what is returned may take so much longer than the limit: seconds, and a share of the limit."""

Progress: TypeAlias = Callable[[float, float], None]
"""Is told the objective and what is proven of it."""


def time_limit_of_method(seconds: float) -> float:
    """Return the seconds a verb may take, at least 0; without an end they are as long as a clock can tell."""
    if not seconds >= 0:
        raise InputError(f"time_limit_s {seconds!r}: a number of seconds of at least 0 is needed.")
    return min(float(seconds), 1e9)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a call of a verb may take, and how good is good enough.

    >>> Limits(time_limit_s=0).deadline.passed
    True
    """

    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    """Seconds after which the best so far is returned."""
    gap: float = 0.0
    """Relative distance to the proven bound that is good enough."""
    seed: int = 0
    """Of every random choice."""
    threads: int = 1
    """Processor cores."""
    progress: Progress | None = None
    """Is told whenever something better is found or proven."""
    begin: float = field(default_factory=now)
    """When the verb was called, on the engine's clock."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_limit_s", time_limit_of_method(self.time_limit_s))
        if not self.gap >= 0:
            raise InputError(f"gap {self.gap!r}: a number of at least 0 is needed.")

    @property
    def deadline(self) -> Deadline:
        """When the search must end."""
        return Deadline(self.begin + self.time_limit_s)

    @property
    def last_word(self) -> Deadline:
        """When the audit of what is returned must end."""
        planned = self.deadline.later(_GRACE_S + _GRACE * self.time_limit_s)
        return Deadline(max(planned.at, now() + _AFTER * self.time_limit_s))

    @property
    def spent_s(self) -> float:
        """Seconds since the verb was called."""
        return now() - self.begin

    def part(self, share: float) -> Limits:
        """Return the same limits with a share of the whole time."""
        return replace(self, time_limit_s=share * self.time_limit_s)

    def tell(self, objective: float, bound: float) -> None:
        """Report progress to whoever wants to know."""
        if self.progress is not None:
            self.progress(objective, bound)
