"""A rounding problem on a table with coordinates (area, line, code): arrays and networks of its cross-sections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cellguard._engine.space.network import build_adjacency
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.rounding.areas.blocks import Blocks
from cellguard.methods.rounding.problem import RoundingProblem

__all__ = ["AreaGrid", "Cells", "Prices", "build_cross_section", "make_area_grid"]

Network = tuple[IntArray, IntArray, IntArray, IntArray]
"""Tail and head of each column, and for each node its columns (:func:`cellguard._engine.space.network.adjacency`)."""

Cells = tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]
"""Low, high, kink, slope and outer price of each cell."""


class Prices(NamedTuple):
    """Price of a step of each cell: ``-outer`` below the kink, ``slope`` from it, ``outer`` above."""

    kink: IntArray
    slope: FloatArray
    outer: FloatArray

    def select_areas(self, areas: IntArray) -> Prices:
        """Return the prices of some areas."""
        return Prices(self.kink[areas], self.slope[areas], self.outer[areas])

    def build_within(self, low: IntArray, high: IntArray, shape: tuple[int, int]) -> Cells:
        """Return bounds and prices, areas by columns."""
        kink, slope, outer = self.kink.reshape(shape), self.slope.reshape(shape), self.outer.reshape(shape)
        return low.reshape(shape), high.reshape(shape), kink, slope, outer

    @classmethod
    def from_distance(cls, x: FloatArray) -> Prices:
        """Prices that are least at x: the distance from it."""
        kink = np.floor(x)
        return cls(kink=kink.astype(np.int64), slope=1.0 - 2.0 * (x - kink), outer=np.ones_like(x))


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaGrid:
    """Bounds, prices and sums of every cell, in an array of areas by lines by codes."""

    blocks: Blocks
    low: IntArray
    high: IntArray
    prices: Prices
    """The true prices, divided by `scale`."""
    scale: float
    """The largest price of a step."""
    code_sums: IntArray
    """Areas by lines by relations: parts minus total of the codes, in x."""
    line_sums: IntArray
    """Areas by codes: lines minus the total line, in x."""
    area_sums: IntArray
    """Areas by lines by codes: the parts of an area add up to its x plus this; 0 for areas without parts."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of areas, lines and codes."""
        a, b, c = self.low.shape
        return a, b, c

    @property
    def parent(self) -> IntArray:
        """The area of which each area is a part; -1 for the largest."""
        return self.blocks.parent

    @cached_property
    def top(self) -> int:
        """The largest area."""
        return int(np.flatnonzero(self.parent < 0)[0])

    @cached_property
    def parts(self) -> dict[int, IntArray]:
        """The parts of every area that has some, from the top down."""
        out: dict[int, IntArray] = {}
        queue = [self.top]
        order = np.argsort(self.parent, kind="stable")
        begin = np.searchsorted(self.parent[order], np.arange(len(order) + 1))
        for g in queue:
            children = order[begin[g] : begin[g + 1]]
            if len(children):
                out[g] = children
                queue.extend(children.tolist())
        return out

    @cached_property
    def families(self) -> list[int]:
        """Areas whose parts have no parts themselves."""
        return [g for g, children in self.parts.items() if not any(int(c) in self.parts for c in children)]

    @cached_property
    def leaf_codes(self) -> IntArray:
        """Codes that are not totals."""
        return np.flatnonzero(self.blocks.total_of < 0)

    @cached_property
    def soft(self) -> BoolArray:
        """Lines by codes: totals within an area."""
        soft = np.zeros(self.shape[1:], np.bool_)
        soft[-1] = True
        soft[:, self.blocks.total_of >= 0] = True
        return soft

    @property
    def flat(self) -> tuple[int, int]:
        """Numbers of areas, and of columns (line, code) of an area."""
        return self.shape[0], self.shape[1] * self.shape[2]

    def build_cells(self, prices: Prices) -> Cells:
        """Return bounds and prices of all cells, areas by columns."""
        return prices.build_within(self.low, self.high, self.flat)

    @cached_property
    def network(self) -> Network:
        """The network of the columns (line, code) of an area."""
        return build_cross_section(self.shape[1], self.blocks.part_of, self.blocks.total_of, total=True)

    @cached_property
    def area_needs(self) -> IntArray:
        """What each node of the network must receive, area by area: from sums per line and relation, and per code."""
        relations = self.code_sums.copy()
        relations[:, -1] *= -1
        outside = np.zeros((len(relations), 1), np.int64)
        return np.hstack([relations.reshape(len(relations), -1), -self.line_sums[:, self.leaf_codes], outside])

    def compute_price(self, areas: IntArray | slice, x: IntArray) -> float:
        """True price of x in some areas, up to a constant: 0 for x = 0."""
        p = self.prices
        inside = np.clip(x, 0, 1) * p.slope[areas]
        beyond = (np.maximum(-x, 0) + np.maximum(x - 1, 0)) * p.outer[areas]
        return float((inside + beyond).sum()) * self.scale

    def measure_outside(self, areas: IntArray | slice, x: IntArray) -> IntArray:
        """How far, in steps, each of some areas lies outside its bounds."""
        far = np.maximum(x - self.high[areas], 0) + np.maximum(self.low[areas] - x, 0)
        return np.asarray(far.sum(axis=(1, 2)))

    def expand_to_cells(self, x: IntArray) -> IntArray:
        """Return x per cell of the table."""
        out = np.empty(x.size, np.int64)
        out[self.blocks.cells] = x
        return out


def build_cross_section(n: int, part_of: IntArray, total_of: IntArray, *, total: bool) -> Network:
    """Return the network of columns (line, code): n lines, the last of which may be the total of the others.

    Nodes: the relations of every line, then the sums of every leaf code over the lines, then the
    outside. A leaf code leads from its sum to its relation, a total from its parts' relation to the
    one it is part of; on the total line all is reversed.
    """
    n_codes, n_rel = len(part_of), int(total_of.max()) + 1
    line, code = np.repeat(np.arange(n), n_codes), np.tile(np.arange(n_codes), n)
    leaf = total_of < 0
    outside = n * n_rel + int(leaf.sum())
    to = np.where(part_of[code] >= 0, line * n_rel + part_of[code], outside)
    sums = n * n_rel + np.cumsum(leaf)[code] - 1
    out = np.where(total_of[code] >= 0, line * n_rel + total_of[code], sums)
    reverse = total & (line == n - 1)
    tail, head = np.where(reverse, to, out), np.where(reverse, out, to)
    return (tail, head, *build_adjacency(tail, head, outside + 1))


def make_area_grid(problem: RoundingProblem, blocks: Blocks) -> AreaGrid | None:
    """Put a problem on the coordinates of its table; None if its bases differ."""
    p, cells = problem, np.ascontiguousarray(blocks.cells)  # the compiled core takes rows as they lie
    if (p.base != p.base[0]).any() or (p.table.rhs != 0).any():
        return None
    units = p.lattice.quotient[cells]
    n_codes = cells.shape[2]
    M = np.zeros((blocks.n_relations, n_codes), np.int64)
    codes = np.arange(n_codes)
    part, total = blocks.part_of >= 0, blocks.total_of >= 0
    M[blocks.part_of[part], codes[part]] = 1
    M[blocks.total_of[total], codes[total]] = -1
    area_sums = np.zeros_like(units)
    child = np.flatnonzero(blocks.parent >= 0)
    above = np.unique(blocks.parent[child])
    area_sums[above] = units[above]
    np.subtract.at(area_sums, blocks.parent[child], units[child])
    outer = (p.weights * p.base)[cells]
    scale = float(outer.max()) or 1.0
    prices = Prices(kink=np.zeros_like(units), slope=p.slope[cells] / scale, outer=outer / scale)
    return AreaGrid(
        blocks=blocks,
        low=p.low[cells],
        high=p.high[cells],
        prices=prices,
        scale=scale,
        code_sums=-(units @ M.T),
        line_sums=units[:, -1] - units[:, :-1].sum(axis=1),
        area_sums=area_sums,
    )
