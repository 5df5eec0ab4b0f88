"""What hangs together: things that pairs connect, one by one or through others."""

from __future__ import annotations

import numpy as np

from cellguard._types import IntArray

__all__ = ["groups"]


def groups(one: IntArray, other: IntArray, n: int) -> IntArray:
    """Return the number of the group of each of n things, numbered by their first members.

    >>> groups(np.array([0, 3]), np.array([2, 4]), 5).tolist()
    [0, 1, 0, 2, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(one), np.bool_), (one, other)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)
