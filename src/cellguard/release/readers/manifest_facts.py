"""Published facts about a file: from the manifest next to it, unless the caller gives them.

A base, a step, a distance and the kept totals are published. Readers compute with them, and so
must the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import FloatArray
from cellguard.exceptions import FormatError, InputError
from cellguard.model.kept import Keep

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["PublishedFacts", "read_manifest_beside"]

_OWN_FIELDS = ("base", "distance", "areas", "step", "keep", "keep_multiples", "between")
"""Facts of a manifest that have a field of their own."""


@dataclass(frozen=True, kw_only=True)
class PublishedFacts:
    """Published facts about how a release was made."""

    method: str | None = None
    """The method; found from the columns if not given."""
    base: ArrayLike | None = None
    """For a rounded table: its base, or one per cell."""
    step: int | None = None
    """For a rounded table: cells moved by less than this many bases; 1 if not given."""
    distance: ArrayLike | None = None
    """For a perturbed table: the largest move of a cell."""
    areas: str | None = None
    """For a perturbed table: the dimension whose finest codes moved by at most the distance, others by their sum."""
    keep_multiples: bool = False
    """For a rounded table: sensitive multiples of the base were allowed to stay."""
    between: bool = False
    """For a perturbed table: every cell stayed between the multiples next to it."""
    keep: Iterable[Keep] = field(default=())
    """For a rounded table: cells that went to their nearest multiple."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Other facts in the manifest that readers may compute with."""

    @staticmethod
    def number_per_cell(table: Table, given: ArrayLike | None, what: str) -> FloatArray:
        """Return one positive number per cell; `what` says what it is needed for."""
        numbers = np.asarray(np.nan if given is None else given, np.float64)
        if numbers.ndim and numbers.shape != (table.n_cells,):
            raise InputError(f"{what}: {numbers.size} numbers were given for {table.n_cells} cells.")
        if not (np.isfinite(numbers) & (numbers > 0)).all():
            raise InputError(f"{what}, a positive number.")
        return np.broadcast_to(numbers, table.n_cells).copy()

    def complete_from_manifest(self, path: Path) -> PublishedFacts:
        """Return these facts, completed from the manifest next to a file where the caller gave none."""
        beside = read_manifest_beside(path)
        if beside.method is None or self.method not in (None, beside.method):
            return self
        return PublishedFacts(
            method=beside.method,
            base=beside.base if self.base is None else self.base,
            step=self.step or beside.step,
            distance=beside.distance if self.distance is None else self.distance,
            areas=self.areas or beside.areas,
            keep_multiples=self.keep_multiples or beside.keep_multiples,
            between=self.between or beside.between,
            keep=tuple(self.keep) or beside.keep,
            others=beside.others,
        )


def read_manifest_beside(path: Path) -> PublishedFacts:
    """Return the facts about a file in its folder's manifest; empty if there is none, or it lists other files."""
    from cellguard._io.files import read_bytes

    manifest = (path if path.is_dir() else path.parent) / "manifest.json"
    if not manifest.is_file():
        return PublishedFacts()
    try:
        content = json.loads(read_bytes(manifest, max_bytes=64 << 20))
        if not path.is_dir() and path.name not in content["outputs"]["."]:
            return PublishedFacts()
        if "method" not in content:
            return PublishedFacts()
        return _read_fact_options(content["method"], content.get("published_with", {}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError.at(
            manifest, None, "is damaged, and should say how the release was made.", hint="remove it, or repair it."
        ) from None


def _read_fact_options(method: Any, said: dict[str, Any]) -> PublishedFacts:
    """Return a fact in the form needed; a list of different bases does not say which cell has which."""
    numbers = {name: said[name] for name in ("base", "distance") if isinstance(said.get(name), int | float)}
    step, keep, areas = said.get("step"), said.get("keep", []), said.get("areas")
    if not isinstance(keep, list) or not isinstance(step, int | None) or not isinstance(method, str):
        raise TypeError
    if not isinstance(areas, str | None):
        raise TypeError
    flags = {name: bool(said.get(name)) for name in ("keep_multiples", "between")}
    others = {name: x for name, x in said.items() if name not in _OWN_FIELDS}
    return PublishedFacts(method=method, step=step, areas=areas, keep=keep, others=others, **flags, **numbers)
