"""Values of some cells that the user prescribes (salazar2004 section 4: "v_p equal to some given values")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cellguard._tolerances import WHOLE_QUOTIENT
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError
from cellguard.nouns.table import Table

__all__ = ["given_movements", "refuse_given"]


def given_movements(table: Table, given: Mapping[Any, float] | Sequence[tuple[Any, float]]) -> FloatArray:
    """Return the movements to prescribed values, NaN for cells without one."""
    out = np.full(table.n_cells, np.nan)
    for cell, value in given.items() if isinstance(given, Mapping) else given:
        if isinstance(cell, int | np.integer):
            if not 0 <= cell < table.n_cells:
                raise InputError(f"given: there is no cell {cell}; they are 0 to {table.n_cells - 1}.")
            index = int(cell)
        else:
            codes = (cell,) if isinstance(cell, str) else tuple(cell)
            if len(codes) != len(table.dimensions):
                raise InputError(f"given: a cell has {len(table.dimensions)} codes, {len(codes)} are given.")
            index = table.cell(dict(zip(table.dimensions, codes, strict=True)))
        if not np.isfinite(value) or (table.integer and value != np.rint(value)):
            kind = "whole" if table.integer else "finite"
            raise InputError(f"given: {table.label(index)} needs a {kind} number.")
        out[index] = value - table.values[index]
    return out


def refuse_given(table: Table, movement: FloatArray, reach: FloatArray, moved: BoolArray) -> None:
    """Refuse prescribed values that no perturbation may publish: the cell is named, no value shown."""
    values = table.values + movement  # NaN where nothing is prescribed: no comparison holds
    near = WHOLE_QUOTIENT * np.maximum(1.0, np.abs(table.values))
    with np.errstate(invalid="ignore"):
        faults = {
            "the table fixes it at another": table.fixed & (np.abs(movement) > near),
            "it is farther from the truth than its distance": np.abs(movement) > reach + near,
            "it lies outside the known bounds": (values < table.lb - near) | (values > table.ub + near),
            "the cell is sensitive and must not be published as it is": moved & (np.abs(movement) <= near),
        }
    for why, cells in faults.items():
        if cells.any():
            raise InputError(f"given: {table.label(int(np.argmax(cells)))} cannot have this value: {why}.")
