"""The reduced space: variables instead of cells, how far they can move, and the way back.

A variable is a class of cells that can only move together. All code on movements (ranges, patterns, widths,
closest tables) works on the variables of a :class:`Space`, and translates with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._core.elimination import between_classes
from cellguard._engine.space.echelon_form import reduce_to_echelon_form
from cellguard._types import FloatArray, IntArray

if TYPE_CHECKING:
    from cellguard._engine.space.reduce import Reduction

__all__ = [
    "Space",
    "compute_group_slack",
    "convert_matrix_for_core",
    "convert_slack_to_variables",
    "list_group_members",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """The movements that a reduction leaves: ``relations @ v = 0``, and ``lift @ v`` moves the cells."""

    reduction: Reduction
    cells: IntArray
    """Representative cell of each variable."""
    variable_of: IntArray
    """Variable of each cell; -1 for cells that cannot move."""

    @classmethod
    def of(cls, reduction: Reduction) -> Space:
        """Merge the cells that move together into one variable each."""
        moving = reduction.alias >= 0
        cells, index = np.unique(reduction.alias[moving], return_inverse=True)
        variable_of = np.full(len(moving), -1, np.int64)
        variable_of[moving] = index
        return cls(reduction=reduction, cells=cells, variable_of=variable_of)

    def __len__(self) -> int:
        return len(self.cells)

    # ------------------------------------------------------------------ cells and variables

    @cached_property
    def members(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells that can move, the variable of each, and its movement divided by that of the variable."""
        cells = np.flatnonzero(self.variable_of >= 0)
        return cells, self.variable_of[cells], self.reduction.ratio[cells]

    @cached_property
    def lift(self) -> csr_array:
        """Cells by variables: movements of all cells from those of the variables."""
        _, variables, ratio = self.members
        start = np.concatenate([[0], np.cumsum(self.variable_of >= 0)])  # one entry for each cell that can move
        return csr_array((ratio, variables, start), shape=(len(self.variable_of), len(self)))

    @cached_property
    def sorted_members(self) -> tuple[IntArray, FloatArray, IntArray]:
        """The members by variable: their cells, their ratios, and where each variable begins."""
        cells, variables, ratio = self.members
        order = np.argsort(variables, kind="stable")
        return cells[order], ratio[order], np.searchsorted(variables[order], np.arange(len(self)))

    def compute_member_slack(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far down and up each of the sorted members lets its variable move."""
        cells, ratio, _ = self.sorted_members
        return convert_slack_to_variables(ratio, down[cells], up[cells])

    def compute_least(self, value: FloatArray) -> FloatArray:
        """Return the least value of each variable's sorted members."""
        return np.minimum.reduceat(value, self.sorted_members[2]) if len(self) else np.zeros(0)

    def compute_slack(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far each variable can move down and up, given the slack of its cells: the least of them."""
        below, above = self.compute_member_slack(down, up)
        return self.compute_least(below), self.compute_least(above)

    def spread(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the widths of all cells, given those of the variables: a cell that moves backward swaps the sides."""
        positive, negative = self.lift.maximum(0.0), (-self.lift).maximum(0.0)
        return positive @ lower + negative @ upper, positive @ upper + negative @ lower

    # ------------------------------------------------------------------ structure

    @cached_property
    def relations(self) -> csr_array:
        """Independent relations between the variables."""
        from cellguard._engine.space.reduce import scale_to_whole_coefficients, select_independent_rows

        r = self.reduction
        start, column, value = between_classes(
            *convert_matrix_for_core(r.relations), r.rows, self.variable_of, r.ratio, len(self)
        )
        A = csr_array((value, column, start), shape=(len(start) - 1, len(self)))
        if A.shape[0] > len(self) - r.degrees_of_freedom:
            # merging can make relations vanish or repeat; the general elimination finds out which
            A = A[select_independent_rows(scale_to_whole_coefficients(A))]
        return A

    @cached_property
    def basis(self) -> csr_array:
        """Basis of the movements: variables by parameters."""
        return csr_array(self.reduction.basis[self.cells])

    @property
    def component(self) -> IntArray:
        """Component of each variable: different components share no relation."""
        return self.reduction.component[self.cells]

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.reduction.n_components

    def compute_echelon(
        self, variables: IntArray | None = None, parameters: IntArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Basis in echelon form, of some components or all; see :func:`reduce_to_echelon_form`."""
        N = self.basis if variables is None else self.basis[variables]
        return reduce_to_echelon_form(N if parameters is None or len(parameters) == N.shape[1] else N[:, parameters])


def convert_matrix_for_core(M: csr_array | csc_array) -> tuple[IntArray, IntArray, FloatArray]:
    """Return a sparse matrix as the compiled core takes it: where its rows (or columns) begin, indices, entries."""
    return M.indptr.astype(np.int64), M.indices.astype(np.int64), M.data


def convert_slack_to_variables(ratio: FloatArray, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distances down and up of cells as those of their variables: a cell that moves backward swaps them."""
    forward, size = ratio > 0, np.abs(ratio)
    return np.where(forward, down, up) / size, np.where(forward, up, down) / size


def compute_group_slack(
    ratio: FloatArray, down: FloatArray, up: FloatArray, group: IntArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return how far down and up the members of each group let it move: the least of them, in the group's own unit."""
    below, above = np.full(n, np.inf), np.full(n, np.inf)
    for least, each in zip((below, above), convert_slack_to_variables(ratio, down, up), strict=True):
        np.minimum.at(least, group, each)
    return below, above


def list_group_members(group: IntArray, n_groups: int) -> list[IntArray]:
    """Return the indices of the members of each group, in order; leave out those without a group (-1)."""
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(n_groups + 1))
    return [order[cuts[g] : cuts[g + 1]] for g in range(n_groups)]
