"""What an adjusted table publishes unchanged: fixed cells and kept totals, from which attackers compute ranges.

An adjusted value says nothing about its distance from the truth, so no range follows from it. But the release states
which totals were kept. The unchanged cells are a release of their own, in which all others are withheld: each of two
lone firms in a kept total can subtract its own value from it, regardless of the adjusted values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard.model.levels import add_respondents
from cellguard.release.release import Status, Suppression

if TYPE_CHECKING:
    from cellguard._types import FloatArray
    from cellguard.auditing.finding import Finding
    from cellguard.model.table import Table

__all__ = ["join_findings", "view_as_pattern"]


def view_as_pattern(table: Table, values: FloatArray) -> Suppression | None:
    """Return what an adjusted table publishes unchanged, as a pattern that withholds the rest.

    Return None if only known zeros are certain to be unchanged: no attacker can compute a range from those alone.
    """
    unchanged = table.fixed & (values == table.values)
    if not (unchanged & (table.values != 0)).any():
        return None
    known = add_respondents(table.with_(crosses=()))
    return Suppression(table=known, status=Status.FEASIBLE, objective=0.0, suppressed=~unchanged)


def join_findings(moved: Sequence[Finding], computed: Sequence[Finding]) -> list[Finding]:
    """Return the findings in which a cell is safe by its distance and by the ranges from the unchanged cells."""
    by_name = {finding.attacker.name: finding for finding in moved}
    out = []
    for finding in computed:
        other = by_name.pop(finding.attacker.name, None)
        if other is None:
            out.append(finding)
            continue
        if not np.isin(other.cells, finding.cells).all():  # every cell that one of them asks for counts
            by_name[finding.attacker.name] = other
        shared, mine, theirs = np.intersect1d(finding.cells, other.cells, assume_unique=True, return_indices=True)
        safe, unsafe, exact = finding.safe.copy(), finding.unsafe.copy(), finding.exact.copy()
        if len(shared):
            safe[mine] &= other.safe[theirs]
            unsafe[mine] |= other.unsafe[theirs]
            exact[mine] |= other.exact[theirs]
        out.append(replace(finding, safe=safe, unsafe=unsafe, exact=exact))
    return [*out, *by_name.values()]
