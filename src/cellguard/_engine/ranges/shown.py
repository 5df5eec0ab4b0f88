"""Movements that were shown possible before: where programs are large, they are tried before any is solved.

Whoever searches a pattern has a movement for every level that it must meet, and asks for verdicts on one pattern
after the other. What a movement shows is checked anew by whoever is asked, relation by relation; so it may come from
anywhere, and a wrong one is of no use but does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import RELATION
from cellguard._types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray

__all__ = [
    "LARGE", "range_witnesses_that_hold", "remember_shown", "remembering_shown", "shown_movements",
    "stretched_witnesses",
]  # fmt: skip


LARGE = 2000
"""Systems with fewer variables are asked at once: their programs take no longer than trying what is remembered."""
_MOST = 20_000_000
"""Entries that are remembered; the oldest are forgotten first."""
_STRETCH = 4.0
"""A movement without a bound is stretched by this."""

_SHOWN: ContextVar[list[csr_array] | None] = ContextVar("shown", default=None)


@contextmanager
def remembering_shown() -> Iterator[None]:
    """Let everything in this context profit from movements that were shown in it."""
    if _SHOWN.get() is not None:
        yield
        return
    token = _SHOWN.set([])
    try:
        yield
    finally:
        _SHOWN.reset(token)


def remember_shown(movements: sparray) -> None:
    """Keep movements of all cells, one row each, if anybody is remembering."""
    kept = _SHOWN.get()
    if kept is None or not movements.shape[0]:
        return
    from scipy.sparse import csr_array

    kept.append(csr_array(movements))
    while len(kept) > 1 and sum(block.nnz for block in kept) > _MOST:
        kept.pop(0)


def shown_movements(n_cells: int, cells: IntArray) -> csr_array | None:
    """Return the movements of some cells that are remembered of tables with so many cells, the latest first."""
    kept = [block for block in reversed(_SHOWN.get() or ()) if block.shape[1] == n_cells]
    if not kept:
        return None
    from scipy.sparse import csr_array, vstack

    return csr_array(csr_array(vstack(kept))[:, cells])


def range_witnesses_that_hold(movements: csr_array, relations: csr_array) -> csr_array:
    """Return the movements that keep all relations: what a published cell forbids by now is left out."""
    from scipy.sparse import csr_array

    error, size = abs(csr_array(movements @ relations.T)), csr_array(abs(movements) @ abs(relations).T)
    wrong = csr_array(error - RELATION * size)
    wrong.data = np.maximum(wrong.data, 0.0)
    good = (np.asarray(wrong.sum(axis=1)).ravel() == 0) & (np.diff(movements.indptr) > 0)
    return csr_array(movements[np.flatnonzero(good)])


def stretched_witnesses(
    movements: csr_array, room: tuple[FloatArray, FloatArray], component: IntArray, n_components: int
) -> csr_array:
    """Return every movement as far as the room, below and above, allows; each component by itself."""
    from scipy.sparse import csr_array

    down, up = room
    z, cell = movements.data, movements.indices
    owner = np.repeat(np.arange(movements.shape[0]), np.diff(movements.indptr)) * n_components + component[cell]
    factor = np.full(movements.shape[0] * n_components, np.inf)
    np.minimum.at(factor, owner, np.where(z > 0, up[cell], down[cell]) / np.maximum(np.abs(z), 1e-300))
    factor[np.isinf(factor)] = _STRETCH
    moved = np.clip(z * factor[owner], -down[cell], up[cell])
    return csr_array((moved, cell, movements.indptr), shape=movements.shape)
