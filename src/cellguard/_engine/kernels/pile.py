"""Compiled: many small movements piled up into one, as long as there is room."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["pile_up"]


@njit(cache=True)
def pile_up(indptr, indices, data, columns, amount, down, up):
    """Return a movement that holds as many of the given multiples of basis columns as fit, in their order.

    The basis is given by columns; ``amount[i]`` of ``columns[i]`` is added unless a variable leaves its room.
    """
    moved = np.zeros(len(up))
    for i in range(len(columns)):
        first, last = indptr[columns[i]], indptr[columns[i] + 1]
        fits = True
        for k in range(first, last):
            there = moved[indices[k]] + amount[i] * data[k]
            if there > up[indices[k]] or -there > down[indices[k]]:
                fits = False
                break
        if fits:
            for k in range(first, last):
                moved[indices[k]] += amount[i] * data[k]
    return moved
