"""What must be adjusted, and the release that a movement becomes once it passes its own check."""

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
from cellguard._engine.numbers.decimals import convert_from_units, convert_to_units
from cellguard._tolerances import LEVEL_LOOKED_FOR, SAME_VALUE
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import ReleaseError
from cellguard.methods.adjust.change_limit import ChangeLimit
from cellguard.methods.adjust.noise import add_noise
from cellguard.methods.adjust.senses import Need, add_surplus, compute_slack
from cellguard.methods.adjust.whole import find_whole_movement, scale_columns_to_whole
from cellguard.methods.keys import draw_for_table
from cellguard.methods.limits import Limits
from cellguard.model.key import Key
from cellguard.model.linked.reconcile import reconcile_additively
from cellguard.model.table import Table
from cellguard.release.release import Adjustment, Status

__all__ = ["Bounds", "FoundMovement", "Task", "build_empty_release", "build_release"]

Bounds = tuple[FloatArray, FloatArray]

_FINEST = 1e-6
"""Grids are refined down to this unit."""
_HAIR = 1e-12
"""Share of its value by which a cell beside a bound, or zero, counts as being there."""
_BLURRED = 1e-6
"""Share of its value by which a small cell may be moved so that its relations hold."""
ACCEPTED_MEAN_CHANGE = 0.05
"""Mean change of cells that are not sensitive, as a share of the value, beyond which a release says that it is far off.

On CSPLIB and the demonstration it is 0.2 to 2% with default options."""
_REFUSED = (
    "the table that was found does not pass its own check: its values and levels are of sizes too different, or "
    "the time was too short, to meet all relations, bounds and levels."
)


@dataclass(kw_only=True, eq=False)
class Task:
    """What must be done, and what is known so far."""

    original: Table
    """The table to protect."""
    table: Table
    """The same table, with the cells to keep fixed."""
    distance: Distance
    need: Need
    """What the levels require; with the surplus once it is drawn."""
    surplus: float
    """Required width of the possible values of a cell, relative to its levels together."""
    noise: float
    """Share of its value by which a cell may also be moved at random."""
    secret_senses: bool
    """Whether a key decides the senses."""
    unit: float
    """Published values are multiples of this; 0 when they may be any numbers."""
    limits: Limits
    key: Key
    """The secret of senses, surplus and noise."""
    adjuster: Adjuster
    """The reduced structure."""
    solver: str = "interior"
    """Which method finds the closest movement."""
    max_change: float | None = None
    """Largest change of cells that are not sensitive, as a share of the value; None if there is no limit."""
    share: float = 0.0
    """The share of the surplus that is required at the moment."""
    public: BoolArray | None = None
    """Cells whose sense the table alone decides; None unless a key drew the others."""
    limit: ChangeLimit | None = None
    """The limit of changes that holds at the moment."""
    options: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def immovable(self) -> bool:
        """Whether a cell that must move can go neither way."""
        return bool((self.need.cells & self.adjuster.reduction.determined).any())

    def draw(self) -> Iterator[Need]:
        """Draw the surplus of each cell; halve it if it leaves no table, and then drop it."""
        asked, secret = self.need, self.need.cells if self.secret_senses else None
        self.refine(asked)
        for share in self.list_shares():
            self.need = add_surplus(self.table, asked, share, self.unit, self.key, secret=secret)
            self.share = share
            yield self.need

    def list_shares(self) -> tuple[float, ...]:
        """Return the shares of the surplus that are tried one after the other."""
        return (self.surplus, self.surplus / 2.0, 0.0) if self.surplus > 0 else (0.0,)

    def refine(self, asked: Need) -> None:
        """Use a finer grid if the known bounds, which need not lie on it, leave a cell no multiple."""
        while self.unit > _FINEST and not self.table.integer:
            on_grid = add_surplus(self.table, asked, 0.0, self.unit, None)
            if not (on_grid.stuck & ~asked.stuck).any():
                break
            self.unit /= 10.0
            self.options["unit"] = self.unit

    def compute_bounds(self, up: BoolArray) -> Bounds:
        """Return the bounds of the movements with these senses; on the grid if only that is published."""
        must, (low, high) = self.need.cells & ~self.table.fixed, self._slack
        return self._round_inward(
            np.where(must & up, self.need.upper, low), np.where(must & ~up, -self.need.lower, high)
        )

    @property
    def movement_bounds(self) -> Bounds:
        """Bounds of the publishable movements before senses are chosen."""
        return self._round_inward(*self._slack)

    @property
    def _slack(self) -> Bounds:
        """How far the known bounds and the limit of changes let each cell go."""
        low, high = compute_slack(self.table)
        if self.limit is None:
            return low, high
        return np.maximum(low, -self.limit.most), np.minimum(high, self.limit.most)

    def _round_inward(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the outermost movements on the grid between two bounds."""
        if not self.unit:
            return low, high
        low, high = np.ceil(convert_to_units(low, self.unit) - 1e-7), np.floor(convert_to_units(high, self.unit) + 1e-7)
        return convert_from_units(low, self.unit), convert_from_units(high, self.unit)

    def find_closest(self, bounds: Bounds) -> Closest:
        """Return the closest movement within the bounds."""
        target = Target(*bounds, self.distance)
        return self.adjuster.solve(target, deadline=self.limits.last_word, solver=self.solver)

    def release(self, **known: Any) -> Adjustment:
        """Return a release of the task, with what is known about it."""
        return Adjustment(
            table=self.original, details=self.details, options=self.options, seconds=self.seconds, **known
        )


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class FoundMovement:
    """The closest movement of a task, and how it was found."""

    up: BoolArray
    closest: Closest
    bounds: Bounds
    note: str = ""
    bound: float | None = None
    """By default that of the closest movement."""
    in_time: bool = True
    instead: tuple[Adjuster, Distance] | None = None
    """The structure and prices, if they are not the task's."""


def build_release(task: Task, it: FoundMovement) -> Adjustment:
    """Build a release from what was found; call it optimal only if that is proven."""
    table, found, bounds = task.table, it.closest, it.bounds
    bound = found.bound if it.bound is None else it.bound
    task.details |= {"iterations": found.iterations}
    adjuster, prices = it.instead or (task.adjuster, task.distance)
    if task.unit:
        whole = _move_to_grid(task, found, bounds, adjuster, prices)
        if whole is None:
            numbers = "whole numbers" if task.unit == 1 else f"multiples of {task.unit:g}"
            text = f"no table in {numbers}, the grid of the original values, was found near the closest one."
            return build_empty_release(task, text, status=Status.TIME_LIMIT)
        whole = _add_noise(task, adjuster, whole, tuple(convert_to_units(side, task.unit) for side in bounds))
        z = convert_from_units(whole, task.unit)
        values = convert_from_units(np.rint(convert_to_units(table.values, task.unit)) + whole, task.unit)
    else:
        z = _pull_inside_bounds(table, _add_noise(task, adjuster, found.z, bounds))
        # next to values of billions, the residual of a small cell's relation exceeds the cell's own digits
        values = reconcile_additively(
            _compute_published_values(table, z), table.relations, table.rhs, _BLURRED, table.fixed
        )
    objective = task.distance.compute_value(z)
    release = task.release(
        status=_determine_status(task, found, objective, bound, in_time=it.in_time),
        objective=objective,
        bound=min(bound, objective),
        values=values,
        internal=_collect_internals(task, it.up, found),
        explanation=_write_remarks(task, it.note, values - table.values),
    )
    with suppress(ReleaseError):
        if release.audit().unsafe == 0:
            return release
    return build_empty_release(task, _REFUSED, status=Status.TIME_LIMIT)


def _move_to_grid(task: Task, found: Closest, bounds: Bounds, adjuster: Adjuster, d: Distance) -> FloatArray | None:
    """Return the closest movement in units of the grid, or None."""
    unit = task.unit
    distance = Distance(absolute=d.absolute * unit, square=d.square * unit**2, largest=d.largest * unit, group=d.group)
    target = Target(convert_to_units(bounds[0], unit), convert_to_units(bounds[1], unit), distance)
    near, limits = convert_to_units(found.z, unit), task.limits
    return find_whole_movement(adjuster, target, near, bound=found.bound, gap=limits.gap, deadline=limits.last_word)


def _add_noise(task: Task, adjuster: Adjuster, z: FloatArray, bounds: tuple[FloatArray, ...]) -> FloatArray:
    """Return the movement with the required noise, in the units of the values."""
    if not task.noise:
        return z
    basis, most = adjuster.reduction.basis, task.noise * np.abs(task.table.values)
    if task.unit:
        basis, most = scale_columns_to_whole(basis)[0], convert_to_units(most, task.unit)
    rng = draw_for_table(task.key, "adjust noise", task.table)
    return z if basis is None else add_noise(basis, z, bounds, most, rng, whole=task.unit > 0)


def _pull_inside_bounds(table: Table, z: FloatArray) -> FloatArray:
    """Shorten the whole movement slightly, so that it exceeds no known bound by a solver's tolerance and sums hold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(z > 0, table.ub - table.values, np.where(z < 0, table.values - table.lb, np.inf)) / np.abs(z)
    least = float(share.min(initial=1.0))
    return z * least if LEVEL_LOOKED_FOR <= least < 1.0 - SAME_VALUE else z


def _compute_published_values(table: Table, z: FloatArray) -> FloatArray:
    """Return the published values: the true value if only rounding moved a cell, and never outside its bounds."""
    T = abs(table.relations)
    size, eps = T @ np.abs(table.values), 16.0 * float(np.finfo(np.float64).eps)
    # move a cell back by at most the tolerance of its smallest relation: another cell may be 1e12
    smallest = np.full(table.n_cells, np.inf)
    np.minimum.at(smallest, T.indices, np.repeat(size, np.diff(T.indptr)))
    still = eps * np.where(np.isfinite(smallest), smallest, np.abs(table.values))
    x = np.where(np.abs(z) <= still, table.values, table.values + z)
    # next to zeros, a rounding residual above a bound or zero would break a relation: 0 = 0 + 4e-11
    for place in (table.lb, table.ub, np.zeros(table.n_cells)):
        beside = np.abs(x - place) <= _HAIR * np.abs(table.values)
        nearer = np.abs(place - table.values) < np.abs(x - table.values)  # a level may be equally small
        x = np.where(beside & ~(nearer & table.sensitive), place, x)
    noise = eps * (T.T @ size + np.abs(table.values))
    inside = np.clip(x, table.lb, table.ub)
    return np.where(np.abs(inside - x) <= noise, inside, x)


def _write_remarks(task: Task, note: str, z: FloatArray) -> str:
    """Return the remarks that a reader of the result needs, and record what they are about."""
    if not task.need.cells.any():
        return "no cell needs protection: this is the table itself."
    notes = [note] if note else []
    if task.share < task.surplus:
        left = "half of the surplus" if task.share else "no surplus"
        notes.append(f"the sensitive cells have {left}: with all of it no table satisfies the relations and bounds.")
    size = np.abs(task.table.values)
    open_ = ~task.need.cells & (size > 0)
    change = np.abs(z)[open_] / size[open_]
    if task.max_change is not None:
        beyond = int((change > task.max_change * (1 + 1e-9)).sum() + ((z != 0) & (size == 0) & ~task.need.cells).sum())
        task.details["beyond_max_change"] = beyond
        if beyond:
            notes.append(
                f"{beyond} cells that are not sensitive change by more than {100 * task.max_change:g}%: no table that "
                "was found keeps all of them within that limit."
            )
    task.details["far_from_truth"] = far = bool(change.mean() > ACCEPTED_MEAN_CHANGE) if len(change) else False
    if far:
        notes.append(
            f"this table is far from the truth: cells that are not sensitive change by more than "
            f"{100 * ACCEPTED_MEAN_CHANGE:g}% on average. Consider lower levels, fewer codes, or another method."
        )
    return " ".join(notes)


def _determine_status(task: Task, found: Closest, objective: float, bound: float, *, in_time: bool) -> Status:
    if "flipped" in task.details or task.share < task.surplus:  # closest, but not for the original requirements
        return Status.FEASIBLE
    close = max(1e-7, task.limits.gap if task.unit or "nodes" in task.details else 0.0)
    if found.proven and objective - bound <= close * objective:
        return Status.OPTIMAL
    return Status.FEASIBLE if in_time else Status.TIME_LIMIT


def _collect_internals(task: Task, up: BoolArray, found: Closest) -> dict[str, Any]:
    """Return what made the release, cell by cell."""
    out: dict[str, Any] = {"sense": np.where(task.need.cells, np.where(up, "upper", "lower"), "")}
    if task.public is not None:
        out["public_sense"] = task.public
    weights = {kind: getattr(task.distance, kind) for kind in ("absolute", "square", "largest")}
    out |= {f"{kind}_weight": weight for kind, weight in weights.items() if weight.any()}
    return out | {"lower_multiplier": found.lower, "upper_multiplier": found.upper}


def build_empty_release(task: Task, text: str, *, status: Status = Status.INFEASIBLE) -> Adjustment:
    """Return a release without a table, with the reason."""
    return task.release(status=status, objective=math.nan, values=np.full(task.table.n_cells, np.nan), explanation=text)
