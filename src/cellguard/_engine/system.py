"""The reduced system: merged variables, how far each can move, and which of them share nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.reduce import Reduction, reduce

__all__ = ["System"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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

    @classmethod
    def of(cls, T: csr_array, free: BoolArray, down: FloatArray, up: FloatArray) -> System:
        """Reduce; a variable that the bounds force to stay is published as well, so reduce again."""
        moving = free
        while True:
            reduction = reduce(T, moving)
            merged = reduction.merged
            v_down, v_up = _variable_room(reduction, down, up)
            implied_down, implied_up = _implied_room(merged.relations, v_down, v_up)
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


def _variable_room(reduction: Reduction, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Room of each variable: the least of its members'."""
    lift = reduction.merged.lift.tocoo()
    v_down, v_up = np.full(lift.shape[1], np.inf), np.full(lift.shape[1], np.inf)
    size, forward = np.abs(lift.data), lift.data > 0
    np.minimum.at(v_down, lift.col, np.where(forward, down[lift.row], up[lift.row]) / size)
    np.minimum.at(v_up, lift.col, np.where(forward, up[lift.row], down[lift.row]) / size)
    return v_down, v_up


def _implied_room(A: csr_array, down: FloatArray, up: FloatArray, passes: int = 3) -> tuple[FloatArray, FloatArray]:
    """Room that each relation leaves a variable when the others move as far as they can: no solver needed."""
    coo = A.tocoo()
    row, col, size, positive = coo.row, coo.col, np.abs(coo.data), coo.data > 0
    m = A.shape[0]
    for _ in range(passes):
        # how far the term of each entry can rise, and fall
        rise = size * np.where(positive, up[col], down[col])
        fall = size * np.where(positive, down[col], up[col])
        limits = []
        for term in (fall, rise):  # a term rises no further than all others together fall
            infinite = np.isinf(term)
            finite = np.where(infinite, 0.0, term)
            total = np.bincount(row, finite, minlength=m)[row]
            n_infinite = np.bincount(row, infinite, minlength=m)[row]
            rest = (total - finite) * (1 + 1e-14) + 1e-15 * total
            rest[total - finite <= 0] = 0.0
            limits.append(np.where(n_infinite - infinite > 0, np.inf, rest) / size)
        new_down, new_up = down.copy(), up.copy()
        np.minimum.at(new_up, col, np.where(positive, limits[0], limits[1]))
        np.minimum.at(new_down, col, np.where(positive, limits[1], limits[0]))
        if (new_down == down).all() and (new_up == up).all():
            break
        down, up = new_down, new_up
    return down, up
