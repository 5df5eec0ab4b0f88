"""The registry of release formats: ``save``, jobs, the command line and the page offer its entries.

A new format is a :class:`FileFormat` in :data:`FORMATS`. Heavy imports happen only when a file is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.release.formats.exchange import TableView
    from cellguard.release.formats.sheets import Sheet
    from cellguard.release.release import Release

__all__ = ["FORMATS", "FileFormat", "ReleaseOutput", "check_ending", "find_format"]

UNSAFE_PREFIX = "UNSAFE-"
"""Prefix of the file names of a release that the audit refused."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseOutput:
    """How to write a release: its tables, their names and the marks."""

    release: Release
    name: str
    """Title of the whole: file of a single table, workbook of several."""
    views: Sequence[tuple[str, Sequence[str]]] = ()
    """Linked tables to write separately: name and dimensions."""
    mark_primary: bool = False
    """Distinguish sensitive cells from those that protect them."""
    unsafe: bool = False
    """Say in every file that the audit refused the release."""
    row_order: str = "canonical"
    """Order of the rows (:data:`cellguard.release.release.ROW_ORDERS`)."""
    dataflow: str | None = None
    """Name of the data in SDMX files."""

    @cached_property
    def sheets(self) -> dict[str, Sheet]:
        """The tables by name, as rows and columns."""
        from cellguard.release.formats.sheets import build_sheets

        marks: dict[str, Any] = {"mark_primary": self.mark_primary, "unsafe": self.unsafe, "row_order": self.row_order}
        return build_sheets(self.release, self.name, self.views, **marks)

    @cached_property
    def whole(self) -> Sheet:
        """All cells in one table."""
        from cellguard.release.formats.sheets import Sheet
        from cellguard.release.release import order_cells

        order = order_cells(self.release.table, self.row_order)
        columns = self.release.columns(mark_primary=self.mark_primary)
        published = {name: column[order] for name, column in columns.items()}
        return Sheet.of(self.release.table.cell_codes(order), published, unsafe=self.unsafe)

    @cached_property
    def tables(self) -> dict[str, TableView]:
        """The tables by name, as cells of the release."""
        from cellguard.release.formats.exchange import list_release_tables

        return list_release_tables(self.release, self.name, self.views, row_order=self.row_order)

    def get_path(self, folder: Path, title: str, ending: str) -> Path:
        """Return the path of a table's file in a folder."""
        from cellguard.release.formats.sheets import make_file_name

        return folder / f"{UNSAFE_PREFIX if self.unsafe else ''}{make_file_name(title)}{ending}"


Writer = Callable[[ReleaseOutput, Path], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class FileFormat:
    """A format in which a release can be written."""

    name: str
    """Name in a job's `output.formats`, and on the page."""
    write: Writer | None = None
    """Writes the public files of a release into a folder; None if there are none."""
    write_internal: Writer | None = None
    """Writes files that must stay internal into a folder; None if there are none."""
    save: Writer | None = None
    """Writes a release to one file; None if `save` cannot."""
    endings: tuple[str, ...] = field(default=())
    """Extensions of the files that `save` writes."""
    one_number: bool = False
    """Whether it holds only one number per cell: no intervals."""
    needs_dimensions: bool = False
    """Whether it names cells by their codes."""


# ---------------------------------------------------------------- writers


def _write_csv(output: ReleaseOutput, folder: Path) -> None:
    from cellguard._io.frames import write_csv

    for title, sheet in output.sheets.items():
        write_csv(sheet.columns, output.get_path(folder, title, ".csv"), guard=True)


def _save_csv(output: ReleaseOutput, path: Path) -> None:
    from cellguard._io.frames import write_csv

    write_csv(output.whole.columns, path, guard=True)


def _write_parquet(output: ReleaseOutput, folder: Path) -> None:
    from cellguard._io.frames import write_parquet

    for title, sheet in output.sheets.items():
        write_parquet(sheet.columns, output.get_path(folder, title, ".parquet"))


def _save_parquet(output: ReleaseOutput, path: Path) -> None:
    from cellguard._io.frames import write_parquet

    write_parquet(output.whole.columns, path)


def _write_xlsx(output: ReleaseOutput, folder: Path) -> None:
    from cellguard.release.formats.sheets import write_release_sheets

    shown = {title: sheet for title, sheet in output.sheets.items() if title != output.name} or output.sheets
    prefix = UNSAFE_PREFIX if output.unsafe else ""
    write_release_sheets(shown, folder / f"{prefix}{output.name}.xlsx")


def _save_xlsx(output: ReleaseOutput, path: Path) -> None:
    from cellguard.release.formats.sheets import write_release_sheets

    write_release_sheets(output.sheets, path)


def _write_sdmx(output: ReleaseOutput, folder: Path) -> None:
    from cellguard._io.frames import write_csv

    for title, columns in _get_sdmx_columns(output, internal=False).items():
        write_csv(columns, output.get_path(folder, title, ".sdmx.csv"))


def _write_internal_sdmx(output: ReleaseOutput, folder: Path) -> None:
    from cellguard._io.frames import write_csv
    from cellguard.release.formats.sheets import make_file_name

    for title, columns in _get_sdmx_columns(output, internal=True).items():
        write_csv(columns, folder / f"{make_file_name(title)}.sdmx.csv", private=True)


def _get_sdmx_columns(output: ReleaseOutput, *, internal: bool) -> dict[str, dict[str, Any]]:
    """Return the columns of each table as in SDMX-CSV."""
    from cellguard.release.formats.exchange import build_sdmx_columns

    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in output.name.upper())
    dataflow = output.dataflow or f"CELLGUARD:{made}(1.0)"
    return build_sdmx_columns(output.release, output.tables, dataflow, internal=internal)


def _write_px(output: ReleaseOutput, folder: Path) -> None:
    from cellguard.release.formats.exchange import write_release_as_px

    for title, view in output.tables.items():
        write_release_as_px(output.release, view, output.get_path(folder, title, ".px"), title=title)


def _write_internal_jj(output: ReleaseOutput, folder: Path) -> None:
    output.release.table.write(folder / f"{output.name}.jj.gz")


FORMATS: dict[str, FileFormat] = {
    format_.name: format_
    for format_ in (
        FileFormat(name="csv", write=_write_csv, save=_save_csv, endings=(".csv", ".csv.gz")),
        FileFormat(name="parquet", write=_write_parquet, save=_save_parquet, endings=(".parquet",)),
        FileFormat(name="xlsx", write=_write_xlsx, save=_save_xlsx, endings=(".xlsx",)),
        FileFormat(
            name="sdmx", write=_write_sdmx, write_internal=_write_internal_sdmx, one_number=True, needs_dimensions=True
        ),
        FileFormat(name="px", write=_write_px, one_number=True, needs_dimensions=True),
        FileFormat(name="jj", write_internal=_write_internal_jj),
    )
}
"""Name -> format, in display order."""


def find_format(path: Path) -> FileFormat | None:
    """Return the format in which `save` writes a file of this name; None if there is none."""
    name = path.name.lower()
    return next((known for known in FORMATS.values() if known.save is not None and name.endswith(known.endings)), None)


def check_ending(path: Path, *, folder: bool = False) -> None:
    """Refuse a file name whose extension is not a format of releases."""
    if folder or find_format(path) is not None:
        return
    endings = [ending for known in FORMATS.values() for ending in known.endings]
    raise InputError(
        f"{path}: a release is written as {', '.join(endings[:-1])} or {endings[-1]}.",
        hint="end the name of the file in one of them.",
    )
