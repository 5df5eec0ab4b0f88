"""A pattern that somebody can still see through, mended: more is withheld, nothing is published again.

Whoever withholds more leaves every attacker at least as much room as before: a movement of the smaller pattern is one
of the larger pattern too. So what the audit has accepted stays accepted, and only what it has not is protected, by the
cheapest movements in which cells that are withheld already cost nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.shown import remember_shown
from cellguard._types import BoolArray
from cellguard.check.cross import reaches_audited_with_cross
from cellguard.methods.suppress.cheapest_movement import Protector
from cellguard.methods.suppress.construct import construct
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.requests import missed_by_pattern
from cellguard.methods.suppress.space import PatternSpace

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.levels import Levels
    from cellguard.nouns.release import Suppression

__all__ = ["mended_pattern", "pattern_mended_with_cross"]

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


def pattern_mended_with_cross(release: Suppression, found: Audit, deadline: Deadline) -> BoolArray | None:
    """Return a pattern in which cells reach their levels with a cross that is not negative; None where none was found.

    Each cell that does not is moved with the cross behind it, at the least price of what is still published.
    """
    table, withheld = release.table, release.suppressed.copy()
    reaches = reaches_audited_with_cross(release, deadline)
    room = np.where(table.fixed, 0.0, table.lb - table.values), np.where(table.fixed, 0.0, table.ub - table.values)
    for finding in found.findings:
        need, known = finding.levels, table.bounds(finding.attacker)
        bounds = np.maximum(room[0], known[0] - table.values), np.minimum(room[1], known[1] - table.values)
        for k in np.flatnonzero(~finding.safe).tolist():
            cell = int(need.cells[k])
            for reach, by in product(reaches, _movements_pattern_must_allow(need, k)):
                more = reach.cheapest(cell, by, withheld, table.weights, bounds, deadline)
                if more is None:
                    return None
                withheld |= more
    return withheld if (withheld & ~release.suppressed).any() else None


def _movements_pattern_must_allow(need: Levels, k: int) -> tuple[float, ...]:
    """Return by how much one cell must be able to move: down and up, and what its width asks for besides."""
    lower, upper = float(need.lower[k]), float(need.upper[k])
    more = max(0.0, float(need.sliding[k]) - lower - upper)
    return tuple(by for by in (-lower, upper + more) if by)
