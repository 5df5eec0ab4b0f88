"""Sheets of Excel workbooks, read as columns. Formulas count as the values that the spreadsheet program stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from cellguard._io.workbooks.cross import unfold_cross_table
from cellguard.exceptions import FormatError, InputError, suggest_names

__all__ = ["import_openpyxl", "is_workbook", "read_sheet"]

_MAX_BYTES = 1 << 28
_LOOKED_AT = 30
"""Number of rows at the top that may name the columns."""


def is_workbook(path: str | Path) -> bool:
    """Return whether a file name is that of a workbook."""
    return str(path).lower().endswith((".xlsx", ".xlsm"))


def import_openpyxl() -> Any:
    """Return the library that reads workbooks; raise an error with the way to install it if missing."""
    try:
        import openpyxl as library
    except ImportError:
        raise InputError("workbooks need the library openpyxl.", hint="pip install 'cellguard[excel]'") from None
    return library


def read_sheet(path: str | Path, sheet: str | None = None) -> dict[str, Any]:
    """Read a sheet (by default the first with any cells) into columns (pyarrow arrays).

    The first of the top rows with the most entries names the columns: titles above it are skipped. A cross table, with
    codes in its columns, becomes one row per cell.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_BYTES:
        raise FormatError.at(path, None, f"is larger than {_MAX_BYTES} bytes.")
    try:
        book = import_openpyxl().load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError):
        raise FormatError.at(path, None, "is not a workbook.", hint="save it again as .xlsx.") from None
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(f"{path}: there is no sheet {sheet!r}.", hint=suggest_names(sheet, book.sheetnames))
        chosen = [book[sheet]] if sheet is not None else book.worksheets
        for one in chosen:
            rows = [list(row) for row in one.iter_rows(values_only=True)]
            rows = [row for row in rows if any(_is_filled_workbook_cell(v) for v in row)]
            if rows:
                return _convert_rows_to_columns(path, unfold_cross_table([[*row] for row in rows]) or rows)
    finally:
        book.close()
    raise FormatError.at(path, None, "has no cells.", hint="the first row names the columns.")


def _is_filled_workbook_cell(value: Any) -> bool:
    return value is not None and str(value).strip() != ""


def _convert_rows_to_columns(path: Path, rows: Sequence[list[Any]]) -> dict[str, Any]:
    filled = [sum(map(_is_filled_workbook_cell, row)) for row in rows[:_LOOKED_AT]]
    head = filled.index(max(filled))
    places = [i for i, name in enumerate(rows[head]) if _is_filled_workbook_cell(name)]
    names = [str(rows[head][i]).strip() for i in places]
    if len(set(names)) != len(names):
        raise FormatError.at(path, head + 1, "two columns have the same name.")
    body = rows[head + 1 :]
    return {
        name: _convert_sheet_column([row[i] if i < len(row) else None for row in body])
        for name, i in zip(names, places, strict=True)
    }


def _convert_sheet_column(values: Sequence[Any]) -> Any:
    """Return numbers if all entries are numbers, else text; whole numbers have no decimal point in text."""
    import pyarrow as pa

    kept = [v if _is_filled_workbook_cell(v) else None for v in values]
    if all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in kept):
        return pa.array(kept, type=pa.float64() if any(isinstance(v, float) for v in kept) else None)
    return pa.array([None if v is None else _format_entry(v) for v in kept], type=pa.string())


def _format_entry(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
