"""What is written of a release: a sheet or a file for each table, in the layout it came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellguard._io.frames import columns_beside_codes
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.nouns.publication import Part
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = [
    "ENDINGS", "Sheet", "check_place", "file_name", "refuse_ending", "same_files", "sheet_of_part", "sheets_of",
    "write_columns", "write_release", "write_sheets",
]  # fmt: skip


class Sheet(NamedTuple):
    """What is written of one table."""

    codes: Mapping[str, Any]
    published: Mapping[str, Any]
    unsafe: bool

    @property
    def columns(self) -> dict[str, Any]:
        """Codes, then what is published, then what is said of an unsafe release; all under names of their own."""
        from cellguard.nouns.release import warned

        columns = columns_beside_codes(self.codes, self.published)
        return columns | (warned(columns) if self.unsafe else {})

    def rows(self) -> list[list[tuple[Any, str]]]:
        """Lay it out for a spreadsheet: what is not the truth is coloured, what is withheld says x."""
        columns, first = self.columns, len(self.codes)
        last = first + len(self.published)
        rows: list[list[tuple[Any, str]]] = [[(name, "head") for name in columns]]
        lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns.values()]
        for style, cells in zip(self.styles(), zip(*lists, strict=True), strict=True):
            looks = ["text" if k < first else style if k < last else "warning" for k in range(len(cells))]
            shown = ["x" if isinstance(value, float) and np.isnan(value) else value for value in cells]
            rows.append(list(zip(shown, looks, strict=True)))
        return rows

    def styles(self) -> list[str]:
        """Return how each cell looks by what is published of it."""
        if "status" in self.published:
            marked = {"primary": "primary", "secondary": "secondary", "withheld": "secondary"}
            return [marked.get(str(status), "plain") for status in self.published["status"]]
        if "lower" in self.published:
            open_ = self.published["lower"] != self.published["upper"]
            return [str(style) for style in np.where(open_, "changed", "plain")]
        return ["plain"] * len(next(iter(self.published.values())))  # which cells moved is not told


def sheets_of(
    release: Release,
    name: str,
    views: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    mark_primary: bool = False,
    unsafe: bool = False,
) -> dict[str, Sheet]:
    """Return what is written, by table: of a publication each in the layout it came in.

    Linked tables, named with their dimensions by `views`, follow the sheet of all cells, each with those that are at
    the total of all other dimensions.
    """
    from cellguard.nouns.exchange import tables_of

    published = release.columns(mark_primary=mark_primary)
    if release.table.parts:
        return {part.name: sheet_of_part(part, published, unsafe=unsafe) for part in release.table.parts}
    sheets = {name: Sheet(release.table.cell_codes(), published, unsafe)}
    for title, view in tables_of(release, name, views).items() if len(views) > 1 else ():
        own = {column: x[view.cells] for column, x in published.items()}
        sheets.setdefault(title, Sheet(view.codes(), own, unsafe))
    return sheets


def sheet_of_part(part: Part, published: Mapping[str, Any], *, unsafe: bool = False) -> Sheet:
    """Return what is written of one table of a publication, from what is published of all cells."""
    rows = part.rows()
    own = {name: column[part.cells[rows]] for name, column in published.items()}
    return Sheet(part.table.cell_codes(rows), own, unsafe)


def write_sheets(sheets: Mapping[str, Sheet], path: str | Path) -> None:
    """Write a workbook with a sheet for each table."""
    from cellguard._io.xlsx import write_xlsx

    write_xlsx(path, {title: sheet.rows() for title, sheet in sheets.items()})


ENDINGS = (".csv", ".csv.gz", ".parquet", ".xlsx")
"""Endings of the files that a release can be saved as."""


def check_place(path: str | Path, table: Table, layout: str | Path | None = None) -> None:
    """Refuse a place that a release of the table cannot be written to."""
    place = Path(path)
    folder = _is_folder(place, table)
    refuse_ending(place, folder=folder)
    if folder:
        for name, other in same_files([part.name for part in table.parts or ()]):
            raise InputError(
                f"tables {other!r} and {name!r} would be written to one file, {file_name(name)}.csv.",
                hint="give one of them another name, or save a workbook.",
            )
    if place.is_dir() and not folder:
        raise InputError(f"{place}: is a folder; the name of a file is needed.")
    if layout is not None and not place.name.lower().endswith(".xlsx"):
        raise InputError(f"{place}: a layout is a workbook, and so is its copy.", hint="end the name in .xlsx.")


def _is_folder(place: Path, table: Table) -> bool:
    return not place.suffix and bool(table.parts)


def write_release(
    release: Release, path: str | Path, layout: str | Path | None, *, mark_primary: bool, unsafe: bool
) -> None:
    """Write a release to a place that was checked before."""
    place = Path(path)
    if layout is not None:
        from cellguard.nouns.layout import fill_workbook

        if unsafe:
            raise InputError("a layout has no place to say that a release is not safe.", hint="leave it out.")
        fill_workbook(release, layout, place)
        return
    sheets = sheets_of(release, release.table.name, mark_primary=mark_primary, unsafe=unsafe)
    if place.name.lower().endswith(".xlsx"):
        write_sheets(sheets, place)
    elif _is_folder(place, release.table):
        place.mkdir(exist_ok=True)
        for title, sheet in sheets.items():
            write_columns(sheet.columns, place / f"{file_name(title)}.csv")
    else:
        whole = Sheet(release.table.cell_codes(), release.columns(mark_primary=mark_primary), unsafe)
        write_columns(whole.columns, place)


def refuse_ending(place: Path, *, folder: bool = False) -> None:
    """Refuse the name of a file that says a format in which no release is written."""
    if folder or place.name.lower().endswith(ENDINGS):
        return
    raise InputError(
        f"{place}: a release is written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
        hint="end the name of the file in one of them.",
    )


def write_columns(columns: dict[str, Any], path: str | Path, *, private: bool = False) -> None:
    """Write columns by the ending of the file's name."""
    from cellguard._io.frames import write_csv, write_parquet

    if str(path).lower().endswith(".parquet"):
        write_parquet(columns, path, private=private)
    else:
        write_csv(columns, path, guard=True, private=private)


def file_name(title: str) -> str:
    """Return the name of a table as one of a file.

    >>> file_name("activity by region / 2024")
    'activity by region _ 2024'
    """
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in title).strip(". ") or "table"


def same_files(titles: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names of tables whose files would be those of a table before them, and its name; case tells nothing.

    >>> same_files(["x/y", "z", "X_Y"])
    [('X_Y', 'x/y')]
    """
    first: dict[str, str] = {}
    taken = [(title, first.setdefault(file_name(title).casefold(), title)) for title in titles]
    return [(title, before) for title, before in taken if title != before]
