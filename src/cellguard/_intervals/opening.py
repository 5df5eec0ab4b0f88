"""Interval protection where most cells stay closed: open a few, price the others, open what is too cheap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine import clock
from cellguard._intervals.problem import Found, Problem, lifted, narrowest
from cellguard._intervals.requests import Variables
from cellguard.table import BoolArray, FloatArray

if TYPE_CHECKING:
    from cellguard._engine.opening import Prices
    from cellguard._engine.reduce import Reduction
    from cellguard._engine.widths import Widths

__all__ = ["Opening"]

_ROUNDS = (0.1, 2e-2)
"""Gaps at which the closed cells are priced first; then at what was asked for."""
_MOST_ROUNDS = 10
_OPEN = 0.9
"""A closed cell is opened if its price reaches this share of its weight."""
_CLOSE = 0.8
"""An open cell is closed again if its width is negligible and its price is below this share of its weight."""
_SPARE = 0.05
"""A movement is left out if other cells' widths bear less than this share of its price."""


class Opening:
    """Solve with few cells open, price the others, open what is too cheap to stay closed, until nothing is.

    Most movements come for free once the cell itself is wide enough: they are left out (only the width of their cell
    is kept) and put back if a range shows that they are impossible.
    """

    def __init__(self, problem: Problem, reduction: Reduction) -> None:
        t = problem.table
        self.problem = problem
        self.relations = t.relations[reduction.rows]
        self.movable = ~reduction.determined
        self.limits = {
            1.0: np.where(self.movable, t.ub - t.values, 0.0),
            -1.0: np.where(self.movable, t.values - t.lb, 0.0),
        }
        self.need = problem.least
        self.asking = (self.need[1.0] > 0) | (self.need[-1.0] > 0)
        self.opened: BoolArray | None = None
        """What the last solve ended with: a good start for the next."""
        self.limits_bind = False
        """Whether one width for both sides was seen to pass the known bounds."""

    def solve(
        self, tied: bool, gap: float, deadline: float, progress: Callable[[float, float], None] | None
    ) -> Found | None:
        """Solve; None if the first opening fails, or if one width for both sides is not exact."""
        from cellguard._engine.reduce import reduce

        p = self.problem
        opened = self._first(tied)
        if opened is None:
            return None
        best, widths = None, None
        spared = {direction: np.zeros(p.table.n_cells, np.bool_) for direction in self.need}
        bound, iterations = 0.0, 0
        for turn in range(_MOST_ROUNDS):
            if widths is None:
                reduction = reduce(p.table.relations, opened)
                variables = Variables(p.table, p.weight, reduction.merged, None if tied else spared)
            wanted = max(gap * 0.8, _ROUNDS[turn] if turn < len(_ROUNDS) else 0.0)
            widths = narrowest(variables, reduction, tied, wanted, deadline, resume=widths) if len(variables) else None
            if widths is None:
                break
            prices = self._prices(variables, widths, tied, spared)
            bound, iterations = max(bound, prices.bound), iterations + widths.iterations
            found = replace(lifted(variables, widths, tied), bound=bound, iterations=iterations)
            if tied and self._beyond_limits(found, gap):
                self.opened, self.limits_bind = opened, True
                return None
            exposed = p.exposed(found) if any(mask.any() for mask in spared.values()) else []
            best = p.better(best, p.repaired(found, max(gap, wanted), deadline) if exposed else found)
            if progress is not None and best is not None:
                progress(p.cost(best), bound)
            if p.proven(best, bound, gap) or clock.now() > deadline:
                break
            following = self._next(opened, found, prices, close=turn < len(_ROUNDS))
            if np.array_equal(following, opened) and not exposed and turn >= len(_ROUNDS):
                return None  # nothing to open, and still not proven: all cells must be open
            if not np.array_equal(following, opened) or exposed or (turn == 0 and not tied):
                self._spare(spared, exposed, variables, widths, first=turn == 0 and not tied)
                opened, widths = following, None
        if best is None or (tied and self._beyond_limits(best, 0.0)):
            return None
        return replace(best, bound=bound, iterations=iterations)

    def _first(self, tied: bool) -> BoolArray | None:
        """Cells that a cheapest joint movement uses; it must respect the limits, unless one width serves both sides."""
        joint = self.problem.joint_movements(self.movable, limited=not tied)
        if joint is None:
            return None
        opened = self.asking.copy() if self.opened is None else self.opened | self.asking
        return np.asarray((opened | (joint != 0).any(axis=0)) & self.movable)

    def _next(self, opened: BoolArray, found: Found, prices: Prices, *, close: bool) -> BoolArray:
        """Open what is too cheap; close what is not used."""
        width = np.maximum(found.lower, found.upper)
        negligible = width <= 1e-2 * float(np.median(width[opened]))
        useless = opened & negligible & (prices.share < _CLOSE) & ~self.asking & close
        return np.asarray(self.movable & ((opened & ~useless) | (prices.share > _OPEN)))

    def _spare(
        self,
        spared: dict[float, BoolArray],
        exposed: list[tuple[int, float]],
        variables: Variables,
        widths: Widths,
        *,
        first: bool,
    ) -> None:
        """Leave out, once, the movements whose price their own cell's width bears alone; put back the exposed ones."""
        for cell, movement in exposed:
            spared[float(np.sign(movement))][cell] = False
        if first:
            origin, moves = variables.origins(False)
            own = np.abs(widths.cell_price[np.arange(len(variables)), variables.cell])
            free = np.abs(widths.cell_price).sum(axis=1) - own < _SPARE * own
            for direction, mask in spared.items():
                mask[origin[free & (moves * direction > 0)]] = True

    def _beyond_limits(self, found: Found, gap: float) -> bool:
        """Whether widths for both sides pass the known bounds by more than the gap."""
        known = np.minimum(self.limits[1.0], self.limits[-1.0]) * (1.0 + 1e-8)
        excess = np.maximum(found.upper - known, 0.0)
        return bool(self.problem.weight @ excess > gap * (self.problem.weight @ found.upper))

    def _prices(self, variables: Variables, widths: Widths, tied: bool, spared: dict[float, BoolArray]) -> Prices:
        """Price all cells with the multipliers of the open ones; cells that move together share theirs by weight."""
        from cellguard._engine.opening import price_cells

        p, merged = self.problem, variables.merged
        opened = np.flatnonzero(merged.variable >= 0)
        at = merged.variable[opened]
        ratio = np.asarray(merged.lift[opened, at]).ravel()
        multipliers = np.zeros((len(widths.level_price), p.table.n_cells))
        for side in (1.0, -1.0):
            price = np.maximum(side * widths.cell_price, 0.0)
            share = p.weight[opened] / variables.weight[at]
            if not tied:  # what exceeds the weight belongs to the cell whose limit is felt
                room = np.where(side * ratio > 0, self.limits[1.0][opened], self.limits[-1.0][opened]) / np.abs(ratio)
                order = np.lexsort((room, at))
                felt = order[np.unique(at[order], return_index=True)[1]]
                within = np.minimum(1.0, variables.weight / np.maximum(price.sum(axis=0), 1e-300))
                share = share * within[at]
                share[felt] += (1.0 - within[at[felt]]) / np.abs(ratio[felt])
            multipliers[:, opened] += side * np.sign(ratio) * price[:, at] * share
        cell, moves = variables.origins(tied)
        level = variables.requests(tied).level * np.abs(moves)
        least: dict[float, FloatArray] = {side: np.where(spared[side], self.need[side], 0.0) for side in spared}
        return price_cells(
            self.relations,
            p.weight,
            np.asarray(merged.variable >= 0),
            (self.limits[1.0], self.limits[-1.0]),
            (cell, widths.level_price / moves, level),
            multipliers,
            tied,
            (least[1.0], least[-1.0]),
        )
