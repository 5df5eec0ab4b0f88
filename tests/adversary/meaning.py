"""What a person can know, and what must stay open to them: written from the attackers' side.

Attackers hold the published file, the manual and the program; only keys and data are secret. Before they look at a
single published number they know

1. the bounds that the table states for everybody;
2. the rule of publication: empty cells are printed. A cell that is not printed as 0 is therefore not empty: a count is
   at least 1, a value at least one unit of its last decimal. The rule does not help them where an empty cell is itself
   sensitive, or where the office says that nobody knows which cells are empty;
3. that counts, and sums of whole things, are whole numbers;
4. what they contributed themselves (`respondents.py`), or what the table's maker says they know.

What must stay open to each of them: a sensitive cell is never exact, and never closer than its levels. A level asks for
no more than their own knowledge leaves open. A count that a threshold n made sensitive keeps n possible numbers. A
sensitive cell without any level keeps a smallest width: three whole numbers or a tenth of a large count, a tenth of a
magnitude, a tenth of the middle value around a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median

import numpy as np

import cellguard as cg
from adversary.programs import exact, remember

WHOLE_NUMBERS = 3
SHARE = Fraction(1, 10)
LEAST = Fraction(1, 10**7)
FEW_UNITS = 5
"""Levels of at most this many units are asked for in whole numbers, where values are sums of whole things."""

Ends = tuple[list[Fraction | None], list[Fraction | None]]
"""The lowest and the highest possible value of every cell; None where there is no end."""


@dataclass(frozen=True)
class Need:
    """What must stay open of one cell to one attacker."""

    cell: int
    lower: Fraction
    upper: Fraction
    width: Fraction


# ---------------------------------------------------------------------- what everybody knows


def find_known_zeros(table: cg.Table) -> np.ndarray:
    """Return the cells of which everybody knows whether they are empty: the rule is that empty cells are printed.

    Not so where the office says otherwise; nor where an empty cell among those that relations tie together is itself
    sensitive, for then an empty cell may be withheld.
    """
    zero = table.values == 0
    feared = zero & table.sensitive
    for who in table.attackers:
        if who.sensitive is not None:
            feared[who.sensitive] |= zero[who.sensitive]
    part = _find_parts(table)
    said = getattr(table, "known_zeros", None)
    if said is None:
        said = table.integer or bool(table.fixed[zero].all() and table.statistics is not None)
    return np.asarray(~np.isin(part, part[feared]) & bool(said))


def _find_parts(table: cg.Table) -> np.ndarray:
    """Return for each cell the number of the part that it is in: cells that relations tie together."""
    T = table.relations.tocsr()
    part = np.arange(table.n_cells)
    while True:
        before = part.copy()
        for first, last in zip(T.indptr[:-1], T.indptr[1:], strict=True):
            cells = T.indices[first:last]
            part[cells] = part[cells].min(initial=table.n_cells)
        if (part == before).all():
            return part


def find_least(table: cg.Table, whole: np.ndarray | None = None) -> np.ndarray:
    """Return the least value that a cell which is not printed as 0 can have, by the rule of publication alone."""
    name = "least" if whole is None else f"least {whole.tobytes().hex()}"
    return np.array(remember(table, name, lambda: _compute_least(table, whole)))


def _compute_least(table: cg.Table, whole: np.ndarray | None) -> np.ndarray:
    least = np.array(table.lb, float)
    known = find_known_zeros(table)
    if not table.integer:  # of magnitudes only where every zero really is printed
        part = _find_parts(table)
        known &= ~np.isin(part, part[(table.values == 0) & ~table.fixed])
    unit = np.where(find_whole(table, whole), 1.0, np.array(find_units(table), float))
    lifted = known & (least >= 0) & (table.values > 0)
    if not known.any():
        return least
    return _add_up(table, np.where(lifted, np.maximum(least, np.minimum(unit, table.values)), least))


def _add_up(table: cg.Table, least: np.ndarray) -> np.ndarray:
    """Return what people know once they add up: a total is at least what its parts are at least."""
    out = np.array(least)  # cells that must be published are part of the release, not of what people know before
    totals, parts = remember(table, "sums", lambda: _compute_sums(table))
    for _ in range(table.n_cells):
        before = out.copy()
        finite = np.where(np.isfinite(out), out, 0.0)
        sums = np.where((parts & ~np.isfinite(out)).any(axis=1), -np.inf, parts @ finite)
        np.maximum.at(out, totals, np.minimum(table.values[totals], sums))
        if (out == before).all():
            break
    return out


def _compute_sums(table: cg.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells that are plain sums of others, and which others, one row each.

    The one part of a total that is not known to be empty is the total.
    """
    T = table.relations.toarray()
    plain = ((T < 0).sum(axis=1) == 1) & (np.abs(T) == (T != 0)).all(axis=1) & (table.rhs == 0)
    totals, parts = np.argmin(T[plain], axis=1), T[plain] > 0
    filled = parts & ~(find_published(table) & (table.values == 0))
    single = filled.sum(axis=1) == 1
    only = np.argmax(filled[single], axis=1)
    again = np.arange(table.n_cells) == totals[single][:, None]
    return np.concatenate([totals, only]), np.concatenate([parts, again])


def find_whole(table: cg.Table, whole: np.ndarray | None = None) -> np.ndarray:
    """Return which cells are known to be whole numbers: as said, or all of a table of counts."""
    return np.full(table.n_cells, bool(table.integer)) if whole is None else whole


def find_published(table: cg.Table) -> np.ndarray:
    """Return which cells everybody sees unchanged: those that must be published, and the empty ones."""
    return np.array(remember(table, "published", lambda: _compute_published(table)))


def _compute_published(table: cg.Table) -> np.ndarray:
    empty = (table.values == 0) & find_known_zeros(table) & ~table.sensitive
    return table.fixed | empty if table.integer else table.fixed


def find_units(table: cg.Table) -> list[Fraction]:
    """Return the unit of the last decimal of each cell's indicator: everybody knows the kind of data; 0 if it has none.

    The cells of an indicator are those that relations tie together. A cell in no relation is of the kind of all others:
    its own value, which is secret, says nothing about its kind.
    """
    return remember(table, "units", lambda: _compute_units(table))


def _compute_units(table: cg.Table) -> list[Fraction]:
    part, out = _find_parts(table), [Fraction(0)] * table.n_cells
    for number in np.unique(part).tolist():
        mine = np.flatnonzero(part == number)
        values = table.values[mine] if len(mine) > 1 else table.values
        whole = (Fraction(1, 10**d) for d in range(7) if table.integer or (values.round(d) == values).all())
        unit = next(whole, Fraction(0))
        for i in mine.tolist():
            out[i] = unit
    return out


def find_bounds(table: cg.Table, attacker: cg.Attacker, whole: np.ndarray | None = None) -> Ends:
    """Return what the attacker knows of every cell before looking at the release."""
    name = "bounds" if whole is None else f"bounds {whole.tobytes().hex()}"
    low, high = (list(ends) for ends in remember(table, name, lambda: _compute_bounds(table, whole)))
    for i, lb, ub in zip(attacker.cells.tolist(), attacker.lb, attacker.ub, strict=True):
        if np.isfinite(lb) and (low[i] is None or exact(lb) > low[i]):
            low[i] = exact(lb)
        if np.isfinite(ub) and (high[i] is None or exact(ub) < high[i]):
            high[i] = exact(ub)
    if (
        len(attacker.cells) and find_known_zeros(table).any()
    ):  # what they gave and what everybody knows of the other parts make a total
        least = np.array([-np.inf if end is None else float(end) for end in low])
        more = _add_up(table, least)
        for i in np.flatnonzero(more > least).tolist():
            low[i] = exact(more[i])
    return low, high


def _compute_bounds(table: cg.Table, whole: np.ndarray | None) -> Ends:
    """Return what everybody knows of every cell."""
    low = [exact(x) if np.isfinite(x) else None for x in find_least(table, whole)]
    high = [exact(x) if np.isfinite(x) else None for x in table.ub]
    for i in np.flatnonzero(find_published(table) & ~table.fixed).tolist():
        low[i] = high[i] = exact(table.values[i])
    return low, high


# ---------------------------------------------------------------------- what must stay open


def list_needs(
    table: cg.Table, attacker: cg.Attacker, whole: np.ndarray | None = None, *, stated: bool = False
) -> list[Need]:
    """Return what must stay open to an attacker; `whole` says which cells are known to be whole numbers.

    With `stated`, levels are reduced by the bounds that the table states and by no more: an adjusted value must be as
    far from the truth as the level says, and a count of 1 whose lower level is 1 may be published as 0.
    """
    if attacker.sensitive is None:
        cells = [i for i in range(table.n_cells) if table.sensitive[i]]
        levels = {i: (table.lower[i], table.upper[i], table.sliding[i]) for i in cells}
    else:
        columns = (attacker.sensitive, attacker.lower, attacker.upper, attacker.sliding)
        levels = {int(i): (lo, up, sl) for i, lo, up, sl in zip(*columns, strict=True)}
    low, high = (
        ([exact(x) if np.isfinite(x) else None for x in ends] for ends in table.bounds(attacker))
        if stated
        else find_bounds(table, attacker, whole)
    )
    counted = find_whole(table, whole)
    return [_find_need(table, i, given, (low[i], high[i]), whole=bool(counted[i])) for i, given in levels.items()]


def list_small_needs(table: cg.Table, attacker: cg.Attacker, sums: np.ndarray) -> list[Need]:
    """Return what must stay open in whole numbers although the cells are no counts: levels of a few units of them.

    There are no half employees. Beside a level of many units the next whole number does not matter.
    """
    counts = find_whole(table)
    needs = list_needs(table, attacker, sums)
    few = (need for need in needs if sums[need.cell] and not counts[need.cell])
    return [need for need in few if max(need.lower, need.upper, need.width) <= FEW_UNITS]


def _find_need(
    table: cg.Table,
    i: int,
    given: tuple[float, float, float],
    known: tuple[Fraction | None, Fraction | None],
    *,
    whole: bool,
) -> Need:
    """Return what must stay open of one cell: its levels, never exact, capped by what the attacker knows."""
    a = exact(table.values[i])
    low, high = known
    lower, upper, width = (exact(x) for x in given)
    if whole:
        lower, upper, width = (Fraction(ceil(x - Fraction(1, 10**9))) for x in (lower, upper, width))
    # no release can keep people from what they know already
    if low is not None:
        lower = min(lower, max(Fraction(0), a - low))
    if high is not None:
        upper = min(upper, max(Fraction(0), high - a))
    if lower == upper == width == 0:  # a side without room is asked for as a width
        width = compute_smallest_width(table, i)
        width = Fraction(ceil(width)) if whole else width
    width = max(width, Fraction(1) if whole else LEAST * max(Fraction(1), abs(a)))
    if low is not None and high is not None:
        width = min(width, max(Fraction(0), high - low))
    return Need(i, lower, upper, width)


def compute_smallest_width(table: cg.Table, cell: int) -> Fraction:
    """Return the width of a cell that a rule only flagged."""
    return remember(table, f"width {cell}", lambda: _compute_width(table, cell))


def _compute_width(table: cg.Table, cell: int) -> Fraction:
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
