"""Which way the sensitive cells go, and how far: their levels, and a random surplus (castro2012 (5)).

The closest table leaves most sensitive cells exactly at their level, and levels are a percentage of the value that laws
and handbooks print: who reads 110 knows that it was 100. So each sensitive cell must go further by a surplus that
only a secret decides, uniform between nothing and so much that the true values which could have led to the published
one fill a width of at least both levels together. Sense and surplus of a cell depend on the secret and on what the cell
is, not on the table or the order in which it stands.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import blake2b
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard._engine.numbers.decimals import from_decimal_units, in_decimal_units
from cellguard._engine.space.reduce import Reduction
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.methods.adjust import METHOD
from cellguard.nouns.levels import attackers_of_table, movement_levels
from cellguard.nouns.table import Table

__all__ = [
    "Need",
    "adjustment_with_surplus",
    "fixed_senses",
    "needs_of_adjustment",
    "room_to_adjust",
    "with_secret_senses",
]

Verb = TypeVar("Verb", bound=Callable[..., Any])


def with_secret_senses(verb: Verb) -> Verb:
    """Let a verb that is given no seed, or 0, have one that nobody can guess; the same for all parts of its work."""

    @wraps(verb)
    def secretly(table: Any, **options: Any) -> Any:
        return verb(table, **{**options, "seed": options.get("seed") or 1 + secrets.randbits(62)})

    return cast("Verb", secretly)


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


def room_to_adjust(table: Table) -> tuple[FloatArray, FloatArray]:
    """Return how far the known bounds let each cell go down (at most 0) and up; fixed cells nowhere."""
    low, high = np.minimum(table.lb - table.values, 0.0), np.maximum(table.ub - table.values, 0.0)
    return np.where(table.fixed, 0.0, low), np.where(table.fixed, 0.0, high)


def needs_of_adjustment(table: Table) -> Need:
    """Return what every attacker's levels ask for together."""
    lower, upper = np.zeros(table.n_cells), np.zeros(table.n_cells)
    for attacker in attackers_of_table(table):
        levels = movement_levels(table, attacker)
        np.maximum.at(lower, levels.cells, levels.lower)
        np.maximum.at(upper, levels.cells, levels.upper)
    return Need(cells=(lower > 0) | (upper > 0), lower=lower, upper=upper)


def fixed_senses(table: Table, need: Need, senses: str | ArrayLike, seed: int, r: Reduction) -> BoolArray:
    """Return which cells rise; named senses go the other way where there is no room, or where only that has a level."""
    if not isinstance(senses, str):
        return _given_senses(table, senses)
    METHOD.require_choices(UnknownCodeError, senses=senses)
    up = _senses_by_key(table, seed, r) if senses == "key" else np.full(table.n_cells, senses == "upper")
    one_sided = (table.lower > 0) != (table.upper > 0)
    up = np.where(one_sided, table.upper > 0, up)
    return np.where(np.isinf(need.upper), False, np.where(np.isinf(need.lower), True, up))


def _senses_by_key(table: Table, seed: int, r: Reduction) -> BoolArray:
    """Return senses that depend on the cell and the secret only, not on the table it stands in (castro2012 section 2).

    The key of a cell is who contributes to it, as far as the table knows: how many, and the largest
    contributions. Without microdata it is where the cell stands: its codes that are no totals. Cells
    that can only move together take the sense of the one with the smallest key.
    """
    cells = table.sensitive_cells
    keys = _hashes_for_senses(_identities_for_senses(table, cells), seed, size=16)
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


def _hashes_for_senses(names: list[str], seed: int, *, size: int, person: bytes = b"") -> NDArray[np.uint64]:
    """Return the keyed hash of each name, in words of eight bytes, the first ones first."""
    begun, digests = blake2b(key=str(seed).encode(), person=person, digest_size=size), []
    for name in names:
        one = begun.copy()
        one.update(name.encode())
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, size // 8)


def _identities_for_senses(table: Table, cells: IntArray) -> list[str]:
    """Return what makes each cell itself, in any table it may stand in."""
    known = table.statistics
    if known is not None and known.top.shape[1] and np.isfinite(known.count[cells]).all():
        rows = zip(known.count[cells].tolist(), known.top[cells].tolist(), strict=True)
        return [f"{count:g}:" + ";".join(f"{x:.10g}" for x in top) for count, top in rows]
    if not table.dimensions:
        return [str(cell) for cell in cells.tolist()]
    codes = table.cell_codes(cells)
    inner = table.coordinates[cells] > 0  # the first code of a dimension is its total
    return [
        ";".join(sorted(f"{name}={codes[name][row]}" for d, name in enumerate(table.dimensions) if inner[row, d]))
        for row in range(len(cells))
    ]


def _given_senses(table: Table, senses: ArrayLike) -> BoolArray:
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


def adjustment_with_surplus(
    table: Table, need: Need, share: float, unit: float, seed: int, *, secret_senses: bool
) -> Need:
    """Return what must be reached with the surplus of each cell, in the room that its known bounds leave.

    The set of possible true values becomes `share` times as wide as both levels together; where nobody can tell which
    way a cell went, they lie on both sides, half on each. Published values are multiples of the unit, if there is one.
    """
    cells = np.flatnonzero(need.cells)
    open_ = [np.isfinite(level[cells]) for level in (need.lower, need.upper)]
    levels = [np.where(can, level[cells], 0.0) for can, level in zip(open_, (need.lower, need.upper), strict=True)]
    ways = np.maximum(1, open_[0].astype(int) + open_[1]) if secret_senses else np.ones(len(cells))
    widest: FloatArray = share * (levels[0] + levels[1]) / ways
    names = _identities_for_senses(table, cells) if share > 0 else []
    out = []
    for purpose, level, can, side in zip(("down", "up"), levels, open_, room_to_adjust(table), strict=True):
        room, drawn = np.abs(side[cells]), np.zeros(len(cells))
        if share > 0:  # a number of [0, 1) for each cell
            drawn = _hashes_for_senses(names, seed, size=8, person=f"surplus {purpose}".encode())[:, 0] / 2.0**64
        if unit > 0:
            at_least = np.ceil(in_decimal_units(level, unit) - 1e-7)
            most = np.maximum(np.floor(in_decimal_units(widest, unit)), 1.0 if share > 0 else 0.0)
            most = np.maximum(np.minimum(most, np.floor(in_decimal_units(room, unit) + 1e-7) - at_least), 0.0)
            reached = from_decimal_units(at_least + np.minimum(np.floor(drawn * (most + 1.0)), most), unit)
        else:
            reached = level + drawn * np.maximum(np.minimum(widest, room - level), 0.0)
        fits = reached <= room * (1 + 1e-12) + 1e-12  # the first multiple beyond the level may lie outside the bounds
        out.append(np.zeros(table.n_cells))
        out[-1][cells] = np.where(can & fits, reached, np.inf)
    return replace(need, lower=out[0], upper=out[1])
