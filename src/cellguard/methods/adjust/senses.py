"""Which way the sensitive cells go, and the bounds this gives (castro2012 (5))."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard._engine.space.reduce import Reduction
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.levels import attackers_of, movement_levels
from cellguard.nouns.table import Table

__all__ = ["Need", "fixed_senses", "hashed", "identities", "needs"]

_NAMED = ("upper", "lower", "key", "optimal")


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

    def bounds(self, table: Table, up: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the movements when the cells in `up` rise and the others sink (castro2012 (5))."""
        low, high = table.lb - table.values, table.ub - table.values
        low = np.where(self.cells & up, self.upper, np.minimum(low, 0.0))
        high = np.where(self.cells & ~up, -self.lower, np.maximum(high, 0.0))
        return low, high


def needs(table: Table) -> Need:
    """Return what every attacker's levels ask for together."""
    lower, upper = np.zeros(table.n_cells), np.zeros(table.n_cells)
    for attacker in attackers_of(table):
        levels = movement_levels(table, attacker)
        np.maximum.at(lower, levels.cells, levels.lower)
        np.maximum.at(upper, levels.cells, levels.upper)
    return Need(cells=(lower > 0) | (upper > 0), lower=lower, upper=upper)


def fixed_senses(table: Table, need: Need, senses: str | ArrayLike, seed: int, r: Reduction) -> BoolArray:
    """Return which cells rise; named senses go the other way where there is no room, or where only that has a level."""
    if not isinstance(senses, str):
        return _given(table, senses)
    if senses not in _NAMED:
        raise UnknownCodeError(
            f"senses {senses!r} are not known; known are {', '.join(_NAMED)}, or an array.",
            hint=did_you_mean(senses, _NAMED),
        )
    up = _by_key(table, seed, r) if senses == "key" else np.full(table.n_cells, senses == "upper")
    one_sided = (table.lower > 0) != (table.upper > 0)
    up = np.where(one_sided, table.upper > 0, up)
    return np.where(np.isinf(need.upper), False, np.where(np.isinf(need.lower), True, up))


def _by_key(table: Table, seed: int, r: Reduction) -> BoolArray:
    """Return senses that depend on the cell and the secret only, not on the table it stands in (castro2012 section 2).

    The key of a cell is who contributes to it, as far as the table knows: how many, and the largest
    contributions. Without microdata it is where the cell stands: its codes that are no totals. Cells
    that can only move together take the sense of the one with the smallest key.
    """
    cells = table.sensitive_cells
    keys = hashed(identities(table, cells), seed, size=16)
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


def hashed(names: list[bytes], seed: int, *, size: int, person: bytes = b"") -> NDArray[np.uint64]:
    """Return the keyed hash of each name, in words of eight bytes, the first ones first."""
    begun, digests = blake2b(key=str(seed).encode(), person=person, digest_size=size), []
    for name in names:
        one = begun.copy()
        one.update(name)
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, size // 8)


def identities(table: Table, cells: IntArray) -> list[bytes]:
    """Return what makes each cell itself, in any table it may stand in."""
    return [name.encode() for name in _names(table, cells)]


def _names(table: Table, cells: IntArray) -> list[str]:
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


def _given(table: Table, senses: ArrayLike) -> BoolArray:
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
