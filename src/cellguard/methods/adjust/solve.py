"""From a task to a release: with given or chosen senses, and what to do if they leave no table.

In that case senses are flipped, or totals may change (castro2004 sections 2 and 5).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses, choose_directions
from cellguard._engine.closest.distance import Distance, Target
from cellguard._types import BoolArray
from cellguard.methods.adjust.change_limit import propose_change_limits
from cellguard.methods.adjust.explain import explain_no_adjustment
from cellguard.methods.adjust.key_senses import KeySenses, draw_senses_by_key
from cellguard.methods.adjust.norms import find_totals
from cellguard.methods.adjust.senses import Need, add_surplus, choose_senses
from cellguard.methods.adjust.task import Bounds, FoundMovement, Task, build_empty_release, build_release
from cellguard.model.table import Table
from cellguard.release.release import Adjustment, Status

__all__ = ["adjust_with_given_senses", "adjust_with_key_senses", "adjust_with_optimal_senses"]

DRAW_TIME_SHARE = 0.5
"""Share of the time left that all draws of senses may take."""
_UNCHECKED = "the time was too short to check what the limit of changes tells an attacker."
_PRICE = 1e3
"""A fixed cell costs this many times more to change than the most expensive other one."""


def adjust_with_given_senses(task: Task, senses: str | ArrayLike, repair: str | None) -> Adjustment:
    """Adjust with given senses; repair or explain when they leave no table."""
    up = choose_senses(task.table, task.need, senses, task.key, task.adjuster.reduction)
    for _ in task.draw():
        bounds = task.compute_bounds(up)
        found = task.find_closest(bounds)
        if found.feasible:
            return build_release(task, FoundMovement(up, found, bounds))
        if repair == "senses":
            release = _adjust_with_flips(task, up)
            if release is not None:
                return release
    text, why = explain_no_adjustment(
        task.table, task.need, up, bounds, time_limit_s=task.limits.deadline.get_seconds_at_least()
    )
    task.details |= why
    return (
        _adjust_with_changed_totals(task, up, bounds, text)
        if repair == "relations"
        else build_empty_release(task, text, status=_get_failure_status(task, repair))
    )


def _get_failure_status(task: Task, repair: str | None) -> Status:
    """Return the status when no table was found: an unfinished search of flips proves nothing."""
    late = repair == "senses" and task.limits.deadline.passed and not task.immovable and not task.need.stuck.any()
    return Status.TIME_LIMIT if late else Status.INFEASIBLE


def adjust_with_key_senses(task: Task, repair: str | None) -> Adjustment:
    """Adjust with senses that a key draws among those that keep the table close."""
    if task.immovable or not task.need.cells.any():
        return adjust_with_given_senses(task, "key", repair)
    asked = task.need
    task.refine(asked)
    until = task.limits.deadline.take_share(DRAW_TIME_SHARE)
    for share in task.list_shares():
        task.share = share
        widest = add_surplus(task.table, asked, share, task.unit, None, secret=asked.cells)
        for limit in propose_change_limits(task.table, asked, task.max_change, task.unit):
            task.need, task.limit = widest, limit
            search = Senses(task.adjuster, task.movement_bounds, widest.lower, widest.upper, task.distance)
            drawn = draw_senses_by_key(task.table, asked, search, task.key, until)
            release = None if drawn is None else _adjust_as_drawn(task, asked, drawn)
            if release is not None:
                return release
            if until.passed:
                break
        if until.passed:
            break
    task.need, task.limit = asked, None
    return adjust_with_given_senses(task, "key", repair)


def _adjust_as_drawn(task: Task, asked: Need, drawn: KeySenses) -> Adjustment | None:
    """Return a release with drawn senses; None if there is none, or the limit of changes would reveal a cell."""
    secret = asked.cells & ~drawn.public
    for mask in (secret, asked.cells) if drawn.public.any() else (secret,):
        task.need = add_surplus(task.table, asked, task.share, task.unit, task.key, secret=mask)
        bounds = task.compute_bounds(drawn.up)
        found = task.find_closest(bounds)
        if found.feasible:
            break
    task.public = asked.cells & ~mask
    before = dict(task.details)
    task.details |= {"bits": drawn.bits, "public_senses": int(drawn.public.sum())}
    if found.feasible:
        release = build_release(task, FoundMovement(drawn.up, found, bounds))
    else:  # a draw that the time cut short
        flipped = _adjust_with_flips(task, drawn.up)
        release = build_empty_release(task, "") if flipped is None else flipped
        lost = task.details.get("flipped", 0) * (1 + math.log2(max(2, int(asked.cells.sum()))))
        task.details["bits"] = max(0, drawn.bits - math.ceil(lost))
    if release.published and task.limit is not None:
        left = 0.5 * task.limits.last_word.get_seconds_at_least()
        told = task.limit.is_disclosive(task.table, release.values, left)
        if told is None:
            return replace(release, explanation=f"{release.explanation} {_UNCHECKED}".strip())
        if not told:
            return release
    task.public = None
    task.details.clear()
    task.details |= before
    return None


def adjust_with_optimal_senses(task: Task) -> Adjustment:
    """Choose the senses, too (baena2018 (6))."""
    if task.immovable or not task.need.cells.any():
        return adjust_with_given_senses(task, "upper", None)  # nothing to choose
    for need in task.draw():
        search = Senses(
            task.adjuster, task.movement_bounds, need.lower, need.upper, task.distance, seed=task.limits.seed
        )
        choice = choose_directions(
            search, time_limit_s=task.limits.deadline.get_seconds_at_least(), gap=task.limits.gap
        )
        task.details |= {"requests": len(search.mover), "nodes": choice.nodes}
        if math.isfinite(choice.objective):
            bounds = task.compute_bounds(choice.up)
            found = task.find_closest(bounds)
            if found.feasible:
                bound = found.bound if choice.bound >= choice.objective * (1 - 1e-6) else choice.bound
                return build_release(task, FoundMovement(choice.up, found, bounds, bound=bound, in_time=choice.in_time))
    if choice.bound == math.inf:
        return build_empty_release(task, "no senses leave a table that satisfies the relations and the bounds.")
    return build_empty_release(task, "no senses were found in time that leave a table.", status=Status.TIME_LIMIT)


# ---------------------------------------------------------------------- repairs


def _adjust_with_flips(task: Task, up: BoolArray) -> Adjustment | None:
    """Adjust with few senses flipped, the quickest to find first; None if none were found that leave a table."""
    if task.immovable:  # such a cell can move neither way
        return None
    senses = Senses(task.adjuster, task.movement_bounds, task.need.lower, task.need.upper, task.distance)
    for other in senses.propose_near(up, task.limits.deadline):
        bounds = task.compute_bounds(other)
        found = task.find_closest(bounds)
        if found.feasible:
            changed = int((task.need.cells & (other != up)).sum())
            task.details["flipped"] = changed
            note = f"{changed} senses were flipped: "
            note += "no table satisfies all relations and bounds with the original senses."
            return build_release(task, FoundMovement(other, found, bounds, note))
    return None


def _adjust_with_changed_totals(task: Task, up: BoolArray, bounds: Bounds, text: str) -> Adjustment:
    """Adjust with totals that may change at a large price: first the fixed ones, then bounded ones beyond bounds."""
    table = task.table
    adjuster = Adjuster(table.relations)
    bounded = np.isfinite(table.lb) | np.isfinite(table.ub)
    for unbounded in (
        np.zeros(table.n_cells, bool),
        find_totals(table) & ~table.fixed & ~table.sensitive & bounded,
    ):
        target = _free_fixed_cells(table, bounds, task.distance, unbounded)
        found = adjuster.solve(target, deadline=task.limits.last_word)
        if found.feasible:
            break
    else:
        return build_empty_release(task, text)
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
    if beyond.any():  # the release belongs to the table without these bounds; the others hold
        widened = {"lb": np.where(beyond, -np.inf, table.lb), "ub": np.where(beyond, np.inf, table.ub)}
        task.original, task.table = task.original.with_(**widened), table.with_(**widened)
        kept = unbounded & ~beyond
        freed = np.where(kept, bounds[0], freed[0]), np.where(kept, bounds[1], freed[1])
    # nothing is proven about the distance of the repaired table
    note = f"{' and '.join(notes)}, because {text}"
    return build_release(
        task, FoundMovement(up, found, freed, note, bound=math.nan, instead=(adjuster, target.distance))
    )


def _free_fixed_cells(table: Table, bounds: Bounds, distance: Distance, unbounded: BoolArray) -> Target:
    """Return bounds and prices of the problem in which fixed cells may change too, at a large price.

    A relation whose total is fixed is relaxed by as much as the total changes, and still holds. Totals in `unbounded`
    lose their bounds, at the same price. With a large penalty for changes of margins there is always a table
    (castro2004 section 5), unless inner cells themselves have no slack.
    """
    d, free = distance, ~table.fixed & ~unbounded
    needed = np.maximum(bounds[0], -bounds[1])
    needed = needed[np.isfinite(needed) & (needed > 0)]
    typical = float(np.median(needed)) if len(needed) else 1.0
    marginal = (d.absolute + d.largest + 2.0 * d.square * typical)[free]
    prices = Distance(
        # a price per unit for every norm: only then do cells stay unchanged that need not change
        absolute=np.where(free, d.absolute, _PRICE * max(float(marginal.max(initial=0.0)), 1e-300)),
        square=np.where(free, d.square, 0.0),
        largest=np.where(free, d.largest, 0.0),
        group=d.group,
    )
    low = np.where(table.fixed, np.minimum(table.lb - table.values, 0.0), bounds[0])
    high = np.where(table.fixed, np.maximum(table.ub - table.values, 0.0), bounds[1])
    return Target(np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high), prices)
