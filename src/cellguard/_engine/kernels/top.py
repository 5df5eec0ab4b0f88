"""Compiled kernel of the margins: the largest contributions of a union are among the largest of its parts."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def merge_top(indptr, parts, ptr, items, value, weight, units):
    """Merge lists of items, each sorted by falling value, into the lists of groups of them.

    A list ends with the item that completes `units` units of weight. Items of equal value come in
    the order of their numbers, so that the same input gives the same lists.

    Parameters
    ----------
    indptr, parts
        Group g joins the lists ``parts[indptr[g]:indptr[g + 1]]``.
    ptr, items
        List l is ``items[ptr[l]:ptr[l + 1]]``, numbers of items.
    value, weight
        Of each item.
    units
        How many units a list must hold, if there are as many.

    Returns
    -------
    tuple
        The groups' lists, again as ``ptr, items``.
    """
    n = len(indptr) - 1
    out_ptr = np.zeros(n + 1, np.int64)
    out = np.empty(max(16, 2 * n), np.int64)
    buffer = np.empty(64, np.int64)
    filled = 0
    for group in range(n):
        length, full = 0, False
        for e in range(indptr[group], indptr[group + 1]):
            for t in range(ptr[parts[e]], ptr[parts[e] + 1]):
                item = items[t]
                at = length
                while at > 0 and (
                    value[item] > value[buffer[at - 1]]
                    or (value[item] == value[buffer[at - 1]] and item < buffer[at - 1])
                ):
                    at -= 1
                if at == length and full:
                    break  # the rest of this list is smaller still
                if length == len(buffer):
                    longer = np.empty(2 * length, np.int64)
                    longer[:length] = buffer
                    buffer = longer
                for j in range(length, at, -1):
                    buffer[j] = buffer[j - 1]
                buffer[at] = item
                length += 1
                held, full = 0.0, False
                for j in range(length):
                    held += weight[buffer[j]]
                    if held >= units:
                        length, full = j + 1, True
                        break
        if filled + length > len(out):
            more = np.empty(2 * (filled + length), np.int64)
            more[:filled] = out[:filled]
            out = more
        out[filled : filled + length] = buffer[:length]
        filled += length
        out_ptr[group + 1] = filled
    return out_ptr, out[:filled].copy()
