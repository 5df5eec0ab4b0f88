"""What a job writes, and how: staged in a private folder, put in place at the end, the public part last."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from cellguard._io.files import atomic_writer
from cellguard.exceptions import InputError
from cellguard.release import UNSAFE, Adjustment, Release, Suppression

if TYPE_CHECKING:
    from cellguard.audit import Audit
    from cellguard.jobs.model import OutputSection

__all__ = ["Folders", "public_columns", "write_internal", "write_json", "write_public"]


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

    def prepare(self) -> None:
        """Make the private folder for checkpoints and staged outputs; refuse to replace what is not ours."""
        for folder in (self.public, self.internal):
            if folder.exists() and not (folder / "manifest.json").is_file():
                raise InputError(
                    f"{folder}: is there, and was not written by cellguard.",
                    hint="name another folder for the outputs.",
                )
        self.root.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(mode=0o700, exist_ok=True)
        self.work.chmod(0o700)

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
        self.staged_internal.rename(self.internal)
        self.staged_public.chmod(0o755)
        self.staged_public.rename(self.public)

    def clean(self) -> None:
        """Remove checkpoints and what was replaced."""
        shutil.rmtree(self.work, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON, atomically and the same for the same object."""
    with atomic_writer(path) as stream:
        cast("IO[str]", stream).write(
            json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
        )


def public_columns(release: Release, output: OutputSection, *, unsafe: bool = False) -> dict[str, Any]:
    """Return what the public files hold: codes, then what is published."""
    columns: dict[str, Any] = {**release.table.cell_codes(), **release.columns()}
    if isinstance(release, Suppression) and not output.mark_primary:
        columns["status"] = np.where(release.suppressed, "suppressed", "published")
    if unsafe:
        columns["warning"] = [UNSAFE] * release.table.n_cells
    return columns


def _tables(name: str, release: Release, columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is written, by table: of a publication each in the layout it came in."""
    if not release.table.parts:
        return {name: dict(columns)}
    codes = release.table.cell_codes()
    out = {}
    for part in release.table.parts:
        published = {n: np.asarray(c, dtype=object)[part.cells].tolist() for n, c in columns.items() if n not in codes}
        numbers = {n: np.asarray(v, float) if n in ("value", "lower", "upper") else v for n, v in published.items()}
        out[part.name] = {**part.table.cell_codes(), **numbers}
    return out


def write_public(folder: Path, name: str, release: Release, output: OutputSection, *, unsafe: bool = False) -> None:
    """Write the release in every format that was asked for: a file or a sheet for each table."""
    from cellguard._io.frames import write_csv, write_parquet

    tables = _tables(name, release, public_columns(release, output, unsafe=unsafe))
    mark = "UNSAFE-" if unsafe else ""
    for title, columns in tables.items():
        if "csv" in output.formats:
            write_csv(columns, folder / f"{mark}{file_name(title)}.csv")
        if "parquet" in output.formats:
            write_parquet(columns, folder / f"{mark}{file_name(title)}.parquet")
    if "xlsx" in output.formats:
        from cellguard._io.xlsx import write_xlsx

        sheets = {title: _rows(release, columns) for title, columns in tables.items()}
        write_xlsx(folder / f"{mark}{name}.xlsx", sheets)


def file_name(title: str) -> str:
    """Return the name of a table as one of a file.

    >>> file_name("activity by region / 2024")
    'activity by region _ 2024'
    """
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in title).strip(". ") or "table"


def _rows(release: Release, columns: Mapping[str, Any]) -> list[list[tuple[Any, str]]]:
    """Lay out the release for a spreadsheet: what is not the truth is coloured, what is withheld says x."""
    names = list(columns)
    styles = _styles(release, columns)
    rows: list[list[tuple[Any, str]]] = [[(name, "head") for name in names]]
    lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns.values()]
    for style, cells in zip(styles, zip(*lists, strict=True), strict=True):
        row: list[tuple[Any, str]] = []
        for name, value in zip(names, cells, strict=True):
            published = name in ("status", "value", "lower", "upper")
            withheld = name == "value" and isinstance(value, float) and np.isnan(value)
            shown = "x" if withheld else value
            row.append((shown, "warning" if name == "warning" else style if published else "text"))
        rows.append(row)
    return rows


def _styles(release: Release, columns: Mapping[str, Any]) -> list[str]:
    if isinstance(release, Suppression):
        marked = {"primary": "primary", "secondary": "secondary", "suppressed": "secondary"}
        return [marked.get(str(status), "plain") for status in columns["status"]]
    if "lower" in columns:
        return [str(style) for style in np.where(columns["lower"] != columns["upper"], "changed", "plain")]
    return ["plain"] * len(next(iter(columns.values())))  # which cells moved is not told


def write_internal(folder: Path, name: str, release: Release, audit: Audit | None, output: OutputSection) -> None:
    """Write what proves the release safe, and the table itself where it was asked for: all of it confidential."""
    if "jj" in output.formats:
        release.table.write(folder / f"{name}.jj.gz")
    if audit is None:
        return
    write_json(folder / "audit.json", _audit_facts(release, audit))
    if output.witnesses and not isinstance(release, Adjustment):  # an adjusted table is its own witness
        audit.save_witnesses(folder / "witnesses.json.gz")


def _audit_facts(release: Release, audit: Audit) -> dict[str, Any]:
    t = release.table
    attackers = []
    for found in audit.findings:
        cells = [
            {
                "cell": {d: codes[0] for d, codes in t.cell_codes([cell]).items()},
                "lowest": _number(found.low[k]),
                "highest": _number(found.high[k]),
                "lower_level": _number(found.levels.lower[k]),
                "upper_level": _number(found.levels.upper[k]),
                "sliding_level": _number(found.levels.sliding[k]),
                "safe": bool(found.safe[k]),
                "exact": bool(found.exact[k]),
            }
            for k, cell in enumerate(found.cells.tolist())
        ]
        attackers.append({"name": found.attacker.name, "cells": cells})
    return {"confidential": True, **audit.summary(), "attackers": attackers}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
