"""Secret draws: numbers that depend on the key and on the name of a cell, not on the order or value of cells."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from cellguard._types import FloatArray, IntArray
from cellguard.model.key import Key
from cellguard.model.table import Table

__all__ = ["Secret"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Secret:
    """Uniform numbers of cells for several purposes; without the key, none can be predicted from the others.

    >>> from cellguard import Key, Table
    >>> key = Key.draw()
    >>> table = Table.from_equations([3, 4, 7], [[2, 0, 1]])
    >>> one, other = (Secret(table, key).draw_uniform("grid", np.array([0, 2])) for _ in range(2))
    >>> bool((one == other).all())
    True
    """

    def __init__(self, table: Table, key: Key) -> None:
        codes = list(table.cell_codes().values())
        names = ["\x1f".join(cell) for cell in zip(*codes, strict=True)]
        self._key: NDArray[np.uint64] = key.hash_names(names, "intervals")[:, 0]

    def draw_uniform(self, purpose: str, cells: IntArray) -> FloatArray:
        """Return a number between 0 and 1 for each of some cells."""
        salt = np.uint64(int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little"))
        with np.errstate(over="ignore"):
            x = (self._key[cells] ^ salt) + _GOLDEN
            x = (x ^ (x >> np.uint64(30))) * _MIX[0]
            x = (x ^ (x >> np.uint64(27))) * _MIX[1]
            x ^= x >> np.uint64(31)
        return np.asarray((x >> np.uint64(11)) * 2.0**-53)
