"""The verb: options in, an :class:`~cellguard.nouns.release.Adjustment` out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.numbers.decimals import decimal_unit
from cellguard._engine.threads import on_one_blas_thread
from cellguard.exceptions import InputError, UnknownCodeError, raise_if_unknown
from cellguard.methods.adjust import METHOD
from cellguard.methods.adjust.norms import distance_of_norm
from cellguard.methods.adjust.senses import needs_of_adjustment, with_secret_senses
from cellguard.methods.adjust.solve import with_given_senses, with_optimal_senses
from cellguard.methods.adjust.task import Task
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.method import method_options_in_any_case
from cellguard.nouns.kept import Keep, kept_cells
from cellguard.nouns.publication import table_or_publication
from cellguard.nouns.release import Adjustment
from cellguard.nouns.table import Table

__all__ = ["PLAIN", "adjust"]

PLAIN: dict[str, Any] = {"senses": "upper", "surplus": 0.0, "integer": False}
"""Options that give the papers' own tables: known senses, exactly at the levels, any numbers. Not for publication."""


@method_options_in_any_case(METHOD)
@with_secret_senses
@table_or_publication
@on_one_blas_thread
def adjust(
    table: Table,
    *,
    norm: str = "l2",
    weights: str | ArrayLike = "inverse",
    senses: str | ArrayLike = "key",
    surplus: float = 1.0,
    noise: float = 0.0,
    omega: float = 0.99,
    squares: str | ArrayLike | None = None,
    square_weights: str | ArrayLike | None = None,
    integer: bool | None = None,
    keep: Iterable[Keep] = (),
    repair: str | None = "senses",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 1e-3,
    seed: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
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
        Which way sensitive cells go: ``key`` (by a hash of the cell's contributors or coordinates and
        `seed`, the same in every table), ``upper``, ``lower``, ``optimal`` (whatever makes the table
        closest, baena2018 (6)), or an array of 1 (up) and -1 (down), one per sensitive cell or one per
        cell. Named senses go the other way where a cell has no room for its distance
        (:func:`cellguard.nouns.levels.movement_levels`), or a level on that side only.
    surplus
        How much further sensitive cells go than they must, by chance: what somebody who knows the rule
        and the method must hold possible is this many times as wide as both levels together. 0 stops
        exactly at the levels, as the papers do, which gives the true values away to whoever knows them.
    noise
        Share of its value by which a random step may move a cell, on top of the closest table and within
        all levels and bounds; several steps may add up. A defence that costs what it moves.
    omega
        Share of the absolute changes in ``l12``; the squares get the rest.
    squares
        Cells whose squares count in ``l12``: ``all`` (unless given), ``inner``, ``margins``, ``sensitive``, indices or
        truth values. With the margins and a large weight totals stay nearly as they are (castro2004 section 5).
    square_weights
        Weights of the squares in ``l12``; as `weights` unless given.
    integer
        True publishes whole numbers, False any numbers; unless given, multiples of the finest decimal
        unit of the true values (1, 0.01, 1000, ...): other numbers would tell which cells moved.
    keep
        Totals and margins that stay as they are: ``"total"``, a dimension or several (the margin of
        these, without its sensitive cells), a cell's codes or its index.
    repair
        What to do when no table fits the senses: ``senses`` flips a few of them, ``relations``
        lets fixed cells change at a large price, then totals leave their known bounds; None leaves it at that.
    time_limit_s, gap
        When the search for optimal senses or whole numbers stops: after so many seconds, or when
        proven so close to the best.
    seed
        The secret of the senses by key and of the surplus. Unless given (or 0) it is drawn so that
        nobody can guess it; ``options["seed"]`` has it. The same seed gives the same release.
    threads
        Taken by every verb; the work of this one is not shared.
    progress
        Called with the distance and its proven bound when there is a table.

    Returns
    -------
    Adjustment
        Optimal when an independent check has proven it the closest with its senses and surplus;
        infeasible, with an explanation that names the relations and cells in conflict, when there is none.

    Examples
    --------
    Figure 3 of castro2004: a total of two cells must rise by four.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    >>> cg.adjust(table, senses="upper", surplus=0, integer=False).values.round(6).tolist()
    [14.4, 9.6, 24.0]
    >>> cg.adjust(table, senses="upper", surplus=0).values.tolist()
    [14.0, 10.0, 24.0]
    >>> cg.adjust(table, seed=1).values.tolist()
    [15.0, 10.0, 25.0]
    """
    if repair is not None:
        raise_if_unknown("repair", repair, ("senses", "relations"), UnknownCodeError)
    secret = int(seed or 0)
    limits = Limits(
        time_limit_s=time_limit_s, gap=_adjust_share(gap, "gap"), seed=secret, threads=threads, progress=progress
    )
    kept = kept_cells(table, keep)
    working = table.with_(fixed=table.fixed | kept) if kept.any() else table
    task = Task(
        original=table,
        table=working,
        distance=distance_of_norm(table, norm, weights, omega, squares, square_weights),
        need=needs_of_adjustment(working),
        surplus=_adjust_share(surplus, "surplus"),
        noise=_adjust_share(noise, "noise"),
        secret_senses=isinstance(senses, str) and senses == "key",
        unit=_unit_of_adjusted_values(table, integer),
        adjuster=Adjuster(working.relations, working.fixed),
        limits=limits,
    )
    task.options = {
        "norm": norm,
        "weights": _option_kept_by_adjust(weights),
        "senses": _option_kept_by_adjust(senses),
        "surplus": surplus,
    }
    task.options |= {"unit": task.unit, "repair": repair, "seed": secret, "time_limit_s": time_limit_s, "gap": gap}
    if noise:
        task.options["noise"] = noise
    if kept.any():
        task.details["kept"] = int(kept.sum())
    if norm == "l12":
        task.options |= {
            "omega": omega,
            "squares": _option_kept_by_adjust(squares),
            "square_weights": _option_kept_by_adjust(square_weights),
        }
    task.seconds["reduce"] = task.limits.spent_s
    task.details["norm"] = norm
    optimal = isinstance(senses, str) and senses == "optimal"
    release = with_optimal_senses(task) if optimal else with_given_senses(task, senses, repair)
    release.seconds["solve"] = task.limits.spent_s - task.seconds["reduce"]  # type: ignore[index]
    task.limits.tell(release.objective, release.bound)
    return release


def _option_kept_by_adjust(option: Any) -> Any:
    """Return an option as a release keeps it: arrays decide the result but are confidential."""
    return option if option is None or isinstance(option, str) else "given"


def _unit_of_adjusted_values(table: Table, integer: bool | None) -> float:
    """Return of what published values are multiples; 0 when they may be any numbers."""
    if integer is None and not table.integer:
        return decimal_unit(table.values, table.relations, table.rhs)
    if integer is not None and not integer:
        return 0.0
    broken = np.abs(table.values - np.rint(table.values)) > 1e-9 * np.maximum(1.0, np.abs(table.values))
    if broken.any():
        raise InputError(
            f"integer: {table.label(int(np.argmax(broken)))} has no whole value.",
            hint="whole numbers can only be kept where all values are whole.",
        )
    return 1.0


def _adjust_share(number: float, name: str) -> float:
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{name} {number!r}: a finite number of at least 0 is needed.")
    return float(number)
