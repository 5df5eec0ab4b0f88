"""Compiled work on the copies of the table in the range form (see :mod:`cellguard._engine.copies`).

``G = M' H^-1 M`` for sparse M (a column per cell) is never formed: row i of G is a combination of the
few rows of ``B = H^-1 M`` that cell i touches, scaled and added to the system at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, fastmath=True)
def normal(indptr, indices, data, diagonal, H):
    """Fill the lower triangle of ``H = M diag M'``."""
    H[:, :] = 0.0
    for j in range(len(indptr) - 1):
        for k in range(indptr[j], indptr[j + 1]):
            i, scaled = indices[k], data[k] * diagonal[j]
            for m in range(indptr[j], k + 1):
                H[i, indices[m]] += scaled * data[m]  # indices ascend within a cell


@njit(cache=True)
def mirror(H):
    """Copy the lower triangle to the upper one."""
    for i in range(H.shape[0]):
        for j in range(i):
            H[j, i] = H[i, j]


@njit(cache=True, fastmath=True)
def spread(indptr, indices, data, inverse, chosen):
    """``B = H^-1 M`` for the chosen columns of M: B[:, j] combines the columns of the inverse that cell j touches."""
    cells, rank = len(chosen), inverse.shape[0]
    B = np.empty((rank, cells))
    block = np.empty((16, rank))  # cells in small blocks: whole rows of the inverse are added, then turned
    for start in range(0, cells, 16):
        stop = min(cells, start + 16)
        for j in range(start, stop):
            row = block[j - start]
            row[:] = 0.0
            for k in range(indptr[chosen[j]], indptr[chosen[j] + 1]):
                c, source = data[k], inverse[indices[k]]
                for p in range(rank):
                    row[p] += c * source[p]
        for p in range(rank):
            for j in range(start, stop):
                B[p, j] = block[j - start, p]
    return B


@njit(cache=True, fastmath=True)
def _tied(S, indptr, indices, data, B, chosen, part):
    row = np.empty(len(chosen))
    for a in range(len(chosen)):
        i = chosen[a]
        row[: a + 1] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            c, b = data[k], B[indices[k]]
            for j in range(a + 1):
                row[j] += c * b[j]
        scale, out = part[i], S[i]
        for j in range(a + 1):
            out[chosen[j]] += scale * part[chosen[j]] * row[j]


@njit(cache=True, fastmath=True)
def _split(S, indptr, indices, data, B, chosen, up, down):
    cells, n = len(up), len(chosen)
    row, above, below = np.empty(n), up[chosen], down[chosen]
    for a in range(n):
        i = chosen[a]
        row[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            c, b = data[k], B[indices[k]]
            for j in range(n):
                row[j] += c * b[j]
        first, second = above[a], below[a]
        top, bottom = S[i], S[cells + i]
        if n == cells:  # no gaps: neighbours are added at once
            for j in range(a + 1):
                top[j] += first * above[j] * row[j]
                bottom[cells + j] += second * below[j] * row[j]
            for j in range(cells):
                bottom[j] += second * above[j] * row[j]
            continue
        if first != 0.0:
            for j in range(a + 1):
                top[chosen[j]] += first * above[j] * row[j]
        if second != 0.0:
            for j in range(a + 1):
                bottom[cells + chosen[j]] += second * below[j] * row[j]
            for j in range(n):
                bottom[chosen[j]] += second * above[j] * row[j]


def accumulate(S: Any, indptr: Any, indices: Any, data: Any, inverse: Any, *parts: Any) -> None:
    """Add ``P' M' H^-1 M P`` to the lower triangle of S, P the parts side by side; cells with part 0 are skipped."""
    chosen = np.flatnonzero(parts[0] if len(parts) == 1 else (parts[0] != 0) | (parts[1] != 0))
    B = spread(indptr, indices, data, inverse, chosen)
    if len(parts) == 1:
        _tied(S, indptr, indices, data, B, chosen, *parts)
    else:
        _split(S, indptr, indices, data, B, chosen, *parts)


@njit(cache=True, fastmath=True)
def project(indptr, indices, data, inverse, reciprocal, b):
    """``D^-1 b - D^-1 M' H^-1 M D^-1 b`` for every request, H^-1 and D^-1 its own."""
    requests, rank = inverse.shape[0], inverse.shape[1]
    cells = len(indptr) - 1
    out = np.empty_like(b)
    right, y = np.empty(rank), np.empty(rank)
    for k in range(requests):
        right[:] = 0.0
        for j in range(cells):
            scaled = b[k, j] * reciprocal[k, j]
            for m in range(indptr[j], indptr[j + 1]):
                right[indices[m]] += data[m] * scaled
        for p in range(rank):
            total = 0.0
            row = inverse[k, p]
            for q in range(rank):
                total += row[q] * right[q]
            y[p] = total
        for j in range(cells):
            total = b[k, j]
            for m in range(indptr[j], indptr[j + 1]):
                total -= data[m] * y[indices[m]]
            out[k, j] = total * reciprocal[k, j]
    return out
