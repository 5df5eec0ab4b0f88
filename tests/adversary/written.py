"""What stands in a written release: read with the csv module, and matched to the cells by their codes."""

from __future__ import annotations

import csv
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


def read(path: Path, table: cg.Table) -> Written:
    """Read a file that ``release.save`` wrote."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = list(table.dimensions) or ["cell"]
    codes = table.cell_codes()
    place = {tuple(codes[n][i] for n in names): i for i in range(table.n_cells)}
    order: list[int | None] = [None] * table.n_cells
    for r, row in enumerate(rows):
        cell = place.get(tuple(row[n] for n in names))
        if cell is None or order[cell] is not None:
            raise UnreadableError(f"row {r + 2}: no cell of the table, or one that was there before")
        order[cell] = r
    if None in order:
        raise UnreadableError("a cell is missing")
    return Written({name: [rows[r][name] or "" for r in order] for name in rows[0] if name not in names})  # type: ignore[index]
