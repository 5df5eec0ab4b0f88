"""What the unpublished cross of linked tables adds to an audit: that nothing in it is negative.

Who sees tables of region by activity, activity by size and region by size knows that they are margins of one table of
all three, in which nothing is negative. Attackers from outside, and those who are described, are judged by it; what a
respondent knows of single cells of the cross is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard.nouns.levels import LEAST_WIDTH
from cellguard.nouns.release import Release

if TYPE_CHECKING:
    from cellguard._engine.ranges.cross_reach import CrossReach
    from cellguard.check.audit import Finding

__all__ = ["judged_by_the_cross", "reaches_audited_with_cross"]

_MET = 1 - 1e-6
"""Share of a level at which programs in floating point meet it."""


def reaches_audited_with_cross(release: Release, deadline: Deadline) -> list[CrossReach]:
    """Return what tells how far cells of a release can move with their crosses; none where that tells nothing more."""
    from cellguard._engine.ranges.cross_reach import CrossReach

    table = release.table
    crosses = [cross for cross in table.crosses if (table.lb[np.unique(cross)] >= 0).all()]
    return CrossReach.of(table.relations, crosses, table.values, deadline)


def judged_by_the_cross(release: Release, findings: Sequence[Finding], deadline: Deadline) -> list[Finding]:
    """Return the findings, with cells that are closer than their levels because of the cross as not safe."""
    out = list(findings)
    if not release.table.crosses or not any(f.safe.any() for f in out if not f.attacker.derived):
        return out
    for reach in reaches_audited_with_cross(release, deadline):
        out = [f if f.attacker.derived else _audit_finding_with_cross(release, f, reach, deadline) for f in out]
    return out


def _audit_finding_with_cross(release: Release, finding: Finding, reach: CrossReach, deadline: Deadline) -> Finding:
    """Return the finding of one attacker: what is safe without the cross must be so with it."""
    a = release.table.values
    lo, hi = release.published_bounds(finding.attacker)
    bounds = np.minimum(lo - a, 0.0), np.maximum(hi - a, 0.0)
    need, cells = finding.levels, finding.cells
    # as far as the relations alone let it go, no cell must go farther
    down = np.minimum(np.maximum(need.lower, need.sliding), np.maximum(a[cells] - finding.low, need.lower))
    up = np.minimum(np.maximum(need.upper, need.sliding), np.maximum(finding.high - a[cells], need.upper))
    ask = finding.safe
    asked = np.where(ask, np.maximum(down, 0.0), 0.0), np.where(ask, np.maximum(up, 0.0), 0.0)
    below, above = reach.shown(cells, asked, bounds, deadline)
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(a[cells]))
    met = (below >= _MET * need.lower) & (above >= _MET * need.upper)
    met &= below + above >= _MET * np.maximum(need.sliding, least)
    closer = ask & ~met
    proven = closer & (not deadline.passed)  # otherwise there was no time to look
    return replace(
        finding,
        safe=finding.safe & ~closer,
        unsafe=finding.unsafe | proven,
        exact=finding.exact | (proven & (below + above < least)),
    )
