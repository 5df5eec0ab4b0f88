"""Sparse Cholesky: the pattern is analysed once, and factored whenever its numbers change."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._core import cholesky as core
from cellguard._core.ordering import minimum_degree
from cellguard._types import FloatArray, IntArray

__all__ = ["SparseCholesky"]

_WIDEST = 96
"""Columns of a supernode: wide enough for fast products, narrow enough for the cache."""

_TINY = 1e-14
"""Share of its diagonal entry below which a pivot is raised."""

_DISSECT = 2e8
"""Operations from which nested dissection (some 30 ms) may pay: ninenew then needs a third of them."""


class SparseCholesky:
    """Factors of symmetric positive definite matrices of one pattern, given by its lower triangle.

    >>> S = csr_array(np.array([[4.0, 0, 0], [2, 5, 0], [0, 1, 3]]))
    >>> factors = SparseCholesky(S)
    >>> factors.factor(S.data)
    0
    >>> factors.solve(np.array([6.0, 8, 4])).round(12).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, lower: csr_array) -> None:
        n = lower.shape[0]
        column = lower.indices.astype(np.int64)
        row = np.repeat(np.arange(n), np.diff(lower.indptr))
        off = row != column
        i, j = np.concatenate([row[off], column[off]]), np.concatenate([column[off], row[off]])
        neighbours = _compute_row_pointers(i, n), j[np.argsort(i, kind="stable")]
        best = _Analysis(minimum_degree(*neighbours), row, column)
        if best.flops > _DISSECT:
            best = min(
                best, *(_Analysis(o, row, column) for o in _order_by_dissection(*neighbours)), key=lambda a: a.flops
            )
        self.order = best.order
        indptr, indices, self._from = best.rows
        self._factor = core.Factor(indptr, indices, best.tree, best.counts, _WIDEST)
        self.flops, self.n_values = self._factor.flops, self._factor.n_values

    def factor(self, data: FloatArray) -> int:
        """Factor the matrix with these entries, in the order of the pattern.

        Returns the number of tiny pivots that were raised, which leaves those unknowns at 0.
        """
        return self._factor.factorize(data[self._from], _TINY)

    def solve(self, b: FloatArray) -> FloatArray:
        """Solve for one right-hand side."""
        x = b[self.order]
        self._factor.solve(x)
        out = np.empty_like(x)
        out[self.order] = x
        return out


class _Analysis:
    """Elimination tree of a pattern in a given order, in postorder, and the size of each column."""

    def __init__(self, order: IntArray, row: IntArray, column: IntArray) -> None:
        tree = core.elimination_tree(*_drop_diagonal(*_permute_triangle(order, row, column)[:2]))
        self.order = order[core.postorder(tree)]
        self.rows = _permute_triangle(self.order, row, column)
        pattern = _drop_diagonal(*self.rows[:2])
        self.tree = core.elimination_tree(*pattern)
        self.counts = core.column_counts(*pattern, self.tree)
        self.flops = float(((self.counts + 1.0) ** 2).sum())


def _order_by_dissection(indptr: IntArray, indices: IntArray) -> list[IntArray]:
    """Return the order by nested dissection (METIS), where its library is installed."""
    try:
        import pymetis
    except ImportError:
        return []
    order, _ = pymetis.nested_dissection(pymetis.CSRAdjacency(indptr, indices))
    return [np.asarray(order, np.int64)]


def _compute_row_pointers(row: IntArray, n: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])


def _permute_triangle(order: IntArray, row: IntArray, column: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows of the lower triangle in a new order, diagonal last, and the original place of each entry."""
    n = len(order)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    i, j = np.maximum(rank[row], rank[column]), np.minimum(rank[row], rank[column])
    place = np.lexsort((j, i))
    return _compute_row_pointers(i, n), j[place], place


def _drop_diagonal(indptr: IntArray, indices: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pattern without the diagonal, which ends each row."""
    keep = np.ones(len(indices), bool)
    keep[indptr[1:] - 1] = False
    return indptr - np.arange(len(indptr)), indices[keep]
