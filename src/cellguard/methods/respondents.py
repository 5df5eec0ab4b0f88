"""Respondents as attackers of a method: planned against where they are near, and wherever else the audit finds them.

A lone respondent may compute a sensitive cell at the other end of a pattern. Holding every respondent off
every sensitive cell at once would be a thousand requests for each; few of them matter. So a method plans
against respondents near a cell, or against none at first, the audit looks everywhere, and what it finds is
planned against, too, until it finds nothing. What is proven of the cost stays proven: fewer requests are a relaxation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cellguard.nouns.levels import required_levels, with_respondents
from cellguard.nouns.release import Status

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["against_respondents"]

Verb = TypeVar("Verb", bound=Callable[..., "Release"])

_ROUNDS = 8
"""So often a method plans again; what is found in one round seldom takes a third."""
_SHARE = 0.6
"""Share of the time left that a round may take, so that the next one has some."""
_LEAST_S = 1.0


def against_respondents(*, near: bool) -> Callable[[Verb], Verb]:
    """Let a verb withstand the respondents of its table everywhere.

    Parameters
    ----------
    near
        Plan from the start against respondents near each cell, as suits a method for which a request is cheap;
        otherwise only against those that the audit finds.
    """
    return lambda verb: _careful(verb, near=near)


def _careful(verb: Verb, *, near: bool) -> Verb:
    @wraps(verb)
    def careful(table: Table, *args: Any, **options: Any) -> Release:
        table = with_respondents(table)
        if not any(attacker.derived for attacker in table.attackers):
            return verb(table, *args, **options)
        if not near:
            table = _without_plans(table)
        begin, limit = time.monotonic(), options.get("time_limit_s")
        for number in range(_ROUNDS):
            left = None if limit is None else float(limit) - (time.monotonic() - begin)
            if left is not None:
                options["time_limit_s"] = max(0.0, left if number == 0 else max(_SHARE * left, min(left, _LEAST_S)))
            release = verb(table, *args, **options)
            if not release.published:
                return release
            found = release.audit()
            if found.safe or found.checked == 0:
                return release
            table = _planned(release.table, found)
        return replace(
            release,
            status=Status.TIME_LIMIT,
            objective=float("nan"),
            explanation="respondents could still compute a sensitive cell when the search ended.",
        )

    return cast("Verb", careful)


def _without_plans(table: Table) -> Table:
    none: dict[str, Any] = {
        "sensitive": np.zeros(0, np.int64),
        **dict.fromkeys(("lower", "upper", "sliding"), np.zeros(0)),
    }
    return table.with_(attackers=tuple(replace(a, **none) if a.derived else a for a in table.attackers), insiders=True)


def _planned(table: Table, found: Audit) -> Table:
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
