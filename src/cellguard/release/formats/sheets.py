"""The sheets of a release: a sheet or a file for each table, in its original layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellguard._io.frames import merge_codes_and_columns
from cellguard.exceptions import InputError
from cellguard.release.formats.registry import ReleaseOutput, check_ending, find_format

if TYPE_CHECKING:
    from cellguard.model.linked.publication import Part
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = [
    "Sheet",
    "build_part_sheet",
    "build_sheets",
    "check_path_of_release_sheets",
    "find_colliding_names",
    "group_parts_by_sheet",
    "make_file_name",
    "write_release",
    "write_release_sheets",
    "write_sheet_of_release",
]  # fmt: skip


class Sheet(NamedTuple):
    """The content of one table's sheet or file."""

    codes: Mapping[str, Any]
    published: Mapping[str, Any]
    unsafe: bool
    styles: Mapping[str, Sequence[str]]
    """Style of each cell of a published column."""

    @classmethod
    def of(cls, codes: Mapping[str, Any], published: Mapping[str, Any], *, unsafe: bool) -> Sheet:
        """Return the sheet with one value per cell."""
        return cls(codes, published, unsafe, dict.fromkeys(published, _choose_styles(published)))

    @property
    def columns(self) -> dict[str, Any]:
        """Codes, then published columns, then the warning of an unsafe release; all under distinct names."""
        from cellguard.release.release import build_warning_column

        columns = merge_codes_and_columns(self.codes, self.published)
        return columns | (build_warning_column(columns) if self.unsafe else {})

    def build_rows(self) -> list[list[tuple[Any, str]]]:
        """Lay it out for a spreadsheet: colour values that are not true, and show x for withheld cells."""
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


def _choose_styles(published: Mapping[str, Any]) -> list[str]:
    """Return the style of each cell from what is published about it."""
    if "status" in published:
        marked = {"primary": "primary", "secondary": "secondary", "withheld": "secondary"}
        return [marked.get(str(status), "plain") for status in published["status"]]
    if "lower" in published:
        return [str(style) for style in np.where(published["lower"] != published["upper"], "changed", "plain")]
    return ["plain"] * len(next(iter(published.values())))  # do not reveal which cells moved


def build_sheets(
    release: Release,
    name: str,
    views: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    mark_primary: bool = False,
    unsafe: bool = False,
    row_order: str = "canonical",
) -> dict[str, Sheet]:
    """Return the sheets by table; each table of a publication is in its original layout.

    Linked tables, given by `views` with their dimensions, follow the sheet of all cells. Each has the cells at
    the total of all other dimensions.
    """
    from cellguard.release.formats.exchange import list_release_tables
    from cellguard.release.release import order_cells

    published = release.columns(mark_primary=mark_primary)
    if release.table.parts:
        groups = group_parts_by_sheet(release.table.parts).items()
        return {
            title: _build_group_sheet(group, published, unsafe=unsafe, row_order=row_order) for title, group in groups
        }
    order = order_cells(release.table, row_order)
    ordered = {column: x[order] for column, x in published.items()}
    sheets = {name: Sheet.of(release.table.cell_codes(order), ordered, unsafe=unsafe)}
    linked = list_release_tables(release, name, views, row_order=row_order) if len(views) > 1 else {}
    for title, view in linked.items():
        own = {column: x[view.cells] for column, x in published.items()}
        sheets.setdefault(title, Sheet.of(view.list_codes(), own, unsafe=unsafe))
    return sheets


def build_part_sheet(
    part: Part, published: Mapping[str, Any], *, unsafe: bool = False, row_order: str = "canonical"
) -> Sheet:
    """Return the sheet of one table of a publication, from the published columns of all cells."""
    rows = part.rows(row_order)
    own = {name: column[part.cells[rows]] for name, column in published.items()}
    return Sheet.of(part.table.cell_codes(rows), own, unsafe=unsafe)


def group_parts_by_sheet(parts: Sequence[Part]) -> dict[str, list[Part]]:
    """Return which tables are written side by side, by file or sheet name: the indicators of one original table.

    Tables that do not have the same rows (e.g. one has computed totals that another lacks) are written separately.
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


def _build_group_sheet(group: Sequence[Part], published: Mapping[str, Any], *, unsafe: bool, row_order: str) -> Sheet:
    """Return the sheet of the indicators of one table, side by side."""
    sheets = [build_part_sheet(part, published, unsafe=unsafe, row_order=row_order) for part in group]
    if len(group) == 1:
        return sheets[0]
    columns, styles = {}, {}
    for part, sheet in zip(group, sheets, strict=True):
        for name, column in sheet.published.items():
            columns[part.name_sheet_column(name)], styles[part.name_sheet_column(name)] = column, sheet.styles[name]
    return Sheet(sheets[0].codes, columns, unsafe, styles)


def write_release_sheets(sheets: Mapping[str, Sheet], path: str | Path) -> None:
    """Write a workbook with a sheet for each table."""
    from cellguard._io.workbooks.xlsx import write_xlsx

    write_xlsx(path, {title: sheet.build_rows() for title, sheet in sheets.items()})


def check_path_of_release_sheets(path: str | Path, table: Table, layout: str | Path | None = None) -> None:
    """Refuse a path that a release of the table cannot be written to."""
    place = Path(path)
    folder = _release_sheets_go_to_folder(place, table)
    check_ending(place, folder=folder)
    if folder:
        for name, other in find_colliding_names([*group_parts_by_sheet(table.parts or ())]):
            raise InputError(
                f"tables {other!r} and {name!r} would be written to one file, {make_file_name(name)}.csv.",
                hint="give one of them another name, or save a workbook.",
            )
    if place.is_dir() and not folder:
        raise InputError(f"{place}: is a folder; the name of a file is needed.")
    if layout is not None and not place.name.lower().endswith(".xlsx"):
        raise InputError(f"{place}: a layout is a workbook, and so is its copy.", hint="end the name in .xlsx.")


def _release_sheets_go_to_folder(place: Path, table: Table) -> bool:
    return not place.suffix and bool(table.parts)


def write_release(
    release: Release,
    path: str | Path,
    layout: str | Path | None,
    *,
    mark_primary: bool,
    unsafe: bool,
    row_order: str = "canonical",
) -> None:
    """Write a release to a path that was checked before."""
    place = Path(path)
    if layout is not None:
        from cellguard.release.formats.layout import fill_layout_with_release

        if unsafe:
            raise InputError("a layout has no place to say that a release is not safe.", hint="leave it out.")
        fill_layout_with_release(release, layout, place)
        return
    output = ReleaseOutput(
        release=release, name=release.table.name, mark_primary=mark_primary, unsafe=unsafe, row_order=row_order
    )
    if _release_sheets_go_to_folder(place, release.table):
        place.mkdir(exist_ok=True)
        for title, sheet in output.sheets.items():
            write_sheet_of_release(sheet.columns, place / f"{make_file_name(title)}.csv")
        return
    check_ending(place)
    format_ = find_format(place)
    if format_ is not None and format_.save is not None:
        format_.save(output, place)


def write_sheet_of_release(columns: dict[str, Any], path: str | Path, *, private: bool = False) -> None:
    """Write columns in the format given by the file's extension."""
    from cellguard._io.frames import write_csv, write_parquet

    if str(path).lower().endswith(".parquet"):
        write_parquet(columns, path, private=private)
    else:
        write_csv(columns, path, guard=True, private=private)


def make_file_name(title: str) -> str:
    """Return the name of a table as a file name.

    >>> make_file_name("activity by region / 2024")
    'activity by region _ 2024'
    """
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in title).strip(". ") or "table"


def find_colliding_names(titles: Sequence[str]) -> list[tuple[str, str]]:
    """Return the tables whose files would overwrite those of an earlier table, with its name; ignore case.

    >>> find_colliding_names(["x/y", "z", "X_Y"])
    [('X_Y', 'x/y')]
    """
    first: dict[str, str] = {}
    taken = [(title, first.setdefault(make_file_name(title).casefold(), title)) for title in titles]
    return [(title, before) for title, before in taken if title != before]
