"""Earlier releases, links over time and derived statistics, as one linear system with the new table."""

from __future__ import annotations

from cellguard.history.derived import Derived, Figures
from cellguard.history.earlier import EarlierRelease, History
from cellguard.history.joint import JointRelease, JointSystem, join_release, join_table

__all__ = [
    "Derived", "EarlierRelease", "Figures", "History", "JointRelease", "JointSystem", "join_release", "join_table",
]  # fmt: skip
