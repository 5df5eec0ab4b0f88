"""Cell suppression: the cheapest set of cells to withhold so that no attacker learns too much."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.shown import remembering_shown
from cellguard._engine.threads import on_one_blas_thread
from cellguard._types import BoolArray
from cellguard.exceptions import InputError
from cellguard.methods.cross import against_the_cross
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.method import method_options_in_any_case
from cellguard.methods.respondents import against_respondents
from cellguard.methods.suppress import METHOD
from cellguard.methods.suppress.confirm import judge_pattern
from cellguard.methods.suppress.improve import Search
from cellguard.methods.suppress.neighbourhoods import LargeSearch
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.proving import search_and_prove
from cellguard.nouns.levels import table_with_respondent_attackers
from cellguard.nouns.publication import table_or_publication
from cellguard.nouns.release import Status, Suppression
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.check.attack.counts import CountRule
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release

__all__ = ["suppress"]

_METHODS = ("auto", "heuristic", "exact")


def _mend_pattern(release: Release, found: Audit, deadline: Deadline) -> Suppression | None:
    """Withhold more, so that what the audit found is closed and all else stays so."""
    from cellguard.methods.suppress.mend import mended_pattern

    old = cast("Suppression", release)
    more = mended_pattern(old.suppressed, found, deadline)
    return None if more is None else _withholding(old, more)


def _withholding(release: Suppression, more: BoolArray) -> Suppression:
    """Return the release with more withheld: what was optimal asked for less."""
    objective = float(release.table.weights[more & ~release.table.sensitive].sum())
    return replace(release, suppressed=more, objective=objective, status=Status.FEASIBLE)


def _suppress_against_the_cross(release: Release, found: Audit, deadline: Deadline) -> Suppression | None:
    """Withhold more, so that nobody comes closer by what he knows of the unpublished cross."""
    from cellguard.methods.suppress.mend import pattern_mended_with_cross

    old = cast("Suppression", release)
    more = pattern_mended_with_cross(old, found, deadline)
    return None if more is None else _withholding(old, more)


@method_options_in_any_case(METHOD)
@table_or_publication
@against_the_cross(_suppress_against_the_cross)
@against_respondents(near=True, quick={"method": "heuristic", "rounds": 20}, mend=_mend_pattern)
@on_one_blas_thread
def suppress(
    table: Table,
    *,
    method: str = "auto",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
    seed: int = 0,
    weights: str | ArrayLike | None = None,
    power: float = 0.5,
    prefer: ArrayLike = (),
    must_publish: ArrayLike = (),
    already_suppressed: ArrayLike = (),
    resist: str | CountRule | None = None,
    rounds: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Suppression:
    """Choose which cells to withhold, at the least cost.

    Parameters
    ----------
    table
        The table; its sensitive cells are always withheld (primary), others where needed (secondary).
    method
        ``"heuristic"``: safe, as cheap as the time allows, any size. ``"exact"``: branch-and-cut with a
        proof. ``"auto"``: the heuristic, then the exact method for what is left of the time.
    time_limit_s
        Seconds after which the best safe pattern so far is returned; 60 unless given.
    gap
        Relative distance to the proven bound that is good enough.
    seed
        Decides ties and the random choices of the search.
    weights
        Cost of withholding each cell: the table's, one number per cell, or a kind: ``"unit"``, ``"value"``,
        ``"log"``, ``"sqrt"``, ``"inverse"``, ``"frequency"`` (contributors) or ``"power"``.
    power
        Exponent of the value for ``weights="power"``; 0 is the logarithm.
    prefer
        Cells that are welcome as secondaries: they count a thousandth of their cost.
    must_publish
        Cells that are published in every pattern, for instance because they are published elsewhere.
    already_suppressed
        Cells that stay withheld, because an earlier release withheld them.
    resist
        ``"matching"``: withstand an attacker who knows the algorithm, for two-way frequency tables
        (`resist_matching`), whichever minimum frequency he has read that fits what is published. The
        rule itself, ``cg.CountRule(minimum=..., width=...)``: he has read this one, which costs less.
        The seed must be secret: 0 stands for one drawn from the operating system.
    rounds
        Rounds of improvement by the heuristic. The same number gives the same pattern on any machine, however
        fast, as long as the time limit is not reached; without it the time alone decides.
    threads
        Cores to use. How many there are changes the time, not the pattern of a number of rounds.
    progress
        Called with the cost and its proven bound whenever a cheaper safe pattern is found.

    Returns
    -------
    Suppression
        The pattern with its cost and the proven bound; status ``infeasible`` with an explanation when
        no pattern is safe.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations(
    ...     [20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190],
    ...     [[3, 0, 1, 2], [7, 4, 5, 6], [11, 8, 9, 10], [15, 12, 13, 14],
    ...      [12, 0, 4, 8], [13, 1, 5, 9], [14, 2, 6, 10], [15, 3, 7, 11]],
    ...     sensitive=[6], lower=[4], upper=[4],
    ... )
    >>> release = cg.suppress(table, method="heuristic", time_limit_s=1)
    >>> release.cost, int(release.secondary.sum())
    (37.0, 3)
    """
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    if method not in _METHODS:
        raise InputError(f"method {method!r} is not known.", hint=f"one of {', '.join(_METHODS)}.")
    if isinstance(resist, str) and resist != "matching":
        raise InputError(f"resist {resist!r} is not known.", hint="matching is, and a cg.CountRule.")
    prepared = _prepared_to_suppress(table, weights, power, prefer, must_publish)
    table = table_with_respondent_attackers(prepared)  # what changed may drop them
    forced = table.sensitive | _cells_given_to_suppress(table, already_suppressed, "already_suppressed")
    if resist is not None or method != "heuristic":
        counted = _suppress_counts_by_enumeration(table, forced, seed, resist)
        if counted is not None:
            return counted
    with remembering_shown():
        return _SuppressionRun(table=table, forced=forced, method=method, rounds=rounds, limits=limits).run()


_QUICK, _CONFIRM = 2_000, 0.15
"""With more cells, counted once for each attacker, this share of the time is left for confirming the last pattern."""
_LARGE = 20_000
"""Cells beyond which no program over the whole table is solved, and no bound is proven."""
_MANY = 10_000
"""Requests beyond which none is in half as large a table: where respondents know much, one takes seconds."""
_NOT_DECIDED = (
    "no pattern was shown safe within the limit, nor proven that none is: "
    "the time was too short, or the values are of too different a size."
)
_NOT_CONFIRMED = "a pattern was found, but the audit did not confirm it within the limit."


@dataclass(kw_only=True, eq=False)
class _SuppressionRun:
    """One call of the verb: the table, and everything that was asked for."""

    table: Table
    forced: BoolArray
    """Cells that every pattern withholds."""
    method: str
    rounds: int | None
    limits: Limits
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> Suppression:
        problem = SuppressionProblem.of(self.table, forced=self.forced)
        heavy = int(problem.usable.sum()) * (1 + len(self.table.attackers)) > _QUICK
        ends = self.limits.deadline.part(1.0 - _CONFIRM if heavy else 1.0)
        search = self._searched(problem, ends)
        if heavy and search.best is None and self.limits.deadline.passed:  # an audit would say no more, and late
            return self._nothing(problem, Status.TIME_LIMIT, _NOT_DECIDED)
        if search.best is None:
            # programs in floating point lose small cells beside large ones: only the audit may say that nothing is safe
            everything = problem.usable | problem.forced
            last = judge_pattern(self.table, everything, self.limits.last_word)
            if not last.safe:
                return self._hopeless(problem, search.unmet, proven=last.proven)
            search.best, search.cost = everything, problem.cost(everything)
        accepted = self._audited_later or judge_pattern(self.table, search.best, self.limits.last_word).safe
        self.seconds |= {"audit": self.limits.spent_s - self.seconds["total"], "total": self.limits.spent_s}
        if not accepted:
            return self._nothing(problem, Status.TIME_LIMIT, _NOT_CONFIRMED)
        objective = float(self.table.weights[search.best & ~self.table.sensitive].sum())
        bound = _bound_of_pattern(search.bound, objective, search.cost)
        proven = objective - bound <= max(self.limits.gap, 1e-9) * abs(objective)  # never of NaN
        return Suppression(
            table=self.table,
            status=Status.OPTIMAL if proven else Status.TIME_LIMIT if ends.passed else Status.FEASIBLE,
            objective=objective,
            bound=bound,
            seconds=self.seconds,
            options=self._options(),
            suppressed=search.best,
            details={"cuts": search.cuts, "nodes": search.nodes, "rounds": search.rounds},
        )

    @property
    def _audited_later(self) -> bool:
        """Whether :func:`against_respondents` audits the pattern everywhere: that includes what is asked here."""
        return any(attacker.derived for attacker in self.table.attackers)

    def _searched(self, problem: SuppressionProblem, ends: Deadline) -> Search | LargeSearch:
        """Search until the time is up, or until whoever waits is tired of it."""
        usable = int(problem.usable.sum())
        large = usable > _LARGE or (usable > _LARGE // 2 and len(problem.requests) > _MANY)
        search: Search | LargeSearch
        if large:
            search = LargeSearch(problem=problem, limits=self.limits)
        else:
            search = Search(problem=problem, limits=self.limits, once=self.method == "exact")
        reduced = self.limits.spent_s
        try:
            if search.start(ends):
                search_and_prove(search, self.method, self.rounds, ends)
        except KeyboardInterrupt:  # what is returned then is the best safe pattern so far
            if search.best is None:
                raise
        spent = self.limits.spent_s
        self.seconds |= {"reduce": reduced, "solve": spent - reduced, "total": spent}
        return search

    def _hopeless(self, problem: SuppressionProblem, unmet: list[int], *, proven: bool) -> Suppression:
        from cellguard.methods.suppress.explain import explain_no_pattern

        why = (
            explain_no_pattern(self.table, problem, unmet, self.limits.last_word) if proven and unmet else _NOT_DECIDED
        )
        return self._nothing(problem, Status.INFEASIBLE if proven else Status.TIME_LIMIT, why)

    def _nothing(self, problem: SuppressionProblem, status: Status, why: str) -> Suppression:
        return Suppression(
            table=self.table, status=status, objective=float("nan"), seconds=self.seconds, options=self._options(),
            explanation=why, suppressed=problem.forced,
        )  # fmt: skip

    def _options(self) -> dict[str, Any]:
        limits = self.limits
        return {
            "method": self.method, "time_limit_s": limits.time_limit_s, "gap": limits.gap, "seed": limits.seed,
            "rounds": self.rounds,
        }  # fmt: skip


def _bound_of_pattern(proven: float, objective: float, cost: float) -> float:
    """What is proven of the objective; NaN when nothing is."""
    # what forced and aliased cells cost is in every pattern, and not in the costs of the search
    bound = min(max(proven, 0.0) + objective - cost, objective)
    return bound if bound > 0 or objective <= 0 else float("nan")


def _suppress_counts_by_enumeration(
    table: Table, forced: BoolArray, seed: int, resist: str | CountRule | None
) -> Suppression | None:
    """Suppress a two-way frequency table by enumeration: the optimum in milliseconds, or one that resists."""
    from cellguard.methods.suppress.resist import (
        count_suppression_applies,
        optimal_suppression_of_counts,
        resist_matching,
    )

    if resist is not None:
        if (forced & ~table.sensitive).any():
            raise InputError("resist: cells that are already suppressed cannot be taken into account.")
        return resist_matching(table, None if isinstance(resist, str) else resist, seed=seed or None)
    if not count_suppression_applies(table) or (forced & ~table.sensitive).any():
        return None
    release = optimal_suppression_of_counts(table, limit=200_000)
    return release if release.status is Status.OPTIMAL else None


def _prepared_to_suppress(
    table: Table, weights: str | ArrayLike | None, power: float, prefer: ArrayLike, must_publish: ArrayLike
) -> Table:
    from cellguard.methods.suppress.costs import costs

    fixed = _cells_given_to_suppress(table, must_publish, "must_publish")
    bad = fixed & table.sensitive
    if bad.any():
        raise InputError(
            f"{table.label(int(np.argmax(bad)))}: must be published and is sensitive.",
            hint="take it out of the cells that must be published.",
        )
    if fixed.any():
        table = table.with_(fixed=table.fixed | fixed)
    welcome = _cells_given_to_suppress(table, prefer, "prefer")
    if weights is None and not welcome.any():
        return table
    return table.with_(weights=costs(table, weights, power, welcome))


def _cells_given_to_suppress(table: Table, given: ArrayLike, name: str) -> BoolArray:
    array = np.asarray(given)
    out = np.zeros(table.n_cells, bool)
    if array.dtype == bool:
        if array.shape != out.shape:
            raise InputError(f"{name}: {array.size} truth values given for {table.n_cells} cells.")
        return array.copy()
    index = array.ravel().astype(np.int64)
    if len(index) and (index.min() < 0 or index.max() >= table.n_cells):
        raise InputError(f"{name}: a cell index lies outside 0..{table.n_cells - 1}.")
    out[index] = True
    return out
