"""What an attack on a method examines: some of the sensitive cells, their levels, and what the attacker knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import ReleaseError, UnknownCodeError, raise_if_unknown
from cellguard.model.levels import Levels, compute_required_levels, list_attackers
from cellguard.release.release import Release

__all__ = ["Asked", "MethodKnowledge", "choose_cells"]


class Asked(NamedTuple):
    """Sensitive cells under attack."""

    knowledge: str
    """What the attacker knows beyond the release."""
    need: Levels
    """Levels of every sensitive cell."""
    attacked: Levels
    """Levels of the cells that are attacked."""
    begin: float
    """When the attack began."""

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.begin


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodKnowledge:
    """What an informed attacker can still not exclude for some sensitive cells."""

    knowledge: str
    """What the attacker knows beyond the release."""
    cells: IntArray = field(repr=False)
    """The sensitive cells that were attacked."""
    low: FloatArray = field(repr=False)
    """Least value that the attacker considers possible; NaN when no table fits what they believe."""
    high: FloatArray = field(repr=False)
    """Greatest value that the attacker considers possible."""
    seconds: float = 0.0
    """How long it took."""

    def share(self, which: BoolArray) -> float:
        """Return some of the cells in per cent of all."""
        return 100.0 * float(which.sum()) / max(1, len(self.cells))


def choose_cells(
    release: Release, knowledge: str, known: Sequence[str], *, most: int, seed: int, positive: bool = False
) -> Asked:
    """Choose the cells of an attack: at most `cells`, drawn by the seed; `positive` leaves out the others."""
    begin = time.perf_counter()
    raise_if_unknown("knowledge", knowledge, known, UnknownCodeError)
    if not release.published:
        raise ReleaseError("there is no release to attack.")
    need = compute_required_levels(release.table, list_attackers(release.table)[0])
    chosen = np.flatnonzero(release.table.values[need.cells] > 0) if positive else np.arange(len(need.cells))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
    return Asked(knowledge, need, need.select(chosen), begin)
