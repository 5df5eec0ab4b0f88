"""The JJ format: a raw linear system, as CSPLIB and tau-ARGUS write it.

::

    0
    N
    i value cost status lb ub lpl upl spl      N lines, i is 0-based
    M
    rhs K : c1 (s1) c2 (s2) ...                M lines; the total has -1, its parts 1

Status: s safe, u unsafe (sensitive), m manually unsafe, z fixed. Whitespace is free.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellguard._io.files import open_compressed_atomically, read_bytes
from cellguard._io.frames import format_csv_column
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import FormatError

__all__ = ["read_jj", "write_jj"]

_STATUS = ("s", "u", "m", "z")
# One pass turns the grammar into plain numbers, so that one C routine reads them all.
_TO_NUMBERS = bytes.maketrans(b"sumzSUMZ():", b"01230123   ")
_FIELDS = 9
_BLANK, _WORD, _LETTER, _COLON, _OPEN, _CLOSE = range(6)
# The class of each byte in the grammar; the C routine reads the numbers themselves.
_KINDS = bytearray([_WORD]) * 256
for _bytes, _kind in ((b" \t\n\r\v\f", _BLANK), (b"sumzSUMZ", _LETTER), (b":", _COLON), (b"(", _OPEN), (b")", _CLOSE)):
    for _byte in _bytes:
        _KINDS[_byte] = _kind
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf", re.ASCII)
_PARTS = re.compile(r"(\s*[^\s():]+\s*\(\s*[^\s():]+\s*\))*\s*", re.ASCII)
_HINT = "a JJ file is: 0, N, N cell lines of 9 fields, M, M relation lines 'rhs K : cell (sign) ...'."


def read_jj(path: str | Path) -> dict[str, Any]:
    """Parse a JJ file into the arrays of a table."""
    text = read_bytes(path)
    if not text.strip():
        raise FormatError.at(path, None, "the file is empty.", hint=_HINT)
    if text.startswith(b"\x1f\x8b"):
        raise FormatError.at(path, None, "is a gzip file.", hint="give it a name that ends in .gz.")
    if b"\0" in text:
        raise FormatError.at(path, None, "is a binary file.", hint=_HINT)
    numbers = _parse_numbers(text)
    parsed = None if numbers is None else _build_table(numbers, text)
    if parsed is None:
        raise _find_first_mistake(path, text)
    return parsed


def _parse_numbers(text: bytes) -> FloatArray | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns, then stops, at text it cannot read
            return np.fromstring(text.translate(_TO_NUMBERS).decode("ascii"), dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning, UnicodeDecodeError):
        return None


def _read_count(number: float, most: float) -> int | None:
    """Return the number as a count of items of which at most `most` fit into the file."""
    return int(number) if number == np.floor(number) and 0 <= number <= most else None


def _build_table(x: FloatArray, text: bytes) -> dict[str, Any] | None:
    if len(x) < 3 or x[0] != 0:
        return None
    n = _read_count(x[1], (len(x) - 3) / _FIELDS)
    if n is None:
        return None
    cells = x[2 : 2 + _FIELDS * n].reshape(n, _FIELDS)
    at = 2 + _FIELDS * n
    m = _read_count(x[at], (len(x) - at) / 2)
    if m is None:
        return None
    start = _find_relation_starts(x, at + 1, m)
    if start is None:
        return None
    lengths = x[start + 1].astype(np.int64)
    if not _check_grammar(text, n, lengths):
        return None
    inside = np.ones(len(x), bool)
    inside[: at + 1] = False
    inside[start] = inside[start + 1] = False
    pairs = x[inside]
    index, sign = pairs[0::2], pairs[1::2]
    status = cells[:, 3]
    valid = (
        (cells[:, 0] == np.arange(n)).all()
        and np.isin(status, range(len(_STATUS))).all()
        and (index == np.floor(index)).all()
        and ((index >= 0) & (index < n)).all()
        and np.isfinite(cells[:, [1, 2, 6, 7, 8]]).all()
        and not np.isnan(cells[:, 4:6]).any()
        and np.isfinite(x[start]).all()
        and np.isfinite(sign).all()
    )
    if not valid:
        return None
    from scipy.sparse import csr_array

    indptr = np.concatenate([[0], np.cumsum(lengths)])
    T = csr_array((sign.copy(), index.astype(np.int32), indptr), shape=(m, n))
    T.sum_duplicates()
    sensitive = (status == 1) | (status == 2)
    columns = {name: cells[:, i].copy() for name, i in (("values", 1), ("weights", 2), ("lb", 4), ("ub", 5))}
    levels = {name: np.where(sensitive, cells[:, i], 0.0) for name, i in (("lower", 6), ("upper", 7), ("sliding", 8))}
    rhs = x[start].copy()
    return {**columns, **levels, "relations": T, "rhs": rhs, "fixed": status == 3, "sensitive": sensitive}


def _find_relation_starts(x: FloatArray, at: int, m: int) -> IntArray | None:
    """Return where each relation begins; its length follows its right-hand side."""
    starts = np.empty(m, np.int64)
    end = len(x)
    for row in range(m):
        if at + 1 >= end:
            return None
        k = _read_count(x[at + 1], (end - at) / 2)
        if k is None:
            return None
        starts[row] = at
        at += 2 + 2 * k
    return starts if at == end else None


def _check_grammar(text: bytes, n: int, lengths: IntArray) -> bool:
    """Check that words, status letters, colons and brackets are where the grammar requires them.

    The numbers alone would not distinguish ``1s`` from ``10``, or a misplaced bracket from a blank.
    """
    kinds = np.frombuffer(text.translate(_KINDS), np.uint8)
    wordy = (kinds == _WORD) | (kinds == _LETTER)
    first = wordy.copy()
    first[1:] &= ~wordy[:-1]
    marks = np.flatnonzero(first | (kinds >= _COLON))
    found = kinds[marks]
    letters = marks[found == _LETTER]
    cells = np.full((n, _FIELDS), _WORD, np.uint8)
    cells[:, 3] = _LETTER
    expected = np.concatenate([[_WORD, _WORD], cells.ravel(), [_WORD], _list_relation_marks(lengths)])
    return (
        np.array_equal(found, expected)
        and np.count_nonzero(kinds == _LETTER) == n
        and bool((kinds[letters + 1] == _BLANK).all())  # a letter is never last: the relations follow
    )


def _list_relation_marks(lengths: IntArray) -> NDArray[np.uint8]:
    """Return the kinds of the marks of relations: ``rhs K :``, then ``cell ( sign )`` for each part."""
    size = 3 + 4 * lengths
    start = np.cumsum(size) - size
    marks = np.zeros(int(size.sum()), np.uint8)
    marks[start] = marks[start + 1] = _WORD
    marks[start + 2] = _COLON
    marks[marks == 0] = np.tile(np.array([_WORD, _OPEN, _WORD, _CLOSE], np.uint8), int(lengths.sum()))
    return marks


def _find_first_mistake(path: str | Path, text: bytes) -> FormatError:
    """Read the file again, line by line, to find its first mistake.

    Messages repeat no number of the file: if a line is missing, a value may be in the place of a count.
    """

    def build_error(line: int, what: str) -> FormatError:
        return FormatError.at(path, line, what, hint=_HINT)

    lines = [(i, s.decode("latin-1")) for i, s in enumerate(text.split(b"\n"), 1) if s.strip()]
    if lines[0][1].strip() != "0":
        return build_error(lines[0][0], "the first line of a JJ file is 0.")
    n = _parse_whole_number(lines[1][1].strip()) if len(lines) > 1 else None
    if n is None:
        return build_error(lines[min(1, len(lines) - 1)][0], "the number of cells is missing or not a whole number.")
    if n > len(text):
        return build_error(lines[1][0], "the file claims more cells than it can hold.")
    for want, (no, line) in enumerate(lines[2 : 2 + n]):
        if what := _check_cell_tokens(line.split(), want):
            return build_error(no, what)
    if len(lines) < 3 + n:
        return build_error(lines[-1][0], "the file ends before the number of relations; is it cut short?")
    no, line = lines[2 + n]
    m = _parse_whole_number(line.strip())
    if m is None:
        return build_error(no, "the number of relations is missing or not a whole number.")
    rest = lines[3 + n :]
    for no, line in rest[:m]:
        if what := _check_relation_tokens(line, n):
            return build_error(no, what)
    if len(rest) != m:
        return build_error(
            rest[-1][0] if rest else no, f"the file has {len(rest)} relations, but claims another number."
        )
    return FormatError.at(path, None, "does not follow the grammar of JJ.", hint=_HINT)


def _parse_whole_number(token: str) -> int | None:
    """Return a whole number small enough for a file to hold."""
    return int(token) if token.isascii() and token.isdecimal() and len(token) <= 15 else None


def _is_number_token(token: str, *, finite: bool = True) -> bool:
    return bool(_NUMBER.fullmatch(token)) and not (finite and np.isinf(float(token)))


def _check_cell_tokens(tokens: list[str], want: int) -> str | None:
    if len(tokens) != _FIELDS:
        return f"a cell line has {_FIELDS} fields, this one {len(tokens)}."
    if tokens[0] != str(want):
        return f"cell {want} is expected here: cells are numbered from 0 without gaps."
    if tokens[3].lower() not in _STATUS:
        return f"the status is none of {', '.join(_STATUS)}."
    names = ("value", "cost", "lb", "ub", "lpl", "upl", "spl")
    for name, token in zip(names, tokens[1:3] + tokens[4:], strict=True):
        if not _is_number_token(token, finite=name not in ("lb", "ub")):
            return f"the {name} is not a {'finite ' if name not in ('lb', 'ub') else ''}number."
    return None


def _check_relation_tokens(line: str, n: int) -> str | None:
    head, colon, tail = line.partition(":")
    heads = head.split()
    if not colon or len(heads) != 2 or not _is_number_token(heads[0]) or _parse_whole_number(heads[1]) is None:
        return "a relation line starts with 'rhs K :', a finite number and a whole one."
    if not _PARTS.fullmatch(tail):
        return "a part of a relation is written 'cell (sign)'."
    tokens = tail.replace("(", " ").replace(")", " ").split()
    if len(tokens) != 2 * int(heads[1]):
        return f"the relation has {len(tokens) // 2} cells, but claims another number."
    index = [_parse_whole_number(token) for token in tokens[0::2]]
    if any(i is None or i >= n for i in index):
        return f"a relation names a cell outside 0..{n - 1}."
    if not all(_is_number_token(token) for token in tokens[1::2]):
        return "a coefficient is not a finite number."
    return None


def write_jj(path: str | Path, fields: dict[str, Any]) -> None:
    """Write the arrays of a table as JJ text (gzipped if the name ends in ``.gz``), atomically, for its owner only."""
    n = len(fields["values"])
    status = np.select([fields["fixed"], fields["sensitive"]], ["z", "u"], "s").tolist()
    before = [format_csv_column(fields[name]) for name in ("values", "weights")]
    after = [format_csv_column(fields[name]) for name in ("lb", "ub", "lower", "upper", "sliding")]
    rows = zip(map(str, range(n)), *before, status, *after, strict=True)
    T = fields["relations"]
    terms = [f"{c} ({s})" for c, s in zip(T.indices.tolist(), format_csv_column(T.data), strict=True)]
    ends = T.indptr.tolist()
    relations = (
        f"{b} {end - begin} : {' '.join(terms[begin:end])}\n"
        for b, begin, end in zip(format_csv_column(fields["rhs"]), ends[:-1], ends[1:], strict=True)
    )
    with open_compressed_atomically(path, private=True) as stream:
        stream.write(f"0\n{n}\n".encode())
        stream.write(("\n".join(map(" ".join, rows)) + "\n").encode() if n else b"")
        stream.write(f"{T.shape[0]}\n".encode())
        stream.write("".join(relations).encode())
