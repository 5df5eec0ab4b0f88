"""A template: a file whose rows list the cells to publish, as Eurostat's do.

A row has a period, an indicator, and a code for each dimension. The dimensions of a row that are not at their
total determine its table: the largest such sets are the tables, the smaller ones their margins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import CellguardError, InputError, PublicationError, suggest_names
from cellguard.model.totals import find_total

__all__ = ["Template", "TemplateTable", "find_total", "is_template_period"]


_PERIODS = ("time_period", "period", "ref_period", "time", "year", "quarter", "month", "jahr", "annee", "année", "ano")
_INDICATORS = ("indicator", "indicators", "indic", "indicateur", "variable", "measure", "merkmal", "indicador")
_OTHER = "describe it in [dimensions], or leave it out of the template."
_MOST = 20
"""Maximum number of errors of a kind to report one by one."""


def is_template_period(column: str) -> bool:
    """Return whether a column holds the period, by its name."""
    return column.lower() in _PERIODS


@dataclass(frozen=True, kw_only=True, eq=False)
class TemplateTable:
    """One table that a template lists."""

    indicator: str
    """Its indicator; empty if the template does not distinguish indicators."""
    period: str
    """The period; empty if the template has none."""
    dimensions: tuple[str, ...]
    """Its dimensions, in the order of the columns."""
    codes: tuple[tuple[str, ...], ...] = field(repr=False)
    """The codes of each cell in these dimensions."""
    lines: IntArray = field(repr=False)
    """The line of each cell in the file."""

    @property
    def name(self) -> str:
        """Name of the table in the publication, without its indicator."""
        return " by ".join(self.dimensions) + (f" {self.period}" if self.period else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """The tables that a file of cells lists."""

    source: str
    """The file."""
    tables: tuple[TemplateTable, ...]
    """The tables, separate for each indicator and period."""
    totals: Mapping[str, str]
    """Dimension -> its code of the total, if the file has one."""
    period: str | None = None
    """The column of the period."""

    @classmethod
    def read(
        cls, path: str | Path, *, dimensions: Sequence[str] = (), totals: Mapping[str, str] | None = None
    ) -> Template:
        """Read a template.

        Parameters
        ----------
        path
            CSV or Parquet.
        dimensions
            Possible columns of codes: a dimension without a column is at its total in every row. All columns but
            period and indicator unless given.
        totals
            Dimension -> code of the total, if it is not one of the usual ones (:func:`find_total`).

        Raises
        ------
        PublicationError
            With all errors in the file, each with its line.
        """
        found, wrong = cls.inspect(path, dimensions=dimensions, totals=totals)
        PublicationError.refuse(wrong)
        return found

    @classmethod
    def inspect(
        cls, path: str | Path, *, dimensions: Sequence[str] = (), totals: Mapping[str, str] | None = None
    ) -> tuple[Template, list[CellguardError]]:
        """Return the tables of the valid rows, and the errors of the others, so that all can be reported at once.

        Raises
        ------
        PublicationError
            If the columns are not those of a template.
        """
        from cellguard._io.frames import encode_frame_column, read_frame

        path = Path(path)
        frame = read_frame(path)
        period = next((c for c in frame if is_template_period(c) and c not in dimensions), None)
        indicator = next((c for c in frame if c.lower() in _INDICATORS and c not in dimensions), None)
        named = [c for c in frame if c not in (period, indicator) and (c in dimensions or not dimensions)]
        others = [c for c in frame if c not in (*named, period, indicator)]
        wrong: list[CellguardError] = [
            InputError(
                f"{path.name}: line 1: column {c!r} is not a dimension of the publication.",
                hint=suggest_names(c, dimensions) or _OTHER,
            )
            for c in others
        ]
        if wrong or not named:
            raise PublicationError.of(wrong or [InputError(f"{path.name}: there is no column of codes.")])
        columns = {c: encode_frame_column(frame[c]) for c in [*named, *(x for x in (period, indicator) if x)]}
        wrong += [
            InputError(f"{path.name}: line {row + 2}: no code in column {c!r}.")
            for c, (_, index) in columns.items()
            for row in np.flatnonzero(index < 0)[:_MOST].tolist()
        ]
        wrong += _find_repeated_rows(path, [index for _, index in columns.values()])
        cells = np.column_stack([index for _, index in columns.values()])
        rows = np.sort(np.unique(cells, axis=0, return_index=True)[1])
        rows = rows[(cells[rows] >= 0).all(axis=1)]
        columns = {c: (seen, index[rows]) for c, (seen, index) in columns.items()}
        found = {c: _find_total_code(columns[c][0], (totals or {}).get(c)) for c in named}
        tables = _find_tables(columns, rows + 2, found, period, indicator)
        shown = {c: t for c, t in found.items() if t is not None}
        return cls(source=path.name, tables=tables, totals=shown, period=period), wrong


def _find_total_code(codes: Sequence[str], given: str | None) -> str | None:
    return given if given in codes else find_total(codes, letter=True)


def _find_repeated_rows(path: Path, columns: Sequence[IntArray]) -> list[CellguardError]:
    """Return errors for repeated rows."""
    from cellguard._io.frames import find_repeated_rows

    return [
        InputError(f"{path.name}: line {again + 2}: the cell is listed before, in line {first + 2}.")
        for first, again in find_repeated_rows(columns, _MOST)
    ]


def _find_tables(
    columns: Mapping[str, tuple[list[str], IntArray]],
    lines: IntArray,
    totals: Mapping[str, str | None],
    period: str | None,
    indicator: str | None,
) -> tuple[TemplateTable, ...]:
    """Find the tables: for each period and indicator the largest sets of dimensions that are not at their total."""
    named = list(totals)
    away = np.column_stack([_list_codes_below_total(columns[c], totals[c]) for c in named])
    codes = {c: np.array(listed, object)[index] for c, (listed, index) in columns.items()}
    n = len(away)
    of = [codes[c] if c else np.full(n, "", object) for c in (period, indicator)]
    out = []
    for when, what in dict.fromkeys(zip(*(x.tolist() for x in of), strict=True)):
        mine = (of[0] == when) & (of[1] == what)
        patterns = np.unique(away[mine], axis=0)
        for pattern in patterns[::-1]:
            if any((other >= pattern).all() and (other > pattern).any() for other in patterns):
                continue  # a margin of a larger table
            rows = np.flatnonzero(mine & ~(away & ~pattern).any(axis=1))
            used = [c for c, on in zip(named, pattern.tolist(), strict=True) if on] or list(named[:1])
            cells = tuple(zip(*(codes[c][rows].tolist() for c in used), strict=True))
            out.append(
                TemplateTable(indicator=what, period=when, dimensions=tuple(used), codes=cells, lines=lines[rows])
            )
    return tuple(out)


def _list_codes_below_total(column: tuple[list[str], IntArray], total: str | None) -> Any:
    codes, index = column
    return np.array([code != total for code in codes])[index]
