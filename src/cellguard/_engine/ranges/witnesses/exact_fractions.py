"""Exact movements by whole numbers of any length, for components whose cells differ by many orders of magnitude.

Cells with much slack are computed from cells with less, so that rounding a small cell moves a large
one by a negligible amount; the whole is then scaled until every bound holds. The computed cells are
fractions with one denominator, a divisor of the determinant of their relations, which is short even
for thousands of cells. Floating-point factors refine the solution bit by bit until the denominator
is found, and whole numbers confirm it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite, lcm, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import NO_ROW
from cellguard._types import FloatArray, IntArray

__all__ = ["Solved", "make_movement_exact"]

Whole = NDArray[np.object_]
"""Whole numbers of any length."""

_DENSE = 20_000_000
"""Entries of a basis beyond which the computed cells are not chosen by their slack."""
_BITS = (192, 384, 768, 1536, 3072)
"""Binary digits after the point, tried in turn."""
_MORE = 40
"""Binary digits after the point of a correction."""
_SAMPLE = 40
"""Number of cells whose fractions are examined to find the common denominator."""
_SIGNIFICANT = 14
"""Digits kept of the smallest cell."""


def make_movement_exact(
    T: csr_array,
    cells: IntArray,
    z: FloatArray,
    box: tuple[FloatArray, FloatArray, FloatArray],
    memory: dict[bytes, Solved | None] | None = None,
) -> dict[int, Fraction] | None:
    """Make the movement of one component exact; None if no movement close to it is feasible.

    Parameters
    ----------
    T
        All relations.
    cells
        The component's cells.
    z
        Their movements, from a solver.
    box
        Ends of the interval of each of them, and its true value; decimal numbers, taken exactly as printed.
    memory
        Earlier factorizations, for movements of the same cells.
    """
    if not np.isfinite(z).all():
        return None
    lo, hi, point = box
    down, up = np.minimum(point - lo, 1e300), np.minimum(hi - point, 1e300)
    # the size of a cell is its distance to the nearer end, unless it is at that end
    slack = np.where((down > 0) & (up > 0), np.minimum(down, up), np.maximum(down, up))
    noise = 1e-12 * np.abs(z).max(initial=0.0)
    at_zero = ((down <= 0) & (z <= noise)) | ((up <= 0) & (z >= -noise))
    order = np.argsort(np.where(at_zero, 0.0, slack), kind="stable")  # the smallest first: they are given
    memory = {} if memory is None else memory
    key = cells[order].tobytes()
    if key not in memory:
        memory[key] = Solved.of(csr_array(T[:, cells]), order)
    solved = memory[key]
    if solved is None:
        return None
    least = float(np.minimum(slack, np.maximum(np.abs(z), 1e-12 * slack))[~at_zero].min(initial=1.0)) or 1.0
    unit = 10 ** max(0, _SIGNIFICANT - floor(log10(least)))
    given = [0 if at_zero[i] else round(Fraction(float(z[i])) * unit) for i in solved.given.tolist()]
    numerators, denominator = solved.complete(np.array(given, object))
    if denominator == 0:
        return None
    numbers, total = numerators.tolist(), denominator * unit
    m = np.array([n / total for n in numbers])
    # slack is a difference of rounded numbers: only cells well inside need no exact check
    near = 0.999 * np.where(m > 0, up, down) - 8 * np.spacing(np.maximum(np.abs(point), np.where(m > 0, up, down)))
    ends = [
        (numbers[i], _compute_exact_distance(hi[i] if numbers[i] > 0 else lo[i], point[i]))
        for i in np.flatnonzero(np.abs(m) >= near).tolist()
        if numbers[i]
    ]
    scale = _compute_largest_share([(Fraction(n, total), end) for n, end in ends if end is not None])
    if scale < 1 - Fraction(1, 10**6):
        return None
    top, bottom = scale.numerator, scale.denominator * total
    return {int(cell): Fraction(top * n, bottom) for cell, n in zip(cells.tolist(), numbers, strict=True) if n}


def _compute_exact_distance(end: float, point: float) -> Fraction | None:
    """Return the distance from the point to an end, as printed; None when the end is infinite."""
    return Fraction(repr(float(end))) - Fraction(repr(float(point))) if isfinite(end) else None


@dataclass(eq=False, kw_only=True)
class Solved:
    """Relations solved for some cells, the others given."""

    relations: csr_array
    """All relations, none empty."""
    rows: IntArray
    """Independent ones, as many as computed cells."""
    given: IntArray
    computed: IntArray
    factors: Any
    """Of the independent relations between the computed cells, in floating point."""
    denominator: int = 1
    """Of the computed cells, as far as known: it divides the determinant."""

    @classmethod
    def of(cls, T: csr_array, order: IntArray) -> Solved | None:
        """Choose the given cells, first in the order; None when the relations are too large."""
        from scipy.sparse.linalg import splu

        T = csr_array(T[np.flatnonzero(np.diff(T.indptr))])
        reduction = reduce(T)
        given = reduction.parameters
        if T.shape[1] * len(given) <= _DENSE:
            given = _select_independent_rows(reduction.basis.toarray(), order)
        computed = np.setdiff1d(np.arange(T.shape[1]), given)
        if len(reduction.rows) != len(computed):
            return None
        try:
            factors = splu(T[reduction.rows][:, computed].tocsc()) if len(computed) else None
            return cls(relations=T, rows=reduction.rows, given=given, computed=computed, factors=factors)
        except (RuntimeError, OverflowError):  # singular, or out of range, in floating point
            return None

    def __post_init__(self) -> None:
        T = self.relations
        data = np.array([Fraction(repr(c)) for c in T.data.tolist()], object)
        factor = [lcm(*(c.denominator for c in data[a:b])) for a, b in zip(T.indptr[:-1], T.indptr[1:], strict=True)]
        self._scale = np.array([float(f) for f in factor])
        each = np.repeat(np.array(factor, object), np.diff(T.indptr))
        self._whole: Whole = np.array([int(c) for c in data * each], object)

    def complete(self, given: Whole) -> tuple[Whole, int]:
        """Return the numerators of all cells and their denominator; 0 if none is found."""
        v: Whole = np.zeros(self.relations.shape[1], object)
        v[self.given] = given
        if not len(self.computed):
            return v, 1
        side = -self._multiply(v)[self.rows]
        for bits in _BITS:
            x = self._refine_solution(side, bits)
            self._find_denominator(x, bits)
            w = v * self.denominator
            w[self.computed] = (x * self.denominator + (1 << (bits - 1))) >> bits
            if not self._multiply(w).any():
                return w, self.denominator
        return v, 0

    def _multiply(self, v: Whole) -> Whole:
        """Return the relations' sums, in whole numbers."""
        products = self._whole * v[self.relations.indices]
        return np.add.reduceat(products, self.relations.indptr[:-1])

    def _refine_solution(self, side: Whole, bits: int) -> Whole:
        """Return the computed cells with `bits` bits after the point."""
        x: Whole = np.zeros(len(side), object)
        v: Whole = np.zeros(self.relations.shape[1], object)
        left, size = side << bits, None
        while True:
            now = int(np.abs(left).max())
            if now == 0 or (size is not None and now.bit_length() >= size - 2):  # no further gain
                return x
            size = now.bit_length()
            shift = max(0, size - 60)
            step = self.factors.solve((left >> shift).astype(np.float64) / self._scale[self.rows])
            if not np.isfinite(step).all():
                return x
            whole = np.array([int(s) for s in np.ldexp(step, _MORE).tolist()], object)
            x = x + ((whole << shift) >> _MORE)
            v[self.computed] = x
            left = (side << bits) - self._multiply(v)[self.rows]

    def _find_denominator(self, x: Whole, bits: int) -> None:
        """Find, from some cells, the number that makes all of them whole."""
        some = np.random.default_rng(0).choice(len(x), size=min(_SAMPLE, len(x)), replace=False)
        for value in x[some].tolist():
            part = Fraction(value * self.denominator, 1 << bits).limit_denominator(1 << (bits // 3))
            if (self.denominator * part.denominator).bit_length() < bits // 2:
                self.denominator *= part.denominator


def _select_independent_rows(N: FloatArray, order: IntArray) -> IntArray:
    """Return the first rows of a basis that are independent, in the given order."""
    chosen = []
    left = np.ones(N.shape[1], bool)
    for i in order.tolist():
        row = np.where(left, np.abs(N[i]), 0.0)
        j = int(np.argmax(row)) if len(row) else 0
        if not len(row) or row[j] <= NO_ROW:
            continue
        chosen.append(i)
        left[j] = False
        if not left.any():
            break
        others = np.flatnonzero(left & (N[i] != 0))
        N[:, others] -= np.outer(N[:, j] / N[i, j], N[i, others])
    return np.sort(np.array(chosen, np.int64))


def _compute_largest_share(ends: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the share of the movement within the bounds, at most 1. Movements and ends on their side."""
    scale = min((end / m for m, end in ends if abs(m) > abs(end)), default=Fraction(1))
    return Fraction(floor(scale * 10**12), 10**12)
