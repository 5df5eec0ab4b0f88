"""What a rule may know about a cell: a few numbers per cell, never the records."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import ByteArray, FloatArray, IntArray
from cellguard.exceptions import InputError

__all__ = ["CellStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellStatistics:
    """Total, count and largest contributions of every cell (confidential).

    >>> cells = CellStatistics.of([330.0], [3], [[300.0, 20.0]])
    >>> cells.largest(2)
    array([320.])
    """

    value: FloatArray
    """R: the published value."""
    total: FloatArray
    """X: the sum of the contributions the rules look at; weighted, absolute, of the shadow variable as asked."""
    count: FloatArray
    """f: number of contributors (records, or holdings)."""
    weight: FloatArray
    """Sum of the contributors' weights; the count when there are none."""
    top: FloatArray
    """One row per cell: its largest contributions, largest first, 0 where there are no more."""
    top_weights: FloatArray | None = None
    """Weights of `top`; None when every contributor counts once."""
    units: int = 0
    """How many of the largest contributions `top` is sure to hold (with weights: how many units)."""
    protected: FloatArray | None = None
    """Largest contribution of a respondent without a waiver, NaN when all waived; None when nobody could."""
    request: ByteArray | None = None
    """Which kind of protection the largest contributor asked for: 0 none, 1 or 2; None when nobody could ask."""
    contributors: IntArray | None = None
    """Who gave `top`, as numbers without a meaning outside this table; -1 where there are no more."""
    shadow: bool = False
    """Whether the contributions are those of another variable than the published one."""
    integer: bool = False
    """Whether the published values are counts: levels are then numbers of whole numbers."""

    @classmethod
    def of(
        cls,
        total: ArrayLike,
        count: ArrayLike,
        top: ArrayLike,
        *,
        value: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        integer: bool = False,
    ) -> CellStatistics:
        """Make the statistics from totals, counts and largest contributions (sorted here)."""
        x = np.atleast_2d(np.asarray(top, dtype=np.float64))
        sums = np.asarray(total, dtype=np.float64)
        n = np.asarray(count, dtype=np.float64)
        if len(x) != len(sums) or len(n) != len(sums):
            raise InputError(f"{len(sums)} totals, {len(n)} counts and {len(x)} rows of contributions do not fit.")
        order = np.argsort(-x, axis=1, kind="stable")
        w = None if weights is None else np.take_along_axis(np.asarray(weights, dtype=np.float64), order, axis=1)
        return cls(
            value=sums if value is None else np.asarray(value, dtype=np.float64),
            total=sums,
            count=n,
            weight=n,
            top=np.take_along_axis(x, order, axis=1),
            top_weights=w,
            units=x.shape[1],
            integer=integer,
        )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.total)

    @property
    def first(self) -> FloatArray:
        """The largest contribution of somebody who must be protected; NaN where there is nobody."""
        if self.protected is not None:
            return self.protected
        if self.top.shape[1] == 0:
            return np.full(self.n_cells, np.nan)
        return np.where(self.count > 0, self.top[:, 0], np.nan)

    def largest(self, units: int) -> FloatArray:
        """Return the sum of the `units` largest contributions.

        In a weighted sample each contribution stands for as many units as its weight says; they fill
        the places from the top, the last one in part.
        """
        self.require(units)
        if self.top_weights is None:
            sums: FloatArray = self.top[:, :units].sum(axis=1)
            return sums
        w = self.top_weights
        before = np.cumsum(w, axis=1) - w
        filled: FloatArray = (np.clip(units - before, 0.0, w) * self.top).sum(axis=1)
        return filled

    def with_first(self, units: int) -> FloatArray:
        """Return the sum of the `units` largest contributions, one of which is somebody to be protected.

        Without waivers these are the largest. Somebody who comes later takes the last of the places.
        """
        everybody = self.largest(units)
        if self.protected is None:
            return everybody
        others = self.largest(units - 1)
        return others + np.minimum(np.nan_to_num(self.protected), everybody - others)

    def published_level(self, level: FloatArray) -> FloatArray:
        """Turn a level of the contributions into one of the published value: the same share of it."""
        if not self.shadow:
            return level
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.total > 0, level / self.total, 0.0)
        return share * np.abs(self.value)

    def require(self, units: int) -> None:
        """Refuse a rule that looks at more contributions than were kept."""
        if units > self.units:
            kept = f"the {self.units} largest contributions of a cell are kept" if self.units else "none are kept"
            raise InputError(
                f"a rule looks at the {units} largest contributions; {kept}.",
                hint=f"tabulate with top={units}, or give the frame's columns of largest contributions.",
            )

    def take(self, cells: ArrayLike) -> CellStatistics:
        """Return the statistics of some cells, in the order asked for."""
        index = np.asarray(cells)
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        return CellStatistics(**{k: v[index] if isinstance(v, np.ndarray) else v for k, v in changed.items()})

    def __repr__(self) -> str:
        return f"CellStatistics({self.n_cells} cells, {self.units} largest contributions)"
