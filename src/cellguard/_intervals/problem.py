"""The least widths of a table's intervals: which cells to open, and how far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._intervals.requests import Variables, needs
from cellguard.table import BoolArray, FloatArray, Table

if TYPE_CHECKING:
    from cellguard._engine.opening import Prices
    from cellguard._engine.reduce import Reduction
    from cellguard._engine.widths import Widths

__all__ = ["Found", "Problem"]

Progress = Callable[[float, float], None]

_GRID = 1e-4
"""Ends of intervals are decimal numbers with at most this share of the median level as their last place."""
_DROP = (3e-2, 3e-3, 3e-4, 3e-5)
"""Widths below these shares of the median level are tried as exactly published, the largest first."""
_ROUNDS = (5e-2, 1e-2)
"""Gaps at which the closed cells are priced first; then at half of the gap that was asked for."""
_MOST_ROUNDS = 8
_OPEN = 0.9
"""A closed cell is opened if its price reaches this share of its weight."""
_WORTH_KEEPING = 0.5
"""An open cell is closed again if its width is negligible and its price is below this share of its weight."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Widths of all cells, with a bound that holds for the whole problem."""

    lower: FloatArray
    upper: FloatArray
    bound: float
    iterations: int
    requests: int
    tied: bool = False
    """Whether one width served both sides."""


class Problem:
    """The table's relations between the cells that may be opened, and what must be hidden from whom."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.may_open = np.asarray(~table.fixed & (table.ub > table.lb))
        # a weight of 0 would let an interval be as wide as it likes
        positive = table.weights[table.weights > 0]
        self.weight = np.maximum(table.weights, 1e-6 * float(np.median(positive)) if len(positive) else 1.0)

    def cost(self, found: Found) -> float:
        """Weighted width."""
        return float(self.weight @ (found.lower + found.upper))

    def hopeless(self) -> str:
        """Name the cells that stay exposed even if nothing else were published, or nothing."""
        from cellguard._engine.ranges import ranges

        t = self.table
        lines: list[str] = []
        for attacker in t.attackers:
            lo, hi = t.bounds(attacker)
            need = t.levels(attacker)
            lo, hi = np.where(self.may_open, lo, t.values), np.where(self.may_open, hi, t.values)
            found = ranges(
                *(t.relations, lo, hi, t.values, need.cells),
                lower=need.lower,
                upper=need.upper,
                sliding=need.sliding,
            )
            lines += [
                f"{t.label(int(cell))} cannot be protected against attacker {attacker.name!r}: fixed cells and "
                "known bounds give it away even if every other cell were withheld"
                for cell in need.cells[found.unsafe][:5]
            ]
        return "; ".join(lines)

    # ------------------------------------------------------------------ solve

    def solve(self, gap: float, deadline: float, progress: Progress | None = None) -> Found:
        """Find the least widths, with one width for both sides where that is exact."""
        from cellguard._engine.reduce import reduce

        reduction = reduce(self.table.relations, self.may_open)
        variables = Variables(self.table, self.weight, reduction.merged)
        if not len(variables):
            return self._nothing(0.0)
        # many degrees of freedom: most cells will stay closed
        few = variables.external and reduction.rank < reduction.degrees_of_freedom
        opening = _Opening(self, reduction) if few else None
        found = None
        for tied in (True, False) if variables.symmetric else (False,):
            if opening is not None:
                found = opening.solve(tied, gap, deadline, progress)
            if found is None and not (opening is not None and tied and opening.limits_bind):
                found = self.solve_opened(variables, reduction, tied, gap, deadline, progress)
            if found is not None:
                return found
        return self.withheld(len(variables))

    def solve_opened(
        self,
        variables: Variables,
        reduction: Reduction,
        tied: bool,
        gap: float,
        deadline: float,
        progress: Progress | None = None,
    ) -> Found | None:
        """Solve with all the cells of a reduction open; None if that is impossible, or one width is not exact."""
        known = np.minimum(variables.most_lower, variables.most_upper)

        def beyond(width: FloatArray) -> bool:
            excess = np.maximum(width - known * (1.0 + 1e-9), 0.0)
            return bool(variables.weight @ excess > gap * (variables.weight @ width))

        widths = narrowest(variables, reduction, tied, gap, deadline, progress, beyond if tied else None)
        if widths is None or (tied and (widths.upper > known * (1.0 + 1e-9)).any()):
            return None
        return lifted(variables, widths, tied)

    def withheld(self, requests: int) -> Found:
        """Return what is safe without any work: of cells that may be opened only what was known before."""
        t = self.table
        with np.errstate(invalid="ignore"):
            lower = np.where(self.may_open, t.values - t.lb, 0.0)
            upper = np.where(self.may_open, t.ub - t.values, 0.0)
        return Found(lower=lower, upper=upper, bound=0.0, iterations=0, requests=requests)

    def _nothing(self, bound: float) -> Found:
        nothing = np.zeros(self.table.n_cells)
        return Found(lower=nothing, upper=nothing, bound=bound, iterations=0, requests=0)

    def sparser(self, found: Found, gap: float, deadline: float) -> Found:
        """Publish exactly what the interior point left with tiny widths, if the gap allows.

        The bound stays that of the whole problem; leaving cells closed can only cost.
        """
        from cellguard._engine.reduce import reduce

        unit, asking = self._unit(), np.zeros(self.table.n_cells, np.bool_)
        for need in needs(self.table):  # a small level is a level: its cell stays open
            asking[need.cell] = True
        width = np.maximum(found.lower, found.upper)
        for share in _DROP:
            if time.perf_counter() > deadline or found.iterations == 0:
                break
            opened = self.may_open & ((width > share * unit) | asking)
            if opened.sum() > 0.9 * (width > 0).sum():
                break  # hardly any cell would be closed: not worth another solve
            reduction = reduce(self.table.relations, opened)
            variables = Variables(self.table, self.weight, reduction.merged)
            if variables.stuck:  # some cell that must be hidden cannot move with so few cells opened
                continue
            tried = self.solve_opened(variables, reduction, found.tied, gap / 4, deadline)
            if tried is not None and self.cost(tried) - found.bound <= gap * self.cost(tried):
                return replace(tried, bound=found.bound, iterations=found.iterations + tried.iterations)
        return found

    def _unit(self) -> float:
        """Return the median level."""
        levels = np.concatenate([need.level for need in needs(self.table)])
        return float(np.median(levels)) if len(levels) else 1.0

    def ends(self, found: Found, gap: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals, rounded outward to decimal numbers as long as the gap allows.

        Nobody needs more digits, and a side of almost no width is no use to anyone who checks.
        """
        t, nearly = self.table, 1.0 - 2e-9  # a level of 4 shall not become 4.0001 by a rounding error
        place = int(np.floor(np.log10(_GRID * self._unit())))
        for digits in range(-place, -place + 6):
            step = 10.0**-digits
            lower = np.where(found.lower > 0, np.floor((t.values - nearly * found.lower) / step), 0.0)
            upper = np.where(found.upper > 0, np.ceil((t.values + nearly * found.upper) / step), 0.0)
            # dividing by a whole power of ten gives the nearest number to the decimal
            lower, upper = (end / 10.0**digits if digits >= 0 else end * step for end in (lower, upper))
            lower = np.maximum(np.where(found.lower > 0, lower, t.values), t.lb)
            upper = np.minimum(np.where(found.upper > 0, upper, t.values), t.ub)
            cost = float(self.weight @ (upper - lower))
            if cost - max(found.bound, self.cost(found) * (1 - gap / 4)) <= gap * cost:
                return lower, upper
        return np.maximum(t.values - found.lower, t.lb), np.minimum(t.values + found.upper, t.ub)


def narrowest(
    variables: Variables,
    reduction: Reduction,
    tied: bool,
    gap: float,
    deadline: float,
    progress: Progress | None = None,
    give_up: Callable[[FloatArray], bool] | None = None,
) -> Widths | None:
    """Call the interior point; the limits of the widths count unless one width serves both sides."""
    from cellguard._engine.widths import narrowest_widths

    unlimited = np.full(len(variables.weight), np.inf)
    own_lower, own_upper = variables.own_limits()
    return narrowest_widths(
        reduction.merged.relations,
        reduction.basis[reduction.merged.cells],
        variables.weight,
        variables.requests(tied),
        tied=tied,
        most_upper=unlimited if tied else variables.most_upper,
        most_lower=unlimited if tied else variables.most_lower,
        hard_upper=own_upper,
        hard_lower=own_lower,
        gap=gap,
        time_limit_s=deadline - time.perf_counter(),
        progress=progress,
        give_up=give_up,
    )


def lifted(variables: Variables, widths: Widths, tied: bool) -> Found:
    """Return the widths of all cells."""
    slack = 1.0 + 1e-9  # what floating point may have lost
    lower, upper = variables.merged.spread(widths.lower, widths.upper)
    return Found(
        lower=lower * slack,
        upper=upper * slack,
        bound=widths.bound,
        iterations=widths.iterations,
        requests=len(variables),
        tied=tied,
    )


class _Opening:
    """Solve with few cells open, price the others, open what is too cheap to stay closed, until nothing is."""

    def __init__(self, problem: Problem, reduction: Reduction) -> None:
        t = problem.table
        self.problem = problem
        self.relations = t.relations[reduction.rows]
        movable = ~reduction.determined
        self.movable = movable
        self.up = np.where(movable, t.ub - t.values, 0.0)
        self.down = np.where(movable, t.values - t.lb, 0.0)
        self.sensitive = np.zeros(t.n_cells, np.bool_)
        self.opened: BoolArray | None = None
        """What the last solve ended with: a good start for the next."""
        self.limits_bind = False
        """Whether one width for both sides was seen to pass the known bounds."""

    def _first(self, tied: bool) -> BoolArray | None:
        """Cells that a cheapest joint movement uses; it must respect the limits, unless one width serves both sides."""
        from cellguard._engine.opening import first_opening

        p = self.problem
        need = {1.0: np.zeros(p.table.n_cells), -1.0: np.zeros(p.table.n_cells)}
        for asked in needs(p.table):
            for direction, most in need.items():
                at = asked.sign == direction
                np.maximum.at(most, asked.cell[at], asked.level[at])
        self.sensitive = (need[1.0] > 0) | (need[-1.0] > 0)
        opened = self.sensitive.copy() if self.opened is None else self.opened | self.sensitive
        if tied:
            free = np.where(self.movable, np.inf, 0.0)
            runs = [(need[1.0], free, free)]
        else:
            runs = [(need[1.0], self.down, self.up), (need[-1.0], self.up, self.down)]
        for most, down, up in runs:
            used = first_opening(self.relations, p.weight, most, down, up)
            if used is None:
                return None
            opened = opened | used
        return np.asarray(opened & self.movable)

    def solve(self, tied: bool, gap: float, deadline: float, progress: Progress | None) -> Found | None:
        """Solve; None if the first opening fails, or if one width for both sides is not exact."""
        from cellguard._engine.reduce import reduce

        p = self.problem
        opened = self._first(tied)
        if opened is None:
            return None
        best: Found | None = None
        bound, iterations = 0.0, 0
        for turn in range(_MOST_ROUNDS):
            reduction = reduce(p.table.relations, opened)
            variables = Variables(p.table, p.weight, reduction.merged)
            if variables.stuck:
                return None
            wanted = _ROUNDS[turn] if turn < len(_ROUNDS) else gap / 2
            widths = narrowest(variables, reduction, tied, max(wanted, gap / 2), deadline)
            if widths is None:
                return None
            found = lifted(variables, widths, tied)
            iterations += widths.iterations
            prices = self._prices(variables, widths, tied)
            bound = max(bound, prices.bound)
            if best is None or p.cost(found) < p.cost(best):
                best = found
            if progress is not None:
                progress(p.cost(best), bound)
            self.opened = opened
            if tied and self._beyond_limits(found, gap):
                self.limits_bind = True
                return None
            if p.cost(best) - bound <= gap * p.cost(best) or time.perf_counter() > deadline:
                break
            following = self._next(opened, found, prices)
            if np.array_equal(following, opened) and turn >= len(_ROUNDS):
                break
            opened = following
        if best is None or (tied and self._beyond_limits(best, 0.0)):
            return None
        stuck = p.cost(best) - bound > gap * p.cost(best) and time.perf_counter() < deadline
        return None if stuck else replace(best, bound=bound, iterations=iterations)

    def _beyond_limits(self, found: Found, gap: float) -> bool:
        """Whether widths for both sides pass the known bounds by more than the gap."""
        known = np.minimum(self.down, self.up) * (1.0 + 1e-8)
        excess = np.maximum(found.upper - known, 0.0)
        return bool(self.problem.weight @ excess > gap * (self.problem.weight @ found.upper))

    def _next(self, opened: BoolArray, found: Found, prices: Prices) -> BoolArray:
        """Open what is too cheap, close what is not used."""
        width = np.maximum(found.lower, found.upper)
        negligible = width <= 1e-3 * float(np.median(width[opened]))
        useless = opened & negligible & (prices.share < _WORTH_KEEPING) & ~self.sensitive
        return np.asarray(self.movable & ((opened & ~useless) | (prices.share > _OPEN)))

    def _prices(self, variables: Variables, widths: Widths, tied: bool) -> Prices:
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
                room = np.where(side * ratio > 0, self.up[opened], self.down[opened]) / np.abs(ratio)
                order = np.lexsort((room, at))
                felt = order[np.unique(at[order], return_index=True)[1]]
                used = price.sum(axis=0)
                within = np.minimum(1.0, variables.weight / np.maximum(used, 1e-300))
                share = share * within[at]
                share[felt] += (1.0 - within[at[felt]]) / np.abs(ratio[felt])
            multipliers[:, opened] += side * np.sign(ratio) * price[:, at] * share
        cell, moves = variables.origins(tied)
        level = variables.requests(tied).level * np.abs(moves)
        return price_cells(
            self.relations,
            p.weight,
            np.asarray(merged.variable >= 0),
            (self.up, self.down),
            (cell, widths.level_price / moves, level),
            multipliers,
            tied,
        )
