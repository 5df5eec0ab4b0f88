"""Numbers as people write them: the decimals of the data, no noise of floating point, no false zero."""

from __future__ import annotations

from math import floor, isfinite, isnan, log10
from typing import Any

import numpy as np

from cellguard._tolerances import NO_DISTANCE
from cellguard._types import FloatArray

__all__ = ["NO_BOUND", "decimals_of_table_figures", "figure", "figure_in_per_cent", "figure_with_decimals"]


NO_BOUND = "no bound computed"
"""What is said of the gap where nothing is proven about the best release."""
_MOST = 4
"""Data with more decimals than this are measurements; people read two of them."""


def decimals_of_table_figures(values: FloatArray) -> int:
    """Return how many decimals the numbers of a table are shown with: those of the data, two where they have many.

    >>> [decimals_of_table_figures(np.array(values)) for values in ([3.0, 12.0], [0.1 + 0.2], [36667964.344156764])]
    [0, 1, 2]
    >>> decimals_of_table_figures(np.array([0.00123456789, 0.0021]))
    5
    """
    from cellguard._engine.numbers.multiples import decimals_of_numbers

    known = values[np.isfinite(values)]
    kept = decimals_of_numbers(known, noise=True)
    if kept is not None and kept <= _MOST:
        return kept
    size = np.abs(known[known != 0])
    middle = float(np.median(size)) if len(size) else 1.0
    return int(min(9, max(2, 2 - floor(log10(max(middle, 1e-12))))))


def figure_with_decimals(value: float, digits: int | None = None) -> str:
    """Return a number as people read it; with two decimals where it is not whole, unless `digits` are given.

    >>> [figure_with_decimals(value) for value in (1234567.0, 12.345, float("nan"), -0.0001)]
    ['1,234,567', '12.35', 'x', '0.00']
    >>> figure_with_decimals(7.0, 1)
    '7.0'
    """
    if isnan(value):
        return "x"
    if digits is None:
        digits = 0 if float(value).is_integer() else 2
    return _figure_with_unsigned_zero(f"{value:,.{digits}f}")


def figure(value: Any, significant: int = 4) -> str:
    """Return a figure of a report or a terminal: few digits, never an exponent for what is practically nothing.

    >>> figure(4.657e-10), figure(12345678.9), figure(0.0123456), figure(-0.0), figure(True), figure(float("nan"))
    ('0', '12,345,679', '0.01235', '0', 'yes', '-')
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
    return _figure_with_unsigned_zero(text.rstrip("0").rstrip(".") if "." in text else text)


def figure_in_per_cent(share: float, digits: int = 1) -> str:
    """Return a share in per cent, never less than nothing.

    >>> figure_in_per_cent(-1e-12), figure_in_per_cent(0.1234), figure_in_per_cent(float("nan"))
    ('0.0%', '12.3%', 'no bound computed')
    """
    if not isfinite(share):
        return NO_BOUND
    return _figure_with_unsigned_zero(f"{100 * share:.{digits}f}") + "%"


def _figure_with_unsigned_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text
