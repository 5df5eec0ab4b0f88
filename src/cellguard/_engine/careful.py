"""Exact movements by fractions: slow and careful, for components whose cells differ by many orders of magnitude.

Cells with much room are written as combinations of cells with less, so that rounding a small cell
moves a large one by nothing that counts; the whole is then scaled until every bound holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = ["Solved", "careful_movement"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_MOST_WORK = 20_000_000
"""Products of fractions beyond which a component is given up: some minutes."""

Solved = dict[int, dict[int, Fraction]]
"""For each solved cell the coefficients of the others: ``cell + sum c other = 0``."""
_SIGNIFICANT = 14
"""Digits of a small cell that are kept."""


def careful_movement(
    T: csr_array,
    cells: IntArray,
    z: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    point: FloatArray,
    memory: dict[bytes, Solved | None] | None = None,
) -> dict[int, Fraction] | None:
    """Make the movement of one component exact; None if no movement close to it is feasible.

    Parameters
    ----------
    T
        All relations.
    cells
        The component's cells.
    z
        Their movements, from a solver.
    lo, hi, point
        Interval and true value of each of them; decimal numbers, taken as they are printed.
    memory
        Eliminations made before, for movements of the same cells.
    """
    below, above = ([_difference(e, p) for e, p in zip(end.tolist(), point.tolist(), strict=True)] for end in (lo, hi))
    down, up = np.minimum(point - lo, 1e300), np.minimum(hi - point, 1e300)
    # a cell is as small as the nearer of its ends, unless it stands there
    room = np.where((down > 0) & (up > 0), np.minimum(down, up), np.maximum(down, up))
    noise = 1e-12 * np.abs(z).max(initial=0.0)
    at_zero = ((down <= 0) & (z <= noise)) | ((up <= 0) & (z >= -noise))
    rank = np.where(at_zero, 0.0, room)
    order = np.argsort(-rank, kind="stable")  # the largest first: they are the ones to be computed
    memory = {} if memory is None else memory
    key = cells[order].tobytes()
    if key not in memory:
        memory[key] = _eliminate(T[:, cells], order)
    solved = memory[key]
    if solved is None:
        return None
    movement: list[Fraction] = [Fraction(0)] * len(cells)
    for i in range(len(cells)):
        if i not in solved and not at_zero[i]:
            movement[i] = _rounded(float(z[i]), float(room[i]))
    for i, row in solved.items():
        movement[i] = -sum((c * movement[j] for j, c in row.items()), Fraction(0))
    scale = _largest_scale(movement, below, above)
    if scale < 1 - Fraction(1, 10**6):
        return None
    return {int(cell): scale * m for cell, m in zip(cells.tolist(), movement, strict=True) if m}


def _difference(end: float, point: float) -> Fraction | None:
    return Fraction(repr(end)) - Fraction(repr(point)) if isfinite(end) else None


def _rounded(z: float, room: float) -> Fraction:
    """Round to what matters: so many digits of the cell's room, or of the movement where that is small."""
    size = min(room, max(abs(z), 1e-12 * room)) or 1.0
    return Fraction(f"{z:.{max(0, _SIGNIFICANT - floor(log10(size)))}f}")


def _eliminate(T: csr_array, order: IntArray) -> Solved | None:
    """Solve the relations for as many cells as possible, those that come first in the order.

    Of the cells by which others are expressed none is solved itself, and all come later in the order.
    Returns None when it takes too long.
    """
    work = 0
    place = {int(cell): k for k, cell in enumerate(order.tolist())}
    solved: Solved = {}
    users: dict[int, set[int]] = defaultdict(set)  # cell -> solved cells whose rows may hold it
    for r in np.flatnonzero(np.diff(T.indptr)):
        span = slice(T.indptr[r], T.indptr[r + 1])
        row = {int(j): Fraction(repr(float(c))) for j, c in zip(T.indices[span], T.data[span], strict=True) if c}
        for j in [j for j in row if j in solved]:
            _add(row, solved[j], -row.pop(j))
        if not row:
            continue
        pivot = min(row, key=place.__getitem__)
        own = row.pop(pivot)
        row = {j: c / own for j, c in row.items()}
        holders = [i for i in users.pop(pivot, ()) if pivot in solved[i]]
        work += len(row) * (1 + len(holders))
        if work > _MOST_WORK:
            return None
        for i in holders:
            _add(solved[i], row, -solved[i].pop(pivot))
        solved[pivot] = row
        for j in row:
            users[j].update(holders, [pivot])
    return solved


def _add(row: dict[int, Fraction], other: dict[int, Fraction], factor: Fraction) -> None:
    """Add a multiple of another row, in place."""
    for j, c in other.items():
        value = row.get(j, Fraction(0)) + factor * c
        if value:
            row[j] = value
        else:
            row.pop(j, None)


def _largest_scale(
    movement: Sequence[Fraction], below: Sequence[Fraction | None], above: Sequence[Fraction | None]
) -> Fraction:
    """How much of the movement fits into the bounds: at most all of it."""
    scale = Fraction(1)
    for m, low, high in zip(movement, below, above, strict=True):
        end = high if m > 0 else low
        if end is not None and abs(m) > abs(end):
            scale = min(scale, end / m)
    if scale == 1:
        return scale
    return Fraction(floor(scale * 10**12), 10**12)
