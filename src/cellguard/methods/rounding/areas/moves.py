"""Moves between areas that keep every sum: cycles over pairs, in each direction of the table, and small programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cellguard._core.areas import cancel_pairs
from cellguard._types import IntArray
from cellguard.methods.rounding.areas.area_relaxation import make_areas_whole
from cellguard.methods.rounding.areas.grid import AreaGrid, Prices, build_cross_section

__all__ = ["Moves"]


_FAR_PAIRS = 20_000
"""Pairs of areas of different families that are tried in a sweep."""
_PAIRS_PER_AREA = 40
"""Maximum number of pairs of a family that are tried per area in a sweep."""
_MEND_TIME_S = 5.0
"""For each small program."""


class Moves:
    """Improves and repairs roundings of a grid in place."""

    def __init__(self, grid: AreaGrid, rng: Generator) -> None:
        self.grid, self.rng = grid, rng
        self.leaves = np.setdiff1d(np.arange(grid.shape[0]), np.array(list(grid.parts)))

    def draw_pairs(self, areas: IntArray) -> IntArray:
        """Return pairs of areas in random order: all, or a good number of them."""
        i, j = np.triu_indices(len(areas), 1)
        chosen = self.rng.permutation(len(i))[: _PAIRS_PER_AREA * len(areas)]
        return np.stack([areas[i[chosen]], areas[j[chosen]]], axis=1)

    def cancel(self, x: IntArray, pairs: IntArray, prices: Prices) -> float:
        """Cancel negative cycles over pairs of areas; sums of only one of both move along. Returns the gain."""
        grid = self.grid
        soft, flat = grid.soft.ravel(), x.reshape(grid.flat)
        return cancel_pairs(grid.network, pairs, grid.parent, grid.build_cells(prices), soft, flat)

    def cancel_cycles(self, x: IntArray, prices: Prices, rounds: int) -> None:
        """Cancel cycles in families, between them, in single areas, and across lines and codes, while that helps."""
        alone = np.stack([self.leaves, np.full(len(self.leaves), -1)], axis=1)
        for _ in range(rounds):
            gain = sum(self.cancel(x, self.draw_pairs(self.grid.parts[g]), prices) for g in self.grid.families)
            gain += self.cancel(x, alone, prices)
            if len(self.grid.families) > 1:
                far = self.rng.choice(self.leaves, (_FAR_PAIRS, 2))
                gain += self.cancel(x, far[far[:, 0] != far[:, 1]], prices)
            if prices is self.grid.prices:
                gain += sum(self.cancel_across(x, g) for g in self.grid.families)
            if gain <= 1e-9:
                return

    # ------------------------------------------------------------------ other directions

    def cancel_across(self, x: IntArray, g: int) -> float:
        """Cancel cycles between lines, and between codes where these are flat, over all parts of an area."""
        b = self.grid.blocks
        parts, codes = self.grid.parts[g], np.arange(self.grid.shape[2])
        gain = self._cancel_along(x, parts, codes, b.part_of, b.total_of, (1, 0, 2))
        if b.n_relations == 1:
            codes = np.append(self.grid.leaf_codes, np.flatnonzero(b.total_of >= 0))
            n_lines = self.grid.shape[1]
            part_of, total_of = np.zeros(n_lines, np.int64), np.full(n_lines, -1, np.int64)
            part_of[-1], total_of[-1] = -1, 0
            gain += self._cancel_along(x, parts, codes, part_of, total_of, (2, 0, 1))
        return gain

    def _cancel_along(
        self,
        x: IntArray,
        parts: IntArray,
        codes: IntArray,
        part_of: IntArray,
        total_of: IntArray,
        axes: tuple[int, int, int],
    ) -> float:
        """Cancel cycles along another direction, the last position of which is the total of the others."""
        grid = self.grid

        def view(a: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(a[parts][:, :, codes].transpose(axes))

        y = view(x)
        n, m = y.shape[0], y.shape[1] * y.shape[2]
        parent = np.full(n, n - 1, np.int64)
        parent[-1] = -1
        single = np.stack([np.arange(n - 1), np.full(n - 1, -1)], axis=1)
        pairs = np.concatenate([self.draw_pairs(np.arange(n - 1)), single])
        turned = Prices(*(view(part) for part in grid.prices))
        cells = turned.build_within(view(grid.low), view(grid.high), (n, m))
        soft = np.tile(total_of >= 0, y.shape[1])
        net = build_cross_section(y.shape[1], part_of, total_of, total=False)
        gain = cancel_pairs(net, pairs, parent, cells, soft, y.reshape(n, m))
        back = np.empty_like(x[parts])
        back[:, :, codes] = y.transpose(np.argsort(axes))
        x[parts] = back
        return gain

    # ------------------------------------------------------------------ repair

    def repair_area(self, x: IntArray, g: int, prices: Prices) -> None:
        """Bring the parts of an area inside their bounds: by cycles between them, then by small programs.

        What lies below the parts is not looked at.
        """
        grid = self.grid
        parts = grid.parts[g]
        for _ in range(4):
            if not grid.measure_outside(parts, x[parts]).any():
                return
            self.cancel(x, self.draw_pairs(parts), prices)
        for size in (4, 4, 4, 6, 6, 8, 8):
            bad = parts[grid.measure_outside(parts, x[parts]) > 0]
            if len(bad) == 0:
                return
            others = self.rng.permutation(np.setdiff1d(parts, bad[:1]))
            chosen = np.append(bad[:1], others[: size - 1])
            whole = make_areas_whole(grid, chosen, x[chosen].sum(axis=0), time_limit_s=_MEND_TIME_S)
            if whole is not None:
                x[chosen] = whole
