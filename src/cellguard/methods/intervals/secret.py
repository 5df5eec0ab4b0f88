"""Secret draws: numbers that depend on the seed and on what a cell is called, not on the order or value of cells."""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
from numpy.typing import NDArray

from cellguard._types import FloatArray, IntArray
from cellguard.nouns.table import Table

__all__ = ["Secret", "secret_interval_seed"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def secret_interval_seed(seed: int) -> int:
    """Return the seed, or one that the operating system draws when it is 0."""
    return seed or secrets.randbits(63) | 1


class Secret:
    """Uniform numbers of cells for several purposes; who does not know the seed cannot tell one from the others.

    >>> from cellguard import Table
    >>> table = Table.from_equations([3, 4, 7], [[2, 0, 1]])
    >>> one, other = (Secret(table, 5).uniform("grid", np.array([0, 2])) for _ in range(2))
    >>> bool((one == other).all())
    True
    """

    def __init__(self, table: Table, seed: int) -> None:
        codes = list(table.cell_codes().values())
        names = ["\x1f".join(cell) for cell in zip(*codes, strict=True)]
        key = int(seed).to_bytes(32, "little", signed=False)
        digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8, key=key).digest() for name in names)
        self._key: NDArray[np.uint64] = np.frombuffer(digests, np.uint64)

    def uniform(self, purpose: str, cells: IntArray) -> FloatArray:
        """Return a number between 0 and 1 for each of some cells."""
        salt = np.uint64(int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little"))
        with np.errstate(over="ignore"):
            x = (self._key[cells] ^ salt) + _GOLDEN
            x = (x ^ (x >> np.uint64(30))) * _MIX[0]
            x = (x ^ (x >> np.uint64(27))) * _MIX[1]
            x ^= x >> np.uint64(31)
        return np.asarray((x >> np.uint64(11)) * 2.0**-53)
