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
    "ENDINGS", "Sheet", "check_path_of_release_sheets", "file_name_of_sheet", "refuse_ending_of_release",
    "sheet_of_part", "sheets_of_parts", "sheets_of_release", "sheets_sharing_a_file", "write_release",
    "write_release_sheets", "write_sheet_of_release",
]  # fmt: skip


class Sheet(NamedTuple):
    """What is written of one table."""

    codes: Mapping[str, Any]
    published: Mapping[str, Any]
    unsafe: bool
    styles: Mapping[str, Sequence[str]]
    """How each cell of a published column looks."""

    @classmethod
    def of(cls, codes: Mapping[str, Any], published: Mapping[str, Any], *, unsafe: bool) -> Sheet:
        """Return the sheet of one value for each cell."""
        return cls(codes, published, unsafe, dict.fromkeys(published, _looks_of_sheet_cells(published)))

    @property
    def columns(self) -> dict[str, Any]:
        """Codes, then what is published, then what is said of an unsafe release; all under names of their own."""
        from cellguard.nouns.release import warning_of_unsafe_release

        columns = columns_beside_codes(self.codes, self.published)
        return columns | (warning_of_unsafe_release(columns) if self.unsafe else {})

    def rows(self) -> list[list[tuple[Any, str]]]:
        """Lay it out for a spreadsheet: what is not the truth is coloured, what is withheld says x."""
        columns = self.columns
        lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns.values()]
        n = len(lists[0])
        styles = [["text"] * n] * len(self.codes) + [list(self.styles[name]) for name in self.published]
        styles += [["warning"] * n] * (len(columns) - len(styles))
        rows: list[list[tuple[Any, str]]] = [[(name, "head") for name in columns]]
        for looks, cells in zip(zip(*styles, strict=True), zip(*lists, strict=True), strict=True):
            shown = ["x" if isinstance(value, float) and np.isnan(value) else value for value in cells]
            rows.append(list(zip(shown, looks, strict=True)))
        return rows


def _looks_of_sheet_cells(published: Mapping[str, Any]) -> list[str]:
    """Return how each cell looks by what is published of it."""
    if "status" in published:
        marked = {"primary": "primary", "secondary": "secondary", "withheld": "secondary"}
        return [marked.get(str(status), "plain") for status in published["status"]]
    if "lower" in published:
        return [str(style) for style in np.where(published["lower"] != published["upper"], "changed", "plain")]
    return ["plain"] * len(next(iter(published.values())))  # which cells moved is not told


def sheets_of_release(
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
    from cellguard.nouns.exchange import tables_of_release

    published = release.columns(mark_primary=mark_primary)
    if release.table.parts:
        groups = sheets_of_parts(release.table.parts).items()
        return {title: _sheet_of_group(group, published, unsafe=unsafe) for title, group in groups}
    sheets = {name: Sheet.of(release.table.cell_codes(), published, unsafe=unsafe)}
    for title, view in tables_of_release(release, name, views).items() if len(views) > 1 else ():
        own = {column: x[view.cells] for column, x in published.items()}
        sheets.setdefault(title, Sheet.of(view.codes(), own, unsafe=unsafe))
    return sheets


def sheet_of_part(part: Part, published: Mapping[str, Any], *, unsafe: bool = False) -> Sheet:
    """Return what is written of one table of a publication, from what is published of all cells."""
    rows = part.rows()
    own = {name: column[part.cells[rows]] for name, column in published.items()}
    return Sheet.of(part.table.cell_codes(rows), own, unsafe=unsafe)


def sheets_of_parts(parts: Sequence[Part]) -> dict[str, list[Part]]:
    """Return which tables are written side by side, by the name of the file or sheet: the indicators of one that came.

    Those that do not have the same rows (one has totals that were missing, and are nothing in another) stand alone.
    """
    together: dict[str, list[Part]] = {}
    for part in parts:
        together.setdefault(part.sheet or part.name, []).append(part)
    out: dict[str, list[Part]] = {}
    for title, group in together.items():
        rows = [part.rows() for part in group]
        alike = len(group) > 1 and all(np.array_equal(own, rows[0]) for own in rows)
        out |= {title: group} if alike else {part.name: [part] for part in group}
    return out


def _sheet_of_group(group: Sequence[Part], published: Mapping[str, Any], *, unsafe: bool) -> Sheet:
    """Return what is written of the indicators of one table, side by side."""
    sheets = [sheet_of_part(part, published, unsafe=unsafe) for part in group]
    if len(group) == 1:
        return sheets[0]
    columns, styles = {}, {}
    for part, sheet in zip(group, sheets, strict=True):
        for name, column in sheet.published.items():
            columns[part.column_in_sheet(name)], styles[part.column_in_sheet(name)] = column, sheet.styles[name]
    return Sheet(sheets[0].codes, columns, unsafe, styles)


def write_release_sheets(sheets: Mapping[str, Sheet], path: str | Path) -> None:
    """Write a workbook with a sheet for each table."""
    from cellguard._io.xlsx import write_xlsx

    write_xlsx(path, {title: sheet.rows() for title, sheet in sheets.items()})


ENDINGS = (".csv", ".csv.gz", ".parquet", ".xlsx")
"""Endings of the files that a release can be saved as."""


def check_path_of_release_sheets(path: str | Path, table: Table, layout: str | Path | None = None) -> None:
    """Refuse a place that a release of the table cannot be written to."""
    place = Path(path)
    folder = _release_sheets_go_to_folder(place, table)
    refuse_ending_of_release(place, folder=folder)
    if folder:
        for name, other in sheets_sharing_a_file([*sheets_of_parts(table.parts or ())]):
            raise InputError(
                f"tables {other!r} and {name!r} would be written to one file, {file_name_of_sheet(name)}.csv.",
                hint="give one of them another name, or save a workbook.",
            )
    if place.is_dir() and not folder:
        raise InputError(f"{place}: is a folder; the name of a file is needed.")
    if layout is not None and not place.name.lower().endswith(".xlsx"):
        raise InputError(f"{place}: a layout is a workbook, and so is its copy.", hint="end the name in .xlsx.")


def _release_sheets_go_to_folder(place: Path, table: Table) -> bool:
    return not place.suffix and bool(table.parts)


def write_release(
    release: Release, path: str | Path, layout: str | Path | None, *, mark_primary: bool, unsafe: bool
) -> None:
    """Write a release to a place that was checked before."""
    place = Path(path)
    if layout is not None:
        from cellguard.nouns.layout import fill_layout_with_release

        if unsafe:
            raise InputError("a layout has no place to say that a release is not safe.", hint="leave it out.")
        fill_layout_with_release(release, layout, place)
        return
    sheets = sheets_of_release(release, release.table.name, mark_primary=mark_primary, unsafe=unsafe)
    if place.name.lower().endswith(".xlsx"):
        write_release_sheets(sheets, place)
    elif _release_sheets_go_to_folder(place, release.table):
        place.mkdir(exist_ok=True)
        for title, sheet in sheets.items():
            write_sheet_of_release(sheet.columns, place / f"{file_name_of_sheet(title)}.csv")
    else:
        whole = Sheet.of(release.table.cell_codes(), release.columns(mark_primary=mark_primary), unsafe=unsafe)
        write_sheet_of_release(whole.columns, place)


def refuse_ending_of_release(place: Path, *, folder: bool = False) -> None:
    """Refuse the name of a file that says a format in which no release is written."""
    if folder or place.name.lower().endswith(ENDINGS):
        return
    raise InputError(
        f"{place}: a release is written as {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
        hint="end the name of the file in one of them.",
    )


def write_sheet_of_release(columns: dict[str, Any], path: str | Path, *, private: bool = False) -> None:
    """Write columns by the ending of the file's name."""
    from cellguard._io.frames import write_csv, write_parquet

    if str(path).lower().endswith(".parquet"):
        write_parquet(columns, path, private=private)
    else:
        write_csv(columns, path, guard=True, private=private)


def file_name_of_sheet(title: str) -> str:
    """Return the name of a table as one of a file.

    >>> file_name_of_sheet("activity by region / 2024")
    'activity by region _ 2024'
    """
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in title).strip(". ") or "table"


def sheets_sharing_a_file(titles: Sequence[str]) -> list[tuple[str, str]]:
    """Return the names of tables whose files would be those of a table before them, and its name; case tells nothing.

    >>> sheets_sharing_a_file(["x/y", "z", "X_Y"])
    [('X_Y', 'x/y')]
    """
    first: dict[str, str] = {}
    taken = [(title, first.setdefault(file_name_of_sheet(title).casefold(), title)) for title in titles]
    return [(title, before) for title, before in taken if title != before]
