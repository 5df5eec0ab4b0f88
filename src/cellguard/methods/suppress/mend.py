"""A pattern that somebody can still see through, mended: more is withheld, nothing is published again.

Whoever withholds more leaves every attacker at least as much room as before: a movement of the smaller pattern is one
of the larger pattern too. So what the audit has accepted stays accepted, and only what it has not is protected, by the
cheapest movements in which cells that are withheld already cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.shown import remember_shown
from cellguard._types import BoolArray
from cellguard.methods.suppress.cheapest_movement import Protector
from cellguard.methods.suppress.construct import construct
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.requests import missed_by_pattern
from cellguard.methods.suppress.space import PatternSpace

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["mended_pattern"]

_MOST = 20_000
"""Requests beyond which the audit had no time to look, rather than found something."""


def mended_pattern(withheld: BoolArray, found: Audit, deadline: Deadline) -> BoolArray | None:
    """Return a pattern that also meets what the audit did not accept; None where none was found in time."""
    asked = missed_by_pattern(found)
    if not 0 < len(asked.requests) <= _MOST:
        return None
    problem = SuppressionProblem.of(found.release.table, forced=withheld, asked=asked)
    space = PatternSpace.of(problem, problem.usable)
    if len(space.disclosed):
        return None
    rows = np.zeros(len(space), bool)
    forced = space.row[problem.forced]
    rows[forced[forced >= 0]] = True
    rows, moves, failed = construct(
        Protector(space), rows, np.zeros((0, len(space))), largest_first=True, deadline=deadline
    )
    if failed:
        return None
    remember_shown(space.lifted(np.array(moves)))
    return space.pattern(rows)
