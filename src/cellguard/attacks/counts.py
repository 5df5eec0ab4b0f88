"""Count tables, and the rule that suppresses their small cells: what the attacker of minami2019 knows and learns.

When the parameters of a suppression are secret, the attacker tries all their values (section 2.5). No published count
is below the minimum frequency, and the least width is no wider than the widest suppressed cell: that leaves few values.
A value is possible when suppressing some candidate with it gives the published pattern; a count is possible when one
possible value of the parameters leaves it possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.counts import twoway
from cellguard._engine.counts.twoway import MAX_LINES, UNIT, CountLaw
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, raise_if_unknown
from cellguard.model.table import Table
from cellguard.release.release import Suppression

__all__ = [
    "LARGEST_MINIMUM",
    "CountAttack",
    "CountRule",
    "Grid",
    "find_grid",
    "guess_rule",
    "infer_rule",
    "list_fitting_rules",
    "match_over_rules",
    "require_counts_for_matching",
]  # fmt: skip

_LOSSES = ("cells", "counts")
_TIE_BITS = 24
LARGEST_MINIMUM = 100
"""The largest minimum frequency considered possible if it is not given; laws and handbooks require 3 to 30."""
_GIVE_IT = "give it: cg.CountRule(minimum=..., width=...), or --minimum and --width."


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRule:
    """A deterministic optimal suppression of a frequency table, with its parameters (minami2019 definition 4).

    Counts below the minimum are sensitive; the range of each must keep a width. Among the patterns that achieve this,
    the one of least loss is chosen, and among those of equal loss the first in a fixed order.

    >>> CountRule(minimum=5, width=8)
    CountRule(minimum=5, width=8, zeros=True, loss='cells', order=0)
    """

    minimum: int = 5
    """The minimum frequency: a smaller count is sensitive."""
    width: int = 8
    """The least width of the range of a sensitive cell."""
    zeros: bool = True
    """Whether a zero is sensitive."""
    loss: str = "cells"
    """Loss of a suppressed cell: ``"cells"`` counts it as one, ``"counts"`` by its count."""
    order: int = 0
    """Number of the fixed order between patterns of equal loss. It is public, like the rest of the rule."""

    def __post_init__(self) -> None:
        for name, least in (("minimum", 1), ("width", 1), ("order", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or value != int(value) or value < least:
                raise InputError(f"{name} {value!r}: a whole number of at least {least} is needed.")
            object.__setattr__(self, name, int(value))
        raise_if_unknown("loss", self.loss, _LOSSES)

    def sensitive(self, counts: FloatArray) -> BoolArray:
        """Return which counts are sensitive."""
        return np.asarray((counts < self.minimum) & ((counts > 0) | self.zeros))

    def build_law(self, grid: Grid) -> CountLaw:
        """Return the rule for the counts of a grid, which are counted from their known lower bound."""
        r, c = grid.cells.shape
        ties = np.random.default_rng([self.order, r, c]).integers(1, 1 << _TIE_BITS, (r, c))
        by_cell = self.loss == "cells"
        if not by_cell and grid.counts.sum() >= 1 << 24:
            raise InputError("the counts are too large for a loss by counts.", hint="use loss='cells'.")
        return CountLaw(
            minimum=max(0, self.minimum - grid.least),
            smallest=0 if self.zeros or grid.least > 0 else 1,
            width=self.width,
            base=ties + UNIT * (1 if by_cell else grid.least),
            slope=0 if by_cell else UNIT,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The inner cells of a two-way table whose margins are published."""

    cells: IntArray
    """Index of each cell in its table, by row and column."""
    counts: IntArray
    """The counts (confidential where suppressed), less `least`."""
    least: int
    """Lower bound on a cell that every attacker knows."""

    def restrict_pattern(self, suppressed: BoolArray) -> BoolArray:
        """Return the part of a pattern that lies in the grid."""
        return np.asarray(suppressed[self.cells])

    def expand_counts(self, counts: NDArray[Any], pattern: BoolArray) -> NDArray[Any]:
        """Return the true counts of the cells of a pattern, of one or many grids, in the table's order."""
        return np.asarray(counts[..., pattern][..., np.argsort(self.cells[pattern])] + self.least)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountAttack:
    """What an attacker learned about the suppressed cells, one entry each in the table's order (confidential)."""

    suppression: Suppression = field(repr=False)
    """What was attacked."""
    rule: CountRule
    """What the attacker knows about the algorithm."""
    cells: IntArray = field(repr=False)
    """Indices of the suppressed cells."""
    lower: FloatArray = field(repr=False)
    """Lower ends of their intervals, as the attack finds them."""
    upper: FloatArray = field(repr=False)
    """Upper ends."""

    @property
    def primary(self) -> BoolArray:
        """Which of the suppressed cells are sensitive."""
        return np.asarray(self.suppression.table.sensitive[self.cells])

    @property
    def width(self) -> FloatArray:
        """Width of the intervals."""
        return self.upper - self.lower

    @property
    def unsafe(self) -> BoolArray:
        """Sensitive cells whose interval is narrower than the rule promises (minami2019 section 4.2)."""
        return np.asarray(self.primary & (self.width < self.rule.width))


def require_counts_for_matching(table: Table) -> None:
    """Refuse a table whose cells are not counts."""
    a = table.values
    bad = (a < 0) | (a != np.rint(a)) | (table.lb != np.rint(table.lb))
    if bad.any():
        raise InputError(
            f"{table.name}: not a count table; {table.label(int(np.argmax(bad)))} is not a whole number of at least 0.",
            hint="the matching attack is for frequency tables, whose widths do not depend on the values "
            "(minami2019 section 3).",
        )


def infer_rule(table: Table) -> CountRule:
    """Return the rule that follows from the table's sensitive cells and levels, if it is unambiguous.

    The width is the sliding level that all sensitive cells share. The minimum frequency is 5 if that separates
    sensitive cells from the others, or the only number that does. The loss is by counts if those are the table's
    weights.
    """
    rule, most = _guess_smallest_rule(table)
    if not rule.minimum <= 5 <= most and rule.minimum != most:
        raise InputError(f"{table.name}: the minimum frequency does not follow from the table.", hint=_GIVE_IT)
    return replace(rule, minimum=5) if rule.minimum <= 5 <= most else rule


def guess_rule(table: Table) -> CountRule:
    """Return one of the rules by which the table's sensitive cells may have been chosen, even if it is ambiguous."""
    return _guess_smallest_rule(table)[0]


def _guess_smallest_rule(table: Table) -> tuple[CountRule, float]:
    """Return the rule with the smallest minimum that fits the table, and the largest minimum that fits."""
    s, inner = table.sensitive, ~table.fixed
    widths = np.unique(table.sliding[s])
    if not s.any() or len(widths) != 1 or widths[0] < 1:
        raise InputError(f"{table.name}: the rule does not follow from the table.", hint=_GIVE_IT)
    shown = table.values[inner & ~s]
    zeros = not (shown == 0).any()
    least, most = table.values[s].max() + 1, shown[(shown > 0) | zeros].min(initial=np.inf)
    if least > most:
        raise InputError(f"{table.name}: its sensitive cells are not those below a minimum frequency.", hint=_GIVE_IT)
    counts = bool((table.weights[inner] == table.values[inner]).all())
    loss = "counts" if counts else "cells"
    return CountRule(minimum=int(least), width=int(np.ceil(widths[0])), zeros=zeros, loss=loss), float(most)


def find_grid(table: Table, suppressed: BoolArray) -> Grid | None:
    """Return the inner cells of a two-way table with published margins; None for any other table.

    Inner cells are those that are not totals. They form a grid when each lies in two relations and the relations
    fall into two families, rows and columns, that cross in one cell each.
    """
    T, inner = table.relations, table.inner
    n = int(inner.sum())
    if n == 0 or n > MAX_LINES**2 or (suppressed & ~inner).any() or not np.isin(T.data, (-1.0, 1.0)).all():
        return None
    least = np.unique(table.lb[inner])
    if table.rhs.any() or np.isfinite(table.ub[inner]).any() or len(least) != 1 or not np.isfinite(least[0]):
        return None
    lines = [np.sort(T.indices[a:b][T.data[a:b] > 0]) for a, b in zip(T.indptr[:-1], T.indptr[1:], strict=True)]
    lines = [line for line in lines if inner[line].any()]
    if not all(inner[line].all() and len(line) > 1 for line in lines):
        return None
    cells = _place_inner_cells(lines, np.flatnonzero(inner))
    if cells is None or max(cells.shape) > MAX_LINES or min(cells.shape) < 2:
        return None
    start = int(least[0])
    return Grid(cells=cells, counts=table.values[cells].astype(np.int64) - start, least=start)


def _place_inner_cells(lines: list[IntArray], inner: IntArray) -> IntArray | None:
    """Arrange the inner cells by row and column, or return None when they do not form a grid."""
    rows = [line for line in lines if not np.isin(line, lines[0]).any() or line is lines[0]]
    columns = [line for line in lines if np.isin(line, lines[0]).any() and line is not lines[0]]
    rows, columns = (sorted(family, key=lambda line: int(line[0])) for family in (rows, columns))
    if len(rows) * len(columns) != len(inner):
        return None
    if columns and columns[0][0] == rows[0][0] and columns[0][1] < rows[0][1]:
        rows, columns = columns, rows  # rows are read first
    by_column = {int(c): j for j, column in enumerate(columns) for c in column}
    out = np.full((len(rows), len(columns)), -1, np.int64)
    for i, row in enumerate(rows):
        for c in row:
            out[i, by_column.get(int(c), 0)] = c
    whole = np.array_equal(np.sort(out, axis=None), inner) and sum(map(len, lines)) == 2 * len(inner)
    return out if whole else None


# ---------------------------------------------------------------- secret parameters


def match_over_rules(
    grid: Grid, pattern: BoolArray, rule: CountRule, how: str, limit: int
) -> tuple[list[CountRule], twoway.Effective]:
    """Return the rules that could have led to the pattern, and the hull of their survivors.

    `how` says when a candidate survives a rule, `limit` how many nodes the attack on each rule may take. What the
    limit leaves open counts as possible.
    """
    low, high = twoway.compute_feasible_intervals(grid.counts, pattern)
    wanted = np.flatnonzero(pattern)
    possible: list[CountRule] = []
    total: twoway.Effective | None = None
    for candidate in _list_rules_to_try(grid, pattern, rule, int((high - low)[pattern].max(initial=1))):
        law = candidate.build_law(grid)
        found = twoway.compute_effective_intervals(grid.counts, pattern, law, survive=how, limit=limit, cells=wanted)
        none_survives = (found.inner_low > found.inner_high)[pattern].all()
        if none_survives and found.finished:
            continue
        possible.append(candidate)
        total = found if total is None else _merge_hulls(total, found)
    assert total is not None  # noqa: S101 - the true rule is among them
    return possible, total


def _list_rules_to_try(grid: Grid, pattern: BoolArray, rule: CountRule, widest: int) -> list[CountRule]:
    """Return the rule with every minimum that no published count is below, and every width that a cell has."""
    widths, minima = range(1, widest + 1), range(1, _find_largest_minimum(grid, pattern, zeros=rule.zeros) + 1)
    return [replace(rule, minimum=minimum, width=width) for minimum in minima for width in widths]


def list_fitting_rules(grid: Grid, pattern: BoolArray, rule: CountRule) -> list[CountRule]:
    """Return every rule of the same width by which the sensitive cells of a release may have been chosen.

    The list depends only on what is published, so it reveals nothing. A minimum fits if no published count is below
    it and it is at most :data:`LARGEST_MINIMUM`. Of the minimums above every possible withheld count, which are
    equivalent, only the first is listed. Zeros may be sensitive or not, unless a zero is published.
    """
    _, high = twoway.compute_feasible_intervals(grid.counts, pattern)
    all_small = min(LARGEST_MINIMUM, int(high[pattern].max(initial=0)) + grid.least + 1)
    return [
        replace(rule, minimum=minimum, zeros=zeros)
        for zeros in (True, False)
        for minimum in range(
            max(grid.least, 0 if zeros else 1) + 1,
            min(all_small, _find_largest_minimum(grid, pattern, zeros=zeros)) + 1,
        )
        if grid.least == 0 or zeros  # no cell is zero otherwise
    ]


def _find_largest_minimum(grid: Grid, pattern: BoolArray, *, zeros: bool) -> int:
    """Return the largest minimum that no published count is below; if nothing is published, one above all counts."""
    shown = grid.counts[~pattern] + grid.least
    if not zeros:
        shown = shown[shown > 0]
    return int(shown.min()) if len(shown) else int((grid.counts + grid.least).max()) + 1


def _merge_hulls(one: twoway.Effective, other: twoway.Effective) -> twoway.Effective:
    """Return the hull of two results."""
    return replace(
        one,
        low=np.minimum(one.low, other.low),
        high=np.maximum(one.high, other.high),
        inner_low=np.minimum(one.inner_low, other.inner_low),
        inner_high=np.maximum(one.inner_high, other.inner_high),
        finished=one.finished and other.finished,
        work=one.work + other.work,
    )
