"""A template: a file whose rows list the cells to be published, as Eurostat's do.

A row has a period, an indicator, and a code for each dimension. The dimensions of a row that are not at their
total say which table it belongs to: the largest such sets are the tables, the smaller ones their margins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import CellguardError, InputError, PublicationError, did_you_mean
from cellguard.nouns.totals import total_among

__all__ = ["Template", "TemplateTable", "is_template_period", "total_among"]


_PERIODS = ("time_period", "period", "ref_period", "time", "year", "quarter", "month", "jahr", "annee", "année", "ano")
_INDICATORS = ("indicator", "indicators", "indic", "indicateur", "variable", "measure", "merkmal", "indicador")
_OTHER = "describe it in [dimensions], or leave it out of the template."
_MOST = 20
"""So many mistakes of a kind are told one by one."""


def is_template_period(column: str) -> bool:
    """Say whether a column tells the period, by its name."""
    return column.lower() in _PERIODS


@dataclass(frozen=True, kw_only=True, eq=False)
class TemplateTable:
    """One table that a template asks for."""

    indicator: str
    """What it measures; empty where the template does not tell indicators apart."""
    period: str
    """The period; empty where the template has none."""
    dimensions: tuple[str, ...]
    """Its dimensions, in the order of the columns."""
    codes: tuple[tuple[str, ...], ...] = field(repr=False)
    """The codes of each cell in these dimensions."""
    lines: IntArray = field(repr=False)
    """The line of each cell in the file."""

    @property
    def name(self) -> str:
        """How the publication calls it, without its indicator."""
        return " by ".join(self.dimensions) + (f" {self.period}" if self.period else "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """The tables that a file of cells asks for."""

    source: str
    """The file."""
    tables: tuple[TemplateTable, ...]
    """The tables, each indicator and period apart."""
    totals: Mapping[str, str]
    """Dimension -> its code of the total, where the file has one."""
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
            What its columns of codes may be: one that it does not have is at its total in every row. All columns but
            period and indicator unless given.
        totals
            Dimension -> code of the total, where it is not one of the usual ones (:func:`total_among`).

        Raises
        ------
        PublicationError
            With everything that is wrong in the file, each with its line.
        """
        found, wrong = cls.looked_at(path, dimensions=dimensions, totals=totals)
        PublicationError.refuse(wrong)
        return found

    @classmethod
    def looked_at(
        cls, path: str | Path, *, dimensions: Sequence[str] = (), totals: Mapping[str, str] | None = None
    ) -> tuple[Template, list[CellguardError]]:
        """Return what the rows in order ask for, and what is wrong with the others: who goes on tells all at once.

        Raises
        ------
        PublicationError
            Where the columns are not those of a template.
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
                f"{path.name}: line 1: column {c!r} is no dimension of the publication.",
                hint=did_you_mean(c, dimensions) or _OTHER,
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
        wrong += _template_rows_listed_twice(path, [index for _, index in columns.values()])
        cells = np.column_stack([index for _, index in columns.values()])
        rows = np.sort(np.unique(cells, axis=0, return_index=True)[1])
        rows = rows[(cells[rows] >= 0).all(axis=1)]
        columns = {c: (seen, index[rows]) for c, (seen, index) in columns.items()}
        found = {c: _total_code_of_template(columns[c][0], (totals or {}).get(c)) for c in named}
        tables = _tables_of_template(columns, rows + 2, found, period, indicator)
        shown = {c: t for c, t in found.items() if t is not None}
        return cls(source=path.name, tables=tables, totals=shown, period=period), wrong


def _total_code_of_template(codes: Sequence[str], given: str | None) -> str | None:
    return given if given in codes else total_among(codes, letter=True)


def _template_rows_listed_twice(path: Path, columns: Sequence[IntArray]) -> list[CellguardError]:
    """Return rows that are listed before."""
    from cellguard._io.frames import rows_repeated_in_frame

    return [
        InputError(f"{path.name}: line {again + 2}: the cell is listed before, in line {first + 2}.")
        for first, again in rows_repeated_in_frame(columns, _MOST)
    ]


def _tables_of_template(
    columns: Mapping[str, tuple[list[str], IntArray]],
    lines: IntArray,
    totals: Mapping[str, str | None],
    period: str | None,
    indicator: str | None,
) -> tuple[TemplateTable, ...]:
    """Find the tables: for each period and indicator the largest sets of dimensions that are not at their total."""
    named = list(totals)
    away = np.column_stack([_template_codes_below_total(columns[c], totals[c]) for c in named])
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


def _template_codes_below_total(column: tuple[list[str], IntArray], total: str | None) -> Any:
    codes, index = column
    return np.array([code != total for code in codes])[index]
