"""Words, quoted text and numbers, as tau-ARGUS writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from cellguard._io.trees.outline import read_text
from cellguard.exceptions import FormatError

__all__ = ["parse_float", "parse_int", "quote_word", "read_lines", "split_words", "strip_quotes"]

_WORD = re.compile(r'"([^"]*)"|(\S+)')


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Read a text file (UTF-8, else Latin-1) and return its lines that are not blank, with their numbers.

    Extra carriage returns are ignored: some editors leave two of them.
    """
    text = read_text(path).replace("\r\n", "\n").replace("\r", "")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def split_words(text: str) -> list[str]:
    """Split text at blanks; quoted text is one word.

    >>> split_words('Region 12  2 "99" " 9"')
    ['Region', '12', '2', '99', ' 9']
    """
    return [m.group(1) if m.group(1) is not None else m.group(2) for m in _WORD.finditer(text)]


def strip_quotes(text: str) -> str:
    """Return text without the quotes around it, and without blanks around the quotes."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def quote_word(text: str) -> str:
    """Return text in quotes; the files of tau-ARGUS cannot hold a quote inside."""
    return f'"{text}"'


def parse_int(text: str, path: str | Path, line: int, what: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise FormatError.at(path, line, f"{what} is not a whole number.") from None


def parse_float(text: str, path: str | Path, line: int, what: str) -> float:
    """Read a number, with a point or a comma."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError.at(path, line, f"{what} is not a number.")
    return number
