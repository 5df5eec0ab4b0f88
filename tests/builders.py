"""Tables and jobs that tests build again and again, and files that they write and read."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cellguard as cg
from cellguard._io.toml import format_document

__all__ = [
    "REGIONS",
    "columns_of_records",
    "convert_to_rows",
    "format_job",
    "key",
    "renumbered",
    "sums_of_leaves",
    "table_with_margins",
    "with_margins",
    "write_columns",
    "write_job",
]  # fmt: skip

REGIONS = {"East": ["E1", "E2"], "West": ["W1", "W2"]}
"""A tree of regions, as a job says it."""


def key(number: int = 1) -> cg.Key:
    """Return a key for a test that must be repeatable; everybody can compute it."""
    return cg.Key.from_public_number(number)


def with_margins(inner: Any) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Return inner cells with their totals, last in each direction; the number of each cell; and the relations."""
    full = np.pad(np.asarray(inner, float), [(0, 1)] * np.ndim(inner))
    index = np.arange(full.size).reshape(full.shape)
    relations = []
    for axis in reversed(range(full.ndim)):
        lines = np.moveaxis(full, axis, 0)
        lines[-1] = lines.sum(axis=0)
        numbers = np.moveaxis(index, axis, -1).reshape(-1, full.shape[axis])
        relations += [[int(line[-1]), *map(int, line[:-1])] for line in numbers]
    return full, index, relations


def table_with_margins(inner: Any, **fields: Any) -> cg.Table:
    """Return inner cells and their totals as a table."""
    full, _, relations = with_margins(inner)
    return cg.Table.from_equations(full.ravel(), relations, **fields)


def sums_of_leaves(table: cg.Table) -> np.ndarray:
    """Return which leaves each cell is the sum of: a row for each cell, a column for each leaf cell."""
    sums = [h.build_matrix().toarray() for h in table.hierarchies]
    rows = []
    for cell in table.coordinates:
        row = np.ones(1)
        for d, code in enumerate(cell):
            row = np.kron(row, sums[d][code])
        rows.append(row)
    return np.array(rows)


def columns_of_records(n: int, decimals: int | None = None) -> dict[str, np.ndarray]:
    """Return records with a column for every part in a tabulation; amounts with so many decimals, or all."""
    rng = np.random.default_rng(7)
    columns = {
        "region": rng.choice(["N1", "N2", "S1", "S2"], n),
        "nace": rng.integers(1, 7, n),
        "x": rng.lognormal(3, 2, n).round(2),
        "s": rng.lognormal(2, 1, n),
        "d": rng.normal(0, 50, n),
        "w": rng.integers(5, 60, n) / 10,
        "h": rng.integers(0, n // 3, n).astype(str),
        "q": rng.random(n) < 0.3,
        "r": rng.integers(0, 3, n),
    }
    if decimals is not None:
        columns |= {name: columns[name].round(decimals) for name in ("s", "d")}
    return columns | {"g": np.where(rng.random(n) > 0.1, columns["x"], np.nan)}


def renumbered(table: cg.Table) -> np.ndarray:
    """Return who contributed, numbered by where he stands first: numbers themselves mean nothing."""
    who = table.statistics.contributors
    _, first, number = np.unique(who, return_index=True, return_inverse=True)
    return np.where(who < 0, -1, first[number].reshape(who.shape))


def convert_to_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as dictionaries."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns as a CSV file."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def format_job(*dimensions: str, **sections: Any) -> str:
    """Return a job: its sections, and dimensions without a tree by their names alone.

    Where nothing else is said it is about the turnover of firms, p% rule, out into a folder of its own.
    """
    usual = {
        "name": "small",
        "data": {"file": "firms.csv", "value": "turnover"},
        "dimensions": {},
        "rules": [{"rule": "p_percent", "p": 10}],
        "output": {"folder": "out"},
    }
    job = usual | sections
    job["dimensions"] = job["dimensions"] | {name: {} for name in dimensions}
    return format_document(job, nested=("dimensions",))


def write_job(folder: Path, *dimensions: str, **sections: Any) -> Path:
    """Write a job (see :func:`format_job`) and return its path."""
    path = folder / "job.toml"
    path.write_text(format_job(*dimensions, **sections))
    return path
