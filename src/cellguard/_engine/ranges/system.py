"""The reduced system: merged variables, how far each can move, and its independent components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.implied import tighten_slack
from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._engine.space.space import Space
from cellguard._tolerances import FIXED_WIDTH
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["System", "find_unknown_cells"]


def find_unknown_cells(lo: FloatArray, hi: FloatArray, point: FloatArray) -> BoolArray:
    """Return which cells an attacker does not know already: their interval has a positive width."""
    return np.asarray(hi - lo > FIXED_WIDTH * np.maximum(1.0, np.abs(point)))


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """Merged variables with their slack, and the slack that the relations leave."""

    reduction: Reduction
    """Of the relations, without the cells that the bounds hold fixed."""
    free: BoolArray
    """Cells that have slack of their own."""
    down: FloatArray
    """How far each variable can move down: the least slack of its members."""
    up: FloatArray
    """How far each variable can move up."""
    implied_down: FloatArray
    """What the relations leave of `down` when the other variables move as far as they can."""
    implied_up: FloatArray
    """What the relations leave of `up`."""

    @property
    def space(self) -> Space:
        """The variables."""
        return self.reduction.space

    @cached_property
    def component(self) -> IntArray:
        """Component of each variable."""
        return self.space.component

    @property
    def n_components(self) -> int:
        """Number of components: sets of variables that share no relation."""
        return self.space.n_components

    @classmethod
    def of(cls, T: csr_array, free: BoolArray, down: FloatArray, up: FloatArray) -> System:
        """Reduce; a variable that the bounds hold fixed counts as published, so reduce again."""
        moving = free
        while True:
            reduction = reduce(T, moving)
            space = reduction.space
            v_down, v_up = space.compute_slack(down, up)
            implied_down, implied_up = tighten_slack(space.relations, v_down, v_up)
            forced = (implied_down == 0) & (implied_up == 0)
            if not forced.any():
                break
            moving = moving & ~np.isin(reduction.alias, space.cells[forced])
        return cls(
            reduction=reduction,
            free=free,
            down=v_down,
            up=v_up,
            implied_down=implied_down,
            implied_up=implied_up,
        )
