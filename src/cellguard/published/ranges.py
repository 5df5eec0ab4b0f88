"""Ranges of withheld cells from what is published, without the true table and without a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import AdditivityError, InputError
from cellguard.published.read import PublishedCells, PublishedReading, read_published

if TYPE_CHECKING:
    from cellguard._engine.ranges.public import Contradiction, PublicKnowledge
    from cellguard.published.knowledge import FurtherSums

__all__ = ["PublicRanges", "public_ranges"]

_SHARES = (0.01, 0.05, 0.10, 0.25, 0.50)
"""Classes of the distribution: half the width of a range as a share of its middle."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRanges:
    """What everybody can compute about the withheld cells of a published table."""

    published: PublishedCells = field(repr=False)
    """What was read."""
    cells: IntArray = field(repr=False)
    """The withheld cells."""
    low: FloatArray = field(repr=False)
    """No possible table has a smaller value."""
    high: FloatArray = field(repr=False)
    """No possible table has a greater value."""
    exact: BoolArray = field(repr=False)
    """Cells that are known exactly, or as exactly as the printed figures allow."""
    attained: BoolArray = field(repr=False)
    """Ranges of which both ends are values of possible tables; the others may be narrower (see `time_limit_s`)."""
    programs: int = 0
    """Number of linear programs solved."""

    def __repr__(self) -> str:
        return f"PublicRanges({len(self.cells):,} withheld, {int(self.exact.sum()):,} known exactly)"

    @property
    def closeness(self) -> FloatArray:
        """Half the width of each range as a share of its middle: 0 is exact, 1 starts at zero, inf has no end."""
        middle = np.abs(self.low + self.high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self.high - self.low) / 2 / middle
        return np.where(self.exact, 0.0, np.where(np.isfinite(share), share, np.inf))

    def distribution(self) -> dict[str, int]:
        """Return how many ranges are how narrow."""
        share, out = self.closeness, {"exact": int(self.exact.sum())}
        rest = ~self.exact
        for limit in _SHARES:
            now = rest & (share <= limit)
            out[f"within {100 * limit:g}%"] = int(now.sum())
            rest &= ~now
        wide = rest & np.isfinite(self.high) & np.isfinite(self.low)
        return {**out, "wider": int(wide.sum()), "without end": int((rest & ~wide).sum())}

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        out: dict[str, Any] = {
            "cells": len(self.published.cells),
            "withheld": len(self.cells),
            "known_exactly": int(self.exact.sum()),
            "ranges": self.distribution(),
            "attained": int(self.attained.sum()),
            "programs": self.programs,
        }
        if self.published.counts is not None:
            counts = self.published.counts[self.cells]
            classes = {"1": counts == 1, "2": counts == 2, "3 and more": counts >= 3, "unknown": np.isnan(counts)}
            out["known_exactly_by_contributors"] = {k: int((self.exact & which).sum()) for k, which in classes.items()}
        return out

    def frame(self) -> Any:
        """Return the withheld cells with their ranges, as a pyarrow table."""
        from cellguard._io.frames import build_frame

        return build_frame(self.columns())

    def columns(self) -> dict[str, Any]:
        """Return the codes, ends and exactness of the withheld cells, column by column."""
        from cellguard._io.frames import merge_codes_and_columns

        known = np.where(self.exact, "yes", "no")
        ends = {"low": self.low, "high": self.high, "exact": known, "attained": np.where(self.attained, "yes", "no")}
        return merge_codes_and_columns(self.published.get_codes(self.cells), ends)

    def save(self, path: str | Path) -> None:
        """Write the ranges as a file that only its owner may read: they may say more than was meant to be published."""
        from cellguard._io.frames import write_csv

        write_csv(self.columns(), path, guard=True, private=True)


def public_ranges(
    published: Any,
    dims: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    value: str | None = None,
    status: str | None = None,
    marks: Sequence[str] = (),
    count: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    ratios: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    knowledge: str | Path | None = None,
    missing: str = "unpublished",
    total: str | None = None,
    tolerance: float = 0.0,
    rounded_to: float = 0.0,
    integer: bool = False,
    negative: bool = False,
    exact_only: bool = False,
    time_limit_s: float = float("inf"),
) -> PublicRanges:
    """Compute from public data alone what everybody can infer about withheld cells.

    There is no verdict: without the true table it is unknown which cells are sensitive.

    Parameters
    ----------
    published
        A file (.csv, .parquet, .xlsx) or a frame with a row per cell. A withheld cell is empty, or has a mark such as
        ``:``, ``x`` or ``..``.
    dims
        Columns of codes, with their hierarchies where codes do not simply add up to a total; quarters and years are
        such a hierarchy. By default, every column that has no other role.
    value, status, marks
        Columns of values and of marks; a cell that is marked as withheld is, whatever is printed as its value.
    count
        Column with the numbers of contributors: a cell without contributors is 0.
    lower, upper
        Columns with further bounds on withheld cells.
    ratios
        Column of a printed mean, share or other ratio -> column of its denominator.
    ignore
        Columns that say nothing.
    knowledge
        File with further sums of cells (column ``sum``, a column per dimension, ``coefficient``, ``lower``, ``upper``).
    missing
        What a cell without a row is: ``"unpublished"`` (sums that need it are not used), ``"zero"`` or ``"withheld"``.
    total
        Code of the totals.
    tolerance
        A total may differ from the sum of its parts by this much.
    rounded_to
        Printed values are rounded to multiples of this.
    integer
        All values are whole numbers.
    negative
        Values may be negative.
    exact_only
        Only find the cells that addition, subtraction and bounds determine: seconds instead of minutes.
    time_limit_s
        For the ranges; afterwards ranges are as narrow as was proven.

    >>> table = {"size": ["Total", "small", "large"], "region": ["Total"] * 3, "value": [9, None, 4]}
    >>> public_ranges(table).columns()["low"].tolist()
    [5.0]
    """
    from cellguard._engine.ranges import public as engine
    from cellguard.published.knowledge import read_further_sums

    if not tolerance >= 0:
        raise InputError("tolerance: a number of at least 0 is needed.")
    reading = PublishedReading(
        dims=dims, value=value, status=status, marks=marks, count=count, lower=lower, upper=upper, ratios=ratios,
        ignore=ignore, missing=missing, total=total, rounded_to=rounded_to, negative=negative,
    )  # fmt: skip
    file = read_published(published, reading)
    further = None if knowledge is None else read_further_sums(knowledge, file)
    known, unknown, rows = _collect_knowledge(file, further, tolerance, integer=integer)
    place = np.full(len(file.cells), -1, np.int64)
    place[unknown] = np.arange(len(unknown))
    asked = np.flatnonzero(file.withheld)
    places = place[asked]
    try:
        tight = engine.tighten_bounds(known)
        exact = _find_exact(tight, known, max(tolerance, rounded_to))
        low, high = tight.lo, tight.hi
        attained, programs = exact.copy(), 0
        if not exact_only:
            cells = np.unique(places[places >= 0])
            found = engine.compute_public_ranges(tight, cells, time_limit_s=time_limit_s)
            low[cells], high[cells], programs = found.low_bound, found.high_bound, found.programs
            attained[cells] = _are_equal(found.low, found.low_bound) & _are_equal(found.high, found.high_bound)
        narrow = _are_narrow(low, high, max(2 * tolerance, rounded_to))
        exact, attained = exact | narrow, attained | _are_narrow(low, high, 0.0)
    except engine.Contradiction as error:
        raise _explain(error, file, further, rows, unknown) from None
    ends = [_remove_noise(_spread(places, *pair)) for pair in ((low, file.lo[asked]), (high, file.hi[asked]))]
    certain = np.ones(len(asked), bool)
    return PublicRanges(
        published=file, cells=asked, programs=programs, low=ends[0], high=ends[1],
        exact=_spread(places, exact, certain), attained=_spread(places, attained, certain),
    )  # fmt: skip


def _spread(places: IntArray, found: Any, otherwise: Any) -> Any:
    """Return what was found about unknown cells, and `otherwise` for those that are known (-1)."""
    return np.where(places >= 0, found[places], otherwise) if len(found) else otherwise


def _remove_noise(ends: FloatArray) -> FloatArray:
    """Return the ends without the rounding of sums and programs: 5, not 4.999999999."""
    finite = np.isfinite(ends)
    digits = np.round(np.where(finite, ends, 0.0), 6)
    near = np.abs(ends - digits) <= 1e-9 * np.maximum(1.0, np.abs(digits))
    return np.asarray(np.where(finite & near, digits + 0.0, ends))


def _are_equal(one: FloatArray, other: FloatArray) -> BoolArray:
    finite = np.isfinite(one) & np.isfinite(other)
    gap = np.abs(np.where(finite, one, 0.0) - np.where(finite, other, 0.0))
    return np.asarray(np.where(finite, gap <= 1e-6 * np.maximum(1.0, np.abs(one)), one == other))


def _are_narrow(low: FloatArray, high: FloatArray, width: float) -> BoolArray:
    finite = np.isfinite(low) & np.isfinite(high)
    size = 1e-7 * np.maximum(1.0, np.abs(np.where(finite, low, 0.0)))
    return np.asarray(finite & (np.where(finite, high - low, np.inf) <= width + size))


def _find_exact(tight: PublicKnowledge, known: PublicKnowledge, slack: float) -> BoolArray:
    """Return the cells that printed figures determine, also where they are printed with a tolerance."""
    from dataclasses import replace

    from cellguard._engine.ranges.public import find_exact_cells

    if slack == 0:
        return find_exact_cells(tight)
    plain = np.isfinite(known.row_lower) & np.isfinite(known.row_upper)
    middle = np.where(plain, (known.row_lower + known.row_upper) / 2, known.row_lower)
    fixed = np.isfinite(known.lo) & np.isfinite(known.hi) & (known.hi - known.lo <= slack)
    lo = np.where(fixed, (known.lo + known.hi) / 2, tight.lo)
    as_printed = replace(
        known, row_lower=middle, row_upper=np.where(plain, middle, known.row_upper),
        lo=lo, hi=np.where(fixed, lo, tight.hi),
    )  # fmt: skip
    return find_exact_cells(as_printed)


def _collect_knowledge(
    file: PublishedCells, further: FurtherSums | None, tolerance: float, *, integer: bool
) -> tuple[PublicKnowledge, IntArray, IntArray]:
    """Return rows between unknown cells, those cells, and the number of each row (relations first, then sums)."""
    from scipy.sparse import csr_array, vstack

    from cellguard._engine.ranges.public import PublicKnowledge

    T = file.relations
    lower = np.full(T.shape[0], -tolerance)
    upper = -lower
    if further is not None:
        T = csr_array(vstack([T, further.A]))
        lower, upper = np.concatenate([lower, further.lower]), np.concatenate([upper, further.upper])
    open_ = file.hi > file.lo
    printed = np.where(open_, 0.0, file.lo)
    given, size = T @ printed, abs(T) @ np.abs(printed)
    unknown = np.flatnonzero(open_)
    A = csr_array(T[:, unknown])
    some = np.diff(A.indptr) > 0
    noise = 1e-9 * np.maximum(1.0, size)  # sums of decimals
    broken = np.flatnonzero(~some & ((given < lower - noise) | (given > upper + noise)))
    if len(broken):
        _refuse_broken(file, further, broken, np.abs(given))
    rows = np.flatnonzero(some)
    sides = lower[rows] - given[rows], upper[rows] - given[rows]
    known = PublicKnowledge(
        A=csr_array(A[rows]), row_lower=sides[0], row_upper=sides[1],
        lo=file.lo[unknown], hi=file.hi[unknown], integer=integer,
    )  # fmt: skip
    return known, unknown, rows


def _name_row(file: PublishedCells, further: FurtherSums | None, row: int) -> str:
    """Return what a row is: the total that it adds up to, or a further sum."""
    T = file.relations
    if row >= T.shape[0]:
        return f"sum {further.names[row - T.shape[0]]!r}" if further is not None else "a sum"
    entries = slice(T.indptr[row], T.indptr[row + 1])
    total = T.indices[entries][np.argmin(T.data[entries])]
    return f"the parts of {file.label(int(total))}"


def _refuse_broken(file: PublishedCells, further: FurtherSums | None, rows: IntArray, missed: FloatArray) -> None:
    worst = rows[np.argsort(-missed[rows], kind="stable")]
    more = f", and {len(rows) - 1} further sums" if len(rows) > 1 else ""
    where = f"{file.place}: " if file.place else ""
    message = f"{where}{_name_row(file, further, int(worst[0]))} do not add up{more}."
    needed = float(missed[worst[0]])
    raise AdditivityError(message, hint=f"a tolerance of {needed:g} accepts all of them, if that is rounding.")


def _explain(
    error: Contradiction, file: PublishedCells, further: FurtherSums | None, rows: IntArray, unknown: IntArray
) -> InputError:
    """Return the error that names what contradicts each other."""
    where = f"{file.place}: " if file.place else ""
    named = [_name_row(file, further, int(rows[row])) for row in error.rows[:3]]
    if len(error.cells):
        named.insert(0, file.label(int(unknown[error.cells[0]])))
    if not named:
        return InputError(f"{where}no possible table was found.", hint="a larger tolerance may help.")
    return AdditivityError(
        f"{where}no table agrees with everything that is printed; look at {'; '.join(named)}.",
        hint="a larger tolerance allows for rounding; negative=True (--negative) allows negative values.",
    )
