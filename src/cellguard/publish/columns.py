"""What can be said of the columns of a data file from a first look: numbers, codes, gaps, which nests in which."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cellguard._engine.numbers.multiples import decimals_of_numbers
from cellguard._io.frames import encode_frame_column, read_frame
from cellguard._types import IntArray
from cellguard.exceptions import InputError

__all__ = ["Column", "columns_to_guess_from", "guessed_to_be_same", "guessed_to_nest"]

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
    zeros: bool
    """Digits that begin with a zero, such as 01: codes, whatever else they look like."""
    strays: tuple[int, int]
    """Entries that are no numbers where nearly all are: how many, and the line of the first."""
    dates: bool
    """Days, such as 2024-03-31 or 31.03.2024."""
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


def columns_to_guess_from(path: Path) -> tuple[list[Column], int]:
    """Look at the first records of a data file: its columns, and how many records were looked at."""
    sample = {name: _blanks_left_out_of_guess(column.slice(0, _SAMPLE)) for name, column in read_frame(path).items()}
    rows = len(next(iter(sample.values()), ()))
    if not rows:
        hint = "the first line names the columns, the others hold the records."
        raise InputError(f"{path}: there are no records.", hint=hint)
    return [_column_to_guess(name, column) for name, column in sample.items()], rows


def _column_to_guess(name: str, column: Any) -> Column:
    number, comma, strays = _numbers_guessed_in_column(column)
    zeros = _column_guessed_by_some_entry(column, "^0[0-9]+$") and _guessed_by_every_entry(column, "^[0-9]+$")
    numeric = number is not None and len(column) > column.null_count and not zeros
    whole = number is not None and bool(pc.all(pc.equal(number, pc.round(number))).as_py())
    codes, index = encode_frame_column(column)
    filled = len(column) - column.null_count
    return Column(
        name=name,
        numeric=numeric,
        whole=whole,
        comma=comma,
        digits=_guessed_as_long_codes(column),
        zeros=zeros,
        strays=strays,
        dates=_holds_dates_to_guess(column) or _guessed_by_every_entry(column, _DAY),
        dense=number is not None and whole and len(codes) == filled and _guessed_to_number_records(number, codes),
        decimals=decimals_of_numbers(np.asarray(number.drop_null().to_numpy(), np.float64)) if numeric else 0,
        negative=numeric and bool((pc.min(number).as_py() or 0) < 0),
        distinct=len(codes),
        filled=filled,
        gaps=column.null_count,
        codes=tuple(codes),
        index=index,
    )


def guessed_to_nest(fine: Column, coarse: Column) -> bool:
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


def guessed_to_be_same(one: Column, other: Column) -> bool:
    """Say whether two columns are two spellings of the same thing, such as a code and its label."""
    if one.distinct != other.distinct or one.distinct < 2:
        return False
    both = (one.index >= 0) & (other.index >= 0)
    pairs = np.unique(one.index[both] * other.distinct + other.index[both])
    return len(pairs) == one.distinct == len(np.unique(pairs % other.distinct))


def _holds_text_to_guess(column: Any) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _blanks_left_out_of_guess(column: Any) -> Any:
    """Return the column with nothing where a text is empty or blank."""
    if not _holds_text_to_guess(column):
        return column
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), pa.scalar(None, column.type), column)


_DAY = r"^([0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{2,4})([ T][0-9:.]+Z?)?$"


def _holds_dates_to_guess(column: Any) -> bool:
    return bool(pa.types.is_date(column.type) or pa.types.is_timestamp(column.type))


def _entries_to_guess_from(column: Any) -> Any:
    return pc.utf8_trim_whitespace(column.cast("string").drop_null())


def _guessed_by_every_entry(column: Any, pattern: str) -> bool:
    """Whether there are entries, and all of them look like this."""
    text = _entries_to_guess_from(column)
    return bool(len(text)) and bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def _column_guessed_by_some_entry(column: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(_entries_to_guess_from(column), pattern)).as_py())


def _guessed_as_long_codes(column: Any) -> bool:
    """Whether all entries are digits, and as many of them, two or more."""
    return _guessed_by_every_entry(column, "^[0-9]{2,}$") and bool(
        pc.count_distinct(pc.utf8_length(_entries_to_guess_from(column))).as_py() == 1
    )


def _guessed_to_number_records(number: Any, codes: list[str]) -> bool:
    """Whether different whole numbers follow each other, nearly, or have the same number of digits."""
    span = pc.max(number).as_py() - pc.min(number).as_py() + 1
    return bool(span <= 2 * len(codes)) or (len(codes) > 1 and len({len(code.strip()) for code in codes}) == 1)


_NEARLY, _LEAST = 0.8, 5
"""A text column is one of numbers with strays where this share of its entries are numbers, and at least so many."""
_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?$"


def _numbers_guessed_in_column(column: Any) -> tuple[Any, bool, tuple[int, int]]:
    """Return the column as numbers, or None; whether their decimal sign is a comma; and what is none among them."""
    text = _holds_text_to_guess(column)
    trimmed = pc.utf8_trim_whitespace(column) if text else column
    for comma in (False, True) if text else (False,):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            plain = pc.replace_substring(trimmed, ",", ".") if comma else trimmed
            return plain.cast(pa.float64(), safe=False), comma, (0, 0)
    return _numbers_guessed_among_strays(trimmed) if text else (None, False, (0, 0))


def _numbers_guessed_among_strays(text: Any) -> tuple[Any, bool, tuple[int, int]]:
    fits = np.asarray(pc.fill_null(pc.match_substring_regex(text, _NUMBER), fill_value=False), dtype=bool)
    filled = len(text) - text.null_count
    if fits.sum() < max(_LEAST, _NEARLY * filled):
        return None, False, (0, 0)
    known = pc.if_else(pa.array(fits), text, pa.scalar(None, text.type))
    comma = bool(pc.any(pc.match_substring(known, ",")).as_py())
    stray = ~fits & np.asarray(pc.is_valid(text), dtype=bool)
    number = pc.replace_substring(known, ",", ".").cast(pa.float64(), safe=False)
    return number, comma, (int(stray.sum()), int(np.argmax(stray)) + 2)  # the first line names the columns
