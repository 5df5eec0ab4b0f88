"""How far each cell may move, where it is drawn to, and how far a sensitive one must go.

The release publishes the distance r of each cell, and the only rule is ``|v - a| <= r``. An attacker
finds the truth within ``v -/+ r`` and no closer, whichever multiples lie around it. (salazar2004 section 4
keeps v between the multiples next to a and publishes ``v -/+ r`` as well. An attacker who knew the rule would then
know the two multiples, half of what was published.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from cellguard._tolerances import WHOLE_QUOTIENT
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError
from cellguard.methods.demands import Demand, limit_published_values
from cellguard.model.table import Table

__all__ = [
    "CellLimits",
    "Drawn",
    "compute_both_multiples",
    "compute_cell_limits",
    "perturb_to_multiples",
    "perturb_within_distance",
    "read_prescribed_movements",
    "refuse_prescribed_perturbation",
    "relax_distance",
]  # fmt: skip

_APART = (0.1, 0.5)
"""A sensitive cell moves at least this share, drawn between the two, of half the width that it needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CellLimits:
    """Movements ``z = v - a``: their bounds, and what they are drawn to."""

    low: FloatArray
    """Least movement of each cell that its distance, the public bounds and its own levels allow."""
    high: FloatArray
    """Greatest movement of each cell."""
    target: FloatArray
    """The movement that the cell is drawn to."""
    apart: FloatArray
    """Minimum movement of a cell that must not be published unchanged; 0 for the others."""
    up: BoolArray
    """To which side those cells go."""
    distance: FloatArray
    """How far the truth may lie from what is published."""
    toward: FloatArray | None = None
    """Relaxed rounding: the movement from the target to the other multiple; 0 where there is none."""
    share: FloatArray | None = None
    """Relaxed rounding: what a unit on that way costs, as a share of the cell's weight."""

    @property
    def impossible(self) -> BoolArray:
        """Cells for which no movement is left."""
        return np.asarray(self.low > self.high)

    @property
    def moving(self) -> BoolArray:
        """Cells that move, or may."""
        return np.asarray((self.low < self.high) | (self.low != 0))

    def fix_sides(self) -> CellLimits:
        """Return the limits with every cell that must move kept on its side."""
        moves = self.apart > 0
        low = np.where(moves & self.up, np.maximum(self.low, self.apart), self.low)
        high = np.where(moves & ~self.up, np.minimum(self.high, -self.apart), self.high)
        return replace(self, low=low, high=high, target=np.clip(self.target, np.minimum(low, high), high))


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Where cells are drawn to, and how far they may go."""

    distance: FloatArray
    """Distance of each cell, as published."""
    target: FloatArray
    """Movement that each cell is drawn to."""
    unit: float
    """Unit of the values' last decimal (0: they have none): limits lie on its grid."""
    other: FloatArray | None = None
    """Relaxed rounding: the movement to the more expensive multiple of each cell; the target if there is only one."""
    given: FloatArray | None = None
    """Movements that are prescribed, NaN for the other cells."""
    between: FloatArray | None = None
    """The bases, if cells must stay between the adjacent multiples."""


def compute_cell_limits(table: Table, demands: Sequence[Demand], drawn: Drawn, rng: Generator) -> CellLimits:
    """Return the limits of a table; `rng` draws the sides and how far sensitive cells must move."""
    values, target, other, given, unit = table.values, drawn.target, drawn.other, drawn.given, drawn.unit
    d = np.where(table.fixed, 0.0, drawn.distance)
    low, high = np.maximum(-d, table.given_lb - values), np.minimum(d, table.ub - values)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)  # noise of bounds at the value itself
    if drawn.between is not None:
        below = np.floor(values / drawn.between + WHOLE_QUOTIENT) * drawn.between - values
        above = np.ceil(values / drawn.between - WHOLE_QUOTIENT) * drawn.between - values
        low, high = np.maximum(low, np.minimum(below, 0.0)), np.minimum(high, np.maximum(above, 0.0))
    least, most = limit_published_values(list(demands), values, d)
    low, high = np.maximum(low, least - values), np.minimum(high, most - values)
    half, asked = np.zeros(len(values)), np.zeros(len(values), np.bool_)
    for demand in demands:
        np.maximum.at(half, demand.cells, demand.width / 2)
        asked[demand.cells[demand.width > 0]] = True
    apart = np.where(asked, np.minimum(half * rng.uniform(*_APART, len(values)), d / 4), 0.0)
    if other is not None:  # both multiples stay possible: every rounding is also a perturbation
        apart = np.minimum(apart, np.minimum(np.abs(target), np.abs(other)))
    if unit:
        low, high = np.ceil(low / unit - WHOLE_QUOTIENT) * unit, np.floor(high / unit + WHOLE_QUOTIENT) * unit
        apart = np.where(asked, np.maximum(np.rint(apart / unit), 1.0) * unit, 0.0)
    if given is not None:
        fix = np.isfinite(given)
        low, high = np.where(fix, np.maximum(low, given), low), np.where(fix, np.minimum(high, given), high)
        apart, target = np.where(fix, 0.0, apart), np.where(fix, given, target)
    nearly = (low > high) & (low - high <= WHOLE_QUOTIENT * (1 + np.abs(values)))
    low = np.where(nearly, high, low)
    apart = np.where(asked, np.minimum(apart, np.maximum(high, -low)), 0.0)
    coin = rng.random(len(values)) < 0.5
    up = np.where(target == 0, coin, target > 0)
    up = np.where(high < apart, False, np.where(low > -apart, True, up))  # only one side may be possible
    aim = np.clip(target, np.minimum(low, high), high)
    limits = CellLimits(low=low, high=high, target=aim, apart=apart, up=up, distance=d)
    if other is None:
        return limits
    way = np.sign(other - target)
    toward = way * np.maximum(way * (np.clip(other, np.minimum(low, high), high) - aim), 0.0)
    with np.errstate(invalid="ignore"):
        share = np.where(toward == 0, 0.0, (np.abs(other) - np.abs(target)) / np.abs(other - target))
    return replace(limits, toward=toward, share=share)


def perturb_to_multiples(
    values: FloatArray, base: FloatArray, moved: BoolArray, rng: Generator, *, nearest: bool
) -> FloatArray:
    """Return movements to a multiple next to each value.

    This is the nearest, or one of the two by a coin that makes the mean movement 0: then neither multiple reveals on
    which side of it the truth lies, nor how near. A multiple stays, unless it must move: then by a base.

    >>> rng = np.random.default_rng(1)
    >>> a, r = np.array([1.0, 3, 10, 10]), np.full(4, 5.0)
    >>> perturb_to_multiples(a, r, np.array([False, False, False, True]), rng, nearest=True).tolist()
    [-1.0, 2.0, 0.0, 5.0]
    """
    floor = np.floor(values / base + 1e-12) * base
    rest = values - floor
    coin = rng.random(len(values))
    at_multiple = rest <= 1e-9 * base
    up = rest > base / 2 if nearest else coin < rest / base
    out = np.where(up, base - rest, -rest)
    return np.where(at_multiple, np.where(moved, np.where(coin < 0.5, -base, base), 0.0), out)


def compute_both_multiples(values: FloatArray, base: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the movements to the nearer and to the other multiple; both 0 where the value is one.

    >>> compute_both_multiples(np.array([1.0, 3, 10]), np.full(3, 5.0))
    (array([-1.,  2.,  0.]), array([ 4., -3.,  0.]))
    """
    rest = values - np.floor(values / base + 1e-12) * base
    rest = np.where(rest <= 1e-9 * base, 0.0, rest)
    near, far = np.where(rest > base / 2, base - rest, -rest), np.where(rest > base / 2, -rest, base - rest)
    return near + 0.0, np.where(rest == 0, 0.0, far)


def relax_distance(movement: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """Return what a movement costs when rounding is relaxed: |z| at the multiples and outside, linear between them.

    Between the two it is ``(ceil + floor - 2a) x`` of salazar2004 section 3.1 with a constant, x from 0 to 1.

    >>> relax_distance(np.array([-1.0, 0.0, 1.5, 4.0, 5.0]), np.full(5, -1.0), np.full(5, 4.0)).tolist()
    [1.0, 1.6, 2.5, 4.0, 5.0]
    """
    low, high = np.minimum(near, far), np.maximum(near, far)
    span = np.where(high > low, high - low, 1.0)
    between = (movement - low) / span * (high + low) - low
    return np.asarray(np.where((movement > low) & (movement < high), between, np.abs(movement)))


def perturb_within_distance(distance: FloatArray, unit: float, rng: Generator) -> FloatArray:
    """Return movements drawn uniformly within the distances, on the grid of the unit.

    >>> perturb_within_distance(np.array([2.0, 2.0, 0.0]), 1.0, np.random.default_rng(2)).tolist()
    [-1.0, -1.0, 0.0]
    """
    share = rng.random(len(distance))
    if not unit:
        return np.asarray((2 * share - 1) * distance)
    steps = np.floor(distance / unit + WHOLE_QUOTIENT)
    return np.asarray((np.floor(share * (2 * steps + 1)) - steps) * unit)


# ---------------------------------------------------------------------- prescribed values


def read_prescribed_movements(table: Table, given: Mapping[Any, float] | Sequence[tuple[Any, float]]) -> FloatArray:
    """Return the movements to prescribed values ("v_p equal to some given values"), NaN for cells without one."""
    out = np.full(table.n_cells, np.nan)
    for cell, value in given.items() if isinstance(given, Mapping) else given:
        if isinstance(cell, int | np.integer):
            if not 0 <= cell < table.n_cells:
                raise InputError(f"given: there is no cell {cell}; they are 0 to {table.n_cells - 1}.")
            index = int(cell)
        else:
            codes = (cell,) if isinstance(cell, str) else tuple(cell)
            if len(codes) != len(table.dimensions):
                raise InputError(f"given: a cell has {len(table.dimensions)} codes, {len(codes)} are given.")
            index = table.cell(dict(zip(table.dimensions, codes, strict=True)))
        if not np.isfinite(value) or (table.integer and value != np.rint(value)):
            kind = "whole" if table.integer else "finite"
            raise InputError(f"given: {table.label(index)} needs a {kind} number.")
        out[index] = value - table.values[index]
    return out


def refuse_prescribed_perturbation(table: Table, movement: FloatArray, reach: FloatArray, moved: BoolArray) -> None:
    """Refuse prescribed values that no perturbation may publish: name the cell, show no value."""
    values = table.values + movement  # NaN where nothing is prescribed: no comparison holds
    near = WHOLE_QUOTIENT * np.maximum(1.0, np.abs(table.values))
    with np.errstate(invalid="ignore"):
        faults = {
            "the table fixes it at another": table.fixed & (np.abs(movement) > near),
            "it is farther from the truth than its distance": np.abs(movement) > reach + near,
            "it lies outside the known bounds": (values < table.given_lb - near) | (values > table.ub + near),
            "the cell is sensitive and must not be published unchanged": moved & (np.abs(movement) <= near),
        }
    for why, cells in faults.items():
        if cells.any():
            raise InputError(f"given: {table.label(int(np.argmax(cells)))} cannot have this value: {why}.")
