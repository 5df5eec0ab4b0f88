"""Totals and margins that an office wants to publish as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cellguard._types import BoolArray
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.table import Table

__all__ = ["Keep", "kept_cells"]

Keep = int | str | Sequence[str] | Mapping[str, str]
"""A cell's index, its codes, ``"total"``, a dimension, or several: the margin of these."""


def kept_cells(table: Table, keep: Iterable[Keep]) -> BoolArray:
    """Return the cells to be kept; sensitive cells of a margin are left out, a sensitive cell by itself is refused.

    >>> t = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]], sensitive=[1])
    >>> [t.label(i) for i in np.flatnonzero(kept_cells(t, ["total", ["region"]]))]
    ['(region=Total, sex=Total)', '(region=N, sex=Total)', '(region=S, sex=Total)']
    """
    if isinstance(keep, str | Mapping) or not isinstance(keep, Iterable):
        keep = [keep]  # one entry is as good as a list of one
    out = np.zeros(table.n_cells, bool)
    for entry in keep:
        single, cells = _cells(table, entry)
        if single and table.sensitive[cells].any():
            raise InputError(
                f"keep: {table.label(int(np.argmax(cells)))} is sensitive and cannot stay as it is.",
                hint="take it off the list.",
            )
        out |= cells
    return out & ~table.sensitive


def _cells(table: Table, entry: Any) -> tuple[bool, BoolArray]:
    """Return whether an entry names one cell, and its cells."""
    out = np.zeros(table.n_cells, bool)
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        if not 0 <= entry < table.n_cells:
            raise InputError(f"keep: there is no cell {entry}; they are 0 to {table.n_cells - 1}.")
        out[entry] = True
        return True, out
    if isinstance(entry, Mapping):
        out[table.cell(entry)] = True
        return True, out
    names = [entry] if isinstance(entry, str) else list(entry)
    if names == ["total"] and "total" not in table.dimensions:
        names = []
    if not table.dimensions:
        raise InputError("keep: this table has no dimensions.", hint="give the indices of the cells.")
    for name in names:
        if name not in table.dimensions:
            known = ["total", *table.dimensions]
            raise UnknownCodeError(f"keep: there is no dimension {name!r}.", hint=did_you_mean(str(name), known))
    inside = np.isin(table.dimensions, names)
    out |= (table.coordinates[:, ~inside] == 0).all(axis=1)
    return False, out
