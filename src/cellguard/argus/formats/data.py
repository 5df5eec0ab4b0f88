"""``.asc``, ``.csv`` and ``.tab``: records or cells, in columns of fixed width or with separators.

Columns are returned as text. The index of a row gives its line, so no blank lines are
allowed inside. No message shows the content of a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from cellguard._io.files import decode_to_utf8, read_bytes, write_lines
from cellguard._types import FloatArray, IntArray
from cellguard.argus.formats.rda import Metadata, Variable
from cellguard.exceptions import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["parse_numbers", "read_argus_columns", "strip_codes", "write_argus_columns"]


def read_argus_columns(path: str | Path, metadata: Metadata, names: Sequence[str] | None = None) -> dict[str, pa.Array]:
    """Read the named columns of a data file (default: all) as text, in the order of the file."""
    wanted = [metadata[name] for name in names] if names is not None else list(metadata.variables)
    raw = decode_to_utf8(read_bytes(path).removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"").rstrip(b"\n\x1a"))
    if not raw:
        raise FormatError.at(path, None, "the file is empty.")
    if metadata.separator:
        return _read_separated_columns(path, raw, metadata, wanted)
    return _read_fixed_width_columns(
        path, raw, wanted, max((v.start or 1) + (v.width or 1) - 1 for v in metadata.variables)
    )


def _read_fixed_width_columns(
    path: str | Path, raw: bytes, wanted: Sequence[Variable], needed: int
) -> dict[str, pa.Array]:
    import pyarrow as pa

    data: NDArray[Any] = np.frombuffer(raw, dtype=np.uint8)
    if not raw.isascii():  # columns are counted in characters
        data = np.array(list(raw.decode("utf-8")), dtype="U1").view(np.uint32)
    ends = np.append(np.flatnonzero(data == ord("\n")), len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    _check_fixed_widths(path, data, starts, lengths, needed)
    columns = {}
    kind = "S" if data.dtype == np.uint8 else "U"
    for v in wanted:
        first, width = cast("int", v.start) - 1, cast("int", v.width)
        block = data[starts[:, None] + first + np.arange(width)]
        texts = np.ascontiguousarray(block).view(f"{kind}{width}").ravel()
        columns[v.name] = pa.array(texts.astype(f"U{width}"), type=pa.string())
    return columns


def _check_fixed_widths(path: str | Path, data: NDArray[Any], starts: IntArray, lengths: IntArray, needed: int) -> None:
    longest = max(needed, int(lengths[0]))
    wrong = np.flatnonzero((lengths < needed) | (lengths > longest))
    for row in wrong:
        # editors may add or remove blanks at the end of a line; anything else is a broken record
        extra = data[starts[row] + longest : starts[row] + lengths[row]]
        if lengths[row] < needed or (extra != ord(" ")).any():
            raise FormatError.at(
                path,
                int(row) + 1,
                f"the line has {lengths[row]} characters; {needed} are needed, the first line has {lengths[0]}.",
                hint="was a record broken into two lines, or is this the wrong .rda file?",
            )


def _read_separated_columns(
    path: str | Path, raw: bytes, metadata: Metadata, wanted: Sequence[Variable]
) -> dict[str, pa.Array]:
    import pyarrow as pa
    from pyarrow import csv as pacsv

    names = [v.name for v in metadata.variables]
    if len(metadata.separator) != 1:
        raise FormatError.at(path, None, "the separator must be a single character.")
    try:
        table = pacsv.read_csv(
            pa.BufferReader(raw),
            read_options=pacsv.ReadOptions(column_names=names),
            parse_options=pacsv.ParseOptions(delimiter=metadata.separator, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                include_columns=[v.name for v in wanted],
            ),
        )
    except pa.ArrowInvalid:
        raise _find_wrong_line(path, raw, metadata.separator, len(names)) from None
    return {v.name: table.column(v.name).combine_chunks() for v in wanted}


def _find_wrong_line(path: str | Path, raw: bytes, separator: str, needed: int) -> FormatError:
    """Find the first line with the wrong number of columns; the message does not show its content."""
    import csv

    rows = csv.reader(raw.decode("utf-8").split("\n"), delimiter=separator)
    for row in rows:
        if len(row) != needed:
            return FormatError.at(
                path, rows.line_num, f"the line has {len(row)} columns; the metadata lists {needed} variables."
            )
    return FormatError.at(path, None, "cannot be split into columns.", hint="is a quote left open?")


def strip_codes(column: pa.Array) -> pa.Array:
    """Return codes without padding blanks."""
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(column)


def parse_numbers(column: pa.Array, path: str | Path, variable: Variable) -> FloatArray:
    """Return numbers, written with a point or a comma; NaN for blanks and for the missing codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = strip_codes(column)
    known = pc.not_equal(text, "")
    for code in variable.missing:
        known = pc.and_(known, pc.not_equal(text, code.strip()))
    text = pc.replace_substring(pc.if_else(known, text, None), ",", ".")
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:
        raise _build_number_error(path, text.to_pylist(), variable.name) from None
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _build_number_error(path: str | Path, texts: Sequence[str | None], name: str) -> FormatError:
    for row, text in enumerate(texts, 1):
        try:
            float(text or 0)
        except ValueError:
            return FormatError.at(path, row, f"variable {name!r} is not a number here.")
    return FormatError.at(path, None, f"variable {name!r} holds something that is not a number.")


def write_argus_columns(path: str | Path, metadata: Metadata, columns: Mapping[str, Sequence[str]]) -> None:
    """Write text columns with separators atomically, in the order of the metadata."""
    rows = zip(*(columns[v.name] for v in metadata.variables), strict=True)
    write_lines(path, map(metadata.separator.join, rows))
