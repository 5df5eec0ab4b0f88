"""Areas that add up, decided step by step: relax, split off some of them, round what they add up to, go on.

Splitting costs what rounding the sum costs, so the areas are split where few undecided columns are
shared; halves at first, single areas once the relaxation is small enough to be solved again and again.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.kernels.areas import halve
from cellguard._rounding.grid import Grid, Prices
from cellguard._rounding.guide import relax

__all__ = ["OutOfTimeError", "dissect"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_UNDECIDED = 1e-3
"""A relaxed cell this far from a whole number is undecided."""


class OutOfTimeError(Exception):
    """The deadline passed; what was begun is given up."""


def dissect(
    grid: Grid, areas: IntArray, target: IntArray, x: IntArray, *, single: int, deadline: float,
    guide: FloatArray | None = None, fresh: bool = False,
) -> None:  # fmt: skip
    """Decide areas that must add up to the target, in place.

    Parameters
    ----------
    grid, areas, target
        Which areas, and their sum by line and code.
    x
        All areas; those that are decided are written.
    single
        Sets of at most so many areas are decided one area at a time.
    deadline
        On the clock of :func:`time.monotonic`.
    guide
        A relaxation of these areas that is used where no own one succeeds.
    fresh
        Whether the guide is good enough for the first split.
    """
    while len(areas) > 1:
        if time.monotonic() > deadline:
            raise OutOfTimeError
        if len(areas) == 2:  # the cheapest split of two is one flow
            chosen = np.array([True, False])
            part = _split(grid, areas, chosen, target, None)
        else:
            relaxed = None
            if not fresh:
                relaxed = relax(grid, areas, target, time_limit_s=max(deadline - time.monotonic(), 0.1))
            if relaxed is not None:
                guide = relaxed.x
            fresh = False
            if guide is None:
                guide = 0.5 * (1.0 - grid.prices.slope[areas] / np.maximum(grid.prices.outer[areas], 1e-12))
            undecided = (np.abs(guide - np.rint(guide)) > _UNDECIDED).reshape(len(areas), -1)
            if relaxed is not None and not undecided.any():
                x[areas] = np.rint(guide).astype(np.int64)
                return
            size = 1 if len(areas) <= single else len(areas) // 2
            chosen = split_off(undecided, size)
            part = _split(grid, areas, chosen, target, guide)
        rest = ~chosen
        dissect(
            grid, areas[chosen], part, x, single=single, deadline=deadline,
            guide=None if guide is None else guide[chosen],
        )  # fmt: skip
        areas, target = areas[rest], target - part
        guide = None if guide is None else guide[rest]
    x[areas[0]] = target


def _split(grid: Grid, areas: IntArray, chosen: BoolArray, target: IntArray, guide: FloatArray | None) -> IntArray:
    """Decide what the chosen areas add up to: near the guide, or at the least true price."""
    n = len(areas)
    if guide is None:
        p = grid.prices
        prices = Prices(kink=p.kink[areas], slope=p.slope[areas], outer=p.outer[areas])
    else:
        prices = Prices.towards(guide)
    need = grid.area_needs[areas[chosen]].sum(axis=0)
    answer = np.empty(target.size, np.int64)
    halve(
        grid.network(grid.shape[1], total=True), np.flatnonzero(chosen), np.flatnonzero(~chosen), target.ravel(),
        grid.low[areas].reshape(n, -1), grid.high[areas].reshape(n, -1), prices.kink.reshape(n, -1),
        prices.slope.reshape(n, -1), prices.outer.reshape(n, -1), need, grid.soft.ravel(), answer,
    )  # fmt: skip
    return answer.reshape(target.shape)


def split_off(undecided: BoolArray, size: int) -> BoolArray:
    """Choose so many areas that share few undecided columns with the others: greedily, then by exchanges.

    >>> split_off(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1]], bool), 2).tolist()
    [False, True, False, True]
    """
    F = undecided[:, undecided.any(axis=0)].astype(np.float64)
    W = F @ F.T
    np.fill_diagonal(W, 0.0)
    linked = W.sum(axis=1)
    chosen = np.zeros(len(F), np.bool_)
    if size == 1:
        chosen[np.argmin(undecided.sum(axis=1))] = True
        return chosen
    for _ in range(size):
        price = linked - 2.0 * W[:, chosen].sum(axis=1)
        price[chosen] = np.inf
        chosen[np.argmin(price)] = True
    while True:  # exchange the pair that gains most (Kernighan and Lin)
        side = np.where(chosen, 1.0, -1.0)
        gain = -side * (W @ side)
        inner, outer = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        both = gain[inner][:, None] + gain[outer][None, :] - 2.0 * W[np.ix_(inner, outer)]
        i, j = np.unravel_index(np.argmax(both), both.shape)
        if both[i, j] <= 1e-9:
            return chosen
        chosen[inner[i]], chosen[outer[j]] = False, True
