"""The part of a joint audit that is about the new table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit, Finding
    from cellguard.release.release import Release

__all__ = ["view_new_cells"]


def view_new_cells(audit: Audit, release: Release) -> Audit:
    """Return the findings about the cells of a release, from its audit together with earlier ones.

    Witnesses are tables of all releases, so they are left out.
    """
    n = release.table.n_cells
    if audit.release.table.n_cells == n and audit.release.method == release.method:
        return audit
    return replace(audit, release=release, findings=tuple(_restrict(f, n) for f in audit.findings))


def _restrict(finding: Finding, n: int) -> Finding:
    own = finding.cells < n
    arrays = {name: getattr(finding, name)[own] for name in ("low", "high", "safe", "unsafe", "exact")}
    none = np.full(int(own.sum()), -1, np.int64)
    return replace(
        finding, levels=finding.levels.select(own), disclosed=finding.disclosed[finding.disclosed < n],
        witnesses=None, low_witness=none, high_witness=none, shares=(None, None), **arrays,
    )  # fmt: skip
