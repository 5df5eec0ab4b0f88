"""Tables that tests build again and again, and files that they read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

import cellguard as cg

__all__ = ["rows_of", "table_with_margins", "with_margins"]


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


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as dictionaries."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
