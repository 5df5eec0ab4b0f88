"""What is asked for a sensitive cell, written down once more from the manual, cell by cell.

Never published as it is, never known exactly, never closer than its levels, against every attacker.
A sensitive cell without any level asks for a smallest width: two steps of a count (three whole
numbers stay possible) or a tenth of a large one, a tenth of a magnitude, a tenth of what stands around a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median

import numpy as np

import cellguard as cg
from adversary.programs import exact

WHOLE_NUMBERS = 3
SHARE = Fraction(1, 10)
LEAST = Fraction(1, 10**7)


@dataclass(frozen=True)
class Asked:
    """What one attacker must not narrow of one cell."""

    cell: int
    lower: Fraction
    upper: Fraction
    width: Fraction


def asked(table: cg.Table, attacker: cg.Attacker) -> list[Asked]:
    """Return what is asked against an attacker."""
    if attacker.sensitive is None:
        cells = [i for i in range(table.n_cells) if table.sensitive[i]]
        levels = {i: (table.lower[i], table.upper[i], table.sliding[i]) for i in cells}
    else:
        columns = (attacker.sensitive, attacker.lower, attacker.upper, attacker.sliding)
        levels = {int(i): (lo, up, sl) for i, lo, up, sl in zip(*columns, strict=True)}
    low, high = known(table, attacker)
    out = []
    for i, given in levels.items():
        a = exact(table.values[i])
        lower, upper, width = (exact(x) for x in given)
        if lower == upper == width == 0:
            width = smallest_width(table, i)
        width = max(width, LEAST * max(Fraction(1), abs(a)))
        if table.integer:
            lower, upper, width = (Fraction(ceil(x - Fraction(1, 10**6))) for x in (lower, upper, width))
            width = max(width, Fraction(1))
        # nobody can be kept from what he knows already
        if low[i] is not None:
            lower = min(lower, max(Fraction(0), a - low[i]))
        if high[i] is not None:
            upper = min(upper, max(Fraction(0), high[i] - a))
        if low[i] is not None and high[i] is not None:
            width = min(width, max(Fraction(0), high[i] - low[i]))
        out.append(Asked(i, lower, upper, width))
    return out


def known(table: cg.Table, attacker: cg.Attacker) -> tuple[list[Fraction | None], list[Fraction | None]]:
    """Return what the attacker knows of every cell before anything is published."""
    low: list[Fraction | None] = [exact(x) if np.isfinite(x) else None for x in table.lb]
    high: list[Fraction | None] = [exact(x) if np.isfinite(x) else None for x in table.ub]
    for i, lb, ub in zip(attacker.cells.tolist(), attacker.lb, attacker.ub, strict=True):
        if np.isfinite(lb) and (low[i] is None or exact(lb) > low[i]):
            low[i] = exact(lb)
        if np.isfinite(ub) and (high[i] is None or exact(ub) < high[i]):
            high[i] = exact(ub)
    return low, high


def smallest_width(table: cg.Table, cell: int) -> Fraction:
    """Return the width of a cell that a rule only flagged."""
    given = getattr(table, "smallest_width", None)
    if table.integer:  # of a large count, a tenth of it
        many = 0 if given is not None else ceil(SHARE * abs(exact(table.values[cell])))
        return Fraction(max(1, ceil(WHOLE_NUMBERS if given is None else given) - 1, many))
    share = SHARE if given is None else exact(given)
    if table.values[cell]:
        return share * abs(exact(table.values[cell]))
    T = table.relations.toarray() != 0
    near = [abs(v) for row in T[T[:, cell]] for v in table.values[row] if v]
    near = near or [abs(v) for v in table.values if v] or [1.0]
    return share * exact(median(near))
