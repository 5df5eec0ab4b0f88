"""The grid on which a table's values lie, and public partitions of it with a secret offset."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cellguard.table import FloatArray, Table

__all__ = ["Lattice", "Width", "pieces"]

_MOST_DECIMALS = 6
_FINE = 1e-4
"""Share of the smallest width that is asked for which serves as unit where the values lie on no grid."""
_EXACT = 2.0**50
"""Numbers of units up to this are counted exactly."""


@dataclass(frozen=True)
class Lattice:
    """Multiples of a unit. Ends of intervals lie on it."""

    unit: Fraction
    whole: bool
    """Whether the values lie on it, too: who knows that excludes everything between."""

    @classmethod
    def of(cls, table: Table, least: float) -> Lattice:
        """Return the coarsest grid of decimal numbers that holds the values; otherwise one that is fine enough.

        Parameters
        ----------
        table
            The table.
        least
            The smallest width that is asked for.
        """
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


def pieces(
    value: FloatArray, start: FloatArray, stop: FloatArray, width: Width, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the piece in which each value lies, of a partition that no value had a part in.

    The pieces of whole numbers ``x, x + 1, ..., y`` follow each other from `start`; each is as wide as its own upper
    end asks, the first up to twice as wide, by the offset. A last piece that would be too narrow joins the one before.

    Parameters
    ----------
    value
        Numbers of units.
    start, stop
        Where each partition begins and ends (the known bounds; `stop` may be infinite).
    width
        What a piece that begins somewhere needs.
    offset
        Between 0 and 1, secret.
    """
    x = start.copy()
    cut = start + np.floor((width.least(x) + 1.0) * (1.0 + offset))
    y = np.empty(len(value))
    active = np.ones(len(value), np.bool_)
    final = width.asked(stop)
    while active.any():
        valid = stop - cut >= final
        y = np.where(active & ~valid, stop, y)
        y = np.where(active & valid & (cut > value), cut - 1.0, y)
        active &= valid & (cut <= value)
        x = np.where(active, cut, x)
        cut = np.where(active, cut + width.least(cut) + 1.0, cut)
    return x, y


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
        """Return the least whole width, besides what is given, of a set that begins here."""
        need = np.maximum(self.floor, (self.share * np.maximum(begin, 0.0) + self.extra) / (1.0 - self.share))
        return np.asarray(np.maximum(np.ceil(need - self.given - 1e-9), 1.0))

    def latest(self, width: FloatArray) -> FloatArray:
        """Return where a set that is so wide, besides what is given, may begin at the latest."""
        wide = width + self.given
        begin = (wide * (1.0 - self.share) - self.extra) / self.share
        return np.where(wide < self.floor - 1e-9, -np.inf, np.floor(begin + 1e-6))
