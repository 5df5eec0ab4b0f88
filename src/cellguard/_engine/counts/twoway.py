"""Suppression of two-way count tables: optimal patterns, and what an attacker who knows how they are made learns.

The table is ``x[row, column]``, its margins are published. Arrays in, arrays out; the loops are
compiled (:mod:`cellguard._core`). Everything about a release starts from the first candidate (in reading order) of
what is published, never from the hidden counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cellguard._core import twoway as core
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = [
    "MAX_LINES", "CountLaw", "Effective", "Kept", "candidate_count_tables", "counts_keep_width",
    "degrees_of_freedom_of_counts", "effective_count_intervals", "feasible_count_intervals", "is_minimal_for_counts",
    "is_safe_for_counts", "number_of_count_tables", "optimal_count_pattern", "optimal_share_of_counts",
]  # fmt: skip

MAX_LINES = 62
"""Rows or columns that fit a bit mask."""
UNIT = 1 << 36
"""One unit of loss. What is below it orders patterns of equal loss; sums over a table stay under 2^61."""
_NOWHERE = 1 << 60
"""Above every count."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountLaw:
    """A deterministic optimal suppression: which counts are sensitive, how wide, and at what price."""

    minimum: int
    """Counts below are sensitive."""
    smallest: int = 0
    """Counts below are not: 1 leaves zeros out."""
    width: int
    """The width that the range of a sensitive cell must have."""
    base: IntArray
    """Cost of suppressing each cell: whole numbers above 0."""
    slope: int = 0
    """Added cost per unit of the count."""

    def sensitive(self, x: IntArray) -> BoolArray:
        """Return which counts are sensitive."""
        return (x >= self.smallest) & (x < self.minimum)

    def cost(self, x: IntArray) -> IntArray:
        """Return what suppressing each cell costs."""
        return self.base + self.slope * x

    @property
    def packed(self) -> tuple[int, int, int, IntArray, int]:
        """As the compiled core takes it."""
        return self.smallest, self.minimum, self.width, np.ascontiguousarray(self.base, np.int64), self.slope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effective:
    """Effective feasibility intervals, from inside and outside; published cells keep their value."""

    low: IntArray
    """Nothing below survives (proven)."""
    high: IntArray
    """Nothing above survives (proven)."""
    inner_low: IntArray
    """The lowest value of a survivor that was found; above `inner_high` when none was."""
    inner_high: IntArray
    """The highest value of a survivor that was found."""
    finished: bool
    """Whether every end was settled within the limit, so that the outer ends are exact."""
    work: int
    """Nodes visited: the measure of the limit."""


def _twoway_masks(pattern: BoolArray) -> IntArray:
    """One bit mask per row."""
    powers = np.int64(1) << np.arange(pattern.shape[1], dtype=np.int64)
    return np.where(pattern, powers, 0).sum(axis=1).astype(np.int64)


def _twoway_pattern_of_masks(rows: IntArray, n_columns: int) -> BoolArray:
    return np.asarray((rows[:, None] >> np.arange(n_columns)) & 1, dtype=np.bool_)


def _whole_twoway_counts(x: IntArray) -> IntArray:
    return np.ascontiguousarray(x, np.int64)


def optimal_count_pattern(
    x: IntArray, law: CountLaw, *, also: BoolArray | None = None, limit: int = 50_000_000
) -> tuple[BoolArray | None, int]:
    """Return the cheapest pattern that gives every sensitive cell its width, and the nodes of the search.

    Among patterns of equal cost the first in a fixed order. None when no pattern is safe, not even
    that of all cells. The cells `also` are protected like sensitive ones. Nodes above `limit` mean
    that the pattern is the best found, not proven.
    """
    needy = law.sensitive(x) if also is None else law.sensitive(x) | also
    need = np.ascontiguousarray(np.argwhere(needy), np.int64)
    found, rows, nodes = core.optimal_pattern(
        _whole_twoway_counts(x), need, law.width, _whole_twoway_counts(law.cost(x)), limit
    )
    return (None if not found and not rows.any() else _twoway_pattern_of_masks(rows, x.shape[1])), nodes


def feasible_count_intervals(x: IntArray, pattern: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest value of every cell that what is published allows (minami2019 definition 2)."""
    return core.spans(_whole_twoway_counts(x), _twoway_masks(pattern))


def candidate_count_tables(x: IntArray, pattern: BoolArray, limit: int) -> IntArray:
    """Return the candidates, at most `limit`, one table each (minami2019 (34))."""
    return core.candidates(_whole_twoway_counts(x), _twoway_masks(pattern), limit).reshape(-1, *x.shape)


def number_of_count_tables(x: IntArray, pattern: BoolArray, limit: int) -> int:
    """Count the candidates without visiting each; what is above `limit` is a lower bound."""
    return core.count_candidates(_whole_twoway_counts(x), _twoway_masks(pattern), limit)


def degrees_of_freedom_of_counts(pattern: BoolArray) -> int:
    """Return the dimension of the null space of a pattern."""
    return len(core.basis(_twoway_masks(pattern), -1, np.zeros(pattern.shape, np.int64)))


def is_safe_for_counts(x: IntArray, pattern: BoolArray, law: CountLaw) -> bool:
    """Whether the pattern gives every sensitive cell its width."""
    sensitive = law.sensitive(x)
    low, high = feasible_count_intervals(x, pattern)
    return bool((pattern[sensitive] & (high - low >= law.width)[sensitive]).all())


def is_minimal_for_counts(x: IntArray, pattern: BoolArray, law: CountLaw) -> bool:
    """Whether no part of a safe pattern is safe; ranges only shrink with the pattern, so one cell less tells."""
    for i, j in np.argwhere(pattern & ~law.sensitive(x)):
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
            _whole_twoway_counts(x), _twoway_masks(pattern), law.packed, subsets=survive != "safe", hunt=hunt
        )
        self.work = 0

    def scan(self, cell: int, end: str, stop: int, limit: int) -> int:
        """Move the ``"low"`` or ``"high"`` end of a cell inward to the first value that survives, or to `stop`."""
        status, work = self.core.scan(int(cell), end == "low", int(stop), int(limit))
        self.work += work
        return status


def effective_count_intervals(
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
        Any candidate; only what is published of it matters.
    pattern
        The suppressed cells.
    law
        The algorithm that the attacker knows.
    survive
        Which candidates survive: those for which the pattern is ``"safe"``, those for which it is also
        ``"minimal"`` (no part of it is safe: it is the cheapest under some positive costs), or those
        for which it is ``"optimal"``.
    limit
        Nodes in all. Every end gets a share; those that need more try again with what the others left.
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
    """Whether every cell that may be sensitive keeps its width."""
    work: int
    """Nodes it took."""
    may_be_sensitive: int
    """Cells that are sensitive in a survivor that was found."""
    narrowest: int
    """The least width of these, as far as it was needed to pass."""
    possible: bool
    """Whether some candidate survives, or none was found within the limit."""

    def with_another(self, other: Kept) -> Kept:
        """Return what the tests of two laws found together."""
        return Kept(
            passed=self.passed and other.passed,
            work=self.work + other.work,
            may_be_sensitive=max(self.may_be_sensitive, other.may_be_sensitive),
            narrowest=min(self.narrowest, other.narrowest),
            possible=True,
        )


def counts_keep_width(x: IntArray, pattern: BoolArray, law: CountLaw, *, limit: int) -> Kept:
    """Test whether every cell that may be sensitive keeps its width over the candidates that no part of P suits.

    Depends on what is published only: whoever sees the release can repeat it. What is not settled
    after `limit` nodes does not pass.
    """
    s = _Siege(x, pattern, law, "minimal")
    settled = all(_twoway_count_keeps_width(s, cell, law, limit) for cell in np.flatnonzero(pattern).tolist())
    # A pattern is there for some sensitive cell: if no survivor has one, there is no survivor.
    low, high = s.core.hull
    survived = bool(high[pattern].max(initial=0) >= 0)
    may = pattern & (low < law.minimum)
    widths = (high - low)[may]
    return Kept(
        passed=settled and survived,
        work=s.work,
        may_be_sensitive=int(may.sum()),
        narrowest=int(widths.min()) if len(widths) else law.width,
        possible=survived or not settled,
    )


def _twoway_count_keeps_width(s: _Siege, cell: int, law: CountLaw, limit: int) -> bool:
    """Whether a cell keeps its width, or is sensitive in no survivor."""

    def enough() -> bool:
        low, high = s.core.hull
        return bool(high.flat[cell] - low.flat[cell] >= law.width)

    if enough():
        return True
    status = s.scan(cell, "low", law.minimum, limit - s.work) if s.work < limit else core.LIMIT
    if status == core.EXCLUDED:  # no survivor has a sensitive count here
        return True
    if (
        status != core.SURVIVOR
        or s.work >= limit
        or s.scan(cell, "high", int(s.core.outer[0].flat[cell]), limit - s.work) == core.LIMIT
    ):
        return False
    return enough()


def optimal_share_of_counts(
    tables: IntArray, pattern: BoolArray, law: CountLaw, costs: IntArray, *, limit: int
) -> FloatArray:
    """Return for each candidate the share of the drawn costs under which the pattern is its optimum."""
    # A candidate for which a part of the pattern suffices has no share; no draw is needed to tell.
    shares = np.zeros(len(tables))
    s = _Siege(tables[0], pattern, law, "minimal")
    tables, costs = _whole_twoway_counts(tables), _whole_twoway_counts(costs)
    possible = s.core.surviving_draws(tables, costs[:1], hunt=False, limit=limit) > 0
    hits = s.core.surviving_draws(tables[possible], costs, hunt=True, limit=limit)
    shares[possible] = hits / len(costs)
    return shares
