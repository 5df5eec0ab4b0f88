"""Where in a text file something is wrong, looked for when something is: lines are told, never what stands there."""

from __future__ import annotations

import csv
import io
import math
from contextlib import suppress
from pathlib import Path

from cellguard._io.files import read_bytes
from cellguard._io.frames import MAX_HEADER, header_of_csv, refuse_ragged_csv
from cellguard.exceptions import CellguardError, FormatError

__all__ = ["first_wrong_record_line", "refuse_broken_lines"]

_MAX_BYTES = 256 << 20
"""Larger files are not read a second time for the sake of a message."""


def refuse_broken_lines(path: str) -> None:
    """Refuse a text file by its first line that has too few or too many columns, if there is one."""
    found = _text_of_records(path)
    if found is not None:
        text, names, delimiter = found
        refuse_ragged_csv(Path(path), text.encode(), len(names), delimiter)


def first_wrong_record_line(path: str, column: str, decimal: str, *, missing: bool) -> int | None:
    """Return the first line of a text file that has no entry in a column, or one that is no number."""
    found = _text_of_records(path)
    if found is None or column not in found[1]:
        return None
    text, names, delimiter = found
    place = names.index(column)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    with suppress(csv.Error, IndexError):
        next(rows, None)
        for row in rows:
            entry = row[place].strip() if row else "0"
            if (not entry) if missing else (entry and not _is_number_in_record(entry, decimal)):
                return rows.line_num
    return None


def _is_number_in_record(entry: str, decimal: str) -> bool:
    try:
        return math.isfinite(float(entry.replace(decimal, ".")))
    except ValueError:
        return False


def _text_of_records(path: str) -> tuple[str, list[str], str] | None:
    """Return a text file with the names of its columns and the sign between them; None where it cannot be had."""
    try:
        raw = read_bytes(path, max_bytes=_MAX_BYTES)
        names, delimiter = header_of_csv(path, raw[: MAX_HEADER + 1])
    except (OSError, FormatError, CellguardError):
        return None
    return raw.decode("utf-8-sig", "replace"), names, delimiter
