"""Unions of pieces that three or more tables determine together.

A union is determined if its indicator is a sum of published areas with coefficients. A union that is small enough to
disclose something has only pieces that are small enough themselves, so the coefficients cancel on all others. For each
piece a mixed-integer program looks for the smallest such union around it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np

from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, SolveStatus
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.differencing.pieces import AreaPieces, Grouping

__all__ = ["Area", "Combination", "CombinationSearch"]

Area = tuple[str, tuple[str, ...]]
"""A table and the codes of one of its areas."""

MAX_DENOMINATOR = 720
"""Coefficients of a formula are fractions with at most this denominator; anything else is given up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Combination:
    """A determined union: its pieces, and the areas whose sum it is."""

    pieces: IntArray
    plus: tuple[Area, ...]
    """Areas to add, as often as each counts."""
    minus: tuple[Area, ...]
    """Areas to subtract, as often as each counts."""
    divisor: int
    """By what the result is divided."""


@dataclass(eq=False)
class CombinationSearch:
    """The unions that all tables together determine."""

    pieces: AreaPieces
    groupings: Sequence[Grouping]
    total: bool
    """Whether the number of all records is published."""
    time_limit_s: float
    """Seconds for all searches."""
    complete: bool = field(default=True, init=False)
    """Whether every search ended in time."""

    def __post_init__(self) -> None:
        from scipy.sparse import csr_array

        rows, columns, names = [], [], list[Area]()
        for grouping in self.groupings:
            areas, area = self.pieces.find_areas(grouping)
            published = self.pieces.find_published(grouping, areas)
            number = np.cumsum(published) - 1 + len(names)
            shown = published[area]
            rows.append(np.flatnonzero(shown))
            columns.append(number[area[shown]])
            names += [(grouping.name, codes) for codes, own in zip(areas, published, strict=True) if own]
        if self.total:
            rows.append(np.arange(len(self.pieces)))
            columns.append(np.full(len(self.pieces), len(names)))
            names.append(("all", ("Total",)))
        row, column = np.concatenate(rows), np.concatenate(columns)
        self.names = names
        self.matrix = csr_array((np.ones(len(row)), (row, column)), shape=(len(self.pieces), len(names)))
        """One row per piece: the published areas that contain it."""
        self._end = time.monotonic() + self.time_limit_s

    def find(self, piece: int, size: FloatArray, most: float) -> Combination | None:
        """Return the smallest determined union around a piece whose size is at most `most`, or None."""
        small = np.flatnonzero(size <= most)
        found = solve_mixed(self._build_model(piece, size, small, most), Until(time_limit_s=self._get_time_left()))
        if not found.found:
            self.complete &= found.status is SolveStatus.INFEASIBLE
            return None
        out = self._describe(small[found.x[self.matrix.shape[1] :] > 0.5])
        self.complete &= out is not None
        return out

    def find_single(self, piece: int) -> Combination:
        """Return a single piece that the tables determine, with its formula if there is time to find it."""
        found = None if self.is_over else self._describe(np.array([piece]))
        every = tuple((grouping.name, ("all areas",)) for grouping in self.groupings)
        return found or Combination(pieces=np.array([piece]), plus=every, minus=(), divisor=1)

    def find_determined(self) -> BoolArray:
        """Return the pieces that the tables determine alone; this is quick for tables of any size."""
        from scipy.sparse import csr_array

        from cellguard._engine.space.reduce import reduce

        return np.asarray(reduce(csr_array(self.matrix.T)).determined)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def _get_time_left(self) -> float:
        return max(0.01, self._end - time.monotonic())

    def _build_model(self, piece: int, size: FloatArray, small: IntArray, most: float) -> LinearModel:
        """Return the program: coefficients of the areas, then for each small piece whether it is in the union."""
        from scipy.sparse import csr_array, eye_array, hstack, vstack

        n_pieces, n_areas = self.matrix.shape
        inside = csr_array(eye_array(n_pieces, format="csr")[:, small])
        limit = csr_array(np.concatenate([np.zeros(n_areas), size[small]])[None, :])
        A = csr_array(vstack([hstack([self.matrix, -inside]), limit]))
        lower = np.concatenate([np.full(n_areas, -np.inf), (small == piece).astype(float)])
        upper = np.concatenate([np.full(n_areas, np.inf), np.ones(len(small))])
        sides = np.zeros(n_pieces)
        whole: BoolArray = np.arange(A.shape[1]) >= n_areas
        cost = np.concatenate([np.zeros(n_areas), size[small]])
        return LinearModel(A, np.append(sides, -np.inf), np.append(sides, most), lower, upper, cost, whole)

    def _describe(self, union: IntArray) -> Combination | None:
        """Return the union with the areas to add and to subtract; None if no exact formula is found."""
        from scipy.sparse import csr_array, hstack

        n_pieces, n_areas = self.matrix.shape
        inside = np.zeros(n_pieces)
        inside[union] = 1.0
        n = 2 * n_areas  # coefficients as differences of numbers that are not negative: few areas are wanted
        both = csr_array(hstack([self.matrix, -self.matrix]))
        model = LinearModel(both, inside, inside, np.zeros(n), np.full(n, np.inf), np.ones(n))
        solved = LinearProgram(model, ONCE).solve(time_limit_s=self._get_time_left())
        if not solved.optimal:
            return None
        found = solved.x[:n_areas] - solved.x[n_areas:]
        fractions = [Fraction(x).limit_denominator(MAX_DENOMINATOR) for x in found.tolist()]
        divisor = lcm(*(fraction.denominator for fraction in fractions))
        times = np.array([int(fraction * divisor) for fraction in fractions], np.int64)
        if not np.array_equal(self.matrix.astype(np.int64) @ times, divisor * inside.astype(np.int64)):
            return None
        named = list(zip(self.names, times.tolist(), strict=True))
        plus = tuple(name for name, often in named for _ in range(often))
        minus = tuple(name for name, often in named for _ in range(-often))
        return Combination(pieces=union, plus=plus, minus=minus, divisor=divisor)
