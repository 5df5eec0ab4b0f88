"""Exact witnesses: turn a solver's movement into integers that satisfy every relation and every bound.

A floating-point solution satisfies nothing exactly. Its free parameters are rounded to a grid of
fractions, and all other cells follow by integer arithmetic. If a bound is then missed by
a tiny amount, the movement is pulled towards the true table. The result can be checked without a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.witnesses.exact_fractions import Solved, make_movement_exact
from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["ExactMovements", "Inexact", "make_witnesses_exact", "refine_witnesses"]


_FINE = (720720, 27720, 2520, 60, 1)
"""Vertices of tables are mostly whole or have small denominators: these grids hold them exactly."""
_LARGEST = 2.0**51
"""Numerators stay below this, so that floating point still distinguishes neighbours."""
_COARSE = 10**6
"""A parameter that may only move in steps of more than this many units is left to fractions."""
_HUGE = np.int64(4_000_000_000_000_000_000)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactMovements:
    """Movements of all cells as exact fractions: ``numerators / denominator``, one row each."""

    numerators: csr_array
    """Whole numbers (int64), movements by cells."""
    denominator: IntArray
    """One per cell."""
    careful: Mapping[int, Mapping[int, Fraction]] = field(default_factory=dict)
    """Movements that integers of limited length cannot hold: by row, then by cell."""

    def convert_to_floats(self) -> csr_array:
        """Return the nearest floating-point movements."""
        k = self.numerators
        plain = csr_array((k.data / self.denominator[k.indices], k.indices, k.indptr), shape=k.shape)
        where = [(row, cell, float(m)) for row, moved in self.careful.items() for cell, m in moved.items()]
        if not where:  # none, or none that moves a cell
            return plain
        rows, cells, values = (np.array(x) for x in zip(*where, strict=True))
        return csr_array(plain + csr_array((values, (rows, cells)), shape=k.shape))

    def append_movements(self, other: ExactMovements) -> ExactMovements:
        """Return these movements followed by others, whose fractions may be of another kind."""
        n = self.numerators.shape[0]
        scaled = _scale_numerators(other, self.denominator)
        if scaled is not None:
            return ExactMovements(
                numerators=csr_array(vstack([self.numerators, scaled])),
                denominator=self.denominator,
                careful={**self.careful, **{n + row: moved for row, moved in other.careful.items()}},
            )
        more = csr_array(other.numerators.shape, dtype=np.int64)
        careful = {n + row: other.get_row(row) for row in range(other.numerators.shape[0])}
        return ExactMovements(
            numerators=csr_array(vstack([self.numerators, more])),
            denominator=self.denominator,
            careful={**self.careful, **careful},
        )

    def get_row(self, number: int) -> dict[int, Fraction]:
        """Return one movement, by cell."""
        k = self.numerators
        span = slice(k.indptr[number], k.indptr[number + 1])
        cells = k.indices[span]
        triples = zip(cells.tolist(), k.data[span].tolist(), self.denominator[cells].tolist(), strict=True)
        return {i: Fraction(n, d) for i, n, d in triples if n} | dict(self.careful.get(number, {}))


def _scale_numerators(movements: ExactMovements, denominator: IntArray) -> csr_array | None:
    """Return whole numerators of movements over other denominators; None if some are not whole, or too large."""
    k = movements.numerators
    factor, rest = np.divmod(denominator[k.indices], movements.denominator[k.indices])
    if rest.any() or (np.abs(k.data).astype(np.float64) * factor >= float(_HUGE)).any():
        return None
    return csr_array((k.data * factor, k.indices, k.indptr), shape=k.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inexact:
    """Movements from a solver to be made exact, and the bounds they must respect."""

    reduction: Reduction
    """Of the relations, with the free cells of the movements."""
    movements: csr_array
    """One row each."""
    lo: FloatArray
    """Interval of each cell; decimal numbers, taken exactly as printed."""
    hi: FloatArray
    point: FloatArray
    """The table that moves."""
    component: IntArray
    """Of each cell; movements of different components are independent."""
    held: BoolArray | None = None
    """Cells that must stay exactly fixed wherever they do not move: some attacker knows them."""


def make_witnesses_exact(given: Inexact, deadline: Deadline = NEVER) -> ExactMovements:
    """Make movements exact, component by component; replace those that cannot be by no movement.

    After the deadline, all are replaced by no movement.
    """
    reduction, movements, point = given.reduction, given.movements, given.point
    lo, hi, component, held = given.lo, given.hi, given.component, given.held
    n = len(point)
    components = component + 1  # 0: cells that cannot move
    n_components = int(components.max(initial=0)) + 1
    largest = np.zeros(n_components)
    size = abs(movements)
    np.maximum.at(largest, components[size.indices], size.data)
    denominator = np.array([_choose_denominator(m) for m in largest.tolist()], np.int64)[components]
    cells = np.unique(movements.indices)
    below, above = np.zeros(n, np.int64), np.zeros(n, np.int64)
    below[cells], above[cells] = _compute_whole_slack(lo[cells], hi[cells], point[cells], denominator[cells])
    T = _scale_relations_to_whole(reduction.relations)
    if T is None or movements.shape[0] == 0:
        return ExactMovements(numerators=csr_array(movements.shape, dtype=np.int64), denominator=denominator)
    maker = _Maker(T=T, denominator=denominator, below=below, above=above, components=components)
    basis = _Basis.of(reduction)
    # aliases move together: one of them represents all
    held = np.zeros(n, bool) if held is None else held
    held_cells = np.unique(reduction.alias[held & (component >= 0)])
    exact, rest = maker.make_all(movements, basis, held_cells)
    rows = {}
    for i in rest.tolist():
        if deadline.passed:
            break
        z = movements[[i]].toarray()[0]
        rows[i] = csr_array(maker.make(z, basis, held_cells[z[held_cells] == 0])[None, :])
    return ExactMovements(numerators=_replace_empty_rows(exact, rows), denominator=denominator)


def _replace_empty_rows(matrix: csr_array, rows: dict[int, csr_array]) -> csr_array:
    """Return a matrix with some empty rows replaced."""
    if not rows:
        return matrix
    place = np.arange(matrix.shape[0])
    place[list(rows)] = matrix.shape[0] + np.arange(len(rows))
    return csr_array(csr_array(vstack([matrix, *rows.values()]))[place])


def refine_witnesses(
    exact: ExactMovements, given: Inexact, where: Iterable[tuple[int, int]], deadline: Deadline = NEVER
) -> ExactMovements:
    """Make some rows and components exact by fractions, where the grid was too coarse for a small cell."""
    numerators, careful = exact.numerators.tolil(), dict(exact.careful)
    memory: dict[bytes, Solved | None] = {}
    for row, c in sorted(where):
        z = given.movements[[row]].toarray()[0]
        mine = own = np.flatnonzero(given.component == c)
        if deadline.passed:
            break
        if given.held is not None:
            mine = mine[(z[mine] != 0) | ~given.held[mine]]
        if 2 * np.count_nonzero(z[mine]) < len(mine):  # else all of them: their factors serve other rows too
            mine = mine[z[mine] != 0]
        box = given.lo[mine], given.hi[mine], given.point[mine]
        found = make_movement_exact(given.reduction.relations, mine, z[mine], box, memory)
        if found is not None:
            careful[row] = {**careful.get(row, {}), **found}
            numerators[row, own] = 0
    return ExactMovements(numerators=csr_array(numerators), denominator=exact.denominator, careful=careful)


def _choose_denominator(largest: float) -> int:
    """Choose the denominator of a component whose largest movement is given."""
    fine = next((f for f in _FINE if largest * f < _LARGEST), 1)
    while fine < 10**14 and largest * fine * 10 < _LARGEST:
        fine *= 10
    return fine


def _compute_whole_slack(
    lo: FloatArray, hi: FloatArray, point: FloatArray, unit: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the slack below and above in whole units, rounded inward: exact for decimal numbers as printed."""
    digits = next((q for q in range(10) if all(_has_at_most_digits(x, q) for x in (lo, hi, point))), None)
    if digits is None:
        return _compute_fraction_slack(lo, point, unit, -1), _compute_fraction_slack(hi, point, unit, 1)
    scale = 10.0**digits

    def count_units(difference: FloatArray) -> IntArray:
        far = ~(difference * unit / scale < float(_HUGE) / 2)
        steps = np.where(far, 0.0, difference).astype(np.int64)
        whole, rest = np.divmod(unit, 10**digits)  # steps * unit / scale without overflow
        return np.where(far, _HUGE, steps * whole + steps * rest // 10**digits)

    at = np.rint(point * scale)
    with np.errstate(invalid="ignore"):
        return np.maximum(count_units(at - np.rint(lo * scale)), 0), np.maximum(
            count_units(np.rint(hi * scale) - at), 0
        )


def _compute_fraction_slack(end: FloatArray, point: FloatArray, unit: IntArray, sign: int) -> IntArray:
    """Return the slack on one side in whole units, by fractions: for numbers with many digits."""
    steps = [
        int(sign * (Fraction(repr(e)) - Fraction(repr(p))) * u) if np.isfinite(e) else int(_HUGE)
        for e, p, u in zip(end.tolist(), point.tolist(), unit.tolist(), strict=True)
    ]
    return np.array([min(max(k, 0), int(_HUGE)) for k in steps], np.int64)


def _has_at_most_digits(x: FloatArray, digits: int) -> bool:
    """Return whether the finite numbers are decimals with at most `digits` digits after the point."""
    x = x[np.isfinite(x)]
    scaled = np.rint(x * 10.0**digits)
    return bool((np.abs(scaled) < 2.0**52).all() and (scaled / 10.0**digits == x).all())


def _scale_relations_to_whole(T: csr_array) -> csr_array | None:
    """Return the relations multiplied so that every coefficient is whole, or None."""
    for digits in range(7):
        scaled = T.data * 10.0**digits
        whole = np.rint(scaled)
        if (np.abs(scaled - whole) <= 1e-9 * np.abs(scaled)).all() and (whole / 10.0**digits == T.data).all():
            return csr_array((whole.astype(np.int64), T.indices, T.indptr), shape=T.shape)
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Basis:
    """The null space in whole numbers: ``cells = numerators @ (parameters / denominator)``."""

    parameters: IntArray
    numerators: csr_array
    denominator: IntArray
    """Of each parameter: only its multiples move all cells by whole units."""

    @classmethod
    def of(cls, reduction: Reduction) -> _Basis:
        N = reduction.basis
        denominator = np.ones(N.shape[1], np.int64)
        data = N.data
        broken = np.flatnonzero(np.abs(data - np.rint(data)) > 1e-9)
        if len(broken):
            values, where = np.unique(np.round(data[broken], 9), return_inverse=True)
            parts = [Fraction(v).limit_denominator(1000).denominator for v in values.tolist()]
            for j, d in zip(N.indices[broken].tolist(), (parts[k] for k in where.tolist()), strict=True):
                denominator[j] = min(lcm(int(denominator[j]), d), _COARSE)  # further multiples stay above the limit
            data = np.where(denominator[N.indices] < _COARSE, data * denominator[N.indices], 0.0)
        whole = csr_array((np.rint(data).astype(np.int64), N.indices, N.indptr), shape=N.shape)
        return cls(parameters=reduction.parameters, numerators=whole, denominator=denominator)

    def complete(self, z: FloatArray, hold: _Hold | None = None) -> IntArray:
        """Round the parameters of a movement, in units, and compute all other cells."""
        steps = np.rint(z[self.parameters] / self.denominator).astype(np.int64)
        return np.asarray(self.numerators @ (steps if hold is None else hold.correct_parameters(steps)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Hold:
    """Cells that must not move: rounding moves them by a few units, which other parameters then undo."""

    rows: csr_array
    """Of the basis, for the held cells."""
    chosen: IntArray
    """A parameter for each of them."""
    factors: Any
    """Of the square matrix between both, in floating point."""

    @classmethod
    def of(cls, basis: _Basis, cells: IntArray) -> _Hold | None:
        """Choose parameters on which few of the held cells depend; None when there are none, or too few."""
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching
        from scipy.sparse.linalg import splu

        rows = csr_array(basis.numerators[cells])
        rows.eliminate_zeros()  # relations with general coefficients leave some
        rows = csr_array(rows[np.flatnonzero(np.diff(rows.indptr))])
        if not rows.shape[0]:
            return None
        used = np.bincount(rows.indices, minlength=rows.shape[1])
        weight = csr_array((used[rows.indices] * np.abs(rows.data).astype(np.float64), rows.indices, rows.indptr))
        weight.resize(rows.shape)
        try:
            _, chosen = min_weight_full_bipartite_matching(weight)
            factors = splu(rows[:, chosen].astype(np.float64).tocsc())
        except (ValueError, RuntimeError):  # the cells depend on each other
            return None
        return cls(rows=rows, chosen=chosen.astype(np.int64), factors=factors)

    def correct_parameters(self, steps: IntArray) -> IntArray:
        """Return the parameters corrected so that the held cells do not move, if whole numbers allow it."""
        change = self.factors.solve(-(self.rows @ steps).astype(np.float64))
        if not (np.abs(change) < _LARGEST).all():
            return steps
        out = steps.copy()
        out[self.chosen] += np.rint(change).astype(np.int64)
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Maker:
    T: csr_array
    denominator: IntArray
    below: IntArray
    above: IntArray
    components: IntArray

    def make_all(self, movements: csr_array, basis: _Basis, held: IntArray) -> tuple[csr_array, IntArray]:
        """Make movements exact by rounding alone; return them, and the rows for which it fails."""
        z = movements.data * self.denominator[movements.indices]
        huge = np.abs(z) >= 2 * _LARGEST
        rows = np.repeat(np.arange(movements.shape[0]), np.diff(movements.indptr))
        bad = np.zeros(movements.shape[0], bool)
        bad[rows[huge]] = True
        scaled = csr_array((np.where(huge, 0.0, z), movements.indices, movements.indptr), shape=movements.shape)
        steps = csr_array(scaled[:, basis.parameters])
        steps.data = np.rint(steps.data / basis.denominator[steps.indices])
        whole = csr_array((steps.data.astype(np.int64), steps.indices, steps.indptr), shape=steps.shape)
        k = csr_array(whole @ basis.numerators.T)
        k.eliminate_zeros()
        k.sort_indices()
        at = np.repeat(np.arange(k.shape[0]), np.diff(k.indptr))
        bad[at[(k.data > self.above[k.indices]) | (-k.data > self.below[k.indices])]] = True
        wrong = csr_array(k @ self.T.T)
        wrong.eliminate_zeros()
        bad[np.diff(wrong.indptr) > 0] = True
        bad[self._find_disturbed_rows(k, movements, held)] = True
        k.data[bad[at]] = 0
        k.eliminate_zeros()
        return k, np.flatnonzero(bad)

    @staticmethod
    def _find_disturbed_rows(k: csr_array, movements: csr_array, held: IntArray) -> IntArray:
        """Return the rows in which a held cell moves that did not move before."""
        after, before = (csr_array((m.data != 0, m.indices, m.indptr), shape=m.shape)[:, held] for m in (k, movements))
        more = csr_array(after.astype(np.int8) - after.multiply(before).astype(np.int8))
        more.eliminate_zeros()
        return np.flatnonzero(np.diff(more.indptr))

    def make(self, movement: FloatArray, basis: _Basis, held: IntArray) -> IntArray:
        """Make one movement exact; components for which this fails, and all held cells, stay fixed."""
        z = movement * self.denominator
        z = np.where(np.abs(z) < 2 * _LARGEST, z, 0.0)
        k, bad = self._pull(z, basis)
        if k[held].any():  # undo what rounding moved; mostly it moves none of them
            k, bad = self._pull(z, basis, _Hold.of(basis, held))
        bad[self.components[held[k[held] != 0]]] = True
        if bad.any():  # a cell at an end without slack: what the solver calls zero must be zero
            retry = bad[self.components]
            largest = np.zeros(len(bad))
            np.maximum.at(largest, self.components, np.abs(z))
            moving = retry & (np.abs(z) > 1e-12 * largest[self.components])
            again, still = self._pull(np.where(moving, z, 0.0), _Basis.of(reduce(self.T.astype(np.float64), moving)))
            k = np.where(retry, again, k)
            bad = bad & still
        return np.where(bad[self.components], np.int64(0), k)

    def _pull(self, z: FloatArray, basis: _Basis, hold: _Hold | None = None) -> tuple[IntArray, BoolArray]:
        """Complete the movement, pulling each component towards no movement until its bounds hold."""
        n_components = int(self.components.max(initial=0)) + 1
        share = np.ones(n_components)
        for margin in (1e-15, 1e-14, 1e-13, 1e-12, 1e-11):
            k = basis.complete(z * share[self.components], hold)
            limit = np.ones(len(z))
            over, under = k > self.above, -k > self.below
            limit[over] = self.above[over] / k[over]
            limit[under] = self.below[under] / -k[under]
            least = np.ones(n_components)
            np.minimum.at(least, self.components, limit)
            if (least == 1.0).all():
                break
            share = np.where(least < 1.0, share * least * (1 - margin), share)
        wrong = (k > self.above) | (-k > self.below)
        wrong[self.T[np.flatnonzero(self.T @ k)].indices] = True
        bad = share < 1 - 1e-6
        bad[self.components[wrong]] = True
        return k, bad
