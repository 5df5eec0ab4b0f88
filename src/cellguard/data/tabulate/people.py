"""Who contributed: one number for a person, whatever is crossed, added up or left out.

A record has a number of its own in the database that adds it up; where it stays in a database of others, its
columns are its name. A holding has its name. Whoever makes several tables from the same records keeps the list.
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
    """The contributors of some records, numbered as they come."""

    def __init__(self) -> None:
        self.list = uuid4().hex
        """Which list their numbers are of: numbers of different lists mean different people. It is never written."""
        self._names: pa.Array | None = None

    def meet(self, columns: list[pa.ChunkedArray]) -> None:
        """Number whoever is new, in the order of their names."""
        import pyarrow as pa
        import pyarrow.compute as pc

        named = [_plain_names_of_people(column) for column in columns]
        chunks = [chunk for column in named for chunk in column.chunks]
        if not named or pa.types.is_integer(named[0].type):
            return
        found = pa.chunked_array(chunks, type=named[0].type).unique()
        if self._names is not None:
            found = found.filter(pc.invert(pc.is_in(found, value_set=self._names)))
        found = found.take(pc.sort_indices(found))
        self._names = found if self._names is None else pa.concat_arrays([self._names, found])

    def numbers(self, column: pa.ChunkedArray) -> IntArray:
        """Return the numbers of people who were met."""
        import pyarrow as pa
        import pyarrow.compute as pc

        given = _plain_names_of_people(column)
        if not pa.types.is_integer(given.type):
            given = pc.index_in(given, value_set=self._names)
        return np.asarray(given.to_numpy(), np.int64)


def _plain_names_of_people(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
