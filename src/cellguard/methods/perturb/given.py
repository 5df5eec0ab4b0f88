"""Values of some cells that the user prescribes (salazar2004 section 4: "v_p equal to some given values")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.nouns.table import BoolArray, FloatArray, Table

__all__ = ["given_movements", "read_given", "refuse_given"]

_NEAR = 1e-9


def read_given(entries: list[str] | None) -> dict[int | tuple[str, ...], float]:
    """Return prescribed values as typed: ``6=25`` by index, ``N,f=25`` by codes in the order of the dimensions.

    >>> read_given(["6=25", "N,f=10"])
    {6: 25.0, ('N', 'f'): 10.0}
    """
    out: dict[int | tuple[str, ...], float] = {}
    for entry in entries or []:
        cell, sign, value = entry.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not sign or not cell or math.isnan(number):
            raise InputError(f"given {entry}: a cell and its value are needed.", hint="6=25, or N,f=25 by codes.")
        out[int(cell) if cell.isdigit() else tuple(cell.split(","))] = number
    return out


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
    near = _NEAR * np.maximum(1.0, np.abs(table.values))
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
