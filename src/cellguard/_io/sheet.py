"""Sheets of Excel workbooks, read as columns. Formulas count as the values that the spreadsheet program stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from cellguard.exceptions import FormatError, InputError, did_you_mean

__all__ = ["is_workbook", "openpyxl", "read_sheet"]

_MAX_BYTES = 1 << 28
_LOOKED_AT = 30
"""Rows at the top among which the one with the names of the columns is looked for."""


def is_workbook(path: str | Path) -> bool:
    """Say whether a name is that of a workbook."""
    return str(path).lower().endswith((".xlsx", ".xlsm"))


def openpyxl() -> Any:
    """Return the library that reads workbooks, or say how to get it."""
    try:
        import openpyxl as library
    except ImportError:
        raise InputError("workbooks need the library openpyxl.", hint="pip install 'cellguard[excel]'") from None
    return library


def read_sheet(path: str | Path, sheet: str | None = None) -> dict[str, Any]:
    """Read a sheet, the first with any cells unless named, into columns (pyarrow arrays).

    The first row with at least as many entries as any of the first rows names the columns: titles above it are skipped.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_BYTES:
        raise FormatError.at(path, None, f"is larger than {_MAX_BYTES} bytes.")
    try:
        book = openpyxl().load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError):
        raise FormatError.at(path, None, "is no workbook.", hint="save it again as .xlsx.") from None
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(f"{path}: there is no sheet {sheet!r}.", hint=did_you_mean(sheet, book.sheetnames))
        chosen = [book[sheet]] if sheet is not None else book.worksheets
        for one in chosen:
            rows = [list(row) for row in one.iter_rows(values_only=True)]
            rows = [row for row in rows if any(_is_filled_workbook_cell(v) for v in row)]
            if rows:
                return _columns_of_sheet_rows(path, rows)
    finally:
        book.close()
    raise FormatError.at(path, None, "has no cells.", hint="the first row names the columns.")


def _is_filled_workbook_cell(value: Any) -> bool:
    return value is not None and str(value).strip() != ""


def _columns_of_sheet_rows(path: Path, rows: Sequence[list[Any]]) -> dict[str, Any]:
    filled = [sum(map(_is_filled_workbook_cell, row)) for row in rows[:_LOOKED_AT]]
    head = filled.index(max(filled))
    places = [i for i, name in enumerate(rows[head]) if _is_filled_workbook_cell(name)]
    names = [str(rows[head][i]).strip() for i in places]
    if len(set(names)) != len(names):
        raise FormatError.at(path, head + 1, "two columns have the same name.")
    body = rows[head + 1 :]
    return {
        name: _arrow_column_of_sheet([row[i] if i < len(row) else None for row in body])
        for name, i in zip(names, places, strict=True)
    }


def _arrow_column_of_sheet(values: Sequence[Any]) -> Any:
    """Return numbers where all entries are numbers, else text; whole numbers have no point in text."""
    import pyarrow as pa

    kept = [v if _is_filled_workbook_cell(v) else None for v in values]
    if all(v is None or (isinstance(v, int | float) and not isinstance(v, bool)) for v in kept):
        return pa.array(kept, type=pa.float64() if any(isinstance(v, float) for v in kept) else None)
    return pa.array([None if v is None else _workbook_entry_as_text(v) for v in kept], type=pa.string())


def _workbook_entry_as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
