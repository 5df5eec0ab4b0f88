"""Records, opened once: several tables and indicators are made from one reading of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cellguard._io.frames import library_of_frame
from cellguard.data.tabulate.gathered import Gathered, Question
from cellguard.data.tabulate.people import People
from cellguard.data.tabulate.request import Records, Roles

__all__ = ["Opened", "open_records"]


class Opened:
    """Records that several tables are made from.

    Files are read once, the columns that are needed, into the database that adds them up (it works out of core);
    frames are turned into columns once. Records in a database of their own stay where they are; DuckDB's are asked for
    all tables at once, too.
    """

    def __init__(self, data: Any, columns: Sequence[str], *, encoding: str | None = None, **options: Any) -> None:
        from cellguard.data.tabulate.duck import DuckRecords

        self.library = library_of_records(data)
        self._data, self._options, self._columns = data, {"encoding": encoding, **options}, columns
        self.people = People()
        self._gathered: Gathered | None = None
        opened = open_records(data, columns, **self._options)
        self._shared = opened if isinstance(opened, DuckRecords) else None
        if self._shared is not None and isinstance(data, (str, Path)):
            self._shared.keep_columns(columns)
        if self._shared is not None and set(columns) <= set(self._shared.columns()):  # others are refused in a moment
            self._shared.number(columns)
            self._shared.people = self.people

    def gather(self, questions: Sequence[Question], roles: Roles, units: int) -> None:
        """Say what will be asked: a database of our own answers all of it in one pass."""
        if self._shared is not None and self._shared.numbered:
            self._gathered = Gathered.of(self._shared, questions, roles, units)

    def view(self, columns: Sequence[str]) -> Records:
        """Return the records, all of them, for one question; whoever asks may close them."""
        if self._shared is not None:
            return self._shared.view(self._gathered)
        records = open_records(self._data, columns, **self._options)
        records.number(self._columns)
        records.people = self.people
        return records

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.view(()).columns()

    def close(self) -> None:
        """Give back what was needed for the work."""
        if self._shared is not None:
            self._shared.close()


def library_of_records(data: Any) -> Any:
    """Return what kind of frame the records are; None for files."""
    if isinstance(data, Opened):
        return data.library
    return None if isinstance(data, (str, Path)) else library_of_frame(data)


def open_records(data: Any, columns: Sequence[str], *, encoding: str | None, **options: Any) -> Records:
    """Open records wherever they are: frames, files, a relation of DuckDB, a table of Ibis."""
    from cellguard.data.tabulate.duck import DuckRecords

    if isinstance(data, Opened):
        return data.view(columns)
    if isinstance(data, (str, Path)):
        return DuckRecords.from_files(data, encoding=encoding, **options)
    kind = type(data).__module__.partition(".")[0]
    if kind == "ibis":
        from cellguard.data.tabulate.through_ibis import IbisRecords

        return IbisRecords(data)
    if kind in ("duckdb", "_duckdb"):
        return DuckRecords(data)
    return DuckRecords.from_frame(data, columns, **options)
