"""Respondents as attackers of a method: plan against those nearby, and against others that the audit finds.

A lone respondent may compute a sensitive cell at the other end of a pattern. Protecting every sensitive cell against
every respondent at once would take a thousand requests per cell; few of them matter. So a method plans against
respondents near a cell, or against none at first. The audit checks everywhere, and the method also plans against what
it finds, until it finds nothing. A proven bound on the cost stays valid: fewer requests are a relaxation.
If a method can repair, its first release is completed against everyone and audited before it searches for better ones.
What it finds later is completed and audited as well; the best release that the audit accepted is returned, and only
such releases are reported as progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import Deadline, now
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard._interrupt import was_interrupted
from cellguard.methods.attempt import audit_planned, refuse_candidate, solve_confirmed, solve_explained
from cellguard.methods.partial import CROSS, RESPONDENTS
from cellguard.methods.procedure import Problem
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.release.release import Status

if TYPE_CHECKING:
    from cellguard._types import IntArray
    from cellguard.auditing.audit import Audit
    from cellguard.methods.limits import Limits
    from cellguard.methods.procedure import Candidate, Completed, Procedure
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["RespondentRounds"]


@dataclass(frozen=True, kw_only=True)
class RoundPolicy:
    """How the time is divided among rounds of planning against respondents.

    A rough pattern shows what respondents can still compute as well as the best one does. An early safe release is
    worth more than a proof for a table that is not yet protected against them. ``make bench BENCH=everyday`` compares
    changes. No measurement is recorded here for the single numbers.
    """

    max_rounds: int = 8
    """Maximum number of rounds of planning; findings of one round seldom take a third."""
    first_share: float = 0.2
    """Share of the remaining time for the first round."""
    plain_share: float = 0.6
    """Share of the remaining time for the first round of a method that plans against no respondent at first."""
    later_share: float = 0.35
    """Share of the remaining time for a later round."""
    better_share: float = 0.9
    """Share of the remaining time for a round after a safe release was found."""
    improve_shares: tuple[float, ...] = (0.4, 0.5, 0.6)
    """Shares of the remaining time for the first rounds after a quick release.

    A later round plans against what the round before it shows to be missing. What is missing from a good pattern
    differs from what is missing from a rough one: a survey of 2,720 cells had 159 requests that no earlier pattern had
    shown, and meeting them afterwards cost 8%."""
    confirm_share: float = 0.3
    """Share of the remaining time for confirming the first release."""
    reserve_ratio: float = 1.5
    """How many times as long the last confirmation may take as the first."""
    rough_share: float = 0.5
    """Share of the remaining time that a rough release may take."""
    retry_share: float = 0.5
    """Share of the remaining time for a round whose share was too short to confirm any pattern."""
    closed_gap: float = 1e-9
    """Relative distance to the bound at which a release counts as optimal."""
    near_plan: float = 0.02
    """Extra cost of a repaired release over the plan, as a share, that is good enough when rounds are limited."""
    max_repairs: int = 3
    """Maximum number of repairs: the audit finds what programs in floating point miss."""
    least_s: float = 0.5
    """Seconds that every round gets, if that many are left."""
    worthwhile_s: float = 3.0
    """With fewer seconds left, do not search again for a safe release that the limit cut short."""


ROUND_POLICY = RoundPolicy()


class RespondentRounds:
    """Solve again against what the audit finds that respondents can compute, within one limit."""

    def __init__(
        self, procedure: Procedure, limits: Limits, confirm: Callable[[Candidate, Deadline], Candidate] | None = None
    ) -> None:
        self.procedure, self.limits, self.confirm = procedure, limits, confirm
        self.confirmed: Candidate | None = None
        """A candidate that was confirmed as well, if there is more to confirm than the audit does here."""
        self.deadline, self.last_word = limits.deadline, limits.last_word
        self.shown = ShownMovements()
        self.settling_s = 0.0
        """Seconds that the last candidate took to be completed, audited and repaired."""
        self.bound = float("-inf")
        self.accepted: Candidate | None = None
        """The cheapest candidate that the audit accepted."""
        self.partial: Candidate | None = None
        """The cheapest candidate that it did not accept."""
        self.last: Release | None = None
        """The last candidate of this procedure, safe or not."""
        self.settled = False
        """Whether the audit accepted the last candidate as it was."""

    def run(self, table: Table) -> Candidate:
        """Return the best candidate that the audit accepts, or one that explains why there is none."""
        if not self.procedure.plans_near_respondents:
            table = _clear_respondent_requests(table)
        try:
            table = self._find_quick(table)
            table = self._find_rough(table)
            found = self._find_best(table)
        except KeyboardInterrupt:  # a user who interrupts gets the best so far
            if self.accepted is None:
                raise
            found = self.accepted
        if not found.release.published and self.partial is not None:
            found = replace(found, partial=self.partial.release, unproven=_get_unproven(table))
        return self._add_best_bound(found)

    def _find_quick(self, table: Table) -> Table:
        """Find some safe candidate as early as possible; return the attackers against which it had to be planned."""
        quick = self.procedure.get_quick()
        if quick is None:
            return table
        candidate = self._solve(table, ROUND_POLICY.rough_share, quick)
        return self._settle(_cut_short(candidate)) if candidate.release.published else table

    def _find_rough(self, table: Table) -> Table:
        """Find a rough candidate that is safe; return the attackers against which it had to be planned."""
        rough = self.procedure.get_rough()
        if rough is None or self.accepted is not None:
            return table
        for _ in range(ROUND_POLICY.max_rounds):
            candidate = self._solve(table, ROUND_POLICY.rough_share, rough)
            if not candidate.release.published:
                break
            table = self._settle(_cut_short(candidate))  # returned only if the limit ends the better search
            if self._is_finished():
                break
        return table

    def _is_finished(self) -> bool:
        """Return whether a safe candidate was found, or the time is up."""
        return self.accepted is not None or self.deadline.passed

    def _settle(self, candidate: Candidate) -> Table:
        """Complete, audit and repair a candidate, and keep it if it is the best that the audit accepts.

        Return its table with the requests that it did not meet at first.
        """
        table, begin = candidate.release.table, now()
        if self.accepted is not None and candidate.release.objective >= self.accepted.release.objective:
            self.settled = True  # what is added would increase its cost further
            return table
        if not self.deadline.passed:
            completed = self.procedure.complete(candidate, self.deadline)
            if completed is not None:
                candidate = completed.candidate
                table = _add_requests(table, _group_by_attacker(table, completed))
        found = self._audit(candidate)
        closed: Candidate | None = candidate
        self.settled = found is None or found.safe or not found.checked
        if found is not None and not self.settled:
            table = _add_found_requests(table, found)
            self._keep_partial(candidate)
            closed = self._repair(candidate, found)
        if closed is not None and (
            self.accepted is None or closed.release.objective <= self.accepted.release.objective
        ):
            self.accepted = closed
            self.limits.tell(closed.release.objective, self._bound_cost(closed.release.objective))
        self.settling_s = now() - begin
        if closed is not None and self.confirm is not None:
            self._confirm_early(closed)
        return table

    def _confirm_early(self, candidate: Candidate) -> None:
        """Confirm the first safe candidate, keep it, and reserve the time that confirming the last one will take."""
        assert self.confirm is not None  # noqa: S101 - for the type checker
        begin = now()
        confirmed = self.confirm(candidate, self.deadline.take_share(ROUND_POLICY.confirm_share))
        self.deadline = Deadline(self.deadline.at - ROUND_POLICY.reserve_ratio * (now() - begin))
        self.confirmed = confirmed if confirmed.release.published else None
        self.confirm = None

    def _keep_partial(self, candidate: Candidate) -> None:
        """Keep the cheapest candidate that is not shown safe against everyone."""
        if self.partial is None or candidate.release.objective < self.partial.release.objective:
            self.partial = candidate

    def _bound_cost(self, cost: float) -> float:
        return min(cost, max(self.bound, 0.0))

    def _repair(self, candidate: Candidate, found: Audit) -> Candidate | None:
        """Return a candidate that fixes what the audit found, once the audit accepts it."""
        for _ in range(ROUND_POLICY.max_repairs):
            if not self.procedure.repairs_every_finding or self.deadline.passed:
                return None
            repaired = self.procedure.repair(candidate, found, self.limits)
            if repaired is None:
                return None
            again = self._audit(repaired)
            if again is None or again.safe:
                return repaired
            candidate, found = repaired, again
        return None

    def _find_best(self, table: Table) -> Candidate:
        """Solve, audit, repair, and plan against what was found, until nothing is found or the time is up."""
        candidate = self.accepted
        for number in range(ROUND_POLICY.max_rounds):
            late = self.deadline.passed or was_interrupted()  # the search handled Ctrl-C
            if self.accepted is not None and (late or self._is_too_late_to_settle()):
                break
            candidate = self._solve(table, self._get_share(number))
            release = candidate.release
            if not release.published and self._was_cut(release) and self.accepted is None:
                candidate = self._solve_again(table)  # the share was too short, not the limit
                release = candidate.release
            if not release.published:
                return candidate if self.accepted is None else self.accepted
            cut = self._was_cut(release)
            table = self._settle(candidate)
            if self.accepted is not None and not cut and (self.settled or _is_good_enough(release, self.accepted)):
                return _mark_finished(self.accepted, release)
            if self.deadline.passed:
                break
        if self.accepted is not None:
            return self.accepted
        assert candidate is not None  # noqa: S101 - for the type checker: there was a round
        return refuse_candidate(candidate, _STILL, unproven=_get_unproven(table))

    def _was_cut(self, release: Release) -> bool:
        """Return whether the share of the time was too short for a search, and another one is worthwhile."""
        return release.status is Status.TIME_LIMIT and self.deadline.left > ROUND_POLICY.worthwhile_s

    def _get_share(self, number: int) -> float:
        """Return the share of the remaining time for a round."""
        if self.accepted is not None:
            shares = ROUND_POLICY.improve_shares
            return shares[number] if number < len(shares) else ROUND_POLICY.better_share
        return ROUND_POLICY.later_share if number else self._first_share

    @property
    def _first_share(self) -> float:
        """Share of the time for the first round: a method that can repair is safe after it."""
        if not self.procedure.plans_near_respondents:
            return ROUND_POLICY.plain_share
        return ROUND_POLICY.rough_share if self.procedure.repairs_every_finding else ROUND_POLICY.first_share

    def _solve_again(self, table: Table) -> Candidate:
        """Try with half of the remaining time, and with all of it only if that was too short as well."""
        candidate = self._solve(table, ROUND_POLICY.retry_share)
        release = candidate.release
        late = release.status is Status.TIME_LIMIT and self.deadline.left > ROUND_POLICY.worthwhile_s
        return self._solve(table, 1.0) if late and not release.published else candidate

    def _solve(self, table: Table, share: float, procedure: Procedure | None = None) -> Candidate:
        """Solve in a share of the remaining time, less what completing and auditing the last candidate took."""
        procedure = self.procedure if procedure is None else procedure
        left = self.deadline.left
        ours = share * self._compute_free_s()
        limits = self._report_proven_progress(self.limits.start_again(max(ours, min(left, ROUND_POLICY.least_s))))
        # a method that repairs every finding needs no audit here: the audit of the round, which follows, requires more
        solve = solve_explained if procedure.repairs_every_finding else solve_confirmed
        start = None if self.accepted is None else self.accepted.release
        candidate = solve(procedure, Problem(table=table, shown=self.shown, start=start, last=self.last), limits)
        if candidate.release.published:
            self.last = candidate.release
        self.bound = max(self.bound, candidate.release.bound)  # NaN is not larger
        return candidate

    def _compute_free_s(self) -> float:
        """Return the seconds that are left for searching before the next candidate must be completed and audited."""
        return max(0.0, self.deadline.left - ROUND_POLICY.reserve_ratio * self.settling_s)

    def _is_too_late_to_settle(self) -> bool:
        """Return whether what a search finds now could not be completed and audited in time."""
        return self.settling_s > ROUND_POLICY.worthwhile_s and self._compute_free_s() <= 0

    def _report_proven_progress(self, limits: Limits) -> Limits:
        """Report the best release that the audit accepted, with the bound of all rounds: every round requires more.

        A release that is not completed against all respondents is cheaper, and no progress.
        """
        tell = limits.progress
        if tell is None or not self.procedure.repairs_every_finding:
            return limits

        def tell_best(cost: float, bound: float) -> None:
            del cost
            if self.accepted is not None and bound > self.bound:
                best = self.accepted.release.objective
                tell(best, min(best, bound))

        return replace(limits, progress=tell_best)

    def _add_best_bound(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the best bound of all rounds: what is proven with fewer requests holds with more."""
        release = candidate.release
        if not release.published or (not self.bound > release.bound and not isnan(release.bound)):
            return candidate
        bound = min(self.bound, release.objective)
        if not isfinite(bound):
            return candidate
        closed = release.objective - bound <= max(self.limits.gap, ROUND_POLICY.closed_gap) * abs(release.objective)
        status = Status.OPTIMAL if closed else release.status
        return replace(candidate, release=replace(release, bound=bound, status=status))

    def _audit(self, candidate: Candidate) -> Audit | None:
        return audit_planned(candidate, self.last_word, everywhere=True)


def _mark_finished(accepted: Candidate, last: Release) -> Candidate:
    """Return the accepted candidate as the result of a search that the limit did not end: nothing cheaper was found."""
    release = accepted.release
    if release.status is not Status.TIME_LIMIT or last.status is Status.TIME_LIMIT:
        return accepted
    details = {**release.details, **last.details}
    return replace(accepted, release=replace(release, status=Status.FEASIBLE, details=details))


def _cut_short(candidate: Candidate) -> Candidate:
    return replace(candidate, release=replace(candidate.release, status=Status.TIME_LIMIT))


def _is_good_enough(release: Release, closed: Candidate) -> bool:
    """Return whether planning again gains little: the round was not cut short, and its repair cost almost nothing."""
    if release.status is not Status.FEASIBLE:
        return False
    return closed.release.objective - release.objective <= ROUND_POLICY.near_plan * abs(release.objective)


def _get_unproven(table: Table) -> tuple[str, ...]:
    """Return the attackers who are left if a release is not shown safe against respondents."""
    return (RESPONDENTS, CROSS) if table.crosses else (RESPONDENTS,)


_STILL = "respondents could still compute a sensitive cell, or were not shown unable to, when the search ended."


def _clear_respondent_requests(table: Table) -> Table:
    none: dict[str, Any] = {"sensitive": np.zeros(0, np.int64)}
    none |= dict.fromkeys(("lower", "upper", "sliding"), np.zeros(0))
    return table.with_(attackers=tuple(replace(a, **none) if a.derived else a for a in table.attackers), insiders=True)


def _group_by_attacker(table: Table, completed: Completed) -> dict[str, IntArray]:
    """Return the cells that were not met before, by the name of the attacker."""
    attackers = list_attackers(table)
    who, cell = completed.attacker, completed.cell
    return {attackers[k].name: np.unique(cell[who == k]) for k in np.unique(who).tolist()}


def _add_found_requests(table: Table, found: Audit) -> Table:
    """Return the table with the audit's findings added to the cells that are protected against respondents."""
    return _add_requests(table, {f.attacker.name: f.cells[~f.safe] for f in found.findings if not f.safe.all()})


def _add_requests(table: Table, missed: dict[str, IntArray]) -> Table:
    """Return the table in which some cells, by the attacker's name, are protected against respondents as well."""
    attackers = []
    for attacker in table.attackers:
        cells = missed.get(attacker.name)
        if cells is None or not attacker.derived or attacker.sensitive is None:
            attackers.append(attacker)
            continue
        everywhere = compute_required_levels(table, attacker, everywhere=True)
        wanted = np.union1d(attacker.sensitive, cells)
        place = np.searchsorted(everywhere.cells, wanted)
        levels = {name: getattr(everywhere, name)[place] for name in ("lower", "upper", "sliding")}
        attackers.append(replace(attacker, sensitive=wanted, **levels))
    return table.with_(attackers=tuple(attackers), insiders=True)
