"""Find one value for every cell that tables share, and values that add up although they were rounded.

Tables of one publication are often rounded one by one: a shared cell then has values that differ a little, and
totals are not quite the sums of their parts. Within a stated tolerance, the values are moved to the nearest
ones that add up (least squares of the relative changes, which preserves zeros and signs). Larger
differences are refused, with both places named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import SAME_VALUE
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import CellguardError, InputError
from cellguard.model.checks import compute_residuals_and_noise

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.table import Table

__all__ = ["reconcile_additively", "reconcile_shared_values"]

_TWO_VALUES = "a cell that tables share must have one value; make both tables from the same data."

Place = Callable[[int, int], str]
"""Function that names the place of a cell for messages, from the number of its table and the cell's number in it."""


def reconcile_shared_values(
    tables: Sequence[Table],
    place: Sequence[IntArray],
    n: int,
    label: Callable[[int], str],
    where: Place,
    tolerance: float,
) -> tuple[FloatArray, list[CellguardError]]:
    """Return the value of every distinct cell, and an error for each pair of tables that disagree about a cell."""
    values, seen_in = np.full(n, np.nan), np.full(n, -1, np.int64)
    total, tables_of = np.zeros(n), np.zeros(n)
    wrong: list[CellguardError] = []
    for k, (t, p) in enumerate(zip(tables, place, strict=True)):
        known = values[p]
        clash = np.abs(known - t.values) > max(tolerance, SAME_VALUE) * np.maximum(1.0, np.abs(known))
        for other in np.unique(seen_in[p[clash]]).tolist():
            both = np.flatnonzero(clash & (seen_in[p] == other))
            own, cell = int(both[0]), int(p[both[0]])
            there = int(np.flatnonzero(place[other] == cell)[0])
            more = f", and so have {len(both) - 1} others" if len(both) > 1 else ""
            text = f"{label(cell)} has different values in {where(other, there)} and {where(k, own)}{more}."
            wrong.append(InputError(text, hint=_TWO_VALUES))
        seen_in[p] = np.where(np.isnan(known), k, seen_in[p])
        values[p] = np.where(np.isnan(known), t.values, known)
        total[p] += t.values
        tables_of[p] += 1
    # the mean is nearest to all of them; where they agree, the first is taken unchanged
    mean = total / np.maximum(tables_of, 1.0)
    return np.where(np.abs(mean - values) > SAME_VALUE * np.abs(values), mean, values), wrong


def reconcile_additively(
    values: FloatArray, T: csr_array, rhs: FloatArray, tolerance: float, still: BoolArray | None = None
) -> FloatArray:
    """Return the nearest values that add up; unchanged if they already do, or if they differ by more than rounding.

    Cells in `still` are not moved.

    >>> from scipy.sparse import csr_array
    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> reconcile_additively(np.array([10.0, 4.0, 7.0]), T, np.zeros(1), 0.1).round(2)
    array([10.61,  3.9 ,  6.7 ])
    >>> reconcile_additively(np.array([10.0, 4.0, 7.0]), T, np.zeros(1), 0.01)
    array([10.,  4.,  7.])
    """
    residual, allowed = compute_residuals_and_noise(T, rhs, values)
    if (np.abs(residual) <= allowed).all():
        return values
    moved = _minimize_changes(values, T, rhs, np.abs(values) if still is None else np.where(still, 0.0, np.abs(values)))
    residual, allowed = compute_residuals_and_noise(T, rhs, moved)
    far = np.abs(moved - values) > 2 * tolerance * np.maximum(1.0, np.abs(values))
    # if that is too far, building a table from the values reports the relation that does not hold
    return values if far.any() or (np.abs(residual) > allowed).any() else moved


def _minimize_changes(values: FloatArray, T: csr_array, rhs: FloatArray, size: FloatArray) -> FloatArray:
    """Return the values with the least changes, in proportion to the given sizes, for which the relations hold."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    scaled = T @ diags_array(size)
    rows = np.sqrt(np.asarray(scaled.power(2).sum(axis=1)).ravel())
    scaled = diags_array(1.0 / np.where(rows > 0, rows, 1.0)) @ scaled
    # redundant relations make the system singular: add a small multiple of the identity, and iterate a few steps
    normal = (scaled @ scaled.T + diags_array(np.full(T.shape[0], 1e-10))).tocsc()
    factor = splu(normal)
    moved = values.copy()
    for _ in range(20):
        residual, allowed = compute_residuals_and_noise(T, rhs, moved)
        if (np.abs(residual) <= 1e-3 * allowed).all():
            break
        moved = moved - size * (scaled.T @ factor.solve(residual / np.where(rows > 0, rows, 1.0)))
    return moved
