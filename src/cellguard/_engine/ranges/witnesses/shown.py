"""Movements that were shown possible before: where programs are large, try these before solving any.

A search for patterns has a movement for every level that it must meet, and asks for verdicts on one pattern
after another. Every use checks again what a movement shows, relation by relation. So it may come from
anywhere; a wrong one does not help, but does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import RELATION
from cellguard._types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray

__all__ = ["LARGE", "ShownMovements", "scale_movements", "select_valid_movements"]


LARGE = 2000
"""Number of variables below which programs are solved at once: they take no longer than trying known movements."""
_MOST = 20_000_000
"""Number of entries kept; the oldest are dropped first."""
_STRETCH = 4.0
"""Factor by which a movement without a bound is stretched."""


class ShownMovements:
    """A memory of movements of all cells that were shown possible, for later questions about the same table."""

    def __init__(self, blocks: Sequence[csr_array] = ()) -> None:
        self._blocks = list(blocks)

    def remember(self, movements: sparray) -> None:
        """Keep movements of all cells, one row each; drop the oldest when there are too many."""
        if not movements.shape[0]:
            return
        from scipy.sparse import csr_array

        self._blocks.append(csr_array(movements))
        while len(self._blocks) > 1 and sum(block.nnz for block in self._blocks) > _MOST:
            self._blocks.pop(0)

    def select_cells(self, n_cells: int, cells: IntArray) -> csr_array | None:
        """Return how some cells of a table with `n_cells` cells moved, the latest movement first; None if never."""
        kept = [block for block in reversed(self._blocks) if block.shape[1] == n_cells]
        if not kept:
            return None
        from scipy.sparse import csr_array, vstack

        return csr_array(csr_array(vstack(kept))[:, cells])

    def copy(self) -> ShownMovements:
        """Return a copy with the same movements."""
        return ShownMovements(self._blocks)

    def replace_by(self, other: ShownMovements) -> None:
        """Replace the movements by those of another memory."""
        self._blocks = list(other._blocks)


def select_valid_movements(movements: csr_array, relations: csr_array) -> csr_array:
    """Return the movements that satisfy all relations: some may move cells that are published by now."""
    from scipy.sparse import csr_array

    error, size = abs(csr_array(movements @ relations.T)), csr_array(abs(movements) @ abs(relations).T)
    wrong = csr_array(error - RELATION * size)
    wrong.data = np.maximum(wrong.data, 0.0)
    good = (np.asarray(wrong.sum(axis=1)).ravel() == 0) & (np.diff(movements.indptr) > 0)
    return csr_array(movements[np.flatnonzero(good)])


def scale_movements(
    movements: csr_array, slack: tuple[FloatArray, FloatArray], component: IntArray, n_components: int
) -> csr_array:
    """Return every movement stretched as far as the slack below and above allows, component by component."""
    from scipy.sparse import csr_array

    down, up = slack
    z, cell = movements.data, movements.indices
    owner = np.repeat(np.arange(movements.shape[0]), np.diff(movements.indptr)) * n_components + component[cell]
    factor = np.full(movements.shape[0] * n_components, np.inf)
    np.minimum.at(factor, owner, np.where(z > 0, up[cell], down[cell]) / np.maximum(np.abs(z), 1e-300))
    factor[np.isinf(factor)] = _STRETCH
    moved = np.clip(z * factor[owner], -down[cell], up[cell])
    return csr_array((moved, cell, movements.indptr), shape=movements.shape)
