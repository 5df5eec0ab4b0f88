"""The reduced space, once: variables instead of cells, how far they can move, and the way back.

A variable is a class of cells that can only move together. Whoever works on movements (ranges, patterns, widths,
closest tables) works on the variables of a :class:`Space`, and translates by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._core.elimination import between_classes
from cellguard._engine.space.echelon_form import in_echelon_form
from cellguard._types import FloatArray, IntArray

if TYPE_CHECKING:
    from cellguard._engine.space.reduce import Reduction

__all__ = [
    "Space", "least_room_of_space_groups", "members_of_groups", "room_per_space_variable", "space_matrix_for_core",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """The movements that a reduction leaves: ``relations @ v = 0``, and ``lift @ v`` are those of the cells."""

    reduction: Reduction
    cells: IntArray
    """Representative cell of each variable."""
    variable_of: IntArray
    """Variable of each cell; -1 for cells that cannot move."""

    @classmethod
    def of(cls, reduction: Reduction) -> Space:
        """Make one variable of the cells that move together."""
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
        """The members variable by variable: their cells, their ratios, and where each variable's begin."""
        cells, variables, ratio = self.members
        order = np.argsort(variables, kind="stable")
        return cells[order], ratio[order], np.searchsorted(variables[order], np.arange(len(self)))

    def member_room(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far down and up each of the sorted members lets its variable move."""
        cells, ratio, _ = self.sorted_members
        return room_per_space_variable(ratio, down[cells], up[cells])

    def least(self, value: FloatArray) -> FloatArray:
        """The least value of each variable's sorted members."""
        return np.minimum.reduceat(value, self.sorted_members[2]) if len(self) else np.zeros(0)

    def room(self, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far each variable can move down and up when its cells can move so far: the least of them."""
        below, above = self.member_room(down, up)
        return self.least(below), self.least(above)

    def spread(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Widths of all cells from those of the variables: a cell that moves backward swaps the sides."""
        positive, negative = self.lift.maximum(0.0), (-self.lift).maximum(0.0)
        return positive @ lower + negative @ upper, positive @ upper + negative @ lower

    # ------------------------------------------------------------------ structure

    @cached_property
    def relations(self) -> csr_array:
        """Independent relations between the variables."""
        from cellguard._engine.space.reduce import independent_rows, reduced_to_whole_coefficients

        r = self.reduction
        start, column, value = between_classes(
            *space_matrix_for_core(r.relations), r.rows, self.variable_of, r.ratio, len(self)
        )
        A = csr_array((value, column, start), shape=(len(start) - 1, len(self)))
        if A.shape[0] > len(self) - r.degrees_of_freedom:
            # merging can make relations vanish or repeat; the general elimination finds out which
            A = A[independent_rows(reduced_to_whole_coefficients(A))]
        return A

    @cached_property
    def basis(self) -> csr_array:
        """Basis of the movements: variables by parameters."""
        return csr_array(self.reduction.basis[self.cells])

    @property
    def component(self) -> IntArray:
        """Component of each variable: those of different ones share no relation."""
        return self.reduction.component[self.cells]

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.reduction.n_components

    def echelon(
        self, variables: IntArray | None = None, parameters: IntArray | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Basis in echelon form, of some components or all; see :func:`in_echelon_form`."""
        N = self.basis if variables is None else self.basis[variables]
        return in_echelon_form(N if parameters is None or len(parameters) == N.shape[1] else N[:, parameters])


def space_matrix_for_core(M: csr_array | csc_array) -> tuple[IntArray, IntArray, FloatArray]:
    """A sparse matrix as the compiled core takes it: where its rows (or columns) begin, indices, entries."""
    return M.indptr.astype(np.int64), M.indices.astype(np.int64), M.data


def room_per_space_variable(ratio: FloatArray, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distances down and up of cells as those of their variables: a cell that moves backward swaps them."""
    forward, size = ratio > 0, np.abs(ratio)
    return np.where(forward, down, up) / size, np.where(forward, up, down) / size


def least_room_of_space_groups(
    ratio: FloatArray, down: FloatArray, up: FloatArray, group: IntArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """How far down and up the members of each group let it move: the least of them, in the group's own unit."""
    below, above = np.full(n, np.inf), np.full(n, np.inf)
    for least, each in zip((below, above), room_per_space_variable(ratio, down, up), strict=True):
        np.minimum.at(least, group, each)
    return below, above


def members_of_groups(group: IntArray, n_groups: int) -> list[IntArray]:
    """Return the indices of the members of each group, in order; those of none (-1) are left out."""
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(n_groups + 1))
    return [order[cuts[g] : cuts[g + 1]] for g in range(n_groups)]
