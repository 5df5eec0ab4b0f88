"""Further public knowledge: sums of cells, each cell with a coefficient, that lie between two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import FloatArray
from cellguard.exceptions import FormatError, UnknownCodeError, raise_error_of_missing
from cellguard.published.read import PublishedCells

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["FurtherSums", "read_further_sums"]

_COLUMNS = ("sum", "coefficient", "lower", "upper")


@dataclass(frozen=True, kw_only=True, eq=False)
class FurtherSums:
    """Sums of cells with their least and greatest values."""

    names: Sequence[str]
    A: csr_array
    lower: FloatArray
    upper: FloatArray


def read_further_sums(path: str | Path, published: PublishedCells) -> FurtherSums:
    """Read sums of cells from a file with a row for each cell of a sum.

    Column ``sum`` names the sum, a column for each dimension names the cell, and ``coefficient``, ``lower`` and
    ``upper`` are numbers; the ends are given in any of the sum's rows. Cells of the table that are not listed there
    are refused.
    """
    from scipy.sparse import csr_array

    from cellguard._engine.space.cell_grid import compute_grid_keys, find_grid_places
    from cellguard._io.frames import convert_to_numbers, encode_frame_column, read_frame

    columns = read_frame(path)
    hierarchies = published.hierarchies
    raise_error_of_missing("column", [*_COLUMNS, *hierarchies], columns, place=f"{path}: ")
    names, which = encode_frame_column(columns["sum"])
    numbers = {name: convert_to_numbers(columns[name], name) for name in _COLUMNS[1:]}
    wrong = np.flatnonzero((which < 0) | np.isnan(numbers["coefficient"]))
    if len(wrong):
        raise FormatError.at(path, int(wrong[0]) + 2, "the name of the sum and a coefficient are needed.")
    rows = np.column_stack([_find_codes(path, name, h, columns[name]) for name, h in hierarchies.items()])
    sizes = [len(h) for h in hierarchies.values()]
    keys = compute_grid_keys(published.cells, sizes)
    place = find_grid_places(keys, compute_grid_keys(rows.astype(np.int32), sizes), sizes)
    if (place < 0).any():
        line = int(np.argmax(place < 0)) + 2
        raise FormatError.at(path, line, "the published table has no such cell.", hint="list it there, empty.")
    lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    np.fmax.at(lower, which, numbers["lower"])
    np.fmin.at(upper, which, numbers["upper"])
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        line = int(np.argmax(which == crossed[0])) + 2
        raise FormatError.at(path, line, f"sum {names[crossed[0]]!r}: the lower end lies above the upper end.")
    A = csr_array((numbers["coefficient"], (which, place)), shape=(len(names), len(published.cells)))
    return FurtherSums(names=names, A=A, lower=lower, upper=upper)


def _find_codes(path: str | Path, name: str, hierarchy: Any, column: Any) -> Any:
    from cellguard._io.frames import encode_frame_column

    seen, index = encode_frame_column(column)
    try:
        known = hierarchy.index(seen)
    except UnknownCodeError as error:
        unknown = next(i for i, code in enumerate(seen) if code not in set(hierarchy.codes))
        line = int(np.argmax(index == unknown)) + 2
        raise FormatError.at(path, line, f"column {name!r}: {error.message}", hint=error.hint) from None
    if (index < 0).any():
        raise FormatError.at(path, int(np.argmin(index)) + 2, f"column {name!r} has no code.")
    return known[index]
