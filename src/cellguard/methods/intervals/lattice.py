"""The grid on which a table's values lie, and public partitions of it with a secret offset."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cellguard._types import FloatArray
from cellguard.model.table import Table

__all__ = ["POSITIONS", "EndLattice", "Width", "compute_grain", "find_pieces"]

_MOST_DECIMALS = 6
_FINE = 1e-4
"""Unit if the values lie on no grid, as a share of the smallest required width."""
_EXACT = 2.0**50
"""Numbers of units up to this are counted exactly."""


POSITIONS = (4.0, 32.0)
"""Minimum and maximum number of steps of a movement, if the set of its leader has as many numbers."""
_PARTS = 8.0
"""Between the two: as many as this part of the set has, so that flows can be divided."""
_GRAINS = 32.0
"""A stride has at least this many grains, and fewer than twice as many, if it has as many units."""


def compute_grain(stride: FloatArray) -> FloatArray:
    """Return the grain of each stride: programs see small whole numbers.

    Grains are powers of 2: a stride rounded up to grains is a multiple of its own grain, even if that is the next one.

    >>> stride = np.arange(1.0, 10_000.0)
    >>> rounded = np.ceil(stride / compute_grain(stride)) * compute_grain(stride)
    >>> bool((rounded % compute_grain(rounded) == 0).all()), float((rounded / compute_grain(rounded)).max())
    (True, 63.0)
    """
    return np.asarray(2.0 ** np.floor(np.log2(np.maximum(stride / _GRAINS, 1.0))))


@dataclass(frozen=True)
class EndLattice:
    """Multiples of a unit. Ends of intervals lie on it."""

    unit: Fraction
    whole: bool
    """Whether the values lie on it, too: with that knowledge an attacker excludes everything between."""

    @classmethod
    def of(cls, table: Table, least: float) -> EndLattice:
        """Return the coarsest grid of decimals that holds the values; otherwise one fine enough for the least width."""
        a = np.abs(table.values)
        top = float(a.max(initial=1.0))
        for digits in range(_MOST_DECIMALS + 1):
            scaled = a * 10.0**digits
            if top * 10.0**digits > _EXACT:
                break
            if (np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, scaled * 1e-6)).all():
                common = int(np.gcd.reduce(np.rint(scaled).astype(np.int64), initial=0)) or 1
                return cls(Fraction(1 if table.integer else common, 10**digits), True)
        place = int(np.floor(np.log10(max(_FINE * least, top / _EXACT, 1e-300))))
        return cls(Fraction(10) ** place, False)

    def convert_to_units(self, values: FloatArray) -> FloatArray:
        """Return values as (real) numbers of units; exactly whole if they lie on the grid."""
        scaled = values * (self.unit.denominator / self.unit.numerator)
        whole = np.rint(scaled)
        return np.where(np.isclose(scaled, whole, rtol=0.0, atol=1e-6), whole, scaled) if self.whole else scaled

    def convert_to_values(self, units: FloatArray) -> FloatArray:
        """Return numbers of units as values: the nearest to the decimal number."""
        return np.asarray(units * self.unit.numerator / self.unit.denominator)


def find_pieces(
    value: FloatArray, start: FloatArray, stop: FloatArray, width: Width, offset: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of the piece in which each value lies, and its stride; the partition does not depend on values.

    The pieces of whole numbers ``x, x + 1, ..., y`` follow each other from `start`. In each piece, take the numbers
    that are a multiple of the stride apart: from the first to the last they span the width required of a set that
    begins there. The first piece is up to twice as long, by the secret offset (between 0 and 1). If the last piece
    would be too short, it joins the one before. Start and stop are the known bounds in units; `stop` may be infinite.
    """
    x, (stride, length) = start.copy(), width.compute_strides(start, stop - start)
    here = stride
    cut = start + np.floor(length * (1.0 + offset))
    y = np.empty(len(value))
    active = np.ones(len(value), np.bool_)
    while active.any():
        here, length = width.compute_strides(cut, stop - start)
        valid = stop - cut + 1.0 >= length
        y = np.where(active & ~valid, stop, y)
        y = np.where(active & valid & (cut > value), cut - 1.0, y)
        active &= valid & (cut <= value)
        x, stride = np.where(active, cut, x), np.where(active, here, stride)
        cut = np.where(active, cut + length, cut)
    return x, y, stride


@dataclass(frozen=True, eq=False)
class Width:
    """Required width of a set of numbers of units: ``max(floor, share * end + extra)``, by its upper end."""

    floor: FloatArray
    share: FloatArray
    extra: FloatArray
    given: FloatArray
    """Width that already exists."""

    def compute_required(self, end: FloatArray) -> FloatArray:
        """Return the width that a set with this upper end must have."""
        return np.asarray(np.maximum(self.floor, self.share * np.maximum(end, 0.0) + self.extra))

    def compute_least(self, begin: FloatArray) -> FloatArray:
        """Return the least whole width, besides the given one, of a set that begins here; at least 1."""
        return np.maximum(self.compute_missing(begin), 1.0)

    def compute_missing(self, begin: FloatArray) -> FloatArray:
        """Return the whole width that a set beginning here needs besides the given one; not above 0 if none."""
        need = np.maximum(self.floor, (self.share * np.maximum(begin, 0.0) + self.extra) / (1.0 - self.share))
        return np.ceil(need - self.given - 1e-9)

    def compute_strides(self, begin: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the stride of a piece that begins here, and its minimum number of values.

        All possible values lie within the slack.
        """
        need = np.maximum(np.minimum(self.compute_least(begin), slack), 1.0)
        steps = np.where(need > POSITIONS[0], np.clip(np.floor(need / _PARTS), *POSITIONS), np.maximum(need, 1.0))
        stride = np.ceil(need / steps)
        for _ in range(3):  # for every start of a set within the first stride
            stride = np.maximum(stride, np.ceil(np.minimum(self.compute_least(begin + stride - 1.0), slack) / steps))
        grain = compute_grain(stride)
        stride = grain * np.ceil(stride / grain)
        return stride, np.minimum((steps + 1.0) * stride, slack + 1.0)

    def find_latest_start(self, width: FloatArray) -> FloatArray:
        """Return the latest start of a set with this width, besides the given one."""
        wide = width + self.given
        begin = (wide * (1.0 - self.share) - self.extra) / self.share
        return np.where(wide < self.floor - 1e-9, -np.inf, np.floor(begin + 1e-6))
