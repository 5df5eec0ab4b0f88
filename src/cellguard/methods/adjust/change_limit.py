"""How far cells that are not sensitive may change, and what that limit reveals to attackers.

A limit is public: readers of the manual know that a published x was between x / (1 + m) and x / (1 - m). Those
intervals are a release of their own. It must leave every sensitive cell its levels; otherwise the limit is relaxed.
Often no program is needed to see that. If all relations are sums, the true table times a factor is another table, and
an attacker cannot exclude it as long as it stays in all intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._types import FloatArray
from cellguard.methods.adjust.senses import Need
from cellguard.model.levels import Levels, compute_required_levels
from cellguard.model.table import Table

__all__ = ["ChangeLimit", "propose_change_limits"]

RELAXED = (1.0, 2.0, 4.0)
"""Multiples of the limit that are tried one after the other, before there is none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangeLimit:
    """The largest change of each cell that is not sensitive."""

    share: float
    """Of its value; infinite if there is no limit."""
    least: float
    """A change of at least this much is allowed, regardless of the value: a unit of the grid, or 0."""
    most: FloatArray
    """The largest change of each cell; infinite for cells that must move."""

    def is_disclosive(self, table: Table, values: FloatArray, time_limit_s: float) -> bool | None:
        """Return whether an external attacker who knows the limit infers a sensitive cell more precisely than allowed.

        None says that the time was too short to decide it.
        """
        if not np.isfinite(self.share):
            return False
        lo, hi = self._compute_intervals(table, values)
        need = compute_required_levels(table)
        if _is_scalable(table, (lo, hi), need):
            return False
        asked = AskedRanges(need.cells, need.lower, need.upper, need.sliding)
        found = compute_ranges(Sight(table.relations, lo, hi, table.values), asked, time_limit_s=time_limit_s)
        if found.safe.all():
            return False
        return True if found.unsafe.any() else None

    def _compute_intervals(self, table: Table, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what the limit tells about the true value of each cell, with the known bounds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([x / (1.0 + self.share), x / (1.0 - self.share) if self.share < 1 else np.sign(x) * np.inf])
        ends = np.where(x == 0, 0.0, ends)
        lo, hi = np.minimum(ends.min(axis=0), x - self.least), np.maximum(ends.max(axis=0), x + self.least)
        if self.share >= 1:  # the sign is open, too
            lo = np.where(table.lb < 0, -np.inf, lo)
            hi = np.where(table.lb < 0, np.inf, hi)
        free = np.isinf(self.most) & ~table.fixed
        low, high = table.bounds()
        lo = np.where(free, low, np.maximum(np.where(table.fixed, x, lo), low))
        hi = np.where(free, high, np.minimum(np.where(table.fixed, x, hi), high))
        return np.minimum(lo, table.values), np.maximum(hi, table.values)


def _is_scalable(table: Table, interval: tuple[FloatArray, FloatArray], need: Levels) -> bool:
    """Return whether multiples of the true table show that every range is wide enough."""
    a, (lo, hi) = table.values, interval
    if table.rhs.any() or (a < 0).any():
        return False
    some = a > 0
    least = float((lo[some] / a[some]).max(initial=0.0))
    most = float((hi[some] / a[some]).min(initial=np.inf))
    mine = a[need.cells]
    down = mine * (1.0 - least)
    up = np.multiply(mine, most - 1.0, out=np.zeros(len(mine)), where=mine > 0)  # a zero stays one in every multiple
    return bool(((down >= need.lower) & (up >= need.upper) & (down + up >= need.sliding)).all())


def propose_change_limits(table: Table, need: Need, share: float | None, unit: float) -> Iterator[ChangeLimit]:
    """Yield the limit, then looser ones, and none at last."""
    size = np.abs(table.values)
    for k in RELAXED if share is not None else ():
        assert share is not None  # noqa: S101 - for the type checker
        for least in (0.0, k * unit) if k == 1.0 and unit else (k * unit,):
            most = np.where(need.cells, np.inf, np.maximum(k * share * size, least))
            yield ChangeLimit(share=k * share, least=least, most=most)
    yield ChangeLimit(share=np.inf, least=0.0, most=np.full(table.n_cells, np.inf))
