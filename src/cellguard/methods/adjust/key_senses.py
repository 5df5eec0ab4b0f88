"""Senses by a secret key: coins where they hardly matter, and the closest table everywhere else.

The coin of a cell depends on the secret and on the identity of the cell, not on the table. Which cells are decided by
their coin depends on the table (:mod:`cellguard._engine.closest.directions_drawn`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.directions_drawn import draw_close_senses
from cellguard._types import BoolArray, IntArray
from cellguard.methods.adjust.senses import Need, identify_cells
from cellguard.model.key import Key
from cellguard.model.table import Table

__all__ = ["KeySenses", "draw_senses_by_key"]


@dataclass(frozen=True, kw_only=True, eq=False)
class KeySenses:
    """Which cells rise, and how much of that is secret."""

    up: BoolArray
    public: BoolArray
    """Cells whose sense the table alone decides: an attacker who guesses the table well knows it."""
    bits: int
    """Expected number of bits that an attacker would have to guess even with the true table."""


def draw_senses_by_key(table: Table, need: Need, search: Senses, key: Key, deadline: Deadline) -> KeySenses | None:
    """Draw senses that keep the table close; None if none were found that leave a table."""
    coins, order = _draw_coins(table, need, search, key)
    found = draw_close_senses(search, coins, order, deadline)
    if found is None:
        return None
    public = np.zeros(table.n_cells, bool)
    m = search.k.movers
    decided = np.zeros(m.n, bool)
    decided[search.mover] = found.public | (found.bits == 0)
    public[m.cell] = decided[m.mover]
    return KeySenses(up=search.find_rising_cells(found.senses), public=public & need.cells, bits=found.bits)


def _draw_coins(table: Table, need: Need, search: Senses, key: Key) -> tuple[BoolArray, IntArray]:
    """Return which movers rise by their coins, and their order; the cell with the smallest hash leads its mover."""
    m = search.k.movers
    mine = np.flatnonzero(need.cells[m.cell])
    hashes = key.hash_names(identify_cells(table, m.cell[mine]), "adjust senses", words=2)
    place = np.lexsort((hashes[:, 1], hashes[:, 0], m.mover[mine]))
    first = np.concatenate([[True], np.diff(m.mover[mine][place]) != 0]) if len(mine) else np.zeros(0, bool)
    leader = place[first]  # one per mover with a cell that must move, by mover
    rises = (hashes[leader, 1] & 1 == 1) == (m.ratio[mine][leader] > 0)
    at = np.searchsorted(m.mover[mine][leader], search.mover)
    return rises[at], np.argsort(hashes[leader, 0][at], kind="stable")
