"""The grid on which a table's values lie, and public partitions of it with a secret offset."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cellguard._types import FloatArray
from cellguard.nouns.table import Table

__all__ = ["POSITIONS", "EndLattice", "Width", "interval_grain", "interval_pieces"]

_MOST_DECIMALS = 6
_FINE = 1e-4
"""Share of the smallest width that is asked for which serves as unit where the values lie on no grid."""
_EXACT = 2.0**50
"""Numbers of units up to this are counted exactly."""


POSITIONS = (4.0, 32.0)
"""A movement has so many steps, at least and at most, where the set of its leader has as many numbers."""
_PARTS = 8.0
"""Between the two: as many as there are in this part of the set, so that flows can be divided."""
_GRAINS = 32.0
"""A stride has so many grains at least, and fewer than twice as many, if it has as many units."""


def interval_grain(stride: FloatArray) -> FloatArray:
    """Return the grain of each stride: programs see small whole numbers.

    A power of 2: a stride that is rounded up to grains is a multiple of its own grain, even where that is the next one.

    >>> stride = np.arange(1.0, 10_000.0)
    >>> rounded = np.ceil(stride / interval_grain(stride)) * interval_grain(stride)
    >>> bool((rounded % interval_grain(rounded) == 0).all()), float((rounded / interval_grain(rounded)).max())
    (True, 63.0)
    """
    return np.asarray(2.0 ** np.floor(np.log2(np.maximum(stride / _GRAINS, 1.0))))


@dataclass(frozen=True)
class EndLattice:
    """Multiples of a unit. Ends of intervals lie on it."""

    unit: Fraction
    whole: bool
    """Whether the values lie on it, too: who knows that excludes everything between."""

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

    def units(self, values: FloatArray) -> FloatArray:
        """Return values as (real) numbers of units; exactly whole where they are."""
        scaled = values * (self.unit.denominator / self.unit.numerator)
        whole = np.rint(scaled)
        return np.where(np.isclose(scaled, whole, rtol=0.0, atol=1e-6), whole, scaled) if self.whole else scaled

    def values(self, units: FloatArray) -> FloatArray:
        """Return numbers of units as values: the nearest to the decimal number."""
        return np.asarray(units * self.unit.numerator / self.unit.denominator)


def interval_pieces(
    value: FloatArray, start: FloatArray, stop: FloatArray, width: Width, offset: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of the piece in which each value lies, and its stride, of a partition no value had a part in.

    The pieces of whole numbers ``x, x + 1, ..., y`` follow each other from `start`. In each of them the numbers that
    are a multiple of the stride apart are as far apart, from the first to the last, as a set asks that begins there.
    The first piece is up to twice as long, by the offset (between 0 and 1, secret); a last one that would be too short
    joins the one before. Start and stop are the known bounds in units; `stop` may be infinite.
    """
    x, (stride, length) = start.copy(), width.strides(start, stop - start)
    here = stride
    cut = start + np.floor(length * (1.0 + offset))
    y = np.empty(len(value))
    active = np.ones(len(value), np.bool_)
    while active.any():
        here, length = width.strides(cut, stop - start)
        valid = stop - cut + 1.0 >= length
        y = np.where(active & ~valid, stop, y)
        y = np.where(active & valid & (cut > value), cut - 1.0, y)
        active &= valid & (cut <= value)
        x, stride = np.where(active, cut, x), np.where(active, here, stride)
        cut = np.where(active, cut + length, cut)
    return x, y, stride


@dataclass(frozen=True, eq=False)
class Width:
    """How wide a set of numbers of units must be: ``max(floor, share * end + extra)``, by its upper end."""

    floor: FloatArray
    share: FloatArray
    extra: FloatArray
    given: FloatArray
    """What is there already."""

    def asked(self, end: FloatArray) -> FloatArray:
        """Return the width that a set with this upper end must have."""
        return np.asarray(np.maximum(self.floor, self.share * np.maximum(end, 0.0) + self.extra))

    def least(self, begin: FloatArray) -> FloatArray:
        """Return the least whole width, besides what is given, of a set that begins here; 1 at least."""
        return np.maximum(self.missing(begin), 1.0)

    def missing(self, begin: FloatArray) -> FloatArray:
        """Return the whole width that a set that begins here needs besides what is given; not above 0 if none."""
        need = np.maximum(self.floor, (self.share * np.maximum(begin, 0.0) + self.extra) / (1.0 - self.share))
        return np.ceil(need - self.given - 1e-9)

    def strides(self, begin: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the stride of a piece that begins here, and how many numbers it has at least.

        All numbers that are possible lie within the room.
        """
        need = np.maximum(np.minimum(self.least(begin), room), 1.0)
        steps = np.where(need > POSITIONS[0], np.clip(np.floor(need / _PARTS), *POSITIONS), np.maximum(need, 1.0))
        stride = np.ceil(need / steps)
        for _ in range(3):  # wherever in the first stride a set begins
            stride = np.maximum(stride, np.ceil(np.minimum(self.least(begin + stride - 1.0), room) / steps))
        grain = interval_grain(stride)
        stride = grain * np.ceil(stride / grain)
        return stride, np.minimum((steps + 1.0) * stride, room + 1.0)

    def latest(self, width: FloatArray) -> FloatArray:
        """Return where a set that is so wide, besides what is given, may begin at the latest."""
        wide = width + self.given
        begin = (wide * (1.0 - self.share) - self.extra) / self.share
        return np.where(wide < self.floor - 1e-9, -np.inf, np.floor(begin + 1e-6))
