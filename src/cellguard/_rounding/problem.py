"""The rounding problem: an integer per cell, bounded, and a convex price of moving it.

Cell i is published as ``v_i = floor_i + base_i x_i`` with a whole number ``x_i``: 0 or 1 in
zero-restricted rounding (salazar2004 (1)), and ``-(s - 1), ..., s`` when cells may move by less than
``s`` bases (section 3.2). A cell that is already a multiple of its base may move by ``s - 1`` bases,
hence not at all in zero-restricted rounding. What is published must add up: ``T v = b``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["Problem", "make_problem", "multiples_below"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_NEAR = 1e-9
"""A quotient this close to a whole number, relatively, is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Choose ``low <= x <= high``, whole, with ``T (floor + base x) = b``, close to the target."""

    relations: csr_array
    """``T``, one row per relation."""
    rhs: FloatArray
    """``b``."""
    values: FloatArray
    """The true table (confidential)."""
    target: FloatArray
    """What the published table should be close to: the true one, or ``xi(a)`` of (13)."""
    base: FloatArray
    """Base of each cell, positive."""
    floor: FloatArray
    """The multiple of the base at or below the value."""
    distance: FloatArray
    """How far from the published value the truth may lie, as published; 0 for cells published as they are."""
    low: IntArray
    """Least x of each cell."""
    high: IntArray
    """Greatest x of each cell; below `low` where no multiple is allowed."""
    weights: FloatArray
    """Price of a unit of distance from the target."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.base)

    @cached_property
    def free(self) -> BoolArray:
        """Cells with a choice."""
        return np.asarray(self.high > self.low)

    @cached_property
    def impossible(self) -> IntArray:
        """Cells for which no multiple is allowed."""
        return np.flatnonzero(self.high < self.low)

    def published(self, x: IntArray) -> FloatArray:
        """Return the table that x stands for."""
        return self.floor + self.base * x

    def loss(self, x: IntArray) -> float:
        """Weighted distance from the target: (2), or (13)."""
        return float(self.weights @ np.abs(self.published(x) - self.target))

    @cached_property
    def slope(self) -> FloatArray:
        """Price of x = 1 instead of 0: ``w (ceil + floor - 2 a)`` of (4)."""
        return self.weights * (self.base - 2.0 * (self.target - self.floor))

    @cached_property
    def unit(self) -> float:
        """The greatest number of which every difference of objectives is a multiple; 0 if there is none."""
        price = np.concatenate([self.slope[self.free], (self.weights * self.base)[self.free]])
        whole = np.rint(price)
        if len(price) == 0 or (np.abs(price - whole) > _NEAR * np.maximum(1.0, np.abs(price))).any():
            return 0.0
        if np.abs(whole).max() >= 2**53:
            return 0.0
        return float(np.gcd.reduce(np.abs(whole).astype(np.int64)))

    def additive(self, x: IntArray) -> bool:
        """Whether the published table satisfies every relation."""
        v = self.published(x)
        residual = np.abs(self.relations @ v - self.rhs)
        size = abs(self.relations) @ np.abs(v) + np.abs(self.rhs)
        return bool((residual <= 1e-9 * np.maximum(size, 1.0)).all())

    def holds(self, x: IntArray) -> bool:
        """Whether x is a rounding: within its bounds, and additive."""
        return bool(((x >= self.low) & (x <= self.high)).all()) and self.additive(x)


def multiples_below(values: FloatArray, base: FloatArray) -> FloatArray:
    """Return the multiple of the base at or below each value, which is the value itself if it is one.

    >>> multiples_below(np.array([8.0, 10.0, -3.0, 0.3]), np.array([5.0, 5.0, 5.0, 0.1]))
    array([ 5. , 10. , -5. ,  0.3])
    """
    quotient = values / base
    nearest = np.rint(quotient)
    is_multiple = np.abs(quotient - nearest) <= _NEAR * np.maximum(1.0, np.abs(quotient))
    return np.asarray(np.where(is_multiple, values, np.floor(quotient) * base))


def make_problem(
    *,
    relations: csr_array,
    rhs: FloatArray,
    values: FloatArray,
    base: FloatArray,
    step: int,
    weights: FloatArray,
    lb: FloatArray,
    ub: FloatArray,
    least: FloatArray,
    most: FloatArray,
    fixed: BoolArray,
    target: FloatArray | None = None,
) -> Problem:
    """Set up the problem, with the fixings of salazar2004 section 3.1.

    Parameters
    ----------
    relations, rhs, values, base, weights
        The table, and a base for each cell.
    step
        Cells move by less than this number of bases.
    lb, ub
        What an attacker knows of each cell: no multiple outside is published, unless there is no other.
    least, most
        Published values outside cannot meet the levels (the trivial fixings of section 3.1).
    fixed
        Cells that are published as they are.
    target
        What to be close to; the values unless given.
    """
    floor = multiples_below(values, base)
    is_multiple = floor == values
    low = np.where(fixed, 0, np.full(len(values), 1 - step)).astype(np.int64)
    high = np.where(fixed, 0, np.where(is_multiple, step - 1, step)).astype(np.int64)
    known_low, known_high = _steps_up(lb - floor, base), _steps_down(ub - floor, base)
    plausible = np.maximum(low, known_low) <= np.minimum(high, known_high)
    low = np.where(plausible, np.maximum(low, known_low), low)
    high = np.where(plausible, np.minimum(high, known_high), high)
    low = np.maximum(low, _steps_up(least - floor, base))
    high = np.minimum(high, _steps_down(most - floor, base))
    return Problem(
        relations=relations,
        rhs=rhs,
        values=values,
        target=values if target is None else target,
        base=base,
        floor=floor,
        distance=np.where(fixed, 0.0, step * base),
        low=low,
        high=high,
        weights=weights,
    )


_FAR = 2**40
"""Stands for an infinite number of steps."""


def _steps_up(room: FloatArray, base: FloatArray) -> IntArray:
    """Least whole number of bases that is not below the room."""
    quotient = np.clip(room / base, -_FAR, _FAR)
    return np.ceil(quotient - _NEAR * np.maximum(1.0, np.abs(quotient))).astype(np.int64)


def _steps_down(room: FloatArray, base: FloatArray) -> IntArray:
    """Greatest whole number of bases that is not above the room."""
    quotient = np.clip(room / base, -_FAR, _FAR)
    return np.floor(quotient + _NEAR * np.maximum(1.0, np.abs(quotient))).astype(np.int64)
