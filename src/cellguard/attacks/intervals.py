"""The informed attacker of intervals: widths, ends, classes and all relations together.

Levels are shares p, q of the value, and shares become known. The attacker computes the range ``[r, R]`` of every
sensitive cell from what is published, as the audit does. A safe release leaves ``a - p a >= r`` and
``a + q a <= R``: so the value lies between ``r / (1 - p)`` and ``R / (1 + q)``, and is at most ``(R - r) / (p + q)``.
With these bounds on all sensitive cells at once, the attacker computes the ranges again. None of that is a guess.

For counts the attacker also knows the rule of the classes (:mod:`cellguard.release.count_classes`), and keeps the
values of those classes that could have led to the published interval. An interval that follows from no class was
made in some other way, which may reveal its value: such a cell counts as narrowed, never as protected.

=========  ==========================================================================================
levels     what is described above; the narrowest intervals leave one value
formulas   only arithmetic on one interval: its middle, its width / (p + q), its ends / (1 - p)
           and (1 + q); the formula that is right most often is counted
sets       more than any attacker has: the sets by which intervals by classes were made, of all cells
           (from the release itself, before it is written); what must stay possible stays possible even so
=========  ==========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellguard._attack_options import INTERVAL_KNOWLEDGE
from cellguard._engine.numbers.decimals import find_decimal_unit
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attacks.asked import Asked, MethodKnowledge, choose_cells
from cellguard.exceptions import ReleaseError
from cellguard.model.levels import Levels
from cellguard.release.count_classes import ClassRule, find_possible_classes
from cellguard.release.release import Intervals

__all__ = ["IntervalAttack", "attack_intervals"]

NEAR = 1e-3
"""A guess that is closer to the value than this share of it has recovered it."""
_SLACK = 1e-7
"""Noise of the programs and of decimal ends, as a share of the value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalAttack(MethodKnowledge):
    """What an attacker who knows levels, formulas or sets of intervals cannot exclude for each sensitive cell."""

    recovered: BoolArray = field(repr=False)
    """Cells whose value the attacker guesses to within a thousandth: the middle of what is left, or a formula."""
    asked: FloatArray = field(repr=False)
    """Total width that the levels require."""
    kept: BoolArray = field(repr=False)
    """Cells whose remaining range is as wide as their levels require together."""
    both: BoolArray = field(repr=False)
    """Cells that keep both levels, below the value and above it: measured, and not promised by any method."""
    explained: BoolArray = field(repr=False)
    """Cells whose interval follows from a class that holds the value; for magnitudes, all cells."""
    blind: float
    """Average number of cells that a random guess within the remaining range would recover."""

    @property
    def verdict(self) -> str:
        """Return the meaning of the result in words."""
        n = len(self.cells)
        if not n:
            return "nothing to attack: no cell is sensitive."
        hits, narrow = int(self.recovered.sum()), int((~self.kept).sum())
        if hits > 1.0 + self.blind + 3.0 * np.sqrt(self.blind) + 0.02 * n:
            return f"disclosed: {hits} of {n} sensitive cells are recovered; blind guesses would give {self.blind:.1f}."
        other = int((~self.explained).sum())
        if other:
            return (
                f"weak: the intervals of {other} of {n} sensitive cells follow from no class of counts; "
                "they may reveal the values from which they were made."
            )
        if narrow:
            return f"weak: {narrow} of {n} sensitive cells are narrowed below what their levels require together."
        return f"withstood: every one of {n} sensitive cells keeps what its levels require together."

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
            "explained_pct": self.share(self.explained),
            "width_to_level": float(np.median(ratio)) if len(ratio) else float("nan"),
            "verdict": self.verdict,
            "seconds": {"total": self.seconds},
        }


def attack_intervals(
    release: Intervals, knowledge: str = "levels", *, cells: int = 200, seed: int = 0
) -> IntervalAttack:
    """Attack intervals with knowledge of how they are made.

    Parameters
    ----------
    release
        Intervals.
    knowledge
        What the attacker knows beyond the release: ``"levels"``, ``"formulas"`` or ``"sets"``.
    cells
        Maximum number of sensitive cells to attack.
    seed
        Chooses them.

    Examples
    --------
    The narrowest intervals of a sensitive 20 with levels of 20% are 16 to 24, and reveal it.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> found = attack_intervals(cg.intervals(table, position="narrowest"))
    >>> found.low.round(3).tolist(), found.high.round(3).tolist(), found.recovered.tolist()
    ([20.0], [20.0], [True])
    >>> found = attack_intervals(cg.intervals(table))
    >>> bool(found.kept.all())
    True
    """
    asked = choose_cells(release, knowledge, INTERVAL_KNOWLEDGE, most=cells, seed=seed, positive=True)
    lo, hi = _narrow_intervals(release, asked.need, knowledge)
    s = asked.attacked.cells
    explained = np.ones(len(s), np.bool_)
    if release.table.integer:
        lo, hi, explained = _narrow_to_count_classes(release, s, lo, hi)
    if knowledge == "formulas":
        low, high = lo[s], hi[s]
    else:
        found = compute_ranges(Sight(release.table.relations, lo, hi, release.table.values), AskedRanges(s), exact=True)
        low, high = found.low, found.high
    return _evaluate_attack(release, asked, low, high, explained)


def _narrow_to_count_classes(
    release: Intervals, cells: IntArray, lo: FloatArray, hi: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Narrow intervals of counts to the classes that could have led to them; return also which cells have any."""
    t = release.table
    rule = ClassRule.from_table(t)
    low, high = lo.copy(), hi.copy()
    published = release.published_bounds()
    explained = np.zeros(len(cells), np.bool_)
    for k, cell in enumerate(cells.tolist()):
        ends = float(published[0][cell]), float(published[1][cell])
        found = find_possible_classes(*ends, (float(t.lb[cell]), float(t.ub[cell])), rule, cell)
        held = [(x, y) for x, y in found if x <= t.values[cell] <= y]
        if held:
            explained[k] = True
            low[cell] = max(low[cell], min(x for x, _ in held))
            high[cell] = min(high[cell], max(y for _, y in held))
    return low, high, explained


def _narrow_intervals(release: Intervals, need: Levels, knowledge: str) -> tuple[FloatArray, FloatArray]:
    """Return the published intervals, narrowed by the attacker's other knowledge."""
    t = release.table
    lo, hi = release.published_bounds()
    if knowledge == "formulas":
        return lo, hi
    if knowledge == "sets":
        if not release.internal:
            raise ReleaseError("the sets are not known.", hint="only a release by classes that was just made has them.")
        return np.maximum(lo, release.internal["inner_lower"]), np.minimum(hi, release.internal["inner_upper"])
    s = need.cells
    found = compute_ranges(Sight(t.relations, lo, hi, t.values), AskedRanges(s), exact=True)
    a = t.values[s]
    low, high = lo.copy(), hi.copy()
    if t.integer:
        least, most = _find_counts_whose_levels_fit(ClassRule.from_table(t).take(s), found.low, found.high)
        low[s], high[s] = (
            np.where(a > 0, x, y[s]) for x, y in ((np.clip(least, lo[s], a), lo), (np.clip(most, a, hi[s]), hi))
        )
        return low, high
    size = np.maximum(np.abs(a), 1e-300)
    p, q = np.minimum(need.lower / size, 0.999), need.upper / size
    both = np.maximum(need.sliding / size, p + q)
    slack = _SLACK * size
    with np.errstate(invalid="ignore", divide="ignore"):
        least, most = found.low / (1.0 - p), np.minimum(found.high / (1.0 + q), (found.high - found.low) / both)
    low[s] = np.where(a > 0, np.clip(least - slack, lo[s], a), lo[s])
    high[s] = np.where(a > 0, np.clip(most + slack, a, hi[s]), hi[s])
    return low, high


def _find_counts_whose_levels_fit(rule: ClassRule, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest count whose levels, rounded up to whole numbers, fit between two ends."""
    near = np.arange(-3.0, 4.0)[:, None]
    least = np.floor(low / np.maximum(1.0 - rule.lower, 1e-3)) + near
    most = np.floor(high / (1.0 + rule.upper)) + near
    fits_below = least - rule.compute_collar(least, least)[0] >= low
    fits_above = most + rule.compute_collar(most, most)[1] <= high
    return (
        np.where(fits_below, least, np.inf).min(axis=0),
        np.where(fits_above, most, -np.inf).max(axis=0),
    )


def _evaluate_attack(
    release: Intervals, of: Asked, low: FloatArray, high: FloatArray, explained: BoolArray
) -> IntervalAttack:
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
    # only finitely many whole numbers, or decimals, are possible
    unit = find_decimal_unit(t.values, t.relations, t.rhs)
    blind = np.minimum(np.maximum(2.0 * NEAR * a, unit) / np.maximum(high - low + unit, 1e-300), 1.0)
    blind[high - low < asked * 1e-2] = 0.0  # the attack itself found that so little remains
    return IntervalAttack(
        knowledge=of.knowledge, cells=need.cells, low=low, high=high, recovered=recovered, asked=asked,
        kept=explained & (high - low >= asked * (1 - 1e-6) - noise), explained=explained,
        both=(a - low >= need.lower - noise) & (high - a >= need.upper - noise),
        blind=float(blind.sum()), seconds=of.seconds,
    )  # fmt: skip
