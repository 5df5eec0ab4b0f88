"""The release: what is published, and what it tells an attacker about every cell.

Five kinds, one question: which interval does the release give for cell i? (DESIGN: one idea)

============  =====================================  ==========================
kind          what is published for cell i           interval of the attacker
============  =====================================  ==========================
Suppression   the value, or nothing                  a_i, or what he knew before
Adjustment    a changed value                        attacked by scenarios
Intervals     a lower and an upper number            [lower_i, upper_i]
Rounding      a multiple of the base                 less than step bases from v_i
Perturbation  a changed value                        v_i -/+ distance_i
============  =====================================  ==========================
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import NO_DISTANCE, SAME_VALUE
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import ReleaseError
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.table import Table

_log = logging.getLogger("cellguard")

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.publication import PublishedTable

__all__ = [
    "PRIMARY_TOLD", "UNSAFE", "Adjustment", "Intervals", "Perturbation", "Release", "Rounding", "Status",
    "Suppression", "warning_of_unsafe_release",
]  # fmt: skip


UNSAFE = "NOT SAFE: the audit refuses this release"
"""What every output says when an unsafe release was written on request."""
PRIMARY_TOLD = (
    "warning: readers are told which withheld cells are sensitive themselves; "
    "of a count, that says how small it is, and to all who know the rule that it broke it."
)
"""What is said to who asks for it."""
_FROM_TRUTH = {"objective", "bound", "cost", "loss", "position", "distance"}
"""Figures that are computed from true values: with them a log would keep sums of what is withheld."""


class Status(StrEnum):
    """How a method ended. Only a proof makes a release optimal."""

    OPTIMAL = "optimal"
    """Proven: nothing better exists, within the gap that was asked for."""
    FEASIBLE = "feasible"
    """A release that meets every level, with a proven gap larger than was asked for, or none."""
    TIME_LIMIT = "time_limit"
    """As feasible, and the time limit is why it stopped."""
    INFEASIBLE = "infeasible"
    """No release of this kind exists; `explanation` says why."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release:
    """What every kind of release has. Nothing in it is called safe: :meth:`audit` decides that."""

    method: ClassVar[str] = ""
    table: Table = field(repr=False)
    """The table that was protected (confidential, never written by :meth:`save`)."""
    status: Status
    """How the method ended."""
    objective: float
    """Information loss, in the measure of the method; NaN when there is no release."""
    bound: float = float("nan")
    """Proven lower bound of the objective over all safe releases of this kind."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Where the time went: read, reduce, solve, audit, total."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every option that decided the result, seed included: what is needed to make it again."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the method itself: cuts, nodes, iterations."""
    explanation: str = ""
    """Why there is no release, in the user's labels; or a remark on the result."""

    def __post_init__(self) -> None:
        """Freeze what is published: what was audited is what is written."""
        for name, array in self.cell_arrays().items():
            if array.flags.writeable:
                own = array.copy()  # the caller keeps his array writeable
                own.setflags(write=False)
                object.__setattr__(self, name, own)

    def cell_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields that have an entry for every cell."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: array for name, array in given.items() if isinstance(array, np.ndarray)}

    @property
    def gap(self) -> float:
        """Distance of the objective from its bound, relative to the objective; NaN where no bound was computed."""
        if not (np.isfinite(self.objective) and np.isfinite(self.bound)):
            return float("nan")
        distance = max(0.0, self.objective - self.bound)
        gap = 0.0 if distance == 0 else distance / max(abs(self.objective), 1e-300)
        trivial = self.objective > 0 and gap > 1.0 - NO_DISTANCE  # that a loss is at least nothing needs no proof
        return float("nan") if trivial else gap

    @property
    def published(self) -> bool:
        """Whether there is anything to publish."""
        return self.status is not Status.INFEASIBLE and np.isfinite(self.objective)

    def published_bounds(self, attacker: Attacker = EXTERNAL) -> tuple[FloatArray, FloatArray]:
        """Return what the attacker knows of each cell once the release and his own knowledge are joined."""
        self._require_published()
        lo, hi = self._published_interval()
        known_lo, known_hi = self.table.bounds(attacker)
        return np.maximum(lo, known_lo), np.minimum(hi, known_hi)

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        raise NotImplementedError

    def point_values(self) -> FloatArray:
        """Return the number a reader takes for each cell; NaN where nothing is published."""
        raise NotImplementedError

    def as_it_is(self) -> BoolArray:
        """Return which cells are published with their true value although a range is claimed around it."""
        return np.zeros(self.table.n_cells, bool)

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        """Return what is published, a column each, in the table's order of cells.

        `mark_primary` tells sensitive cells from those that protect them, which is more than readers need:
        of a count "primary" says that it is small.
        """
        del mark_primary
        return {"value": self.point_values()}

    def public_columns(self, *, mark_primary: bool = False) -> dict[str, Any]:
        """Return what files hold: codes, then what is published; a column called like a dimension gives way."""
        from cellguard._io.frames import columns_beside_codes

        return columns_beside_codes(self.table.cell_codes(), self.columns(mark_primary=mark_primary))

    def loss(self) -> dict[str, dict[str, float]]:
        """Return the information loss in the measures of castro2004 table 3.

        Absolute and percentage deviations of what is published from the truth, over all cells, the
        sensitive and the others. Percentages are over cells with a positive value.
        """
        deviation = np.abs(self.point_values() - self.table.values)
        known = np.isfinite(deviation)
        groups = {
            "all": known,
            "sensitive": known & self.table.sensitive,
            "nonsensitive": known & ~self.table.sensitive,
        }
        return {name: _deviations_in_release(deviation, self.table.values, cells) for name, cells in groups.items()}

    def audit(self, **options: Any) -> Audit:
        """Audit the release, independently of the method that made it (:func:`cellguard.check.audit`)."""
        from cellguard.check.audit import audit

        known: Audit | None = self.__dict__.get("_audited")
        if known is not None and known.safe and options.keys() <= {"jobs", "time_limit_s"}:
            return known  # nothing in it can have changed
        found = audit(self, **options)
        whole = options.keys() <= {"jobs", "time_limit_s", "exact"}
        if whole and (found.safe or "time_limit_s" not in options):  # what a limit left open is asked again
            object.__setattr__(self, "_audited", found)
        return found

    def refuse_unless_safe(self, *, allow_unchecked: bool = False) -> None:
        """Raise :class:`ReleaseError` when the audit refuses the release: the door to every file."""
        audited: Audit | None = self.__dict__.get("_audited")
        found = self.audit() if audited is None else audited
        if found.verdict == "nothing checked":
            if allow_unchecked:
                return
            raise ReleaseError(
                "nothing was checked: no cell of the table is sensitive.",
                hint="apply rules to the table first, or say allow_unchecked=True if none is meant.",
            )
        if not found.safe:
            first = self.table.label(int(found.unsafe_cells[0]))
            raise ReleaseError(
                f"the audit refuses it: {found.unsafe} of {found.checked} cells are not safe, {first} for one.",
                hint="allow_unsafe=True writes it all the same, marked as unsafe.",
            )

    def frame(self, like: Any = None, *, mark_primary: bool = False) -> Any:
        """Return the release as a frame: of the kind of `like`, or of the one that the table was made from.

        A table that was made from a file or from a dict of columns gives a pyarrow table.
        """
        from cellguard._io.frames import frame_of_columns

        self._require_published()
        columns = self.public_columns(mark_primary=mark_primary)
        return frame_of_columns(columns, self.table.library if like is None else like)

    @property
    def tables(self) -> dict[str, PublishedTable]:
        """The tables of a publication by name, each in the layout it came in; empty for a single table."""
        from cellguard.nouns.publication import publication_tables_by_name

        return publication_tables_by_name(self)

    def save(
        self,
        path: str | Path,
        *,
        mark_primary: bool = False,
        allow_unsafe: bool = False,
        allow_unchecked: bool = False,
        layout: str | Path | None = None,
    ) -> None:
        """Write the release atomically, by the ending of the name, one row per cell in the table's order.

        ``.csv``, ``.csv.gz`` and ``.parquet`` hold the cells; ``.xlsx`` has a sheet for each table of a
        publication; a name without an ending is a folder and gets a CSV file for each. Other endings are refused.
        With `layout`, a workbook of the publisher's, a copy of it is filled (:mod:`cellguard.nouns.layout`).

        What the audit refuses is not written, unless `allow_unsafe` says so; every row then carries a warning.
        A table without sensitive cells is refused too, unless `allow_unchecked` says that none is meant. Withheld
        cells have one mark, unless `mark_primary` asks for primary and secondary (see :meth:`columns`).
        """
        from cellguard.nouns.sheets import check_path_of_release_sheets, write_release

        self._require_published()
        unsafe = False
        # before the audit: a name that cannot be written costs no time
        check_path_of_release_sheets(path, self.table, layout)
        try:
            self.refuse_unless_safe(allow_unchecked=allow_unchecked)
        except ReleaseError:
            if not allow_unsafe:
                raise
            unsafe = True
        write_release(self, path, layout, mark_primary=mark_primary, unsafe=unsafe)
        _log.info("%s: written to %s", self.method, path)

    def __repr__(self) -> str:
        kind, n = type(self).__name__, self.table.n_cells
        if not self.published:
            return f"{kind}({self.status}: no release of {n} cells)"
        return f"{kind}({self.status}, {n} cells{self._counted()})"

    def _counted(self) -> str:
        """Say how many cells are published and how, for `repr`: nothing that is computed from true values."""
        return ""

    def _repr_html_(self) -> str:
        """Draw what is published, as a reader of the release sees it; nothing confidential."""
        from cellguard.nouns.pictures import release_picture

        return release_picture(self)

    def summary(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the JSON object of the command line, without the audit.

        What is computed from true values (objective, bound, cost, loss, ...) is there only when `internal`.
        """
        t = self.table
        out: dict[str, Any] = {
            "method": self.method,
            "status": str(self.status),
            "objective": self.objective,
            "bound": float("nan") if np.isnan(self.gap) else self.bound,
            "gap": self.gap,
            "table": t.sizes,
            "seconds": dict(self.seconds),
        }
        if self.published:
            out["loss"] = self.loss()
        if self.explanation:
            out["explanation"] = self.explanation
        out |= {**self.details, **(self._own_figures() if self.published else {})}
        return out if internal else {name: figure for name, figure in out.items() if name not in _FROM_TRUTH}

    def _own_figures(self) -> dict[str, Any]:
        """Return what only this kind of release has to tell."""
        return {}

    def published_with(self) -> dict[str, Any]:
        """Return what readers are told of how the numbers were made, and may compute with."""
        return {}

    def _require_published(self) -> None:
        if not self.published:
            raise ReleaseError(
                f"there is no release: {self.status}. {self.explanation}".strip(),
                hint="look at `status` and `explanation` before using the result.",
            )


def warning_of_unsafe_release(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column that says in every row that the release is not safe, under a name that is free."""
    from cellguard._io.frames import free_frame_column_name

    name = free_frame_column_name("warning", {name.lower() for name in columns})
    return {name: [UNSAFE] * len(next(iter(columns.values())))}


def _deviations_in_release(deviation: FloatArray, values: FloatArray, cells: BoolArray) -> dict[str, float]:
    """Mean, standard deviation and maximum of absolute and percentage deviations, and the 2-norm.

    The standard deviation divides by one less than the number of cells: only so the digits printed in
    castro2004 table 3 come out.
    """
    d = deviation[cells]
    positive = cells & (values > 0)
    pct = 100.0 * deviation[positive] / values[positive]

    def three(x: FloatArray, kind: str) -> dict[str, float]:
        some = len(x) > 0
        return {
            f"{kind}_mean": float(x.mean()) if some else 0.0,
            f"{kind}_std": float(x.std(ddof=1)) if len(x) > 1 else 0.0,
            f"{kind}_max": float(x.max()) if some else 0.0,
        }

    return {**three(d, "abs"), **three(pct, "pct"), "norm2": float(np.linalg.norm(d))}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Suppression(Release):
    """Some cells are not published: the sensitive ones (primary) and others that protect them (secondary)."""

    method: ClassVar[str] = "suppress"
    suppressed: BoolArray = field(repr=False)
    """Which cells are not published."""
    conceal: bool = False
    """Whether it stays secret which suppressed cells are primary, even where somebody asks for it."""

    @property
    def primary(self) -> BoolArray:
        """Suppressed because they are sensitive."""
        return self.suppressed & self.table.sensitive

    @property
    def secondary(self) -> BoolArray:
        """Suppressed to protect others."""
        return self.suppressed & ~self.table.sensitive

    @property
    def cost(self) -> float:
        """Sum of the weights of the secondary suppressions."""
        return float(self.table.weights[self.secondary].sum())

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        a = self.table.values
        return np.where(self.suppressed, -np.inf, a), np.where(self.suppressed, np.inf, a)

    def point_values(self) -> FloatArray:
        return np.where(self.suppressed, np.nan, self.table.values)

    def _counted(self) -> str:
        withheld = int(self.suppressed.sum())
        return f": {self.table.n_cells - withheld} published, {withheld} withheld"

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        names = ["primary", "secondary"] if mark_primary and not self.conceal else ["withheld", "withheld"]
        status = np.select([self.primary, self.secondary], names, "published")
        return {"status": status, "value": self.point_values()}

    def _own_figures(self) -> dict[str, Any]:
        return {"primary": int(self.primary.sum()), "secondary": int(self.secondary.sum()), "cost": self.cost}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Adjustment(Release):
    """Every cell is published with a changed value; sensitive ones at least their level away (CTA)."""

    method: ClassVar[str] = "adjust"
    values: FloatArray = field(repr=False)
    """The published values: additive, and safe by their distance from the truth."""
    internal: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """What made them, cell by cell: weights, senses, multipliers (confidential, never written by :meth:`save`)."""

    def save_internal(self, path: str | Path) -> None:
        """Write the internal file: true and published values, and what made them. Only its owner may read it."""
        from cellguard._io.frames import columns_beside_codes
        from cellguard.nouns.sheets import write_sheet_of_release

        self._require_published()
        truth = {"original": self.table.values, "value": self.values}
        write_sheet_of_release(
            columns_beside_codes(self.table.cell_codes(), {**truth, **self.internal}), path, private=True
        )

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        return np.full_like(self.values, -np.inf), np.full_like(self.values, np.inf)

    def point_values(self) -> FloatArray:
        return self.values


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Intervals(Release):
    """Some cells are published as an interval that contains the truth (IP)."""

    method: ClassVar[str] = "intervals"
    lower: FloatArray = field(repr=False)
    """Published lower ends."""
    upper: FloatArray = field(repr=False)
    """Published upper ends."""
    internal: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """The sets that stay possible for who knows the method, by their ends (confidential, never written)."""

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper

    def point_values(self) -> FloatArray:
        return (self.lower + self.upper) / 2.0

    def _counted(self) -> str:
        return f": {int(np.count_nonzero(self.upper > self.lower))} as intervals"

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        del mark_primary
        return {"lower": self.lower, "upper": self.upper}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rounding(Release):
    """Every cell is published as a multiple of its base (CRP)."""

    method: ClassVar[str] = "round"
    values: FloatArray = field(repr=False)
    """The published multiples: additive."""
    base: FloatArray = field(repr=False)
    """The base of each cell (published, also for cells that were multiples of it already)."""
    step: int = 1
    """Published: a cell moved by less than `step` bases; 1 is zero-restricted rounding."""
    keep_multiples: bool = False
    """Whether a sensitive multiple of the base may stay, as in salazar2004; otherwise the audit asks that it moved."""

    @cached_property
    def unit(self) -> float:
        """The unit of the values' last decimal, which whoever knows the kind of data knows: 1 for whole numbers."""
        return unit_of_table(self.table)

    @property
    def distance(self) -> FloatArray:
        """How far the truth may lie from the published value; 0 for cells that had to stay.

        Less than `step` bases: a unit less where the values have a last decimal, and as near as one likes
        where they have none. A multiple of the base is not marked as such: publishing its distance
        as 0, as salazar2004 section 3 does, would disclose it.
        """
        from cellguard._engine.numbers.multiples import ends_around_multiples

        return np.where(
            self.table.fixed, 0.0, ends_around_multiples(np.zeros_like(self.base), self.base, self.step, self.unit)[1]
        )

    @cached_property
    def _interval(self) -> tuple[FloatArray, FloatArray]:
        from cellguard._engine.numbers.multiples import ends_around_multiples

        lo, hi = ends_around_multiples(self.values, self.base, self.step, self.unit)
        return np.where(self.table.fixed, self.values, lo), np.where(self.table.fixed, self.values, hi)

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        return self._interval

    def as_it_is(self) -> BoolArray:
        a = self.table.values
        same = np.asarray(np.abs(self.values - a) <= np.maximum(self.unit / 2, 1e-15 * np.abs(a)))
        # multiples may stay among others that moved; where nothing moved, nothing was rounded: it is the truth
        return super().as_it_is() if self.keep_multiples and not same.all() else same

    def point_values(self) -> FloatArray:
        return self.values

    def _counted(self) -> str:
        return f", base {release_base_or_bases(self.base)}, step {self.step}"

    def published_with(self) -> dict[str, Any]:
        told = {"base": release_base_or_bases(self.base), "step": self.step}
        said = {"keep": self.options.get("keep"), "keep_multiples": self.keep_multiples}
        return told | {name: value for name, value in said.items() if value}

    def _own_figures(self) -> dict[str, Any]:
        return self.published_with()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Perturbation(Release):
    """Every cell is published with a value at most a known distance from the truth (CPP)."""

    method: ClassVar[str] = "perturb"
    values: FloatArray = field(repr=False)
    """The published values: additive."""
    distance: FloatArray = field(repr=False)
    """How far the truth may lie from the published value (published)."""
    base: FloatArray | None = field(default=None, repr=False)
    """The base to whose multiples cells were drawn, if any: then it is the distance."""

    def _published_interval(self) -> tuple[FloatArray, FloatArray]:
        d = np.where(self.table.fixed, 0.0, self.distance)  # everybody knows which cells had to stay
        lo, hi = self.values - d, self.values + d
        if self.table.integer:
            noise = 1e-9 * np.maximum(1.0, np.abs(self.values))
            return np.ceil(lo - noise), np.floor(hi + noise)
        return lo, hi

    def as_it_is(self) -> BoolArray:
        a = self.table.values
        return np.asarray(np.abs(self.values - a) <= SAME_VALUE * np.maximum(1.0, np.abs(a)))

    def point_values(self) -> FloatArray:
        return self.values

    def published_with(self) -> dict[str, Any]:
        return {"distance": release_base_or_bases(self.distance[~self.table.fixed])}

    def _own_figures(self) -> dict[str, Any]:
        return {"base": None if self.base is None else release_base_or_bases(self.base), "step": 1}


def unit_of_table(table: Table) -> float:
    """Return the unit of the values' last decimal; 0 if they have none."""
    from cellguard._engine.numbers.multiples import unit_of_last_decimal

    return 1.0 if table.integer else unit_of_last_decimal(table.values)


def release_base_or_bases(base: FloatArray) -> float | list[float]:
    """Return the one base of a release, or the different ones."""
    distinct = np.unique(base)
    return float(distinct[0]) if len(distinct) == 1 else [float(b) for b in distinct]
