"""Interval protection: some cells are published as intervals.

There are two kinds. The **narrowest** safe intervals (baena2018 section 2.3) follow the values so closely that an
attacker who knows the levels as shares can compute the values from them. Intervals by **classes** reveal only that the
truth lies in a set as wide as the levels require, even to an attacker who knows everything but the data and the key.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.intervals import METHOD
from cellguard.methods.intervals.classes import build_classes
from cellguard.methods.intervals.count_search import CountSearch
from cellguard.methods.intervals.grid import Published
from cellguard.methods.intervals.problem import SEARCHED, Ends, IntervalProblem
from cellguard.methods.intervals.widen import ROUNDS, widen_for_cells
from cellguard.methods.keys import refuse_seed_as_secret, take_key
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.procedure import Candidate, Problem, Procedure
from cellguard.methods.protection import Protection
from cellguard.model.key import Key, KeyGiven
from cellguard.model.table import Table
from cellguard.release.release import Intervals, Status

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.auditing.audit import Audit
    from cellguard.methods.method import Method
    from cellguard.model.linked.clusters import Keeper
    from cellguard.model.linked.publication import Publication

__all__ = ["IntervalsProcedure", "classify_positions", "intervals"]

_SEARCH = 0.7
"""Share of the time for the search; the rest is for the check."""
_TELLS = (
    "The narrowest intervals are computed from the values: an attacker who knows the levels as shares can "
    "compute most values. Publish intervals by classes instead (position='classes')."
)
_MIXED = (
    "sensitive counts are tied to magnitudes by equations, and there are no classes for both. "
    "Protect them as tables of their own, or by suppression."
)
_NONE = "the limit was reached before any intervals were found and confirmed."


def intervals(
    table: Table | Publication,
    *,
    gap: float = 1e-3,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    position: str = "classes",
    seed: int = 0,
    key: KeyGiven | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    insiders: bool | None = None,
) -> Intervals:
    """Publish some cells as intervals from which no attacker can infer a sensitive cell too precisely.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of width. No width is free: a weight counts as at least
        a millionth of the median of those above 0 (as 1 if there are none). In a publication, this holds for each
        part that shares nothing with the others.
    gap
        For the narrowest: stop when the weighted width is proven to be this close to the least possible, relatively.
    time_limit_s
        Stop after this; the best intervals found are returned with their gap, or none.
    position
        ``"classes"``: sets of possible values with a secret offset, and a collar around them. An informed attacker
        still considers every value of the set possible, and the sets of sensitive cells are as wide as their levels
        together (levels of more than half of the value count as half of it). Or ``"narrowest"``: the least widths
        that pass the audit (baena2018). **They reveal the values** to an attacker who knows the levels as shares.
    seed
        Accepted by every method. Refused with ``"classes"``: a seed is not a secret.
    key
        The secret of the offsets: a :class:`cellguard.Key`, at least 16 bytes, or the file that holds
        them. By default drawn from the operating system; ``options["key"]`` has it. The same key gives the same
        release.
    threads
        Accepted by every method; this one uses one thread.
    progress
        Called with the objective and the bound, in every iteration of the narrowest.
    keeper
        Keeps the release of each cluster of a publication when it is finished
        (:class:`cellguard.model.linked.clusters.Keeper`).
    insiders
        Whether respondents are attackers too: True, False, or as the table says (`Table.insiders`).

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> release = cg.intervals(table, position="narrowest")
    >>> release.lower.round(3).tolist(), release.upper.round(3).tolist()
    ([16.0, 46.0, 70.0], [24.0, 54.0, 70.0])
    >>> release = cg.intervals(table)  # a key is drawn
    >>> release.audit().safe, release.details["promised"]
    (True, 1)
    """
    procedure = IntervalsProcedure(position=METHOD.match_choice("position", position), key=take_key(key))
    refuse_seed_as_secret(METHOD, {"seed": seed, "position": procedure.position})
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    release = Protection(procedure=procedure, limits=limits, keeper=keeper, insiders=insiders).run(table)
    return cast("Intervals", release)


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalsProcedure(Procedure):
    """Choose intervals, and widen those that the audit does not accept."""

    method: ClassVar[Method] = METHOD
    max_repairs: ClassVar[int] = ROUNDS
    not_confirmed: ClassVar[str] = _NONE

    position: str = "classes"
    key: Key = field(default_factory=Key.draw)
    """The secret of the draws; the same for all clusters of a publication."""

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Return intervals by classes, or the narrowest."""
        _check_interval_options(self.position, limits.gap)
        options: dict[str, Any] = {"gap": limits.gap, "time_limit_s": limits.time_limit_s, "position": self.position}
        if METHOD.is_randomised({"position": self.position}):
            options["key"] = self.key
        table = problem.table
        widths, searching = IntervalProblem(table), limits.take_share(_SEARCH)
        hopeless = widths.find_hopeless(searching.deadline) or self._explain_mixture(table)
        seconds = {"reduce": limits.spent_s}
        if hopeless:
            empty = _build_empty_release(table, Status.INFEASIBLE, seconds, options, hopeless)
            return Candidate(release=empty, problem=problem)
        found: _FoundIntervals | None
        why = _NONE
        if self.position == "narrowest":
            found = _find_narrowest(widths, limits)
        elif table.integer:
            search = CountSearch(table, self.key)
            found = _find_count_classes(widths, search, searching)
            why = _NONE if searching.deadline.passed else search.explain_failure()
        else:
            found = _find_classes(widths, self.key, searching)
        seconds["solve"] = limits.spent_s - seconds["reduce"]
        if found is None:
            empty = _build_empty_release(table, Status.TIME_LIMIT, seconds, options, why)
            return Candidate(release=empty, problem=problem)
        empty = _build_empty_release(
            table, Status.TIME_LIMIT if searching.deadline.passed else Status.FEASIBLE, seconds, options
        )
        return _get_candidate(problem, empty, found, limits)

    def _explain_mixture(self, table: Table) -> str:
        """Explain why there are no class intervals: counts that are tied to magnitudes have no classes of their own."""
        mixed = table.counted is not None and bool((table.counted & table.sensitive).any())
        return _MIXED if mixed and self.position == "classes" else ""

    def repair(self, candidate: Candidate, findings: Audit, limits: Limits) -> Candidate | None:
        """Widen the intervals of the cells that the audit does not accept."""
        found: _FoundIntervals = candidate.state
        until = limits.last_word
        if found.repairs >= ROUNDS or (findings.unknown and until.passed):
            return None
        cells = findings.unsafe_cells
        wider = found.widen(cells, until)
        if wider is None:
            return None
        wider = replace(wider, repairs=found.repairs + 1, mended=found.mended + len(cells))
        return _get_candidate(candidate.problem, cast("Intervals", candidate.release), wider, limits)


def _get_candidate(problem: Problem, base: Intervals, found: _FoundIntervals, limits: Limits) -> Candidate:
    """Return the release of the intervals found, as a change of one with the same options and times."""
    lower, upper = found.ends
    objective = float(found.problem.weight @ (upper - lower))
    bound = min(found.bound, objective)
    limits.tell(objective, bound)
    narrowest = base.options["position"] == "narrowest"
    # a release is no longer optimal after its intervals were widened
    otherwise = Status.FEASIBLE if base.status is Status.OPTIMAL else base.status
    release = replace(
        base,
        status=Status.OPTIMAL if objective - bound <= limits.gap * objective else otherwise,
        objective=objective,
        bound=bound,
        details={
            "cells_replaced": int((upper > lower).sum()),
            "position": classify_positions(problem.table.values, lower, upper),
            **found.details,
        },
        explanation=_TELLS if narrowest and objective > 0 else "",
        lower=lower,
        upper=upper,
        internal=found.internal,
    )
    return Candidate(release=release, problem=problem, state=found)


def _check_interval_options(position: str, gap: float) -> None:
    if position == "random":
        raise InputError(
            "position 'random' was removed: the widths it drew revealed the values.",
            hint="use position='classes', which resists an informed attacker.",
        )
    METHOD.require_choices(position=position)
    if not 0 < gap < 1:
        raise InputError(f"gap {gap!r}: a share between 0 and 1 is needed.")


def _build_empty_release(
    table: Table, status: Status, seconds: dict[str, float], options: dict[str, Any], why: str = ""
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
    """Intervals of either kind, and how they are widened."""

    problem: IntervalProblem
    bound: float
    """Proven lower bound on the cost of such intervals."""
    figures: dict[str, Any]
    repairs: int = 0
    mended: int = 0
    """Cells whose intervals were widened."""

    @property
    def ends(self) -> Ends:
        """The lower and upper ends."""
        raise NotImplementedError

    @property
    def details(self) -> dict[str, Any]:
        """Figures for the release."""
        return {**self.figures, "mended": self.mended}

    @property
    def internal(self) -> dict[str, FloatArray]:
        """Internal figures, cell by cell."""
        return {}

    def widen(self, cells: IntArray, until: Deadline) -> Self | None:
        """Return intervals that hide these cells better; None if there are none."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class _NarrowestFound(_FoundIntervals):
    both: Ends

    @property
    def ends(self) -> Ends:
        return self.both

    def widen(self, cells: IntArray, until: Deadline) -> Self | None:
        wider = widen_for_cells(self.problem.table, self.both, cells, until)
        return None if wider is None or not np.isfinite(wider).all() else replace(self, both=wider)


@dataclass(frozen=True, kw_only=True, eq=False)
class _ClassesFound(_FoundIntervals):
    grid: Any
    """The classes of all cells; None if nothing must be hidden."""
    published: Published

    @property
    def ends(self) -> Ends:
        return self.published[:2]

    @property
    def internal(self) -> dict[str, FloatArray]:
        return {"inner_lower": self.published.inner_lower, "inner_upper": self.published.inner_upper}

    def widen(self, cells: IntArray, until: Deadline) -> Self | None:
        if self.grid is None:
            return None
        if self.repairs >= ROUNDS - 2:
            wider = self.grid.withhold_around(self.published, cells if self.repairs == ROUNDS - 2 else None)
        else:
            times = 2.0**self.repairs
            wider = self.grid.widen_intervals(self.published, cells, until, times=times) or self.published
        return None if wider is None else replace(self, published=wider)


def _find_narrowest(problem: IntervalProblem, limits: Limits) -> _FoundIntervals | None:
    gap, searching = limits.gap, limits.take_share(_SEARCH)
    found = problem.solve(replace(searching, gap=SEARCHED * gap))
    widths = problem.publish_narrow_cells(found, gap, searching.deadline)
    ends = problem.compute_ends(widths, gap)
    if not np.isfinite(ends).all():
        return None
    figures = {"iterations": widths.iterations, "requests": widths.requests}
    bound = max(widths.bound, problem.own_bound)
    return _NarrowestFound(problem=problem, bound=bound, figures=figures, both=ends)


def _find_classes(problem: IntervalProblem, key: Key, searching: Limits) -> _FoundIntervals | None:
    found = build_classes(problem.table, key, searching.deadline)
    figures = {"promised": len(found.promised), "asked": found.asked, "movements": found.movements}
    return _ClassesFound(
        problem=problem, bound=problem.own_bound, figures=figures, grid=found.grid, published=found.published
    )


def _find_count_classes(problem: IntervalProblem, search: CountSearch, searching: Limits) -> _FoundIntervals | None:
    found = search.run(searching.deadline)
    if found is None:
        return None
    asked = len(found.promised)
    figures = {"promised": asked, "asked": asked, "movements": found.movements, "rounds": found.rounds}
    # do not widen afterwards: the widening would depend on the values
    return _ClassesFound(
        problem=problem, bound=problem.own_bound, figures=figures, grid=None, published=found.published
    )  # fmt: skip


def classify_positions(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> dict[str, float]:
    """Return where the truth lies in intervals, in per cent of them (the five classes of baena2018 table 4)."""
    replaced = upper > lower
    share = (truth[replaced] - lower[replaced]) / (upper[replaced] - lower[replaced])  # 0 for an unbounded interval
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
