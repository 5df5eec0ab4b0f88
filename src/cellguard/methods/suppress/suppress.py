"""Cell suppression: the cheapest set of cells to withhold so that no attacker learns too much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.keys import refuse_seed_as_secret, take_key
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.procedure import Candidate, Completed, Problem, Procedure
from cellguard.methods.protection import Protection, choose_insiders
from cellguard.methods.suppress import METHOD
from cellguard.methods.suppress.confirm import audit_pattern
from cellguard.methods.suppress.costs import PREFERRED_SHARE
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.proof.proving import search_and_prove
from cellguard.methods.suppress.search.improve import Search
from cellguard.methods.suppress.search.neighbourhoods import LargeSearch
from cellguard.model.key import Key, KeyGiven
from cellguard.model.linked.publication import require_table
from cellguard.model.parts.cells import mask_cells
from cellguard.model.table import Table
from cellguard.release.release import Release, Status, Suppression

if TYPE_CHECKING:
    from cellguard.attacks.counts import CountRule
    from cellguard.auditing.audit import Audit
    from cellguard.history.derived import Derived
    from cellguard.history.earlier import EarlierRelease, History
    from cellguard.methods.method import Method
    from cellguard.model.linked.clusters import Keeper
    from cellguard.model.linked.publication import Publication

__all__ = ["SuppressProcedure", "suppress"]

CellsGiven = ArrayLike | Iterable[Any] | None
"""Cells by number, by truth values, or by codes."""


def suppress(
    table: Table | Publication,
    *,
    method: str = "auto",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
    seed: int = 0,
    key: KeyGiven | None = None,
    weights: str | ArrayLike | None = None,
    power: float = 0.5,
    prefer: CellsGiven = (),
    must_publish: CellsGiven = (),
    already_suppressed: CellsGiven = (),
    resist: str | CountRule | None = None,
    rounds: int | None = None,
    accept: str | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    insiders: bool | None = None,
    earlier: History | Sequence[Release | EarlierRelease] | None = None,
    derived: Sequence[Derived] = (),
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
        Decides ties and the random choices of the search. Refused with `resist`: a seed is not a secret.
    key
        The secret of `resist`: a :class:`cellguard.Key`, at least 16 bytes, or the file that holds them. Drawn from
        the operating system unless given; ``options["key"]`` has it. The same key gives the same pattern.
    weights
        Cost of withholding each cell: the table's, one number per cell, or a kind: ``"unit"``, ``"value"``,
        ``"log"``, ``"sqrt"``, ``"inverse"``, ``"frequency"`` (contributors) or ``"power"``.
    power
        Exponent of the value for ``weights="power"``; 0 is the logarithm.
    prefer
        Cells that are welcome as secondaries: they count a thousandth of their cost in the search. Cells are given
        by number, by one truth value per cell, or by codes: ``["N,f"]``, ``[("N", "f")]``, ``[{"region": "N"}]``.
    must_publish
        Cells that are published in every pattern, for instance because they are published elsewhere.
    already_suppressed
        Cells that stay withheld, because an earlier release withheld them.
    resist
        ``"matching"``: protect against an attacker who knows the algorithm, for two-way frequency tables
        (`suppress_against_matching`), whichever minimum frequency they have read that fits what is published. The
        rule itself, ``cg.CountRule(minimum=..., width=...)``: they have read this one, which costs less.
    rounds
        Rounds of improvement by the heuristic. The same number gives the same pattern on any machine, however
        fast, as long as the time limit is not reached; without it the time alone decides.
    accept
        ``"external"``: if no pattern is shown safe against everyone within the limit, return one that is safe against
        external attackers; ``release.explanation`` says against whom it is not. Nothing is returned otherwise.
    threads
        Cores to use. How many there are changes the time, not the pattern of a number of rounds.
    progress
        Called with the cost and its proven bound whenever a cheaper safe pattern is found.
    keeper
        Stores the release of each cluster of a publication when it is finished
        (:class:`cellguard.model.linked.clusters.Keeper`).
    insiders
        Whether respondents are attackers too: True, False, or as the table says (`Table.insiders`).
    earlier
        Earlier releases that show the same cells, or a :class:`cellguard.History` that says how they are linked. What
        was published stays published, what was withheld stays withheld, and the audit is of all together.
    derived
        Statistics to publish with the table (:class:`cellguard.Derived`). Figures that would tell too much are
        coarsened, then withheld; `figures` of the release has those to publish.

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
    named = {"prefer": prefer, "must_publish": must_publish, "already_suppressed": already_suppressed}
    system = require_table(table, METHOD.name)
    cells: dict[str, Any] = {name: np.flatnonzero(mask_cells(system, given, name)) for name, given in named.items()}
    procedure = SuppressProcedure(
        how=METHOD.match_choice("method", method), weights=weights, power=power,
        prefer=cells["prefer"], must_publish=cells["must_publish"], already_suppressed=cells["already_suppressed"],
        resist=METHOD.match_choice("resist", resist), rounds=rounds, key=take_key(key),
        accept=METHOD.match_choice("accept", accept),
    )  # fmt: skip
    refuse_seed_as_secret(METHOD, {"seed": seed, "resist": resist})
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    if earlier is not None or derived:
        from cellguard.history.earlier import History
        from cellguard.methods.suppress.remember import suppress_with_history

        system = choose_insiders(system, insiders)
        release = suppress_with_history(system, procedure, limits, History.from_any(earlier), derived)
    else:
        protection = Protection(procedure=procedure, limits=limits, keeper=keeper, insiders=insiders)
        release = cast("Suppression", protection.run(table))
    return _restore_weights(release, cells["prefer"]) if len(cells["prefer"]) else release


@dataclass(frozen=True, kw_only=True, eq=False)
class SuppressProcedure(Procedure):
    """Choose a pattern, withhold more where the audit asks for it, and say which cells cannot be protected."""

    method: ClassVar[Method] = METHOD
    plans_near_respondents: ClassVar[bool] = True
    repairs_every_finding: ClassVar[bool] = True
    not_confirmed: ClassVar[str] = "a pattern was found, but the audit did not confirm it within the limit."

    how: str = "auto"
    """The option `method` of the verb."""
    weights: str | ArrayLike | None = None
    power: float = 0.5
    prefer: ArrayLike = ()
    must_publish: ArrayLike = ()
    already_suppressed: ArrayLike = ()
    resist: str | CountRule | None = None
    rounds: int | None = None
    first_only: bool = False
    """Whether to end with the first pattern."""
    key: Key = field(default_factory=Key.draw)
    """The secret of what is drawn; the same for all clusters of a publication."""

    def get_quick(self) -> SuppressProcedure:
        """Return a search that ends with its first pattern."""
        return replace(self, first_only=True)

    def complete(self, candidate: Candidate, deadline: Deadline) -> Completed | None:
        """Withhold more until movements show that no respondent comes too close to a cell."""
        from cellguard.methods.suppress.everyone import complete_pattern

        old = cast("Suppression", candidate.release)
        if self.resist is not None or old.table.integer:  # counts need movements in whole numbers
            return None
        found = complete_pattern(old.table, old.suppressed, deadline, candidate.problem.shown)
        if found is None:
            return None
        wider = _widen(candidate, found.withheld) if (found.withheld & ~old.suppressed).any() else candidate
        return Completed(candidate=wider, attacker=found.attacker, cell=found.cell)

    def get_rough(self) -> SuppressProcedure | None:
        """Return a short heuristic search, unless the user chose how to search."""
        chosen = self.how != "auto" or self.rounds is not None or self.resist is not None
        return None if chosen else replace(self, how="heuristic", rounds=20)

    def prepare(self, table: Table) -> Table:
        """Return the table with the costs and the cells to publish that were requested."""
        METHOD.require_choices(method=self.how)
        if self.accept is not None:
            METHOD.require_choices(accept=self.accept)
        if isinstance(self.resist, str) and self.resist != "matching":
            raise InputError(f"resist {self.resist!r} is not known.", hint="matching is, and a cg.CountRule.")
        return _prepare_table(table, self.weights, self.power, self.prefer, self.must_publish)

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Return the cheapest pattern that was found."""
        table = problem.table
        forced = table.sensitive | mask_cells(table, self.already_suppressed, "already_suppressed")
        if self.resist is not None or self.how != "heuristic":
            counted = _suppress_counts_by_enumeration(table, forced, self.key, self.resist)
            if counted is not None:
                return Candidate(release=counted, problem=problem)
        run = _SuppressionRun(
            problem=problem, forced=forced, how=self.how, rounds=self.rounds, first_only=self.first_only, limits=limits
        )
        return run.run()

    def repair(self, candidate: Candidate, findings: Audit, limits: Limits) -> Candidate | None:
        """Withhold more, so that what the audit found is closed and all else stays so."""
        from cellguard.methods.suppress.repair import repair_pattern, repair_pattern_with_cross

        old = cast("Suppression", candidate.release)
        if self.resist is not None:  # the pattern resists as it was drawn
            return None
        if findings.with_cross:
            more = repair_pattern_with_cross(old, findings, limits.deadline)
        else:
            more = repair_pattern(old.suppressed, findings, limits.deadline, candidate.problem.shown)
        return None if more is None else _widen(candidate, more)

    def explain(self, candidate: Candidate, limits: Limits) -> str:
        """Name the cells that cannot be protected, and the published cells that are in the way."""
        from cellguard.methods.suppress.explain import explain_no_pattern

        problem, unmet = candidate.state
        return explain_no_pattern(candidate.release.table, problem, unmet, limits.last_word)


def _widen(candidate: Candidate, withheld: BoolArray) -> Candidate:
    """Return the candidate with more cells withheld."""
    old = cast("Suppression", candidate.release)
    objective = float(old.table.weights[withheld & ~old.table.sensitive].sum())  # what was optimal asked for less
    wider = replace(old, suppressed=withheld, objective=objective, status=Status.FEASIBLE)
    return replace(candidate, release=wider)


_MAX_QUICK_CELLS = 2_000
"""With more cells, counted once for each attacker, time is reserved for confirming the last pattern."""
_CONFIRM_TIME_SHARE = 0.15
"""Share of the time that is reserved for it."""
_AUDIT_RATIO = 5.0
"""An audit takes up to this many times as long as the range engine took to confirm the pattern of a large table."""
_LARGE = 20_000
"""Cells beyond which no program over the whole table is solved, and no bound is proven."""
_MANY = 10_000
"""Requests beyond which none is in half as large a table: where respondents know much, one takes seconds."""
_NOT_DECIDED = (
    "no pattern was shown safe within the limit, nor proven that none is: "
    "the time was too short, or the values are of too different a size."
)


@dataclass(kw_only=True, eq=False)
class _SuppressionRun:
    """One search for a pattern."""

    problem: Problem
    forced: BoolArray
    """Cells that every pattern withholds."""
    how: str
    rounds: int | None
    first_only: bool
    limits: Limits
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table to protect."""
        return self.problem.table

    def run(self) -> Candidate:
        problem = SuppressionProblem.of(self.table, forced=self.forced, shown=self.problem.shown)
        heavy = int(problem.usable.sum()) * (1 + len(self.table.attackers)) > _MAX_QUICK_CELLS
        ends = self.limits.deadline.take_share(1.0 - _CONFIRM_TIME_SHARE if heavy else 1.0)
        search = self._run_search(problem, ends)
        if heavy and search.best is None and self.limits.deadline.passed:  # an audit would say no more, and late
            return self._build_empty_release(problem, Status.TIME_LIMIT, _NOT_DECIDED)
        if search.best is None:
            # programs in floating point lose small cells beside large ones: only the audit may say that nothing is safe
            everything = problem.usable | problem.forced
            last = audit_pattern(self.table, everything, self.limits.last_word, problem.shown)
            if not last.safe:
                return self._report_infeasible(problem, search.unmet, proven=last.proven)
            search.best, search.cost = everything, problem.compute_cost(everything)
        objective = float(self.table.weights[search.best & ~self.table.sensitive].sum())
        bound = _bound_of_pattern(search.bound, objective, search.cost)
        proven = objective - bound <= max(self.limits.gap, 1e-9) * abs(objective)  # never of NaN
        release = Suppression(
            table=self.table,
            status=Status.OPTIMAL if proven else Status.TIME_LIMIT if ends.passed else Status.FEASIBLE,
            objective=objective,
            bound=bound,
            seconds=self.seconds,
            options=self._collect_options(),
            suppressed=search.best,
            details={"cuts": search.cuts, "nodes": search.nodes, "rounds": search.rounds},
        )
        return self._build_candidate(release, search)

    def _build_candidate(self, release: Suppression, search: Search | LargeSearch) -> Candidate:
        """Return the candidate; of a large search with its first pattern, and the time that an audit takes."""
        candidate = Candidate(release=release, problem=self.problem)
        if not isinstance(search, LargeSearch) or search.first is None:
            return candidate
        cost = float(self.table.weights[search.first & ~self.table.sensitive].sum())
        first = replace(release, suppressed=search.first, objective=cost, status=Status.FEASIBLE)
        fallback = first if cost > release.objective else None
        return replace(candidate, audit_s=_AUDIT_RATIO * search.judging_s, fallback=fallback)

    def _run_search(self, problem: SuppressionProblem, ends: Deadline) -> Search | LargeSearch:
        """Search until the time is up, or until the user interrupts it."""
        usable = int(problem.usable.sum())
        large = usable > _LARGE or (usable > _LARGE // 2 and len(problem.requests) > _MANY)
        search: Search | LargeSearch
        if large:
            search = LargeSearch(problem=problem, limits=self.limits)
        else:
            search = Search(problem=problem, limits=self.limits, once=self.how == "exact")
            search.cuts = 0 if self.problem.start is None else self.problem.start.details.get("cuts", 0)
            search.followed = search.cuts > 0
        reduced = self.limits.spent_s
        try:
            if self.first_only:
                search.find_first(ends)
            elif search.start_from(self._get_start()) or search.start(ends):
                search_and_prove(search, self.how, self.rounds, ends)
        except KeyboardInterrupt:  # what is returned then is the best safe pattern so far
            if search.best is None:
                raise
        spent = self.limits.spent_s
        self.seconds |= {"reduce": reduced, "solve": spent - reduced, "total": spent}
        return search

    def _get_start(self) -> BoolArray | None:
        """Return the pattern of the best release so far."""
        start = self.problem.start
        return None if start is None else cast("Suppression", start).suppressed

    def _report_infeasible(self, problem: SuppressionProblem, unmet: list[int], *, proven: bool) -> Candidate:
        """Return that no pattern is safe; where that is proven of some cells, they are named later."""
        why = "" if proven and unmet else _NOT_DECIDED
        status = Status.INFEASIBLE if proven else Status.TIME_LIMIT
        return replace(self._build_empty_release(problem, status, why), state=(problem, unmet))

    def _build_empty_release(self, problem: SuppressionProblem, status: Status, why: str) -> Candidate:
        release = Suppression(
            table=self.table, status=status, objective=float("nan"), seconds=self.seconds,
            options=self._collect_options(), explanation=why, suppressed=problem.forced,
        )  # fmt: skip
        return Candidate(release=release, problem=self.problem)

    def _collect_options(self) -> dict[str, Any]:
        limits = self.limits
        return {
            "method": self.how, "time_limit_s": limits.time_limit_s, "gap": limits.gap, "seed": limits.seed,
            "rounds": self.rounds,
        }  # fmt: skip


def _restore_weights(release: Suppression, preferred: IntArray) -> Suppression:
    """Return the release with the full weights of preferred cells: `cost` says what is withheld."""
    weights = release.table.weights.copy()
    weights[preferred] /= PREFERRED_SHARE
    priced = replace(release, table=release.table.with_(weights=weights))
    audits = {name: vars(release)[name] for name in ("_audited", "_judged") if name in vars(release)}
    for name, found in audits.items():
        object.__setattr__(priced, name, found)
    return priced


def _bound_of_pattern(proven: float, objective: float, cost: float) -> float:
    """What is proven of the objective; NaN when nothing is."""
    # what forced and aliased cells cost is in every pattern, and not in the costs of the search
    bound = min(max(proven, 0.0) + objective - cost, objective)
    return bound if bound > 0 or objective <= 0 else float("nan")


def _suppress_counts_by_enumeration(
    table: Table, forced: BoolArray, key: Key, resist: str | CountRule | None
) -> Suppression | None:
    """Suppress a two-way frequency table by enumeration: the optimum in milliseconds, or one that resists."""
    from cellguard.methods.suppress.resist import (
        count_suppression_applies,
        suppress_against_matching,
        suppress_counts_optimally,
    )

    if resist is not None:
        if (forced & ~table.sensitive).any():
            raise InputError("resist: cells that are already suppressed cannot be taken into account.")
        return suppress_against_matching(table, None if isinstance(resist, str) else resist, key=key)
    if not count_suppression_applies(table) or (forced & ~table.sensitive).any():
        return None
    release = suppress_counts_optimally(table, limit=200_000)
    return release if release.status is Status.OPTIMAL else None


def _prepare_table(
    table: Table, weights: str | ArrayLike | None, power: float, prefer: ArrayLike, must_publish: ArrayLike
) -> Table:
    from cellguard.methods.suppress.costs import compute_costs

    fixed = mask_cells(table, must_publish, "must_publish")
    bad = fixed & table.sensitive
    if bad.any():
        raise InputError(
            f"{table.label(int(np.argmax(bad)))}: must be published and is sensitive.",
            hint="take it out of the cells that must be published.",
        )
    if fixed.any():
        table = table.with_(fixed=table.fixed | fixed)
    welcome = mask_cells(table, prefer, "prefer")
    if weights is None and not welcome.any():
        return table
    return table.with_(weights=compute_costs(table, weights, power, welcome))
