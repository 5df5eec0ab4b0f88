"""The cheapest movement that protects one cell: the linear program under construction and repair.

``min sum c |z|`` with ``T z = 0``, ``low <= z <= high`` and ``z_p = level``: its support is a cheap set
of partners for the cell. Everything is divided by the level, so that tolerances mean the same for
small and large cells, and aliases (cells that can only move together) are one variable.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from cellguard._engine.lp import LinearProgram
from cellguard._suppress.space import Space
from cellguard.table import FloatArray

__all__ = ["Protector"]

_NOISE = 1e-7
"""Movements below this share of the level are rounding of the solver."""
_STEEP = 100.0
"""A partner whose room is small costs more per unit, up to this factor: it protects little."""


class Protector:
    """The programs over all cells that may be suppressed."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.relations = space.reduction.merged.relations
        positive = space.weight[space.weight > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0

    def movements(self, request: int, weight: FloatArray, *, exact: bool = False) -> list[FloatArray] | None:
        """Return movements that meet a request: one that works both ways where there is one, else two."""
        attacker, rows, downs, ups, slides = self.space.requests
        low, high = self.space.bounds_of(int(attacker[request]))
        row, down, up = int(rows[request]), float(downs[request]), float(ups[request])
        slide = float(slides[request])
        level = max(down, up, slide / 2.0)
        both = np.minimum(-low, high)
        if level <= both[row]:
            z = self.witness(row, level, weight, -both, both, exact=exact)
            if z is not None:
                return [z]
        rest = max(0.0, slide - down - up)
        more_up = min(rest, high[row] - up)  # the sliding level may be met on either side
        found = []
        for move, room in ((up + more_up, high[row]), (-(down + rest - more_up), -low[row])):
            if move == 0:
                continue
            if abs(move) > room * (1 + 1e-9):
                return None
            z = self.witness(row, move, weight, low, high, exact=exact)
            if z is None:
                return None
            found.append(z)
        return found

    def witness(
        self,
        row: int,
        move: float,
        weight: FloatArray,
        low: FloatArray,
        high: FloatArray,
        *,
        exact: bool = False,
        time_limit_s: float = 60.0,
    ) -> FloatArray | None:
        """Return the cheapest movement with ``z[row] = move``, or None when there is none.

        Parameters
        ----------
        row, move
            The row to be moved, and by how much (signed).
        weight
            Cost of each row: 0 for those already open.
        low, high
            Bounds of the movements.
        exact
            Keep even movements as small as rounding: cells of little room among large ones.
        time_limit_s
            After this long the row counts as not protected.
        """
        scale = abs(move)
        below, above = -low / scale, high / scale
        steep = np.clip(1.0 / np.maximum(np.minimum(below, above), 1e-300), 1.0, _STEEP)
        cost = (weight / self.unit + 1e-4 / len(weight) ** 0.5) * steep
        solve = self._null_space if self._prefer_null_space else self._range_space
        v = solve(row, np.sign(move), cost, below, above, time_limit_s)
        if v is None:
            return None
        v[np.abs(v) < (1e-13 if exact else _NOISE)] = 0.0
        return v * scale

    @property
    def _prefer_null_space(self) -> bool:
        # the split form is far faster until degeneracy stalls the simplex method on it
        return len(self.space) > 1800 and self.space.reduction.degrees_of_freedom < self.relations.shape[0] / 2

    def _range_space(
        self, q: int, sign: float, cost: FloatArray, below: FloatArray, above: FloatArray, limit: float
    ) -> FloatArray | None:
        k = len(self.space)
        lower, upper = np.zeros(2 * k), np.concatenate([above, below])
        at, other = (q, k + q) if sign > 0 else (k + q, q)
        if upper[at] < 1.0 - 1e-7:
            return None
        lower[at] = upper[at] = 1.0
        upper[other] = 0.0
        costs = np.concatenate([cost, cost])
        costs[at] = 0.0
        lp = LinearProgram(self._split, 0.0, 0.0, lower, upper, costs, simplex="dual", tolerance=1e-7)
        s = lp.solve(time_limit_s=limit)
        return s.x[:k] - s.x[k:] if s.optimal else None

    @cached_property
    def _split(self) -> csc_array:
        return csc_array(hstack([self.relations, -self.relations]))

    @cached_property
    def _basis(self) -> csr_array:
        return csr_array(self.space.reduction.basis[self.space.cells])

    @cached_property
    def _transposed(self) -> csc_array:
        return csc_array(self._basis.T)

    def _null_space(
        self, q: int, sign: float, cost: FloatArray, below: FloatArray, above: FloatArray, limit: float
    ) -> FloatArray | None:
        """Solve the dual in the null space: ``N' u = 0``, ``|u| <= c``, bounds as penalties; z = N x row duals."""
        k = len(self.space)
        if (above if sign > 0 else below)[q] < 1.0 - 1e-7:
            return None
        tight = np.flatnonzero(np.minimum(below, above) < 2.0)
        for _ in range(12):  # bounds that bind are added when a movement breaks them
            NT = self._transposed
            A = csc_array(hstack([NT, NT[:, tight], -NT[:, tight]]))
            lower = np.concatenate([-cost, np.zeros(2 * len(tight))])
            upper = np.concatenate([cost, np.full(2 * len(tight), np.inf)])
            costs = np.concatenate([np.zeros(k), above[tight], below[tight]])
            lower[q], upper[q], costs[q] = -np.inf, np.inf, -sign
            own = np.flatnonzero(tight == q)
            upper[k + own] = upper[k + len(tight) + own] = 0.0
            lp = LinearProgram(A, 0.0, 0.0, lower, upper, costs, solver="ipx", tolerance=1e-7)
            s = lp.solve(time_limit_s=limit)
            if not s.optimal:
                return None
            v = np.asarray(self._basis @ s.row_dual)
            if abs(v[q]) < 1e-9:
                return None
            v *= sign / v[q]
            broken = np.flatnonzero((v > above * (1 + 1e-7) + 1e-12) | (v < -below * (1 + 1e-7) - 1e-12))
            broken = np.setdiff1d(broken, np.append(tight, q))
            if not len(broken):
                return v
            tight = np.append(tight, broken)
        return None
