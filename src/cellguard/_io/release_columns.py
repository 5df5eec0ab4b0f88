"""The columns of a published file: which hold the codes, the marks and the numbers, and what else stands in it.

What stands in a file is published. A second column of numbers, or one that nobody explains, would be
read by everybody and by no audit: it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cellguard._io.frames import column_as_texts, guarded_from_formulas
from cellguard.exceptions import FormatError

__all__ = ["BLANKS", "PublishedColumns", "read_release_columns"]

BLANKS = {"", "x", "*", ".", "..", "-", ":", "c", "na", "nan", "null", "n/a"}
"""What stands in place of a withheld value."""
_NAMES = {
    "status": ("status", "sdcstatus", "sdc_status", "suppressed"),
    "value": ("value", "values", "published", "rounded", "response", "val", "freq", "count"),
    "lower": ("lower", "lo", "low", "min", "lb"),
    "upper": ("upper", "hi", "up", "high", "max", "ub"),
}
"""What is published -> how programs call its column."""
_NUMBER = re.compile(r"[+-]?(\d[\d .,']*|\.\d+)([eE][+-]?\d+)?")


class PublishedColumns(NamedTuple):
    """The columns of a published file as text, row by row; None where there is none."""

    codes: list[list[str]] | None
    """The codes of each dimension."""
    cell: list[str] | None
    """The index of the cell."""
    status: list[str] | None
    value: list[str] | None
    lower: list[str] | None
    upper: list[str] | None
    rows: int

    @property
    def numbers(self) -> dict[str, list[str]]:
        """The columns of numbers."""
        named = {"value": self.value, "lower": self.lower, "upper": self.upper}
        return {name: column for name, column in named.items() if column is not None}


def read_release_columns(
    path: Path, columns: Mapping[str, Any], dimensions: Sequence[str], *, ignore: Collection[str] = ()
) -> PublishedColumns:
    """Find the columns of a published file; refuse two of a kind, and numbers that nothing explains.

    Parameters
    ----------
    dimensions
        Names of the table's dimensions: their columns hold codes, whatever they are called.
    ignore
        Columns that say nothing about the table's values.
    """
    found = _release_file_columns_by_part(path, columns, dimensions)
    text = {part: column_as_texts(columns[name]) for part, name in found.items()}
    codes = None
    if dimensions and all(("dimension", d) in text for d in dimensions):
        codes = [text[("dimension", d)] for d in dimensions]
    if not any(("", kind) in found for kind in _NAMES):
        raise FormatError.at(path, 1, "no column of values, of statuses, or of lower and upper ends.",
                             hint="name it as in 'value', 'status' or 'lower', 'upper'.")  # fmt: skip
    told = {*found.values(), *ignore}
    for name, column in columns.items():
        if name not in told and not _file_column_says_nothing(column_as_texts(column), codes or []):
            raise FormatError.at(
                path,
                1,
                f"column {name!r} is published too, and nothing says what it tells about the values.",
                hint="leave it out of the file, or say that it is to be ignored.",
            )
    rest = {name: text.get(("", name)) for name in ("cell", *_NAMES)}
    stripped = {name: None if column is None else [x.strip() for x in column] for name, column in rest.items()}
    return PublishedColumns(codes=codes, rows=len(next(iter(columns.values()), ())), **stripped)


def _release_file_columns_by_part(
    path: Path, columns: Mapping[str, Any], dimensions: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return the column of each dimension (by its name) and of each kind of number; two of a kind are refused."""
    spelt = {shape.lower(): d for d in dimensions for shape in (guarded_from_formulas(d), d)}
    kinds = {"cell": "cell"} | {word: kind for kind, words in _NAMES.items() for word in words}
    found: dict[tuple[str, str], str] = {}
    for name in columns:
        plain = name.strip().lower()
        bare = plain.rstrip("_")
        word = bare if bare in spelt else plain  # our own columns give way to a dimension of their name: value_
        part = ("dimension", spelt[plain]) if plain in spelt else ("", kinds.get(word, ""))
        if part == ("", ""):
            continue
        if part in found:
            kind = f"the dimension {part[1]!r}" if part[0] else f"the {part[1]}"
            raise FormatError.at(
                path,
                1,
                f"columns {found[part]!r} and {name!r} both look like {kind}.",
                hint="what stands in the file is published: leave one of them out.",
            )
        found[part] = name
    return found


def _file_column_says_nothing(column: Sequence[str], codes: Sequence[Sequence[str]]) -> bool:
    """Whether a column tells nothing about values: no digits, one text, row numbers, or the label of a code."""
    entries = [x.strip() for x in column]
    if len(set(entries)) <= 1 or not any(c.isdigit() for x in entries for c in x):
        return True
    for first in (0, 1):
        if entries == [str(i) for i in range(first, first + len(entries))]:
            return True
    if any(_NUMBER.fullmatch(x) for x in entries):
        return False
    return any(len(set(zip(dimension, entries, strict=True))) == len(set(dimension)) for dimension in codes)
