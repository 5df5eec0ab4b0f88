"""Derived statistics are publications too: each is a pair of linear bounds on the cells that it is made of.

A figure ``r = factor * N / D`` that is rounded to a unit ``u`` says ``(r - u/2) D <= factor N < (r + u/2) D``. With one
published side this is an interval of the other; with two withheld sides it still ties them together. Both are
used exactly, because the published r is a number and D is not negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError, suggest_names
from cellguard.history.cells import JointCells, find_rows
from cellguard.history.periods import find_previous, get_previous, normalize_period
from cellguard.history.rows import Rows, convert_to_fraction

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["KINDS", "Derived", "Figures", "add_figures", "compute_figures", "find_base_period", "move_figures"]

KINDS = ("mean", "ratio", "share", "growth", "index", "median", "total")
"""Kinds of derived statistics."""
PREVIOUS = "previous"
"""The period of the denominator of a growth rate, unless another is given."""
MAX_DECIMALS = 9
_SLACK = 1e-9
"""Share of a figure: less is rounding in floating point."""

Codes = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A statistic that is published for cells of a table, computed from them and rounded.

    >>> Derived(name="sales per shop", kind="mean", of={"indicator": "sales"}, by={"indicator": "shops"}, decimals=1)
    Derived('sales per shop', mean)
    """

    name: str
    """Name of the statistic in reports and files."""
    kind: str
    """mean, ratio or share (one cell over another), growth or index (a cell over that of another period), median (of
    contributions, with their sum and number as cells), or total (a sum of cells, such as a number in a title)."""
    of: Codes = field(default_factory=dict)
    """The cells for which it is published: dimension -> code or codes; every cell unless given."""
    by: Mapping[str, str] = field(default_factory=dict)
    """Codes that the denominator has in place of the numerator's: the total of a dimension, another indicator."""
    period: str = ""
    """Period of the denominator: the preceding one for growth rates unless given; required for an index."""
    decimals: int = 1
    """Decimals of the published figure, rounded half up; -2 means hundreds."""
    factor: float = 1.0
    """What the ratio is multiplied by; shares, growth rates and indices are percentages."""
    least: float = 0.0
    """For a median: the smallest contribution that is possible."""
    values: Sequence[tuple[Mapping[str, str], float | None]] | None = None
    """The published figures: codes of the cell and figure, None where it is withheld. Computed unless given."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            hint = suggest_names(self.kind, KINDS) or f"known: {', '.join(KINDS)}."
            raise InputError(f"derived {self.name!r}: unknown kind {self.kind!r}.", hint=hint)
        if not -MAX_DECIMALS <= self.decimals <= MAX_DECIMALS:
            raise InputError(f"derived {self.name!r}: decimals {self.decimals} are not within -9 to 9.")
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise InputError(f"derived {self.name!r}: the factor is not a number above 0.")
        if self.kind in ("mean", "ratio", "share", "median") and not self.by:
            raise InputError(
                f"derived {self.name!r}: a {self.kind} needs to know by what it is divided.",
                hint='by = {indicator = "shops"}, or by = {region = "Total"} for a share.',
            )
        if self.kind == "index" and not self.period:
            raise InputError(f"derived {self.name!r}: an index needs its base period.", hint='period = "2020".')

    def __repr__(self) -> str:
        return f"Derived({self.name!r}, {self.kind})"

    @property
    def scale(self) -> float:
        """What the ratio of the cells is multiplied by."""
        return self.factor * (100.0 if self.kind in ("share", "growth", "index") else 1.0)

    @property
    def offset(self) -> float:
        """What is subtracted from the scaled ratio: growth rates are changes."""
        return self.scale if self.kind == "growth" else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """The figures of a derived statistic, as published."""

    derived: Derived
    """What they are."""
    cells: IntArray
    """The cell of the table that each figure is about; for a total, the cells that are added."""
    values: FloatArray
    """The published figures; NaN where one is withheld."""
    decimals: IntArray
    """Decimals of each figure; fewer where it was coarsened."""
    exact: FloatArray = field(repr=False, default_factory=lambda: np.zeros(0))
    """The figures before rounding (confidential); empty if they were given."""
    computed: bool = True
    """Whether they were rounded half up here, or given by the user, whose rounding is not known."""

    @property
    def withheld(self) -> BoolArray:
        """Which figures are not published."""
        return np.isnan(self.values)

    def __repr__(self) -> str:
        return f"Figures({self.derived.name!r}: {len(self.values)} figures, {int(self.withheld.sum())} withheld)"

    def withhold(self, which: BoolArray) -> Figures:
        """Return the figures without some of them."""
        return replace(self, values=np.where(which, np.nan, self.values))

    def round_further(self, which: BoolArray, most: int) -> Figures:
        """Return the figures with one decimal less for some of them; withhold those that lost `most` decimals."""
        if not self.computed:
            return self.withhold(which)
        decimals = np.where(which, self.decimals - 1, self.decimals)
        gone = self.withheld | (which & (decimals < np.maximum(self.derived.decimals - most, -MAX_DECIMALS)))
        values = np.where(gone, np.nan, round_half_up(self.exact, decimals))
        return replace(self, decimals=np.where(gone, self.derived.decimals, decimals), values=values)

    def build_file_columns(self, table: Table) -> dict[str, Any]:
        """Return the columns of a public file: codes, statistic, status, decimals and figure."""
        about = self.cells if self.derived.kind != "total" else self.cells[:1]
        codes = table.cell_codes(about)
        if self.derived.kind == "total":
            codes = {dimension: [""] for dimension in codes}
        status = np.where(self.withheld, "withheld", "published")
        about_figures = {"status": status, "decimals": self.decimals, "value": self.values}
        return {**codes, "statistic": [self.derived.name] * len(self.values), **about_figures}


# ---------------------------------------------------------------------- which cells


def _select_cells(derived: Derived, table: Table, cells: JointCells) -> IntArray:
    """Return the cells of the new table for which a statistic is published."""
    chosen = np.ones(table.n_cells, bool)
    for dimension, codes in derived.of.items():
        column, numbers = _find_codes(derived, cells, dimension, [codes] if isinstance(codes, str) else list(codes))
        chosen &= np.isin(cells.coordinates[: table.n_cells, column], numbers)
    for dimension, code in derived.by.items():
        column, numbers = _find_codes(derived, cells, dimension, [code])
        if derived.kind == "share":  # a total has no share in itself
            chosen &= cells.coordinates[: table.n_cells, column] != numbers[0]
    return np.flatnonzero(chosen)


def _find_codes(derived: Derived, cells: JointCells, dimension: str, codes: list[str]) -> tuple[int, list[int]]:
    if dimension not in cells.dimensions[1:]:
        hint = suggest_names(dimension, cells.dimensions[1:])
        raise UnknownCodeError(f"derived {derived.name!r}: unknown dimension {dimension!r}.", hint=hint)
    column = cells.dimensions.index(dimension)
    for code in codes:
        if code not in cells.codes[column]:
            hint = suggest_names(code, cells.codes[column])
            text = f"derived {derived.name!r}: dimension {dimension!r} has no code {code!r}."
            raise UnknownCodeError(text, hint=hint)
    return column, [cells.codes[column].index(code) for code in codes]


def find_base_period(derived: Derived, period: str) -> str:
    """Return the other period that figures about a period refer to; "" if there is none.

    >>> find_base_period(Derived(name="growth", kind="growth"), "2025Q1")
    '2024Q4'
    """
    if derived.period and derived.period != PREVIOUS:
        return normalize_period(derived.period)
    return get_previous(period) if derived.kind == "growth" or derived.period else ""


def find_denominators(derived: Derived, cells: JointCells, numerators: IntArray, until: int | None = None) -> IntArray:
    """Return the joint cell by which each cell is divided; -1 where there is none.

    With `until`, the figures are divided by what was out then: as many earlier releases.
    """
    wanted = cells.coordinates[numerators].copy()
    for dimension, code in derived.by.items():
        column, numbers = _find_codes(derived, cells, dimension, [code])
        wanted[:, column] = numbers[0]
    period = derived.period or (PREVIOUS if derived.kind == "growth" else "")
    own = int(wanted[0, 0]) if len(wanted) else 0
    if period == PREVIOUS:
        period = find_previous(cells.periods[own], cells.periods) or ""
        if not period:
            raise InputError(
                f"derived {derived.name!r}: no earlier release is about the preceding period.",
                hint="name the period of the denominator, or give the earlier release.",
            )
    if period:
        version = cells.get_newest_version(normalize_period(period), until)
        if version is None:
            raise InputError(f"derived {derived.name!r}: no release is about the period {period!r}.")
        wanted[:, 0] = version
    return find_rows(cells.coordinates, wanted)


def move_figures(figures: Figures, place: IntArray, cells: JointCells, until: int) -> tuple[Figures, IntArray]:
    """Return the figures of an earlier release in joint cells, and the joint cells by which they are divided.

    Values may have been revised since: a figure is made from what was out when it was published, with `until` releases.
    """
    moved = place[figures.cells]
    if figures.derived.kind == "total":
        if (moved < 0).any():  # a code without a correspondence
            return replace(figures, cells=moved[:0], values=figures.values[:0], decimals=figures.decimals[:0]), moved[
                :0
            ]
        return replace(figures, cells=moved), np.full(1, -1, np.int64)
    kept = moved >= 0
    out = replace(figures, cells=moved[kept], values=figures.values[kept], decimals=figures.decimals[kept])
    return out, find_denominators(out.derived, cells, out.cells, until)


# ---------------------------------------------------------------------- figures


def compute_figures(derived: Derived, table: Table, cells: JointCells, values: FloatArray) -> Figures:
    """Return the figures of a statistic: those given, or computed from true values and rounded."""
    if derived.values is not None:
        return _read_figures(derived, table)
    numerators = _select_cells(derived, table, cells)
    if derived.kind == "total":
        exact = np.array([values[numerators].sum() * derived.scale])
        return _round_figures(derived, numerators, exact)
    if derived.kind == "median":
        raise InputError(f"derived {derived.name!r}: a median cannot be computed from cells.", hint="give its values.")
    place = find_denominators(derived, cells, numerators)
    usable = (place >= 0) & (place != numerators)
    usable[usable] &= values[place[usable]] > 0
    numerators, place = numerators[usable], place[usable]
    exact = derived.scale * values[numerators] / values[place] - derived.offset
    return _round_figures(derived, numerators, exact)


def _round_figures(derived: Derived, cells: IntArray, exact: FloatArray) -> Figures:
    decimals = np.full(len(exact), derived.decimals, np.int64)
    return Figures(derived=derived, cells=cells, values=round_half_up(exact, decimals), decimals=decimals, exact=exact)


def round_half_up(exact: FloatArray, decimals: IntArray) -> FloatArray:
    """Return numbers rounded to decimals, halves up.

    >>> round_half_up(np.array([1.25, 1.35, -0.25, 149.0]), np.array([1, 1, 1, -2])).tolist()
    [1.3, 1.4, -0.2, 100.0]
    """
    scale = 10.0 ** decimals.astype(np.float64)
    number = np.floor(exact * scale + 0.5 + _SLACK * np.maximum(1.0, np.abs(exact * scale)))
    whole = decimals < 0
    return np.where(whole, number * 10.0 ** np.where(whole, -decimals, 0), number / np.where(whole, 1.0, scale))


def _read_figures(derived: Derived, table: Table) -> Figures:
    given = list(derived.values or ())
    if derived.kind == "total":
        cells = np.array([table.cell(codes) for codes, _ in given], np.int64)
        if len({value for _, value in given}) != 1:
            raise InputError(f"derived {derived.name!r}: a total has one figure; give it with each of its cells.")
        given = given[:1]
    else:
        cells = np.array([table.cell({**_select_single(derived.of), **codes}) for codes, _ in given], np.int64)
    values = np.array([np.nan if value is None else float(value) for _, value in given])
    decimals = np.full(len(values), derived.decimals, np.int64)
    return Figures(derived=derived, cells=cells, values=values, decimals=decimals, computed=False)


def _select_single(codes: Codes) -> dict[str, str]:
    """Return the selections of one code: they need not be repeated with every figure."""
    return {dimension: code for dimension, code in codes.items() if isinstance(code, str)}


# ---------------------------------------------------------------------- as rows


@dataclass(frozen=True, kw_only=True, eq=False)
class FigureCounts:
    """How the figures of all statistics tie cells together."""

    one_side: int = 0
    """Figures with one withheld side: an interval of it."""
    two_sides: int = 0
    """Figures with two withheld sides: they bound the ratio of both."""
    telling: tuple[BoolArray, ...] = ()
    """For each statistic: which of its figures tell something about a withheld cell."""

    def add(self, other: FigureCounts) -> FigureCounts:
        """Return the figures of both."""
        return FigureCounts(
            one_side=self.one_side + other.one_side, two_sides=self.two_sides + other.two_sides,
            telling=(*self.telling, *other.telling),
        )  # fmt: skip


def add_figures(
    rows: Rows, figures: Figures, cells: JointCells, values: FloatArray, known: BoolArray, place: IntArray | None = None
) -> FigureCounts:
    """Add what the published figures of a statistic say about cells that readers do not know.

    `place` are the cells by which they are divided; unless given, those of the newest releases.
    """
    derived = figures.derived
    shown = ~figures.withheld
    if derived.kind == "total":
        table = figures.cells[None, :]
        sides = np.zeros(1, np.int64)
        place = np.full(1, -1, np.int64)
    else:
        place = find_denominators(derived, cells, figures.cells) if place is None else place
        shown &= place >= 0
        table = figures.cells[:, None]
        sides = (~known[place]).astype(np.int64)
    open_ = (~known[table]).any(axis=1)
    sides = sides + open_
    _check_figures(figures, (table, place), cells, values, shown)
    shown &= sides > 0
    whole = _find_whole_figures(table, place, values)
    for decimals in np.unique(figures.decimals[shown]).tolist():
        which = np.flatnonzero(shown & (figures.decimals == decimals))
        add = _add_medians if derived.kind == "median" else _add_ratios
        add(rows, figures, (table[which], place[which]), which, whole[which])
    one, two = shown & (sides == 1), shown & (sides > 1)
    return FigureCounts(one_side=int(one.sum()), two_sides=int(two.sum()), telling=(shown,))


def _find_whole_figures(table: IntArray, place: IntArray, values: FloatArray) -> BoolArray:
    """Return the figures of which both sides are whole numbers."""
    every = np.column_stack([table, place])
    known = (every >= 0) & ~np.isnan(values[every])
    broken = np.where(known, values[every] != np.rint(values[every]), False)
    return np.asarray(~broken.any(axis=1))


def _add_ratios(
    rows: Rows, figures: Figures, sides: tuple[IntArray, IntArray], which: IntArray, whole: BoolArray
) -> None:
    """Add ``(2k - 1) u D <= 2 p N < (2k + 1) u D`` for figures of ``k`` units u, with whole coefficients."""
    table, place = sides
    derived = figures.derived
    decimals = int(figures.decimals[which[0]])
    up, unit = 10.0 ** max(decimals, 0), 10.0 ** max(-decimals, 0)
    p, q = convert_to_fraction(derived.scale).as_integer_ratio()
    k = np.rint((figures.values[which] + derived.offset) * up / unit)
    numerator = np.full(table.shape, 2.0 * p * up)
    least = np.where(whole & figures.computed, 1.0, 0.0)  # half up: the upper end is excluded
    low, high = (2 * k - 1) * unit * q, (2 * k + 1) * unit * q
    if derived.kind == "total":
        rows.add(derived.name, table, numerator, rhs=float(low[0]), surplus=0.0)
        rows.add(derived.name, table, -numerator, rhs=-float(high[0]), surplus=least)
        return
    pairs = np.column_stack([table, place])
    rows.add(derived.name, pairs, np.column_stack([numerator, -low]), surplus=0.0)
    rows.add(derived.name, pairs, np.column_stack([-numerator, high]), surplus=least)


def _add_medians(
    rows: Rows, figures: Figures, sides: tuple[IntArray, IntArray], which: IntArray, whole: BoolArray
) -> None:
    """Add what a median says: half of the contributions are at least as large, the others at least the smallest.

    A median between two whole numbers has an even number of contributions.
    """
    table, place = sides
    derived = figures.derived
    decimals = int(figures.decimals[which[0]])
    up, unit = 10.0 ** max(decimals, 0), 10.0 ** max(-decimals, 0)
    p, q = convert_to_fraction(derived.least).as_integer_ratio()
    k = np.rint(figures.values[which] * up / unit)
    # 2 sum >= (median - unit/2 + least) count
    pairs = np.column_stack([table, place])
    count = (2 * k - 1) * unit * q + 2 * p * up
    rows.add(derived.name, pairs, np.column_stack([np.full(len(k), 4.0 * up * q), -count]), surplus=0.0)
    even = whole & (decimals > 0) & (figures.values[which] != np.rint(figures.values[which]))
    rows.add(derived.name, place[even][:, None], np.full((int(even.sum()), 1), 0.5), surplus=1.0)


def _check_figures(
    figures: Figures, sides: tuple[IntArray, IntArray], cells: JointCells, values: FloatArray, shown: BoolArray
) -> None:
    """Refuse figures that contradict the values from which they should have been computed."""
    table, place = sides
    derived = figures.derived
    if derived.kind == "median":
        return
    below = np.where(place >= 0, values[place], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = derived.scale * values[table].sum(axis=1) / below - derived.offset  # NaN where a value is not known
    half = 0.5 * 10.0 ** -figures.decimals.astype(np.float64)
    off = np.abs(exact - figures.values) > half * (1 + 1e-6) + _SLACK * np.maximum(1.0, np.abs(exact))
    bad = np.flatnonzero(shown & off)
    if len(bad):
        codes = [cells.codes[d][cells.coordinates[figures.cells[bad[0]], d]] for d in range(1, len(cells.dimensions))]
        raise InputError(
            f"derived {derived.name!r}: {len(bad)} figures contradict the values of the table, that of "
            f"({', '.join(codes)}) for one.",
            hint="is the number of decimals right, and is it made from the same data?",
        )
