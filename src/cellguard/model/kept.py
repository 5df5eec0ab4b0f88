"""Totals and margins that an office keeps: published unchanged, or rounded to the nearest multiple.

The release states that they were kept, so an attacker who reads it knows these cells more precisely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError, UnknownCodeError, suggest_names

if TYPE_CHECKING:
    from cellguard._types import BoolArray, FloatArray
    from cellguard.model.table import Table

__all__ = ["Keep", "add_kept_knowledge", "find_kept_cells", "normalize_kept_entries"]

Keep = int | str | Sequence[str] | Mapping[str, str]
"""A cell's index, its codes, ``"total"``, a dimension, or several dimensions (their margin)."""


def find_kept_cells(table: Table, keep: Iterable[Keep]) -> BoolArray:
    """Return the cells to keep; leave out the sensitive cells of a margin, refuse a sensitive cell named singly.

    >>> import numpy as np
    >>> from cellguard.model.table import Table
    >>> t = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]], sensitive=[1])
    >>> [t.label(i) for i in np.flatnonzero(find_kept_cells(t, ["total", ["region"]]))]
    ['(region=Total, sex=Total)', '(region=N, sex=Total)', '(region=S, sex=Total)']
    """
    out = np.zeros(table.n_cells, bool)
    for entry in normalize_kept_entries(keep):
        single, cells = _read_kept_entry(table, entry)
        if single and table.sensitive[cells].any():
            raise InputError(
                f"keep: {table.label(int(np.argmax(cells)))} is sensitive and cannot be published unchanged.",
                hint="take it off the list.",
            )
        out |= cells
    return out & ~table.sensitive


def _read_kept_entry(table: Table, entry: Any) -> tuple[bool, BoolArray]:
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
            raise UnknownCodeError(f"keep: there is no dimension {name!r}.", hint=suggest_names(str(name), known))
    inside = np.isin(table.dimensions, names)
    out |= (table.coordinates[:, ~inside] == 0).all(axis=1)
    return False, out


def normalize_kept_entries(keep: Iterable[Keep]) -> list[Any]:
    """Return the entries to keep in the plain form that a release records; a single entry becomes a list of one."""
    entries = [keep] if isinstance(keep, str | Mapping) or not isinstance(keep, Iterable) else keep
    return [dict(e) if isinstance(e, Mapping) else e if isinstance(e, str | int) else list(e) for e in entries]


def add_kept_knowledge(table: Table, base: FloatArray, kept: BoolArray) -> Table:
    """Return the table in which every attacker knows that some cells lie at the nearest multiple of their base.

    A value halfway between two multiples goes up. Values lie on the grid of their last decimal, if they have one.

    >>> import numpy as np
    >>> from cellguard.model.table import Table
    >>> t = Table.from_leaves({"sex": ["f", "m"]}, [13, 9], integer=True)
    >>> known = add_kept_knowledge(t, np.full(3, 4.0), t.values == 22)
    >>> known.lb.tolist(), known.ub.tolist()
    ([22.0, 0.0, 0.0], [25.0, inf, inf])
    """
    from cellguard._engine.numbers.multiples import compute_rounding_interval
    from cellguard.model.units import get_unit

    if not kept.any():
        return table
    near, unit = np.floor(table.values / base + 0.5) * base, get_unit(table)
    above, below = compute_rounding_interval(near, base / 2, 1, unit)
    low = np.where(above - unit >= near - base / 2 - unit / 4, above - unit, above)  # the lower half may be possible
    return table.with_(
        lb=np.where(kept, np.minimum(np.maximum(table.given_lb, low), table.values), table.given_lb),
        ub=np.where(kept, np.maximum(np.minimum(table.ub, below), table.values), table.ub),
    )
