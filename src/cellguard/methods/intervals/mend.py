"""Before intervals are returned: what the audit does not accept is widened, or not returned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._engine import clock
from cellguard.methods.intervals.problem import Problem, left
from cellguard.nouns.attacker import Attacker
from cellguard.check.audit import audit
from cellguard.exceptions import InputError
from cellguard.nouns.release import Intervals, Status
from cellguard.nouns.table import FloatArray, IntArray, Table

__all__ = ["Ends", "accepted", "exposed_cells", "only", "widened"]

Ends = tuple[FloatArray, FloatArray]
_GAP = 0.05
"""How close to the least possible what is added must be."""
_ROUNDS = 3
"""How often it is mended before everything around is withheld."""


def accepted(table: Table, ends: Ends, deadline: float) -> tuple[Ends | None, int]:
    """Return ends that the audit accepts, the same or wider ones or None, and how many cells were mended."""
    mended = 0
    for attempt in range(_ROUNDS + 1):
        cells = exposed_cells(table, ends, deadline)
        if cells is None or clock.now() > deadline:
            return None, mended
        if not len(cells):
            return ends, mended
        mended += len(cells)
        ends = _withheld(table, ends, cells) if attempt == _ROUNDS - 1 else widened(table, ends, cells, deadline)
    return None, mended


def exposed_cells(table: Table, ends: Ends, deadline: float) -> IntArray | None:
    """Return the cells that the audit does not call safe; None if time ran out before it was sure.

    Respondents are asked only where they were planned against: elsewhere the verb looks for itself, and plans again.
    """
    release = Intervals(table=table, status=Status.FEASIBLE, objective=0.0, lower=ends[0], upper=ends[1])
    found = audit(release, everywhere=False, time_limit_s=left(deadline))
    sure = not found.unknown or clock.now() < deadline
    return found.unsafe_cells if sure else None


def widened(table: Table, ends: Ends, cells: IntArray, deadline: float) -> Ends:
    """Widen the intervals by the narrowest ones that hide some cells alone; twice as wide where those do not help."""
    alone = Problem(only(table, cells))
    if alone.hopeless(deadline):
        return ends
    found = alone.solve(_GAP, deadline)
    a = table.values
    step = 1.0 if table.integer else 0.0
    below, above = found.lower, found.upper
    if step:
        below, above = np.ceil(below - 1e-9), np.ceil(above - 1e-9)
    low, high = np.minimum(ends[0], a - below), np.maximum(ends[1], a + above)
    if np.array_equal(low, ends[0]) and np.array_equal(high, ends[1]):  # it is whole numbers that are missing
        low, high = a - 2.0 * (a - low), a + 2.0 * (high - a)
    return np.maximum(low, table.lb), np.minimum(high, table.ub)


def _withheld(table: Table, ends: Ends, cells: IntArray) -> Ends:
    """Publish nothing of the cells in the relations of some cells but what was known before."""
    T = abs(table.relations)
    here = np.zeros(table.n_cells)
    here[cells] = 1.0
    near = (T.T @ (T @ here) > 0) & ~table.fixed
    return np.where(near, table.lb, ends[0]), np.where(near, table.ub, ends[1])


def only(table: Table, cells: IntArray, lower: FloatArray | None = None, upper: FloatArray | None = None) -> Table:
    """Return the table with only some of its cells to be hidden, from the same attackers.

    Parameters
    ----------
    table
        The table.
    cells
        Which cells.
    lower, upper
        Levels of all cells, where they are to be larger than the table's.
    """
    chosen = np.zeros(table.n_cells, np.bool_)
    chosen[cells] = True

    def own(attacker: Attacker) -> Attacker:
        if attacker.sensitive is None:
            return attacker
        at = chosen[attacker.sensitive]
        levels = {name: getattr(attacker, name)[at] for name in ("sensitive", "lower", "upper", "sliding")}
        return replace(attacker, **levels)

    sensitive = table.sensitive & chosen
    more = (np.zeros(table.n_cells) if x is None else x for x in (lower, upper))
    wider = [
        np.where(sensitive, np.maximum(given, x), 0.0)
        for given, x in zip((table.lower, table.upper), more, strict=True)
    ]
    attackers = tuple(own(attacker) for attacker in table.attackers)
    try:
        return table.with_(
            sensitive=sensitive, lower=wider[0], upper=wider[1],
            sliding=np.where(sensitive, table.sliding, 0.0), attackers=attackers,
        )  # fmt: skip
    except InputError:  # larger levels than the bounds leave room for
        return only(table, cells)
