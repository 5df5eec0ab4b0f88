"""What is to be adjusted, and the release that a movement becomes once it stands its own check."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse.linalg  # noqa: F401 - every solve needs it: not loaded while time is counted

from cellguard import _core  # noqa: F401 - for the same reason
from cellguard._engine.closest.adjuster import Adjuster, Closest
from cellguard._engine.closest.distance import Distance, Target
from cellguard._engine.numbers.decimals import from_decimal_units, in_decimal_units
from cellguard._tolerances import LEVEL_LOOKED_FOR, SAME_VALUE
from cellguard._types import BoolArray, FloatArray
from cellguard.check import audit as _audit  # noqa: F401 - for the same reason: every release is audited
from cellguard.exceptions import ReleaseError
from cellguard.methods.adjust.noise import with_noise
from cellguard.methods.adjust.senses import Need, adjustment_with_surplus, room_to_adjust
from cellguard.methods.adjust.whole import whole_adjustment, whole_steps_of_adjustment
from cellguard.methods.limits import Limits
from cellguard.nouns.reconcile import reconciled_additive_values
from cellguard.nouns.release import Adjustment, Status
from cellguard.nouns.table import Table

__all__ = ["Bounds", "FoundMovement", "Task", "finished_adjustment", "no_adjustment"]

Bounds = tuple[FloatArray, FloatArray]

_FINEST = 1e-6
"""Grids are refined down to this unit."""
_HAIR = 1e-12
"""Share of its value by which a cell beside a bound, or zero, counts as being there."""
_BLURRED = 1e-6
"""Share of its value by which a small cell may be moved so that its relations hold."""
_REFUSED = (
    "the table that was found does not stand its own check: its values and levels are of sizes too different, or "
    "the time was too short, to meet all relations, bounds and levels."
)


@dataclass(kw_only=True, eq=False)
class Task:
    """What is to be done, and what is known so far."""

    original: Table
    """The table that is to be protected."""
    table: Table
    """The same with the cells fixed that are to be kept."""
    distance: Distance
    need: Need
    """What the levels ask for; with the surplus once it is drawn."""
    surplus: float
    """How wide the possible values of a cell shall be, relative to its levels together."""
    noise: float
    """Share of its value by which a cell may be moved at random, besides."""
    secret_senses: bool
    unit: float
    """Published values are multiples of this; 0 when they may be any numbers."""
    limits: Limits
    adjuster: Adjuster
    """The reduced structure."""
    share: float = 0.0
    """The surplus that is asked for at the moment."""
    options: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def immovable(self) -> bool:
        """Whether a cell that must move cannot, whichever way."""
        return bool((self.need.cells & self.adjuster.reduction.determined).any())

    def draw(self) -> Iterator[Need]:
        """Draw the surplus of each cell; when that leaves no table half of it, then none."""
        asked = self.need
        self._refine(asked)
        for share in (self.surplus, self.surplus / 2.0, 0.0) if self.surplus > 0 else (0.0,):
            self.need = adjustment_with_surplus(
                self.table, asked, share, self.unit, self.limits.seed, secret_senses=self.secret_senses
            )
            self.share = share
            yield self.need

    def _refine(self, asked: Need) -> None:
        """Take a finer grid where the known bounds, which need not lie on it, leave a cell no multiple."""
        while self.unit > _FINEST and not self.table.integer:
            on_grid = adjustment_with_surplus(self.table, asked, 0.0, self.unit, self.limits.seed, secret_senses=False)
            if not (on_grid.stuck & ~asked.stuck).any():
                break
            self.unit /= 10.0
            self.options["unit"] = self.unit

    def bounds(self, up: BoolArray) -> Bounds:
        """Bounds of the movements with these senses: on the grid when only that is published."""
        must, (low, high) = self.need.cells & ~self.table.fixed, room_to_adjust(self.table)
        return self._on_grid(np.where(must & up, self.need.upper, low), np.where(must & ~up, -self.need.lower, high))

    @property
    def room(self) -> Bounds:
        """Bounds of the movements before senses are chosen: of those that can be published."""
        return self._on_grid(*room_to_adjust(self.table))

    def _on_grid(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the outermost movements on the grid between two bounds."""
        if not self.unit:
            return low, high
        low, high = np.ceil(in_decimal_units(low, self.unit) - 1e-7), np.floor(in_decimal_units(high, self.unit) + 1e-7)
        return from_decimal_units(low, self.unit), from_decimal_units(high, self.unit)

    def closest(self, bounds: Bounds) -> Closest:
        """Return the closest movement within the bounds."""
        return self.adjuster.solve(Target(*bounds, self.distance), deadline=self.limits.last_word)

    def release(self, **known: Any) -> Adjustment:
        """Return a release of the task, with what is known of it."""
        return Adjustment(
            table=self.original, details=self.details, options=self.options, seconds=self.seconds, **known
        )


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class FoundMovement:
    """The closest movement of a task, and how it came to be."""

    up: BoolArray
    closest: Closest
    bounds: Bounds
    note: str = ""
    bound: float | None = None
    """That of the closest movement unless given."""
    in_time: bool = True
    instead: tuple[Adjuster, Distance] | None = None
    """The structure and prices, when they are not the task's."""


def finished_adjustment(task: Task, it: FoundMovement) -> Adjustment:
    """Turn what was found into a release; only what is proven is called optimal."""
    table, found, bounds = task.table, it.closest, it.bounds
    bound = found.bound if it.bound is None else it.bound
    task.details |= {"iterations": found.iterations}
    adjuster, prices = it.instead or (task.adjuster, task.distance)
    if task.unit:
        whole = _adjustment_on_grid(task, found, bounds, adjuster, prices)
        if whole is None:
            numbers = "whole numbers" if task.unit == 1 else f"multiples of {task.unit:g}"
            text = f"no table in {numbers}, the grid of the original values, was found near the closest one."
            return no_adjustment(task, text, status=Status.TIME_LIMIT)
        whole = _adjustment_disturbed(
            task, adjuster, whole, tuple(in_decimal_units(side, task.unit) for side in bounds)
        )
        z = from_decimal_units(whole, task.unit)
        values = from_decimal_units(np.rint(in_decimal_units(table.values, task.unit)) + whole, task.unit)
    else:
        z = _adjustment_pulled_inside(table, _adjustment_disturbed(task, adjuster, found.z, bounds))
        # beside thousands of millions, what is left of a small cell's relation is more than the cell's own digits
        values = reconciled_additive_values(
            _adjusted_values(table, z), table.relations, table.rhs, _BLURRED, table.fixed
        )
    objective = task.distance.value(z)
    release = task.release(
        status=_status_of_adjustment(task, found, objective, bound, in_time=it.in_time),
        objective=objective,
        bound=min(bound, objective),
        values=values,
        internal=_internals_of_adjustment(task, it.up, found),
        explanation=_remarks_on_adjustment(task, it.note),
    )
    with suppress(ReleaseError):
        if release.audit().unsafe == 0:
            return release
    return no_adjustment(task, _REFUSED, status=Status.TIME_LIMIT)


def _adjustment_on_grid(
    task: Task, found: Closest, bounds: Bounds, adjuster: Adjuster, d: Distance
) -> FloatArray | None:
    """Return the closest movement in units of the grid, or None."""
    unit = task.unit
    distance = Distance(absolute=d.absolute * unit, square=d.square * unit**2, largest=d.largest * unit, group=d.group)
    target = Target(in_decimal_units(bounds[0], unit), in_decimal_units(bounds[1], unit), distance)
    near, limits = in_decimal_units(found.z, unit), task.limits
    return whole_adjustment(adjuster, target, near, bound=found.bound, gap=limits.gap, deadline=limits.last_word)


def _adjustment_disturbed(task: Task, adjuster: Adjuster, z: FloatArray, bounds: tuple[FloatArray, ...]) -> FloatArray:
    """Return the movement with the noise that was asked for, in the units it comes in."""
    if not task.noise:
        return z
    basis, most = adjuster.reduction.basis, task.noise * np.abs(task.table.values)
    if task.unit:
        basis, most = whole_steps_of_adjustment(basis)[0], in_decimal_units(most, task.unit)
    rng = np.random.default_rng([task.limits.seed, 1])
    return z if basis is None else with_noise(basis, z, bounds, most, rng, whole=task.unit > 0)


def _adjustment_pulled_inside(table: Table, z: FloatArray) -> FloatArray:
    """Return a movement that leaves no known bound by a solver's tolerance: all of it a little shorter, sums hold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(z > 0, table.ub - table.values, np.where(z < 0, table.values - table.lb, np.inf)) / np.abs(z)
    least = float(share.min(initial=1.0))
    return z * least if LEVEL_LOOKED_FOR <= least < 1.0 - SAME_VALUE else z


def _adjusted_values(table: Table, z: FloatArray) -> FloatArray:
    """Return the published values: the true one where only rounding moved a cell, never outside its bounds by that."""
    T = abs(table.relations)
    size, eps = T @ np.abs(table.values), 16.0 * float(np.finfo(np.float64).eps)
    # a cell is put back by no more than what the smallest of its relations does not notice: it may stand beside 1e12
    smallest = np.full(table.n_cells, np.inf)
    np.minimum.at(smallest, T.indices, np.repeat(size, np.diff(T.indptr)))
    still = eps * np.where(np.isfinite(smallest), smallest, np.abs(table.values))
    x = np.where(np.abs(z) <= still, table.values, table.values + z)
    # beside zeros what rounding left of a cell above a bound or zero would break a relation: 0 = 0 + 4e-11
    for place in (table.lb, table.ub, np.zeros(table.n_cells)):
        beside = np.abs(x - place) <= _HAIR * np.abs(table.values)
        nearer = np.abs(place - table.values) < np.abs(x - table.values)  # a level may be as small as this
        x = np.where(beside & ~(nearer & table.sensitive), place, x)
    noise = eps * (T.T @ size + np.abs(table.values))
    inside = np.clip(x, table.lb, table.ub)
    return np.where(np.abs(inside - x) <= noise, inside, x)


def _remarks_on_adjustment(task: Task, note: str) -> str:
    """Return what a reader must know of the result."""
    if not task.need.cells.any():
        return "no cell needs protection: this is the table itself."
    if not task.share < task.surplus:
        return note
    left = "half of the surplus" if task.share else "no surplus"
    more = f"the sensitive cells have {left}: with all of it no table satisfies the relations and bounds."
    return f"{note} {more}".strip()


def _status_of_adjustment(task: Task, found: Closest, objective: float, bound: float, *, in_time: bool) -> Status:
    if "flipped" in task.details or task.share < task.surplus:  # the closest table, but not of what was asked for
        return Status.FEASIBLE
    close = max(1e-7, task.limits.gap if task.unit or "nodes" in task.details else 0.0)
    if found.proven and objective - bound <= close * objective:
        return Status.OPTIMAL
    return Status.FEASIBLE if in_time else Status.TIME_LIMIT


def _internals_of_adjustment(task: Task, up: BoolArray, found: Closest) -> dict[str, Any]:
    """What made the release, cell by cell."""
    out = {"sense": np.where(task.need.cells, np.where(up, "upper", "lower"), "")}
    weights = {kind: getattr(task.distance, kind) for kind in ("absolute", "square", "largest")}
    out |= {f"{kind}_weight": weight for kind, weight in weights.items() if weight.any()}
    return out | {"lower_multiplier": found.lower, "upper_multiplier": found.upper}


def no_adjustment(task: Task, text: str, *, status: Status = Status.INFEASIBLE) -> Adjustment:
    """Return a release without a table, and why there is none."""
    return task.release(status=status, objective=math.nan, values=np.full(task.table.n_cells, np.nan), explanation=text)
