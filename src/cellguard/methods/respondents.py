"""Respondents as attackers of a method: planned against where they are near, and wherever else the audit finds them.

A lone respondent may compute a sensitive cell at the other end of a pattern. Holding every respondent off
every sensitive cell at once would be a thousand requests for each; few of them matter. So a method plans
against respondents near a cell, or against none at first, the audit looks everywhere, and what it finds is
planned against, too, until it finds nothing. What is proven of the cost stays proven: fewer requests are a relaxation.
Where a method can be mended, what was found is closed at once, so that there is a safe release early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from cellguard._engine.ranges.shown import remembering_shown
from cellguard._interrupt import was_interrupted
from cellguard.methods.cross import audit_what_method_planned
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits
from cellguard.nouns.levels import required_levels, table_with_respondent_attackers
from cellguard.nouns.release import Status

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["against_respondents"]

Verb = TypeVar("Verb", bound=Callable[..., "Release"])
Mend: TypeAlias = "Callable[[Release, Audit, Deadline], Release | None]"
"""Given a release and what the audit does not accept of it, returns one that keeps all that it does accept."""

_ROUNDS = 8
"""So often a method plans again; what is found in one round seldom takes a third."""
_FIRST, _SHARE, _BETTER = 0.2, 0.35, 0.9
"""Shares of the time left that the first round may take, later ones, and those after a safe release was found.

What respondents are still able to compute shows in a rough pattern as well as in the best one: a safe release early
is worth more than a proof for a table in which they are not held off yet."""
_ROUGH = 0.5
"""Share of the time left that a rough release may take."""
_AGAIN = 0.5
"""Share of the time left for a round whose share was too short for any pattern to be confirmed."""
_CLOSED = 1e-9
"""Relative distance to the bound at which a release counts as the best."""
_NEAR_PLAN = 0.02
"""A mended release that costs at most so much more than what was planned is good enough for who counts rounds."""
_MENDS = 3
"""So often a release is mended: what programs in floating point miss is found by the audit."""
_LEAST_S = 0.5
_WORTHWHILE_S = 3.0
"""With less time left, a safe release that the limit cut short is not looked for again."""


def against_respondents(
    *, near: bool, quick: Mapping[str, Any] | None = None, mend: Mend | None = None
) -> Callable[[Verb], Verb]:
    """Let a verb withstand the respondents of its table everywhere.

    Parameters
    ----------
    near
        Plan from the start against respondents near each cell, as suits a method for which a request is cheap;
        otherwise only against those that the audit finds.
    quick
        Options with which the verb finds a rough release soon, where the caller has not given them: what respondents
        can still compute shows in it as well, and it is there when the time is short.
    mend
        How a release is closed against what the audit found, if the method can be mended.
    """

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def careful(table: Table, *args: Any, **options: Any) -> Release:
            table = table_with_respondent_attackers(table)
            if not any(attacker.derived for attacker in table.attackers):
                return verb(table, *args, **options)
            limits = Limits(time_limit_s=options.get("time_limit_s", DEFAULT_TIME_LIMIT_S))
            rounds = _Rounds(verb, args, options, limits)
            rounds.mend = mend
            if quick and not any(options.get(name) not in (None, "auto") for name in (*quick, "resist")):
                rounds.quick = quick
            with remembering_shown():
                return rounds.run(table if near else _against_no_respondents(table), near=near)

        return cast("Verb", careful)

    return decorate


class _Rounds:
    """A verb that plans again against what the audit finds, within one limit."""

    def __init__(
        self, verb: Callable[..., Release], args: tuple[Any, ...], options: dict[str, Any], limits: Limits
    ) -> None:
        self.verb, self.args, self.options = verb, args, options
        self.deadline, self.last_word = limits.deadline, limits.last_word
        self.audited_s = 0.0
        self.bound = float("-inf")
        self.quick: Mapping[str, Any] = {}
        self.mend: Mend | None = None

    def run(self, table: Table, *, near: bool) -> Release:
        """Return the best release that the audit accepts, or one that says why there is none."""
        table, best = self._first(table) if self.quick else (table, None)
        try:
            best = self._best(table, best, near=near)
        except KeyboardInterrupt:  # whoever is tired of waiting gets what is there
            if best is None:
                raise
        return self._proven(best)

    def _first(self, table: Table) -> tuple[Table, Release | None]:
        """Find a rough release that is safe, and against whom it had to be planned."""
        for _ in range(_ROUNDS):
            release = self._protect(table, _ROUGH, self.quick)
            if not release.published:
                break
            found = self._audit(release)
            if found.safe or found.checked == 0:  # it is returned only where the limit ends the better search
                return table, replace(release, status=Status.TIME_LIMIT)
            table = _against_respondents_found(release.table, found)
            closed = self._mended(release, found)
            if closed is not None:
                return table, replace(closed, status=Status.TIME_LIMIT)
            if self.deadline.passed:
                break
        return table, None

    def _mended(self, release: Release, found: Audit) -> Release | None:
        """Return a release closed against what the audit found, once the audit accepts it."""
        for _ in range(_MENDS):
            more = None if self.mend is None or self.deadline.passed else self.mend(release, found, self.deadline)
            if more is None:
                return None
            release, found = more, self._audit(more)
            if found.safe:
                return release
        return None

    def _best(self, table: Table, best: Release | None, *, near: bool) -> Release:
        release = best
        # what can be mended is safe after a first round, and worth as much as the rest
        first = 1.0 if not near else _FIRST if self.mend is None else _ROUGH
        for number in range(_ROUNDS):
            if best is not None and (self.deadline.passed or was_interrupted()):  # the verb took Ctrl-C for itself
                break
            share = _BETTER if best is not None else _SHARE if number else first
            release = self._protect(table, share)
            cut = release.status is Status.TIME_LIMIT and self.deadline.left > _WORTHWHILE_S
            if not release.published:
                if cut and best is None and share < 1.0:  # the share was too short, not the limit
                    release = self._again(table)
                if not release.published:
                    return release if best is None else best
            found = self._audit(release)
            if found.checked == 0:
                return release
            closed = release if found.safe else self._mended(release, found)
            if closed is not None and (best is None or closed.objective <= best.objective):
                best = closed
            if best is not None and not cut and (found.safe or _rounds_against_respondents_enough(release, closed)):
                return best
            table = release.table if found.safe else _against_respondents_found(release.table, found)
            if self.deadline.passed:
                break
        if best is not None:
            return best
        assert release is not None  # noqa: S101 - for the type checker: there was a round
        return replace(release, status=Status.TIME_LIMIT, objective=float("nan"), explanation=_STILL)

    def _again(self, table: Table) -> Release:
        """Try with half of the time that is left, and with all of it only if that was too short, too."""
        release = self._protect(table, _AGAIN)
        late = release.status is Status.TIME_LIMIT and self.deadline.left > _WORTHWHILE_S
        return self._protect(table, 1.0) if late and not release.published else release

    def _protect(self, table: Table, share: float, others: Mapping[str, Any] | None = None) -> Release:
        left = self.deadline.left
        ours = share * max(0.0, left - 1.5 * self.audited_s)
        options = self.options | dict(others or {}) | {"time_limit_s": max(ours, min(left, _LEAST_S))}
        tell = self.options.get("progress")
        if tell is not None and isfinite(self.bound):  # what the last round proved stays proven: now more is asked
            options["progress"] = lambda cost, bound: tell(cost, min(cost, max(self.bound, bound)))
        release = self.verb(table, *self.args, **options)
        self.bound = max(self.bound, release.bound)  # NaN is not larger
        return release

    def _proven(self, release: Release) -> Release:
        """Return a release with the best bound of all rounds: what is proven with fewer requests holds with more."""
        if not release.published or (not self.bound > release.bound and not isnan(release.bound)):
            return release
        bound = min(self.bound, release.objective)
        if not isfinite(bound):
            return release
        gap = max(float(self.options.get("gap", 0.0)), _CLOSED)
        closed = release.objective - bound <= gap * abs(release.objective)
        return replace(release, bound=bound, status=Status.OPTIMAL if closed else release.status)

    def _audit(self, release: Release) -> Audit:
        found = audit_what_method_planned(release, time_limit_s=self.last_word.at_least(_LEAST_S))
        self.audited_s = found.seconds
        return found


def _rounds_against_respondents_enough(release: Release, closed: Release | None) -> bool:
    """Whether planning again gains little: a round that ended of itself, and whose mending cost next to nothing."""
    if closed is None or release.status is not Status.FEASIBLE:
        return False
    return closed.objective - release.objective <= _NEAR_PLAN * abs(release.objective)


_STILL = "respondents could still compute a sensitive cell, or were not shown unable to, when the search ended."


def _against_no_respondents(table: Table) -> Table:
    none: dict[str, Any] = {"sensitive": np.zeros(0, np.int64)}
    none |= dict.fromkeys(("lower", "upper", "sliding"), np.zeros(0))
    return table.with_(attackers=tuple(replace(a, **none) if a.derived else a for a in table.attackers), insiders=True)


def _against_respondents_found(table: Table, found: Audit) -> Table:
    """Return the table with what the audit found among the cells that respondents are held off."""
    missed = {f.attacker.name: f.cells[~f.safe] for f in found.findings if not f.safe.all()}
    attackers = []
    for attacker in table.attackers:
        cells = missed.get(attacker.name)
        if cells is None or not attacker.derived or attacker.sensitive is None:
            attackers.append(attacker)
            continue
        everywhere = required_levels(table, attacker, everywhere=True)
        wanted = np.union1d(attacker.sensitive, cells)
        place = np.searchsorted(everywhere.cells, wanted)
        levels = {name: getattr(everywhere, name)[place] for name in ("lower", "upper", "sliding")}
        attackers.append(replace(attacker, sensitive=wanted, **levels))
    return table.with_(attackers=tuple(attackers), insiders=True)
