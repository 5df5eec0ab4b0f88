"""Exact multiples of a base: numbers are the decimals as printed, and whole numbers decide.

A quotient of floating-point numbers cannot tell whether 7,000,000,001 is a multiple of 5 unless it is
compared without a tolerance, and without one it cannot tell whether 0.3 is a multiple of 0.1. So numbers
and bases are written in units of the last decimal, and the rest is arithmetic of whole
numbers: exact up to 2^53, and refused beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = [
    "Multiples",
    "compute_exact_residuals",
    "compute_rounding_interval",
    "count_decimals",
    "find_last_decimal_unit",
    "find_off_base",
    "remove_rounding_noise",
    "split_into_multiples",
]  # fmt: skip

LARGEST = 2.0**53
"""Whole numbers up to this are exact in floating point."""
LARGEST_DECIMAL = 2.0**52
"""Decimals of at most this many units are distinct in floating point."""
MOST_DECIMALS = 9
"""Numbers with more decimals count as continuous."""
_NOISE = 8 * np.finfo(np.float64).eps
"""Sums of decimals miss their decimal by at most this share."""


def count_decimals(numbers: FloatArray, *, noise: bool = False) -> int | None:
    """Return the least number of decimals that prints every number; None if that is more than nine.

    Parameters
    ----------
    numbers
        Any; infinite ones do not count.
    noise
        Whether a number counts as a decimal if they differ only by the rounding of a sum.

    >>> count_decimals(np.array([0.5, 12.25])), count_decimals(np.array([1 / 3]))
    (2, None)
    >>> count_decimals(np.array([0.1 + 0.2])), count_decimals(np.array([0.1 + 0.2]), noise=True)
    (None, 1)
    """
    x = numbers[np.isfinite(numbers)]
    for digits in range(MOST_DECIMALS + 1):
        scale = 10.0**digits
        units = np.rint(x * scale)
        if (np.abs(units) > _compute_largest_exact(digits)).any():
            return None
        if noise:
            near = np.minimum(_NOISE * np.abs(units), 1e-3)
            fits = np.abs(x * scale - units) <= near
        else:
            fits = units / scale == x
        if fits.all():
            return digits
    return None


def remove_rounding_noise(numbers: FloatArray) -> FloatArray:
    """Return the decimals from which numbers differ only by the rounding of a sum; leave others unchanged.

    >>> remove_rounding_noise(np.array([0.1 + 0.2, 7.0])).tolist(), remove_rounding_noise(np.array([1 / 3])).tolist()
    ([0.3, 7.0], [0.3333333333333333])
    """
    digits = count_decimals(numbers, noise=True)
    if digits is None:
        return numbers
    scale = 10.0**digits
    return np.where(np.isfinite(numbers), np.rint(numbers * scale) / scale, numbers)


def find_last_decimal_unit(values: FloatArray) -> float:
    """Return the unit of the last decimal of a table: 1 for whole numbers, 0 for numbers without a last decimal.

    >>> [find_last_decimal_unit(np.array(values)) for values in ([3.0, 12.0], [3.0, 12.05], [1 / 3])]
    [1.0, 0.01, 0.0]
    """
    digits = count_decimals(values, noise=True)
    return 0.0 if digits is None else 10.0**-digits


def _compute_largest_exact(digits: int) -> float:
    return LARGEST if digits == 0 else LARGEST_DECIMAL


@dataclass(frozen=True, kw_only=True, eq=False)
class Multiples:
    """Multiples of a base per cell, as whole numbers of the last decimal's unit."""

    digits: int
    """Decimals of a unit."""
    base: IntArray
    """The base of each cell, in units."""
    quotient: IntArray
    """The greatest whole number of bases that is not above each value."""
    is_multiple: BoolArray
    """Whether a value is that multiple."""

    @property
    def floor(self) -> FloatArray:
        """The multiple at or below each value."""
        return self.convert_to_numbers(self.quotient * self.base)

    def compute_published(self, x: IntArray) -> FloatArray:
        """Return the multiple that is x bases above the floor."""
        return self.convert_to_numbers((self.quotient + x) * self.base)

    def convert_to_numbers(self, units: IntArray) -> FloatArray:
        """Return numbers from units: the floating-point number that is printed as the decimal."""
        return np.asarray(units / 10.0**self.digits)


def split_into_multiples(values: FloatArray, base: FloatArray, *, slack: float = 0.0) -> tuple[Multiples, BoolArray]:
    """Write values as multiples of their bases plus a rest; also return the cells that are too large for that.

    Parameters
    ----------
    values
        Decimals, or continuous numbers.
    base
        Of each cell, positive, with at most nine decimals.
    slack
        Number of bases above and below the values that must be exact as well.

    >>> found, large = split_into_multiples(np.array([8.0, 10.0, -3.0, 7000000001.0, 1e17]), np.full(5, 5.0))
    >>> found.floor[:4].tolist(), found.is_multiple[:4].tolist(), large.tolist()
    ([5.0, 10.0, -5.0, 7000000000.0], [False, True, False, False], [False, False, False, False, True])
    >>> split_into_multiples(np.array([0.3, 0.1 + 0.2]), np.full(2, 0.1))[0].is_multiple.tolist()
    [True, True]
    """
    of_base, of_values = count_decimals(base), count_decimals(values, noise=True)
    if of_base is None:
        raise ValueError("a base has too many decimals.")
    digits = of_base if of_values is None else max(of_base, of_values)
    scale = 10.0**digits
    large = ~((np.abs(values) + (slack + 1) * base) * scale <= _compute_largest_exact(digits))
    small = np.where(large, 0.0, values)
    R = np.rint(base * scale).astype(np.int64)
    if of_values is None:
        exact = [Fraction(repr(a)) * 10**digits for a in small.tolist()]
        quotient = np.array([int(a // r) for a, r in zip(exact, R.tolist(), strict=True)], np.int64)
        rest = np.array([a % r != 0 for a, r in zip(exact, R.tolist(), strict=True)], np.bool_)
    else:
        quotient, remainder = np.divmod(np.rint(small * scale).astype(np.int64), R)
        rest = remainder != 0
    return Multiples(digits=digits, base=R, quotient=quotient, is_multiple=np.asarray(~rest)), np.asarray(large)


def find_off_base(published: FloatArray, base: FloatArray) -> BoolArray:
    """Return which published numbers are not multiples of their base, or too large to tell.

    >>> find_off_base(np.array([10.0, 7000000001.0, 7000000000.0, 1e17]), np.full(4, 5.0)).tolist()
    [False, True, False, True]
    >>> find_off_base(np.array([0.3, 0.1 + 0.2, 0.35]), np.full(3, 0.1)).tolist()
    [False, True, True]
    """
    digits = count_decimals(base)
    if digits is None:
        return np.ones(len(published), np.bool_)
    scale = 10.0**digits
    units = np.rint(published * scale)
    exact = (np.abs(units) <= _compute_largest_exact(digits)) & (units / scale == published)
    rest = np.where(exact, units, 0.0).astype(np.int64) % np.rint(base * scale).astype(np.int64)
    return np.asarray(~exact | (rest != 0))


def compute_rounding_interval(
    published: FloatArray, base: FloatArray, step: int, unit: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of values, on the grid of the unit, that lie less than `step` bases from the published one.

    Without a unit (0) the interval is closed: its ends are not possible, but values next to them are.

    >>> compute_rounding_interval(np.array([10.0]), np.array([5.0]), 1, 1.0)
    (array([6.]), array([14.]))
    >>> compute_rounding_interval(np.array([0.3]), np.array([0.1]), 2, 0.01)
    (array([0.11]), array([0.49]))
    """
    of_base, of_unit = count_decimals(base), count_decimals(np.array([unit]))
    digits = max(of_base or 0, of_unit or 0)
    scale = 10.0**digits
    at, reach, one = np.rint(published * scale), step * np.rint(base * scale), np.rint(unit * scale)
    if of_base is None or not (np.abs(at) + reach <= LARGEST).all() or (at / scale != published).any():
        return published - step * base + unit, published + step * base - unit
    if not unit:
        return (at - reach) / scale, (at + reach) / scale
    return (np.floor((at - reach) / one) + 1) * one / scale, (np.ceil((at + reach) / one) - 1) * one / scale


def compute_exact_residuals(
    relations: csr_array, rhs: FloatArray, numbers: FloatArray, digits: int
) -> FloatArray | None:
    """Return ``T x - b`` in whole numbers, so that it is 0 exactly where a relation holds; None if not possible.

    Coefficients and sides must have few decimals; the numbers are decimals with `digits` digits.

    >>> T = csr_array(np.array([[1.0, 1, -1]]))
    >>> compute_exact_residuals(T, np.zeros(1), np.array([0.1, 0.2, 0.3]), 1).tolist()
    [0.0]
    """
    of_relations = count_decimals(relations.data)
    if of_relations is None:
        return None
    c, scale = 10.0**of_relations, 10.0**digits
    T = csr_array((np.rint(relations.data * c).astype(np.int64), relations.indices, relations.indptr), relations.shape)
    x, b = np.rint(numbers * scale), np.rint(rhs * c * scale)
    if (b / (c * scale) != rhs).any() or not (abs(T) @ np.abs(x) + np.abs(b) < 2.0**62).all():
        return None
    return np.asarray((T @ x.astype(np.int64) - b.astype(np.int64)) / (c * scale))
