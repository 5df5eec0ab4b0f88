"""A random surplus: sensitive cells do not stop where their level ends.

The closest table leaves most sensitive cells exactly at their level, and levels are a percentage of the value that laws
and handbooks print: who reads 110 knows that it was 100. So each sensitive cell must go further by a surplus that
only a secret decides, uniform between nothing and so much that the true values which could have led to the published
one fill a width of at least both levels together. The surplus of a cell depends on the secret and on what the cell is,
not on the table or the order in which it stands.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from cellguard._engine.numbers.decimals import in_units, of_units
from cellguard._types import FloatArray
from cellguard.methods.adjust.repair import room_of
from cellguard.methods.adjust.senses import Need, hashed, identities
from cellguard.nouns.table import Table

__all__ = ["with_secret", "with_surplus"]


Verb = TypeVar("Verb", bound=Callable[..., Any])


def with_secret(verb: Verb) -> Verb:
    """Let a verb that is given no seed, or 0, have one that nobody can guess; the same for all parts of its work."""

    @wraps(verb)
    def secretly(table: Any, **options: Any) -> Any:
        return verb(table, **{**options, "seed": options.get("seed") or 1 + secrets.randbits(62)})

    return cast("Verb", secretly)


def with_surplus(table: Table, need: Need, share: float, unit: float, seed: int, *, secret_senses: bool) -> Need:
    """Return what must be reached with the surplus of each cell, in the room that its known bounds leave.

    Parameters
    ----------
    share
        How wide the set of possible true values shall be, relative to both levels together; 0 for no surplus.
    unit
        Published values are multiples of this; 0 when they may be any numbers.
    secret_senses
        Whether nobody can tell which way a cell went: the possible values then lie on both sides, half on each.
    """
    cells = np.flatnonzero(need.cells)
    down, up = (np.abs(side[cells]) for side in room_of(table))
    levels = need.lower[cells], need.upper[cells]
    open_ = [np.isfinite(level) for level in levels]
    both = np.where(open_[0], levels[0], 0.0) + np.where(open_[1], levels[1], 0.0)
    ways = np.maximum(1, open_[0].astype(int) + open_[1]) if secret_senses else np.ones(len(cells))
    widest: FloatArray = share * both / ways
    names = identities(table, cells) if share > 0 else []
    out = []
    for name, level, can, room in (("down", levels[0], open_[0], down), ("up", levels[1], open_[1], up)):
        drawn = _drawn(names, seed, name) if share > 0 else np.zeros(len(cells))
        at_least = np.where(can, level, 0.0)
        if unit > 0:
            at_least = np.ceil(in_units(at_least, unit) - 1e-7)
            most = np.maximum(np.floor(in_units(widest, unit)), 1.0 if share > 0 else 0.0)
            most = np.maximum(np.minimum(most, np.floor(in_units(room, unit) + 1e-7) - at_least), 0.0)
            reached = of_units(at_least + np.minimum(np.floor(drawn * (most + 1.0)), most), unit)
        else:
            reached = at_least + drawn * np.maximum(np.minimum(widest, room - at_least), 0.0)
        fits = reached <= room * (1 + 1e-12) + 1e-12  # the first multiple beyond the level may lie outside the bounds
        side = np.zeros(table.n_cells)
        side[cells] = np.where(can & fits, reached, np.inf)
        out.append(side)
    return replace(need, lower=out[0], upper=out[1])


def _drawn(names: list[bytes], seed: int, purpose: str) -> FloatArray:
    """Return a number of [0, 1) for each cell, by a keyed hash of what the cell is."""
    return hashed(names, seed, size=8, person=f"surplus {purpose}".encode())[:, 0] / 2.0**64
