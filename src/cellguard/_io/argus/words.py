"""Words, quoted text and numbers, as the files of tau-ARGUS write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from cellguard._io.outline import read_text
from cellguard.exceptions import FormatError

__all__ = ["argus_words", "float_of_argus_word", "int_of_word", "lines_of_argus_file", "quoted_word", "unquoted_word"]

_WORD = re.compile(r'"([^"]*)"|(\S+)')


def lines_of_argus_file(path: str | Path) -> Iterator[tuple[int, str]]:
    """Read a text file (UTF-8, else Latin-1) and return its lines that are not blank, with their numbers.

    A carriage return more or less does not count: some editors leave two of them.
    """
    text = read_text(path).replace("\r\n", "\n").replace("\r", "")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def argus_words(text: str) -> list[str]:
    """Split text at blanks; quoted text is one word.

    >>> argus_words('Region 12  2 "99" " 9"')
    ['Region', '12', '2', '99', ' 9']
    """
    return [m.group(1) if m.group(1) is not None else m.group(2) for m in _WORD.finditer(text)]


def unquoted_word(text: str) -> str:
    """Return text without the quotes around it, and without blanks around those."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def quoted_word(text: str) -> str:
    """Return text in quotes; the files of tau-ARGUS cannot hold a quote inside."""
    return f'"{text}"'


def int_of_word(text: str, path: str | Path, line: int, what: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise FormatError.at(path, line, f"{what} is not a whole number.") from None


def float_of_argus_word(text: str, path: str | Path, line: int, what: str) -> float:
    """Read a number, with a point or a comma."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError.at(path, line, f"{what} is not a number.")
    return number
