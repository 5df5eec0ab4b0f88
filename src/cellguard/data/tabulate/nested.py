"""Nested columns of records: the hierarchy of a dimension whose coarser levels stand beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from cellguard._io.frames import column_as_texts
from cellguard.data.tabulate.decode import record_codes_in_order
from cellguard.data.tabulate.duck import DuckRecords
from cellguard.exceptions import InputError
from cellguard.nouns.hierarchy import Hierarchy

__all__ = ["nested_columns_of_records"]


def nested_columns_of_records(
    path: str | Path,
    levels: Sequence[str],
    *,
    total: str | None = None,
    without: Collection[str] = (),
    encoding: str | None = None,
) -> Hierarchy:
    """Return the hierarchy that columns of records make, the coarsest first; the order of the records is no matter.

    Parameters
    ----------
    path
        CSV or Parquet files.
    levels
        The columns.
    total
        Code of the total, "Total" unless given.
    without
        Codes of the finest level that are none, as for "not known".
    encoding
        Of text files.
    """
    with closing(DuckRecords.from_files(path, encoding=encoding)) as records:
        found = records.distinct(levels)
    columns = [column_as_texts(found.column(i)) for i in range(len(levels))]
    rows = [row for row in zip(*columns, strict=True) if row[-1].strip() and row[-1] not in without]
    place = [
        {code: i for i, code in enumerate(record_codes_in_order({row[k] for row in rows}))} for k in range(len(levels))
    ]
    rows.sort(key=lambda row: [place[k][code] for k, code in enumerate(row)])
    frame = {name: [row[k] for row in rows] for k, name in enumerate(levels)}
    try:
        return Hierarchy.from_levels(frame, total=total or "Total")
    except InputError as error:
        raise InputError(f"levels {', '.join(levels)}: {error.message}", hint=error.hint) from None
