"""The final check of a pattern: the audit, which knows nothing about the search, must accept it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, IntArray
from cellguard.auditing.audit import audit
from cellguard.model.levels import list_attackers
from cellguard.model.table import Table
from cellguard.release.release import Status, Suppression

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.shown import ShownMovements

__all__ = ["PatternVerdict", "audit_pattern"]

_LEAST_S = 2.0
"""With less time than this, an audit decides nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternVerdict:
    """The audit's verdict on a pattern."""

    safe: bool
    """Whether every level is met, with witnesses."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Cells that are not shown safe."""
    attackers: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each of them the number of an attacker against whom it is not safe."""
    proven: bool = False
    """Whether one of them is proven unsafe; otherwise the time was too short."""


def audit_pattern(
    table: Table, pattern: BoolArray, deadline: Deadline, shown: ShownMovements | None = None
) -> PatternVerdict:
    """Audit the pattern until the deadline."""
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=pattern)
    found = audit(
        release,
        exact=False,
        everywhere=False,
        cross=False,
        time_limit_s=deadline.get_seconds_at_least(_LEAST_S),
        shown=shown,
    )
    if found.safe or not found.checked:
        return PatternVerdict(safe=True)
    number = {attacker.name: k for k, attacker in enumerate(list_attackers(table))}
    failing = [(number[f.attacker.name], f.cells[~f.safe]) for f in found.findings]
    return PatternVerdict(
        safe=False,
        cells=np.concatenate([cells for _, cells in failing]),
        attackers=np.concatenate([np.full(len(cells), k) for k, cells in failing]),
        proven=any(bool(f.unsafe.any()) for f in found.findings),
    )
