"""Compiled accumulation of the dense system in the widths (see :mod:`cellguard._engine.widths`).

``G = M' H^-1 M`` for sparse M (a column per cell) is never formed: row i of G is a combination of the
few rows of ``B = H^-1 M`` that cell i touches, scaled and added to the system at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, fastmath=True)
def spread(indptr, indices, data, inverse):
    """``B = H^-1 M`` for M given by cell: B[:, j] combines the columns of the inverse that cell j touches."""
    cells = len(indptr) - 1
    B = np.zeros((inverse.shape[0], cells))
    for p in range(inverse.shape[0]):
        row = inverse[p]
        out = B[p]
        for j in range(cells):
            total = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                total += data[k] * row[indices[k]]
            out[j] = total
    return B


@njit(cache=True, fastmath=True)
def _tied(S, indptr, indices, data, B, part):
    cells = len(part)
    row = np.empty(cells)
    for i in range(cells):
        if part[i] == 0.0:
            continue
        row[: i + 1] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            c, b = data[k], B[indices[k]]
            for j in range(i + 1):
                row[j] += c * b[j]
        scale, out = part[i], S[i]
        for j in range(i + 1):
            out[j] += scale * part[j] * row[j]


@njit(cache=True, fastmath=True)
def _split(S, indptr, indices, data, B, up, down):
    cells = len(up)
    row = np.empty(cells)
    for i in range(cells):
        if up[i] == 0.0 and down[i] == 0.0:
            continue
        row[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            c, b = data[k], B[indices[k]]
            for j in range(cells):
                row[j] += c * b[j]
        first, second = up[i], down[i]
        top, bottom = S[i], S[cells + i]
        for j in range(i + 1):
            top[j] += first * up[j] * row[j]
            bottom[cells + j] += second * down[j] * row[j]
        for j in range(cells):
            bottom[j] += second * up[j] * row[j]


def accumulate(S: Any, indptr: Any, indices: Any, data: Any, B: Any, *parts: Any) -> None:
    """Add ``P' G P`` to the lower triangle of S, P the parts side by side; cells with part 0 are skipped."""
    if len(parts) == 1:
        _tied(S, indptr, indices, data, B, *parts)
    else:
        _split(S, indptr, indices, data, B, *parts)
