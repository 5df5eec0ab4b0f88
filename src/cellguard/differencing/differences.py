"""Differences: unions of pieces that published tables determine, and which of them disclose something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._types import BoolArray, IntArray
from cellguard.differencing.combinations import CombinationSearch
from cellguard.differencing.cuts import AreaCut, AreaGraph
from cellguard.differencing.pieces import AreaPieces, Grouping, PiecesAsked, read_pieces
from cellguard.exceptions import InputError

__all__ = ["Difference", "Differences", "find_differences"]

_STRICTLY = 1e-9
"""A contribution dominates if it exceeds its share by more than this part."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Difference:
    """A union of pieces that can be computed from published areas, and is small or dominated."""

    plus: tuple[tuple[str, tuple[str, ...]], ...]
    """Areas to add up: the table, and the codes of the area."""
    minus: tuple[tuple[str, tuple[str, ...]], ...]
    """Areas to subtract."""
    pieces: IntArray = field(repr=False)
    """The pieces that are left."""
    count: int
    """Number of records in them."""
    reason: str
    """``"small"`` or ``"dominated"``."""
    divisor: int = 1
    """By what the sum is divided; more than 1 only where three or more tables are needed."""

    @property
    def formula(self) -> str:
        """What to compute, in words."""
        signs = [("+", *area) for area in self.plus] + [("-", *area) for area in self.minus]
        text = " ".join(f"{sign} {table}:{'/'.join(codes)}" for sign, table, codes in signs)
        text = text.removeprefix("+ ")
        return text if self.divisor == 1 else f"({text}) / {self.divisor}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Differences:
    """What tables over the same records reveal together."""

    pieces: AreaPieces = field(repr=False)
    """The intersections of all tables."""
    groupings: tuple[Grouping, ...]
    """The tables."""
    minimum: int
    """Unions with fewer records are small."""
    found: tuple[Difference, ...]
    """Every small or dominated union found, the smallest first."""
    complete: bool = True
    """Whether all unions of three or more tables were searched in time; those of two always are."""

    @property
    def small(self) -> BoolArray:
        """Pieces with fewer than `minimum` records."""
        return np.asarray(self.pieces.count < self.minimum)

    @property
    def disclosive(self) -> BoolArray:
        """Pieces that belong to a small or dominated union which can be computed."""
        out = np.zeros(len(self.pieces), bool)
        for difference in self.found:
            out[difference.pieces] = True
        return out

    def __repr__(self) -> str:
        return f"Differences({len(self.pieces):,} pieces, {len(self.found):,} disclosive unions)"

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        small, at_risk = self.small, self.disclosive
        return {
            "tables": [grouping.name for grouping in self.groupings],
            "pieces": len(self.pieces),
            "small_pieces": int(small.sum()),
            "records_in_small_pieces": int(self.pieces.count[small].sum()),
            "differences": len(self.found),
            "disclosed_pieces": int(at_risk.sum()),
            "disclosed_records": int(self.pieces.count[at_risk].sum()),
            "complete": self.complete,
        }

    def columns(self) -> dict[str, list[Any]]:
        """Return the unions, column by column: what to compute, and what is left."""
        shown = self.found
        return {
            "formula": [difference.formula for difference in shown],
            "pieces": [len(difference.pieces) for difference in shown],
            "records": [difference.count for difference in shown],
            "reason": [difference.reason for difference in shown],
        }

    def frame(self) -> Any:
        """Return the unions as a pyarrow table (confidential)."""
        from cellguard._io.frames import build_frame

        return build_frame(self.columns())

    def save(self, path: str | Path) -> None:
        """Write the unions as a file that only its owner may read."""
        from cellguard._io.frames import write_csv

        write_csv(self.columns(), path, guard=True, private=True)


def find_differences(
    records: Any,
    tables: Mapping[str, str | Sequence[str] | Grouping] | Sequence[str],
    *,
    minimum: int = 10,
    dominance: float | None = None,
    value: str | None = None,
    count: str | None = None,
    largest: str | None = None,
    total: bool = True,
    time_limit_s: float = 60.0,
) -> Differences:
    """Find the unions of intersections that tables over the same records determine, and that disclose something.

    Every piece is found that belongs to a union with fewer than `minimum` records which the tables determine, with the
    smallest such union; with `dominance`, also every union in which one contribution dominates.

    Parameters
    ----------
    records
        Records or pieces: a file (.csv, .parquet) or a frame.
    tables
        Name of each table -> the column, or columns, whose codes name its areas; or the columns alone.
    minimum
        Unions with fewer records are small.
    dominance
        Unions are dominated if the largest contribution exceeds this percentage of their value.
    value
        Column of the values, for dominance.
    count, largest
        If each row is a piece: columns with its number of records and its largest contribution.
    total
        Whether the number of all records is published.
    time_limit_s
        Seconds for what only three or more tables determine together; `complete` says whether they were enough.

    >>> people = {"town": ["A"] * 5 + ["B"] * 6, "grid": ["g1"] * 4 + ["g2"] * 7}
    >>> found = find_differences(people, ["town", "grid"], minimum=3)
    >>> found.found[0].formula, found.found[0].count
    ('town:A - grid:g1', 1)
    """
    groupings = _list_groupings(tables)
    if minimum < 1:
        raise InputError("minimum: a whole number of at least 1 is needed.")
    if dominance is not None and (value is None or not 0 < dominance <= 100):
        raise InputError("dominance: a percentage between 0 and 100, and the column of values, are needed.")
    if count is not None and value is not None and largest is None:
        raise InputError("pieces with values need the column of their largest contributions.", hint="largest='MAX'.")
    columns = list(dict.fromkeys(column for grouping in groupings for column in grouping.columns))
    pieces = read_pieces(records, columns, PiecesAsked(value=value, count=count, largest=largest))
    limit = None if dominance is None else dominance / 100
    found = [
        difference
        for pair in combinations(groupings, 2)
        for difference in _PairSearch(pieces, pair, total=total).run(minimum, limit)
    ]
    complete = True
    if len(groupings) > 2:
        search = CombinationSearch(pieces, groupings, total, time_limit_s)
        found += _find_combinations(search, found, minimum, limit)
        complete = search.complete
    return Differences(
        pieces=pieces, groupings=groupings, minimum=minimum, found=_sort_distinct(found), complete=complete
    )


def _list_groupings(tables: Mapping[str, Any] | Sequence[str]) -> tuple[Grouping, ...]:
    given = tables if isinstance(tables, Mapping) else {name: name for name in tables}
    out = []
    for name, columns in given.items():
        if isinstance(columns, Grouping):
            out.append(columns)
        else:
            own = (columns,) if isinstance(columns, str) else tuple(columns)
            out.append(Grouping(name=str(name), columns=own))
    if len(out) < 2:
        raise InputError("at least two tables over the same records are needed.")
    return tuple(out)


_Areas = list[tuple[int, int]]
"""Areas as pairs: the table (0 or 1), and the number of the area; -1 is the total."""


class _PairSearch:
    """The unions that two tables determine."""

    def __init__(self, pieces: AreaPieces, pair: tuple[Grouping, Grouping], *, total: bool) -> None:
        self.pieces, self.pair, self.total = pieces, pair, total
        (self.names_first, first), (self.names_second, second) = (pieces.find_areas(grouping) for grouping in pair)
        # pieces of the two tables: those of further tables within them count as one
        keys, self.joint = np.unique(first * len(self.names_second) + second, return_inverse=True)
        self.first, self.second = keys // len(self.names_second), keys % len(self.names_second)
        shown = tuple(
            pieces.find_published(grouping, names)
            for grouping, names in zip(pair, (self.names_first, self.names_second), strict=True)
        )
        self.published = shown[0], shown[1]
        self.graph = AreaGraph(self.first, self.second, self.published, total=total)
        self.count = np.bincount(self.joint, pieces.count, minlength=len(keys)).astype(np.float64)

    def run(self, minimum: int, dominance: float | None) -> list[Difference]:
        small = np.flatnonzero(self.count < minimum)
        cuts = self.graph.find_smallest_cuts(small, self.count)
        low = [cut for cut in cuts if cut is not None and self.count[cut.edges].sum() < minimum]
        found = [self._describe(cut, "small") for cut in low]
        if dominance is not None:
            found += self._find_dominated(dominance)
        return found

    def _find_dominated(self, share: float) -> list[Difference]:
        """Find unions that a contribution dominates: the least union around the piece that it dominates."""
        n = len(self.count)
        value = np.bincount(self.joint, self.pieces.value, minlength=n).astype(np.float64)
        largest = np.zeros(n)
        np.maximum.at(largest, self.joint, np.zeros(0) if self.pieces.largest is None else self.pieces.largest)
        dominated = np.flatnonzero(largest > share * value)
        return [
            self._describe(cut, "dominated")
            for cut in self.graph.find_smallest_cuts(dominated, value)
            if cut is not None and largest[cut.edges].max() > share * value[cut.edges].sum()
        ]

    def _describe(self, cut: AreaCut, reason: str) -> Difference:
        """Name the areas to add and subtract: the shorter of the two ways."""
        near = self._select_near(cut)
        ways = []
        # first minus second from inside, or second minus first from outside
        for own, other, side in ((0, 1, cut.inside & near), (1, 0, ~cut.inside & near)):
            sums = [self._add_up(table, side) for table in (own, other)]
            if not any(uses_total and not self.total for _, _, uses_total in sums):
                ways.append((sums[0][0] + sums[1][1], sums[0][1] + sums[1][0]))
        plus, minus = min(ways, key=lambda way: len(way[0]) + len(way[1]))
        edges = np.isin(self.joint, cut.edges)
        return Difference(
            plus=tuple(map(self._name_area, plus)), minus=tuple(map(self._name_area, minus)),
            pieces=np.flatnonzero(edges), count=int(self.count[cut.edges].sum()), reason=reason,
        )  # fmt: skip

    def _select_near(self, cut: AreaCut) -> BoolArray:
        """Return the nodes of the same connected part; others cancel out."""
        from cellguard._engine.space.groups import find_groups

        g = self.graph
        group = find_groups(g.start, g.end, g.n_nodes)
        return np.asarray(group == group[g.start[cut.edges[0]]])

    def _add_up(self, table: int, side: BoolArray) -> tuple[_Areas, _Areas, bool]:
        """Return the areas to add and to subtract for the sum of some nodes of a table, and whether the total is used.

        If the unpublished areas are among the nodes, the sum is the total minus all other published areas.
        """
        g = self.graph
        own = side[: g.n_first] if table == 0 else side[g.n_first : g.n_first + g.n_second]
        published = self.published[table]
        if side[g.roots[table]] and not published.all():
            return [(table, -1)], [(table, int(i)) for i in np.flatnonzero(published & ~own)], True
        return [(table, int(i)) for i in np.flatnonzero(published & own)], [], False

    def _name_area(self, area: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
        table, number = area
        if number < 0:
            return "all", ("Total",)
        return self.pair[table].name, (self.names_first, self.names_second)[table][number]


def _find_combinations(
    search: CombinationSearch, known: Sequence[Difference], minimum: int, dominance: float | None
) -> list[Difference]:
    """Find small or dominated unions that all tables together determine, around pieces in none that two determine."""
    pieces = search.pieces
    count = pieces.count.astype(np.float64)
    sizes = [("small", count, np.full(len(pieces), minimum - 1.0), np.asarray(count < minimum))]
    if dominance is not None and pieces.value is not None and pieces.largest is not None:
        most = pieces.largest / dominance * (1 - _STRICTLY)
        sizes.append(("dominated", pieces.value, most, np.asarray(pieces.value <= most)))
    out: list[Difference] = []
    determined = search.find_determined()
    for reason, size, most, wanted in sizes:
        left = wanted.copy()
        for difference in known:
            if difference.reason == reason:
                left[difference.pieces] = False
        combined = [search.find_single(piece) for piece in np.flatnonzero(left & determined).tolist()]
        left &= ~determined
        for piece in np.flatnonzero(left).tolist():
            if search.is_over:
                search.complete = False
                break
            found = search.find(piece, size, float(most[piece])) if left[piece] else None
            if found is not None:
                combined.append(found)
                left[found.pieces] &= reason != "small"  # a small union is one for each of its pieces
        out += [
            Difference(
                plus=one.plus,
                minus=one.minus,
                divisor=one.divisor,
                pieces=one.pieces,
                count=int(count[one.pieces].sum()),
                reason=reason,
            )
            for one in combined
        ]
    return out


def _sort_distinct(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return each union once, the smallest first."""
    distinct: dict[tuple[int, ...], Difference] = {}
    for difference in found:
        distinct.setdefault(tuple(difference.pieces.tolist()), difference)
    return tuple(sorted(distinct.values(), key=lambda d: (d.count, len(d.pieces), d.formula)))
