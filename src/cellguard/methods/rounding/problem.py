"""The rounding problem: an integer per cell, bounded, and a convex price of moving it.

Cell i is published as ``v_i = floor_i + base_i x_i`` with a whole number ``x_i``: 0 or 1 in
zero-restricted rounding (salazar2004 (1)), and ``-(s - 1), ..., s`` when cells may move by less than
``s`` bases (section 3.2). A cell that is already a multiple of its base may move by ``s - 1`` bases,
hence not at all in zero-restricted rounding. What is published must add up: ``T v = b``, which is
decided by whole numbers.

A sensitive cell that is a multiple of its base must not be published as it is: its x is anything
but 0, a hole in the middle of its choices (and no choice at all in zero-restricted rounding).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cellguard._engine.numbers.multiples import Multiples, compute_exact_residuals, compute_rounding_interval
from cellguard._tolerances import WHOLE_QUOTIENT
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.demands import Demand, limit_published_values
from cellguard.model.table import Table

__all__ = ["Bases", "RoundingProblem", "compute_reach", "make_rounding_problem"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundingProblem:
    """Choose ``low <= x <= high``, whole, with ``T (floor + base x) = b``, close to the target."""

    table: Table
    """The true table (confidential), with ``T`` and ``b``."""
    target: FloatArray
    """What the published table should be close to: the true one, or ``xi(a)`` of (13)."""
    base: FloatArray
    """Base of each cell, positive."""
    lattice: Multiples
    """The multiple of the base at or below each value, in whole numbers."""
    distance: FloatArray
    """How far from the published value the truth may lie; 0 for cells published unchanged."""
    low: IntArray
    """Least x of each cell."""
    high: IntArray
    """Greatest x of each cell; below `low` where no multiple is allowed."""
    hole: BoolArray
    """Cells between whose least and greatest x 0 is not allowed."""
    weights: FloatArray
    """Price of a unit of distance from the target."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.table.n_cells

    @cached_property
    def free(self) -> BoolArray:
        """Cells with a choice."""
        return np.asarray(self.high > self.low)

    @cached_property
    def impossible(self) -> IntArray:
        """Cells for which no multiple is allowed."""
        return np.flatnonzero(self.high < self.low)

    @cached_property
    def floor(self) -> FloatArray:
        """The multiple of the base at or below the value."""
        return self.lattice.floor

    def compute_published(self, x: IntArray) -> FloatArray:
        """Return the table that x stands for."""
        return self.lattice.compute_published(x)

    def compute_loss(self, x: IntArray) -> float:
        """Weighted distance from the target: (2), or (13)."""
        return float(self.weights @ np.abs(self.compute_published(x) - self.target))

    @property
    def least_loss(self) -> float:
        """What every rounding costs at least: every cell at its nearest multiple, additive or not."""
        nearest = np.full(self.n_cells, np.inf)
        for x in (-1, 0, 1):
            away = np.abs(self.compute_published(np.clip(x, self.low, self.high)) - self.target)
            nearest = np.where(self.hole & (x == 0), nearest, np.minimum(nearest, away))
        return float(self.weights @ nearest)

    @cached_property
    def slope(self) -> FloatArray:
        """Price of x = 1 instead of 0: ``w (ceil + floor - 2 a)`` of (4)."""
        return self.weights * (self.base - 2.0 * (self.target - self.floor))

    @cached_property
    def unit(self) -> float:
        """The greatest number of which every difference of objectives is a multiple; 0 if there is none."""
        price = np.concatenate([self.slope[self.free], (self.weights * self.base)[self.free]])
        whole = np.rint(price)
        if len(price) == 0 or (np.abs(price - whole) > WHOLE_QUOTIENT * np.maximum(1.0, np.abs(price))).any():
            return 0.0
        if np.abs(whole).max() >= 2**53:
            return 0.0
        return float(np.gcd.reduce(np.abs(whole).astype(np.int64)))

    def round_up_to_attainable(self, bound: float, constant: float) -> float:
        """Return the least objective from a bound on that a rounding can have; `constant` is one that it can."""
        if not self.unit or not np.isfinite(bound):
            return bound
        return constant + self.unit * float(np.ceil((bound - constant) / self.unit - 1e-4))

    def compute_residuals(self, x: IntArray) -> FloatArray:
        """Return ``T v - b``: 0 exactly where a relation holds, if its coefficients are decimals."""
        t, v = self.table, self.compute_published(x)
        exact = compute_exact_residuals(t.relations, t.rhs, v, self.lattice.digits)
        return t.relations @ v - t.rhs if exact is None else exact

    def is_rounding(self, x: IntArray) -> bool:
        """Whether x is a rounding: within its bounds, and additive."""
        if not ((x >= self.low) & (x <= self.high) & ~(self.hole & (x == 0))).all():
            return False
        size = abs(self.table.relations) @ np.abs(self.compute_published(x)) + np.abs(self.table.rhs)
        # relations hold exactly, or their coefficients are not decimals and hold as well as those can
        allowed = 4 * np.finfo(np.float64).eps * np.maximum(size, 1.0)
        return bool((np.abs(self.compute_residuals(x)) <= allowed).all())

    def draw_coins(self, rng: np.random.Generator) -> RoundingProblem:
        """Return the problem without holes: a coin tells on which side of its hole a cell goes."""
        up = self.hole & (rng.random(self.n_cells) < 0.5)
        return replace(
            self,
            low=np.where(up, 1, self.low),
            high=np.where(self.hole & ~up, -1, self.high),
            hole=np.zeros_like(self.hole),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Bases:
    """What cells are multiples of, and how far from its value one may be published."""

    base: FloatArray
    """Of each cell."""
    lattice: Multiples
    """The values as multiples of their bases."""
    step: int
    """Cells move by less than this number of bases."""
    unit: float
    """Of the values' last decimal (0: they have none): what the attacker's interval is short of `step` bases."""

    @property
    def reach(self) -> FloatArray:
        """How far from a published value the truth may lie."""
        return compute_reach(self.base, self.step, self.unit)


def make_rounding_problem(
    table: Table,
    bases: Bases,
    weights: FloatArray,
    demands: list[Demand],
    moved: BoolArray,
    target: FloatArray | None = None,
) -> RoundingProblem:
    """Set up the problem, with the trivial fixings of salazar2004 section 3.1.

    Of what is known of a cell no multiple outside is published, unless there is no other. Cells in `moved` must
    not be published unchanged; the target is the values unless given.
    """
    values, fixed, base, step = table.values, table.fixed, bases.base, bases.step
    floor, is_multiple = bases.lattice.floor, bases.lattice.is_multiple
    low = np.where(fixed, 0, 1 - step).astype(np.int64)
    high = np.where(fixed, 0, np.where(is_multiple, step - 1, step)).astype(np.int64)
    known_low, known_high = (
        _count_least_steps(table.given_lb - floor, base),
        -_count_least_steps(floor - table.ub, base),
    )
    plausible = np.maximum(low, known_low) <= np.minimum(high, known_high)
    low = np.where(plausible, np.maximum(low, known_low), low)
    high = np.where(plausible, np.minimum(high, known_high), high)
    distance = np.where(fixed, 0.0, bases.reach)
    least, most = limit_published_values(demands, values, distance)
    low = np.maximum(low, _count_least_steps(least - floor, base))
    high = np.minimum(high, -_count_least_steps(floor - most, base))
    stuck = moved & is_multiple & ~fixed
    high = np.where(stuck & (high == 0), -1, high)
    low = np.where(stuck & (low == 0), 1, low)
    return RoundingProblem(
        table=table,
        target=values if target is None else target,
        base=base,
        lattice=bases.lattice,
        distance=distance,
        low=low,
        high=high,
        hole=stuck & (low < 0) & (high > 0),
        weights=weights,
    )


def compute_reach(base: FloatArray, step: int, unit: float) -> FloatArray:
    """Return how far from a published value the truth may lie: less than `step` bases, on the grid of the unit."""
    return compute_rounding_interval(np.zeros(len(base)), base, step, unit)[1]


_FAR = 2**40
"""Stands for an infinite number of steps."""


def _count_least_steps(slack: FloatArray, base: FloatArray) -> IntArray:
    """Return the least whole number of bases that is not below the slack."""
    quotient = np.clip(slack / base, -_FAR, _FAR)
    return np.ceil(quotient - WHOLE_QUOTIENT * np.maximum(1.0, np.abs(quotient))).astype(np.int64)
