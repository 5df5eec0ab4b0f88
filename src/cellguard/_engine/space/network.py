"""Tables that are networks: every movement is a circulation, and every attack a cut.

Two-dimensional tables are networks, even when one of the dimensions is hierarchical: a cell is an arc between
two of its relations (a line and a column). The largest flow through an arc is the capacity of the narrowest cut around
it, which takes no linear program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._core import mincut
from cellguard._engine.space.groups import find_groups
from cellguard._engine.space.reduce import Reduction
from cellguard._types import BoolArray, ByteArray, FloatArray, IntArray

__all__ = ["Network", "build_adjacency"]


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs between relations. A cell that moves up carries its movement from its tail to its head."""

    cells: IntArray
    """The table's cell of each arc: those that can move."""
    tail: IntArray
    head: IntArray
    n_nodes: int
    """The last node is the outside."""

    @classmethod
    def of(cls, reduction: Reduction) -> Network | None:
        """Recognise the network in the rest of a table; None if there is none.

        Some relations follow from others (the line of a subtotal from the lines below it). Take relations as
        long as no cell lies in three of them, first those whose cells lie in few; they are enough if their rank is.
        """
        cells = np.flatnonzero(~reduction.determined)
        T = csr_array(reduction.relations[:, cells])
        T.eliminate_zeros()
        T = csr_array(T[_select_network_relations(T)])
        if T.nnz and not (np.abs(T.data) == 1.0).all():
            return None
        by_cell = T.tocsc()
        by_cell.sort_indices()
        count = np.diff(by_cell.indptr)
        first, second = by_cell.indptr[:-1][count > 0], by_cell.indptr[:-1][count > 1] + 1
        pairs = by_cell.indices[first[count[count > 0] > 1]], by_cell.indices[second]
        opposed = by_cell.data[first[count[count > 0] > 1]] * by_cell.data[second] < 0
        turn = _find_relation_signs(T.shape[0], *pairs, opposed)
        if turn is None:
            return None
        outside = T.shape[0]
        ends = np.full((2, len(cells)), outside, np.int64)  # tail and head
        enters = by_cell.data * turn[by_cell.indices] > 0
        arc = np.repeat(np.arange(len(cells)), count)
        ends[enters.astype(np.int64), arc] = by_cell.indices
        network = cls(cells, ends[0], ends[1], outside + 1)
        return network if network._compute_rank() == len(cells) - reduction.degrees_of_freedom else None

    def _compute_rank(self) -> int:
        return self.n_nodes - len(np.unique(find_groups(self.tail, self.head, self.n_nodes)))

    @cached_property
    def arcs(self) -> tuple[IntArray, IntArray]:
        """For every node its arcs: where they begin in the list, and their numbers, ``~j`` where arc j enters."""
        return build_adjacency(self.tail, self.head, self.n_nodes)

    def list_arcs(self, node: int) -> tuple[IntArray, IntArray]:
        """Return the arcs that leave a node, and those that enter it; not loops."""
        begin, arcs = self.arcs
        here = arcs[begin[node] : begin[node + 1]]
        leaving, entering = here[here >= 0], ~here[here < 0]
        return leaving[self.head[leaving] != node], entering[self.tail[entering] != node]

    def narrow(
        self, cell: IntArray, sign: FloatArray, level: FloatArray, upper: FloatArray, lower: FloatArray
    ) -> tuple[FloatArray, ByteArray]:
        """Find the cut that keeps each arc from moving by its level, if there is one.

        Returns
        -------
        tuple
            How far each arc moves, at most its level; and a row of nodes for each that falls short: 1 on the near
            side of the first narrowest cut, 2 beyond the last, 0 in between.
        """
        return mincut.narrow((self.tail, self.head, *self.arcs), cell, sign > 0, level, upper, lower)


def build_adjacency(tail: IntArray, head: IntArray, n_nodes: int) -> tuple[IntArray, IntArray]:
    """Return for every node its arcs: where they begin, and their numbers, ``~j`` where arc j enters.

    >>> start, arcs = build_adjacency(np.array([0, 1]), np.array([1, 2]), 3)
    >>> start.tolist(), arcs.tolist()
    ([0, 1, 3, 4], [0, -1, 1, -2])
    """
    ends = np.stack([tail, head], axis=1).ravel()
    order = np.argsort(ends, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n_nodes))])
    return start, np.where(order % 2 == 0, order // 2, ~(order // 2))


def _select_network_relations(T: csr_array) -> IntArray:
    """Return relations such that no cell lies in more than two, as many as one pass finds."""
    lengths = np.diff(T.indptr)
    degree = np.bincount(T.indices, minlength=T.shape[1])
    crowded = np.add.reduceat(np.append(degree[T.indices], 0), T.indptr[:-1]) / np.maximum(lengths, 1)
    left = np.full(T.shape[1], 2, np.int8)
    seen: set[bytes] = set()
    taken = []
    for row in np.argsort(crowded, kind="stable"):
        cells = T.indices[T.indptr[row] : T.indptr[row + 1]]
        if len(cells) and left[cells].all() and (key := np.sort(cells).tobytes()) not in seen:
            seen.add(key)
            left[cells] -= 1
            taken.append(row)
    return np.sort(np.array(taken, np.int64))


def _find_relation_signs(n: int, one: IntArray, other: IntArray, opposed: BoolArray) -> IntArray | None:
    """Return signs of the relations such that each cell enters one and leaves the other; None if impossible."""
    # two copies of every relation, unchanged and reversed; find which copies belong together
    start = np.concatenate([one, one + n])
    end = np.concatenate([np.where(opposed, other, other + n), np.where(opposed, other + n, other)])
    group = find_groups(start, end, 2 * n)
    if (group[:n] == group[n:]).any():
        return None
    return np.where(group[:n] < group[n:], 1, -1)
