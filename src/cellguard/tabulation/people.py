"""Number the contributors: one number for each person, the same in all crossings, sums and selections.

A record has a number in our own database. In another database its columns identify it. A holding is identified
by its name. Tables made from the same records share one list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from cellguard._types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["People"]


class People:
    """The contributors of some records, numbered in order of appearance."""

    def __init__(self) -> None:
        self.list = uuid4().hex
        """Identity of the list: numbers of different lists refer to different people. It is never written."""
        self._names: pa.Array | None = None

    def add_names(self, columns: list[pa.ChunkedArray]) -> None:
        """Number new contributors, in the order of their names."""
        import pyarrow as pa
        import pyarrow.compute as pc

        named = [_normalize_names(column) for column in columns]
        chunks = [chunk for column in named for chunk in column.chunks]
        if not named or pa.types.is_integer(named[0].type):
            return
        found = pa.chunked_array(chunks, type=named[0].type).unique()
        if self._names is not None:
            found = found.filter(pc.invert(pc.is_in(found, value_set=self._names)))
        found = found.take(pc.sort_indices(found))
        self._names = found if self._names is None else pa.concat_arrays([self._names, found])

    def get_numbers(self, column: pa.ChunkedArray) -> IntArray:
        """Return the numbers of people who are in the list."""
        import pyarrow as pa
        import pyarrow.compute as pc

        given = _normalize_names(column)
        if not pa.types.is_integer(given.type):
            given = pc.index_in(given, value_set=self._names)
        return np.asarray(given.to_numpy(), np.int64)


def _normalize_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
