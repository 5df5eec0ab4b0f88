"""Nested columns of records: the hierarchy of a dimension whose coarser levels are other columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from cellguard._io.frames import convert_to_texts
from cellguard.exceptions import InputError
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.trees import sort_codes
from cellguard.tabulation.engines.duck import DuckRecords

__all__ = ["build_nested_hierarchy"]


def build_nested_hierarchy(
    path: str | Path,
    levels: Sequence[str],
    *,
    total: str | None = None,
    without: Collection[str] = (),
    encoding: str | None = None,
) -> Hierarchy:
    """Return the hierarchy given by columns of records, coarsest first, regardless of the order of the records.

    Parameters
    ----------
    path
        CSV or Parquet files.
    levels
        The columns.
    total
        Code of the total, "Total" unless given.
    without
        Codes of the finest level to leave out, such as "not known".
    encoding
        Encoding of text files.
    """
    with closing(DuckRecords.from_files(path, encoding=encoding)) as records:
        found = records.list_distinct(levels)
    columns = [convert_to_texts(found.column(i)) for i in range(len(levels))]
    rows = [row for row in zip(*columns, strict=True) if row[-1].strip() and row[-1] not in without]
    place = [{code: i for i, code in enumerate(sort_codes({row[k] for row in rows}))} for k in range(len(levels))]
    rows.sort(key=lambda row: [place[k][code] for k, code in enumerate(row)])
    frame = {name: [row[k] for row in rows] for k, name in enumerate(levels)}
    try:
        return Hierarchy.from_levels(frame, total=total or "Total")
    except InputError as error:
        raise InputError(f"levels {', '.join(levels)}: {error.message}", hint=error.hint) from None
