"""A release that the limit left without proof: against whom it is shown safe, and against whom it is not.

Some attackers need more time than others: respondents are many, and the cross of linked tables is large. A candidate
that the audit accepts against external attackers is reported with that sentence, and published only if the user
accepts it. What is published then is a release for a table without respondents and crosses: every later audit asks
what was accepted, and says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cellguard.methods.demands import list_required_levels
from cellguard.release.release import Status

if TYPE_CHECKING:
    from cellguard.methods.limits import Limits
    from cellguard.methods.procedure import Candidate
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["ACCEPTED", "CROSS", "EXTERNAL_ONLY", "RESPONDENTS", "label_partial", "leave_out", "restrict_accepted"]

RESPONDENTS, CROSS = "respondents", "cross"
"""Attackers against whom a release may not be shown safe: respondents, and those who know the cross."""

EXTERNAL_ONLY = "external"
"""Accept a release that is shown safe against external attackers."""
ACCEPTED = "accepted"
"""Name of the statement among the details of a release that was accepted so (`Release.accepted` returns it)."""
LEAST_AUDIT_S = 1.0
"""Minimum time for the audit against external attackers, even after the deadline."""
HOW_TO_ACCEPT = 'accept = "external" publishes it all the same, and says so.'


def label_partial(candidate: Candidate, accept: str | None, limits: Limits) -> Candidate:
    """Say of a candidate without a release against whom the best one that was found is shown safe.

    With `accept` that release is published, together with the statement.
    """
    partial = candidate.partial
    if candidate.release.published or partial is None or candidate.release.status is not Status.TIME_LIMIT:
        return candidate
    outside = _find_accepted(partial, candidate.unproven, limits)
    if outside is None:
        return candidate
    statement = _describe(outside.table, partial.table)
    if accept != EXTERNAL_ONLY:
        why = f"{candidate.release.explanation} {statement} {HOW_TO_ACCEPT}"
        return replace(candidate, release=replace(candidate.release, explanation=why.strip()))
    published = replace(
        outside,
        bound=float("nan"),  # it holds for what is safe against everyone
        explanation=statement,
        options={**outside.options, "accept": accept},
        details={**outside.details, ACCEPTED: statement},
    )
    return replace(candidate, release=published)


def restrict_accepted(release: Release) -> Release:
    """Return the release of a publication of which a cluster was accepted: for all of it, no more is claimed."""
    if not release.accepted or not release.published:
        return release
    return replace(release, table=leave_out(release.table, (RESPONDENTS, CROSS)), bound=float("nan"))


def _find_accepted(partial: Release, unproven: tuple[str, ...], limits: Limits) -> Release | None:
    """Return the release for the attackers against whom the audit accepts it; None if there are none."""
    for left_out in dict.fromkeys((unproven, (RESPONDENTS, CROSS))):
        outside = replace(partial, table=leave_out(partial.table, left_out), status=Status.TIME_LIMIT)
        if not left_out or not any(len(need.cells) for need in list_required_levels(outside.table)):
            continue
        if outside.audit(exact=False, time_limit_s=limits.last_word.get_seconds_at_least(LEAST_AUDIT_S)).safe:
            return outside
    return None


def _describe(accepted: Table, whole: Table) -> str:
    """Return the sentence that says against whom a release is shown safe, and against whom not."""
    derived = any(attacker.derived for attacker in whole.attackers)
    shown, others = "external attackers", []
    if derived and accepted.insiders is False:
        others.append("respondents")
    elif derived:
        shown += " and respondents"
    if whole.crosses:
        others.append("attackers who know that nothing in the unpublished cross of the linked tables is negative")
    return f"A release was found that is shown safe against {shown}, but not against {' and '.join(others)}."


def leave_out(table: Table, left_out: tuple[str, ...]) -> Table:
    """Return the table without respondents among its attackers, or without what its crosses reveal."""
    if CROSS in left_out and table.crosses:
        table = table.with_(crosses=(), crosses_left_out=table.crosses_left_out + len(table.crosses))
    if RESPONDENTS in left_out:
        known = tuple(attacker for attacker in table.attackers if not attacker.derived)
        table = table.with_(attackers=known, insiders=False)
    return table
