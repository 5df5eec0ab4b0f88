"""Walks between the whole-number tables that agree with the published data.

The null space of the relations between the suppressed cells has a sparse basis; its columns, as whole
numbers, are moves from one candidate to another. Their combinations need not reach every candidate
(that would take a lattice basis), but every table they reach is a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.space.reduce import reduce
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["CandidateLattice"]

_LARGEST_DENOMINATOR = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateLattice:
    """Moves between candidates, and the bounds that they must respect."""

    moves: list[tuple[IntArray, IntArray]]
    """Each is a list of cells and how far they move together."""
    by_cell: dict[int, list[int]]
    """The moves that move a cell."""
    lo: FloatArray
    """Known lower bound of each cell."""
    hi: FloatArray
    """Known upper bound of each cell."""

    @classmethod
    def of(cls, relations: csr_array, free: BoolArray, lo: FloatArray, hi: FloatArray) -> CandidateLattice:
        """Return the moves of the free cells under the relations."""
        N = csc_array(reduce(relations, free).basis)
        moves = []
        for k in range(N.shape[1]):
            cells, values = N.indices[N.indptr[k] : N.indptr[k + 1]], N.data[N.indptr[k] : N.indptr[k + 1]]
            move = _scale_column_to_whole(np.asarray(cells, np.int64), values)
            if move is not None and not np.any(relations[:, move[0]] @ move[1].astype(np.float64)):
                moves.append(move)
        by_cell: dict[int, list[int]] = {}
        for k, (cells, _) in enumerate(moves):
            for cell in cells.tolist():
                by_cell.setdefault(cell, []).append(k)
        return cls(moves=moves, by_cell=by_cell, lo=lo, hi=hi)

    def count_moves(self, x: IntArray, move: tuple[IntArray, IntArray]) -> tuple[int, int]:
        """Return how often a move can be made backwards and forwards within the bounds."""
        cells, steps = move
        here = x[cells]
        down, up = here - self.lo[cells], self.hi[cells] - here
        size, most = np.abs(steps), float(1 << 40)
        forth = np.minimum(np.where(steps > 0, up, down), most) // size
        back = np.minimum(np.where(steps > 0, down, up), most) // size
        return -int(back.min()), int(forth.min())

    def walk(self, x: IntArray, steps: int, rng: np.random.Generator) -> IntArray:
        """Return a candidate some random moves away, each as far as a uniform draw says."""
        x = x.copy()
        for _ in range(steps if self.moves else 0):
            move = self._draw_move(rng, int(rng.integers(len(self.moves))))
            back, forth = self.count_moves(x, move)
            x[move[0]] += int(rng.integers(back, forth + 1)) * move[1]
        return x

    def walk_candidates(
        self, x: IntArray, cell: int, sign: int, steps: int, rng: np.random.Generator
    ) -> list[IntArray]:
        """Return candidates in which one cell moves further and further up (sign 1) or down (-1)."""
        path = []
        own = self.by_cell.get(cell, [])
        for _ in range(steps if own else 0):
            move = self._draw_move(rng, own[int(rng.integers(len(own)))])
            back, forth = self.count_moves(x, move)
            step = int(move[1][move[0] == cell].sum()) * sign
            k = forth if step > 0 else back
            if step != 0 and k != 0:
                x = x.copy()
                x[move[0]] += k * move[1]
                path.append(x)
            else:  # blocked: move other cells first
                x = self.walk(x, 1, rng) if step == 0 else self._move_sideways(x, cell, rng)
        return path

    def _move_sideways(self, x: IntArray, cell: int, rng: np.random.Generator) -> IntArray:
        """Make a random move that does not change the cell."""
        k = int(rng.integers(len(self.moves)))
        if k in self.by_cell[cell]:
            return x
        back, forth = self.count_moves(x, self.moves[k])
        x = x.copy()
        x[self.moves[k][0]] += int(rng.integers(back, forth + 1)) * self.moves[k][1]
        return x

    def _draw_move(self, rng: np.random.Generator, k: int) -> tuple[IntArray, IntArray]:
        """Return a move, or half of the time its sum or difference with another."""
        other = int(rng.integers(len(self.moves)))
        if rng.random() < 0.5 or other == k:
            return self.moves[k]
        sign = int(rng.integers(2)) * 2 - 1
        cells = np.concatenate([self.moves[k][0], self.moves[other][0]])
        steps = np.concatenate([self.moves[k][1], sign * self.moves[other][1]])
        union, where = np.unique(cells, return_inverse=True)
        total = np.rint(np.bincount(where, steps)).astype(np.int64)
        return union[total != 0], total[total != 0]


def _scale_column_to_whole(cells: IntArray, values: FloatArray) -> tuple[IntArray, IntArray] | None:
    """Return a column of the basis as the smallest whole numbers in its direction."""
    parts = [Fraction(float(v)).limit_denominator(_LARGEST_DENOMINATOR) for v in values]
    common = lcm(*(p.denominator for p in parts))
    whole = np.array([int(p * common) for p in parts], np.int64)
    whole //= max(1, gcd(*whole.tolist()))
    return (cells[whole != 0], whole[whole != 0]) if whole.any() else None
