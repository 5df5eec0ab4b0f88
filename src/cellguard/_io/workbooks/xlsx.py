"""XLSX files, written plainly: the same cells give the same bytes, and no text is ever read as a formula."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from cellguard._io.files import open_atomically

__all__ = ["STYLES", "write_xlsx"]

STYLES = ("plain", "text", "head", "primary", "secondary", "changed", "warning")
"""Styles of a cell; `text` and the styles after it never start a formula."""
_FILLS = {"primary": "F4B6A6", "secondary": "F9E0A2", "changed": "CFE3F5", "warning": "D62728", "head": "E8EAED"}
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_MAX_ROWS = 1_048_576

Row = Sequence[tuple[Any, str]]


def write_xlsx(path: str | Path, sheets: Mapping[str, Iterable[Row]]) -> None:
    """Write sheets of rows of (value, style), atomically.

    Text is stored as text with the mark that spreadsheet programs give to a leading apostrophe, so
    that a code such as ``=cmd()`` stays a text even after the cell is edited; NaN and None are empty.
    """
    names = list(sheets)
    with open_atomically(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in _build_package_parts(names).items():
            _store_xlsx_part(archive, name, content)
        for number, rows in enumerate(sheets.values(), start=1):
            _store_xlsx_part(archive, f"xl/worksheets/sheet{number}.xml", _render_sheet(rows))


def _store_xlsx_part(archive: zipfile.ZipFile, name: str, content: str) -> None:
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))  # no time stamp: the same cells give the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content.encode())


def _build_package_parts(names: Sequence[str]) -> dict[str, str]:
    """Return the parts of the package around the sheets."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    numbers = range(1, len(names) + 1)
    sheets = "".join(
        f'<sheet name="{title}" sheetId="{i}" r:id="rId{i}"/>'
        for i, title in zip(numbers, _choose_sheet_titles(names), strict=True)
    )
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_KIND}.worksheet+xml"/>' for i in numbers
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{_RELS}/worksheet" Target="worksheets/sheet{i}.xml"/>' for i in numbers
    )
    styles = f'<Relationship Id="rId{len(names) + 1}" Type="{_RELS}/styles" Target="styles.xml"/>'
    return {
        "[Content_Types].xml": f'{head}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_KIND}.styles+xml"/>{parts}</Types>',
        "_rels/.rels": f'{head}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{head}<workbook xmlns="{_MAIN}" xmlns:r="{_RELS}"><sheets>{sheets}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'{head}<Relationships xmlns="{_PACKAGE}/relationships">'
        f"{links}{styles}</Relationships>",
        "xl/styles.xml": head + _build_style_sheet(),
    }


_LONGEST = 31
"""Largest number of characters in a sheet's title; spreadsheet programs also refuse titles that differ only in case."""


def _choose_sheet_titles(names: Sequence[str]) -> list[str]:
    """Return a valid sheet title for each name; where two would be alike, the second gets a number."""
    out: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = "".join(" " if c in "[]:*?/\\'" else c for c in name).strip() or "Sheet"
        title, number = plain[:_LONGEST].strip(), 1
        while title.casefold() in taken:
            number += 1
            mark = f" ({number})"
            title = plain[: _LONGEST - len(mark)].strip() + mark
        taken.add(title.casefold())
        out.append(escape(title, {'"': "&quot;"}))
    return out


def _build_style_sheet() -> str:
    fills = "".join(
        f'<fill><patternFill patternType="solid"><fgColor rgb="FF{colour}"/></patternFill></fill>'
        for colour in _FILLS.values()
    )
    formats = []
    for style in STYLES:
        fill = 2 + list(_FILLS).index(style) if style in _FILLS else 0
        font = 1 if style in ("head", "warning") else 0
        quoted = "" if style == "plain" else ' quotePrefix="1"'
        looks = f'fontId="{font}" fillId="{fill}" applyFill="1" applyFont="1"{quoted}'
        formats.append(f'<xf numFmtId="0" borderId="0" xfId="0" {looks}/>')
    return (
        f'<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
        '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
        f'<fills count="{2 + len(_FILLS)}"><fill><patternFill patternType="none"/></fill>'
        f'<fill><patternFill patternType="gray125"/></fill>{fills}</fills>'
        '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
        f'<cellXfs count="{len(formats)}">{"".join(formats)}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def _render_sheet(rows: Iterable[Row]) -> str:
    out = [f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<worksheet xmlns="{_MAIN}">']
    out.append('<sheetViews><sheetView workbookViewId="0">')
    out.append('<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>')
    out.append('<cols><col min="1" max="20" width="18" customWidth="1"/></cols><sheetData>')
    for number, row in enumerate(rows, start=1):
        if number > _MAX_ROWS:
            break
        cells = "".join(
            _render_cell(f"{_format_column_letters(i)}{number}", value, style) for i, (value, style) in enumerate(row)
        )
        out.append(f'<row r="{number}">{cells}</row>')
    out.append("</sheetData></worksheet>")
    return "".join(out)


def _render_cell(place: str, value: Any, style: str) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return f'<c r="{place}" s="{STYLES.index(style)}"/>'
    if isinstance(value, int | float) and not isinstance(value, bool):
        shown = repr(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
        return f'<c r="{place}" s="{STYLES.index(style)}"><v>{shown}</v></c>'
    style = "text" if style == "plain" else style
    text = escape("".join(c for c in str(value) if c >= " " or c in "\t\n"))
    return f'<c r="{place}" s="{STYLES.index(style)}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _format_column_letters(column: int) -> str:
    """Return the name of a column.

    >>> _format_column_letters(0), _format_column_letters(27)
    ('A', 'AB')
    """
    name = ""
    while column >= 0:
        name = chr(ord("A") + column % 26) + name
        column = column // 26 - 1
    return name
