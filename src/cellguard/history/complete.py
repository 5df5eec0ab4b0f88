"""Values for cells of earlier releases that were not recorded: any values that agree with everything known will do.

Ranges do not depend on the table from which they are computed, as long as it is possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import RELATION
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["complete_values"]

TIME_LIMIT_S = 60.0
"""Seconds for finding values."""


def complete_values(
    T: csr_array, rhs: FloatArray, bounds: tuple[FloatArray, FloatArray], values: FloatArray, counted: BoolArray
) -> FloatArray:
    """Return values in which those that are NaN are replaced, so that relations and bounds hold.

    >>> from scipy.sparse import csr_array
    >>> T = csr_array(np.array([[1.0, 1.0, -1.0]]))
    >>> nothing, anything = np.zeros(3), np.full(3, np.inf)
    >>> complete_values(T, np.zeros(1), (nothing, anything), np.array([2.0, np.nan, 5.0]), np.ones(3, bool))
    array([2., 3., 5.])
    """
    values = _solve_single(T, rhs, values)
    open_ = np.isnan(values)
    if open_.any():
        values = values.copy()
        values[open_] = _solve_rest(T, rhs, bounds, values, counted)
    lo, hi = bounds
    size = abs(T).T @ (abs(T) @ np.abs(values))  # terms of the relations of each cell: their sums are rounded
    slack = RELATION * np.maximum(1.0, size)
    if ((values < lo - slack) | (values > hi + slack)).any():
        raise _build_contradiction_error()
    return np.clip(values, lo, hi)


def _solve_single(T: csr_array, rhs: FloatArray, values: FloatArray) -> FloatArray:
    """Return values in which cells are computed that are the only unknown of a relation."""
    values = values.copy()
    row, cell = T.tocoo().coords
    data = T.tocoo().data
    while True:
        unknown = np.isnan(values[cell])
        count = np.bincount(row[unknown], minlength=T.shape[0])
        last = unknown & (count[row] == 1)
        if not last.any():
            return values
        rest = rhs - T @ np.nan_to_num(values)
        values[cell[last]] = rest[row[last]] / data[last]


def _solve_rest(
    T: csr_array, rhs: FloatArray, bounds: tuple[FloatArray, FloatArray], values: FloatArray, counted: BoolArray
) -> FloatArray:
    """Return values of the cells that no relation determines alone."""
    from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram
    from cellguard._engine.solvers.mip import Until, solve_mixed

    open_ = np.flatnonzero(np.isnan(values))
    columns = T[:, open_]
    rows = np.flatnonzero(np.diff(columns.indptr) > 0)
    sides = (rhs - T @ np.nan_to_num(values))[rows]
    model = LinearModel(
        columns[rows], sides, sides, bounds[0][open_], bounds[1][open_], np.zeros(len(open_)), counted[open_]
    )
    if counted[open_].any():
        found = solve_mixed(model, Until(time_limit_s=TIME_LIMIT_S))
        if not found.found:
            raise _build_contradiction_error()
        return found.x
    solved = LinearProgram(model, ONCE).solve(time_limit_s=TIME_LIMIT_S)
    if not solved.optimal:
        raise _build_contradiction_error()
    return solved.x


def _build_contradiction_error() -> InputError:
    return InputError(
        "what earlier releases and derived figures say contradicts the values of the table.",
        hint="check periods, links and the stated size of revisions.",
    )
