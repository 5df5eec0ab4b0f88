"""Repair a pattern that an attacker can still see through: withhold more, publish nothing again.

Withholding more leaves every attacker at least as much slack as before: a movement of the smaller pattern is also one
of the larger pattern. So what the audit has accepted stays accepted. Only the rest must be protected, by the
cheapest movements in which cells that are already withheld cost nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray
from cellguard.auditing.cross import build_cross_reaches
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.requests import translate_findings
from cellguard.methods.suppress.search.cheapest_movement import Protector
from cellguard.methods.suppress.search.construct import construct
from cellguard.methods.suppress.search.neighbourhoods import protect_in_windows
from cellguard.methods.suppress.search.space import PatternSpace

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.shown import ShownMovements
    from cellguard.auditing.audit import Audit
    from cellguard.model.levels import Levels
    from cellguard.release.release import Suppression

__all__ = ["repair_pattern", "repair_pattern_with_cross"]

_MOST = 20_000
"""With more requests than this, the audit ran out of time rather than found something."""
MAX_WHOLE_CELLS = 20_000
"""With more cells than this, repair in windows around the cells: a program over the whole table takes seconds."""


def repair_pattern(
    withheld: BoolArray, found: Audit, deadline: Deadline, shown: ShownMovements | None = None
) -> BoolArray | None:
    """Return a pattern that also meets what the audit did not accept; None if none was found in time.

    Add the movements that prove it to `shown`.
    """
    asked = translate_findings(found)
    if not 0 < len(asked.requests) <= _MOST:
        return None
    problem = SuppressionProblem.of(found.release.table, forced=withheld, asked=asked, shown=shown)
    if int(problem.usable.sum()) > MAX_WHOLE_CELLS:
        return protect_in_windows(problem, deadline)
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
    problem.shown.remember(space.lift_movements(np.array(moves)))
    return space.build_pattern(rows)


def repair_pattern_with_cross(release: Suppression, found: Audit, deadline: Deadline) -> BoolArray | None:
    """Return a pattern in which cells reach their levels with a non-negative cross; None if none was found.

    Each cell that misses its level is moved together with the cross, at the least cost of cells still published.
    """
    table, withheld = release.table, release.suppressed.copy()
    reaches = build_cross_reaches(release, deadline)
    slack = np.where(table.fixed, 0.0, table.lb - table.values), np.where(table.fixed, 0.0, table.ub - table.values)
    for finding in found.findings:
        need, known = finding.levels, table.bounds(finding.attacker)
        bounds = np.maximum(slack[0], known[0] - table.values), np.minimum(slack[1], known[1] - table.values)
        for k in np.flatnonzero(~finding.safe).tolist():
            cell = int(need.cells[k])
            for reach, by in product(reaches, _list_required_movements(need, k)):
                more = reach.find_cheapest(cell, by, withheld, table.weights, bounds, deadline)
                if more is None:
                    return None
                withheld |= more
    return withheld if (withheld & ~release.suppressed).any() else None


def _list_required_movements(need: Levels, k: int) -> tuple[float, ...]:
    """Return how far one cell must be able to move down and up, with what its sliding level requires in addition."""
    lower, upper = float(need.lower[k]), float(need.upper[k])
    more = max(0.0, float(need.sliding[k]) - lower - upper)
    return tuple(by for by in (-lower, upper + more) if by)
