"""The columns of a published file: which hold the codes, the marks and the numbers, and which others there are.

Everything in a file is published. A second column of numbers, or an unexplained column, would be
read by everybody and checked by no audit: it is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cellguard._io.frames import convert_to_texts, escape_formula
from cellguard.exceptions import FormatError

__all__ = ["BLANKS", "STATUS_NAMES", "WITHHELD_MARKS", "PublishedColumns", "read_release_columns"]

BLANKS = {"", "x", "*", ".", "..", "-", ":", "c", "na", "nan", "null", "n/a"}
"""Marks in place of a withheld value."""
_WORDS = ("withheld", "suppressed", "primary", "secondary", "confidential", *"abdmnu")
WITHHELD_MARKS = {*(BLANKS - {""}), *_WORDS}
"""Words of a status column that mark a withheld cell in files of any program, in lower case."""
STATUS_NAMES = ("status", "obs_status", "conf_status", "flag", "disclosure_code", "sdcstatus")
"""Names of a status column in files of any program."""
_NAMES = {
    "status": ("status", "sdcstatus", "sdc_status", "suppressed"),
    "value": ("value", "values", "published", "rounded", "response", "val", "freq", "count"),
    "lower": ("lower", "lo", "low", "min", "lb"),
    "upper": ("upper", "hi", "up", "high", "max", "ub"),
}
"""Published quantity -> the names that programs use for its column."""


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
    others: dict[str, list[str]]
    """Further required columns, by name."""

    @property
    def numbers(self) -> dict[str, list[str]]:
        """The columns of numbers."""
        named = {"value": self.value, "lower": self.lower, "upper": self.upper}
        return {name: column for name, column in named.items() if column is not None}


def read_release_columns(
    path: Path,
    columns: Mapping[str, Any],
    dimensions: Sequence[str],
    *,
    labels: Sequence[Mapping[str, str]] = (),
    ignore: Collection[str] = (),
    more: Collection[str] = (),
) -> PublishedColumns:
    """Find the columns of a published file; refuse two of a kind, and unexplained columns.

    Parameters
    ----------
    dimensions
        Names of the table's dimensions: their columns hold codes, even if the name suggests numbers.
    labels
        Labels of the codes of each dimension, if the table has them.
    ignore
        Columns that say nothing about the table's values.
    more
        Further columns that the kind of release has.
    """
    others = {name: convert_to_texts(column) for name, column in columns.items() if name.strip().lower() in more}
    found = _find_columns_by_part(path, columns, dimensions)
    text = {part: convert_to_texts(columns[name]) for part, name in found.items()}
    codes = None
    if dimensions and all(("dimension", d) in text for d in dimensions):
        codes = [text[("dimension", d)] for d in dimensions]
    if not others and not any(("", kind) in found for kind in _NAMES):
        raise FormatError.at(path, 1, "no column of values, of statuses, or of lower and upper ends.",
                             hint="name it as in 'value', 'status' or 'lower', 'upper'.")  # fmt: skip
    told = {*found.values(), *others, *ignore}
    for name, column in columns.items():
        if name not in told and not _is_uninformative_text(convert_to_texts(column), codes or [], labels):
            raise FormatError.at(
                path,
                1,
                f"column {name!r} is published too, and nothing explains what it reveals about the values.",
                hint=f"leave it out of the file, or declare it as ignored: --ignore {name}, ignore=[{name!r}].",
            )
    rest = {name: text.get(("", name)) for name in ("cell", *_NAMES)}
    stripped = {name: None if column is None else [x.strip() for x in column] for name, column in rest.items()}
    extra = {name.strip().lower(): [x.strip() for x in column] for name, column in others.items()}
    return PublishedColumns(codes=codes, rows=len(next(iter(columns.values()), ())), others=extra, **stripped)


def _find_columns_by_part(
    path: Path, columns: Mapping[str, Any], dimensions: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return the column of each dimension (by its name) and of each kind of number; refuse two of a kind."""
    spelt = {shape.lower(): d for d in dimensions for shape in (escape_formula(d), d)}
    kinds = {"cell": "cell"} | {word: kind for kind, words in _NAMES.items() for word in words}
    found: dict[tuple[str, str], str] = {}
    for name in columns:
        plain = name.strip().lower()
        bare = plain.rstrip("_")
        word = bare if bare in spelt else plain  # our own column gives way to a dimension of the same name: value_
        part = ("dimension", spelt[plain]) if plain in spelt else ("", kinds.get(word, ""))
        if part == ("", ""):
            continue
        if part in found:
            kind = f"the dimension {part[1]!r}" if part[0] else f"the {part[1]}"
            raise FormatError.at(
                path,
                1,
                f"columns {found[part]!r} and {name!r} both look like {kind}.",
                hint="everything in the file is published: leave one of them out.",
            )
        found[part] = name
    return found


def _is_uninformative_text(
    column: Sequence[str], codes: Sequence[Sequence[str]], labels: Sequence[Mapping[str, str]]
) -> bool:
    """Return whether a column reveals nothing about values: one text for all, row numbers, or the label of a code.

    Words are no exception: a value can be spelt out. A text beside a code counts as its label only if the table has
    the same label; any other text may describe the cell.
    """
    entries = [x.strip() for x in column]
    if len(set(entries)) <= 1:
        return True
    if any(entries == [str(i) for i in range(first, first + len(entries))] for first in (0, 1)):
        return True
    return any(
        all(entry in (code, known.get(code)) for code, entry in zip(own, entries, strict=True))
        for own, known in zip(codes, labels, strict=False)
    )
