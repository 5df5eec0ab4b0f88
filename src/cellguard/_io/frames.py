"""Frames of any library in, the same kind out; CSV and Parquet files.

Inside cellguard a frame is a plain dict of columns: numpy arrays, pyarrow arrays or lists. This module
does not interpret the columns.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cellguard._io.files import MAX_BYTES, decode_to_utf8, open_atomically, open_compressed_atomically, read_bytes
from cellguard._io.workbooks.sheet import is_workbook, read_sheet
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import FormatError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MAX_HEADER",
    "NUMBERS_ARE",
    "build_frame",
    "check_width_of_file",
    "convert_to_numbers",
    "convert_to_texts",
    "detect_frame_library",
    "encode_frame_column",
    "escape_formula",
    "find_repeated_rows",
    "format_csv_column",
    "free_frame_column_name",
    "has_decimal_commas",
    "merge_codes_and_columns",
    "read_csv_header",
    "read_frame",
    "read_frame_columns",
    "refuse_utf16",
    "write_csv",
    "write_parquet",
]  # fmt: skip

MAX_COLUMNS = 5000
"""More columns than any survey has; every column costs time and memory, even if unused."""
MAX_HEADER = 1 << 20
"""Largest length in bytes of the line that names the columns."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that begin a formula in a spreadsheet program."""
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
_TOO_WIDE = "use one row per record and one column per property; keep only the columns that are needed."

Columns = Mapping[str, Any]


def read_frame_columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame (pandas, polars, pyarrow, or a mapping) as pyarrow arrays."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return {name: frame.column(i) for i, name in enumerate(frame.column_names)}
    if isinstance(frame, Mapping):
        return {str(name): _convert_to_arrow(column, str(name)) for name, column in frame.items()}
    import narwhals as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = f"{type(frame).__module__}.{type(frame).__name__}"
        raise InputError(
            f"{kind} is not a frame.", hint="give a pandas, polars or pyarrow frame, or a dict of columns."
        ) from None
    return {str(name): native[name].to_arrow() for name in native.columns}


def _convert_to_arrow(column: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise InputError(f"column {name!r} mixes kinds of values.", hint="a column holds text or numbers.") from None


def find_repeated_rows(columns: Sequence[IntArray], most: int) -> list[tuple[int, int]]:
    """Return some rows with the same entries as an earlier one, as pairs (earlier, later).

    >>> find_repeated_rows([np.array([1, 2, 1]), np.array([5, 5, 5])], 9)
    [(0, 2)]
    """
    rows = np.column_stack(columns)
    order = np.lexsort(rows.T[::-1])
    same = (rows[order[1:]] == rows[order[:-1]]).all(axis=1)
    return list(zip(order[:-1][same][:most].tolist(), order[1:][same][:most].tolist(), strict=True))


def encode_frame_column(column: Any) -> tuple[list[str], IntArray]:
    """Return the distinct codes of a column, in order of appearance, and each row's index among them; -1 for null.

    Whole numbers are codes too, without a decimal point: a column that a missing value turned into floating
    point gives the same codes as before.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else pa.array(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, array)
        whole = pc.all(pc.equal(pc.floor(array), array)).as_py()
        array = array.cast(pa.int64()) if whole in (True, None) else array
    if not pa.types.is_string(array.type):
        array = array.cast(pa.string())
    encoded = array.dictionary_encode()
    index = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return cast("list[str]", encoded.dictionary.to_pylist()), index


def convert_to_texts(column: Any) -> list[str]:
    """Return a column as text; null becomes empty."""
    codes, index = encode_frame_column(column)
    return [codes[i] if i >= 0 else "" for i in index.tolist()]


def convert_to_numbers(column: Any, name: str) -> FloatArray:
    """Return a column as numbers; null becomes NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column)
    try:
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int8())
        if pa.types.is_null(array.type) or pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            text = pc.utf8_trim_whitespace(array.cast(pa.string()))
            array = pc.if_else(pc.equal(text, ""), None, text)
            array = pc.replace_substring(array, ",", ".") if has_decimal_commas(array) else array
        array = array.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise InputError(f"column {name!r} holds something that is not a number.", hint=NUMBERS_ARE) from None
    flat = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.array(flat.to_numpy(zero_copy_only=False), dtype=np.float64)


NUMBERS_ARE = (
    "digits and a decimal sign, such as 1234.5 or 1234,5: no thousands separators, units or marks; "
    "a cell without data has no row, a zero is 0."
)
"""Hint for a column of numbers that holds anything else."""


def has_decimal_commas(text: Any) -> bool:
    """Return whether numbers have decimal commas that cannot separate thousands: 1,5 but neither 1,234 nor 1.5,0.

    >>> import pyarrow as pa
    >>> [has_decimal_commas(pa.array(x)) for x in (["1,5", "2"], ["1,234", "2"], ["1.5", "2"], ["1,234", "1,5"])]
    [True, False, False, True]
    """
    import pyarrow.compute as pc

    known = text.drop_null()
    if not len(known) or not pc.all(pc.match_substring_regex(known, r"^[+-]?[0-9]*(,[0-9]+)?$")).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(known, r",([0-9]{1,2}|[0-9]{4,})$|^[+-]?(0|[0-9]{4,}),")).as_py())


def detect_frame_library(frame: Any) -> str | None:
    """Return the name of the library of a frame; None for anything else, such as a dict of columns or a file.

    >>> detect_frame_library({"x": [1]}) is None
    True
    """
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True, pass_through=True)
    return str(native.implementation.value) if isinstance(native, nw.DataFrame) else None


def build_frame(columns: Columns, like: Any = None) -> Any:
    """Return the columns as a frame of the same kind as `like`, a frame or the name of a library (else pyarrow)."""
    import pyarrow as pa

    table = pa.table({name: _prepare_for_arrow(column) for name, column in columns.items()})
    if like is None or isinstance(like, (pa.Table, Mapping)):
        return table
    import narwhals as nw

    backend: Any = like if isinstance(like, str) else nw.get_native_namespace(like)
    if backend in ("pyarrow", pa):
        return table
    return nw.from_arrow(table, backend=backend).to_native()


def _prepare_for_arrow(column: Any) -> Any:
    """Return the column in a form that pyarrow takes; NaN means no entry."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return pa.array(column, mask=np.isnan(column))
    if isinstance(column, np.ndarray) and column.dtype.kind in "US":
        return pa.array(column.tolist(), type=pa.string())
    return column


def read_frame(path: str | Path, *, sheet: str | None = None) -> dict[str, Any]:
    """Read a ``.csv``, ``.csv.gz``, ``.parquet`` or ``.xlsx`` file into columns (pyarrow arrays).

    Columns of a CSV file stay text: only the caller knows whether ``01`` is a code or a number. In a
    workbook, read the first sheet unless another is named.
    """
    import pyarrow as pa

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file.", hint="check the name and the folder.")
    if is_workbook(path):
        return read_sheet(path, sheet)
    try:
        if path.suffix.lower() == ".parquet":
            table = _read_parquet(path)
            table.validate(full=True)  # text that is not UTF-8 would be noticed only when a value is used
            return read_frame_columns(table)
        return _read_csv(path)
    except UnicodeDecodeError:
        raise FormatError.at(path, None, "is not text in UTF-8.", hint="save it again as UTF-8.") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, OSError) as error:
        detail = str(error).splitlines()[0].partition(":")[0] if isinstance(error, OSError) else "malformed"
        raise FormatError.at(path, None, f"cannot be read ({detail[:60]}).", hint="is the file complete?") from None


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        about = file.metadata
        check_width_of_file(path, about.num_columns)
        unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        unpacked = max(unpacked, 8 * about.num_rows * about.num_columns)  # a million equal values are packed as one
        if unpacked > MAX_BYTES:
            raise FormatError.at(path, None, f"unpacks to more than {MAX_BYTES} bytes.")
        return file.read()


def _read_csv(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as pacsv

    raw = read_bytes(path)
    refuse_utf16(path, raw[:2])
    raw = decode_to_utf8(raw)
    if not raw.strip():
        raise FormatError.at(path, None, "the file is empty.", hint="the first line names the columns.")
    if b"\0" in raw[:4096]:
        raise FormatError.at(
            path, None, "is a binary file.", hint="a text file with comma-separated columns is needed."
        )
    names, delimiter = read_csv_header(path, raw[: MAX_HEADER + 1])
    options = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    try:
        table = pacsv.read_csv(
            pa.BufferReader(raw),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=options,
        )
    except pa.ArrowInvalid:
        refuse_ragged_csv(path, raw, len(names), delimiter)
        raise
    if table.column_names != names:
        raise FormatError.at(path, 1, "the first line does not name the columns.")
    return read_frame_columns(table)


def refuse_utf16(path: str | Path, head: bytes) -> None:
    """Refuse UTF-16, which spreadsheet programs call Unicode text, by the first bytes of a file."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FormatError.at(path, None, "is text in UTF-16.", hint="save it again as CSV in UTF-8, or as .xlsx.")


def refuse_ragged_csv(path: Path, raw: bytes, width: int, delimiter: str) -> None:
    """Refuse a file in which a line has too few or too many columns, and name the line."""
    rows = csv.reader(io.StringIO(raw.decode("utf-8-sig", "replace"), newline=""), delimiter=delimiter)
    try:
        for row in rows:
            if row and len(row) != width:
                raise FormatError.at(
                    path,
                    rows.line_num,
                    f"{len(row)} column{'' if len(row) == 1 else 's'}; the first line names {width}.",
                    hint=f"columns are separated by {_SIGNS[delimiter]}; put an entry that contains one in quotes.",
                )
    except csv.Error:
        return


_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def read_csv_header(path: str | Path, head: bytes) -> tuple[list[str], str]:
    """Return the names of the columns and their separator, from the first bytes of a CSV file.

    `head` is longer than :data:`MAX_HEADER` if the file is: a first line that does not end within it is no header.
    """
    line = head.partition(b"\n")[0].rstrip(b"\r")
    if len(line) > MAX_HEADER:
        raise FormatError.at(path, 1, f"the first line is longer than {MAX_HEADER:,} bytes.", hint=_TOO_WIDE)
    header = line.decode("utf-8-sig", "replace")
    delimiter = max(",;\t", key=header.count)
    whole = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")  # a name in quotes may have a line break
    try:
        names = next(csv.reader(whole, delimiter=delimiter))
    except (csv.Error, StopIteration):
        raise FormatError.at(path, 1, "the first line does not name the columns.") from None
    check_width_of_file(path, len(names))
    if len(set(names)) != len(names):
        raise FormatError.at(path, 1, "two columns have the same name.")
    return names, delimiter


def check_width_of_file(path: str | Path, columns: int) -> None:
    """Refuse a file with more columns than any survey has: each costs time and memory, even if unused."""
    if columns > MAX_COLUMNS:
        raise FormatError.at(path, 1, f"{columns:,} columns; at most {MAX_COLUMNS:,} are possible.", hint=_TOO_WIDE)


def write_parquet(columns: Columns, path: str | Path, *, private: bool = False) -> None:
    """Write the columns as a Parquet file, atomically."""
    import pyarrow.parquet as pq

    table = build_frame(columns)
    with open_atomically(path, private=private) as stream:
        pq.write_table(table, stream, compression="zstd")


def merge_codes_and_columns(codes: Columns, others: Columns) -> dict[str, Any]:
    """Return columns of codes and other columns together; rename another column that has the name of a dimension.

    >>> list(merge_codes_and_columns({"Value": ["a"]}, {"status": ["published"], "value": [1]}))
    ['Value', 'status', 'value_']
    """
    out = dict(codes)
    taken = {name.lower() for name in codes}
    for name, column in others.items():
        out[free_frame_column_name(name, taken)] = column
    return out


def free_frame_column_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken (lower-case names), with as many ``_`` appended as needed; mark it as taken."""
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet program reads as a formula: put an apostrophe first where it could.

    Numbers stay unchanged, even with a sign.

    >>> [escape_formula(text) for text in ("=1+1", "@sum", "-1.5", "C10")]
    ["'=1+1", "'@sum", '-1.5', 'C10']
    """
    formula = text.lstrip("'").startswith(_FORMULA)  # escape an escaped one again: different texts stay different
    return f"'{text}" if formula and not _NUMBER.fullmatch(text) else text


def write_csv(columns: Columns, path: str | Path, *, guard: bool = False, private: bool = False) -> None:
    """Write the columns as a CSV file (gzipped when the name ends in ``.gz``), atomically, with all digits.

    Parameters
    ----------
    guard
        For files that people open in a spreadsheet program: escape texts with :func:`escape_formula`.
    private
        Only the owner may read the file.
    """
    text_of = escape_formula if guard else str
    names = [text_of(name) for name in columns]
    texts = [format_csv_column(column, text_of) for column in columns.values()]
    # the csv module does not quote a single carriage return, and readers take it for the end of a line
    returns = any("\r" in text for column in (names, *texts) for text in column)
    with open_compressed_atomically(path, private=private) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
        writer.writerow(names)
        writer.writerows(zip(*texts, strict=True))
        text.flush()
        text.detach()


def format_csv_column(column: Any, text_of: Callable[[str], str] = str) -> list[str]:
    """Return numbers in their shortest exact form, whole ones without a decimal point, and an empty text for NaN."""
    if not (isinstance(column, np.ndarray) and column.dtype.kind in "fiu"):
        listed = column.tolist() if hasattr(column, "tolist") else column
        return ["" if v is None else text_of(str(v)) for v in listed]
    whole = (np.floor(column) == column) & (np.abs(column) < 2**53)
    if whole.all():
        return [str(v) for v in column.astype(np.int64).tolist()]
    return [
        str(int(v)) if w else "" if isnan(v) else repr(v) for v, w in zip(column.tolist(), whole.tolist(), strict=True)
    ]
