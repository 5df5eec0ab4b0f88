"""What was said with a published file: in the manifest beside it, unless the caller says it.

A base, a step, a distance and the totals that were kept are published: readers compute with them, and so
must the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from cellguard.exceptions import FormatError
from cellguard.nouns.kept import Keep

__all__ = ["Told", "told_beside"]


@dataclass(frozen=True, kw_only=True)
class Told:
    """What readers of a release are told of how it was made."""

    method: str | None = None
    """How it was made; found from the columns if not told."""
    base: ArrayLike | None = None
    """Of a rounded table: its base, or one per cell."""
    step: int | None = None
    """Of a rounded table: cells moved by less than so many bases; 1 if not told."""
    distance: ArrayLike | None = None
    """Of a perturbed table: how far, at most, cells moved."""
    keep_multiples: bool = False
    """Of a rounded table: sensitive multiples of the base were let stay."""
    keep: Iterable[Keep] = field(default=())
    """Of a rounded table: what went to its nearest multiple."""

    def completed(self, path: Path) -> Told:
        """Return this with what the manifest beside a file tells, where the caller said nothing."""
        beside = told_beside(path)
        if beside.method is None or self.method not in (None, beside.method):
            return self
        return Told(
            method=beside.method,
            base=beside.base if self.base is None else self.base,
            step=self.step or beside.step,
            distance=beside.distance if self.distance is None else self.distance,
            keep_multiples=self.keep_multiples or beside.keep_multiples,
            keep=tuple(self.keep) or beside.keep,
        )


def told_beside(path: Path) -> Told:
    """Return what the manifest in the folder of a file tells of it; nothing if there is none, or it lists others."""
    from cellguard._io.files import read_bytes

    manifest = (path if path.is_dir() else path.parent) / "manifest.json"
    if not manifest.is_file():
        return Told()
    try:
        content = json.loads(read_bytes(manifest, max_bytes=64 << 20))
        if not path.is_dir() and path.name not in content["outputs"]["."]:
            return Told()
        return (
            _told_by_manifest(content["method"], content.get("published_with", {})) if "method" in content else Told()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError.at(
            manifest, None, "is damaged, and should tell how the release was made.", hint="remove it, or mend it."
        ) from None


def _told_by_manifest(method: Any, said: dict[str, Any]) -> Told:
    """Return what is told as it is needed; a list of different bases says not which cell has which."""
    numbers = {name: said[name] for name in ("base", "distance") if isinstance(said.get(name), int | float)}
    step, keep = said.get("step"), said.get("keep", [])
    if not isinstance(keep, list) or not isinstance(step, int | None) or not isinstance(method, str):
        raise TypeError
    return Told(method=method, step=step, keep=keep, keep_multiples=bool(said.get("keep_multiples")), **numbers)
