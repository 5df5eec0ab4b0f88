"""The smallest union of pieces that two tables determine and that contains a given piece.

Areas are the nodes of a graph with two sides, and every piece is an edge between its two areas. The published totals
determine a union of pieces exactly if its indicator is a sum of areas with coefficients. Such coefficients are a
potential of the nodes: those of the two ends of an edge add up to 1 inside the union and to 0 outside. The sets of
nodes above each level of the potential cut the graph, and the edges of these cuts are disjoint parts of the union. So
the smallest determined unions are cuts all of whose edges leave the side of the first table: areas of the first table
minus areas of the second that lie inside them. The smallest such cut through a piece is a minimum cut in a network
where every edge has the size of its piece in one direction and no limit in the other.

Areas that are not published have no coefficient: those of one table are one node, because only their sum follows from
the total. If the total is not published, all unpublished areas are one node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["AreaCut", "AreaGraph"]

_LIMIT = 2**30
"""Capacities are 32-bit numbers: larger sums are scaled to this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaCut:
    """A determined union: the nodes on the side of the first table."""

    inside: BoolArray
    """For each node, whether it is on that side."""
    edges: IntArray
    """The edges that are cut: the pieces of the union."""


class AreaGraph:
    """The areas of two tables, with their common pieces as edges.

    Parameters
    ----------
    first, second
        Area of each piece in either table, from 0.
    published
        Which areas of either table are published.
    total
        Whether the total of all records is known.
    """

    def __init__(
        self, first: IntArray, second: IntArray, published: tuple[BoolArray, BoolArray], *, total: bool = True
    ) -> None:
        self.n_first, self.n_second = len(published[0]), len(published[1])
        n = self.n_first + self.n_second
        node = np.arange(n + 2)
        roots = (n, n + 1 if total else n)
        node[: self.n_first][~published[0]] = roots[0]
        node[self.n_first : n][~published[1]] = roots[1]
        self.roots, self.n_nodes = roots, n + 2
        self.start, self.end = node[first], node[self.n_first + second]
        self.loops = self.start == self.end

    def find_smallest_cut(self, piece: int, size: FloatArray) -> AreaCut | None:
        """Return the smallest determined union that contains a piece, or None if there is none."""
        return self.find_smallest_cuts(np.array([piece]), size)[0]

    def find_smallest_cuts(self, pieces: IntArray, size: FloatArray) -> list[AreaCut | None]:
        """Return the smallest determined union around each of some pieces; `size` is not negative."""
        network = _Network(self, size)
        return [
            None if self.loops[piece] else network.cut(int(self.start[piece]), int(self.end[piece])) for piece in pieces
        ]


class _Network:
    def __init__(self, graph: AreaGraph, size: FloatArray) -> None:
        from scipy.sparse import coo_array, csr_array

        self.graph = graph
        use = ~graph.loops
        total = float(size[use].sum())
        scale = 1.0 if total < _LIMIT and (size == np.rint(size)).all() else _LIMIT / 2 / max(total, 1e-300)
        weight = np.maximum(np.rint(size[use] * scale), 1).astype(np.int64)
        self.free = int(weight.sum()) + 1
        n, start, end = graph.n_nodes, graph.start[use], graph.end[use]
        ahead = coo_array((weight, (start, end)), shape=(n, n)).tocsr()
        back = coo_array((np.ones(len(start)), (end, start)), shape=(n, n)).tocsr()
        back.data[:] = self.free
        both = csr_array(ahead + back)
        both.data = np.minimum(both.data, self.free)
        self.capacity = csr_array(both.astype(np.int32))

    def cut(self, source: int, sink: int) -> AreaCut | None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        found = maximum_flow(self.capacity, source, sink)
        if found.flow_value >= self.free:
            return None
        left = csr_array(self.capacity - found.flow)
        left.data = np.where(left.data > 0, left.data, 0)
        left.eliminate_zeros()
        reached = breadth_first_order(left, source, return_predecessors=False)
        inside = np.zeros(self.graph.n_nodes, bool)
        inside[reached] = True
        g = self.graph
        return AreaCut(inside=inside, edges=np.flatnonzero(inside[g.start] & ~inside[g.end]))
