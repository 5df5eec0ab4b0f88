"""Areas that add up, decided one by one: the relaxation follows what is decided, and guides what comes next.

The area with the fewest undecided cells goes first: rounding it moves the others least.
"""

from __future__ import annotations

import numpy as np

from cellguard._core.areas import halve
from cellguard._engine.clock import Deadline, OutOfTimeError
from cellguard._types import FloatArray, IntArray
from cellguard.methods.round.area_relaxation import AreaRelaxation
from cellguard.methods.round.grid import AreaGrid, Prices

__all__ = ["decide_one_by_one"]


_UNDECIDED = 0.02
"""A relaxed cell this far from a whole number is undecided."""


def decide_one_by_one(
    relaxation: AreaRelaxation, target: IntArray, x: IntArray, *, steps: int, deadline: Deadline
) -> None:
    """Decide the areas of a relaxation that must add up to the target, in place.

    Parameters
    ----------
    relaxation
        Of these areas; it is led along.
    target
        Their sum by line and code.
    x
        All areas; those that are decided are written.
    steps
        How many steps the relaxation takes after every decision.
    deadline
        When to stop.
    """
    grid, areas = relaxation.grid, relaxation.areas
    left = np.arange(len(areas))
    while len(left) > 2:
        if deadline.passed:
            raise OutOfTimeError
        relaxation.follow(steps)
        guide = relaxation.x[left]
        undecided = (np.abs(guide - np.rint(guide)) > _UNDECIDED).sum(axis=(1, 2))
        first = int(np.argmin(undecided))
        part = _part(grid, areas[left], first, target, guide)
        x[areas[left[first]]] = part
        relaxation.settle(int(left[first]), part)
        left, target = np.delete(left, first), target - part
    if len(left) == 2:  # the cheapest split of two is one flow
        x[areas[left[0]]] = part = _part(grid, areas[left], 0, target, None)
        target = target - part
    x[areas[left[-1]]] = target


def _part(grid: AreaGrid, areas: IntArray, first: int, target: IntArray, guide: FloatArray | None) -> IntArray:
    """Decide one of some areas so that the others can add up to the rest: near the guide, or at the true price."""
    shape = (len(areas), target.size)
    prices = grid.prices.of(areas) if guide is None else Prices.towards(guide)
    cells = prices.within(grid.low[areas], grid.high[areas], shape)
    others = np.delete(np.arange(len(areas)), first)
    answer = np.empty(target.size, np.int64)
    halve(
        grid.network(grid.shape[1], total=True), np.array([first]), others, target.ravel(), cells,
        grid.area_needs[areas[first]], grid.soft.ravel(), answer,
    )  # fmt: skip
    return answer.reshape(target.shape)
