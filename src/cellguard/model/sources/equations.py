"""Convert the input of a table of equations: relations, sets of cells and levels, in the usual notations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["convert_relations", "expand_levels", "mask_of_table_cells"]


def mask_of_table_cells(given: ArrayLike, n: int, name: str) -> BoolArray:
    """Return a mask of n cells from indices, or from one truth value per cell."""
    array = np.asarray(given)
    if array.dtype == bool:
        if array.shape != (n,):
            raise InputError(f"{name}: {array.size} truth values given for {n} cells.")
        return array.copy()
    index = array.ravel().astype(np.int64)
    if len(index) and (index.min() < 0 or index.max() >= n):
        raise InputError(f"{name}: a cell index lies outside 0..{n - 1}.")
    out = np.zeros(n, bool)
    out[index] = True
    return out


def expand_levels(given: ArrayLike, sensitive: ArrayLike, n: int, name: str) -> FloatArray:
    """Return the level of each cell from one number, one per sensitive cell in cell order, or one per cell."""
    levels, named = np.asarray(given, dtype=np.float64), np.asarray(sensitive).ravel()
    if levels.ndim and levels.size == n:
        return levels.copy()
    mask = mask_of_table_cells(sensitive, n, "sensitive")
    if levels.ndim and levels.size != mask.sum():
        raise InputError(
            f"{name}: {levels.size} levels given for {int(mask.sum())} sensitive cells.",
            hint="give one number, one per sensitive cell (in the order of the cells), or one per cell.",
        )
    out = np.zeros(n)
    out[named.astype(np.int64) if levels.ndim and named.dtype != bool else mask] = levels
    return out


def convert_relations(relations: Any, n: int) -> csr_array:
    """Return relations between n cells as a matrix; in a list of indices, the first is the total of the others."""
    from scipy.sparse import csr_array, issparse

    if issparse(relations):
        return csr_array(relations, dtype=np.float64)
    rows: Sequence[Sequence[int]] = relations
    if isinstance(relations, np.ndarray) and relations.ndim == 2:
        return csr_array(relations.astype(np.float64))
    lengths = np.array([len(r) for r in rows], dtype=np.int64)
    if (lengths < 2).any():
        raise InputError("a relation needs a total and at least one part.")
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.zeros(0, np.int64), *(np.asarray(r, np.int64) for r in rows)])
    if len(indices) and (indices.min() < 0 or indices.max() >= n):
        raise InputError(f"a relation names a cell outside 0..{n - 1}.")
    data = np.ones(len(indices))
    data[indptr[:-1]] = -1.0
    T = csr_array((data, indices, indptr), shape=(len(rows), n))
    T.sum_duplicates()
    return T
