"""The best of everything there is, for small tables: all roundings one by one, all senses of an adjustment."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import cellguard as cg
from adversary.checker import attackers, least_movement, multiples, protected, relations_of, rounded_interval, too_close
from adversary.meaning import find_published, find_units, list_needs
from adversary.programs import echelon, exact

MANY = 600
"""Roundings to look at, at most."""
SENSES = 4
"""Sensitive cells that may go up or down: 16 programs at most."""


# ---------------------------------------------------------------------- roundings


def roundings(table: cg.Table, base: Any, step: int, stated: cg.Table | None = None) -> list[list[Fraction]] | None:
    """Return all additive tables of multiples nearer than step x base; None when they are too many.

    Multiples lie inside the bounds that were `stated`; that a cell is not empty does not keep it from being rounded to 0.
    """
    stated = table if stated is None else stated
    n = table.n_cells
    bases = [exact(b) for b in np.broadcast_to(base, n)]
    truth = [exact(a) for a in table.values]
    fixed = find_published(table)
    # outside what everybody knows only where there is no multiple inside
    choices = [
        [truth[i]]
        if fixed[i]
        else multiples(stated, i, bases[i], step, inside=True) or multiples(stated, i, bases[i], step, inside=False)
        for i in range(n)
    ]
    basic = echelon([dict(row) for row in relations_of(table)], avoid=-1)
    free = [i for i in range(n) if i not in basic]
    if np.prod([float(len(choices[i])) for i in free]) > MANY:
        return None
    allowed = [set(c) for c in choices]
    rest = {b: sum((c * truth[j] for j, c in row.items()), Fraction(0)) for b, row in basic.items()}
    out = []
    for chosen in product(*(choices[i] for i in free)):
        v = dict(zip(free, chosen, strict=True))
        for b, row in basic.items():
            v[b] = rest[b] - sum((c * v[j] for j, c in row.items() if j != b), Fraction(0))
        if all(v[b] in allowed[b] for b in basic):
            out.append([v[i] for i in range(n)])
    return out


def safe_rounding(table: cg.Table, values: list[Fraction], base: Any, step: int, *, keep: bool) -> bool:
    """Whether a rounding keeps every level, by what is really possible; sensitive cells stay only where that is asked.

    Nothing may be missing: a method may refuse what is forgiven to who publishes.
    """
    bases = [exact(b) for b in np.broadcast_to(base, table.n_cells)]
    if not keep and any(values[i] == exact(table.values[i]) for i in protected(table)):
        return False
    intervals = [
        (v, v) if fixed else rounded_interval(unit, v, b, step)
        for v, b, fixed, unit in zip(values, bases, find_published(table), find_units(table), strict=True)
    ]
    return not any(v for who in attackers(table) for v in too_close(table, intervals, who, "", missing=0))


def cheaper_roundings(
    table: cg.Table, stated: cg.Table, base: Any, step: int, weights: np.ndarray, cost: float, *, keep: bool
) -> Iterator[float]:
    """Yield the cost of safe roundings below a cost; where nothing moves it is the truth, and not safe."""
    for values in roundings(table, base, step, stated) or ():
        here = float(sum(w * abs(float(v) - a) for w, v, a in zip(weights, values, table.values, strict=True)))
        if 0 < here < cost and safe_rounding(table, values, base, step, keep=keep):
            yield here


# ---------------------------------------------------------------------- adjustments


def least_adjustment(table: cg.Table, weights: np.ndarray | None, unit: float) -> float | None:
    """Return the least L1 distance over all senses (0 for any table when there are no weights); None if none exists.

    Values may move by multiples of the unit only: the grid of the true ones, which published ones keep. By any
    numbers when it is 0.
    """
    need: dict[int, tuple[float, float]] = {}
    for who in attackers(table):
        for one in list_needs(table, who):
            down, up = (float(least_movement(table, one, up=u)) for u in (False, True))
            before = need.get(one.cell, (0.0, 0.0))
            need[one.cell] = (max(before[0], down), max(before[1], up))
    best = None
    for senses in product((False, True), repeat=len(need)):
        found = _adjustment(table, need, dict(zip(need, senses, strict=True)), weights, unit)
        if found is not None and (best is None or found < best):
            best = found
    return best


def _adjustment(
    table: cg.Table, need: dict[int, tuple[float, float]], up: dict[int, bool], weights: np.ndarray | None, unit: float
) -> float | None:
    """Movements up and down as columns, in units; whole numbers of them where there is a grid."""
    n, a = table.n_cells, table.values
    high, low = np.maximum(table.ub - a, 0), np.maximum(a - table.lb, 0)
    fixed = find_published(table)
    high, low = np.where(fixed, 0, high), np.where(fixed, 0, low)
    least = np.zeros(2 * n)
    for cell, (down_level, up_level) in need.items():
        (high if not up[cell] else low)[cell] = 0
        least[cell if up[cell] else n + cell] = up_level if up[cell] else down_level
    most = np.concatenate([high, low])
    if unit:
        least, most = np.ceil(least / unit - 1e-7), np.floor(most / unit + 1e-7)
    if (least > most * (1 + 1e-12)).any():
        return None
    T = table.relations.tocsr()
    cost = np.zeros(2 * n) if weights is None else np.concatenate([weights, weights]) * (unit or 1.0)
    from scipy.sparse import hstack

    zero = np.zeros(T.shape[0])
    rows = [LinearConstraint(hstack([T, -T]).tocsr(), zero, zero)] if T.shape[0] else []
    whole = np.full(2 * n, int(unit > 0))
    found = milp(cost, integrality=whole, bounds=Bounds(np.minimum(least, most), most), constraints=rows)
    return float(found.fun) if found.status == 0 else None
