"""Pieces: the intersections of the areas of several tables, from records or from a file of pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import FormatError, InputError, raise_error_of_missing

if TYPE_CHECKING:
    from cellguard.tabulation.engines.duck import DuckRecords

__all__ = ["AreaPieces", "Grouping", "PiecesAsked", "read_pieces"]


@dataclass(frozen=True, kw_only=True)
class PiecesAsked:
    """Which columns hold the codes and the figures."""

    value: str | None = None
    """Column of the values, for dominance."""
    count: str | None = None
    """Of a file of pieces: column with the number of records; without it every row is one record."""
    largest: str | None = None
    """Of a file of pieces: column with the largest contribution."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """A table: the columns whose codes name its areas, and which areas it publishes."""

    name: str
    columns: tuple[str, ...]
    published: frozenset[tuple[str, ...]] | None = None
    """Codes of the published areas; None: all of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaPieces:
    """The non-empty intersections of all groupings."""

    columns: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    """Distinct codes of each column."""
    index: IntArray
    """One row per piece: the code of each column."""
    count: IntArray
    """Number of records."""
    value: FloatArray | None
    """Sum of their values."""
    largest: FloatArray | None
    """Largest single value."""

    def __len__(self) -> int:
        return len(self.count)

    def find_areas(self, grouping: Grouping) -> tuple[list[tuple[str, ...]], IntArray]:
        """Return the areas of a grouping, and the area of each piece."""
        at = [self.columns.index(column) for column in grouping.columns]
        rows, area = np.unique(self.index[:, at], axis=0, return_inverse=True)
        names = [tuple(self.codes[c][i] for c, i in zip(at, row, strict=True)) for row in rows.tolist()]
        return names, area.ravel().astype(np.int64)

    def find_published(self, grouping: Grouping, areas: Sequence[tuple[str, ...]]) -> BoolArray:
        """Return which areas a grouping publishes."""
        if grouping.published is None:
            return np.ones(len(areas), bool)
        return np.array([area in grouping.published for area in areas], bool)


def read_pieces(source: Any, columns: Sequence[str], asked: PiecesAsked) -> AreaPieces:
    """Count the records of each combination of codes, with DuckDB: five million records take seconds."""
    from cellguard.tabulation.engines.sql import quote_column

    named = [*columns, *(name for name in (asked.value, asked.count, asked.largest) if name is not None)]
    place = f"{source}: " if isinstance(source, (str, Path)) else ""
    records = _open_records(source, named)
    try:
        raise_error_of_missing("column", named, list(records.list_columns()), place=place)
        _refuse_missing(source, records, columns)
        codes = [f"CAST({quote_column(name)} AS VARCHAR)" for name in columns]
        count = "count(*)" if asked.count is None else f"sum({records.number_sql(asked.count, '.')})"
        figures = [f"{count} AS n"]
        if asked.value is not None:
            x = records.number_sql(asked.value, ".")
            most = x if asked.largest is None else records.number_sql(asked.largest, ".")
            figures += [f"sum(abs({x})) AS v", f"max(abs({most})) AS largest"]
        wanted = ", ".join([*(f"{code} AS c{i}" for i, code in enumerate(codes)), *figures])
        found = records.run_sql(lambda view: f"SELECT {wanted} FROM {view} GROUP BY ALL ORDER BY ALL")
    finally:
        records.close()
    return _build_pieces(place, columns, asked, {name: found.column(name) for name in found.column_names})


def _open_records(source: Any, named: Sequence[str]) -> DuckRecords:
    from cellguard.tabulation.engines.duck import DuckRecords

    if isinstance(source, (str, Path)):
        return DuckRecords.from_files(source)
    from cellguard._io.frames import read_frame_columns

    given = read_frame_columns(source)
    raise_error_of_missing("column", named, given)
    columns = {name: given[name] for name in dict.fromkeys(named)}
    return DuckRecords.from_frame(columns, list(columns))


def _refuse_missing(source: Any, records: DuckRecords, columns: Sequence[str]) -> None:
    """Refuse records without a code: they belong to no piece."""
    for name in columns:
        given = records.format_given_sql(name)
        missing = records.run_sql(partial("SELECT count(*) AS n FROM {1} WHERE NOT {0}".format, given))
        if missing.column("n")[0].as_py():
            line = records.find_first_line(name, ".", missing=True)
            message = f"column {name!r} has no code."
            if isinstance(source, (str, Path)):
                raise FormatError.at(source, line, message, hint="give every record a code in each table.")
            raise InputError(message, hint="give every record a code in each table.")


def _build_pieces(place: str, columns: Sequence[str], asked: PiecesAsked, found: Mapping[str, Any]) -> AreaPieces:
    from cellguard._io.frames import convert_to_numbers, encode_frame_column

    encoded = [encode_frame_column(found[f"c{i}"]) for i in range(len(columns))]
    count = convert_to_numbers(found["n"], "n")
    wrong = ~np.isfinite(count) | (count < 0) | (count != np.rint(count))
    if wrong.any():
        raise InputError(f"{place}column {asked.count!r} holds something that is not a number of records.")
    some = count > 0
    figures: dict[str, FloatArray | None] = {"v": None, "largest": None}
    for name in figures if asked.value is not None else ():
        numbers = figures[name] = convert_to_numbers(found[name], name)[some]
        if not np.isfinite(numbers).all():
            raise InputError(f"{place}column {asked.value!r} has an entry that is not a number, or none at all.")
    index = np.column_stack([index for _, index in encoded])[some] if encoded else np.zeros((0, 0), np.int64)
    return AreaPieces(
        columns=tuple(columns), codes=tuple(tuple(seen) for seen, _ in encoded), index=index,
        count=count[some].astype(np.int64), value=figures["v"], largest=figures["largest"],
    )  # fmt: skip
