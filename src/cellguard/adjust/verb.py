"""The verb: options in, an :class:`~cellguard.release.Adjustment` out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine import clock
from cellguard._engine.adjuster import Closest, adjuster_of
from cellguard._engine.distance import Distance
from cellguard._engine.senses import Choice, Senses, choose
from cellguard._engine.threads import on_one_blas_thread
from cellguard.adjust.explain import explain
from cellguard.adjust.norms import distance_of
from cellguard.adjust.repair import REPAIRS, flipped, room_of, with_fixed_cells_freed
from cellguard.adjust.senses import Need, fixed_senses, needs
from cellguard.exceptions import InputError, ReleaseError, UnknownCodeError, did_you_mean
from cellguard.publication import takes_publications
from cellguard.release import Adjustment, Status
from cellguard.table import BoolArray, FloatArray, Table

__all__ = ["adjust"]


@takes_publications
@on_one_blas_thread
def adjust(
    table: Table,
    *,
    norm: str = "l2",
    weights: str | ArrayLike = "inverse",
    senses: str | ArrayLike = "upper",
    omega: float = 0.99,
    squares: ArrayLike | None = None,
    square_weights: str | ArrayLike | None = None,
    integer: bool | None = None,
    repair: str | None = "senses",
    time_limit_s: float = 60.0,
    gap: float = 1e-3,
    seed: int = 0,
) -> Adjustment:
    """Find the closest additive table in which every sensitive cell is at least its level away from the truth.

    Parameters
    ----------
    table
        What is to be protected.
    norm
        How distance is measured: ``l1`` the sum of weighted changes, ``l2`` of weighted squares,
        ``linf`` the largest weighted change of the sensitive cells plus that of the others, ``l12``
        a mixture of the first two (castro2004 (4), (5), (6), (10)).
    weights
        One number per cell, or a kind: ``inverse`` (1/value; 1 where it is 0), ``inverse_square``,
        ``inverse_sqrt``, ``unit``, ``value``, ``table`` (the table's own), ...
    senses
        Which way sensitive cells go: ``upper``, ``lower``, ``key`` (by a hash of the cell's
        contributors or coordinates and `seed`, the same in every table), ``optimal`` (whatever makes
        the table closest, baena2018 (6)), or an array of 1 (up) and -1 (down), one per sensitive
        cell or one per cell. Named senses go the other way where a cell has no room for its distance
        (:func:`cellguard.levels.movement_levels`), or a level on that side only.
    omega
        Share of the absolute changes in ``l12``; the squares get the rest.
    squares
        Cells whose squares count in ``l12`` (indices or truth values); all unless given.
    square_weights
        Weights of the squares in ``l12``; as `weights` unless given.
    integer
        Whether only whole numbers may be published; as the table says unless given.
    repair
        What to do when no table fits the senses: ``senses`` flips as few as possible, ``relations``
        lets fixed cells change at a large price, None leaves it at that.
    time_limit_s, gap
        When the search for optimal senses or whole numbers stops: after so many seconds, or when
        proven so close to the best.
    seed
        The secret of ``senses="key"``, and of the search for optimal senses.

    Returns
    -------
    Adjustment
        Optimal when an independent check has proven it; infeasible, with an explanation that names
        the relations and cells in conflict, when there is none.

    Examples
    --------
    Figure 3 of castro2004: a total of two cells must rise by four.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    >>> cg.adjust(table, norm="l2").values.round(6).tolist()
    [14.4, 9.6, 24.0]
    >>> cg.adjust(table, norm="l2", integer=True).values.tolist()
    [14.0, 10.0, 24.0]
    """
    task = _Task(
        table=table,
        distance=distance_of(table, norm, weights, omega, squares, square_weights),
        need=needs(table),
        whole=_whole(table, integer),
        gap=_share(gap),
        seed=seed,
        limit_s=_seconds(time_limit_s),
    )
    if repair is not None and repair not in REPAIRS:
        raise UnknownCodeError(
            f"repair {repair!r} is not known; known are {', '.join(REPAIRS)}.", hint=did_you_mean(str(repair), REPAIRS)
        )
    task.options = {"norm": norm, "weights": _named(weights), "senses": _named(senses), "repair": repair, "seed": seed}
    task.options |= {"integer": task.whole, "time_limit_s": time_limit_s, "gap": gap}
    if norm == "l12":
        task.options |= {"omega": omega, "squares": _named(squares), "square_weights": _named(square_weights)}
    begin = time.perf_counter()
    adjuster_of(table.relations, table.fixed)
    task.seconds["reduce"] = time.perf_counter() - begin
    task.details["norm"] = norm
    release = _optimal(task) if isinstance(senses, str) and senses == "optimal" else _fixed(task, senses, repair)
    release.seconds["solve"] = time.perf_counter() - begin - task.seconds["reduce"]  # type: ignore[index]
    return release


@dataclass(kw_only=True, eq=False)
class _Task:
    """What is to be done, and what is known so far."""

    table: Table
    distance: Distance
    need: Need
    whole: bool
    gap: float
    seed: int
    limit_s: float
    begin: float = field(default_factory=clock.now)
    options: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """Seconds left for a search."""
        return clock.left(self.begin + self.limit_s)

    @property
    def last_moment(self) -> float:
        """When even the solve that turns what a search found into a table must end."""
        return self.begin + 1.05 * self.limit_s + 1.0

    def bounds(self, up: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of the movements with these senses: whole numbers when only those are allowed."""
        low, high = self.need.bounds(self.table, up)
        low, high = np.where(self.table.fixed, 0.0, low), np.where(self.table.fixed, 0.0, high)
        return (np.ceil(low - 1e-9), np.floor(high + 1e-9)) if self.whole else (low, high)


# ---------------------------------------------------------------- options


def _named(option: Any) -> Any:
    """Return an option as a release keeps it: arrays decide the result but are confidential."""
    return option if option is None or isinstance(option, str) else "given"


def _whole(table: Table, integer: bool | None) -> bool:
    wanted = table.integer if integer is None else bool(integer)
    broken = np.abs(table.values - np.rint(table.values)) > 1e-9 * np.maximum(1.0, np.abs(table.values))
    if wanted and broken.any():
        raise InputError(
            f"integer: {table.label(int(np.argmax(broken)))} has no whole value.",
            hint="whole numbers can only be kept where all values are whole.",
        )
    return wanted


def _share(gap: float) -> float:
    if not (math.isfinite(gap) and gap >= 0):
        raise InputError(f"gap {gap!r}: a share of at least 0 is needed.")
    return gap


def _seconds(limit: float) -> float:
    if math.isnan(limit) or limit < 0:
        raise InputError(f"time_limit_s {limit!r}: a number of at least 0 is needed.")
    return min(limit, 1e9)


# ---------------------------------------------------------------- the ways to a release


def _fixed(task: _Task, senses: str | ArrayLike, repair: str | None) -> Adjustment:
    """Adjust with given senses; repair or explain when they leave no table."""
    up = fixed_senses(task.table, task.need, senses, task.seed)
    bounds = task.bounds(up)
    adjuster = adjuster_of(task.table.relations, task.table.fixed)
    found = adjuster.solve(*bounds, task.distance, deadline=task.last_moment)
    if found.feasible:
        return _finished(task, up, found, bounds)
    if repair == "senses":
        release = _with_flips(task, up)
        if release is not None:
            return release
    text, why = explain(task.table, task.need, up, bounds, time_limit_s=task.left_s)
    task.details |= why
    if repair == "relations":
        freed, found, bounds = with_fixed_cells_freed(task.table, bounds, task.distance)
        if found.feasible:
            moved = task.table.fixed & (np.abs(found.z) > 1e-9 * np.maximum(1.0, np.abs(task.table.values)))
            labels = [task.table.label(int(i)) for i in np.flatnonzero(moved)]
            task.details["changed_fixed"] = labels
            shown = ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
            note = f"fixed cells were changed ({shown}), because {text}"
            # the distance of the repaired table is what it is; nothing is proven about others
            return _finished(task, up, found, bounds, note, bound=math.nan, adjuster=freed)
    return _none(task, text)


def _with_flips(task: _Task, up: BoolArray) -> Adjustment | None:
    """Adjust with as few senses flipped as possible; None when no senses were found that leave a table."""
    other = flipped(task.table, task.need, up, task.distance, task.left_s)
    if other is None:
        return None
    bounds = task.bounds(other)
    adjuster = adjuster_of(task.table.relations, task.table.fixed)
    found = adjuster.solve(*bounds, task.distance, deadline=task.last_moment)
    if not found.feasible:
        return None
    changed = int((task.need.cells & (other != up)).sum())
    task.details["flipped"] = changed
    note = f"{changed} senses were flipped: no table satisfies all relations and bounds with the senses as they were."
    return _finished(task, other, found, bounds, note)


def _optimal(task: _Task) -> Adjustment:
    """Choose the senses, too."""
    table, need = task.table, task.need
    adjuster = adjuster_of(table.relations, table.fixed)
    if not need.cells.any() or (need.cells & adjuster.reduction.determined).any():  # nothing to choose
        return _fixed(task, "upper", None)
    search = Senses(adjuster, room_of(table), need.lower, need.upper, task.distance, seed=task.seed)
    choice = choose(search, time_limit_s=task.left_s, gap=task.gap)
    task.details |= {"requests": len(search.mover), "nodes": choice.nodes}
    if not math.isfinite(choice.objective):
        return _no_choice(task, choice)
    bounds = task.bounds(choice.up)
    found = adjuster.solve(*bounds, task.distance, deadline=task.last_moment)
    if not found.feasible:
        return _no_choice(task, choice)
    bound = found.bound if choice.bound >= choice.objective * (1 - 1e-6) else choice.bound
    return _finished(task, choice.up, found, bounds, bound=bound, in_time=choice.in_time)


# ---------------------------------------------------------------- results


def _finished(
    task: _Task,
    up: BoolArray,
    found: Closest,
    bounds: tuple[FloatArray, FloatArray],
    note: str = "",
    *,
    bound: float | None = None,
    in_time: bool = True,
    adjuster: Any = None,
) -> Adjustment:
    """Turn what was found into a release; only what is proven is called optimal."""
    z, bound = found.z, found.bound if bound is None else bound
    task.details |= {"iterations": found.iterations}
    if task.whole:
        from cellguard._engine.whole import whole_movement

        of = adjuster or adjuster_of(task.table.relations, task.table.fixed)
        whole = whole_movement(of, *bounds, task.distance, z, time_limit_s=task.left_s)
        if whole is None:
            return _none(task, "no table in whole numbers was found near the closest one.", status=Status.TIME_LIMIT)
        z = whole
    objective = task.distance.value(z)
    nothing = not task.need.cells.any()
    release = Adjustment(
        table=task.table,
        status=_status(task, found, objective, bound, in_time=in_time),
        objective=objective,
        bound=min(bound, objective),
        values=task.table.values + z,
        internal=_internal(task, up, found),
        explanation="no cell needs protection: this is the table itself." if nothing else note,
        details=task.details,
        options=task.options,
        seconds=task.seconds,
    )
    fault = _fault(release)
    return release if not fault else _none(task, fault, status=Status.TIME_LIMIT)


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


def _status(task: _Task, found: Closest, objective: float, bound: float, *, in_time: bool) -> Status:
    distance = objective - bound
    if "flipped" in task.details:  # closest with these senses, which are not those that were asked for
        return Status.FEASIBLE
    if found.proven and distance <= max(1e-7, task.gap if task.whole or "nodes" in task.details else 0.0) * objective:
        return Status.OPTIMAL
    return Status.FEASIBLE if in_time else Status.TIME_LIMIT


def _internal(task: _Task, up: BoolArray, found: Closest) -> dict[str, Any]:
    """What made the release, cell by cell."""
    d = task.distance
    out = {"sense": np.where(task.need.cells, np.where(up, "upper", "lower"), "")}
    kinds = {"absolute": d.absolute, "square": d.square, "largest": d.largest}
    out |= {f"{name}_weight": weight for name, weight in kinds.items() if weight.any()}
    if not task.whole:
        out |= {"lower_multiplier": found.lower, "upper_multiplier": found.upper}
    return out


def _none(task: _Task, text: str, *, status: Status = Status.INFEASIBLE) -> Adjustment:
    return Adjustment(
        table=task.table,
        status=status,
        objective=math.nan,
        values=np.full(task.table.n_cells, np.nan),
        explanation=text,
        details=task.details,
        options=task.options,
        seconds=task.seconds,
    )


def _no_choice(task: _Task, choice: Choice) -> Adjustment:
    if choice.bound == math.inf:
        return _none(task, "no senses leave a table that satisfies the relations and the bounds.")
    return _none(task, "no senses were found in time that leave a table.", status=Status.TIME_LIMIT)
