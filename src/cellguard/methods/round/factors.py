"""The product structure of a table, found from its relations alone.

In a table over several dimensions every relation runs along one of them. Two relations that share a
cell run along different dimensions if they span a square: next to the cell, each finds a parallel of
the other. Relations that share a cell without a square run along the same dimension, and so do
parallel ones (the classic factorisation of Cartesian products, on relations instead of edges).
Whatever this finds is checked exactly by :mod:`cellguard.methods.round.blocks` before it is used.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._types import IntArray

__all__ = ["relation_classes"]


def relation_classes(relations: csr_array) -> IntArray:
    """Return for every relation the number of the dimension along which it runs, from 0.

    >>> inner = np.arange(9).reshape(3, 3)  # a two-way table, the last row and column are totals
    >>> T = np.zeros((6, 9))
    >>> for row, line in enumerate([*inner, *inner.T]):
    ...     T[row, line] = 1, 1, -1
    >>> relation_classes(csr_array(T)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from cellguard._core.factors import classes

    T = csr_array(relations)
    C = csc_array(T)
    root = classes(
        T.indptr.astype(np.int64),
        T.indices.astype(np.int64),
        T.data,
        C.indptr.astype(np.int64),
        C.indices.astype(np.int64),
    )
    return np.unique(root, return_inverse=True)[1].astype(np.int64)
