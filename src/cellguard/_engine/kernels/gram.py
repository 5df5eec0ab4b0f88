"""Compiled builds of the small dense matrices of the interior point."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def gram(indptr, indices, data, theta, out):
    """Lower triangle of ``N' diag(theta) N``, column-major, for rows of N with sorted columns."""
    out[:] = 0.0
    for i in range(len(indptr) - 1):
        t = theta[i]
        begin, end = indptr[i], indptr[i + 1]
        for p in range(begin, end):
            f = t * data[p]
            column = indices[p]
            for k in range(p, end):
                out[indices[k], column] += f * data[k]
