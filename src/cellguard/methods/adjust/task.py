"""From a task to a release: senses given or chosen, what to do when they leave no table, the check of the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse.linalg  # noqa: F401 - every solve needs it: not loaded while time is counted
from numpy.typing import ArrayLike

from cellguard import _core  # noqa: F401 - for the same reason
from cellguard._engine.clock import Deadline
from cellguard._engine.closest.adjuster import Adjuster, Closest
from cellguard._engine.closest.directions import Choice, Senses, choose
from cellguard._engine.closest.distance import Distance, Target
from cellguard._engine.numbers.decimals import in_units, of_units
from cellguard._types import BoolArray, FloatArray
from cellguard.check import audit as _audit  # noqa: F401 - for the same reason: every release is audited
from cellguard.exceptions import ReleaseError
from cellguard.methods.adjust.explain import explain
from cellguard.methods.adjust.noise import with_noise
from cellguard.methods.adjust.repair import bounded_totals, flipped, room_of, with_cells_freed
from cellguard.methods.adjust.senses import Need, fixed_senses
from cellguard.methods.adjust.surplus import with_surplus
from cellguard.methods.adjust.whole import whole_columns, whole_movement
from cellguard.methods.limits import Limits
from cellguard.nouns.reconcile import additive
from cellguard.nouns.release import Adjustment, Status
from cellguard.nouns.table import Table

__all__ = ["Task", "with_given_senses", "with_optimal_senses"]

Bounds = tuple[FloatArray, FloatArray]

_FINEST = 1e-6
"""Grids are refined down to this unit."""


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
    def left_s(self) -> float:
        """Seconds left for a search."""
        return self.limits.deadline.at_least()

    @property
    def last_moment(self) -> Deadline:
        """When even the solve that turns what a search found into a table must end."""
        return self.limits.last_word

    def draw(self) -> Iterator[Need]:
        """Draw the surplus of each cell; when that leaves no table half of it, then none."""
        asked = self.need
        self._refine(asked)
        for share in (self.surplus, self.surplus / 2.0, 0.0) if self.surplus > 0 else (0.0,):
            self.need = with_surplus(
                self.table, asked, share, self.unit, self.limits.seed, secret_senses=self.secret_senses
            )
            self.share = share
            yield self.need

    def _refine(self, asked: Need) -> None:
        """Take a finer grid where the known bounds, which need not lie on it, leave a cell no multiple."""
        while self.unit > _FINEST and not self.table.integer:
            on_grid = with_surplus(self.table, asked, 0.0, self.unit, self.limits.seed, secret_senses=False)
            if not (on_grid.stuck & ~asked.stuck).any():
                break
            self.unit /= 10.0
            self.options["unit"] = self.unit

    @property
    def less_surplus(self) -> bool:
        """Whether the surplus had to be smaller than what was asked for."""
        return self.share < self.surplus

    def bounds(self, up: BoolArray) -> Bounds:
        """Bounds of the movements with these senses: on the grid when only that is published."""
        low, high = self.need.bounds(self.table, up)
        return self._inside(np.where(self.table.fixed, 0.0, low), np.where(self.table.fixed, 0.0, high))

    @property
    def room(self) -> Bounds:
        """Bounds of the movements before senses are chosen: of those that can be published."""
        return self._inside(*room_of(self.table))

    def _inside(self, low: FloatArray, high: FloatArray) -> Bounds:
        """Return the outermost movements on the grid between two bounds."""
        if not self.unit:
            return low, high
        low, high = np.ceil(in_units(low, self.unit) - 1e-7), np.floor(in_units(high, self.unit) + 1e-7)
        return of_units(low, self.unit), of_units(high, self.unit)

    def closest(self, bounds: Bounds) -> Closest:
        """Return the closest movement within the bounds."""
        return self.adjuster.solve(Target(*bounds, self.distance), deadline=self.last_moment)


# ---------------------------------------------------------------- the ways to a release


def with_given_senses(task: Task, senses: str | ArrayLike, repair: str | None) -> Adjustment:
    """Adjust with given senses; repair or explain when they leave no table."""
    up = fixed_senses(task.table, task.need, senses, task.limits.seed, task.adjuster.reduction)
    for _ in task.draw():
        bounds = task.bounds(up)
        found = task.closest(bounds)
        if found.feasible:
            return _finished(task, _FoundMovement(up, found, bounds))
        if repair == "senses":
            release = _with_flips(task, up)
            if release is not None:
                return release
    text, why = explain(task.table, task.need, up, bounds, time_limit_s=task.left_s)
    task.details |= why
    return _with_changed_totals(task, up, bounds, text) if repair == "relations" else _none(task, text)


def _with_flips(task: Task, up: BoolArray) -> Adjustment | None:
    """Adjust with few senses flipped; None when no senses were found that leave a table."""
    for other in flipped(task.adjuster, task.room, task.need, up, task.distance, task.limits.deadline):
        bounds = task.bounds(other)
        found = task.closest(bounds)
        if found.feasible:
            changed = int((task.need.cells & (other != up)).sum())
            task.details["flipped"] = changed
            note = f"{changed} senses were flipped: "
            note += "no table satisfies all relations and bounds with the senses as they were."
            return _finished(task, _FoundMovement(other, found, bounds, note))
    return None


def _with_changed_totals(task: Task, up: BoolArray, bounds: Bounds, text: str) -> Adjustment:
    """Adjust with totals that may change at a large price: the fixed ones, then beyond the bounds of the others."""
    table = task.table
    adjuster = Adjuster(table.relations)
    for unbounded in (np.zeros(table.n_cells, bool), bounded_totals(table)):
        target = with_cells_freed(table, bounds, task.distance, unbounded)
        found = adjuster.solve(target, deadline=task.last_moment)
        if found.feasible:
            break
    else:
        return _none(task, text)
    freed = target.lower, target.upper
    noise = 1e-6 * np.maximum(1.0, np.abs(table.values))
    x = table.values + found.z
    given_up = {
        "changed_fixed": ("fixed cells were changed", table.fixed & (np.abs(found.z) > noise)),
        "changed_bounds": ("known bounds of totals were given up", (x < table.lb - noise) | (x > table.ub + noise)),
    }
    notes = []
    for name, (words, cells) in given_up.items():
        task.details[name] = [table.label(int(i)) for i in np.flatnonzero(cells)]
        if cells.any():
            notes.append(f"{words} ({_some(task.details[name])})")
    beyond = given_up["changed_bounds"][1]
    if beyond.any():  # the release is one of the table without these bounds; the others hold
        room = {"lb": np.where(beyond, -np.inf, table.lb), "ub": np.where(beyond, np.inf, table.ub)}
        task.original, task.table = task.original.with_(**room), table.with_(**room)
        kept = unbounded & ~beyond
        freed = np.where(kept, bounds[0], freed[0]), np.where(kept, bounds[1], freed[1])
    # the distance of the repaired table is what it is; nothing is proven about others
    note = f"{' and '.join(notes)}, because {text}"
    return _finished(task, _FoundMovement(up, found, freed, note, bound=math.nan, instead=(adjuster, target.distance)))


def _some(labels: list[str]) -> str:
    return ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")


def with_optimal_senses(task: Task) -> Adjustment:
    """Choose the senses, too (baena2018 (6))."""
    if not task.need.cells.any() or (task.need.cells & task.adjuster.reduction.determined).any():
        return with_given_senses(task, "upper", None)  # nothing to choose
    for need in task.draw():
        search = Senses(task.adjuster, task.room, need.lower, need.upper, task.distance, seed=task.limits.seed)
        choice = choose(search, time_limit_s=task.left_s, gap=task.limits.gap)
        task.details |= {"requests": len(search.mover), "nodes": choice.nodes}
        if math.isfinite(choice.objective):
            bounds = task.bounds(choice.up)
            found = task.closest(bounds)
            if found.feasible:
                bound = found.bound if choice.bound >= choice.objective * (1 - 1e-6) else choice.bound
                return _finished(task, _FoundMovement(choice.up, found, bounds, bound=bound, in_time=choice.in_time))
    return _no_choice(task, choice)


# ---------------------------------------------------------------- results


@dataclass(frozen=True, eq=False)
class _FoundMovement:
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


def _finished(task: Task, it: _FoundMovement) -> Adjustment:
    """Turn what was found into a release; only what is proven is called optimal."""
    table, found, bounds = task.table, it.closest, it.bounds
    bound = found.bound if it.bound is None else it.bound
    task.details |= {"iterations": found.iterations}
    adjuster, prices = it.instead or (task.adjuster, task.distance)
    if task.unit:
        whole = _on_grid(task, found, bounds, adjuster, prices)
        if whole is None:
            numbers = "whole numbers" if task.unit == 1 else f"multiples of {task.unit:g}"
            text = f"no table in {numbers}, the grid of the original values, was found near the closest one."
            return _none(task, text, status=Status.TIME_LIMIT)
        whole = _disturbed(task, adjuster, whole, tuple(in_units(side, task.unit) for side in bounds))
        z = of_units(whole, task.unit)
        values = of_units(np.rint(in_units(table.values, task.unit)) + whole, task.unit)
    else:
        z = _disturbed(task, adjuster, found.z, bounds)
        # beside thousands of millions, what is left of a small cell's relation is more than the cell's own digits
        values = additive(_cleaned(table, z), table.relations, table.rhs, _BLURRED, table.fixed)
    objective = task.distance.value(z)
    release = Adjustment(
        table=task.original,
        status=_status(task, found, objective, bound, in_time=it.in_time),
        objective=objective,
        bound=min(bound, objective),
        values=values,
        internal=_internal(task, it.up, found),
        explanation=_remarks(task, it.note),
        details=task.details,
        options=task.options,
        seconds=task.seconds,
    )
    fault = _fault(release)
    return release if not fault else _none(task, fault, status=Status.TIME_LIMIT)


def _on_grid(task: Task, found: Closest, bounds: Bounds, adjuster: Adjuster, d: Distance) -> FloatArray | None:
    """Return the closest movement in units of the grid, or None."""
    unit = task.unit
    distance = Distance(absolute=d.absolute * unit, square=d.square * unit**2, largest=d.largest * unit, group=d.group)
    target = Target(in_units(bounds[0], unit), in_units(bounds[1], unit), distance)
    near = in_units(found.z, unit)
    return whole_movement(adjuster, target, near, bound=found.bound, gap=task.limits.gap, deadline=task.last_moment)


def _disturbed(task: Task, adjuster: Adjuster, z: FloatArray, bounds: tuple[FloatArray, ...]) -> FloatArray:
    """Return the movement with the noise that was asked for, in the units it comes in."""
    if not task.noise:
        return z
    basis = adjuster.reduction.basis
    most = task.noise * np.abs(task.table.values)
    if task.unit:
        columns, _ = whole_columns(basis)
        if columns is None:
            return z
        basis, most = columns, in_units(most, task.unit)
    rng = np.random.default_rng([task.limits.seed, 1])
    return with_noise(basis, z, bounds, most, rng, whole=task.unit > 0)


_HAIR = 1e-12
"""Share of its value by which a cell beside a bound, or zero, counts as being there."""

_BLURRED = 1e-6
"""Share of its value by which a small cell may be moved so that its relations hold."""


def _cleaned(table: Table, z: FloatArray) -> FloatArray:
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


def _remarks(task: Task, note: str) -> str:
    """Return what a reader must know of the result."""
    if not task.need.cells.any():
        return "no cell needs protection: this is the table itself."
    if not task.less_surplus:
        return note
    left = "half of the surplus" if task.share else "no surplus"
    more = f"the sensitive cells have {left}: with all of it no table satisfies the relations and bounds."
    return f"{note} {more}".strip()


def _fault(release: Adjustment) -> str:
    """Say why the audit would refuse the release; nothing when it accepts it."""
    try:
        if release.audit().unsafe == 0:
            return ""
    except ReleaseError:
        pass
    return (
        "the table that was found does not stand its own check: its values and levels are of sizes too different, or "
        "the time was too short, to meet all relations, bounds and levels."
    )


def _status(task: Task, found: Closest, objective: float, bound: float, *, in_time: bool) -> Status:
    if "flipped" in task.details or task.less_surplus:  # the closest table, but not of what was asked for
        return Status.FEASIBLE
    close = max(1e-7, task.limits.gap if task.unit or "nodes" in task.details else 0.0)
    if found.proven and objective - bound <= close * objective:
        return Status.OPTIMAL
    return Status.FEASIBLE if in_time else Status.TIME_LIMIT


def _internal(task: Task, up: BoolArray, found: Closest) -> dict[str, Any]:
    """What made the release, cell by cell."""
    d = task.distance
    out = {"sense": np.where(task.need.cells, np.where(up, "upper", "lower"), "")}
    kinds = {"absolute": d.absolute, "square": d.square, "largest": d.largest}
    out |= {f"{name}_weight": weight for name, weight in kinds.items() if weight.any()}
    return out | {"lower_multiplier": found.lower, "upper_multiplier": found.upper}


def _none(task: Task, text: str, *, status: Status = Status.INFEASIBLE) -> Adjustment:
    return Adjustment(
        table=task.original,
        status=status,
        objective=math.nan,
        values=np.full(task.table.n_cells, np.nan),
        explanation=text,
        details=task.details,
        options=task.options,
        seconds=task.seconds,
    )


def _no_choice(task: Task, choice: Choice) -> Adjustment:
    if choice.bound == math.inf:
        return _none(task, "no senses leave a table that satisfies the relations and the bounds.")
    return _none(task, "no senses were found in time that leave a table.", status=Status.TIME_LIMIT)
