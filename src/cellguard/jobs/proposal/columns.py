"""Inspect the columns of a data file: numbers, codes, missing entries, and which column nests in which."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellguard._engine.numbers.multiples import count_decimals
from cellguard._io.frames import encode_frame_column, read_frame
from cellguard._types import IntArray
from cellguard.exceptions import InputError

__all__ = ["Column", "is_nested", "is_same_classification", "sample_columns"]

_SAMPLE = 200_000
_FEW = 3
"""A code with fewer records than this is no evidence of nesting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Properties of a column, found by inspecting its first records."""

    name: str
    numeric: bool
    whole: bool
    """Whole numbers only."""
    comma: bool
    """Numbers with a decimal comma."""
    digits: bool
    """Whole numbers of at least two digits: their first digits may be codes of a higher level."""
    dense: bool
    """Distinct whole numbers that are consecutive or have the same number of digits: they number the records."""
    zeros: bool
    """Digits that begin with a zero, such as 01: always codes."""
    strays: tuple[int, int]
    """Number of entries that are not numbers where nearly all are, and the line of the first."""
    dates: bool
    """Days, such as 2024-03-31 or 31.03.2024."""
    negative: bool
    decimals: int | None
    """Largest number of decimals; None if the numbers are unrounded measurements."""
    distinct: int
    filled: int
    """Records that have an entry."""
    gaps: int
    """Records that have none."""
    codes: tuple[str, ...] = field(repr=False)
    """The different entries, where there are not too many."""
    index: IntArray = field(repr=False)
    """Index of each record's entry among them; -1 if it has none."""

    @property
    def has_thousands(self) -> bool:
        """Whether the entries are numbers with signs between thousands, such as 1,234,567 or 1.234.567."""
        return not self.numeric and len(self.codes) > 1 and all(_THOUSANDS.match(c) for c in self.codes if c.strip())

    @property
    def records_per_code(self) -> float:
        """Average number of records that share an entry."""
        return self.filled / max(self.distinct, 1)


def sample_columns(path: Path) -> tuple[list[Column], int]:
    """Return the columns of a data file, from its first records, and the number of records inspected."""
    sample = {name: _drop_blanks(column.slice(0, _SAMPLE)) for name, column in read_frame(path).items()}
    rows = len(next(iter(sample.values()), ()))
    if not rows:
        hint = "the first line names the columns, the others hold the records."
        raise InputError(f"{path}: there are no records.", hint=hint)
    return [_describe_column(name, column) for name, column in sample.items()], rows


def _describe_column(name: str, column: Any) -> Column:
    number, comma, strays = _parse_numbers_in_column(column)
    zeros = _matches_somewhere(column, "^0[0-9]+$") and _matches_everywhere(column, "^[0-9]+$")
    numeric = number is not None and len(column) > column.null_count and not zeros
    whole = number is not None and bool(pc.all(pc.equal(number, pc.round(number))).as_py())
    codes, index = encode_frame_column(column)
    filled = len(column) - column.null_count
    return Column(
        name=name,
        numeric=numeric,
        whole=whole,
        comma=comma,
        digits=_are_equally_long_codes(column),
        zeros=zeros,
        strays=strays,
        dates=_contains_dates(column) or _matches_everywhere(column, _DAY),
        dense=number is not None and whole and len(codes) == filled and _are_record_numbers(number, codes),
        decimals=count_decimals(np.asarray(number.drop_null().to_numpy(), np.float64)) if numeric else 0,
        negative=numeric and bool((pc.min(number).as_py() or 0) < 0),
        distinct=len(codes),
        filled=filled,
        gaps=column.null_count,
        codes=tuple(codes),
        index=index,
    )


def is_nested(fine: Column, coarse: Column) -> bool:
    """Return whether each code of a column belongs to one code of a coarser column, beyond chance."""
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


def is_same_classification(one: Column, other: Column) -> bool:
    """Return whether two columns spell the same thing in two ways, such as a code and its label."""
    if one.distinct != other.distinct or one.distinct < 2:
        return False
    both = (one.index >= 0) & (other.index >= 0)
    pairs = np.unique(one.index[both] * other.distinct + other.index[both])
    return len(pairs) == one.distinct == len(np.unique(pairs % other.distinct))


def _contains_text(column: Any) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _drop_blanks(column: Any) -> Any:
    """Return the column with empty and blank texts as missing."""
    if not _contains_text(column):
        return column
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), pa.scalar(None, column.type), column)


_THOUSANDS = re.compile(r"^\s*[+-]?\d{1,3}([,.'\u2019\u00a0\u202f ]\d{3})*([.,]\d+)?\s*$")
_DAY = r"^([0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{2,4})([ T][0-9:.]+Z?)?$"


def _contains_dates(column: Any) -> bool:
    return bool(pa.types.is_date(column.type) or pa.types.is_timestamp(column.type))


def _list_entries(column: Any) -> Any:
    return pc.utf8_trim_whitespace(column.cast("string").drop_null())


def _matches_everywhere(column: Any, pattern: str) -> bool:
    """Return whether there are entries and all of them match."""
    text = _list_entries(column)
    return bool(len(text)) and bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def _matches_somewhere(column: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(_list_entries(column), pattern)).as_py())


def _are_equally_long_codes(column: Any) -> bool:
    """Return whether all entries have the same number of digits, at least two."""
    return _matches_everywhere(column, "^[0-9]{2,}$") and bool(
        pc.count_distinct(pc.utf8_length(_list_entries(column))).as_py() == 1
    )


def _are_record_numbers(number: Any, codes: list[str]) -> bool:
    """Return whether distinct whole numbers are nearly consecutive, or have the same number of digits."""
    span = pc.max(number).as_py() - pc.min(number).as_py() + 1
    return bool(span <= 2 * len(codes)) or (len(codes) > 1 and len({len(code.strip()) for code in codes}) == 1)


_LEAST_SHARE_OF_NUMBERS = 0.8
"""A text column holds numbers with stray texts if at least this share of its entries are numbers."""
_LEAST_NUMBERS = 5
"""And if at least this many of its entries are."""
_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?$"


def _parse_numbers_in_column(column: Any) -> tuple[Any, bool, tuple[int, int]]:
    """Return the column as numbers or None, whether the decimal sign is a comma, and the stray entries."""
    text = _contains_text(column)
    trimmed = pc.utf8_trim_whitespace(column) if text else column
    for comma in (False, True) if text else (False,):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            plain = pc.replace_substring(trimmed, ",", ".") if comma else trimmed
            return plain.cast(pa.float64(), safe=False), comma, (0, 0)
    return _parse_numbers_among_strays(trimmed) if text else (None, False, (0, 0))


def _parse_numbers_among_strays(text: Any) -> tuple[Any, bool, tuple[int, int]]:
    fits = np.asarray(pc.fill_null(pc.match_substring_regex(text, _NUMBER), fill_value=False), dtype=bool)
    filled = len(text) - text.null_count
    if fits.sum() < max(_LEAST_NUMBERS, _LEAST_SHARE_OF_NUMBERS * filled):
        return None, False, (0, 0)
    known = pc.if_else(pa.array(fits), text, pa.scalar(None, text.type))
    comma = bool(pc.any(pc.match_substring(known, ",")).as_py())
    stray = ~fits & np.asarray(pc.is_valid(text), dtype=bool)
    number = pc.replace_substring(known, ",", ".").cast(pa.float64(), safe=False)
    return number, comma, (int(stray.sum()), int(np.argmax(stray)) + 2)  # the first line names the columns
