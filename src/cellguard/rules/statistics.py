"""The statistics of a cell that rules may use: a few numbers per cell, never the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard._engine.space.groups import find_groups
from cellguard._types import ByteArray, FloatArray, IntArray
from cellguard.exceptions import InputError

__all__ = ["CellStatistics", "number_contributors_jointly"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellStatistics:
    """Total, count and largest contributions of every cell (confidential).

    >>> cells = CellStatistics.of([330.0], [3], [[300.0, 20.0]])
    >>> cells.largest(2)
    array([320.])
    """

    value: FloatArray
    """R: the published value."""
    total: FloatArray
    """X: the sum of the contributions that rules use; weighted, absolute or of the shadow variable if requested."""
    count: FloatArray
    """f: number of contributors (records, or holdings)."""
    weight: FloatArray
    """Sum of the contributors' weights; the count when there are none."""
    top: FloatArray
    """One row per cell: its largest contributions in descending order, then zeros."""
    top_weights: FloatArray | None = None
    """Weights of `top`; None when every contributor counts once."""
    units: int = 0
    """Number of largest contributions that `top` is certain to contain (with weights: number of units)."""
    protected: FloatArray | None = None
    """Largest contribution of a respondent without a waiver, NaN if all waived; None if waivers are not recorded."""
    request: ByteArray | None = None
    """Kind of protection that the largest contributor requested: 0 none, 1 or 2; None if requests are not recorded."""
    contributors: IntArray | None = None
    """Contributors of `top`, as numbers in a list of `people`; -1 where there are no more."""
    whole: FloatArray | None = None
    """Total contribution of each of `contributors` to all cells; None if unknown."""
    own: CellStatistics | None = None
    """The same for the published variable, if `top` is of another one: what contributors know they gave."""
    people: str = ""
    """Name of the list that the numbers refer to; the same list means the same records; "" for the table's own."""
    shadow: bool = False
    """Whether the contributions are of another variable than the published one."""
    integer: bool = False
    """Whether the published values are counts: levels are then whole numbers."""

    @classmethod
    def of(
        cls,
        total: ArrayLike,
        count: ArrayLike,
        top: ArrayLike,
        *,
        value: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        integer: bool = False,
    ) -> CellStatistics:
        """Make the statistics from totals, counts and largest contributions (sorted here)."""
        x = np.atleast_2d(np.asarray(top, dtype=np.float64))
        sums = np.asarray(total, dtype=np.float64)
        n = np.asarray(count, dtype=np.float64)
        if len(x) != len(sums) or len(n) != len(sums):
            raise InputError(f"{len(sums)} totals, {len(n)} counts and {len(x)} rows of contributions do not fit.")
        order = np.argsort(-x, axis=1, kind="stable")
        w = None if weights is None else np.take_along_axis(np.asarray(weights, dtype=np.float64), order, axis=1)
        return cls(
            value=sums if value is None else np.asarray(value, dtype=np.float64),
            total=sums,
            count=n,
            weight=n,
            top=np.take_along_axis(x, order, axis=1),
            top_weights=w,
            units=x.shape[1],
            integer=integer,
        )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.total)

    @property
    def first(self) -> FloatArray:
        """The largest contribution of a respondent who must be protected; NaN if there is none."""
        if self.protected is not None:
            return self.protected
        if self.top.shape[1] == 0:
            return np.full(self.n_cells, np.nan)
        return np.where(self.count > 0, self.top[:, 0], np.nan)

    def largest(self, units: int) -> FloatArray:
        """Return the sum of the `units` largest contributions.

        In a weighted sample each contribution represents as many units as its weight; they fill
        the ranks from the top, the last one in part.
        """
        self.require(units)
        if self.top_weights is None:
            sums: FloatArray = self.top[:, :units].sum(axis=1)
            return sums
        w = self.top_weights
        before = np.cumsum(w, axis=1) - w
        filled: FloatArray = (np.clip(units - before, 0.0, w) * self.top).sum(axis=1)
        return filled

    def sum_largest(self, units: int) -> FloatArray:
        """Return the sum of the `units` largest contributions, including one of a respondent to be protected.

        Without waivers these are simply the largest. A protected respondent of lower rank replaces the last of them.
        """
        everybody = self.largest(units)
        if self.protected is None:
            return everybody
        others = self.largest(units - 1)
        return others + np.minimum(np.nan_to_num(self.protected), everybody - others)

    def convert_level(self, level: FloatArray) -> FloatArray:
        """Convert a level of the contributions to one of the published value: the same share of it."""
        if not self.shadow:
            return level
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.total > 0, level / self.total, 0.0)
        return share * np.abs(self.value)

    def require(self, units: int) -> None:
        """Refuse a rule that needs more contributions than were kept."""
        if units > self.units:
            kept = f"the {self.units} largest contributions of a cell are kept" if self.units else "none are kept"
            raise InputError(
                f"a rule looks at the {units} largest contributions; {kept}.",
                hint=f"tabulate with top={units}, or give the frame's columns of largest contributions.",
            )

    def take(self, cells: ArrayLike) -> CellStatistics:
        """Return the statistics of some cells, in the given order."""
        index = np.asarray(cells)
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        changed = {k: v[index] if isinstance(v, np.ndarray) else v for k, v in changed.items()}
        return CellStatistics(**{**changed, "own": None if self.own is None else self.own.take(index)})

    def join_statistics(
        self,
        others: Sequence[CellStatistics],
        place: Sequence[IntArray],
        value: FloatArray,
        measured: Sequence[str] | None = None,
    ) -> Any:
        """Return the joint statistics of tables that share cells; None if they do not have the same fields.

        Parameters
        ----------
        others
            Statistics of the other tables.
        place
            For each table, this one first, the index of each of its cells in the joined table.
        value
            The published values of the joined cells.
        measured
            What each table measures, if they differ.
        """
        tables = (self, *others)
        if len({table.shadow for table in tables}) > 1 or len({table.top_weights is None for table in tables}) > 1:
            return None
        width = max(table.top.shape[1] for table in tables)
        whole: dict[str, Any] = {"value": value, "units": min(table.units for table in tables), "integer": self.integer}
        whole["people"] = self.people if len({table.people for table in tables}) == 1 else ""
        out: dict[str, Any] = {}
        who = number_contributors_jointly(tables, place, len(value), measured)
        for field in fields(self):
            columns = [getattr(table, field.name) for table in tables]
            if not any(isinstance(column, np.ndarray) for column in columns):
                out[field.name] = columns[0]
            elif any(column is None for column in columns):  # a field that one table lacks is unknown for all
                out[field.name] = None
            else:
                columns = who if field.name == "contributors" and who is not None else columns
                out[field.name] = _spread_over_cells(columns, place, len(value), width, _BLANK.get(field.name, 0.0))
        own = [table.own for table in tables if table.own is not None]
        whole["own"] = own[0].join_statistics(own[1:], place, value, measured) if len(own) == len(tables) else None
        return CellStatistics(**{**out, **whole})

    def __repr__(self) -> str:
        cells = "1 cell" if self.n_cells == 1 else f"{self.n_cells} cells"
        return f"CellStatistics({cells}, {self.units} largest contributions)"


_BLANK = {"contributors": -1, "count": np.inf, "top": np.nan, "whole": np.nan}
"""Defaults for joined cells without information from any table; 0 for other fields."""


def _spread_over_cells(
    columns: Sequence[NDArray[Any]], place: Sequence[IntArray], n: int, width: int, blank: float
) -> NDArray[Any]:
    """Combine columns of tables into one for the joined cells: the first table that has a cell decides."""
    out = np.full((n, width) if columns[0].ndim > 1 else n, blank, columns[0].dtype)
    for column, cells in reversed(list(zip(columns, place, strict=True))):
        if column.ndim > 1:
            out[cells] = min(blank, 0) if np.isfinite(blank) else 0
            out[cells, : column.shape[1]] = column
        else:
            out[cells] = column
    return out


def number_contributors_jointly(
    tables: Sequence[CellStatistics], place: Sequence[IntArray], n: int, measured: Sequence[str] | None = None
) -> list[IntArray] | None:
    """Return the contributors of every table under common numbers; None if a table does not know them.

    Equal numbers in the same list are the same person; other numbers mean nothing outside their table. But a cell
    that two tables share has the same contributors in both. If only one contributor gave the k-th largest amount, it
    is the same person in both. The same holds, most likely, for an amount that occurs once in each table. Treating two
    people as one costs some unnecessary protection; treating one as two would miss an attacker.

    Parameters
    ----------
    tables
        Statistics of the cells of each table.
    place
        For each table, the index of each of its cells among `n` common cells; -1 for none.
    n
        Number of common cells.
    measured
        What each table measures, if they differ: equal amounts of exports and of sales do not identify a person.
    """
    if any(table.contributors is None for table in tables):
        return None
    known = [np.asarray(table.contributors) for table in tables]
    lists = [table.people or str(k) for k, table in enumerate(tables)]
    if len(set(lists)) == 1:
        return known
    size = dict.fromkeys(lists, 0)
    for name, ids in zip(lists, known, strict=True):
        size[name] = max(size[name], int(ids.max(initial=-1)) + 1)
    first_of = dict(zip(size, np.cumsum([0, *size.values()]).tolist(), strict=False))
    start = [first_of[name] for name in lists]
    pairs: list[tuple[IntArray, IntArray]] = []
    alike = [_find_distinct_amounts(table) for table in tables]
    for k in range(len(tables)):
        for j in range(k):
            if lists[j] == lists[k] or (measured is not None and measured[j] != measured[k]):
                continue
            one, other = _match_contributors(tables[j], tables[k], place[j], place[k], n)
            pairs.append((one + start[j], other + start[k]))
            _, mine, theirs = np.intersect1d(alike[j][1], alike[k][1], assume_unique=True, return_indices=True)
            pairs.append((alike[j][0][mine] + start[j], alike[k][0][theirs] + start[k]))
    one, other = (np.concatenate([np.zeros(0, np.int64), *(pair[side] for pair in pairs)]) for side in (0, 1))
    person = np.append(find_groups(one, other, sum(size.values())), -1)
    return [np.where(ids >= 0, person[ids + first], -1) for ids, first in zip(known, start, strict=True)]


def _match_contributors(
    one: CellStatistics, other: CellStatistics, place: IntArray, there: IntArray, n: int
) -> tuple[IntArray, IntArray]:
    """Return the pairs of people in two tables who are the same by their amounts in cells that both have."""
    at = np.full(n + 1, -1, np.int64)
    at[there] = np.where(there >= 0, np.arange(other.n_cells), -1)
    here = np.flatnonzero((at[place] >= 0) & (place >= 0))
    row = at[place][here]
    ids, others = np.asarray(one.contributors), np.asarray(other.contributors)
    most = min(ids.shape[1], others.shape[1])
    a, b = one.top[here, :most], other.top[row, :most]
    pad = np.full((len(here), 1), np.inf)
    apart = (np.diff(a, axis=1, prepend=pad) < 0) & (np.diff(a, axis=1, append=-pad) < 0)
    sure = apart & (a == b) & (ids[here, :most] >= 0) & (others[row, :most] >= 0)
    return ids[here, :most][sure], others[row, :most][sure]


def _find_distinct_amounts(table: CellStatistics) -> tuple[IntArray, FloatArray]:
    """Return the contributors who gave the same, unique amount to all their cells; and these amounts."""
    ids = np.asarray(table.contributors).ravel()
    amount = table.top[:, : np.asarray(table.contributors).shape[1]].ravel()[ids >= 0]
    people, who = np.unique(ids[ids >= 0], return_inverse=True)
    least, most = np.full(len(people), np.inf), np.full(len(people), -np.inf)
    np.minimum.at(least, who, amount)
    np.maximum.at(most, who, amount)
    people, least = people[(least == most) & (least > 0)], least[(least == most) & (least > 0)]
    distinct, first, count = np.unique(least, return_index=True, return_counts=True)
    return people[first[count == 1]], distinct[count == 1]
