"""Open records once, to make several tables and indicators from a single reading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cellguard._io.frames import detect_frame_library
from cellguard.tabulation.engines.gathered import Gathered, Question
from cellguard.tabulation.people import People
from cellguard.tabulation.request import Records, Roles

__all__ = ["Opened", "open_records"]


class Opened:
    """Records from which several tables are made.

    The required columns of files are read once into the database that aggregates them (it works out of core);
    frames are converted to columns once. Records in another database stay there; DuckDB relations are also
    queried for all tables at once.
    """

    def __init__(self, data: Any, columns: Sequence[str], *, encoding: str | None = None, **options: Any) -> None:
        from cellguard.tabulation.engines.duck import DuckRecords

        self.library = detect_library(data)
        self._data, self._options, self._columns = data, {"encoding": encoding, **options}, columns
        self.people = People()
        self._gathered: Gathered | None = None
        opened = open_records(data, columns, **self._options)
        self._shared = opened if isinstance(opened, DuckRecords) else None
        if self._shared is not None and isinstance(data, (str, Path)):
            self._shared.keep_columns(columns)
        if self._shared is not None and set(columns) <= set(
            self._shared.list_columns()
        ):  # other input is refused below
            self._shared.number(columns)
            self._shared.people = self.people

    def plan_queries(self, questions: Sequence[Question], roles: Roles, units: int) -> None:
        """Announce all queries: our own database answers them in one pass."""
        if self._shared is not None and self._shared.numbered:
            self._gathered = Gathered.of(self._shared, questions, roles, units)

    def view(self, columns: Sequence[str]) -> Records:
        """Return all records for one query; the caller may close them."""
        if self._shared is not None:
            return self._shared.view(self._gathered)
        records = open_records(self._data, columns, **self._options)
        records.number(self._columns)
        records.people = self.people
        return records

    def list_columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.view(()).list_columns()

    def close(self) -> None:
        """Release the resources."""
        if self._shared is not None:
            self._shared.close()


def detect_library(data: Any) -> Any:
    """Return the library of the frame with the records; None for files."""
    if isinstance(data, Opened):
        return data.library
    return None if isinstance(data, (str, Path)) else detect_frame_library(data)


def open_records(data: Any, columns: Sequence[str], *, encoding: str | None, **options: Any) -> Records:
    """Open records from any source: frames, files, a DuckDB relation, an Ibis table."""
    from cellguard.tabulation.engines.duck import DuckRecords

    if isinstance(data, Opened):
        return data.view(columns)
    if isinstance(data, (str, Path)):
        return DuckRecords.from_files(data, encoding=encoding, **options)
    kind = type(data).__module__.partition(".")[0]
    if kind == "ibis":
        from cellguard.tabulation.engines.through_ibis import IbisRecords

        return IbisRecords(data)
    if kind in ("duckdb", "_duckdb"):
        return DuckRecords(data)
    return DuckRecords.from_frame(data, columns, **options)
