"""Norms and weights: how far an adjusted table is from the true one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.distance import Distance
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.methods.adjust import METHOD
from cellguard.model.table import Table
from cellguard.model.weights import compute_weights

__all__ = ["build_distance", "find_totals"]


def build_distance(
    table: Table, norm: str, weights: Any, omega: float = 0.99, squares: Any = None, square_weights: Any = None
) -> Distance:
    """Return the distance that the options of the verb describe: castro2004 (4), (5), (6) or (10)."""
    METHOD.require_choices(UnknownCodeError, norm=norm)
    w, n = _read_weights(table, weights, "weights"), table.n_cells
    if norm == "l1":
        return Distance.of(n, absolute=w)
    if norm == "l2":
        return Distance.of(n, square=w)
    if norm == "linf":
        return Distance.of(n, largest=w, group=np.where(table.sensitive, 0, 1))
    if not 0.0 <= omega <= 1.0:
        raise InputError(f"omega {omega!r}: a share between 0 and 1 is needed.")
    w2 = w if square_weights is None else _read_weights(table, square_weights, "square_weights")
    if squares is not None:
        w2 = np.where(_select_square_cells(table, squares), w2, 0.0)
    return Distance.of(n, absolute=omega * w, square=(1.0 - omega) * w2)


def _read_weights(table: Table, given: str | ArrayLike, name: str) -> FloatArray:
    if isinstance(given, str):
        return table.weights if given == "table" else compute_weights(given, table.values)
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


def find_totals(table: Table) -> BoolArray:
    """Return the cells that are the total of a relation."""
    total = np.zeros(table.n_cells, bool)
    total[table.relations.indices[table.relations.data < 0]] = True
    return total


def _select_square_cells(table: Table, squares: str | ArrayLike) -> BoolArray:
    """Return the cells of the subset S of castro2004 (10): by its name, indices or truth values."""
    n = table.n_cells
    if isinstance(squares, str):
        METHOD.require_choices(UnknownCodeError, squares=squares)
        total = find_totals(table)
        return {"all": np.ones(n, bool), "inner": ~total, "margins": total, "sensitive": table.sensitive}[squares]
    index = np.asarray(squares)
    if (index.dtype == bool and index.shape != (n,)) or (
        index.dtype != bool and len(index) and (index.min() < 0 or index.max() >= n)
    ):
        raise InputError(f"squares: cells outside 0..{n - 1}, or not one truth value for each of the {n} cells.")
    out = np.zeros(n, bool)
    out[index if index.dtype == bool else index.astype(np.int64)] = True
    return out
