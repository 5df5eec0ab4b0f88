"""Format numbers for readers: with the decimals of the data, without floating-point noise or a negative zero."""

from __future__ import annotations

from math import floor, isfinite, isnan, log10
from typing import Any

import numpy as np

from cellguard._tolerances import NO_DISTANCE
from cellguard._types import FloatArray

__all__ = ["NO_BOUND", "choose_decimals", "format_figure", "format_percentage", "format_short_figure"]


NO_BOUND = "no bound computed"
"""Text for the gap if no bound on the best release was computed."""
_MOST = 4
"""Maximum number of decimals; data with more are measurements and are shown with two."""


def choose_decimals(values: FloatArray) -> int:
    """Return the number of decimals to show for a table: those of the data, or two if they have many.

    >>> [choose_decimals(np.array(values)) for values in ([3.0, 12.0], [0.1 + 0.2], [36667964.344156764])]
    [0, 1, 2]
    >>> choose_decimals(np.array([0.00123456789, 0.0021]))
    5
    """
    from cellguard._engine.numbers.multiples import count_decimals

    known = values[np.isfinite(values)]
    kept = count_decimals(known, noise=True)
    if kept is not None and kept <= _MOST:
        return kept
    size = np.abs(known[known != 0])
    middle = float(np.median(size)) if len(size) else 1.0
    return int(min(9, max(2, 2 - floor(log10(max(middle, 1e-12))))))


def format_figure(value: float, digits: int | None = None) -> str:
    """Format a number for readers; with two decimals if it is not whole, unless `digits` are given.

    >>> [format_figure(value) for value in (1234567.0, 12.345, float("nan"), -0.0001)]
    ['1,234,567', '12.35', 'x', '0.00']
    >>> format_figure(7.0, 1)
    '7.0'
    """
    if isnan(value):
        return "x"
    if digits is None:
        digits = 0 if float(value).is_integer() else 2
    return _remove_sign_of_zero(f"{value:,.{digits}f}")


def format_short_figure(value: Any, significant: int = 4) -> str:
    """Format a figure for a report or a terminal: few digits, and 0 instead of a tiny number with an exponent.

    >>> [format_short_figure(x) for x in (4.657e-10, 12345678.9, 0.0123456, -0.0, True, float("nan"))]
    ['0', '12,345,679', '0.01235', '0', 'yes', '-']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value).replace("_", " ")
    if not isfinite(value):
        return "-"
    if abs(value) < NO_DISTANCE:
        return "0"
    if abs(value) >= 10 ** (significant - 1):
        return f"{value:,.0f}"
    digits = significant - 1 - floor(log10(abs(value)))
    text = f"{value:,.{digits}f}"
    return _remove_sign_of_zero(text.rstrip("0").rstrip(".") if "." in text else text)


def format_percentage(share: float, digits: int = 1) -> str:
    """Format a share in per cent, at least 0.

    >>> format_percentage(-1e-12), format_percentage(0.1234), format_percentage(float("nan"))
    ('0.0%', '12.3%', 'no bound computed')
    """
    if not isfinite(share):
        return NO_BOUND
    return _remove_sign_of_zero(f"{100 * share:.{digits}f}") + "%"


def _remove_sign_of_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
