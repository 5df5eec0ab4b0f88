"""Name cells of a table: by number, by codes, or by one truth value per cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray
from cellguard.exceptions import InputError
from cellguard.model.sources.equations import mask_of_table_cells

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["find_cell", "mask_cells"]


def find_cell(table: Table, given: Any, name: str = "cell") -> int:
    """Return the number of one cell: given as such, as codes of some dimensions, or as all codes in order.

    >>> from cellguard import Table
    >>> table = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
    >>> [find_cell(table, cell) for cell in (4, {"region": "N", "sex": "f"}, ("N", "f"), "N,f")]
    [4, 4, 4, 4]
    """
    if isinstance(given, int | np.integer) and not isinstance(given, bool | np.bool_):
        if not 0 <= given < table.n_cells:
            raise InputError(f"{name}: a cell index lies outside 0..{table.n_cells - 1}.")
        return int(given)
    if isinstance(given, Mapping):
        return table.cell(given)
    if isinstance(given, str):
        if given.isdigit() and not table.dimensions:
            return find_cell(table, int(given), name)
        given = (given,) if len(table.dimensions) == 1 else [code.strip() for code in given.split(",")]
    if not isinstance(given, Sequence | np.ndarray) or len(given) != len(table.dimensions):
        raise InputError(
            f"{name}: a cell is a number or has one code for each of its {len(table.dimensions)} dimensions.",
            hint='as in 4, {"region": "N"}, ("N", "f") or "N,f".' if table.dimensions else "this table has no codes.",
        )
    return table.cell(dict(zip(table.dimensions, map(str, given), strict=True)))


def mask_cells(table: Table, given: Any, name: str) -> BoolArray:
    """Return which cells are meant: numbers, truth values, or codes; a tuple of codes is one cell.

    >>> from cellguard import Table
    >>> table = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
    >>> [np.flatnonzero(mask_cells(table, some, "cells")).tolist() for some in ([4, 5], ["N,f", "N,m"], ("N", "f"))]
    [[4, 5], [4, 5], [4]]
    """
    if given is None:
        return np.zeros(table.n_cells, np.bool_)
    if isinstance(given, str | Mapping) or (isinstance(given, tuple) and given and isinstance(given[0], str)):
        given = [given]
    if not isinstance(given, np.ndarray):
        given = list(given) if isinstance(given, Iterable) else [given]
    named = [cell for cell in given if isinstance(cell, str | Mapping | tuple | list)] if len(given) else []
    if not named:
        return mask_of_table_cells(np.asarray(given, np.int64) if len(given) == 0 else given, table.n_cells, name)
    out = np.zeros(table.n_cells, np.bool_)
    out[[find_cell(table, cell, name) for cell in given]] = True
    return out
