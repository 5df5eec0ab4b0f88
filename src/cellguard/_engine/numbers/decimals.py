"""The decimal grid on which the values of a table lie: cents, whole numbers, thousands.

Released numbers that leave the grid of the original ones reveal which cells were moved and, with a known percentage,
by how much: only one of x / 1.1 and x / 0.9 has two decimals.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._types import FloatArray

__all__ = ["convert_from_units", "convert_to_units", "find_decimal_unit"]

_DIGITS = 6
"""Values with more decimals are measurements or estimates: an attacker would notice no grid."""
_WITNESSES = 20
"""Number of values, all ending in zeros, from which this is no coincidence."""
_EXACT = 2.0**52
"""Larger whole numbers cannot be distinguished from their neighbours with certainty."""
_ROUNDING = 32.0 * float(np.finfo(np.float64).eps)
"""Relative error that adding up and printing may leave in a decimal number."""


def find_decimal_unit(values: FloatArray, relations: csr_array, rhs: FloatArray) -> float:
    """Return the finest decimal unit of which all values are multiples; 0 when there is none.

    >>> none, side = csr_array((0, 3)), np.zeros(0)
    >>> find_decimal_unit(np.array([1.5, 2.25, 7.0]), none, side)
    0.01
    >>> find_decimal_unit(np.array([0.1, 1 / 3, 2.0]), none, side)
    0.0
    >>> find_decimal_unit(np.array([20.0, 30.0, 50.0]), none, side)  # three cells prove nothing
    1.0
    """
    for digits in range(_DIGITS + 1):
        unit = 10.0**-digits
        if _is_on_grid(values, unit):
            unit = unit if digits else _find_coarser_unit(values)
            return unit if _is_additive_in_units(values, relations, rhs, unit) else 0.0
    return 0.0


def convert_to_units(values: FloatArray, unit: float) -> FloatArray:
    """Return values as multiples of the unit, not rounded; exact where they are decimal numbers."""
    # dividing by 0.01 is off where multiplying by 100 is not
    return np.asarray(values * np.rint(1.0 / unit) if unit < 1 else values / unit)


def convert_from_units(counts: FloatArray, unit: float) -> FloatArray:
    """Return this many units as the nearest floating-point numbers to the decimals."""
    return np.asarray(counts / np.rint(1.0 / unit) if unit < 1 else counts * unit)


def _is_on_grid(values: FloatArray, unit: float) -> bool:
    scaled = convert_to_units(values, unit)
    if not np.abs(scaled).max(initial=0.0) < _EXACT:
        return False
    noise = np.minimum(0.1, 1e-9 + _ROUNDING * np.abs(scaled))
    return bool((np.abs(scaled - np.rint(scaled)) <= noise).all())


def _find_coarser_unit(values: FloatArray) -> float:
    """Return the largest power of ten that divides all whole values, if there are enough of them."""
    some = values[values != 0]
    unit = 1.0
    while len(some) >= _WITNESSES and _is_on_grid(some, 10.0 * unit):
        unit *= 10.0
    return unit


def _is_additive_in_units(values: FloatArray, relations: csr_array, rhs: FloatArray, unit: float) -> bool:
    """Return whether the relations hold exactly between the multiples: then they can between others too."""
    T = relations
    if not (T.data == np.rint(T.data)).all():
        T = csr_array((1000.0 * T.data, T.indices, T.indptr), shape=T.shape)
        if not _is_on_grid(T.data, 1.0):  # a third of a cell has no decimals to keep
            return False
        T.data, rhs = np.rint(T.data), 1000.0 * rhs
    if not _is_on_grid(rhs, unit):
        return False
    size = abs(T) @ np.abs(convert_to_units(values, unit))
    return bool(size.max(initial=0.0) < _EXACT) and not np.any(
        T @ np.rint(convert_to_units(values, unit)) - np.rint(convert_to_units(rhs, unit))
    )
