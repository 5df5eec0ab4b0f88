"""Results for many views, in terms of cells: movements, what each of them shows, and the verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.ranges import get_entries
from cellguard._engine.ranges.sight import ShownRanges
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.views import Views
from cellguard._engine.ranges.witnesses.witness import ExactMovements
from cellguard._tolerances import LEVEL_SHARE
from cellguard._types import FloatArray, IntArray

__all__ = ["FoundMovements", "Verdicts"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdicts(ShownRanges):
    """Results for every request of the views; feasible means that the view cannot exclude it."""

    disclosed: IntArray
    """Unpublished cells that everybody can still compute exactly, found without a program."""
    disclosed_to: tuple[IntArray, IntArray]
    """Views, and the further cells that their own knowledge discloses to them."""
    low_share: FloatArray
    """Share of the witness's movement that the view's own bounds allow, at most 1."""
    high_share: FloatArray

    def select_requests(self, requests: slice) -> Verdicts:
        """Return the verdicts on some requests."""
        names = ["low", "high", "low_bound", "high_bound", "safe", "unsafe"]
        names += ["low_witness", "high_witness", "low_share", "high_share"]
        return replace(self, **{name: getattr(self, name)[requests] for name in names})


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundMovements:
    """Movements, and what each of them shows; two rows for down and up, a column for each request."""

    system: System
    views: Views
    movements: csr_array
    """Movements of the whole table that the public bounds allow, one row each."""
    rows: IntArray
    """The movement in which each cell goes furthest; -1: none."""
    shares: FloatArray
    """Share of it that the view's bounds allow."""
    bounds: FloatArray
    """Proven: no cell goes further."""
    disclosed_to: tuple[IntArray, IntArray]
    """See :class:`Verdicts`."""
    programs: int

    @classmethod
    def of(
        cls,
        system: System,
        views: Views,
        tally: Tally,
        movements: csr_array,
        disclosed_to: tuple[IntArray, IntArray],
        programs: int,
    ) -> FoundMovements:
        """Translate results from variables to cells: a cell that moves backward swaps the sides."""
        q, n = tally.questions, len(views.cell)
        rows, shares, bounds = np.full((2, n), -1, np.int64), np.ones((2, n)), np.zeros((2, n))
        low = np.stack([tally.low_row, tally.low_share, tally.low_bound])
        high = np.stack([tally.high_row, tally.high_share, tally.high_bound])
        for side, (this, other) in enumerate(((low, high), (high, low))):
            row, share, bound = np.where(q.ratio > 0, this, other)
            rows[side, q.number], shares[side, q.number] = row.astype(np.int64), share
            bounds[side, q.number] = bound * np.abs(q.ratio)
        return cls(
            system=system,
            views=views,
            movements=movements,
            rows=rows,
            shares=shares,
            bounds=bounds,
            disclosed_to=disclosed_to,
            programs=programs,
        )

    def measure_movements(self, movements: csr_array) -> FloatArray:
        """Return how far down and up the movements, scaled to the allowed shares, take each cell."""
        cell = self.views.cell
        moved = np.stack([get_entries(movements, self.rows[side], cell) for side in (0, 1)])
        return np.maximum(self.shares * moved * np.array([[-1.0], [1.0]]), 0.0)

    def decide(self, point: FloatArray, proof: ExactMovements | None = None) -> Verdicts:
        """Judge by the movements, or by their exact form if given."""
        v = self.views
        movements = self.movements if proof is None else proof.convert_to_floats()
        down, up = self.measure_movements(movements)
        keep = 1 - 0.9 * LEVEL_SHARE  # the rest is reserved for checking the witnesses in other arithmetic
        safe = (up >= v.upper * keep) & (down >= v.lower * keep) & (up + down >= v.sliding * keep)
        keep = 1 - LEVEL_SHARE
        below, above = self.bounds
        unsafe = (above < v.upper * keep) | (below < v.lower * keep) | (below + above < v.sliding * keep)
        a = point[v.cell]
        return Verdicts(
            low=a - down,
            high=a + up,
            low_bound=a - below,
            high_bound=a + above,
            safe=safe,
            unsafe=unsafe & ~safe,
            disclosed=np.flatnonzero(self.system.free & self.system.reduction.determined),
            disclosed_to=self.disclosed_to,
            witnesses=movements,
            exact_witnesses=proof,
            low_witness=self.rows[0],
            high_witness=self.rows[1],
            low_share=self.shares[0],
            high_share=self.shares[1],
            programs=self.programs,
        )
