"""What a report tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cellguard.check.audit import Audit
from cellguard.nouns.release import Release

__all__ = ["Content"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """Everything both versions of a report are made from."""

    title: str
    release: Release
    method: str = ""
    """Which method made it, where several make releases of this kind."""
    audit: Audit | None = None
    """With exact ranges."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """What the job asked for, in words (internal)."""
    views: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The tables to show: a name and its dimensions, rows first; one with all dimensions unless given."""
    comparison: Any = None
    """How other methods did (:class:`cellguard.methods.compare.Comparison`; internal)."""
    attack: Any = None
    """What an attack found (internal)."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each step took (internal: it differs between two runs)."""
    versions: Mapping[str, str] = field(default_factory=dict)
    unsafe: bool = False
    """Whether the audit refused the release and it was written all the same."""
    mark_primary: bool = False
    """Whether the public version tells primary from secondary suppressions."""

    @property
    def primaries_shown(self) -> bool:
        """Whether the public version may tell them apart: the release can forbid it."""
        return self.mark_primary and not getattr(self.release, "conceal", False)
