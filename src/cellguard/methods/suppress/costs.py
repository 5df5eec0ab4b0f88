"""What withholding a cell costs: by its value, its contributors, or as given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError
from cellguard.model.table import Table

__all__ = ["PREFERRED_SHARE", "compute_costs"]

PREFERRED_SHARE = 1e-3
"""Share of its cost that a cell preferred as secondary keeps."""


def compute_costs(table: Table, kind: str | ArrayLike | None, power: float, prefer: BoolArray) -> FloatArray:
    """Return the cost of each cell.

    Parameters
    ----------
    table
        The table.
    kind
        ``"table"`` (or None) for its weights; ``"value"``, ``"unit"``, ``"log"``, ``"sqrt"``, ``"inverse"`` by the
        value; ``"frequency"`` for the number of contributors; ``"power"`` for the value to the power
        lambda (tau-ARGUS's Box-Cox: 1 is the value, 0 the logarithm); or one number per cell.
    power
        The lambda of ``"power"``.
    prefer
        Cells preferred as secondary suppressions: they cost next to nothing.

    Examples
    --------
    >>> t = Table.from_equations([4, 9, 13], [[2, 0, 1]])
    >>> compute_costs(t, "power", 0.5, np.zeros(3, bool))
    array([2.        , 3.        , 3.60555128])
    """
    return np.where(prefer, PREFERRED_SHARE, 1.0) * _compute_costs_by_kind(table, kind, power)


def _compute_costs_by_kind(table: Table, kind: str | ArrayLike | None, power: float) -> FloatArray:
    if kind is None:
        return table.weights
    if not isinstance(kind, str):
        return _read_costs(table, kind)
    if kind == "frequency":
        if table.counts is None or np.isinf(table.counts).any():
            raise InputError(
                "weights 'frequency': the table does not say how many contributors its cells have.",
                hint="give the counts, or make the table from microdata.",
            )
        return np.asarray(table.counts, np.float64)
    if kind == "power":
        if not (np.isfinite(power) and power >= 0):
            raise InputError(f"power {power!r}: a number of at least 0 is needed.")
        size = np.abs(table.values)
        return np.log1p(size) if power == 0 else size**power
    return table.with_weights(kind).weights


def _read_costs(table: Table, given: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(given, np.float64)
        array = np.broadcast_to(array, table.n_cells)
    except ValueError:
        raise InputError(
            "weights: one number per cell is needed.", hint=f"the table has {table.n_cells} cells."
        ) from None
    return array
