"""Compiled builds of the matrices that the interior point factors."""

from __future__ import annotations

import numpy as np
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


@njit(cache=True)
def places(indptr, indices, lower_ptr, lower_indices):
    """Where the products of each row of ``N``, pair by pair, go in the lower triangle of ``N' N``."""
    total = 0
    for i in range(len(indptr) - 1):
        k = indptr[i + 1] - indptr[i]
        total += k * (k + 1) // 2
    out = np.empty(total, np.int32)
    at = 0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            column = indices[p]
            for k in range(p, indptr[i + 1]):
                row = indices[k]
                low, high = lower_ptr[row], lower_ptr[row + 1]
                while high - low > 1:
                    middle = (low + high) // 2
                    if lower_indices[middle] <= column:
                        low = middle
                    else:
                        high = middle
                out[at] = low
                at += 1
    return out


@njit(cache=True)
def sparse_gram(indptr, data, theta, place, out):
    """Entries of the lower triangle of ``N' diag(theta) N``, by the places of its products."""
    out[:] = 0.0
    at = 0
    for i in range(len(indptr) - 1):
        t = theta[i]
        for p in range(indptr[i], indptr[i + 1]):
            f = t * data[p]
            for k in range(p, indptr[i + 1]):
                out[place[at]] += f * data[k]
                at += 1
