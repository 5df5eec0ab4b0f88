"""Rows found during a search: their pool, and a linear program that adds and drops them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.solvers.lp import DUAL, LinearModel, LinearProgram, Solution
from cellguard._types import FloatArray, IntArray

__all__ = ["Pool", "Relaxation", "Row", "build_matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """``coefficients @ y[columns] >= rhs``."""

    columns: IntArray
    coefficients: FloatArray
    rhs: float

    def measure_violation(self, y: FloatArray) -> float:
        """Return by how much a point violates the row."""
        return float(self.rhs - self.coefficients @ y[self.columns])

    @property
    def key(self) -> tuple[bytes, bytes, float]:
        """Equal rows have equal keys."""
        return self.columns.tobytes(), np.round(self.coefficients, 7).tobytes(), round(self.rhs, 7)


class Pool:
    """All inequalities found so far, once each, as one matrix."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.rows: list[Row] = []
        self._known: set[tuple[bytes, bytes, float]] = set()
        self._blocks: list[csr_array] = []

    def add(self, rows: list[Row]) -> list[Row]:
        """Add rows; return those that are new."""
        fresh = []
        for row in rows:
            if row.key not in self._known:
                self._known.add(row.key)
                fresh.append(row)
        if fresh:
            self.rows += fresh
            self._blocks.append(build_matrix(fresh, self.n))
            if len(self._blocks) > 20:
                self._blocks = [csr_array(vstack(self._blocks))]
        return fresh

    def select_violated(self, y: FloatArray, violation: float, most: int) -> list[Row]:
        """Return the rows that a point violates most."""
        if not self.rows:
            return []
        activity = np.concatenate([block @ y for block in self._blocks])
        excess = np.array([row.rhs for row in self.rows]) - activity
        worst = np.argsort(-excess, kind="stable")[:most]
        return [self.rows[k] for k in worst[excess[worst] > violation]]


def build_matrix(rows: list[Row], n: int) -> csr_array:
    """Return rows as a sparse matrix."""
    pointer = np.concatenate([[0], np.cumsum([len(r.columns) for r in rows])])
    data = np.concatenate([np.zeros(0), *(r.coefficients for r in rows)])
    columns = np.concatenate([np.zeros(0, np.int64), *(r.columns for r in rows)])
    return csr_array((data, columns, pointer), shape=(len(rows), n))


class Relaxation:
    """``min cost x`` within bounds, subject to rows that are added and dropped."""

    def __init__(self, cost: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        self.cost, self.lower, self.upper = cost, lower, upper
        self.rows: list[Row] = []
        none = np.zeros(0)
        self._program = LinearProgram(LinearModel(csr_array((0, len(cost))), none, none, lower, upper, cost), DUAL)

    def add(self, rows: list[Row]) -> None:
        """Add rows."""
        if rows:
            sides = np.array([row.rhs for row in rows])
            self._program.add_rows(build_matrix(rows, len(self.cost)), sides, np.full(len(rows), np.inf))
            self.rows += rows

    def remove_slack_rows(self, x: FloatArray, slack: float) -> None:
        """Drop the rows that a point satisfies with at least this much slack."""
        left = np.array([row.measure_violation(x) >= -slack for row in self.rows], np.bool_)
        self._program.delete_rows(np.flatnonzero(~left))
        self.rows = [row for row, stays in zip(self.rows, left, strict=True) if stays]

    def solve(self, time_limit_s: float) -> Solution:
        """Solve from where the last solve ended."""
        return self._program.solve(time_limit_s=time_limit_s)

    def prove(self, dual: FloatArray) -> tuple[float, FloatArray]:
        """Return the bound that multipliers of the rows prove, and the reduced costs that belong to it.

        Both hold regardless of what the solver returns: a point that takes a variable to its upper bound costs at least
        the bound and the variable's reduced cost, where that is positive, times the distance of its bounds.
        """
        A, sides = build_matrix(self.rows, len(self.cost)), np.array([row.rhs for row in self.rows])
        model = LinearModel(A, sides, np.full(len(sides), np.inf), self.lower, self.upper, self.cost)
        dual = np.maximum(dual, 0.0)
        return model.compute_duality_bound(dual), self.cost - A.T @ dual
