"""Feasible movements of a few variables each: tables that an attacker cannot exclude, found without a large program.

Where much is uncertain, as in a rounded table, a cell can move together with only the sums that contain
it. Such movements are columns of the null space. Up and down they cancel in the sums, so
that thousands fit into one movement; a cell whose column is blocked gets a program over the columns
around it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, SolveStatus
from cellguard._types import FloatArray, IntArray

__all__ = ["SmallMovements"]


_AROUND = (8, 60, 300)
"""Number of columns in the program around a variable, when fewer did not suffice."""


class SmallMovements:
    """Movements made of few columns of a null-space basis.

    Parameters
    ----------
    N
        Basis of the null space: variables by parameters.
    down, up
        How far each variable can move.
    """

    def __init__(self, N: csr_array, down: FloatArray, up: FloatArray, deadline: Deadline = NEVER) -> None:
        self.by_variable, self.by_column = csr_array(N), csc_array(N)
        self.down, self.up, self.deadline = down, up, deadline
        self.length = np.diff(self.by_column.indptr)
        self.rng = np.random.default_rng(0)

    def combine_movements(self, wanted: list[tuple[int, IntArray, FloatArray]]) -> FloatArray:
        """Return one movement in which many variables reach their levels: (side, variables, levels) each."""
        from cellguard._core.pile import pile_up

        column, amount = [np.zeros(0, np.int64)], [np.zeros(0)]
        for side, variables, level in wanted:
            rows = csr_array(self.by_variable[variables])
            owner = np.repeat(np.arange(len(variables)), np.diff(rows.indptr))
            order = np.lexsort((self.length[rows.indices], owner))  # the column that moves the fewest others
            entry = order[np.unique(owner[order], return_index=True)[1]]
            column.append(rows.indices[entry].astype(np.int64))
            amount.append(side * level[owner[entry]] / rows.data[entry])
        columns, amounts = np.concatenate(column), np.concatenate(amount)
        order = self.rng.permutation(len(columns))
        N = self.by_column
        return pile_up(
            N.indptr.astype(np.int64), N.indices.astype(np.int64), N.data,
            columns[order], amounts[order], self.down, self.up,
        )  # fmt: skip

    def find_around(self, variable: int, side: int, level: float) -> FloatArray | None:
        """Return a movement in which a variable goes to its level, or as far as the columns around it allow."""
        columns = self._select_shortest_columns(np.array([variable]), _AROUND[0])
        movement = None
        for size in _AROUND:
            sub = csr_array(self.by_column[:, columns])
            touched = np.flatnonzero(np.diff(sub.indptr))
            N = csr_array(sub[touched])
            free = np.full(len(columns), np.inf)
            place = int(np.searchsorted(touched, variable))
            down, up = self.down[touched], self.up[touched].copy()
            far = (up if side > 0 else down).copy()
            far[place] = min(far[place], level)
            limits = (-down, far) if side > 0 else (-far, up)
            cost = side * csr_array(N[[place]]).toarray()[0]
            found = LinearProgram(LinearModel(N, *limits, -free, free, cost)).solve(
                maximize=True, time_limit_s=self.deadline.get_seconds_at_least()
            )
            if found.status is not SolveStatus.OPTIMAL:
                return movement
            v = N @ found.x
            movement = np.zeros(len(self.up))
            movement[touched] = np.clip(v, -down, up)
            if side * v[place] >= level * (1 - 1e-9):
                return movement
            blocked = touched[(v <= -down * (1 - 1e-9)) | (v >= up * (1 - 1e-9))]
            columns = np.unique(np.concatenate([columns, self._select_shortest_columns(blocked, size)]))
        return movement

    def _select_shortest_columns(self, variables: IntArray, most: int) -> IntArray:
        """Return the shortest columns that move some of the variables."""
        columns = np.unique(csr_array(self.by_variable[variables]).indices).astype(np.int64)
        return np.sort(columns[np.argsort(self.length[columns], kind="stable")[:most]])
