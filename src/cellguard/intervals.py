"""Interval protection: some cells are published as intervals, as narrow as safety allows (baena2018 section 2.3)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard.attacker import Attacker
from cellguard.exceptions import InputError
from cellguard.release import Intervals, Status
from cellguard.table import BoolArray, FloatArray, IntArray, Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._engine.reduce import Merged
    from cellguard._engine.widths import Widths

__all__ = ["intervals"]

_DROP = (3e-2, 3e-3, 3e-4, 3e-5)
"""Widths below these shares of the median level are tried as exactly published, the largest first."""
_NOMINAL = 0.01
"""Share of the value that a sensitive cell without levels asks for."""
_STRETCH = 0.5
"""With random positions, each side of a sensitive cell's interval grows by up to this share."""


def intervals(
    table: Table,
    *,
    gap: float = 1e-3,
    time_limit_s: float | None = None,
    position: str = "narrowest",
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
) -> Intervals:
    """Publish the narrowest intervals from which no attacker computes a sensitive cell too closely.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of width.
    gap
        Stop when the weighted width is proven to be this close to the least possible, relatively.
    time_limit_s
        Stop after this; the best intervals found are returned with their gap.
    position
        ``"narrowest"``; or ``"random"``: each sensitive cell asks for a randomly larger level on each
        side, so that the truth has no fixed place in its interval. With symmetric levels the
        narrowest interval of a sensitive cell has the truth at its midpoint (baena2018 table 4), and
        no other position of that width meets both levels: not to leak it costs width.
    seed
        Of the random positions.
    progress
        Called with the objective and the bound in every iteration.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    >>> release = cg.intervals(table)
    >>> release.lower.round(3).tolist(), release.upper.round(3).tolist()
    ([16.0, 46.0, 70.0], [24.0, 54.0, 70.0])
    """
    begin = time.perf_counter()
    deadline = np.inf if time_limit_s is None else begin + time_limit_s
    if position not in ("narrowest", "random"):
        raise InputError(f"position {position!r} is not known.", hint="known are 'narrowest' and 'random'.")
    if not 0 < gap < 1:
        raise InputError(f"gap {gap!r}: a share between 0 and 1 is needed.")
    problem = _Problem(_with_random_levels(table, seed) if position == "random" else table)
    reduced = time.perf_counter()
    options = {"gap": gap, "time_limit_s": time_limit_s, "position": position, "seed": seed}
    seconds = {"reduce": reduced - begin}
    hopeless = problem.hopeless()
    if hopeless:
        return Intervals(
            table=table,
            status=Status.INFEASIBLE,
            objective=float("nan"),
            seconds=seconds,
            options=options,
            explanation=hopeless,
            lower=table.values,
            upper=table.values,
        )
    # the bound is worth its gap twice over: half is kept for publishing small widths exactly
    found = problem.solve(gap / 2, deadline, progress)
    if _splits_sliding_levels(table):  # what was chosen there may not be best: prove the bound without it
        relaxed = _Problem(table.with_(sliding=np.zeros(table.n_cells))).solve(gap / 2, deadline)
        found = replace(found, bound=min(found.bound, relaxed.bound))
    widths = problem.sparser(found, gap, deadline)
    lower = np.maximum(table.values - widths.lower, table.lb)
    upper = np.minimum(table.values + widths.upper, table.ub)
    weight = problem.weight
    objective = float(weight @ (upper - lower))
    proven = objective - widths.bound <= gap * objective
    late = time.perf_counter() > deadline
    seconds["solve"] = time.perf_counter() - reduced
    place = _positions(table, lower, upper)
    return Intervals(
        table=table,
        status=Status.OPTIMAL if proven else Status.TIME_LIMIT if late else Status.FEASIBLE,
        objective=objective,
        bound=min(widths.bound, objective),
        seconds=seconds,
        options=options,
        details={
            "cells_replaced": int((upper > lower).sum()),
            "position": place,
            "iterations": widths.iterations,
            "requests": widths.requests,
        },
        explanation="" if widths.bound > 0 or objective == 0 else "no useful bound was proven.",
        lower=lower,
        upper=upper,
    )


def _with_random_levels(table: Table, seed: int) -> Table:
    """Stretch the levels of each sensitive cell by a random share, one for each side, within the bounds."""
    rng = np.random.default_rng(seed)
    s = table.sensitive
    share = rng.uniform(0.0, 1.0, table.n_cells)
    lower = np.where(s, np.minimum(table.lower * (1 + _STRETCH * share), table.values - table.lb), 0.0)
    upper = np.where(s, np.minimum(table.upper * (1 + _STRETCH * (1 - share)), table.ub - table.values), 0.0)
    return table.with_(lower=np.maximum(lower, table.lower), upper=np.maximum(upper, table.upper))


def _positions(table: Table, lower: FloatArray, upper: FloatArray) -> dict[str, float]:
    """Where the truth lies in the intervals, in per cent of them (the five classes of baena2018 table 4)."""
    replaced = upper > lower
    share = (table.values[replaced] - lower[replaced]) / (upper[replaced] - lower[replaced])
    end, middle = 0.01, 0.01  # within a hundredth of the width counts as at the end or at the midpoint
    classes = {
        "at_right_end": share > 1 - end,
        "right_of_midpoint": (share > 0.5 + middle) & (share <= 1 - end),
        "at_midpoint": np.abs(share - 0.5) <= middle,
        "left_of_midpoint": (share < 0.5 - middle) & (share >= end),
        "at_left_end": share < end,
    }
    count = max(1, int(replaced.sum()))
    return {name: 100.0 * float(inside.sum()) / count for name, inside in classes.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """Widths of all cells, with a bound that holds for the whole problem."""

    lower: FloatArray
    upper: FloatArray
    bound: float
    iterations: int
    requests: int


class _Problem:
    """The table's relations between the cells that may be opened, and what must be hidden from whom."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.may_open = np.asarray(~table.fixed & (table.ub > table.lb))
        # a weight of 0 would let an interval be as wide as it likes
        positive = table.weights[table.weights > 0]
        self.weight = np.maximum(table.weights, 1e-6 * float(np.median(positive)) if len(positive) else 1.0)

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

    def solve(
        self,
        gap: float,
        deadline: float,
        progress: Callable[[float, float], None] | None = None,
        opened: BoolArray | None = None,
    ) -> _Found:
        """Solve with only some cells opened; with one width for both sides where that is exact."""
        from cellguard._engine.reduce import reduce

        reduction = reduce(self.table.relations, self.may_open if opened is None else opened)
        merged = reduction.merged
        work = _Copies(self, merged, reduction.basis[merged.cells])
        nothing = np.zeros(self.table.n_cells)
        if work.stuck:  # some cell that must be hidden cannot move with so few cells opened
            return _Found(lower=nothing, upper=nothing, bound=-np.inf, iterations=0, requests=0)
        if not len(work.requests):
            return _Found(lower=nothing, upper=nothing, bound=0.0, iterations=0, requests=0)
        found = work.solve_symmetric(gap, deadline, progress) if work.symmetric else None
        if found is None:
            found = work.solve(gap=gap, deadline=deadline, progress=progress)
        if found is None:  # safe, if wide: everything within what was known before; a partial opening may not suffice
            t = self.table
            full = np.where(self.may_open, 1.0, 0.0)
            bound = -np.inf if opened is not None else 0.0
            with np.errstate(invalid="ignore"):
                lower, upper = full * (t.values - t.lb), full * (t.ub - t.values)
            return _Found(lower=lower, upper=upper, bound=bound, iterations=0, requests=len(work.requests))
        return found

    def sparser(self, found: _Found, gap: float, deadline: float) -> _Found:
        """Publish exactly what the interior point left with tiny widths, if the gap allows.

        The bound stays that of the whole problem; leaving cells closed can only cost.
        """
        best = found
        needs = _needs(self.table)
        levels = np.concatenate([need.level for need in needs])
        asking = np.zeros(self.table.n_cells, np.bool_)  # a small level is a level: its cell stays open
        asking[np.concatenate([need.cell for need in needs])] = True
        unit = float(np.median(levels)) if len(levels) else 1.0
        for share in _DROP:
            if time.perf_counter() > deadline or found.iterations == 0:
                break
            width_of = np.maximum(found.lower, found.upper)
            opened = self.may_open & ((width_of > share * unit) | asking)
            if opened.sum() > 0.9 * (width_of > 0).sum():
                break  # hardly any cell would be closed: not worth another solve
            tried = self.solve(gap / 4, deadline, opened=opened)
            width = float(self.weight @ (tried.lower + tried.upper))
            if np.isfinite(tried.bound) and width - found.bound <= gap * width:
                best = _Found(
                    lower=tried.lower,
                    upper=tried.upper,
                    bound=found.bound,
                    iterations=found.iterations + tried.iterations,
                    requests=found.requests,
                )
                break
        return best


@dataclass(frozen=True, kw_only=True, eq=False)
class _Need:
    """Movements that one attacker must hold possible."""

    attacker: Attacker
    cell: IntArray
    sign: FloatArray
    level: FloatArray


def _needs(table: Table) -> list[_Need]:
    """Every attacker's levels as movements up and down; sliding levels as the parts that are missing.

    A sliding level larger than lower and upper together is split in their proportion (evenly when
    both are 0): safe, and optimal when the levels are symmetric. A sensitive cell without any level
    must not be known exactly: it asks for :data:`_NOMINAL` of its value, on one side at least.
    """
    out = []
    for attacker in table.attackers:
        need = table.levels(attacker)
        both = need.lower + need.upper
        grow = np.where(need.sliding > both, need.sliding / np.where(both > 0, both, 1.0), 1.0)
        lo, _ = table.bounds(attacker)
        lower = np.where(both > 0, need.lower * grow, need.sliding / 2)
        lower = np.minimum(lower, np.maximum(table.values[need.cells] - lo[need.cells], need.lower))
        upper = np.maximum(need.upper, np.where(need.sliding > both, need.sliding - lower, 0.0))
        a = np.abs(table.values[need.cells])
        bare = (np.maximum(both, need.sliding) == 0) & ~table.fixed[need.cells]
        nominal = np.where(bare, _NOMINAL * np.maximum(a, 1.0), 0.0)
        _, hi = table.bounds(attacker)
        upper = np.maximum(upper, np.minimum(nominal, hi[need.cells] - table.values[need.cells]))
        lower = np.maximum(lower, np.minimum(nominal, table.values[need.cells] - lo[need.cells]))
        cells = np.concatenate([need.cells, need.cells])
        sign = np.repeat([1.0, -1.0], len(need.cells))
        level = np.concatenate([upper, lower])
        keep = level > 0
        out.append(_Need(attacker=attacker, cell=cells[keep], sign=sign[keep], level=level[keep]))
    return out


def _splits_sliding_levels(table: Table) -> bool:
    """Whether some sliding level asks for more than the other two, in a way that `_needs` has to choose."""
    for attacker in table.attackers:
        need = table.levels(attacker)
        chosen = (need.sliding > need.lower + need.upper) & (need.lower != need.upper)
        if chosen.any():
            return True
    return False


class _Copies:
    """The problem in the merged variables of a reduction: requests, limits, and the way back to cells."""

    def __init__(self, problem: _Problem, merged: Merged, basis: csr_array) -> None:
        from cellguard._engine.widths import Requests

        t = problem.table
        self.merged, self.basis = merged, basis
        self.stuck = any((merged.variable[need.cell] < 0).any() for need in _needs(t))
        self.weight = abs(merged.lift).T @ problem.weight
        self.most_lower, self.most_upper = merged.room(t.values - t.lb, t.ub - t.values)
        plain: list[_Need] = []
        own: list[_Need] = []
        for need in _needs(t):
            (own if len(need.attacker.cells) else plain).append(need)
        cell, sign, level = [], [], []
        if plain:
            up, down = self._aggregate(plain)
            for side, direction in ((up, 1.0), (down, -1.0)):
                at = np.flatnonzero(side > 0)
                cell.append(at)
                sign.append(np.full(len(at), direction))
                level.append(side[at])
        self._shared = sum(len(part) for part in cell)
        self.symmetric = not own and bool(plain) and np.allclose(up, down, rtol=1e-9, atol=0.0)
        self._hard: list[tuple[FloatArray, FloatArray, int]] = []
        for need in own:
            up, down = self._aggregate([need])
            lo, hi = t.bounds(need.attacker)
            known = np.zeros(t.n_cells, np.bool_)
            known[need.attacker.cells] = True
            below, above = merged.room(np.where(known, t.values - lo, np.inf), np.where(known, hi - t.values, np.inf))
            count = 0
            for side, direction in ((up, 1.0), (down, -1.0)):
                at = np.flatnonzero(side > 0)
                cell.append(at)
                sign.append(np.full(len(at), direction))
                level.append(side[at])
                count += len(at)
            self._hard.append((below, above, count))
        self.requests = Requests(
            cell=np.concatenate(cell) if cell else np.zeros(0, np.int64),
            sign=np.concatenate(sign) if sign else np.zeros(0),
            level=np.concatenate(level) if level else np.zeros(0),
        )

    def _aggregate(self, needs: list[_Need]) -> tuple[FloatArray, FloatArray]:
        """Largest level of each variable upward and downward."""
        up, down = np.zeros(len(self.merged.cells)), np.zeros(len(self.merged.cells))
        for need in needs:
            variable = self.merged.variable[need.cell]
            moves = variable >= 0
            variable = variable[moves]
            ratio = np.asarray(self.merged.lift[need.cell[moves], variable]).ravel()
            level, forward = need.level[moves] / np.abs(ratio), need.sign[moves] * ratio > 0
            np.maximum.at(up, variable[forward], level[forward])
            np.maximum.at(down, variable[~forward], level[~forward])
        return up, down

    def solve_symmetric(
        self, gap: float, deadline: float, progress: Callable[[float, float], None] | None
    ) -> _Found | None:
        """One width for both sides: exact as long as no known bound is closer than the width; otherwise None."""
        known = np.minimum(self.most_lower, self.most_upper)

        def beyond(width: FloatArray) -> bool:
            excess = np.maximum(width - known * (1.0 + 1e-9), 0.0)
            return bool(self.weight @ excess > gap * (self.weight @ width))

        unlimited = np.full(len(known), np.inf)
        found = self._narrowest(True, unlimited, unlimited, gap, deadline, progress, beyond)
        if found is None or (found.upper > known * (1.0 + 1e-9)).any():
            return None
        return self._lift(found)

    def solve(self, *, gap: float, deadline: float, progress: Callable[[float, float], None] | None) -> _Found | None:
        """Separate widths above and below."""
        found = self._narrowest(False, self.most_lower, self.most_upper, gap, deadline, progress)
        return None if found is None else self._lift(found)

    def _narrowest(
        self,
        tied: bool,
        most_lower: FloatArray,
        most_upper: FloatArray,
        gap: float,
        deadline: float,
        progress: Callable[[float, float], None] | None,
        give_up: Callable[[FloatArray], bool] | None = None,
    ) -> Widths | None:
        from cellguard._engine.widths import Requests, narrowest_widths

        requests = self.requests
        if tied:
            up = requests.sign > 0
            requests = Requests(cell=requests.cell[up], sign=requests.sign[up], level=requests.level[up])
        hard_lower, hard_upper = self._hard_limits() if self._hard else (None, None)
        return narrowest_widths(
            self.merged.relations,
            self.basis,
            self.weight,
            requests,
            tied=tied,
            most_upper=most_upper,
            most_lower=most_lower,
            hard_upper=hard_upper,
            hard_lower=hard_lower,
            gap=gap,
            time_limit_s=deadline - time.perf_counter(),
            progress=progress,
            give_up=give_up,
        )

    def _lift(self, found: Widths) -> _Found:
        slack = 1.0 + 1e-9  # what floating point may have lost
        lower, upper = self.merged.spread(found.lower, found.upper)
        return _Found(
            lower=lower * slack,
            upper=upper * slack,
            bound=found.bound,
            iterations=found.iterations,
            requests=len(self.requests),
        )

    def _hard_limits(self) -> tuple[FloatArray, FloatArray]:
        """Limits of each request's movement: what its own attacker knew before."""
        shape = (len(self.requests), len(self.merged.cells))
        lower, upper = np.full(shape, np.inf), np.full(shape, np.inf)
        at = self._shared
        for below, above, count in self._hard:
            lower[at : at + count], upper[at : at + count] = below, above
            at += count
        return lower, upper
