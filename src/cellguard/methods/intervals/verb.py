"""Interval protection: some cells are published as intervals.

Two kinds. The **narrowest** intervals that are safe (baena2018 section 2.3) are computed from the values so closely
that who knows the levels as shares computes the values from them. Intervals by **classes** tell no more than that
the truth lies in a set that is as wide as the levels ask, to whoever knows everything but the data and the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cellguard._engine.threads import on_one_blas_thread
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.cross import against_the_cross
from cellguard.methods.intervals import METHOD
from cellguard.methods.intervals.classes import classes
from cellguard.methods.intervals.grid import Published
from cellguard.methods.intervals.mend import ROUNDS, accepted_intervals, widened_intervals
from cellguard.methods.intervals.problem import SEARCHED, Ends, IntervalProblem
from cellguard.methods.intervals.secret import secret_interval_seed
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.method import method_options_in_any_case
from cellguard.methods.respondents import against_respondents
from cellguard.nouns.publication import table_or_publication
from cellguard.nouns.release import Intervals, Status
from cellguard.nouns.table import Table

__all__ = ["intervals", "positions_in_protection_intervals"]

_SEARCH = 0.7
"""Share of the time for the search; the rest is for the check."""
_TELLS = (
    "The narrowest intervals are computed from the values: who knows the levels as shares of them computes most values "
    "back. Publish intervals by classes instead (position='classes')."
)
_NONE = "the limit was reached before any intervals were found and confirmed."


@method_options_in_any_case(METHOD)
@table_or_publication
@against_the_cross()
@against_respondents(near=False)
@on_one_blas_thread
def intervals(
    table: Table,
    *,
    gap: float = 1e-3,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    position: str = "classes",
    seed: int = 0,
    threads: int = 1,
    progress: Progress | None = None,
) -> Intervals:
    """Publish some cells as intervals from which no attacker computes a sensitive cell too closely.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of width. No width is for nothing: a weight counts at least
        as a millionth of the median of those above 0 (as 1 where there are none); of a publication, of each part
        that shares nothing with the others.
    gap
        For the narrowest: stop when the weighted width is proven to be this close to the least possible, relatively.
    time_limit_s
        Stop after this; the best intervals found are returned with their gap, or none.
    position
        ``"classes"``: sets of possible values with a secret offset, and a collar around them. Who knows the method
        still holds every value of the set possible, and the sets of sensitive cells are as wide as their levels
        together (levels of more than half of the value: as half of it). Or ``"narrowest"``: the least widths that
        pass the audit (baena2018). **They tell the values** to who knows the levels as shares of them.
    seed
        Of the offsets. **Keep it secret.** 0 stands for one drawn from the operating system; the release remembers
        it in `options`, its files do not.
    threads
        Taken by every verb; the work of this one is not shared.
    progress
        Called with the objective and the bound, in every iteration of the narrowest.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> release = cg.intervals(table, position="narrowest")
    >>> release.lower.round(3).tolist(), release.upper.round(3).tolist()
    ([16.0, 46.0, 70.0], [24.0, 54.0, 70.0])
    >>> release = cg.intervals(table, seed=8)
    >>> release.audit().safe, release.details["promised"]
    (True, 1)
    """
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    _check_interval_options(position, gap, seed)
    if position == "classes":
        seed = secret_interval_seed(seed)
    options = {"gap": gap, "time_limit_s": time_limit_s, "position": position, "seed": seed}
    problem = IntervalProblem(table)
    searching = limits.part(_SEARCH)
    hopeless = problem.hopeless(searching.deadline)
    seconds = {"reduce": limits.spent_s}
    if hopeless:
        return _no_intervals(table, Status.INFEASIBLE, seconds, options, hopeless)
    found = (
        _narrowest_intervals(problem, limits)
        if position == "narrowest"
        else _intervals_by_classes(problem, seed, limits)
    )
    seconds["solve"] = limits.spent_s - seconds["reduce"]
    if found is None:
        return _no_intervals(table, Status.TIME_LIMIT, seconds, options, _NONE)
    objective = float(problem.weight @ (found.upper - found.lower))
    bound = min(found.bound, objective)
    proven = objective - bound <= gap * objective
    limits.tell(objective, bound)
    return Intervals(
        table=table,
        status=Status.OPTIMAL if proven else Status.TIME_LIMIT if searching.deadline.passed else Status.FEASIBLE,
        objective=objective,
        bound=bound,
        seconds=seconds,
        options=options,
        details={
            "cells_replaced": int((found.upper > found.lower).sum()),
            "position": positions_in_protection_intervals(table.values, found.lower, found.upper),
            **found.details,
        },
        explanation=_TELLS if position == "narrowest" and objective > 0 else "",
        lower=found.lower,
        upper=found.upper,
        internal=found.internal,
    )


def _check_interval_options(position: str, gap: float, seed: int) -> None:
    if position == "random":
        raise InputError(
            "position 'random' is gone: the widths it drew told the values.",
            hint="use position='classes', which withstands who knows the method.",
        )
    METHOD.require_choices(position=position)
    if not 0 < gap < 1:
        raise InputError(f"gap {gap!r}: a share between 0 and 1 is needed.")
    if not 0 <= seed < 2**256:
        raise InputError(f"seed {seed!r}: a whole number of at least 0 is needed.")


def _no_intervals(
    table: Table, status: Status, seconds: dict[str, float], options: dict[str, Any], why: str
) -> Intervals:
    return Intervals(
        table=table,
        status=status,
        objective=float("nan"),
        seconds=seconds,
        options=options,
        explanation=why,
        lower=table.values,
        upper=table.values,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _FoundIntervals:
    lower: FloatArray
    upper: FloatArray
    bound: float
    details: dict[str, Any]
    internal: dict[str, FloatArray] = field(default_factory=dict)


def _narrowest_intervals(problem: IntervalProblem, limits: Limits) -> _FoundIntervals | None:
    gap, searching = limits.gap, limits.part(_SEARCH)
    found = problem.solve(replace(searching, gap=SEARCHED * gap))
    widths = problem.sparser(found, gap, searching.deadline)
    ends, until = problem.ends(widths, gap), limits.last_word
    if not np.isfinite(ends).all():
        return None

    def wider(ends: Ends, cells: IntArray, _: int) -> Ends | None:
        return widened_intervals(problem.table, ends, cells, until)

    safe, mended = accepted_intervals(problem.table, ends, lambda ends: ends, wider, until)
    if safe is None or not np.isfinite(safe).all():
        return None
    details = {"mended": mended, "iterations": widths.iterations, "requests": widths.requests}
    return _FoundIntervals(lower=safe[0], upper=safe[1], bound=max(widths.bound, problem.own_bound), details=details)


def _intervals_by_classes(problem: IntervalProblem, seed: int, limits: Limits) -> _FoundIntervals | None:
    found = classes(problem.table, seed, limits.part(_SEARCH).deadline)
    grid, until = found.grid, limits.last_word

    def wider(published: Published, cells: IntArray, attempt: int) -> Published | None:
        if grid is None:
            return None
        if attempt >= ROUNDS - 2:
            return grid.withheld(published, cells if attempt == ROUNDS - 2 else None)
        return grid.widened(published, cells, until, times=2.0**attempt) or published

    safe, mended = accepted_intervals(problem.table, found.published, lambda published: published[:2], wider, until)
    if safe is None:
        return None
    figures = {"promised": len(found.promised), "asked": found.asked, "movements": found.movements, "mended": mended}
    inner = {"inner_lower": safe.inner_lower, "inner_upper": safe.inner_upper}
    return _FoundIntervals(lower=safe.lower, upper=safe.upper, bound=problem.own_bound, details=figures, internal=inner)


def positions_in_protection_intervals(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> dict[str, float]:
    """Return where the truth lies in intervals, in per cent of them (the five classes of baena2018 table 4)."""
    replaced = upper > lower
    share = (truth[replaced] - lower[replaced]) / (upper[replaced] - lower[replaced])  # of one without end: 0
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
