"""Suppression of two-way count tables: optimal patterns, and what an informed attacker learns from them.

The table is ``x[row, column]``, and its margins are published. Arrays in, arrays out; the loops are
compiled (:mod:`cellguard._core`). All results about a release start from the first candidate (in reading order) of
the published data, never from the hidden counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cellguard._core import twoway as core
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = [
    "MAX_LINES",
    "CountLaw",
    "Effective",
    "Kept",
    "check_widths",
    "compute_effective_intervals",
    "compute_feasible_intervals",
    "count_degrees_of_freedom",
    "enumerate_candidate_tables",
    "estimate_optimal_shares",
    "find_optimal_pattern",
    "is_minimal_for_counts",
    "is_safe_for_counts",
    "number_of_count_tables",
]  # fmt: skip

MAX_LINES = 62
"""Largest number of rows or columns that fits a bit mask."""
UNIT = 1 << 36
"""One unit of loss. Smaller amounts order patterns of equal loss; sums over a table stay under 2^61."""
_NOWHERE = 1 << 60
"""A number above every count."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountLaw:
    """A deterministic optimal suppression: which counts are sensitive, their width, and the cost of each cell."""

    minimum: int
    """Counts below this are sensitive."""
    smallest: int = 0
    """Counts below this are not sensitive: 1 leaves zeros out."""
    width: int
    """The width that the range of a sensitive cell must have."""
    base: IntArray
    """Cost of suppressing each cell: whole numbers above 0."""
    slope: int = 0
    """Added cost per unit of the count."""

    def find_sensitive(self, x: IntArray) -> BoolArray:
        """Return which counts are sensitive."""
        return (x >= self.smallest) & (x < self.minimum)

    def compute_cost(self, x: IntArray) -> IntArray:
        """Return the cost of suppressing each cell."""
        return self.base + self.slope * x

    @property
    def packed(self) -> tuple[int, int, int, IntArray, int]:
        """The law in the form that the compiled core takes."""
        return self.smallest, self.minimum, self.width, np.ascontiguousarray(self.base, np.int64), self.slope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effective:
    """Effective feasibility intervals, inner and outer; published cells keep their value."""

    low: IntArray
    """Proven: no candidate with a lower value survives."""
    high: IntArray
    """Proven: no candidate with a higher value survives."""
    inner_low: IntArray
    """The lowest value of a survivor found; above `inner_high` when none was found."""
    inner_high: IntArray
    """The highest value of a survivor found."""
    finished: bool
    """Whether every end was settled within the limit, so that the outer ends are exact."""
    work: int
    """Nodes visited, which the limit counts."""


def _pack_rows(pattern: BoolArray) -> IntArray:
    """Return one bit mask per row."""
    powers = np.int64(1) << np.arange(pattern.shape[1], dtype=np.int64)
    return np.where(pattern, powers, 0).sum(axis=1).astype(np.int64)


def _unpack_rows(rows: IntArray, n_columns: int) -> BoolArray:
    return np.asarray((rows[:, None] >> np.arange(n_columns)) & 1, dtype=np.bool_)


def _require_whole_counts(x: IntArray) -> IntArray:
    return np.ascontiguousarray(x, np.int64)


def find_optimal_pattern(
    x: IntArray, law: CountLaw, *, also: BoolArray | None = None, limit: int = 50_000_000
) -> tuple[BoolArray | None, int]:
    """Return the cheapest pattern that gives every sensitive cell its width, and the nodes of the search.

    Among patterns of equal cost, return the first in a fixed order; None when no pattern is safe, not even
    the one of all cells. The cells `also` are protected like sensitive ones. Nodes above `limit` mean
    that the pattern is the best found, without proof.
    """
    needy = law.find_sensitive(x) if also is None else law.find_sensitive(x) | also
    need = np.ascontiguousarray(np.argwhere(needy), np.int64)
    found, rows, nodes = core.optimal_pattern(
        _require_whole_counts(x), need, law.width, _require_whole_counts(law.compute_cost(x)), limit
    )
    return (None if not found and not rows.any() else _unpack_rows(rows, x.shape[1])), nodes


def compute_feasible_intervals(x: IntArray, pattern: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest value of every cell that the published data allow (minami2019 definition 2)."""
    return core.spans(_require_whole_counts(x), _pack_rows(pattern))


def enumerate_candidate_tables(x: IntArray, pattern: BoolArray, limit: int) -> IntArray:
    """Return the candidates, at most `limit`, one table each (minami2019 (34))."""
    return core.candidates(_require_whole_counts(x), _pack_rows(pattern), limit).reshape(-1, *x.shape)


def number_of_count_tables(x: IntArray, pattern: BoolArray, limit: int) -> int:
    """Count the candidates without visiting each; a result above `limit` is a lower bound."""
    return core.count_candidates(_require_whole_counts(x), _pack_rows(pattern), limit)


def count_degrees_of_freedom(pattern: BoolArray) -> int:
    """Return the dimension of the null space of a pattern."""
    return len(core.basis(_pack_rows(pattern), -1, np.zeros(pattern.shape, np.int64)))


def is_safe_for_counts(x: IntArray, pattern: BoolArray, law: CountLaw) -> bool:
    """Return whether the pattern gives every sensitive cell its width."""
    sensitive = law.find_sensitive(x)
    low, high = compute_feasible_intervals(x, pattern)
    return bool((pattern[sensitive] & (high - low >= law.width)[sensitive]).all())


def is_minimal_for_counts(x: IntArray, pattern: BoolArray, law: CountLaw) -> bool:
    """Return whether no part of a safe pattern is safe; ranges shrink with the pattern, so test one cell less."""
    for i, j in np.argwhere(pattern & ~law.find_sensitive(x)):
        less = pattern.copy()
        less[i, j] = False
        if is_safe_for_counts(x, less, law):
            return False
    return True


class _Siege:
    """An attack under way, and the nodes it has visited."""

    def __init__(self, x: IntArray, pattern: BoolArray, law: CountLaw, survive: str = "optimal") -> None:
        hunt = survive == "optimal"
        self.core = core.Siege(
            _require_whole_counts(x), _pack_rows(pattern), law.packed, subsets=survive != "safe", hunt=hunt
        )
        self.work = 0

    def scan(self, cell: int, end: str, stop: int, limit: int) -> int:
        """Move the ``"low"`` or ``"high"`` end of a cell inward to the first value that survives, or to `stop`."""
        status, work = self.core.scan(int(cell), end == "low", int(stop), int(limit))
        self.work += work
        return status


def compute_effective_intervals(
    x: IntArray,
    pattern: BoolArray,
    law: CountLaw,
    *,
    survive: str = "optimal",
    limit: int,
    cells: IntArray | None = None,
) -> Effective:
    """Return the effective feasibility intervals of the suppressed cells (minami2019 definition 5).

    Parameters
    ----------
    x
        Any candidate; only its published cells and margins matter.
    pattern
        The suppressed cells.
    law
        The algorithm that the attacker knows.
    survive
        Which candidates survive: those for which the pattern is ``"safe"``, those for which it is also
        ``"minimal"`` (no part of it is safe: it is the cheapest under some positive costs), or those
        for which it is ``"optimal"``.
    limit
        Nodes in total. Every end gets a share; ends that need more try again with the nodes that others left.
    cells
        Positions of the cells to settle, all suppressed ones unless given.
    """
    s = _Siege(x, pattern, law, survive)
    wanted = (np.flatnonzero(pattern) if cells is None else cells).tolist()
    todo = [(cell, end, stop) for cell in wanted for end, stop in (("low", _NOWHERE), ("high", -1))]
    share = max(1, limit // (4 * max(len(todo), 1)))
    while todo and s.work < limit:
        todo = [end for end in todo if s.scan(*end, min(share, limit - s.work)) == core.LIMIT]
        share = max(2 * share, (limit - s.work) // max(len(todo), 1))
    (low, high), (inner_low, inner_high) = s.core.outer, s.core.hull
    return Effective(low=low, high=high, inner_low=inner_low, inner_high=inner_high, finished=not todo, work=s.work)


class Kept(NamedTuple):
    """What the public test found."""

    passed: bool
    """Whether every possibly sensitive cell keeps its width."""
    work: int
    """Nodes visited."""
    may_be_sensitive: int
    """Cells that are sensitive in a survivor found."""
    narrowest: int
    """The least width of these cells, as far as it was needed to pass."""
    possible: bool
    """Whether some candidate survives, or none was found within the limit."""

    def merge_with(self, other: Kept) -> Kept:
        """Return the joint result of the tests of two laws."""
        return Kept(
            passed=self.passed and other.passed,
            work=self.work + other.work,
            may_be_sensitive=max(self.may_be_sensitive, other.may_be_sensitive),
            narrowest=min(self.narrowest, other.narrowest),
            possible=True,
        )


def check_widths(x: IntArray, pattern: BoolArray, law: CountLaw, *, limit: int, with_decoys: bool = False) -> Kept:
    """Test whether every possibly sensitive cell keeps its width over the candidates for which P is minimal.

    The test depends only on published data: every reader of the release can repeat it. A cell that is not
    settled after `limit` nodes does not pass.

    A pattern drawn with decoys need not be minimal for the true table, so a cell may be sensitive there and in none of
    these candidates. `with_decoys` requires the width of every cell that is sensitive in some candidate for which the
    pattern is safe: the true table is one of them.
    """
    s = _Siege(x, pattern, law, "minimal")
    cells = np.flatnonzero(pattern).tolist()
    if with_decoys:
        safe = _Siege(x, pattern, law, "safe")
        cells = [cell for cell in cells if safe.scan(cell, "low", law.minimum, limit) != core.EXCLUDED]
        settled = all(_check_cell_width(s, cell, law, limit, sensitive=True) for cell in cells)
    else:
        settled = all(_check_cell_width(s, cell, law, limit) for cell in cells)
    # A pattern exists to protect some sensitive cell: if no survivor has one, there is no survivor.
    low, high = s.core.hull
    # Where nothing is withheld, the published table is the only candidate.
    survived = bool((high >= low)[pattern].any() if pattern.any() else not law.find_sensitive(x).any())
    may = pattern & (low <= high) & (low < law.minimum)
    widths = (high - low)[may]
    return Kept(
        passed=settled and survived,
        work=s.work,
        may_be_sensitive=int(may.sum()),
        narrowest=int(widths.min()) if len(widths) else law.width,
        possible=survived or not settled,
    )


def _check_cell_width(s: _Siege, cell: int, law: CountLaw, limit: int, *, sensitive: bool = False) -> bool:
    """Return whether a cell keeps its width, or (unless `sensitive` is set) is sensitive in no survivor."""

    def is_wide_enough() -> bool:
        low, high = s.core.hull
        return bool(high.flat[cell] - low.flat[cell] >= law.width)

    if is_wide_enough():
        return True
    stop = _NOWHERE if sensitive else law.minimum
    status = s.scan(cell, "low", stop, limit - s.work) if s.work < limit else core.LIMIT
    if status == core.EXCLUDED:  # no survivor is sensitive here; if the cell counts anyway, none survives
        return not sensitive
    if (
        status != core.SURVIVOR
        or s.work >= limit
        or s.scan(cell, "high", int(s.core.outer[0].flat[cell]), limit - s.work) == core.LIMIT
    ):
        return False
    return is_wide_enough()


def estimate_optimal_shares(
    tables: IntArray, pattern: BoolArray, law: CountLaw, costs: IntArray, *, limit: int
) -> FloatArray:
    """Return for each candidate the share of the drawn costs under which the pattern is its optimum."""
    # If a part of the pattern suffices for a candidate, its share is 0 without any draw.
    shares = np.zeros(len(tables))
    s = _Siege(tables[0], pattern, law, "minimal")
    tables, costs = _require_whole_counts(tables), _require_whole_counts(costs)
    possible = s.core.surviving_draws(tables, costs[:1], hunt=False, limit=limit) > 0
    hits = s.core.surviving_draws(tables[possible], costs, hunt=True, limit=limit)
    shares[possible] = hits / len(costs)
    return shares
