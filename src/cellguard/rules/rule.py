"""The rules of primary sensitivity, one class each; the package's docstring lists them in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellguard._deprecation import OldName
from cellguard._quantities import check_count, check_percent
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError, LevelError, UnknownCodeError, raise_error_of_missing, suggest_names
from cellguard.rules.statistics import CellStatistics

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = [
    "Custom", "Dominance", "Manual", "MinFrequency", "PPercent", "PriorPosterior", "Request", "Rule", "Verdict",
    "Zero",
]  # fmt: skip

DEFAULT_PERCENT = 10.0
"""Default level, in per cent of the value, of a rule that flags magnitudes without measuring them: the usual p."""
_ROUNDING = 1e-12
"""Relative error of floating-point sums: differences below this share are ties, not violations."""


class Verdict(NamedTuple):
    """A rule's verdict on every cell."""

    unsafe: BoolArray
    upper: FloatArray
    """Upper level of unsafe cells."""
    lower: FloatArray | None = None
    """Lower level of unsafe cells; None for the same as the upper one."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Base of all rules: a verdict on cells, the cells it applies to, and the reason in words."""

    places: tuple[tuple[str, frozenset[str], bool], ...] = ()
    """Restrictions: dimension, codes, and whether the rule holds for these codes or for all others."""

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge every cell by its statistics."""
        raise NotImplementedError

    def compute_width(self, cells: CellStatistics) -> float:  # noqa: ARG002 - most rules measure by their levels
        """Return the width that the range of a flagged cell must have in addition to its levels."""
        return 0.0

    width = OldName("compute_width")

    @property
    def units(self) -> int:
        """Number of a cell's largest contributions that the rule uses."""
        return 0

    @property
    def name(self) -> str:
        """The rule with its parameters."""
        raise NotImplementedError

    @property
    def reason(self) -> str:
        """Why a cell is flagged, in words that reveal no contribution."""
        raise NotImplementedError

    def only(self, **codes: str | Sequence[str]) -> Rule:
        """Return the rule for some codes of a dimension only: ``PPercent(15).only(nace=["35", "36"])``."""
        return self._restrict_to_codes(codes, inside=True)

    def excluding(self, **codes: str | Sequence[str]) -> Rule:
        """Return the rule for all but some codes of a dimension: ``PPercent(10).excluding(nace="35")``."""
        return self._restrict_to_codes(codes, inside=False)

    def _restrict_to_codes(self, codes: Mapping[str, str | Sequence[str]], *, inside: bool) -> Rule:
        new = tuple((d, frozenset([c] if isinstance(c, str) else c), inside) for d, c in codes.items())
        return replace(self, places=self.places + new)

    def find_covered_cells(self, table: Table) -> BoolArray:
        """Return which cells of the table the rule applies to."""
        covered = np.ones(table.n_cells, dtype=bool)
        for dimension, wanted, inside in self.places:
            raise_error_of_missing("dimension", [dimension], table.dimensions, place=f"{self.name}: ")
            d = table.dimensions.index(dimension)
            unknown = sorted(wanted - set(table.codes[d]))
            if unknown:
                hint = suggest_names(unknown[0], table.codes[d])
                raise UnknownCodeError(f"{self.name}: {dimension!r} has no code {unknown[0]!r}.", hint=hint)
            listed = np.array([code in wanted for code in table.codes[d]])
            covered &= listed[table.coordinates[:, d]] == inside
        return covered

    covers = OldName("find_covered_cells")


def _check_level_of_rule(name: str, percent: float | None) -> None:
    if percent is not None:
        check_percent(name, percent, positive=False)


def _compute_flat_level(percent: float | None, cells: CellStatistics) -> FloatArray:
    """Return a percentage of every value: for magnitudes the default unless given, for counts none."""
    if percent is None:
        percent = 0.0 if cells.integer else DEFAULT_PERCENT
    return percent / 100.0 * np.abs(cells.value)


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
        check_count("dominance rule, n", self.n)
        check_percent("dominance rule, k", self.k, most=100)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by 100 (x1+..+xn) / X > k; the level raises X until the share is k."""
        upper = 100.0 / self.k * cells.sum_largest(self.n) - cells.total
        unsafe = (upper > _ROUNDING * cells.total) & np.isfinite(cells.first)
        return Verdict(unsafe, cells.convert_level(upper))

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
        check_percent("p% rule, p", self.p)
        check_count("p% rule, coalition", self.coalition)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by (p/100) x1 + (x1+..+x_{n+1}) - X > 0."""
        return _compute_ambiguity_shortfall(cells, self.p / 100.0, self.coalition)

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
        check_percent("prior-posterior rule, p", self.p)
        check_percent("prior-posterior rule, q", self.q)
        if self.p >= self.q:
            raise LevelError(
                f"prior-posterior rule: p = {self.p:g} is not below q = {self.q:g}.",
                hint="q is what an attacker knows before publication, p what they may know after.",
            )
        check_count("prior-posterior rule, coalition", self.coalition)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by (p/100) x1 + (q/100)((x1+..+x_{n+1}) - X) > 0, the sign of its level."""
        return _compute_ambiguity_shortfall(cells, self.p / self.q, self.coalition)

    @property
    def units(self) -> int:
        return self.coalition + 1

    @property
    def name(self) -> str:
        group = "" if self.coalition == 1 else f", coalition of {self.coalition}"
        return f"prior-posterior ({self.p:g}, {self.q:g}{group})"

    @property
    def reason(self) -> str:
        return f"an attacker who knew contributions to within {self.q:g}% would know the largest to within {self.p:g}%"


def _compute_ambiguity_shortfall(cells: CellStatistics, share: float, coalition: int) -> Verdict:
    """Return by how much the rest of the cell fails to hide `share` of the largest contribution."""
    upper = share * cells.first + cells.sum_largest(coalition + 1) - cells.total
    return Verdict(upper > _ROUNDING * cells.total, cells.convert_level(np.nan_to_num(upper)))


FREQUENCY_BASES = ("contributors", "weights", "both")
"""What a minimum frequency counts."""


@dataclass(frozen=True)
class MinFrequency(Rule):
    """Fewer than n contributors.

    Where contributors have sampling weights, `basis` says what is counted: ``"contributors"``, those who answered,
    whom a reader could recognise; ``"weights"``, the units that they stand for; ``"both"``, neither may be below n.

    Of a count, n whole numbers must stay possible: who can tell fewer of them apart knows what the threshold
    is there to hide. Of a magnitude, the levels are a percentage of the value, 10 unless given; a percentage
    that is given holds for counts too.

    >>> MinFrequency(3).compute_width(CellStatistics.of([2.0], [2], [[1.0]], integer=True))
    2.0
    """

    n: float
    percent: float | None = None
    basis: str = "contributors"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.n) and self.n > 0):
            raise InputError(f"minimum frequency: {self.n!r} is not a number above 0.")
        if self.basis not in FREQUENCY_BASES:
            allowed = ", ".join(repr(one) for one in FREQUENCY_BASES)
            raise InputError(f"minimum frequency, basis: {self.basis!r} is not one of {allowed}.")
        _check_level_of_rule("minimum frequency, level", self.percent)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge by 0 < f < n; a cell whose contributors all waived is safe."""
        least = {"contributors": cells.count, "weights": cells.weight}.get(self.basis)
        least = np.minimum(cells.count, cells.weight) if least is None else least
        few = (cells.count > 0) & (least < self.n)
        if cells.protected is not None:
            few &= np.isfinite(cells.protected)
        return Verdict(few, _compute_flat_level(self.percent, cells))

    def compute_width(self, cells: CellStatistics) -> float:
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
    """A published zero reveals that every contribution is zero. `upper` is the level; there is no lower one."""

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
    """The largest contributor requested protection, and holds more than the share allowed for that kind of request.

    `first` and `second` are the percentages for the two kinds of request; a cell with fewer than
    `min_frequency` contributors is flagged regardless of the share.
    """

    first: float
    second: float = 0.0
    min_frequency: float = 0.0
    percent: float | None = None
    units = 1
    reason = "the largest contributor asked for protection and would be recognised"

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            check_percent(f"request rule, {name}", getattr(self, name), most=100, positive=False)
        _check_level_of_rule("request rule, level", self.percent)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Judge the cells whose largest contributor made a request: x1 > (share/100) X, or too few contributors."""
        if cells.request is None:
            raise InputError(
                "the request rule needs to know who asked for protection.", hint="tabulate with request=COLUMN."
            )
        cells.require(1)
        share = np.select([cells.request == 1, cells.request == 2], [self.first, self.second], 0.0)
        dominates = (share > 0) & (cells.top[:, 0] > share / 100.0 * cells.total * (1 + _ROUNDING))
        few = (cells.request > 0) & (cells.count < self.min_frequency)
        return Verdict((dominates | few) & (cells.count > 0), _compute_flat_level(self.percent, cells))

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
        check_percent("manual rule, level", self.percent, positive=False)

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Flag the cells that :meth:`covers` selects."""
        return Verdict(np.ones(cells.n_cells, dtype=bool), self.percent / 100.0 * np.abs(cells.value))

    def find_covered_cells(self, table: Table) -> BoolArray:
        """Return the marked cells."""
        marked = np.zeros(table.n_cells, dtype=bool)
        for cell in self.cells:
            marked[_find_marked_cell(table, cell)] = True
        return marked & super().find_covered_cells(table)


def _find_marked_cell(table: Table, cell: Any) -> int:
    if isinstance(cell, (int, np.integer)):
        if not 0 <= cell < table.n_cells:
            raise InputError(f"manual rule: cell {cell} lies outside 0..{table.n_cells - 1}.")
        return int(cell)
    if not isinstance(cell, Mapping) and len(cell) != len(table.dimensions):
        raise InputError(f"manual rule: a cell has {len(table.dimensions)} codes, {len(cell)} are given.")
    return table.cell(cell if isinstance(cell, Mapping) else dict(zip(table.dimensions, cell, strict=True)))


@dataclass(frozen=True)
class Custom(Rule):
    """A user-defined rule: a function of the cells' statistics that returns the upper level of every cell.

    Cells with a level above 0 are sensitive. A function may return a :class:`Verdict` instead.

    >>> rule = Custom(lambda cells: 0.2 * cells.value * (cells.count == 2), "pairs", "two contributors")
    >>> rule.evaluate(CellStatistics.of([50.0, 60.0], [2, 3], [[40.0], [30.0]])).unsafe
    array([ True, False])
    """

    function: Callable[[CellStatistics], Any]
    title: str = "own rule"
    why: str = "an own rule says so"

    def evaluate(self, cells: CellStatistics) -> Verdict:
        """Call the function, and check its result."""
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
