"""Which way the sensitive cells go, and how far: their levels, and a random surplus (castro2012 (5)).

The closest table leaves most sensitive cells exactly at their level, and levels are a percentage of the value that laws
and handbooks print: an attacker who reads 110 knows that it was 100. So each sensitive cell must go further by a
surplus that only a secret decides. It is uniform between 0 and a maximum at which the true values that could have led
to the published one fill a width of both levels together: at least that if senses are public and levels are up to a
third of the value each, and 0.86 to 1.29 times that at levels of 10% if senses are secret. Sense and surplus of a cell
depend on the secret and on the identity of the cell, not on the table or the order of its cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.decimals import convert_from_units, convert_to_units
from cellguard._engine.space.reduce import Reduction
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.methods.adjust import METHOD
from cellguard.model.key import Key
from cellguard.model.levels import compute_movement_levels, list_attackers, scale_rising_surplus
from cellguard.model.table import Table

__all__ = [
    "Need",
    "add_surplus",
    "choose_senses",
    "compute_slack",
    "identify_cells",
    "needs_of_adjustment",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Need:
    """How far each cell must move, one way or the other."""

    cells: BoolArray
    """Cells that must move."""
    lower: FloatArray
    """Distance when they go down; infinite where they cannot."""
    upper: FloatArray
    """Distance when they go up; infinite where they cannot."""

    @property
    def stuck(self) -> BoolArray:
        """Cells that must move and can go neither way."""
        return np.isinf(self.lower) & np.isinf(self.upper)


def compute_slack(table: Table) -> tuple[FloatArray, FloatArray]:
    """Return how far the known bounds let each cell go down (at most 0) and up; 0 for fixed cells."""
    low, high = np.minimum(table.lb - table.values, 0.0), np.maximum(table.ub - table.values, 0.0)
    return np.where(table.fixed, 0.0, low), np.where(table.fixed, 0.0, high)


def needs_of_adjustment(table: Table) -> Need:
    """Return what the levels of all attackers require together."""
    lower, upper = np.zeros(table.n_cells), np.zeros(table.n_cells)
    for attacker in list_attackers(table):
        levels = compute_movement_levels(table, attacker)
        np.maximum.at(lower, levels.cells, levels.lower)
        np.maximum.at(upper, levels.cells, levels.upper)
    return Need(cells=(lower > 0) | (upper > 0), lower=lower, upper=upper)


def choose_senses(table: Table, need: Need, senses: str | ArrayLike, key: Key, r: Reduction) -> BoolArray:
    """Return which cells rise; named senses are reversed if there is no slack, or only the other side has a level."""
    if not isinstance(senses, str):
        return _read_given_senses(table, senses)
    METHOD.require_choices(UnknownCodeError, senses=senses)
    up = _derive_senses_from_key(table, key, r) if senses == "key" else np.full(table.n_cells, senses == "upper")
    one_sided = (table.lower > 0) != (table.upper > 0)
    up = np.where(one_sided, table.upper > 0, up)
    return np.where(np.isinf(need.upper), False, np.where(np.isinf(need.lower), True, up))


def _derive_senses_from_key(table: Table, key: Key, r: Reduction) -> BoolArray:
    """Return senses that depend only on the cell and the secret, not on its table (castro2012 section 2).

    The key of a cell is made of its contributors, as far as the table knows them: how many, and the largest
    contributions. Without microdata it is made of the cell's codes that are not totals. Cells that can only move
    together take the sense of the one with the smallest key.
    """
    cells = table.sensitive_cells
    keys = key.hash_names(identify_cells(table, cells), "adjust senses", words=2)
    rises = keys[:, 1] & 1 == 1
    group, ratio = r.alias[cells], r.ratio[cells]
    order = np.lexsort((keys[:, 1], keys[:, 0], group))
    first = np.concatenate([[True], np.diff(group[order]) != 0]) if len(cells) else np.zeros(0, bool)
    leader = np.empty(len(cells), np.int64)
    leader[order] = order[first][np.cumsum(first) - 1]
    same_way = (group < 0) | (ratio * ratio[leader] > 0)
    up = np.zeros(table.n_cells, bool)
    up[cells] = np.where(group < 0, rises, rises[leader] == same_way)
    return up


def identify_cells(table: Table, cells: IntArray) -> list[str]:
    """Return what identifies each cell, in any table."""
    known = table.statistics
    if known is not None and known.top.shape[1] and np.isfinite(known.count[cells]).all():
        rows = zip(known.count[cells].tolist(), known.top[cells].tolist(), strict=True)
        # without zeros: the number of contributions that a table keeps must not change a cell's identity
        return [f"{count:g}:" + ";".join(f"{x:.10g}" for x in top if x) for count, top in rows]
    if not table.dimensions:
        return [str(cell) for cell in cells.tolist()]
    codes = table.cell_codes(cells)
    inner = table.coordinates[cells] > 0  # the first code of a dimension is its total
    return [
        ";".join(sorted(f"{name}={codes[name][row]}" for d, name in enumerate(table.dimensions) if inner[row, d]))
        for row in range(len(cells))
    ]


def _read_given_senses(table: Table, senses: ArrayLike) -> BoolArray:
    array = np.asarray(senses, dtype=np.float64).ravel()
    s = int(table.sensitive.sum())
    if len(array) not in (s, table.n_cells):
        raise InputError(
            f"senses: {len(array)} given for {s} sensitive cells.",
            hint=f"give one per sensitive cell, or one for each of the {table.n_cells} cells.",
        )
    if len(array) == s and s != table.n_cells:
        up = np.zeros(table.n_cells)
        up[table.sensitive] = array
        array = up
    bad = table.sensitive & ~((array == 1) | (array == -1))
    if bad.any():
        raise InputError(
            f"senses: {table.label(int(np.argmax(bad)))} has neither 1 (up) nor -1 (down).",
            hint="every sensitive cell needs a sense.",
        )
    return np.asarray(array > 0)


# ---------------------------------------------------------------------- the surplus


def add_surplus(
    table: Table, need: Need, share: float, unit: float, key: Key | None, *, secret: BoolArray | None = None
) -> Need:
    """Return the required distances with the surplus of each cell, within the slack of its known bounds.

    The set of possible true values becomes `share` times as wide as both levels together. If an attacker cannot know
    which way a cell went, which is so for the `secret` cells, they lie on both sides, about half on each. Published
    values are multiples of the unit, if there is one. Without a key, the distances are the largest that any key gives.
    """
    cells = np.flatnonzero(need.cells)
    open_ = [np.isfinite(level[cells]) for level in (need.lower, need.upper)]
    levels = [np.where(can, level[cells], 0.0) for can, level in zip(open_, (need.lower, need.upper), strict=True)]
    both_ways = np.zeros(len(cells), bool) if secret is None else secret[cells] & open_[0] & open_[1]
    fall: FloatArray = share * (levels[0] + levels[1]) / np.where(both_ways, 2.0, 1.0)
    rise = np.where(both_ways, fall, fall * scale_rising_surplus(table.values[cells], levels[1], fall))
    names = identify_cells(table, cells) if share > 0 and key is not None else []
    out = []
    sides = zip(("down", "up"), levels, open_, (fall, rise), compute_slack(table), strict=True)
    for purpose, level, can, widest, side in sides:
        slack, drawn = np.abs(side[cells]), np.zeros(len(cells))
        if share > 0 and key is None:
            drawn = np.ones(len(cells))
        elif share > 0 and key is not None:  # a number of [0, 1) for each cell
            drawn = key.hash_names(names, f"adjust surplus {purpose}")[:, 0] / 2.0**64
        if unit > 0:
            at_least = np.ceil(convert_to_units(level, unit) - 1e-7)
            most = np.maximum(np.floor(convert_to_units(widest, unit)), 1.0 if share > 0 else 0.0)
            most = np.maximum(np.minimum(most, np.floor(convert_to_units(slack, unit) + 1e-7) - at_least), 0.0)
            reached = convert_from_units(at_least + np.minimum(np.floor(drawn * (most + 1.0)), most), unit)
        else:
            reached = level + drawn * np.maximum(np.minimum(widest, slack - level), 0.0)
        fits = reached <= slack * (1 + 1e-12) + 1e-12  # the first multiple beyond the level may lie outside the bounds
        out.append(np.zeros(table.n_cells))
        out[-1][cells] = np.where(can & fits, reached, np.inf)
    return replace(need, lower=out[0], upper=out[1])
