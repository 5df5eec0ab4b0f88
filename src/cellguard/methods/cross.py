"""Linked tables whose unpublished cross is not negative: what that tells is closed after everything else.

Methods plan with the relations between published cells; few releases are closer than their levels because of the
cross. So the audit looks at what was planned, and what it finds is mended where a method can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits
from cellguard.nouns.release import Status

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["against_the_cross", "audit_what_method_planned"]

Verb = TypeVar("Verb", bound=Callable[..., "Release"])
Mend: TypeAlias = "Callable[[Release, Audit, Deadline], Release | None]"
"""Given a release and what the audit does not accept of it, returns one that keeps all that it does accept."""

_RESERVED, _LARGE = 0.15, 50_000
"""Share of the time that is kept for a large cross; of a smaller one less."""
_MENDS = 8
_CLOSER = (
    "somebody who knows that nothing in the unpublished cross of the linked tables is negative comes closer to a "
    "sensitive cell than its levels allow, or was not shown unable to."
)


def against_the_cross(mend: Mend | None = None) -> Callable[[Verb], Verb]:
    """Let a verb return only what the audit accepts with the cross of linked tables.

    Parameters
    ----------
    mend
        How a release is closed against what the audit found, if the method can be mended.
    """

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def careful(table: Table, *args: Any, **options: Any) -> Release:
            if not table.crosses or not table.sensitive.any():
                return verb(table, *args, **options)
            limits = Limits(time_limit_s=options.get("time_limit_s", DEFAULT_TIME_LIMIT_S))
            kept = _RESERVED * min(1.0, sum(map(len, table.crosses)) / _LARGE)
            ours = {"time_limit_s": (1 - kept) * limits.time_limit_s}
            release = verb(table, *args, **(options | ours))
            for _ in range(_MENDS):
                if not release.published:
                    return release
                found = release.audit(time_limit_s=limits.last_word.at_least())
                if found.safe or not found.checked:
                    return release
                closed = None if mend is None else mend(release, found, limits.deadline)
                if closed is None:
                    break
                release = closed
            return replace(release, status=Status.TIME_LIMIT, objective=float("nan"), explanation=_CLOSER)

        return cast("Verb", careful)

    return decorate


def audit_what_method_planned(release: Release, **options: Any) -> Audit:
    """Audit what a method has planned; what the cross adds comes later, and once."""
    return release.audit(**options, **({"cross": False} if release.table.crosses else {}))
