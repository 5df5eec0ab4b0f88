"""What an attack on a method looks at: some of the sensitive cells, their levels, and what the attacker knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import ReleaseError, UnknownCodeError, raise_if_unknown
from cellguard.nouns.levels import Levels, attackers_of_table, required_levels
from cellguard.nouns.release import Release

__all__ = ["Asked", "MethodKnowledge", "cells_under_attack"]


class Asked(NamedTuple):
    """Sensitive cells under attack."""

    knowledge: str
    """What the attacker adds to what the release says."""
    need: Levels
    """What every sensitive cell asks for."""
    attacked: Levels
    """What those ask for that are attacked."""
    begin: float
    """When the attack began."""

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.begin


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodKnowledge:
    """What an attacker who knows a method is left with of some sensitive cells."""

    knowledge: str
    """What he added to what the release says."""
    cells: IntArray = field(repr=False)
    """The sensitive cells that were attacked."""
    low: FloatArray = field(repr=False)
    """Least value that he holds possible; NaN when no table fits what he believes."""
    high: FloatArray = field(repr=False)
    """Greatest value that he holds possible."""
    seconds: float = 0.0
    """How long it took."""

    def share(self, which: BoolArray) -> float:
        """Some of the cells in per cent of all."""
        return 100.0 * float(which.sum()) / max(1, len(self.cells))


def cells_under_attack(
    release: Release, knowledge: str, known: Sequence[str], *, most: int, seed: int, positive: bool = False
) -> Asked:
    """Choose the cells of an attack: at most so many, drawn by the seed; `positive` leaves out the others."""
    begin = time.perf_counter()
    raise_if_unknown("knowledge", knowledge, known, UnknownCodeError)
    if not release.published:
        raise ReleaseError("there is no release to attack.")
    need = required_levels(release.table, attackers_of_table(release.table)[0])
    chosen = np.flatnonzero(release.table.values[need.cells] > 0) if positive else np.arange(len(need.cells))
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(chosen, most, replace=False))
    return Asked(knowledge, need, need.some(chosen), begin)
