"""What the unpublished cross of linked tables adds to an audit: none of its cells is negative.

An attacker who sees tables of region by activity, activity by size and region by size knows that they are margins of
one table of all three, in which nothing is negative. The audit judges external and described attackers with this
knowledge. What a respondent knows about single cells of the cross is not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard.model.levels import LEAST_WIDTH
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard._engine.ranges.search.cross_reach import CrossReach
    from cellguard.auditing.finding import Finding

__all__ = ["apply_cross", "build_cross_reaches"]

_MET = 1 - 1e-6
"""Share of a level at which programs in floating point meet it."""


def build_cross_reaches(release: Release, deadline: Deadline) -> list[CrossReach]:
    """Return how far cells of a release can move with their crosses; None if the crosses add no information."""
    from cellguard._engine.ranges.search.cross_reach import CrossReach

    table = release.table
    crosses = [cross for cross in table.crosses if (table.lb[np.unique(cross)] >= 0).all()]
    return CrossReach.of(table.relations, crosses, table.values, deadline)


def apply_cross(release: Release, findings: Sequence[Finding], deadline: Deadline) -> list[Finding]:
    """Return the findings; cells closer than their levels because of the cross are no longer safe."""
    out = list(findings)
    if not release.table.crosses or not any(f.safe.any() for f in out if not f.attacker.derived):
        return out
    for reach in build_cross_reaches(release, deadline):
        out = [f if f.attacker.derived else _apply_cross(release, f, reach, deadline) for f in out]
    return out


def _apply_cross(release: Release, finding: Finding, reach: CrossReach, deadline: Deadline) -> Finding:
    """Return the finding of one attacker: cells that are safe without the cross must be safe with it."""
    a = release.table.values
    lo, hi = release.published_bounds(finding.attacker)
    bounds = np.minimum(lo - a, 0.0), np.maximum(hi - a, 0.0)
    need, cells = finding.levels, finding.cells
    # no cell must move farther than the relations alone allow
    down = np.minimum(np.maximum(need.lower, need.sliding), np.maximum(a[cells] - finding.low, need.lower))
    up = np.minimum(np.maximum(need.upper, need.sliding), np.maximum(finding.high - a[cells], need.upper))
    ask = finding.safe
    asked = np.where(ask, np.maximum(down, 0.0), 0.0), np.where(ask, np.maximum(up, 0.0), 0.0)
    below, above = reach.find_shown(cells, asked, bounds, deadline)
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(a[cells]))
    met = (below >= _MET * need.lower) & (above >= _MET * need.upper)
    met &= below + above >= _MET * np.maximum(need.sliding, least)
    closer = ask & ~met
    proven = closer & (not deadline.passed)  # otherwise there was no time to check
    return replace(
        finding,
        safe=finding.safe & ~closer,
        unsafe=finding.unsafe | proven,
        exact=finding.exact | (proven & (below + above < least)),
    )
