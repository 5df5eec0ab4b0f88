"""Random movements that satisfy every relation and bound: noise on an adjusted table (castro2012 section 3)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._types import FloatArray

__all__ = ["add_noise"]


def add_noise(
    basis: csr_array,
    z: FloatArray,
    bounds: tuple[FloatArray, ...],
    most: FloatArray,
    rng: np.random.Generator,
    *,
    whole: bool,
) -> FloatArray:
    """Return the movement, within its bounds, after a random step along every column of a basis of the null space.

    A step moves each cell by at most `most`; several may add up. Only whole steps are taken along a basis of whole
    numbers where only those are allowed.
    """
    columns, z, (low, high) = csc_array(basis), z.copy(), bounds
    for j in rng.permutation(basis.shape[1]).tolist():
        span = slice(columns.indptr[j], columns.indptr[j + 1])
        cells, by = columns.indices[span], columns.data[span]
        if not len(cells):
            continue
        reach = float((most[cells] / np.abs(by)).min())
        below, above = (low[cells] - z[cells]) / by, (high[cells] - z[cells]) / by
        first = max(-reach, float(np.where(by > 0, below, above).max()))
        last = min(reach, float(np.where(by > 0, above, below).min()))
        if whole:
            first, last = np.ceil(first - 1e-9), np.floor(last + 1e-9)
        if first > last:
            continue
        draw = rng.random()
        step = first + (np.floor(draw * (last - first + 1.0)) if whole else draw * (last - first))
        z[cells] += by * step
    return z
