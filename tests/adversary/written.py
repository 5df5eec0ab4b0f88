"""What stands in a written release: read with the csv module, and matched to the cells by their codes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import cellguard as cg


class UnreadableError(Exception):
    """The file does not say of every cell once what is published."""


@dataclass(frozen=True)
class Written:
    """The columns of a file, in the order of the table's cells; None where nothing stands."""

    columns: dict[str, list[str]]

    def numbers(self, name: str) -> list[Fraction | None]:
        """Return a column of numbers exactly as they are printed."""
        return [number(word) for word in self.columns[name]]


def number(word: str) -> Fraction | None:
    """Return a printed number as a fraction; None for nothing and for no end.

    >>> number("1.5e3"), number(""), number("-inf")
    (Fraction(1500, 1), None, None)
    """
    if word == "" or word.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return None
    return Fraction(Decimal(word))


def find_cells(table: cg.Table, rows: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the cell of each row of a file, by its codes; a file may be in another order than the table."""
    names = list(table.dimensions) or ["cell"]
    codes = table.cell_codes()
    place = {tuple(codes[n][i] for n in names): i for i in range(table.n_cells)}
    found = [place.get(tuple(row[n] for n in names)) for row in rows]
    for r, cell in enumerate(found):
        if cell is None or cell in found[:r]:
            raise UnreadableError(f"row {r + 2}: no cell of the table, or one that was there before")
    return found  # type: ignore[return-value]


def read(path: Path, table: cg.Table) -> Written:
    """Read a file that ``release.save`` wrote."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = list(table.dimensions) or ["cell"]
    order = {cell: r for r, cell in enumerate(find_cells(table, rows))}
    if len(order) < table.n_cells:
        raise UnreadableError("a cell is missing")
    columns = [name for name in rows[0] if name not in names]
    return Written({name: [rows[order[i]][name] or "" for i in range(table.n_cells)] for name in columns})
