"""The reduced system: merged variables, how far each can move, and which of them share nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.implied import implied_room
from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["System", "free_cells"]


FIXED_TOLERANCE = 1e-12
"""A cell whose interval is narrower than this share of its value is published."""


def free_cells(lo: FloatArray, hi: FloatArray, point: FloatArray) -> BoolArray:
    """Return which cells an attacker does not know already: their interval has a width."""
    return np.asarray(hi - lo > FIXED_TOLERANCE * np.maximum(1.0, np.abs(point)))


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """Merged variables with their room, and what the relations leave of it."""

    reduction: Reduction
    """Of the relations, without the cells that the bounds force to stay."""
    free: BoolArray
    """Cells that have room of their own."""
    down: FloatArray
    """How far each variable can move down: the least room of its members."""
    up: FloatArray
    """How far each variable can move up."""
    implied_down: FloatArray
    """What the relations leave of `down` when the other variables move as far as they can."""
    implied_up: FloatArray
    """What the relations leave of `up`."""
    component: IntArray
    """Component of each variable."""
    n_components: int
    """Number of components: sets of variables that share no relation."""

    @cached_property
    def basis(self) -> csr_array:
        """Basis of the null space: variables by parameters."""
        return csr_array(self.reduction.basis[self.reduction.merged.cells])

    @classmethod
    def of(cls, T: csr_array, free: BoolArray, down: FloatArray, up: FloatArray) -> System:
        """Reduce; a variable that the bounds force to stay is published as well, so reduce again."""
        moving = free
        while True:
            reduction = reduce(T, moving)
            merged = reduction.merged
            v_down, v_up = merged.room(down, up)
            implied_down, implied_up = implied_room(merged.relations, v_down, v_up)
            forced = (implied_down == 0) & (implied_up == 0)
            if not forced.any():
                break
            moving = moving & ~np.isin(reduction.alias, merged.cells[forced])
        n_components, component = _components(merged.relations)
        return cls(
            reduction=reduction,
            free=free,
            down=v_down,
            up=v_up,
            implied_down=implied_down,
            implied_up=implied_up,
            component=component,
            n_components=n_components,
        )


def _components(A: csr_array) -> tuple[int, IntArray]:
    """Number the connected components of the graph whose nodes are variables and relations: it stays sparse."""
    from scipy.sparse.csgraph import connected_components

    m, k = A.shape
    coo = A.tocoo()
    graph = csr_array((np.ones(coo.nnz), (coo.col, k + coo.row)), shape=(k + m, k + m))
    _, label = connected_components(graph, directed=False)
    found, component = np.unique(label[:k], return_inverse=True)
    return len(found), component.astype(np.int64)
