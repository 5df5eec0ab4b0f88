"""What every kind of release has: the table it protects, how its method ended, its files and its audit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cellguard._deprecation import OldName
from cellguard._hooks import call_hook
from cellguard._tolerances import NO_DISTANCE, ROUNDED_TRUTH
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, ReleaseError
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.checks import refuse_cells
from cellguard.model.table import Table

_log = logging.getLogger("cellguard")

_log = logging.getLogger("cellguard")

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.auditing.why import Why
    from cellguard.release.publication import PublishedTable
    from cellguard.release.readers.manifest_facts import PublishedFacts
    from cellguard.release.readers.read_release import PublishedFile

__all__ = [
    "AS_PUBLISHED",
    "INPUT_ORDER_WARNING",
    "PRIMARY_WARNING",
    "ROW_ORDERS",
    "SMALL_BESIDE_BASE",
    "UNSAFE",
    "Release",
    "Status",
    "build_warning_column",
    "check_row_order",
    "collect_distinct",
    "order_cells",
]  # fmt: skip

UNSAFE = "NOT SAFE: the audit refuses this release"
"""Warning in every output of an unsafe release that was written on request."""
PRIMARY_WARNING = (
    "warning: readers see which withheld cells are sensitive themselves; "
    "for a count, this reveals that it is small, and which rule it broke to readers who know the rules."
)
"""Warning for users who request marks of primary suppressions."""
ROW_ORDERS = ("canonical", "input")
"""Orders of the rows of a public file: by dimension and code, or as in the input."""
INPUT_ORDER_WARNING = (
    "warning: the rows are in the order of the input. If that was sorted by its values, "
    "a withheld cell lies between its neighbours."
)
"""Warning for users who request the order of the input."""
_FROM_TRUTH = {"objective", "bound", "cost", "loss", "position", "distance", "multipliers_norm1"}
"""Figures computed from true values: a log that contains them would reveal sums of withheld values."""
AS_PUBLISHED = "everything in the file is published: leave the value out, or write x in its place"
"""Hint for a file with a number next to the mark of a withheld cell."""
SMALL_BESIDE_BASE = 1e-12
"""Share of its value by which a cell may lie outside its interval: a base is negligible next to a large value."""


class Status(StrEnum):
    """How a method ended. Only a proof makes a release optimal."""

    OPTIMAL = "optimal"
    """Proven: no release is better by more than the requested gap."""
    FEASIBLE = "feasible"
    """A release that meets every level; its proven gap is larger than requested, or there is no proof."""
    TIME_LIMIT = "time_limit"
    """Like feasible, but the time limit ended the search."""
    INFEASIBLE = "infeasible"
    """No release of this kind exists; `explanation` gives the reason."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release:
    """Base of all kinds of release. No field says that it is safe: :meth:`audit` decides that."""

    method: ClassVar[str] = ""
    by_ranges: ClassVar[bool] = True
    """True if safety requires wide ranges; False if sensitive cells must be away from the true value."""
    withholds_cells: ClassVar[bool] = False
    """Whether some cells have no number, and all others the true one."""
    one_number: ClassVar[bool] = True
    """Whether a cell has at most one number; layouts and some formats cannot hold more."""
    extra_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of its files in addition to status, value, lower and upper."""
    joined_by: ClassVar[Mapping[str, str]] = {}
    """How to combine the numbers of several tables for one cell: any, largest, least; they must agree unless named."""
    table: Table = field(repr=False)
    """The table that was protected (confidential, never written by :meth:`save`)."""
    status: Status
    """How the method ended."""
    objective: float
    """Information loss, in the method's measure; NaN if there is no release."""
    bound: float = float("nan")
    """Proven lower bound of the objective over all safe releases of this kind."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds spent in each stage: read, reduce, solve, audit, total."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every option that determined the result, including the seed: what is needed to reproduce it."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Figures of the method: cuts, nodes, iterations."""
    explanation: str = ""
    """Why there is no release, in the user's labels; or a remark on the result."""
    figures: tuple[Any, ...] = ()
    """Figures of derived statistics that are published with it (:class:`cellguard.history.Figures`)."""
    earlier: Any = field(default=None, repr=False)
    """Earlier releases with which it is audited (:class:`cellguard.History`); None: it is audited alone."""

    def __post_init__(self) -> None:
        """Freeze the published numbers, so that the written release is the audited one."""
        for name, array in self.get_cell_arrays().items():
            if array.flags.writeable:
                own = array.copy()  # the caller's own array stays writeable
                own.setflags(write=False)
                object.__setattr__(self, name, own)

    def get_cell_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields that have one entry per cell."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: array for name, array in given.items() if isinstance(array, np.ndarray)}

    @property
    def gap(self) -> float:
        """Distance of the objective from its bound, relative to the objective; NaN if no bound was computed."""
        if not (np.isfinite(self.objective) and np.isfinite(self.bound)):
            return float("nan")
        distance = max(0.0, self.objective - self.bound)
        gap = 0.0 if distance == 0 else distance / max(abs(self.objective), 1e-300)
        trivial = self.objective > 0 and gap > 1.0 - NO_DISTANCE  # a bound of 0 on the loss is not a proof
        return float("nan") if trivial else gap

    @property
    def accepted(self) -> str:
        """Against whom it is shown safe, and against whom not, if the user accepted less than everyone."""
        return str(self.details.get("accepted", ""))

    @property
    def published(self) -> bool:
        """Whether there is a release to publish."""
        return self.status is not Status.INFEASIBLE and np.isfinite(self.objective)

    def published_bounds(self, attacker: Attacker = EXTERNAL) -> tuple[FloatArray, FloatArray]:
        """Return what the attacker knows about each cell from the release and their own knowledge."""
        self._require_published()
        lo, hi = self._get_published_interval()
        known_lo, known_hi = self.table.bounds(attacker)
        return np.maximum(lo, known_lo), np.minimum(hi, known_hi)

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        raise NotImplementedError

    def get_point_values(self) -> FloatArray:
        """Return the number that a reader uses for each cell; NaN if none is published."""
        raise NotImplementedError

    point_values = OldName("get_point_values")

    def find_unchanged(self) -> BoolArray:
        """Return which cells are published with their true value although the release claims a range around it."""
        return np.zeros(self.table.n_cells, bool)

    @property
    def withheld(self) -> BoolArray:
        """Cells without any published number."""
        return np.zeros(self.table.n_cells, bool)

    @property
    def secondary(self) -> BoolArray:
        """Cells that are withheld to protect others."""
        return np.zeros(self.table.n_cells, bool)

    def find_exact_cells(self) -> BoolArray:
        """Return which cells are published with their true value."""
        return np.isclose(self.get_point_values(), self.table.values, rtol=1e-9, atol=1e-9)

    untouched = OldName("find_exact_cells")

    def filter_disclosed(self, cells: IntArray) -> IntArray:
        """Return those of the cells with only one possible value that are not simply published."""
        return cells

    # ------------------------------------------------------------------ in words and pictures

    def describe_safety(self) -> str:
        """Return the sentence that states what the audit has shown about every sensitive cell."""
        closely = "known exactly, or known more precisely than its protection levels allow."
        return f"No sensitive cell is published unchanged, {closely}"

    def describe_result(self) -> dict[str, str]:
        """Return figures for the internal report that are specific to this kind of release."""
        return {}

    def count_cells(self, cells: Any = slice(None), *, mark_primary: bool) -> dict[str, int]:
        """Return how many of the given cells are published in each way other than a number of their own."""
        del cells, mark_primary
        return {}

    def get_texts(self, *, mark_primary: bool) -> tuple[list[str], NDArray[Any]]:
        """Return the text of each cell, and its kind (see :class:`cellguard.release.grid.Cell`)."""
        return self.get_texts_of_columns(self.table, self.columns(mark_primary=mark_primary))

    @classmethod
    def get_texts_of_columns(cls, table: Table, columns: Mapping[str, Any]) -> tuple[list[str], NDArray[Any]]:
        """Return text and kind from the columns of a file: the number, or lower and upper ends where they differ."""
        from cellguard.release.grid import format_table_figures

        if "lower" in columns:
            ends = (format_table_figures(table, columns[name]) for name in ("lower", "upper"))
            pairs = list(zip(*ends, strict=True))
            texts = [f"{low} – {high}" if low != high else low for low, high in pairs]
            return texts, np.array(["interval" if low != high else "published" for low, high in pairs], dtype=object)
        kinds = columns.get("status", np.full(table.n_cells, "changed"))
        return format_table_figures(table, columns["value"]), np.asarray(kinds, dtype=object)

    # ------------------------------------------------------------------ reading, and what fits the table

    @classmethod
    def matches_file(cls, file: PublishedFile, facts: PublishedFacts) -> bool:
        """Return whether the columns of a file, or the facts given with it, match this kind of release."""
        del file, facts
        return False

    @classmethod
    def read(cls, file: PublishedFile, facts: PublishedFacts) -> Release:
        """Make the release from the columns of a file and the facts given with it."""
        del facts
        return cls.from_file(file.table, values=file.read_all_values(cls.method))

    @classmethod
    def from_file(cls, table: Table, **published: Any) -> Self:
        """Return an externally published release, with its numbers for each cell."""
        return cls(table=table, status=Status.FEASIBLE, objective=0.0, options={"source": "file"}, **published)

    def add_facts(self, facts: PublishedFacts) -> Release:
        """Return the release with the facts that readers receive in addition to its numbers."""
        del facts
        return self

    with_told = OldName("add_facts")

    def check_fit(self) -> None:
        """Refuse a release that does not fit its table or contradicts it (:class:`ReleaseError`)."""
        for name, array in self.get_cell_arrays().items():
            if array.shape != (self.table.n_cells,):
                raise ReleaseError(f"the release has {array.size} cells in {name!r}, its table {self.table.n_cells}.")
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuse numbers that contradict the table or each other."""
        self._refuse(np.isnan(self.get_point_values()), "there is no value.")
        self._check_truth_inside(ROUNDED_TRUTH)

    def _check_truth_inside(self, tolerance: float) -> None:
        """Refuse an interval that does not contain the true value."""
        a = self.table.values
        slack = tolerance * np.maximum(1.0, np.abs(a))
        lo, hi = self.published_bounds(Attacker(name="reader"))
        outside = ~((lo <= a + slack) & (hi >= a - slack))
        self._refuse(outside, "the published interval does not contain the true value.")

    def _refuse(self, bad: BoolArray, what: str, hint: str | None = None) -> None:
        refuse_cells(self.table, bad, what, hint, ReleaseError)

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        """Return the published columns, in the table's order of cells.

        `mark_primary` distinguishes sensitive cells from those that protect them, which is more than readers need:
        for a count, "primary" reveals that it is small.
        """
        del mark_primary
        return {"value": self.get_point_values()}

    def build_public_columns(self, *, mark_primary: bool = False, row_order: str = "canonical") -> dict[str, Any]:
        """Return the columns of files: codes, then published columns; avoid the names of dimensions."""
        from cellguard._io.frames import merge_codes_and_columns

        order = order_cells(self.table, row_order)
        published = {name: column[order] for name, column in self.columns(mark_primary=mark_primary).items()}
        return merge_codes_and_columns(self.table.cell_codes(order), published)

    def loss(self) -> dict[str, dict[str, float]]:
        """Return the information loss in the measures of castro2004 table 3.

        Absolute and percentage deviations of published from true values, over all cells, the
        sensitive cells and the others. Percentages are over cells with a positive value. Where cells are
        withheld, `withheld` counts them, `withheld_value` and `withheld_weight` add them up, and deviations
        are NaN: those of the published cells alone would say that nothing is lost.
        """
        t, deviation = self.table, np.abs(self.get_point_values() - self.table.values)
        groups = {"all": np.ones(t.n_cells, np.bool_), "sensitive": t.sensitive, "nonsensitive": ~t.sensitive}
        out = {}
        for name, cells in groups.items():
            out[name] = _summarize_deviations(deviation, t.values, cells & np.isfinite(deviation))
            if not self.withholds_cells:
                continue
            lost = cells & self.withheld
            if lost.any():
                out[name] = dict.fromkeys(out[name], float("nan"))
            out[name] |= {
                "withheld": float(lost.sum()),
                "withheld_value": float(np.abs(t.values[lost]).sum()),
                "withheld_weight": float(t.weights[lost].sum()),
            }
        return out

    def why(self, cell: int | Mapping[str, str] | Sequence[str]) -> Why:
        """Explain one cell, by number or codes: its rule, whom it protects, its range, what publishing it needs.

        Confidential, as it speaks of true values.
        """
        found: Why = call_hook("explain_cell", self, cell)
        return found

    def audit(self, **options: Any) -> Audit:
        """Audit the release, independently of the method that made it (:func:`cellguard.auditing.audit`)."""
        known: Audit | None = self.__dict__.get("_audited")
        if known is not None and known.safe and options.keys() <= {"jobs", "time_limit_s", "shown"}:
            return known  # a release is immutable
        found: Audit = call_hook("audit", self, **options)
        complete = options.keys() <= {"jobs", "time_limit_s", "shown", "exact"}
        if complete and (found.safe or "time_limit_s" not in options):  # what a limit left open is asked again
            # of counts the usual audit computes ranges as well
            verdicts_only = options.get("exact") is False and self.table.integer
            object.__setattr__(self, "_judged" if verdicts_only else "_audited", found)
        return found

    def refuse_unless_safe(self, *, allow_unchecked: bool = False) -> None:
        """Raise :class:`ReleaseError` when the audit refuses the release. Every file is written through this check."""
        audited: Audit | None = self.__dict__.get("_audited", self.__dict__.get("_judged"))
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

    def frame(self, like: Any = None, *, mark_primary: bool = False, row_order: str = "canonical") -> Any:
        """Return the release as a frame of the same library as `like`, or as the table's source frame.

        For a table made from a file or from a dict of columns, return a pyarrow table. Rows are ordered by
        dimension and code; ``row_order="input"`` keeps the order of the table's cells (see :meth:`save`).
        """
        from cellguard._io.frames import build_frame

        self._require_published()
        check_row_order(row_order)
        columns = self.build_public_columns(mark_primary=mark_primary, row_order=row_order)
        return build_frame(columns, self.table.library if like is None else like)

    @property
    def tables(self) -> dict[str, PublishedTable]:
        """The tables of a publication by name, each in its original layout; empty for a single table."""
        from cellguard.release.publication import list_published_tables

        return list_published_tables(self)

    def save(
        self,
        path: str | Path,
        *,
        mark_primary: bool = False,
        allow_unsafe: bool = False,
        allow_unchecked: bool = False,
        layout: str | Path | None = None,
        row_order: str = "canonical",
    ) -> None:
        """Write the release atomically, one row per cell, in the format given by the file's extension.

        Rows are ordered by dimension, then by code: in the order of the hierarchy, or sorted if codes were found in
        the data. ``row_order="input"`` keeps the order of the input and logs a warning, because input that
        was sorted by its values reveals the size of withheld cells. Cells without codes are in the order of their
        numbers. A layout has its publisher's order.

        ``.csv``, ``.csv.gz`` and ``.parquet`` hold the cells; ``.xlsx`` has a sheet for each table of a
        publication; a name without an extension is a folder and gets a CSV file for each. Others are refused.
        With `layout`, a workbook of the publisher, a copy of it is filled (:mod:`cellguard.release.formats.layout`).

        A release that the audit refuses is not written, unless `allow_unsafe` is set; every row then has a warning.
        A table without sensitive cells is refused too, unless `allow_unchecked` confirms that there are none. Withheld
        cells have one mark, unless `mark_primary` requests primary and secondary (see :meth:`columns`).
        """
        from cellguard.release.formats.sheets import check_path_of_release_sheets, write_release

        self._require_published()
        check_row_order(row_order)
        unsafe = False
        # before the audit, so that a wrong name fails at once
        check_path_of_release_sheets(path, self.table, layout)
        try:
            self.refuse_unless_safe(allow_unchecked=allow_unchecked)
        except ReleaseError:
            if not allow_unsafe:
                raise
            unsafe = True
        if row_order == "input":
            _log.warning("%s", INPUT_ORDER_WARNING.removeprefix("warning: "))
        write_release(self, path, layout, mark_primary=mark_primary, unsafe=unsafe, row_order=row_order)
        _log.info("%s: written to %s", self.method, path)

    def __repr__(self) -> str:
        kind, n = type(self).__name__, self.table.n_cells
        if not self.published:
            return f"{kind}({self.status}: no release of {n} cells)"
        return f"{kind}({self.status}, {n} cells{self._describe_counts()})"

    def _describe_counts(self) -> str:
        """Describe for `repr` how many cells are published and how; use nothing computed from true values."""
        return ""

    def _repr_html_(self) -> str:
        """Draw the published numbers as a reader of the release sees them; nothing confidential."""
        from cellguard.release.pictures import draw_release

        return draw_release(self)

    def summary(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the JSON object of the command line, without the audit.

        Figures computed from true values (objective, bound, cost, loss, ...) are included only if `internal`.
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
        out |= {**self.details, **(self._collect_own_figures() if self.published else {})}
        return out if internal else {name: figure for name, figure in out.items() if name not in _FROM_TRUTH}

    def _collect_own_figures(self) -> dict[str, Any]:
        """Return the entries that only this kind of release has."""
        return {}

    def get_published_parameters(self) -> dict[str, Any]:
        """Return the facts about how the numbers were made that readers receive and may compute with."""
        return {}

    def _require_published(self) -> None:
        if not self.published:
            raise ReleaseError(
                f"there is no release: {self.status}. {self.explanation}".strip(),
                hint="look at `status` and `explanation` before using the result.",
            )


def check_row_order(row_order: str) -> None:
    """Refuse an unknown order of rows."""
    if row_order not in ROW_ORDERS:
        raise InputError(f"row_order={row_order!r}: one of {', '.join(map(repr, ROW_ORDERS))} is needed.")


def order_cells(table: Table, row_order: str) -> IntArray:
    """Return the cells of a table in one of the :data:`ROW_ORDERS`."""
    return np.arange(table.n_cells) if row_order == "input" else table.sort_cells()


def build_warning_column(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column that marks every row of an unsafe release, under a name that is free."""
    from cellguard._io.frames import free_frame_column_name

    name = free_frame_column_name("warning", {name.lower() for name in columns})
    return {name: [UNSAFE] * len(next(iter(columns.values())))}


def _summarize_deviations(deviation: FloatArray, values: FloatArray, cells: BoolArray) -> dict[str, float]:
    """Mean, standard deviation and maximum of absolute and percentage deviations, and the 2-norm.

    The standard deviation divides by the number of cells minus one, which reproduces the digits printed in
    castro2004 table 3.
    """
    d = deviation[cells]
    positive = cells & (values > 0)
    pct = 100.0 * deviation[positive] / values[positive]

    def summarize(x: FloatArray, kind: str) -> dict[str, float]:
        some = len(x) > 0
        return {
            f"{kind}_mean": float(x.mean()) if some else 0.0,
            f"{kind}_std": float(x.std(ddof=1)) if len(x) > 1 else 0.0,
            f"{kind}_max": float(x.max()) if some else 0.0,
        }

    return {**summarize(d, "abs"), **summarize(pct, "pct"), "norm2": float(np.linalg.norm(d))}


def collect_distinct(numbers: FloatArray) -> float | list[float]:
    """Return the number that all cells have, for example their base; a sorted list if there are several."""
    distinct = np.unique(numbers)
    return float(distinct[0]) if len(distinct) == 1 else [float(number) for number in distinct]
