"""From a task to a release: senses given or chosen, and what to do when they leave no table.

Then senses are flipped, or totals may change (castro2004 sections 2 and 5).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses, choose_directions
from cellguard._engine.closest.distance import Distance, Target
from cellguard._types import BoolArray
from cellguard.methods.adjust.explain import explain_no_adjustment
from cellguard.methods.adjust.norms import adjustable_totals
from cellguard.methods.adjust.senses import fixed_senses
from cellguard.methods.adjust.task import Bounds, FoundMovement, Task, finished_adjustment, no_adjustment
from cellguard.nouns.release import Adjustment, Status
from cellguard.nouns.table import Table

__all__ = ["with_given_senses", "with_optimal_senses"]

_PRICE = 1e3
"""A fixed cell costs so many times more to change than the most expensive other one."""


def with_given_senses(task: Task, senses: str | ArrayLike, repair: str | None) -> Adjustment:
    """Adjust with given senses; repair or explain when they leave no table."""
    up = fixed_senses(task.table, task.need, senses, task.limits.seed, task.adjuster.reduction)
    for _ in task.draw():
        bounds = task.bounds(up)
        found = task.closest(bounds)
        if found.feasible:
            return finished_adjustment(task, FoundMovement(up, found, bounds))
        if repair == "senses":
            release = _adjusted_with_flips(task, up)
            if release is not None:
                return release
    text, why = explain_no_adjustment(task.table, task.need, up, bounds, time_limit_s=task.limits.deadline.at_least())
    task.details |= why
    return _adjusted_with_changed_totals(task, up, bounds, text) if repair == "relations" else no_adjustment(task, text)


def with_optimal_senses(task: Task) -> Adjustment:
    """Choose the senses, too (baena2018 (6))."""
    if task.immovable or not task.need.cells.any():
        return with_given_senses(task, "upper", None)  # nothing to choose
    for need in task.draw():
        search = Senses(task.adjuster, task.room, need.lower, need.upper, task.distance, seed=task.limits.seed)
        choice = choose_directions(search, time_limit_s=task.limits.deadline.at_least(), gap=task.limits.gap)
        task.details |= {"requests": len(search.mover), "nodes": choice.nodes}
        if math.isfinite(choice.objective):
            bounds = task.bounds(choice.up)
            found = task.closest(bounds)
            if found.feasible:
                bound = found.bound if choice.bound >= choice.objective * (1 - 1e-6) else choice.bound
                return finished_adjustment(
                    task, FoundMovement(choice.up, found, bounds, bound=bound, in_time=choice.in_time)
                )
    if choice.bound == math.inf:
        return no_adjustment(task, "no senses leave a table that satisfies the relations and the bounds.")
    return no_adjustment(task, "no senses were found in time that leave a table.", status=Status.TIME_LIMIT)


# ---------------------------------------------------------------------- repairs


def _adjusted_with_flips(task: Task, up: BoolArray) -> Adjustment | None:
    """Adjust with few senses flipped, the quickest to find first; None when none were found that leave a table."""
    if task.immovable:  # whichever way, such a cell cannot move
        return None
    senses = Senses(task.adjuster, task.room, task.need.lower, task.need.upper, task.distance)
    for other in senses.near(up, task.limits.deadline):
        bounds = task.bounds(other)
        found = task.closest(bounds)
        if found.feasible:
            changed = int((task.need.cells & (other != up)).sum())
            task.details["flipped"] = changed
            note = f"{changed} senses were flipped: "
            note += "no table satisfies all relations and bounds with the senses as they were."
            return finished_adjustment(task, FoundMovement(other, found, bounds, note))
    return None


def _adjusted_with_changed_totals(task: Task, up: BoolArray, bounds: Bounds, text: str) -> Adjustment:
    """Adjust with totals that may change at a large price: the fixed ones, then beyond the bounds of the others."""
    table = task.table
    adjuster = Adjuster(table.relations)
    bounded = np.isfinite(table.lb) | np.isfinite(table.ub)
    for unbounded in (
        np.zeros(table.n_cells, bool),
        adjustable_totals(table) & ~table.fixed & ~table.sensitive & bounded,
    ):
        target = _adjustment_with_cells_freed(table, bounds, task.distance, unbounded)
        found = adjuster.solve(target, deadline=task.limits.last_word)
        if found.feasible:
            break
    else:
        return no_adjustment(task, text)
    freed = target.lower, target.upper
    noise = 1e-6 * np.maximum(1.0, np.abs(table.values))
    x = table.values + found.z
    beyond = (x < table.lb - noise) | (x > table.ub + noise)
    notes = []
    for name, words, cells in (
        ("changed_fixed", "fixed cells were changed", table.fixed & (np.abs(found.z) > noise)),
        ("changed_bounds", "known bounds of totals were given up", beyond),
    ):
        labels = task.details[name] = [table.label(int(i)) for i in np.flatnonzero(cells)]
        if labels:
            more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
            notes.append(f"{words} ({', '.join(labels[:5])}{more})")
    if beyond.any():  # the release is one of the table without these bounds; the others hold
        room = {"lb": np.where(beyond, -np.inf, table.lb), "ub": np.where(beyond, np.inf, table.ub)}
        task.original, task.table = task.original.with_(**room), table.with_(**room)
        kept = unbounded & ~beyond
        freed = np.where(kept, bounds[0], freed[0]), np.where(kept, bounds[1], freed[1])
    # the distance of the repaired table is what it is; nothing is proven about others
    note = f"{' and '.join(notes)}, because {text}"
    return finished_adjustment(
        task, FoundMovement(up, found, freed, note, bound=math.nan, instead=(adjuster, target.distance))
    )


def _adjustment_with_cells_freed(table: Table, bounds: Bounds, distance: Distance, unbounded: BoolArray) -> Target:
    """Return bounds and prices of the problem in which fixed cells may change too, at a large price.

    A relation whose total is fixed is relaxed by as much as the total changes, and still holds. Totals in `unbounded`
    lose their bounds, at the same price: with a large penalty for changes of margins there is always a table
    (castro2004 section 5), unless inner cells themselves have no room.
    """
    d, free = distance, ~table.fixed & ~unbounded
    needed = np.maximum(bounds[0], -bounds[1])
    needed = needed[np.isfinite(needed) & (needed > 0)]
    typical = float(np.median(needed)) if len(needed) else 1.0
    marginal = (d.absolute + d.largest + 2.0 * d.square * typical)[free]
    prices = Distance(
        # a price per unit, whatever the norm: only so cells that need not change do not change at all
        absolute=np.where(free, d.absolute, _PRICE * max(float(marginal.max(initial=0.0)), 1e-300)),
        square=np.where(free, d.square, 0.0),
        largest=np.where(free, d.largest, 0.0),
        group=d.group,
    )
    low = np.where(table.fixed, np.minimum(table.lb - table.values, 0.0), bounds[0])
    high = np.where(table.fixed, np.maximum(table.ub - table.values, 0.0), bounds[1])
    return Target(np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high), prices)
