"""What a job writes, and how: staged in a private folder, put in place at the end, the public part last."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.files import write_text
from cellguard._io.frames import write_csv, write_parquet
from cellguard._io.lock import locked
from cellguard.check.partners import partners
from cellguard.exceptions import InputError
from cellguard.nouns.exchange import internal_columns, sdmx_columns, tables_of, write_px
from cellguard.nouns.release import Adjustment, Release, Suppression
from cellguard.nouns.sheets import file_name, sheets_of, write_sheets
from cellguard.publish.audit_file import write_audit

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.publish.model import OutputSection

Views = Sequence[tuple[str, Sequence[str]]]
"""Linked tables: the name of each and its dimensions."""

__all__ = ["Folders", "write_internal", "write_json", "write_public"]


class Folders:
    """The folders of a job's outputs.

    ``public`` and ``internal`` appear whole or not at all: both are made inside ``.work``, on the same file
    system, and renamed. The public one comes last, when everything that proves it safe is in place.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / ".work"
        self.public, self.internal = root / "public", root / "internal"
        self.staged_public, self.staged_internal = self.work / "public", self.work / "internal"
        self.old = self.work / "old"

    @contextmanager
    def entered(self, *, fresh: bool = False) -> Iterator[None]:
        """Work in the folder, alone: make the private one for checkpoints, and refuse to replace what is not ours.

        `fresh` throws away what an earlier run left there.
        """
        for folder in (self.work, self.public, self.internal):
            if folder.is_symlink():  # whoever made it decides where confidential files would go
                raise InputError(f"{folder}: is a symbolic link.", hint="remove it, or name another folder.")
        for folder in (self.public, self.internal):
            if folder.exists() and not (folder / "manifest.json").is_file():
                raise InputError(
                    f"{folder}: is there, and was not written by cellguard.",
                    hint="name another folder for the outputs.",
                )
        there = self.root.exists()
        with locked(self.work, busy=f"{self.root}: another run is at work in this folder."):
            self.work.chmod(0o700)
            if fresh:
                for entry in self.work.iterdir():
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry, ignore_errors=True)
                    elif entry.name != "lock":
                        entry.unlink()
            try:
                yield
            finally:
                self._leave(there=there)

    def _leave(self, *, there: bool) -> None:
        """Remove what a run that was refused has made: an empty folder for checkpoints, and the one around it."""
        if self.work.is_dir() and all(entry.name == "lock" for entry in self.work.iterdir()):
            shutil.rmtree(self.work, ignore_errors=True)
        if not there and self.root.is_dir() and not any(self.root.iterdir()):
            self.root.rmdir()

    def stage(self) -> None:
        """Begin with empty staged folders; what a killed run left there is thrown away."""
        for folder in (self.staged_public, self.staged_internal):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)

    def publish(self) -> None:
        """Put the staged folders in place of the old ones."""
        shutil.rmtree(self.old, ignore_errors=True)
        self.old.mkdir(mode=0o700)
        if self.public.exists():  # the old release goes before the first new file comes: never a mixture
            self.public.rename(self.old / "public")
        if self.internal.exists():
            self.internal.rename(self.old / "internal")
        for path in self.staged_internal.rglob("*"):  # whoever copies the folder may forget to close it
            if path.is_file():
                path.chmod(0o600)
        self.staged_internal.rename(self.internal)
        self.staged_public.chmod(0o755)
        self.staged_public.rename(self.public)

    def clean(self) -> None:
        """Remove checkpoints and what was replaced."""
        shutil.rmtree(self.work, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON, atomically and the same for the same object."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n")


def write_public(
    folder: Path, name: str, release: Release, output: OutputSection, *, unsafe: bool = False, views: Views = ()
) -> None:
    """Write the release in every format that was asked for: a file or a sheet for each table.

    Of linked tables, named by `views`, there is one file with all cells too.
    """
    sheets = sheets_of(release, name, views, mark_primary=output.mark_primary, unsafe=unsafe)
    mark = "UNSAFE-" if unsafe else ""
    for title, sheet in sheets.items():
        if "csv" in output.formats:
            write_csv(sheet.columns, folder / f"{mark}{file_name(title)}.csv", guard=True)
        if "parquet" in output.formats:
            write_parquet(sheet.columns, folder / f"{mark}{file_name(title)}.parquet")
    if "sdmx" in output.formats:
        tables = tables_of(release, name, views)
        for title, columns in sdmx_columns(release, tables, _dataflow_name(name, output)).items():
            write_csv(columns, folder / f"{mark}{file_name(title)}.sdmx.csv")
    if "px" in output.formats:
        for title, view in tables_of(release, name, views).items():
            write_px(release, view, folder / f"{mark}{file_name(title)}.px", title=title)
    if "xlsx" in output.formats:
        shown = {title: sheet for title, sheet in sheets.items() if title != name} or sheets
        write_sheets(shown, folder / f"{mark}{name}.xlsx")


def _dataflow_name(name: str, output: OutputSection) -> str:
    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.upper())
    return output.dataflow or f"CELLGUARD:{made}(1.0)"


def write_internal(
    folder: Path, name: str, release: Release, audit: Audit | None, output: OutputSection, *, views: Views = ()
) -> None:
    """Write what proves the release safe, and the table itself where it was asked for: all of it confidential.

    Like the public files, those of linked tables, named by `views`, stand apart.
    """
    if "jj" in output.formats:
        release.table.write(folder / f"{name}.jj.gz")
    protects = partners(release) if isinstance(release, Suppression) else {}
    write_csv(internal_columns(release, protects), folder / "cells.csv", guard=True, private=True)
    if "sdmx" in output.formats:
        tables = tables_of(release, name, views)
        for title, columns in sdmx_columns(release, tables, _dataflow_name(name, output), internal=True).items():
            write_csv(columns, folder / f"{file_name(title)}.sdmx.csv", private=True)
    if audit is None:
        return
    write_audit(folder / "audit.json", release.table, audit)
    if output.witnesses and not isinstance(release, Adjustment):  # an adjusted table is its own witness
        audit.save_witnesses(folder / "witnesses.json.gz")
