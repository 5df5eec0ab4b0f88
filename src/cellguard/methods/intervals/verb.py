"""Interval protection: some cells are published as intervals, as narrow as safety allows (baena2018 section 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cellguard._engine import clock
from cellguard._engine.threads import on_one_blas_thread
from cellguard.exceptions import InputError
from cellguard.methods.intervals.problem import Problem
from cellguard.methods.intervals.requests import splits_sliding_levels
from cellguard.methods.method import DEFAULT_TIME_LIMIT_S, checked_time_limit
from cellguard.methods.respondents import against_respondents
from cellguard.nouns.publication import takes_publications
from cellguard.nouns.release import Intervals, Status
from cellguard.nouns.table import FloatArray, Table

__all__ = ["intervals"]

_STRETCH = 0.5
"""With random positions, each side of a sensitive cell's interval grows by up to this share."""


@takes_publications
@against_respondents(near=False)
@on_one_blas_thread
def intervals(
    table: Table,
    *,
    gap: float = 1e-3,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    position: str = "narrowest",
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
) -> Intervals:
    """Publish the narrowest intervals from which no attacker computes a sensitive cell too closely.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of width.
    gap
        Stop when the weighted width is proven to be this close to the least possible, relatively.
    time_limit_s
        Stop after this; the best intervals found are returned with their gap.
    position
        ``"narrowest"``; or ``"random"``: each sensitive cell asks for a randomly larger level on each
        side, so that the truth has no fixed place in its interval. With symmetric levels the
        narrowest interval of a sensitive cell has the truth at its midpoint (baena2018 table 4), and
        no other position of that width meets both levels: not to leak it costs width.
    seed
        Of the random positions.
    progress
        Called with the objective and the bound in every iteration.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> release = cg.intervals(table)
    >>> release.lower.round(3).tolist(), release.upper.round(3).tolist()
    ([16.0, 46.0, 70.0], [24.0, 54.0, 70.0])
    """
    begin = clock.now()
    deadline = begin + checked_time_limit(time_limit_s)
    if position not in ("narrowest", "random"):
        raise InputError(f"position {position!r} is not known.", hint="known are 'narrowest' and 'random'.")
    if not 0 < gap < 1:
        raise InputError(f"gap {gap!r}: a share between 0 and 1 is needed.")
    problem = Problem(_with_random_levels(table, seed) if position == "random" else table)
    reduced = clock.now()
    options = {"gap": gap, "time_limit_s": time_limit_s, "position": position, "seed": seed}
    seconds = {"reduce": reduced - begin}
    hopeless = problem.hopeless()
    if hopeless:
        return Intervals(
            table=table,
            status=Status.INFEASIBLE,
            objective=float("nan"),
            seconds=seconds,
            options=options,
            explanation=hopeless,
            lower=table.values,
            upper=table.values,
        )
    # a part of the gap is kept for publishing small widths exactly
    found = problem.solve(0.8 * gap, deadline, progress)
    if splits_sliding_levels(table):  # what was chosen there may not be best: prove the bound without it
        relaxed = Problem(table.with_(sliding=np.zeros(table.n_cells))).solve(0.8 * gap, deadline)
        found = replace(found, bound=min(found.bound, relaxed.bound))
    widths = problem.sparser(found, gap, deadline)
    lower, upper = problem.ends(widths, gap)
    weight = problem.weight
    objective = float(weight @ (upper - lower))
    found_any = bool(np.isfinite(objective))  # the limit may come before the first intervals
    proven = found_any and objective - widths.bound <= gap * objective
    late = clock.now() > deadline or not found_any
    seconds["solve"] = clock.now() - reduced
    place = _positions(table, lower, upper)
    return Intervals(
        table=table,
        status=Status.OPTIMAL if proven else Status.TIME_LIMIT if late else Status.FEASIBLE,
        objective=objective,
        bound=min(widths.bound, objective),
        seconds=seconds,
        options=options,
        details={
            "cells_replaced": int((upper > lower).sum()),
            "position": place,
            "iterations": widths.iterations,
            "requests": widths.requests,
        },
        explanation=_explained(widths.bound, objective),
        lower=lower,
        upper=upper,
    )


def _explained(bound: float, objective: float) -> str:
    if not np.isfinite(objective):
        return "the limit was reached before any intervals were found."
    return "" if bound > 0 or objective == 0 else "no useful bound was proven."


def _with_random_levels(table: Table, seed: int) -> Table:
    """Stretch the levels of each sensitive cell by a random share, one for each side, within the bounds."""
    rng = np.random.default_rng(seed)
    s = table.sensitive
    share = rng.uniform(0.0, 1.0, table.n_cells)
    lower = np.where(s, np.minimum(table.lower * (1 + _STRETCH * share), table.values - table.lb), 0.0)
    upper = np.where(s, np.minimum(table.upper * (1 + _STRETCH * (1 - share)), table.ub - table.values), 0.0)
    return table.with_(lower=np.maximum(lower, table.lower), upper=np.maximum(upper, table.upper))


def _positions(table: Table, lower: FloatArray, upper: FloatArray) -> dict[str, float]:
    """Where the truth lies in the intervals, in per cent of them (the five classes of baena2018 table 4)."""
    replaced = upper > lower
    share = (table.values[replaced] - lower[replaced]) / (upper[replaced] - lower[replaced])
    end, middle = 0.01, 0.01  # within a hundredth of the width counts as at the end or at the midpoint
    classes = {
        "at_right_end": share > 1 - end,
        "right_of_midpoint": (share > 0.5 + middle) & (share <= 1 - end),
        "at_midpoint": np.abs(share - 0.5) <= middle,
        "left_of_midpoint": (share < 0.5 - middle) & (share >= end),
        "at_left_end": share < end,
    }
    count = max(1, int(replaced.sum()))
    return {name: 100.0 * float(inside.sum()) / count for name, inside in classes.items()}
