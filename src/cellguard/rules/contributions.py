"""Read the largest contributions of cells from columns of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError, raise_error_of_missing
from cellguard.model.checks import refuse_cells
from cellguard.rules.statistics import CellStatistics

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["add_contributions"]


def add_contributions(
    table: Table,
    frame: Any,
    *,
    top: Sequence[str] = (),
    counts: str | None = None,
    shadow: str | None = None,
    known_zeros: bool = True,
) -> Table:
    """Return the table with the contributions that a frame of its cells lists.

    Parameters
    ----------
    table
        A table with dimensions, made from the same frame.
    frame
        One row per cell, with codes in columns named like the dimensions. Cells without a row must be
        empty: a rule cannot judge a cell whose contributions are unknown.
    top
        Columns of the largest contributions, in any order.
    counts
        Column with the number of contributors, if the table does not have it yet.
    shadow
        Column with the total of the contributions, if they are of another variable than the value.
    known_zeros
        Whether every attacker knows which cells have no contributor (:meth:`Table.with_known_zeros`).

    Examples
    --------
    >>> import cellguard as cg
    >>> frame = {"region": ["Total", "N", "S"], "value": [330, 300, 30], "first": [300, 300, 20], "n": [4, 1, 3]}
    >>> t = cg.Table.from_frame(frame, ["region"], counts="n", top=["first"])
    >>> t.apply(cg.Dominance(1, 95)).sensitive_cells
    array([1])
    """
    from cellguard._io.frames import convert_to_numbers, read_frame_columns

    columns = read_frame_columns(frame)
    raise_error_of_missing("column", (*top, *(c for c in (counts, shadow) if c is not None)), columns)
    cell = _find_cells(table, columns)

    def get_column(name: str) -> FloatArray:
        out = np.full(table.n_cells, np.nan)
        out[cell] = convert_to_numbers(columns[name], name)
        return out

    count = table.counts if table.counts is not None else None if counts is None else get_column(counts)
    if count is None:
        raise InputError("the number of contributors is missing.", hint="name its column: counts='freq'.")
    total = np.abs(table.values) if shadow is None else get_column(shadow)
    largest = np.column_stack([get_column(name) for name in top]) if top else np.zeros((table.n_cells, 0))
    empty = (np.nan_to_num(count) == 0) & (table.values == 0)
    count = np.where(empty, 0.0, count)
    refuse_cells(table, np.isnan(count) | (count < 0), "the number of contributors is missing or negative.")
    refuse_cells(table, ~empty & np.isnan(total), "the total of its contributions is missing.")
    # a cell with fewer contributors than columns has blanks after the last of them
    known = np.isfinite(largest).sum(axis=1)
    short = ~empty & (known < np.minimum(count, largest.shape[1]))
    refuse_cells(table, short, "its largest contributions are missing.", "list them for totals too.")
    contributions = -np.sort(-np.abs(np.nan_to_num(largest)), axis=1)
    statistics = CellStatistics(
        value=table.values,
        total=np.where(empty, 0.0, total),
        count=count,
        weight=count,
        top=contributions,
        units=len(top),
        shadow=shadow is not None,
    )
    table = table.with_(statistics=statistics, counts=count)
    return table.with_known_zeros(empty) if known_zeros else table.with_(known_zeros=False)


def _find_cells(table: Table, columns: dict[str, Any]) -> IntArray:
    """Return the cell of each row."""
    from cellguard._io.frames import encode_frame_column

    index = []
    for d, name in enumerate(table.dimensions):
        position = {code: i for i, code in enumerate(table.codes[d])}
        codes, place = encode_frame_column(columns[name])
        index.append(np.array([position[code] for code in codes], dtype=np.int32)[place])
    return table.cells_at(np.column_stack(index))
