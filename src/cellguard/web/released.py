"""What the files of a release show of every cell, in the order of its table; and the job that it was made by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import read_bytes
from cellguard._io.frames import column_as_numbers, column_as_texts, read_frame
from cellguard._io.toml import parse_toml, read_toml_text
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.nouns.grid import NO_DATA, empty_cells_of_table, figures_of_table
from cellguard.nouns.sheets import file_name_of_sheet, sheets_of_parts
from cellguard.nouns.table import Table
from cellguard.publish.model import Job
from cellguard.publish.read import JobFile
from cellguard.web.places import files_server_may_not_see
from cellguard.web.projects import Project

__all__ = [
    "KINDS", "browser_texts_of_numbers", "json_of_released_file", "project_job_of_release",
    "released_cells_for_browser",
]  # fmt: skip

KINDS = ("published", "sensitive", "primary", "secondary", "interval", "changed", "fixed", "nothing")
"""What can be said of a cell; windows name them by their place here."""


def json_of_released_file(path: Path) -> dict[str, Any]:
    """Return what a file of a release says; raises where it is damaged."""
    try:
        found = json.loads(read_bytes(path, max_bytes=1 << 30))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path.name}: is damaged.", hint="protect the table again.")
    return found


def project_job_of_release(project: Project, folder: Path) -> JobFile:
    """Return the job that a release was made by."""
    path = folder / "internal" / "job.toml"
    text = read_toml_text(path, path.name)
    raw = parse_toml(text, path.name)
    outside = files_server_may_not_see(raw, project.root, project.folder)
    if outside:
        raise InputError(outside[0].text, hint=outside[0].hint)
    return JobFile(path=project.path, text=text, job=Job.model_validate(raw))


def browser_texts_of_numbers(table: Table, values: FloatArray) -> tuple[str, ...]:
    """Return numbers as the report shows them: "no data" apart from zero."""
    empty = empty_cells_of_table(table) & (values == 0)
    return tuple(
        NO_DATA if e else text for e, text in zip(empty.tolist(), figures_of_table(table, values), strict=True)
    )


def released_cells_for_browser(table: Table, folder: Path, job: Job) -> tuple[tuple[str, ...], IntArray]:
    """Read what was published, in the order of the system's cells."""
    names = job.method.method.columns
    if not table.parts:
        return _browser_texts_and_kinds(table, _columns_released_in_project(folder, job.name, names, table.n_cells))
    nothing = np.where(empty_cells_of_table(table), 0.0, np.nan)  # cells without data may have no row
    columns: dict[str, Any] = {
        name: np.full(table.n_cells, "published", dtype=object) if name == "status" else nothing.copy()
        for name in names
    }
    for title, group in sheets_of_parts(table.parts).items():
        for behind, part in enumerate(group[::-1]):
            rows = part.rows()
            for name, column in _columns_released_in_project(
                folder, file_name_of_sheet(title), names, len(rows), behind=behind
            ).items():
                columns[name][part.cells[rows]] = column
    return _browser_texts_and_kinds(table, columns)


def _columns_released_in_project(
    folder: Path, stem: str, names: tuple[str, ...], n: int, *, behind: int = 0
) -> dict[str, Any]:
    """Return what a published file says of its cells: the columns behind the codes, and before so many indicators."""
    for mark in ("", "UNSAFE-"):
        for path in (folder / f"{mark}{stem}.csv", folder / f"{mark}{stem}.parquet"):
            if not path.is_file():
                continue
            frame = read_frame(path)
            last = list(frame)[:-1] if mark else list(frame)
            end = len(last) - behind * len(names)
            own = dict(zip(names, last[end - len(names) : end], strict=True))
            found = {
                k: np.array(column_as_texts(frame[c]), object) if k == "status" else column_as_numbers(frame[c], k)
                for k, c in own.items()
            }
            if any(len(column) != n for column in found.values()):
                raise InputError(
                    "the data have changed since this release was made: it has other cells.",
                    hint="protect the table again, or put the old data back.",
                )
            return found
    raise InputError("this release has no CSV or Parquet file to look at.", hint="ask for csv on the page Protect.")


def _browser_texts_and_kinds(table: Table, columns: dict[str, Any]) -> tuple[tuple[str, ...], IntArray]:
    """Return the texts and kinds of what is published."""
    kinds = np.full(table.n_cells, KINDS.index("published"))
    if "lower" in columns:
        low, high = browser_texts_of_numbers(table, columns["lower"]), browser_texts_of_numbers(table, columns["upper"])
        kinds[columns["lower"] != columns["upper"]] = KINDS.index("interval")
        return tuple(a if a == b else f"{a} – {b}" for a, b in zip(low, high, strict=True)), kinds
    shown = browser_texts_of_numbers(table, columns["value"])
    if "status" not in columns:
        kinds[:] = KINDS.index("changed")
        return shown, kinds
    hidden = columns["status"] != "published"
    kinds[hidden & table.sensitive] = KINDS.index("primary")
    kinds[hidden & ~table.sensitive] = KINDS.index("secondary")
    return shown, kinds
