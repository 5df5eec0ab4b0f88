"""Numbered items: connected groups, and positions among chosen items."""

from __future__ import annotations

import numpy as np

from cellguard._types import IntArray

__all__ = ["find_groups", "place_in_group"]


def place_in_group(chosen: IntArray, n: int) -> IntArray:
    """Return the position of each of n items among the chosen; -1 for the others.

    >>> place_in_group(np.array([3, 1]), 4).tolist()
    [-1, 1, -1, 0]
    """
    place = np.full(n, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return place


def find_groups(one: IntArray, other: IntArray, n: int) -> IntArray:
    """Return the group of each of n items that pairs connect, numbered by their first members.

    >>> find_groups(np.array([0, 3]), np.array([2, 4]), 5).tolist()
    [0, 1, 0, 2, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(one), np.bool_), (one, other)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)
