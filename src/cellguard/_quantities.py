"""Shares, percentages, ratios and counts: numbers that look alike and mean different things.

A level of 20 where a share is expected would silently be 2,000%, and 0.2 where a percentage is expected a fifth of one
per cent. Every function here refuses a number of the wrong kind and says how to write it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from cellguard.exceptions import InputError, LevelError

__all__ = [
    "MAX_RATIO",
    "Count",
    "Percent",
    "Ratio",
    "Share",
    "check_count",
    "check_percent",
    "check_ratio",
    "check_share",
    "suggest_share",
]  # fmt: skip

Share: TypeAlias = float
"""A part of a whole: 0 to 1."""
Percent: TypeAlias = float
"""A part of a whole in per cent: 0, or at least 1."""
Ratio: TypeAlias = float
"""One quantity divided by another, for example a level by what others contributed: 0 to :data:`MAX_RATIO`."""
Count: TypeAlias = int
"""A whole number of at least 1."""

MAX_RATIO = 10.0
"""A larger ratio of levels or contributions is a percentage in the wrong place."""


def check_share(name: str, value: float) -> None:
    """Refuse a number that is not a share.

    >>> check_share("upper level", 20)
    Traceback (most recent call last):
    ...
    cellguard.exceptions.LevelError: upper level: 20 is not a share between 0 and 1. Hint: write 0.2 for 20%.
    """
    if not 0 <= value <= 1:  # also refuses NaN
        raise LevelError(f"{name}: {value!r} is not a share between 0 and 1.", hint=suggest_share(value))


def suggest_share(value: float) -> str | None:
    """Return how to write a percentage as a share; None if the number is not a percentage either."""
    return f"write {value / 100:g} for {value:g}%." if 1 < value <= 100 else None


def check_percent(name: str, value: float, *, most: float = math.inf, positive: bool = True) -> None:
    """Refuse a number that is not a percentage, and a share in its place."""
    if not (math.isfinite(value) and (value > 0 if positive else value >= 0) and value <= most):
        allowed = ("above 0" if positive else "at least 0") + (f" and at most {most:g}" if math.isfinite(most) else "")
        raise LevelError(f"{name}: {value!r} is not a percentage {allowed}.")
    if 0 < value < 1:
        hint = f"write {100 * value:g} for {100 * value:g}%."
        raise LevelError(f"{name}: {value!r} is a share, not a percentage.", hint=hint)


def check_ratio(name: str, value: float) -> None:
    """Refuse a number that is not the ratio of two quantities of similar size."""
    if not (math.isfinite(value) and value >= 0):
        raise LevelError(f"{name}: {value!r} is not a finite number of at least 0.")
    if value > MAX_RATIO:
        raise LevelError(f"{name}: {value!r} is not a ratio of at most {MAX_RATIO:g}.", hint=suggest_share(value))


def check_count(name: str, value: float) -> None:
    """Refuse a number that is not a whole number of at least 1."""
    if value != int(value) or value < 1:
        raise InputError(f"{name}: {value!r} is not a whole number of at least 1.")
