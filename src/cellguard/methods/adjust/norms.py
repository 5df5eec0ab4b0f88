"""Norms and weights: how far an adjusted table is from the true one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.distance import Distance
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.table import Table
from cellguard.nouns.weights import weights_by_value

__all__ = ["NORMS", "distance_of"]

NORMS = ("l1", "l2", "linf", "l12")
"""castro2004 (4), (5), (6) and (10)."""
SUBSETS = ("all", "inner", "margins", "sensitive")
"""Cells whose squares may count in l12: a margin is what others add up to."""


def distance_of(
    table: Table, norm: str, weights: Any, omega: float = 0.99, squares: Any = None, square_weights: Any = None
) -> Distance:
    """Return the distance that the options of :func:`cellguard.methods.adjust` describe."""
    if norm not in NORMS:
        raise UnknownCodeError(
            f"norm {norm!r} is not known; known are {', '.join(NORMS)}.", hint=did_you_mean(str(norm), NORMS)
        )
    w, n = _weights(table, weights, "weights"), table.n_cells
    if norm == "l1":
        return Distance.of(n, absolute=w)
    if norm == "l2":
        return Distance.of(n, square=w)
    if norm == "linf":
        return Distance.of(n, largest=w, group=np.where(table.sensitive, 0, 1))
    if not 0.0 <= omega <= 1.0:
        raise InputError(f"omega {omega!r}: a share between 0 and 1 is needed.")
    w2 = w if square_weights is None else _weights(table, square_weights, "square_weights")
    if squares is not None:
        w2 = np.where(_subset(table, squares) if isinstance(squares, str) else _chosen(squares, n), w2, 0.0)
    return Distance.of(n, absolute=omega * w, square=(1.0 - omega) * w2)


def _weights(table: Table, given: str | ArrayLike, name: str) -> FloatArray:
    if isinstance(given, str):
        return table.weights if given == "table" else weights_by_value(given, table.values)
    array = np.asarray(given, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(table.n_cells, float(array))
    if array.shape != (table.n_cells,):
        raise InputError(f"{name}: {array.size} numbers given for {table.n_cells} cells.")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        which = f"{table.label(int(np.argmax(bad)))} (and {int(bad.sum()) - 1} more)"
        raise InputError(
            f"{name}: {which}: no finite number of at least 0.",
            hint="a weight is the loss per unit of change; 0 means that the cell may move freely.",
        )
    return array


def _subset(table: Table, name: str) -> BoolArray:
    """Return the cells of a subset S of castro2004 (10) that has a name."""
    if name not in SUBSETS:
        raise UnknownCodeError(
            f"squares {name!r} are not known; known are {', '.join(SUBSETS)}, or cells.",
            hint=did_you_mean(name, SUBSETS),
        )
    if name == "sensitive":
        return table.sensitive
    total = np.zeros(table.n_cells, bool)
    total[table.relations.indices[table.relations.data < 0]] = True
    return np.ones(table.n_cells, bool) if name == "all" else total if name == "margins" else ~total


def _chosen(cells: ArrayLike, n: int) -> BoolArray:
    index = np.asarray(cells)
    if (index.dtype == bool and index.shape != (n,)) or (
        index.dtype != bool and len(index) and (index.min() < 0 or index.max() >= n)
    ):
        raise InputError(f"squares: cells outside 0..{n - 1}, or not one truth value for each of the {n} cells.")
    out = np.zeros(n, bool)
    out[index if index.dtype == bool else index.astype(np.int64)] = True
    return out
