"""The content of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cellguard.auditing.audit import Audit
from cellguard.release.release import Release

__all__ = ["Content"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """The data from which both versions of a report are made."""

    title: str
    release: Release
    method: str = ""
    """The method, if several make releases of this kind."""
    audit: Audit | None = None
    """The audit, with exact ranges."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """The job in words (internal)."""
    views: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The tables to show: a name and its dimensions, rows first; one with all dimensions unless given."""
    comparison: Any = None
    """Results of other methods (:class:`cellguard.methods.compare.Comparison`; internal)."""
    attack: Any = None
    """Results of attacks (internal)."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each step took (internal: they differ between runs)."""
    versions: Mapping[str, str] = field(default_factory=dict)
    unsafe: bool = False
    """Whether the release was written although the audit refused it."""
    mark_primary: bool = False
    """Whether the public version distinguishes primary from secondary suppressions."""

    @property
    def primaries_shown(self) -> bool:
        """Whether the public version may distinguish them: the release can forbid it."""
        return self.mark_primary and not getattr(self.release, "conceal", False)
