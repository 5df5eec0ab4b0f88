"""Earlier releases: what was published about which cells, and what must stay protected about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._tolerances import FIXED_WIDTH
from cellguard._types import BoolArray, Coordinates, FloatArray
from cellguard.exceptions import InputError
from cellguard.history.periods import normalize_period
from cellguard.model.levels import get_smallest_widths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.history.derived import Figures
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["EarlierRelease", "History", "find_published"]

CELL = "cell"
"""Name of the dimension of tables without dimensions: their cells are numbered."""


def find_published(low: FloatArray, high: FloatArray) -> BoolArray:
    """Return the cells whose interval is one number."""
    with np.errstate(invalid="ignore"):
        narrow = high - low <= FIXED_WIDTH * np.maximum(1.0, np.abs(low))
    return np.asarray(narrow & np.isfinite(low))


@dataclass(frozen=True, kw_only=True, eq=False)
class EarlierRelease:
    """What readers have of an earlier release, and what its office knows of it if the internal part is there.

    >>> import cellguard as cg
    >>> table = cg.Table.from_leaves({"region": ["N", "S", "W"]}, [3, 4, 5], sensitive=[1], sliding=2.0)
    >>> EarlierRelease.of(cg.suppress(table), period="2025Q1")
    EarlierRelease('2025Q1': 4 cells, 2 withheld)
    """

    name: str
    """Name of the release in messages."""
    period: str = ""
    """Its reference period, such as 2025, 2025Q1 or 2025-03; another name is a period of its own."""
    population: str = ""
    """Its population; releases of different populations share no cell."""
    dimensions: tuple[str, ...]
    """Names of the dimensions."""
    codes: tuple[tuple[str, ...], ...]
    """The codes of each dimension; the first is the total."""
    parts: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """For each dimension: code -> the codes that add up to it, where the hierarchy is known."""
    coordinates: Coordinates = field(repr=False)
    """One row per cell: the index of its code in each dimension."""
    relations: csr_array = field(repr=False)
    """One row per relation."""
    rhs: FloatArray = field(repr=False)
    """Right-hand side of each relation."""
    low: FloatArray = field(repr=False)
    """Lower end of what readers know about each cell; a published value is both ends."""
    high: FloatArray = field(repr=False)
    """Upper end of what readers know about each cell."""
    counted: BoolArray = field(repr=False)
    """Which cells are counts."""
    whole: bool = False
    """Whether values without fractions are taken for whole numbers."""
    values: FloatArray = field(repr=False)
    """True values, for the office only; NaN where a cell is withheld and the internal part is not there."""
    sensitive: BoolArray = field(repr=False)
    """Cells that must stay protected; without the internal part, all withheld cells."""
    lower: FloatArray = field(repr=False)
    """Lower protection levels."""
    upper: FloatArray = field(repr=False)
    """Upper protection levels."""
    sliding: FloatArray = field(repr=False)
    """Sliding protection levels."""
    widths: FloatArray = field(repr=False)
    """Smallest widths of cells without levels (:mod:`cellguard.model.levels`)."""
    figures: tuple[Figures, ...] = ()
    """Derived figures that were published with it."""

    @classmethod
    def of(cls, release: Release, *, name: str = "", period: str = "", population: str = "") -> EarlierRelease:
        """Return what an earlier release, made or read in this process, contributes."""
        from cellguard.attackers.public import add_public_knowledge

        if not release.by_ranges:
            raise InputError(
                f"an earlier release by {release.method} cannot be linked: it says nothing certain about a cell.",
                hint="releases that withhold, round or perturb cells, or give intervals, can be linked.",
            )
        table = add_public_knowledge(release.table)
        low, high = replace(release, table=table).published_bounds()
        return cls(
            name=name or period or release.table.name, period=period, population=population,
            **describe_structure(table), low=low, high=high, values=table.values, sensitive=table.sensitive,
            lower=table.lower, upper=table.upper, sliding=table.sliding, widths=get_smallest_widths(table),
            figures=tuple(release.figures),
        )  # fmt: skip

    @property
    def published(self) -> BoolArray:
        """Which cells were published with their value."""
        return find_published(self.low, self.high)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.low)

    def __repr__(self) -> str:
        withheld = int((~self.published).sum())
        return f"EarlierRelease({self.name!r}: {self.n_cells} cells, {withheld} withheld)"


def describe_structure(table: Table) -> dict[str, Any]:
    """Return the structure of a table: dimensions, codes, sums, relations."""
    codes, coordinates, dimensions = table.codes, table.coordinates, table.dimensions
    if not dimensions:
        dimensions, codes = (CELL,), (tuple(f"{i}" for i in range(table.n_cells)),)
        coordinates = np.arange(table.n_cells, dtype=np.int32)[:, None]
    return {
        "dimensions": dimensions, "codes": codes, "coordinates": coordinates, "relations": table.relations,
        "rhs": table.rhs, "counted": table.count_cells, "whole": table.whole, "parts": _list_parts(table),
    }  # fmt: skip


def _list_parts(table: Table) -> tuple[dict[str, tuple[str, ...]], ...]:
    """Return for each dimension which codes add up to which, where the hierarchies are known."""
    out = []
    for hierarchy in table.hierarchies:
        sums = hierarchy.relations()
        codes = hierarchy.codes
        found: dict[str, set[str]] = {}
        for k, total in enumerate(sums.totals.tolist()):
            found.setdefault(codes[total], set()).update(codes[i] for i in sums.get_parts(k).tolist())
        out.append({total: tuple(sorted(parts)) for total, parts in found.items()})
    return tuple(out)


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Earlier releases and how they are linked with a new one.

    Cells with the same period, population and codes are the same cell. All other links are declared here.
    """

    period: str = ""
    """Reference period of the new release."""
    population: str = ""
    """Population of the new release."""
    releases: Sequence[EarlierRelease] = ()
    """Earlier releases, oldest first."""
    additive: bool = False
    """Whether values of periods add up: quarters to years, months to cumulative sums. Not for stocks."""
    sums: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further sums of periods by name: total -> parts."""
    tolerance: float = 0.0
    """By how many units the sum of periods may differ from the total, as after rounding."""
    revision_percent: float | None = None
    """Largest revision of a value, in per cent of the earlier value, as attackers know it; None: none is revised."""
    prior_percent: float | None = None
    """Attackers know each value within this percentage of the preceding period's; None: they do not."""
    correspondence: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Dimension -> earlier code -> its code now, or None where it has none: codes that changed."""
    reopen: bool = False
    """Whether a cell withheld earlier may be published if the new table says that it is not sensitive any more."""
    accept: bool = False
    """Whether cells that earlier releases alone make impossible to protect are accepted as known."""
    accepted: frozenset[str] = frozenset()
    """Labels of the cells that were accepted as known, in the joint system; :func:`cellguard.suppress` fills it."""

    def __post_init__(self) -> None:
        for name in ("tolerance", "revision_percent", "prior_percent"):
            given = getattr(self, name)
            if given is not None and not (np.isfinite(given) and given >= 0):
                raise InputError(f"{name} {given!r}: a number of at least 0 is needed.")
        object.__setattr__(self, "period", normalize_period(self.period))
        same = [(one, normalize_period(one.period)) for one in self.releases]
        named = tuple(one if one.period == period else replace(one, period=period) for one, period in same)
        object.__setattr__(self, "releases", named)
        names = [one.name for one in self.releases]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two earlier releases are called {twice!r}.", hint="give each release its own name.")

    @classmethod
    def from_any(cls, given: History | Sequence[Release | EarlierRelease] | None) -> History:
        """Return the history from what a user gave: a history, or releases that show the same cells."""
        if given is None:
            return cls()
        if isinstance(given, cls):
            return given
        found = []
        for number, one in enumerate(given, 1):  # type: ignore[arg-type]
            early = one if isinstance(one, EarlierRelease) else EarlierRelease.of(one, name=f"earlier release {number}")
            found.append(early)
        periods = {one.period for one in found if one.period}
        if len(periods) > 1:
            raise InputError(
                "earlier releases of several periods: the period of this release is needed.",
                hint="cg.History(period='2025Q2', releases=[...]) says it, and how periods are linked.",
            )
        return cls(releases=tuple(found), period=next(iter(periods), ""))
