"""Widen the narrowest intervals where the audit does not accept them."""

from __future__ import annotations

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import FloatArray, IntArray
from cellguard.methods.intervals.problem import Ends, find_hiding_widths
from cellguard.model.table import Table

__all__ = ["ROUNDS", "widen_for_cells"]

ROUNDS = 4
"""Maximum number of times that exposed cells are widened."""


def _round_outward(ends: Ends, low: FloatArray, high: FloatArray) -> Ends:
    """Return changed ends as decimal numbers, slightly further out: last digits would reveal how far they moved."""
    width = np.where(high > low, high - low, 1.0)
    digits = np.clip(4.0 - np.floor(np.log10(width)), -15.0, 15.0)
    grain = 10.0**digits
    down, up = np.floor(low * grain - 1e-6) / grain, np.ceil(high * grain + 1e-6) / grain
    return np.where(low < ends[0], down, low), np.where(high > ends[1], up, high)


def widen_for_cells(table: Table, ends: Ends, cells: IntArray, deadline: Deadline) -> Ends | None:
    """Widen the intervals just enough to hide some more cells; twice as wide if that fails; None if nothing helps."""
    a = table.values
    found = find_hiding_widths(table, cells, deadline, (ends[1] - a, a - ends[0]))
    if found is None:
        return None
    below, above = found.lower, found.upper
    if table.integer:
        below, above = np.ceil(below - 1e-9), np.ceil(above - 1e-9)
    low, high = np.minimum(ends[0], a - below), np.maximum(ends[1], a + above)
    if not table.integer:
        low, high = _round_outward(ends, low, high)
    if np.allclose(low, ends[0], rtol=1e-12) and np.allclose(high, ends[1], rtol=1e-12):  # whole numbers are missing
        low, high = a - 2.0 * (a - low), a + 2.0 * (high - a)
    return np.maximum(low, table.lb), np.minimum(high, table.ub)
