"""Read the files of a release in the order of its table's cells, and the job that made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import read_bytes
from cellguard._io.frames import convert_to_numbers, convert_to_texts, escape_formula, read_frame
from cellguard._io.toml import parse_toml, read_toml_text
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.model.table import Table
from cellguard.release.formats.sheets import group_parts_by_sheet, make_file_name
from cellguard.release.grid import NO_DATA, find_empty_cells, format_table_figures
from cellguard.release.release import ROW_ORDERS, Release, order_cells
from cellguard.web.places import list_outside_files
from cellguard.web.projects import Project

__all__ = [
    "KINDS",
    "format_numbers",
    "project_job_of_release",
    "read_released_cells",
    "read_released_json",
]  # fmt: skip

KINDS = ("published", "sensitive", "primary", "secondary", "interval", "changed", "fixed", "nothing")
"""Kinds of cells; windows refer to them by their index here."""


def read_released_json(path: Path) -> dict[str, Any]:
    """Return the content of a file of a release; raise an error if it is damaged."""
    try:
        found = json.loads(read_bytes(path, max_bytes=1 << 30))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path.name}: is damaged.", hint="protect the table again.")
    return found


def project_job_of_release(project: Project, folder: Path) -> JobFile:
    """Return the job that made a release."""
    path = folder / "internal" / "job.toml"
    text = read_toml_text(path, path.name)
    raw = parse_toml(text, path.name)
    outside = list_outside_files(raw, project.root, project.folder)
    if outside:
        raise InputError(outside[0].text, hint=outside[0].hint)
    return JobFile(path=project.path, text=text, job=Job.model_validate(raw))


def format_numbers(table: Table, values: FloatArray) -> tuple[str, ...]:
    """Return numbers as the report shows them, with "no data" distinct from zero."""
    empty = find_empty_cells(table) & (values == 0)
    return tuple(
        NO_DATA if e else text for e, text in zip(empty.tolist(), format_table_figures(table, values), strict=True)
    )


def read_released_cells(table: Table, folder: Path, job: Job) -> tuple[tuple[str, ...], IntArray]:
    """Read the published content, in the order of the joint table's cells."""
    names, kind = job.method.method.columns, job.method.method.release_kind
    if not table.parts:
        orders = [order_cells(table, row_order) for row_order in ROW_ORDERS]
        rows, read = _read_released_columns(folder, job.name, names, table, orders)
        columns = {name: np.empty_like(column) for name, column in read.items()}
        for name, column in read.items():
            columns[name][rows] = column
        return _format_texts_and_kinds(table, kind, columns)
    nothing = np.where(find_empty_cells(table), 0.0, np.nan)  # cells without data may have no row
    columns = {
        name: np.full(table.n_cells, "published", dtype=object) if name == "status" else nothing.copy()
        for name in names
    }
    for title, group in group_parts_by_sheet(table.parts).items():
        for behind, part in enumerate(group[::-1]):
            orders = [part.rows(row_order) for row_order in ROW_ORDERS]
            rows, read = _read_released_columns(folder, make_file_name(title), names, part.table, orders, behind=behind)
            for name, column in read.items():
                columns[name][part.cells[rows]] = column
    return _format_texts_and_kinds(table, kind, columns)


def _read_released_columns(
    folder: Path, stem: str, names: tuple[str, ...], table: Table, orders: Sequence[IntArray], *, behind: int = 0
) -> tuple[IntArray, dict[str, Any]]:
    """Return the cells of a published file in the order of its rows (one of `orders`), and their content.

    The content is in the columns after the codes; with several indicators, each has its own columns.
    """
    for mark in ("", "UNSAFE-"):
        for path in (folder / f"{mark}{stem}.csv", folder / f"{mark}{stem}.parquet"):
            if not path.is_file():
                continue
            frame = read_frame(path)
            last = list(frame)[:-1] if mark else list(frame)
            end = len(last) - behind * len(names)
            own = dict(zip(names, last[end - len(names) : end], strict=True))
            found = {
                k: np.array(convert_to_texts(frame[c]), object) if k == "status" else convert_to_numbers(frame[c], k)
                for k, c in own.items()
            }
            codes = [convert_to_texts(frame[c]) for c in list(frame)[: max(1, len(table.dimensions))]]
            rows = next((order for order in orders if _has_codes(codes, table.cell_codes(order))), None)
            if rows is None:
                raise InputError(
                    "the data have changed since this release was made: it has other cells.",
                    hint="protect the table again, or put the old data back.",
                )
            return rows, found
    raise InputError("this release has no CSV or Parquet file to look at.", hint="ask for csv on the page Protect.")


def _has_codes(read: Sequence[list[str]], codes: Mapping[str, list[str]]) -> bool:
    """Return whether a file has these codes, unchanged or escaped for spreadsheet programs."""
    pairs = zip(read, codes.values(), strict=True)
    return all(one == own or one == [escape_formula(code) for code in own] for one, own in pairs)


def _format_texts_and_kinds(
    table: Table, kind: type[Release], columns: dict[str, Any]
) -> tuple[tuple[str, ...], IntArray]:
    """Return the texts and kinds of the published cells; kinds show the office which withheld cells are sensitive."""
    texts, found = kind.get_texts_of_columns(table, columns)
    numbers = columns.get("value", columns.get("lower", np.zeros(table.n_cells)))
    empty = find_empty_cells(table) & (numbers == 0)
    shown = tuple(NO_DATA if nothing else text for text, nothing in zip(texts, empty.tolist(), strict=True))
    found = np.where(found == "withheld", np.where(table.sensitive, "primary", "secondary"), found)
    return shown, np.array([KINDS.index(name) if name in KINDS else KINDS.index("published") for name in found])
