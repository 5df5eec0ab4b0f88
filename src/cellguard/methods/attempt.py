"""One attempt: solve, audit the planned release, and repair what the audit does not accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cellguard._types import IntArray
from cellguard.methods.demands import list_required_levels
from cellguard.model.levels import list_attackers
from cellguard.release.readers.read_release import check_release_to_audit
from cellguard.release.release import Status

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.auditing.audit import Audit
    from cellguard.methods.limits import Limits
    from cellguard.methods.procedure import Candidate, Problem, Procedure
    from cellguard.model.levels import Levels
    from cellguard.model.table import Table

__all__ = [
    "audit_planned",
    "list_missed_cells",
    "raise_levels",
    "refuse_candidate",
    "solve_confirmed",
    "solve_explained",
]

LEAST_AUDIT_S = 0.5
"""Minimum time for an audit, even after the deadline."""
LEVEL_MARGIN = 1e-5
"""Share of a level by which programs must exceed it where they missed it by their tolerance."""


def solve_explained(procedure: Procedure, problem: Problem, limits: Limits) -> Candidate:
    """Solve a problem; if no release is possible, explain why."""
    candidate = procedure.solve(problem, limits)
    release = candidate.release
    if release.published or release.explanation:
        return candidate
    return replace(candidate, release=replace(release, explanation=procedure.explain(candidate, limits)))


def solve_confirmed(procedure: Procedure, problem: Problem, limits: Limits) -> Candidate:
    """Solve a problem and repair the result until the audit accepts it; return no release if it never does.

    Programs in floating point meet a level only up to their tolerance, and may use fractions where only whole numbers
    are possible; the audit does not. What the audit cannot decide within the limits counts as missed.
    """
    candidate = solve_explained(procedure, problem, limits)
    for attempt in range(procedure.max_repairs + 1):
        if not candidate.release.published:
            return candidate
        found = audit_planned(candidate, limits.last_word.choose_later(candidate.audit_s))
        if found is None:
            return candidate
        if found.safe or not found.checked:
            times = cast("dict[str, float]", candidate.release.seconds)  # changed in place: the release keeps its audit
            times |= {"audit": found.seconds, "total": limits.spent_s}
            return candidate
        last = limits.deadline.passed or attempt == procedure.max_repairs
        repaired = None if last else procedure.repair(candidate, found, limits)
        if repaired is None and candidate.fallback is not None and attempt < procedure.max_repairs:
            repaired = replace(candidate, release=candidate.fallback, fallback=None)
        if repaired is None:
            break
        candidate = repaired
    return refuse_candidate(candidate, procedure.not_confirmed)


def audit_planned(candidate: Candidate, until: Deadline, *, everywhere: bool = False) -> Audit | None:
    """Audit a candidate against the attackers it was planned against, without the cross; None if nothing is required.

    With `everywhere`, respondents attack every sensitive cell.
    """
    release, table = candidate.release, candidate.release.table
    if not any(len(need.cells) for need in list_required_levels(table)):
        check_release_to_audit(release)
        return None
    options: dict[str, Any] = {"shown": candidate.problem.shown, "exact": False}
    if table.crosses:
        options["cross"] = False
    if not everywhere and any(attacker.derived for attacker in table.attackers):
        options["everywhere"] = False
    return release.audit(time_limit_s=until.get_seconds_at_least(LEAST_AUDIT_S), **options)


def refuse_candidate(candidate: Candidate, why: str, *, unproven: tuple[str, ...] = ()) -> Candidate:
    """Return the candidate without a release: the limit was reached before the audit accepted one.

    `unproven` names the attackers against whom it may not be safe, if the audit accepted it against all others.
    """
    nothing, release = float("nan"), candidate.release
    refused = replace(release, status=Status.TIME_LIMIT, objective=nothing, bound=nothing, explanation=why)
    partial = release if release.published else candidate.partial
    return replace(candidate, release=refused, partial=partial, unproven=unproven)


def list_missed_cells(table: Table, findings: Audit) -> list[IntArray]:
    """Return the cells whose levels an audit missed, attacker by attacker; none of those it did not ask about."""
    missed = {finding.attacker.name: finding.cells[~finding.safe] for finding in findings.findings}
    return [missed.get(attacker.name, np.zeros(0, np.int64)) for attacker in list_attackers(table)]


def raise_levels(needs: Sequence[Levels], cells: Sequence[IntArray], *, integer: bool) -> tuple[Levels, ...]:
    """Require slightly more than what an audit missed: one more for a count, a small share for other values."""
    out = []
    for need, which in zip(needs, cells, strict=True):
        more = {}
        for side in ("lower", "upper", "sliding"):
            level = getattr(need, side)
            wider = level + 1.0 if integer else level * (1 + LEVEL_MARGIN)
            more[side] = np.where(np.isin(need.cells, which) & (level > 0), wider, level)
        out.append(replace(need, **more))
    return tuple(out)
