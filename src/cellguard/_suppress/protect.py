"""The cheapest movement that protects one cell: the linear program under construction and repair.

``min sum c |z|`` with ``T z = 0``, ``-down <= z <= up`` and ``z_p = level``: its support is a cheap set
of partners for the cell. Everything is divided by the level, so that tolerances mean the same for
small and large cells, and aliases (cells that can only move together) are one variable.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from cellguard._engine.lp import LinearProgram
from cellguard._engine.reduce import Reduction, reduce
from cellguard._suppress.problem import Problem
from cellguard.table import BoolArray, FloatArray

__all__ = ["Protector"]

_NOISE = 1e-7
"""Movements below this share of the level are rounding of the solver."""
_STEEP = 100.0
"""A partner whose room is small costs more per unit, up to this factor: it protects little."""


class Protector:
    """Movements of all cells that may be suppressed, and the programs over them."""

    def __init__(self, problem: Problem, usable: BoolArray | None = None) -> None:
        self.problem = problem
        self.usable = problem.usable if usable is None else usable
        self.reduction: Reduction = reduce(problem.relations, self.usable)
        merged = self.reduction.merged
        self.relations, self.lift, self.cells = merged.relations, csr_array(merged.lift), merged.cells
        coo = self.lift.tocoo()
        self._member, self._mover, self._ratio = coo.row, coo.col, coo.data
        self.mover = np.full(len(problem.weight), -1, np.int64)
        self.mover[self._member] = self._mover
        positive = problem.weight[problem.weight > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self._absolute = csr_array(abs(self.lift).T)

    @property
    def n_movers(self) -> int:
        """Number of variables: classes of aliases."""
        return len(self.cells)

    @cached_property
    def basis(self) -> csr_array:
        """Null space of the merged system."""
        return csr_array(self.reduction.basis[self.cells])

    def _rooms(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The tightest room among the members of each class."""
        scale = np.abs(self._ratio)
        low = np.where(self._ratio > 0, down[self._member], up[self._member]) / scale
        high = np.where(self._ratio > 0, up[self._member], down[self._member]) / scale
        lows, highs = np.full(self.n_movers, np.inf), np.full(self.n_movers, np.inf)
        np.minimum.at(lows, self._mover, low)
        np.minimum.at(highs, self._mover, high)
        return lows, highs

    def movements(
        self, request: int, weight: FloatArray, *, exact: bool = False, time_limit_s: float = 60.0
    ) -> list[FloatArray] | None:
        """Return movements that meet a request: one that works both ways where there is one, else two."""
        r = self.problem.requests
        down, up = self.problem.room(int(r.attacker[request]))
        cell, level = int(r.cell[request]), float(r.level[request])
        both = np.minimum(down, up)
        if level <= both[cell]:
            z = self.witness(cell, level, weight, both, both, exact=exact, time_limit_s=time_limit_s)
            if z is not None:
                return [z]
        lower, upper = float(r.lower[request]), float(r.upper[request])
        rest = max(0.0, float(r.sliding[request]) - lower - upper)
        more_up = min(rest, up[cell] - upper)  # the sliding level may be met on either side
        found = []
        for move, room in ((upper + more_up, up), (-(lower + rest - more_up), down)):
            if move == 0:
                continue
            if abs(move) > room[cell] * (1 + 1e-9):
                return None
            z = self.witness(cell, move, weight, down, up, exact=exact, time_limit_s=time_limit_s)
            if z is None:
                return None
            found.append(z)
        return found

    def witness(
        self,
        cell: int,
        move: float,
        weight: FloatArray,
        down: FloatArray,
        up: FloatArray,
        *,
        exact: bool = False,
        time_limit_s: float = 60.0,
    ) -> FloatArray | None:
        """Return the cheapest movement with ``z[cell] = move``, or None when there is none.

        Parameters
        ----------
        cell, move
            The cell to be moved, and by how much (signed).
        weight
            Cost of each cell: 0 for those already open.
        down, up
            Rooms of the attacker; the same arrays for a movement that must hold in both directions.
        exact
            Keep even movements as small as rounding: cells of little room among large ones.
        time_limit_s
            After this long the cell counts as not protected.
        """
        q = self.mover[cell]
        if q < 0:
            return None
        ratio = self.reduction.ratio[cell]
        target = move / ratio
        low, high = self._rooms(down, up)
        scale = abs(target)
        low, high = low / scale, high / scale
        cost = self._absolute @ (weight / self.unit)
        steep = np.clip(1.0 / np.maximum(np.minimum(low, high), 1e-300), 1.0, _STEEP)
        cost = cost * steep + 1e-4 * steep / len(cost) ** 0.5
        solve = self._null_space if self._prefer_null_space else self._range_space
        v = solve(q, np.sign(target), cost, low, high, time_limit_s)
        if v is None:
            return None
        v[np.abs(v) < (1e-13 if exact else _NOISE)] = 0.0
        return np.asarray(self.lift @ (v * scale))

    @property
    def _prefer_null_space(self) -> bool:
        # the split form is far faster until degeneracy stalls the simplex method on it
        return self.n_movers > 1800 and self.reduction.degrees_of_freedom < self.relations.shape[0] / 2

    def _range_space(
        self, q: int, sign: float, cost: FloatArray, low: FloatArray, high: FloatArray, limit: float
    ) -> FloatArray | None:
        k = self.n_movers
        lower, upper = np.zeros(2 * k), np.concatenate([high, low])
        at, other = (q, k + q) if sign > 0 else (k + q, q)
        if upper[at] < 1.0 - 1e-7:
            return None
        lower[at] = upper[at] = 1.0
        upper[other] = 0.0
        costs = np.concatenate([cost, cost])
        costs[at] = 0.0
        lp = LinearProgram(self._split, 0.0, 0.0, lower, upper, costs, simplex="dual", presolve=False, tolerance=1e-7)
        s = lp.solve(time_limit_s=limit)
        return s.x[:k] - s.x[k:] if s.optimal else None

    @cached_property
    def _split(self) -> csc_array:
        return csc_array(hstack([self.relations, -self.relations]))

    @cached_property
    def _transposed(self) -> csc_array:
        return csc_array(self.basis.T)

    def _null_space(
        self, q: int, sign: float, cost: FloatArray, low: FloatArray, high: FloatArray, limit: float
    ) -> FloatArray | None:
        """Solve the dual in the null space: ``N' u = 0``, ``|u| <= c``, rooms as penalty columns; z = N x row duals."""
        k = self.n_movers
        if (high if sign > 0 else low)[q] < 1.0 - 1e-7:
            return None
        tight = np.flatnonzero(np.minimum(low, high) < 2.0)
        lp: LinearProgram | None = None
        for _ in range(12):  # rooms that bind are added when a movement breaks them
            NT = self._transposed
            A = csc_array(hstack([NT, NT[:, tight], -NT[:, tight]]))
            lower = np.concatenate([-cost, np.zeros(2 * len(tight))])
            upper = np.concatenate([cost, np.full(2 * len(tight), np.inf)])
            costs = np.concatenate([np.zeros(k), high[tight], low[tight]])
            lower[q], upper[q], costs[q] = -np.inf, np.inf, -sign
            own = np.flatnonzero(tight == q)
            upper[k + own] = upper[k + len(tight) + own] = 0.0
            lp = LinearProgram(A, 0.0, 0.0, lower, upper, costs, solver="ipx", presolve=False, tolerance=1e-7)
            s = lp.solve(time_limit_s=limit)
            if not s.optimal:
                return None
            v = np.asarray(self.basis @ s.row_dual)
            v = v * (sign / v[q]) if abs(v[q]) > 1e-9 else v
            broken = np.flatnonzero((v > high * (1 + 1e-7) + 1e-12) | (v < -low * (1 + 1e-7) - 1e-12))
            broken = np.setdiff1d(broken, np.append(tight, q))
            if not len(broken):
                return v
            tight = np.append(tight, broken)
        return None
