"""The last word on a pattern: the audit, which knows nothing of the search, must accept it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, IntArray
from cellguard.check.audit import audit
from cellguard.nouns.release import Status, Suppression
from cellguard.nouns.table import Table

__all__ = ["PatternVerdict", "judge_pattern"]

_LEAST_S = 2.0
"""An audit that is not even given this long says nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternVerdict:
    """What the audit says of a pattern."""

    safe: bool
    """Whether every level is met, with witnesses."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Cells that are not shown safe."""
    attackers: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """For each of them the number of an attacker against whom."""
    proven: bool = False
    """Whether one of them is proven unsafe; otherwise the time did not suffice."""


def judge_pattern(table: Table, pattern: BoolArray, deadline: Deadline) -> PatternVerdict:
    """Ask the audit, until the deadline."""
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=pattern)
    found = audit(release, everywhere=False, cross=False, time_limit_s=deadline.at_least(_LEAST_S))
    if found.safe or not found.checked:
        return PatternVerdict(safe=True)
    failing = [(k, f.cells[~f.safe]) for k, f in enumerate(found.findings)]
    return PatternVerdict(
        safe=False,
        cells=np.concatenate([cells for _, cells in failing]),
        attackers=np.concatenate([np.full(len(cells), k) for k, cells in failing]),
        proven=any(bool(f.unsafe.any()) for f in found.findings),
    )
