"""Which areas a published table shows: its rows with a printed figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cellguard._io.release_columns import STATUS_NAMES, WITHHELD_MARKS
from cellguard.differencing.pieces import Grouping
from cellguard.exceptions import FormatError
from cellguard.model.totals import is_called_total

__all__ = ["list_record_columns", "read_grouping"]


def list_record_columns(path: str | Path) -> list[str]:
    """Return the columns of a file of records or pieces."""
    from cellguard.tabulation.engines.duck import DuckRecords

    records = DuckRecords.from_files(path)
    try:
        return list(records.list_columns())
    finally:
        records.close()


def read_grouping(path: Path, columns: Sequence[str]) -> Grouping:
    """Read a published table: columns that the records have too name its areas, all others hold its figures.

    A row without any printed number, or with a mark in a column such as ``status``, is withheld. Rows of totals are
    left out: they are sums of others.
    """
    from cellguard._io.frames import convert_to_texts, read_frame

    frame = read_frame(path)
    own = tuple(name for name in frame if name in columns)
    if not own:
        hint = f"the records have {', '.join(list(columns)[:12])}."
        raise FormatError.at(path, 1, "no column is called like one of the records.", hint=hint)
    codes = [convert_to_texts(frame[name]) for name in own]
    others = {name: convert_to_texts(column) for name, column in frame.items() if name not in own}
    marks = [column for name, column in others.items() if name.strip().lower() in STATUS_NAMES]
    figures = [column for name, column in others.items() if name.strip().lower() not in STATUS_NAMES]
    published: dict[tuple[str, ...], int] = {}
    for line, area in enumerate(zip(*codes, strict=True), start=2):
        if not all(area):
            raise FormatError.at(path, line, "an area without a code.", hint="write the code of the total in full.")
        if area in published:
            raise FormatError.at(path, line, f"{'/'.join(area)} is listed twice; see line {published[area]} too.")
        shown = not figures or any(_is_number(figure[line - 2]) for figure in figures)
        shown &= not any(mark[line - 2].strip().lower() in WITHHELD_MARKS for mark in marks)
        if shown and not any(map(is_called_total, area)):
            published[area] = line
    return Grouping(name=path.name.partition(".")[0], columns=own, published=frozenset(published))


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True
