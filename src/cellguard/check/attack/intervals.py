"""Who knows how intervals are made: widths, ends, classes and all relations together.

Levels are shares p, q of the value, and shares get known. The attacker computes the range ``[r, R]`` of every
sensitive cell from what is published, as the audit does. A release that is safe leaves ``a - p a >= r`` and
``a + q a <= R``: so the value lies between ``r / (1 - p)`` and ``R / (1 + q)``, and is at most ``(R - r) / (p + q)``.
With these bounds on all sensitive cells at once he computes the ranges again. Nothing of that is a guess.

=========  ==========================================================================================
levels     what is described above; of the narrowest intervals it leaves one value
formulas   nothing but arithmetic on one interval: its middle, its width / (p + q), its ends / (1 - p)
           and (1 + q); the formula that is right most often is counted
sets       more than anybody has: the sets by which intervals by classes were made, of all cells
           (from the release itself, before it is written); what must stay possible stays possible even so
=========  ==========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellguard._engine.numbers.decimals import decimal_unit
from cellguard._engine.ranges.ranges import AskedRanges, Sight, ranges
from cellguard._types import BoolArray, FloatArray
from cellguard.check.attack.asked import Asked, MethodKnowledge, cells_under_attack
from cellguard.exceptions import ReleaseError
from cellguard.nouns.levels import Levels
from cellguard.nouns.release import Intervals

__all__ = ["INTERVAL_KNOWLEDGE", "IntervalAttack", "interval_attack"]

INTERVAL_KNOWLEDGE = ("levels", "formulas", "sets")
"""What the attacker adds to what the release says."""
NEAR = 1e-3
"""A guess that is nearer to the value than this share of it has recovered it."""
_SLACK = 1e-7
"""Noise of the programs and of decimal ends, as a share of the value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalAttack(MethodKnowledge):
    """What an attacker who knows levels, formulas or sets of intervals is left with of each sensitive cell."""

    recovered: BoolArray = field(repr=False)
    """Cells whose value he guesses to within a thousandth: the middle of what is left, or a formula."""
    asked: FloatArray = field(repr=False)
    """What the levels ask for together."""
    kept: BoolArray = field(repr=False)
    """Cells of which as much is left as their levels ask for together."""
    both: BoolArray = field(repr=False)
    """Cells of which both levels are left, below the value and above it: measured, nobody can promise it."""
    blind: float
    """So many cells a guess anywhere in what is left would recover, on average."""

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        n = len(self.cells)
        if not n:
            return "nothing to attack: no cell is sensitive."
        hits, narrow = int(self.recovered.sum()), int((~self.kept).sum())
        if hits > 1.0 + self.blind + 3.0 * np.sqrt(self.blind) + 0.02 * n:
            return f"disclosed: {hits} of {n} sensitive cells are recovered; blind guesses would give {self.blind:.1f}."
        if narrow:
            return f"weak: {narrow} of {n} sensitive cells are narrowed below what their levels ask for together."
        return f"withstood: every one of {n} sensitive cells keeps what its levels ask for together."

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        n = max(1, len(self.cells))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (self.high - self.low) / self.asked
        return {
            "method": "intervals",
            "knowledge": self.knowledge,
            "cells": len(self.cells),
            "recovered_pct": self.share(self.recovered),
            "blind_pct": 100.0 * self.blind / n,
            "kept_pct": self.share(self.kept),
            "both_pct": self.share(self.both),
            "width_to_level": float(np.median(ratio)) if len(ratio) else float("nan"),
            "verdict": self.verdict,
            "seconds": {"total": self.seconds},
        }


def interval_attack(
    release: Intervals, knowledge: str = "levels", *, cells: int = 200, seed: int = 0
) -> IntervalAttack:
    """Attack intervals with what is known of how they are made.

    Parameters
    ----------
    release
        Intervals.
    knowledge
        What the attacker adds to what the release says: ``"levels"``, ``"formulas"`` or ``"sets"``.
    cells
        So many sensitive cells are attacked at most.
    seed
        Chooses them.

    Examples
    --------
    The narrowest intervals of a sensitive 20 with levels of 20% are 16 to 24, and give it away.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> found = interval_attack(cg.intervals(table, position="narrowest"))
    >>> found.low.round(3).tolist(), found.high.round(3).tolist(), found.recovered.tolist()
    ([20.0], [20.0], [True])
    >>> found = interval_attack(cg.intervals(table, seed=8))
    >>> bool(found.kept.all())
    True
    """
    asked = cells_under_attack(release, knowledge, INTERVAL_KNOWLEDGE, most=cells, seed=seed, positive=True)
    lo, hi = _intervals_narrowed_by_attacker(release, asked.need, knowledge)
    s = asked.attacked.cells
    if knowledge == "formulas":
        low, high = lo[s], hi[s]
    else:
        found = ranges(Sight(release.table.relations, lo, hi, release.table.values), AskedRanges(s), exact=True)
        low, high = found.low, found.high
    return _judged_interval_attack(release, asked, low, high)


def _intervals_narrowed_by_attacker(release: Intervals, need: Levels, knowledge: str) -> tuple[FloatArray, FloatArray]:
    """Return what the attacker starts from: the published intervals, narrowed by what he knows besides."""
    t = release.table
    lo, hi = release.published_bounds()
    if knowledge == "formulas":
        return lo, hi
    if knowledge == "sets":
        if not release.internal:
            raise ReleaseError(
                "the sets are not known.", hint="they are there only in a release by classes that was just made."
            )
        return np.maximum(lo, release.internal["inner_lower"]), np.minimum(hi, release.internal["inner_upper"])
    s = need.cells
    found = ranges(Sight(t.relations, lo, hi, t.values), AskedRanges(s), exact=True)
    a = t.values[s]
    size = np.maximum(np.abs(a), 1e-300)
    p, q = np.minimum(need.lower / size, 0.999), need.upper / size
    both = np.maximum(need.sliding / size, p + q)
    slack = _SLACK * size
    low, high = lo.copy(), hi.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        least, most = found.low / (1.0 - p), np.minimum(found.high / (1.0 + q), (found.high - found.low) / both)
    low[s] = np.where(a > 0, np.clip(least - slack, lo[s], a), lo[s])
    high[s] = np.where(a > 0, np.clip(most + slack, a, hi[s]), hi[s])
    return low, high


def _judged_interval_attack(release: Intervals, of: Asked, low: FloatArray, high: FloatArray) -> IntervalAttack:
    t, need = release.table, of.attacked
    a = t.values[need.cells]
    p, q = need.lower / a, need.upper / a
    asked = need.width
    guesses = [(low + high) / 2.0]
    if of.knowledge == "formulas":
        with np.errstate(divide="ignore", invalid="ignore"):
            guesses += [(high - low) * a / asked, low / np.maximum(1.0 - p, 1e-9), high / (1.0 + q)]
    recovered = max((np.abs(guess - a) <= NEAR * a for guess in guesses), key=np.count_nonzero)
    noise = 1e-6 * a
    # of whole numbers, or of decimals, only so many are possible
    unit = decimal_unit(t.values, t.relations, t.rhs)
    blind = np.minimum(np.maximum(2.0 * NEAR * a, unit) / np.maximum(high - low + unit, 1e-300), 1.0)
    blind[high - low < asked * 1e-2] = 0.0  # that so little is left is what he found out
    return IntervalAttack(
        knowledge=of.knowledge, cells=need.cells, low=low, high=high, recovered=recovered, asked=asked,
        kept=high - low >= asked * (1 - 1e-6) - noise,
        both=(a - low >= need.lower - noise) & (high - a >= need.upper - noise),
        blind=float(blind.sum()), seconds=of.seconds,
    )  # fmt: skip
