"""The rules of primary sensitivity, one class each; the table of them stands in the package's docstring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellguard._types import BoolArray, FloatArray
from cellguard.data.rules.statistics import CellStatistics
from cellguard.exceptions import InputError, LevelError, UnknownCodeError, did_you_mean, raise_error_of_missing

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = [
    "Custom", "Dominance", "Manual", "MinFrequency", "PPercent", "PriorPosterior", "Request", "Rule", "Verdict",
    "Zero",
]  # fmt: skip

DEFAULT_PERCENT = 10.0
"""Level, in per cent of the value, of a rule that flags magnitudes without measuring them: the usual p of p%."""
_ROUNDING = 1e-12
"""Sums of floating-point numbers differ from exact ones by less than this share: a tie is no violation."""


class Verdict(NamedTuple):
    """What a rule says of every cell."""

    unsafe: BoolArray
    upper: FloatArray
    """Upper level where unsafe."""
    lower: FloatArray | None = None
    """Lower level where unsafe; None for the same as the upper one."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What every rule has: a verdict on cells, the cells it looks at, and words for why."""

    places: tuple[tuple[str, frozenset[str], bool], ...] = ()
    """Restrictions: dimension, codes, and whether the rule holds for these codes or for all others."""

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge every cell by its statistics."""
        raise NotImplementedError

    def width(self, cells: CellStatistics) -> float:  # noqa: ARG002 - most rules measure by their levels
        """Return how wide the range of a flagged cell must be besides its levels."""
        return 0.0

    @property
    def units(self) -> int:
        """How many of the largest contributions of a cell the rule looks at."""
        return 0

    @property
    def name(self) -> str:
        """The rule with its parameters."""
        raise NotImplementedError

    @property
    def reason(self) -> str:
        """Why a cell is flagged, in words that show no contribution."""
        raise NotImplementedError

    def only(self, **codes: str | Sequence[str]) -> Rule:
        """Return the rule for some codes of a dimension only: ``PPercent(15).only(nace=["35", "36"])``."""
        return self._restricted(codes, inside=True)

    def excluding(self, **codes: str | Sequence[str]) -> Rule:
        """Return the rule for all but some codes of a dimension: ``PPercent(10).excluding(nace="35")``."""
        return self._restricted(codes, inside=False)

    def _restricted(self, codes: Mapping[str, str | Sequence[str]], *, inside: bool) -> Rule:
        new = tuple((d, frozenset([c] if isinstance(c, str) else c), inside) for d, c in codes.items())
        return replace(self, places=self.places + new)

    def covers(self, table: Table) -> BoolArray:
        """Return which cells of the table the rule looks at."""
        covered = np.ones(table.n_cells, dtype=bool)
        for dimension, wanted, inside in self.places:
            raise_error_of_missing("dimension", [dimension], table.dimensions, place=f"{self.name}: ")
            d = table.dimensions.index(dimension)
            unknown = sorted(wanted - set(table.codes[d]))
            if unknown:
                hint = did_you_mean(unknown[0], table.codes[d])
                raise UnknownCodeError(f"{self.name}: {dimension!r} has no code {unknown[0]!r}.", hint=hint)
            listed = np.array([code in wanted for code in table.codes[d]])
            covered &= listed[table.coordinates[:, d]] == inside
        return covered


def _check_percentage_of_rule(name: str, value: float, *, most: float = np.inf, positive: bool = True) -> None:
    if not (np.isfinite(value) and (value > 0 if positive else value >= 0) and value <= most):
        allowed = ("above 0" if positive else "at least 0") + (f" and at most {most:g}" if np.isfinite(most) else "")
        raise LevelError(f"{name}: {value!r} is not a percentage {allowed}.")
    if 0 < value < 1:
        raise LevelError(
            f"{name}: {value!r} is a share, not a percentage.", hint=f"write {100 * value:g} for {100 * value:g}%."
        )


def _check_level_of_rule(name: str, percent: float | None) -> None:
    if percent is not None:
        _check_percentage_of_rule(name, percent, positive=False)


def _flat_level_by_rule(percent: float | None, cells: CellStatistics) -> FloatArray:
    """Return a percentage of every value: of magnitudes the usual one unless given, of counts none."""
    if percent is None:
        percent = 0.0 if cells.integer else DEFAULT_PERCENT
    return percent / 100.0 * np.abs(cells.value)


def _check_number_of_rule(name: str, value: int) -> None:
    if value != int(value) or value < 1:
        raise InputError(f"{name}: {value!r} is not a whole number of at least 1.")


@dataclass(frozen=True)
class Dominance(Rule):
    """The (n,k) rule: the n largest contributors hold more than k% of the total.

    >>> cells = CellStatistics.of([330.0], [3], [[300.0]])
    >>> Dominance(1, 85).evaluate(cells).upper.round(2)
    array([22.94])
    """

    n: int
    k: float

    def __post_init__(self) -> None:
        _check_number_of_rule("dominance rule, n", self.n)
        _check_percentage_of_rule("dominance rule, k", self.k, most=100)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by 100 (x1+..+xn) / X > k; the level lifts X until the share is k."""
        upper = 100.0 / self.k * cells.with_first(self.n) - cells.total
        unsafe = (upper > _ROUNDING * cells.total) & np.isfinite(cells.first)
        return Verdict(unsafe, cells.published_level(upper))

    @property
    def units(self) -> int:
        return self.n

    @property
    def name(self) -> str:
        return f"dominance ({self.n}, {self.k:g})"

    @property
    def reason(self) -> str:
        who = "the largest contributor holds" if self.n == 1 else f"the {self.n} largest contributors hold"
        return f"{who} more than {self.k:g}% of the total"


@dataclass(frozen=True)
class PPercent(Rule):
    """The p% rule: the largest contribution can be estimated to within p% by a coalition of n others.

    >>> PPercent(10).evaluate(CellStatistics.of([110.0], [3], [[100.0, 5.0]])).upper
    array([5.])
    """

    p: float
    coalition: int = 1

    def __post_init__(self) -> None:
        _check_percentage_of_rule("p% rule, p", self.p)
        _check_number_of_rule("p% rule, coalition", self.coalition)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by (p/100) x1 + (x1+..+x_{n+1}) - X > 0."""
        return _ambiguity_rule_on_contributions(cells, self.p / 100.0, self.coalition)

    @property
    def units(self) -> int:
        return self.coalition + 1

    @property
    def name(self) -> str:
        return f"p% ({self.p:g})" if self.coalition == 1 else f"p% ({self.p:g}, coalition of {self.coalition})"

    @property
    def reason(self) -> str:
        who = "another contributor" if self.coalition == 1 else f"{self.coalition} other contributors together"
        return f"{who} could estimate the largest contribution to within {self.p:g}%"


@dataclass(frozen=True)
class PriorPosterior(Rule):
    """The (p,q) rule: p% after publication, for an attacker who knew every contribution to within q% before.

    >>> PriorPosterior(10, 50).evaluate(CellStatistics.of([110.0], [3], [[100.0, 5.0]])).upper
    array([15.])
    """

    p: float
    q: float
    coalition: int = 1

    def __post_init__(self) -> None:
        _check_percentage_of_rule("prior-posterior rule, p", self.p)
        _check_percentage_of_rule("prior-posterior rule, q", self.q)
        if self.p >= self.q:
            raise LevelError(
                f"prior-posterior rule: p = {self.p:g} is not below q = {self.q:g}.",
                hint="q is what an attacker knows before publication, p what he may know after.",
            )
        _check_number_of_rule("prior-posterior rule, coalition", self.coalition)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by (p/100) x1 + (q/100)((x1+..+x_{n+1}) - X) > 0, the sign of its level."""
        return _ambiguity_rule_on_contributions(cells, self.p / self.q, self.coalition)

    @property
    def units(self) -> int:
        return self.coalition + 1

    @property
    def name(self) -> str:
        group = "" if self.coalition == 1 else f", coalition of {self.coalition}"
        return f"prior-posterior ({self.p:g}, {self.q:g}{group})"

    @property
    def reason(self) -> str:
        return f"somebody who knew contributions to within {self.q:g}% would know the largest to within {self.p:g}%"


def _ambiguity_rule_on_contributions(cells: CellStatistics, share: float, coalition: int) -> Verdict:
    """Return by how much the rest of the cell fails to hide `share` of the largest contribution."""
    upper = share * cells.first + cells.with_first(coalition + 1) - cells.total
    return Verdict(upper > _ROUNDING * cells.total, cells.published_level(np.nan_to_num(upper)))


@dataclass(frozen=True)
class MinFrequency(Rule):
    """Fewer than n contributors.

    Of a count, n whole numbers must stay possible: who can tell fewer of them apart knows what the threshold
    is there to hide. Of a magnitude, the levels are a percentage of the value, 10 unless given; a percentage
    that is given holds for counts too.

    >>> MinFrequency(3).width(CellStatistics.of([2.0], [2], [[1.0]], integer=True))
    2.0
    """

    n: float
    percent: float | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.n) and self.n > 0):
            raise InputError(f"minimum frequency: {self.n!r} is not a number above 0.")
        _check_level_of_rule("minimum frequency, level", self.percent)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by 0 < f < n, where weights count if there are any; a cell whose contributors all waived is safe."""
        few = (cells.count > 0) & (cells.weight < self.n)
        if cells.protected is not None:
            few &= np.isfinite(cells.protected)
        return Verdict(few, _flat_level_by_rule(self.percent, cells))

    def width(self, cells: CellStatistics) -> float:
        """Return the width of n whole numbers, for counts."""
        return float(np.ceil(self.n) - 1) if cells.integer else 0.0

    @property
    def name(self) -> str:
        return f"minimum frequency ({self.n:g})"

    @property
    def reason(self) -> str:
        return f"fewer than {self.n:g} contributors"


@dataclass(frozen=True)
class Zero(Rule):
    """A published zero tells that every contribution is zero. `upper` is the level; there is no lower one."""

    upper: float
    name = "zero"
    reason = "a published zero would disclose every contributor"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.upper) and self.upper >= 0):
            raise LevelError(f"zero rule: {self.upper!r} is not a level of at least 0.")

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by R = 0 and f > 0."""
        zero = (cells.value == 0) & (cells.count > 0)
        return Verdict(zero, np.full(cells.n_cells, float(self.upper)), np.zeros(cells.n_cells))


@dataclass(frozen=True)
class Request(Rule):
    """The largest contributor asked for protection, and holds more than his kind's share of the total.

    `first` and `second` are the percentages for the two kinds of request; a cell with fewer than
    `min_frequency` contributors is flagged whatever the share.
    """

    first: float
    second: float = 0.0
    min_frequency: float = 0.0
    percent: float | None = None
    units = 1
    reason = "the largest contributor asked for protection and would be recognised"

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            _check_percentage_of_rule(f"request rule, {name}", getattr(self, name), most=100, positive=False)
        _check_level_of_rule("request rule, level", self.percent)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge the cells whose largest contributor asked: x1 > (share/100) X, or too few contributors."""
        if cells.request is None:
            raise InputError(
                "the request rule needs to know who asked for protection.", hint="tabulate with request=COLUMN."
            )
        cells.require(1)
        share = np.select([cells.request == 1, cells.request == 2], [self.first, self.second], 0.0)
        dominates = (share > 0) & (cells.top[:, 0] > share / 100.0 * cells.total * (1 + _ROUNDING))
        few = (cells.request > 0) & (cells.count < self.min_frequency)
        return Verdict((dominates | few) & (cells.count > 0), _flat_level_by_rule(self.percent, cells))

    @property
    def name(self) -> str:
        return f"request ({self.first:g}, {self.second:g})"


@dataclass(frozen=True)
class Manual(Rule):
    """Cells marked by hand: indices, codes in the order of the dimensions, or codes by dimension."""

    cells: Sequence[int] | Sequence[Sequence[str]] | Sequence[Mapping[str, str]]
    percent: float = 20.0
    name = "manual"
    reason = "marked by hand"

    def __post_init__(self) -> None:
        _check_percentage_of_rule("manual rule, level", self.percent, positive=False)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Flag whatever :meth:`covers` selects."""
        return Verdict(np.ones(cells.n_cells, dtype=bool), self.percent / 100.0 * np.abs(cells.value))

    def covers(self, table: Table) -> BoolArray:
        """Return the marked cells."""
        marked = np.zeros(table.n_cells, dtype=bool)
        for cell in self.cells:
            marked[_cell_marked_by_rule(table, cell)] = True
        return marked & super().covers(table)


def _cell_marked_by_rule(table: Table, cell: Any) -> int:
    if isinstance(cell, (int, np.integer)):
        if not 0 <= cell < table.n_cells:
            raise InputError(f"manual rule: cell {cell} lies outside 0..{table.n_cells - 1}.")
        return int(cell)
    if not isinstance(cell, Mapping) and len(cell) != len(table.dimensions):
        raise InputError(f"manual rule: a cell has {len(table.dimensions)} codes, {len(cell)} are given.")
    return table.cell(cell if isinstance(cell, Mapping) else dict(zip(table.dimensions, cell, strict=True)))


@dataclass(frozen=True)
class Custom(Rule):
    """A user's own rule: a function of the cells' statistics that returns the upper level of every cell.

    Cells with a level above 0 are sensitive. A function may return a :class:`Verdict` instead.

    >>> rule = Custom(lambda cells: 0.2 * cells.value * (cells.count == 2), "pairs", "two contributors")
    >>> rule.evaluate(CellStatistics.of([50.0, 60.0], [2, 3], [[40.0], [30.0]])).unsafe
    array([ True, False])
    """

    function: Callable[[CellStatistics], Any]
    title: str = "own rule"
    why: str = "an own rule says so"

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Call the function, and check what it returns."""
        result = self.function(cells)
        if not isinstance(result, Verdict):
            level = np.asarray(result, dtype=np.float64)
            result = Verdict(level > 0, level)
        for what in result:
            if what is not None and np.shape(what) != (cells.n_cells,):
                raise InputError(f"rule {self.title!r}: one number per cell is needed, {cells.n_cells} in all.")
        return result

    @property
    def name(self) -> str:
        return self.title

    @property
    def reason(self) -> str:
        return self.why
