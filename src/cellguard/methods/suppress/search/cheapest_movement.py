"""The cheapest movements that protect one cell: the linear programs under construction and repair."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.witnesses.cheapest import (
    AskedMovement,
    compute_witness_costs,
    find_cheapest_witness,
    limit_program_seconds,
    remove_movement_noise,
    split_witness_program,
)
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.search.space import PatternSpace

if TYPE_CHECKING:
    from cellguard._core.windows import Windows

__all__ = ["NEARBY", "Protector", "plan_movements"]

_PIVOTS = 5000
"""Pivots after which degeneracy has stalled the simplex method, and an interior point is faster."""

Plan = list[tuple[float, bool]]
"""Movements to be found: how far, signed, and whether the opposite movement must be possible too."""


def plan_movements(lower: float, upper: float, sliding: float, below: float, above: float) -> list[Plan]:
    """Ways to meet levels with the slack below and above: one movement for both sides, or one for each.

    >>> plan_movements(2.0, 4.0, 0.0, below=3.0, above=9.0)
    [[(4.0, False), (-2.0, False)]]
    >>> plan_movements(2.0, 2.0, 0.0, below=3.0, above=9.0)
    [[(2.0, True)], [(2.0, False), (-2.0, False)]]
    """
    out: list[Plan] = []
    level = max(lower, upper, sliding / 2.0)
    if level <= min(below, above):
        out.append([(level, True)])
    rest = max(0.0, sliding - lower - upper)
    more_up = min(rest, max(0.0, above - upper))  # the sliding level may be met on either side
    up, down = upper + more_up, lower + rest - more_up
    if up <= above * (1 + 1e-9) and down <= below * (1 + 1e-9):
        out.append([(move, False) for move in (up, -down) if move])
    return out


NEARBY = ((4, 1, 200), (4, 2, 600), (50, 2, 1_500))
"""Partners per relation, generations of them and rows of the windows around a row, tried in turn before all rows."""


class Protector:
    """The programs over all cells that may be suppressed; aliases are one variable.

    With `nearby`, a movement among the rows around a row is preferred to the cheapest one of all: programs over a few
    hundred rows take a millisecond, those over thousands take fifty. For rows that cost nothing that is good enough;
    for others it is not (a survey of 9,150 cells: 132 million instead of 97).
    """

    def __init__(self, space: PatternSpace, *, nearby: bool = False) -> None:
        self.space, self.nearby = space, nearby
        self.relations = space.variables.relations
        positive = space.weight[space.weight > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self._deadline = NEVER

    def find_movements(
        self,
        request: int,
        weight: FloatArray,
        *,
        exact: bool = False,
        closed: BoolArray | None = None,
        deadline: Deadline = NEVER,
    ) -> list[FloatArray] | None:
        """Return movements that meet a request: one that works both ways where there is one, else two.

        Rows that are `closed` stand still. None when there is none, or not before the deadline.
        """
        attacker, rows, down, up, slide = (a[request] for a in self.space.requests)
        low, high = self.space.get_bounds(int(attacker))
        if closed is not None:
            low, high = np.where(closed, 0.0, low), np.where(closed, 0.0, high)
        self._deadline = deadline
        row = int(rows)
        for plan in plan_movements(float(down), float(up), float(slide), float(-low[row]), float(high[row])):
            found = []
            for move, both in plan:
                slack = np.minimum(-low, high)
                z = self.find_witness(row, move, weight, *((-slack, slack) if both else (low, high)), exact=exact)
                if z is None:
                    break
                found.append(z)
            else:
                return found
        return None

    def find_witness(
        self, row: int, move: float, weight: FloatArray, low: FloatArray, high: FloatArray, *, exact: bool = False
    ) -> FloatArray | None:
        """Return the cheapest movement with ``z[row] = move`` (see :func:`find_cheapest_witness`), or None."""
        for size in NEARBY if self.nearby else ():
            z = self._find_witness_nearby(size, AskedMovement(row, move, weight, low, high))
            if z is not None:
                return z
        if not self._prefer_null_space:
            asked = AskedMovement(row, move, weight / self.unit, low, high)
            z = find_cheapest_witness(
                self.relations, asked, exact=exact, program=self._program, deadline=self._deadline
            )
            if z is not None or not self._program.stalled:
                return z
        scale = abs(move)
        v = self._solve_in_null_space(row, float(np.sign(move)), weight / self.unit, -low / scale, high / scale)
        return None if v is None else remove_movement_noise(v, scale, exact=exact)

    def _find_witness_nearby(self, size: tuple[int, int, int], asked: AskedMovement) -> FloatArray | None:
        """Return the cheapest movement among the rows around a row, or None."""
        able = (asked.low < 0) | (asked.high > 0)
        able[asked.row] = True
        rows = self._windows.around(asked.row, asked.weight, able, *size)
        if not len(rows):
            return None
        block = self._columns[:, rows]
        relations, place = np.unique(block.indices, return_inverse=True)
        block = csc_array((block.data, place, block.indptr), shape=(len(relations), len(rows)))
        weight, low, high = (of_row[rows] for of_row in (asked.weight / self.unit, asked.low, asked.high))
        at = int(np.searchsorted(rows, asked.row))
        v = find_cheapest_witness(block, AskedMovement(at, asked.move, weight, low, high), deadline=self._deadline)
        if v is None:
            return None
        z = np.zeros(len(self.space))
        z[rows] = v
        return z

    @cached_property
    def _columns(self) -> csc_array:
        return csc_array(self.relations)

    @cached_property
    def _windows(self) -> Windows:
        from cellguard._core.windows import Windows

        T, C = csr_array(self.relations), self._columns
        return Windows(*(a.astype(np.int64) for a in (T.indptr, T.indices, C.indptr, C.indices)))

    @property
    def _prefer_null_space(self) -> bool:
        # the split form is far faster until degeneracy stalls the simplex method on it
        return len(self.space) > 1800 and self.space.reduction.degrees_of_freedom < self.relations.shape[0] / 6

    @cached_property
    def _program(self) -> LinearProgram:
        program = split_witness_program(self.relations)
        program.set_options(simplex_iteration_limit=_PIVOTS)
        return program

    @cached_property
    def _basis(self) -> csr_array:
        return csr_array(self.space.reduction.basis[self.space.cells])

    @cached_property
    def _transposed(self) -> csc_array:
        return csc_array(self._basis.T)

    def _solve_in_null_space(
        self, q: int, sign: float, weight: FloatArray, below: FloatArray, above: FloatArray
    ) -> FloatArray | None:
        """Solve the dual in the null space: ``N' u = 0``, ``|u| <= c``, bounds as penalties; z = N x row duals."""
        k = len(self.space)
        if (above if sign > 0 else below)[q] < 1.0 - 1e-7:
            return None
        cost = compute_witness_costs(weight, below, above)
        tight = np.flatnonzero(np.minimum(below, above) < 2.0)
        for _ in range(12):  # bounds that bind are added when a movement breaks them
            NT = self._transposed
            A = csc_array(hstack([NT, NT[:, tight], -NT[:, tight]]))
            lower = np.concatenate([-cost, np.zeros(2 * len(tight))])
            upper = np.concatenate([cost, np.full(2 * len(tight), np.inf)])
            objective = np.concatenate([np.zeros(k), above[tight], below[tight]])
            lower[q], upper[q], objective[q] = -np.inf, np.inf, -sign
            own = np.flatnonzero(tight == q)
            upper[k + own] = upper[k + len(tight) + own] = 0.0
            lp = LinearProgram(LinearModel(A, 0.0, 0.0, lower, upper, objective), Way(solver="ipx", tolerance=1e-7))
            s = lp.solve(time_limit_s=limit_program_seconds(self._deadline))
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
