"""What can be said of the columns of a data file from a first look: numbers, codes, gaps, which nests in which."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import InputError

__all__ = ["Column", "look", "nested_in", "same_as"]

_SAMPLE = 200_000
_FEW = 3
"""A code with fewer records than this says nothing about what nests in what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What can be said of a column from a first look."""

    name: str
    numeric: bool
    whole: bool
    """Whole numbers only."""
    comma: bool
    """Numbers with a decimal comma."""
    digits: bool
    """Whole numbers of at least two digits: their first digits may be codes of a higher level."""
    dense: bool
    """Whole numbers, each once, that follow each other or have the same number of digits: they number the records."""
    negative: bool
    decimals: int | None
    """Most decimals of its numbers; None where they are measurements without end."""
    distinct: int
    filled: int
    """Records that have an entry."""
    gaps: int
    """Records that have none."""
    codes: tuple[str, ...] = field(repr=False)
    """The different entries, where there are not too many."""
    index: IntArray = field(repr=False)
    """The place of each record's entry among them; -1 where there is none."""

    @property
    def records_per_code(self) -> float:
        """How many records share an entry, on the average."""
        return self.filled / max(self.distinct, 1)


def look(path: Path) -> tuple[list[Column], int]:
    """Look at the first records of a data file: its columns, and how many records were looked at."""
    from cellguard._io.frames import read_frame

    columns = []
    rows = 0
    for name, whole_column in read_frame(path).items():
        column = _without_blanks(whole_column.slice(0, _SAMPLE))
        rows = len(column)
        columns.append(_looked_at(name, column))
    if not columns or not rows:
        raise InputError(
            f"{path}: there are no records.", hint="the first line names the columns, the others hold the records."
        )
    return columns, rows


def _looked_at(name: str, column: Any) -> Column:
    import pyarrow.compute as pc

    from cellguard._io.frames import encode

    number, comma = _numbers(column)
    numeric = number is not None and len(column) > column.null_count
    whole = number is not None and bool(pc.all(pc.equal(number, pc.round(number))).as_py())
    codes, index = encode(column)
    filled = len(column) - column.null_count
    return Column(
        name=name,
        numeric=numeric,
        whole=whole,
        comma=comma,
        digits=_long_codes(column),
        dense=numeric and whole and len(codes) == filled and _numbers_the_records(number, codes),
        decimals=_decimals(number) if numeric else 0,
        negative=numeric and bool((pc.min(number).as_py() or 0) < 0),
        distinct=len(codes),
        filled=filled,
        gaps=column.null_count,
        codes=tuple(codes),
        index=index,
    )


def _decimals(number: Any) -> int | None:
    from cellguard._engine.numbers.multiples import decimals

    return decimals(np.asarray(number.drop_null().to_numpy(), np.float64))


def nested_in(fine: Column, coarse: Column) -> bool:
    """Say whether each code of a column belongs to one code of a coarser one, and not by chance."""
    if not 2 <= coarse.distinct < fine.distinct:
        return False
    both = (fine.index >= 0) & (coarse.index >= 0)
    pairs = np.unique(fine.index[both] * coarse.distinct + coarse.index[both])
    own = pairs // coarse.distinct
    if len(np.unique(own)) != len(pairs):
        return False
    often = np.bincount(fine.index[both], minlength=fine.distinct) >= _FEW
    sure = pairs[often[own]] % coarse.distinct
    return len(np.unique(sure)) >= 2 and bool(often.mean() >= 0.5)


def same_as(one: Column, other: Column) -> bool:
    """Say whether two columns are two spellings of the same thing, such as a code and its label."""
    if one.distinct != other.distinct or one.distinct < 2:
        return False
    both = (one.index >= 0) & (other.index >= 0)
    pairs = np.unique(one.index[both] * other.distinct + other.index[both])
    return len(pairs) == one.distinct == len(np.unique(pairs % other.distinct))


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _without_blanks(column: Any) -> Any:
    """Return the column with nothing where a text is empty or blank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_text(column):
        return column
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), pa.scalar(None, column.type), column)


def _long_codes(column: Any) -> bool:
    """Whether all entries are digits, and as many of them, two or more."""
    import pyarrow.compute as pc

    text = column.cast("string").drop_null()
    if not len(text) or not pc.all(pc.match_substring_regex(text, "^[0-9]{2,}$")).as_py():
        return False
    return bool(pc.count_distinct(pc.utf8_length(text)).as_py() == 1)


def _numbers_the_records(number: Any, codes: list[str]) -> bool:
    """Whether different whole numbers follow each other, nearly, or have the same number of digits."""
    import pyarrow.compute as pc

    span = pc.max(number).as_py() - pc.min(number).as_py() + 1
    return bool(span <= 2 * len(codes)) or (len(codes) > 1 and len({len(code.strip()) for code in codes}) == 1)


def _numbers(column: Any) -> tuple[Any, bool]:
    """Return the column as numbers, or None, and whether their decimal sign is a comma."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _is_text(column)
    trimmed = pc.utf8_trim_whitespace(column) if text else column
    for comma in (False, True) if text else (False,):
        try:
            return (pc.replace_substring(trimmed, ",", ".") if comma else trimmed).cast(pa.float64(), safe=False), comma
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            continue
    return None, False
