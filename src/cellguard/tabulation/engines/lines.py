"""Find the line of an error in a text file after reading failed; messages name the line, never its content."""

from __future__ import annotations

import csv
import io
import math
from contextlib import suppress
from pathlib import Path

from cellguard._io.files import read_bytes
from cellguard._io.frames import MAX_HEADER, read_csv_header, refuse_ragged_csv
from cellguard.exceptions import CellguardError, FormatError

__all__ = ["find_first_wrong_line", "refuse_broken_lines"]

_MAX_BYTES = 256 << 20
"""Maximum size of a file in bytes that is read a second time to improve a message."""


def refuse_broken_lines(path: str) -> None:
    """Refuse a text file if a line has too few or too many columns; name the first such line."""
    found = _open_text(path)
    if found is not None:
        text, names, delimiter = found
        refuse_ragged_csv(Path(path), text.encode(), len(names), delimiter)


def find_first_wrong_line(path: str, column: str, decimal: str, *, missing: bool) -> int | None:
    """Return the first line of a text file without an entry in a column, or with one that is not a number."""
    found = _open_text(path)
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


def _open_text(path: str) -> tuple[str, list[str], str] | None:
    """Return a text file with its column names and delimiter; None if they cannot be found."""
    try:
        raw = read_bytes(path, max_bytes=_MAX_BYTES)
        names, delimiter = read_csv_header(path, raw[: MAX_HEADER + 1])
    except (OSError, FormatError, CellguardError):
        return None
    return raw.decode("utf-8-sig", "replace"), names, delimiter
