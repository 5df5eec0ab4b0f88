"""The clock of time limits: it stands still while loops are compiled.

A first run on a machine compiles for up to a minute. That is no time in which a method could look for a result, so it
does not count: the same limit gives the same kind of answer on a new machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["compiled", "left", "now", "resume", "stop", "stopped", "until"]


@dataclass
class _Stops:
    """Time to leave out: of stops that ended, and since when the clock stands still."""

    lost_s: float = 0.0
    depth: int = 0
    since: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


_stops = _Stops()


def now() -> float:
    """Seconds on the clock of time limits; only differences mean something."""
    return (_stops.since if _stops.depth else time.monotonic()) - _stops.lost_s


def left(deadline: float, *, least: float = 0.1) -> float:
    """Return the seconds that are left, or a few moments when none are: a solver must be told something."""
    return max(least, deadline - now())


def until(share: float, deadline: float) -> float:
    """Return when so much of the time that is left will be over."""
    start = now()
    return min(deadline, start + share * max(0.0, deadline - start))


def stop() -> None:
    """Let the clock stand still; stops may be nested."""
    with _stops.lock:
        if _stops.depth == 0:
            _stops.since = time.monotonic()
        _stops.depth += 1


def resume() -> None:
    """Let the clock go on, when the outermost stop ends."""
    with _stops.lock:
        _stops.depth -= 1
        if _stops.depth == 0:
            _stops.lost_s += time.monotonic() - _stops.since


@contextmanager
def stopped() -> Iterator[None]:
    """A stretch of time that does not count."""
    stop()
    try:
        yield
    finally:
        resume()


def compiled() -> bool:
    """Whether the loops were compiled before: a first run takes a minute or two longer."""
    return any((Path(__file__).parent / "kernels" / "__pycache__").glob("*.nbi"))
