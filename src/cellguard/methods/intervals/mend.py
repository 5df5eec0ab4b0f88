"""Before intervals are returned: what the audit does not accept is widened, or not returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import FloatArray, IntArray
from cellguard.check.audit import audit
from cellguard.methods.intervals.problem import Ends, widths_that_hide
from cellguard.nouns.release import Intervals, Status
from cellguard.nouns.table import Table

__all__ = ["accepted_intervals", "cells_with_intervals_to_mend", "widened_intervals"]

ROUNDS = 4
"""How often what is exposed is widened."""

P = TypeVar("P", bound=tuple[object, ...])


def accepted_intervals(
    table: Table, found: P, ends: Callable[[P], Ends], widen: Callable[[P, IntArray, int], P | None], deadline: Deadline
) -> tuple[P | None, int]:
    """Return what the audit accepts, the same or wider or None, and how many cells were mended.

    `ends` are those of what was found; `widen` makes it wider for some cells, in each of the rounds.
    """
    mended = 0
    for attempt in range(ROUNDS + 1):
        cells = cells_with_intervals_to_mend(table, ends(found), deadline)
        if cells is None or (len(cells) and deadline.passed):
            return None, mended
        if not len(cells):
            return found, mended
        mended += len(cells)
        wider = widen(found, cells, attempt) if attempt < ROUNDS else None
        if wider is None:
            return None, mended
        found = wider
    return None, mended


def cells_with_intervals_to_mend(table: Table, ends: Ends, deadline: Deadline) -> IntArray | None:
    """Return the cells that the audit does not call safe; None if time ran out before it was sure.

    Respondents are asked only where they were planned against: elsewhere the verb looks for itself, and plans again.
    """
    release = Intervals(table=table, status=Status.FEASIBLE, objective=0.0, lower=ends[0], upper=ends[1])
    found = audit(release, everywhere=False, time_limit_s=deadline.at_least())
    sure = not found.unknown or not deadline.passed
    return found.unsafe_cells if sure else None


def _intervals_outward(ends: Ends, low: FloatArray, high: FloatArray) -> Ends:
    """Return ends that moved as decimal numbers, a little further out: last digits would tell how far they moved."""
    width = np.where(high > low, high - low, 1.0)
    digits = np.clip(4.0 - np.floor(np.log10(width)), -15.0, 15.0)
    grain = 10.0**digits
    down, up = np.floor(low * grain - 1e-6) / grain, np.ceil(high * grain + 1e-6) / grain
    return np.where(low < ends[0], down, low), np.where(high > ends[1], up, high)


def widened_intervals(table: Table, ends: Ends, cells: IntArray, deadline: Deadline) -> Ends | None:
    """Widen the intervals as little as hides some cells, too; twice as wide if that does not help; None if nothing."""
    a = table.values
    found = widths_that_hide(table, cells, deadline, (ends[1] - a, a - ends[0]))
    if found is None:
        return None
    below, above = found.lower, found.upper
    if table.integer:
        below, above = np.ceil(below - 1e-9), np.ceil(above - 1e-9)
    low, high = np.minimum(ends[0], a - below), np.maximum(ends[1], a + above)
    if not table.integer:
        low, high = _intervals_outward(ends, low, high)
    if np.allclose(low, ends[0], rtol=1e-12) and np.allclose(high, ends[1], rtol=1e-12):  # whole numbers are missing
        low, high = a - 2.0 * (a - low), a + 2.0 * (high - a)
    return np.maximum(low, table.lb), np.minimum(high, table.ub)
