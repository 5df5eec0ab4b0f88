"""Ranges: the least and greatest value of a cell that an attacker must still hold possible.

The attacker's programs (salazar2004 section 2) are solved for movements ``z = y - a`` around the
true table: ``T z = 0`` and ``-down <= z <= up``, so that no program is ever infeasible. Before any
program the relations are reduced: cells that cannot move are disclosed, cells that can only move
together are one variable. When only the verdict is wanted, one objective pushes all open cells at
once, each capped at its level, and every solution ticks off whatever it proves (section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cellguard._engine.lp import LinearProgram, Solution, SolveStatus
from cellguard._engine.reduce import Reduction, reduce

__all__ = ["AttackerProgram", "Ranges", "free_cells", "ranges"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

LEVEL_TOLERANCE = 1e-6
"""A level is met when this share of it, at most, is missing."""
FIXED_TOLERANCE = 1e-12
"""A cell whose interval is narrower than this share of its value is published."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranges:
    """What an attacker can compute of the cells that were asked for."""

    cells: IntArray
    """The cells that were asked for."""
    low: FloatArray
    """The least value that was attained by a feasible table; the exact end when `exact`."""
    high: FloatArray
    """The greatest value that was attained by a feasible table; the exact end when `exact`."""
    low_bound: FloatArray
    """Proven: no feasible table has a smaller value."""
    high_bound: FloatArray
    """Proven: no feasible table has a greater value."""
    safe: BoolArray
    """Cells whose levels are met, shown by the witnesses."""
    unsafe: BoolArray
    """Cells of which a proven bound lies inside a level. A cell may be neither: unknown."""
    disclosed: BoolArray
    """For every cell of the table: not published, and still known exactly by the relations alone."""
    exact: bool
    """Whether whole ranges were asked for, not only verdicts."""
    witnesses: csr_array
    """Feasible movements of the whole table, one row each."""
    low_witness: IntArray
    """The row of `witnesses` in which each asked cell takes `low`; -1 for the true table itself."""
    high_witness: IntArray
    """The row of `witnesses` in which each asked cell takes `high`; -1 for the true table itself."""
    programs: int
    """How many linear programs were solved."""


def free_cells(lo: FloatArray, hi: FloatArray, point: FloatArray) -> BoolArray:
    """Return which cells an attacker does not know already: their interval has a width."""
    return np.asarray(hi - lo > FIXED_TOLERANCE * np.maximum(1.0, np.abs(point)))


class AttackerProgram:
    """The attacker's linear program on the merged variables, kept warm while room and objective change.

    Movements of the cells are ``lift @ v``; the duals are given back per cell, as the multipliers
    ``alpha`` of the upper and ``beta`` of the lower ends of the intervals (salazar2004 (9), (10)).
    """

    def __init__(self, reduction: Reduction, down: FloatArray, up: FloatArray, *, unit: float = 1.0) -> None:
        self.reduction = reduction
        self.merged = reduction.merged
        self.unit = unit
        lift = self.merged.lift.tocoo()
        order = np.argsort(lift.col, kind="stable")
        self._cell, self._ratio = lift.row[order].astype(np.int64), lift.data[order]
        self._start = np.searchsorted(lift.col[order], np.arange(self.n_variables))
        self.variable = np.full(reduction.free.shape[0], -1, np.int64)
        self.variable[lift.row] = lift.col
        self.ratio = reduction.ratio
        self.solves = 0
        self._cost = np.zeros(self.n_variables)
        self._measure(down, up)
        A = self.merged.relations
        self.program = LinearProgram(A, 0.0, 0.0, -self.down / unit, self.up / unit)

    @property
    def n_variables(self) -> int:
        """Number of merged variables."""
        return len(self.merged.cells)

    def _measure(self, down: FloatArray, up: FloatArray) -> None:
        """Room of each variable: the least of its members'."""
        self.cell_down, self.cell_up = down, up
        size = np.abs(self._ratio)
        forward = self._ratio > 0
        above = np.where(forward, up[self._cell], down[self._cell]) / size
        below = np.where(forward, down[self._cell], up[self._cell]) / size
        empty = self.n_variables == 0
        self.up = np.zeros(0) if empty else np.minimum.reduceat(above, self._start)
        self.down = np.zeros(0) if empty else np.minimum.reduceat(below, self._start)
        self._above, self._below = above, below

    def set_room(self, down: FloatArray, up: FloatArray) -> None:
        """Change how far each cell can move."""
        self._measure(down, up)
        every = np.arange(self.n_variables)
        self.program.set_bounds(every, -self.down / self.unit, self.up / self.unit)

    def cap(self, variables: IntArray, down: FloatArray, up: FloatArray) -> None:
        """Let some variables move less than they could, until the next call of this method for them."""
        self.program.set_bounds(
            variables,
            -np.minimum(down, self.down[variables]) / self.unit,
            np.minimum(up, self.up[variables]) / self.unit,
        )

    def push(self, variables: IntArray, weights: FloatArray, *, time_limit_s: float = float("inf")) -> Solution:
        """Maximise a weighted sum of variables; the movements of the solution are in the table's unit."""
        cost = np.zeros(self.n_variables)
        cost[variables] = weights
        changed = np.flatnonzero(cost != self._cost)
        self.program.set_costs(changed, cost[changed])
        self._cost = cost
        self.solves += 1
        return self.program.solve(maximize=True, time_limit_s=time_limit_s)

    def movement(self, solution: Solution) -> FloatArray | None:
        """Variables of the solution, checked and pulled inside the room; None if it fails the check."""
        if solution.status not in (SolveStatus.OPTIMAL, SolveStatus.LIMIT) or not np.isfinite(solution.x).all():
            return None
        v = np.clip(solution.x * self.unit, -self.down, self.up)
        residual = np.abs(self.merged.relations @ v)
        size = abs(self.merged.relations) @ np.abs(v)
        return v if (residual <= 1e-9 * size + 1e-9 * self.unit).all() else None

    def multipliers(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """Return ``alpha`` and ``beta`` per cell: whatever the solver did, weak duality holds for them.

        They are computed from the relations' duals alone (salazar2004 section 3.1): for every
        movement z in the null space the objective equals ``(alpha - beta) z``, hence is at most
        ``alpha up + beta down``. A variable's multiplier goes to the member that leaves it least room.
        """
        reduced = self._cost - self.merged.relations.T @ solution.row_dual
        reduced[np.abs(reduced) < 1e-11 * max(1.0, np.abs(self._cost).max(initial=0.0))] = 0.0
        n = len(self.variable)
        alpha, beta = np.zeros(n), np.zeros(n)
        for sign, room, least in ((1, self._above, self.up), (-1, self._below, self.down)):
            tightest = np.flatnonzero(room == least[self.variable[self._cell]])
            _, first = np.unique(self.variable[self._cell[tightest]], return_index=True)
            k = tightest[first]  # one member per variable
            k = k[sign * reduced[self.variable[self._cell[k]]] > 0]
            i = self._cell[k]
            share = reduced[self.variable[i]] / self._ratio[k]
            alpha[i] += np.maximum(share, 0.0)
            beta[i] += np.maximum(-share, 0.0)
        return alpha, beta

    def bound(self, alpha: FloatArray, beta: FloatArray) -> float:
        """Proven upper bound of the objective: ``alpha up + beta down``."""
        used_up, used_down = alpha > 0, beta > 0
        return float(alpha[used_up] @ self.cell_up[used_up] + beta[used_down] @ self.cell_down[used_down])


def ranges(
    relations: csr_array,
    lo: FloatArray,
    hi: FloatArray,
    point: FloatArray,
    cells: IntArray,
    *,
    lower: FloatArray | None = None,
    upper: FloatArray | None = None,
    sliding: FloatArray | None = None,
    exact: bool = False,
    time_limit_s: float = float("inf"),
) -> Ranges:
    """Compute what an attacker can say about some cells.

    Parameters
    ----------
    relations
        Relations of the table, one row each; `point` satisfies them.
    lo, hi
        Interval of each cell that the release and the attacker's knowledge leave; contains `point`.
    point
        The true table.
    cells
        Cells that are asked for.
    lower, upper, sliding
        Levels of `cells`, as distances; 0 unless given.
    exact
        Compute both ends of every range; otherwise stop where the verdict is known.
    time_limit_s
        For each linear program.

    Examples
    --------
    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> lo, hi, a = np.array([9.0, 0, 0]), np.array([9.0, 9, 9]), np.array([9.0, 4, 5])
    >>> found = ranges(T, lo, hi, a, np.array([1]), exact=True)
    >>> found.low.tolist(), found.high.tolist()
    ([0.0], [9.0])
    """
    cells = np.asarray(cells, np.int64)
    zero = np.zeros(len(cells))
    need = _Levels(
        lower=zero if lower is None else np.asarray(lower, np.float64),
        upper=zero if upper is None else np.asarray(upper, np.float64),
        sliding=zero if sliding is None else np.asarray(sliding, np.float64),
    )
    down, up = np.maximum(point - lo, 0.0), np.maximum(hi - point, 0.0)
    reduction = reduce(relations, free_cells(lo, hi, point))
    return _Search(reduction, down, up, point, cells, need, exact, time_limit_s).run()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Levels:
    lower: FloatArray
    upper: FloatArray
    sliding: FloatArray


class _Search:
    """One run of the range engine: which requests are open, and what solutions have proven so far."""

    def __init__(
        self,
        reduction: Reduction,
        down: FloatArray,
        up: FloatArray,
        point: FloatArray,
        cells: IntArray,
        need: _Levels,
        exact: bool,
        time_limit_s: float,
    ) -> None:
        self.reduction, self.point, self.cells, self.need, self.exact = reduction, point, cells, need, exact
        self.time_limit_s = time_limit_s
        level = np.concatenate([need.lower, need.upper, need.sliding])
        unit = float(level.max(initial=0.0)) or 1.0
        self.program = AttackerProgram(reduction, down, up, unit=unit)
        self.movable = reduction.alias[cells] >= 0
        self.variable = self.program.variable[cells]
        self.ratio = reduction.ratio[cells]
        k = self.program.n_variables
        # per variable: what has been attained, what is proven, and what the levels ask of it
        self.high, self.low = np.zeros(k), np.zeros(k)
        self.high_bound, self.low_bound = self.program.up.copy(), -self.program.down.copy()
        self.high_witness, self.low_witness = np.full(k, -1, np.int64), np.full(k, -1, np.int64)
        self.pool: list[FloatArray] = []
        self.given_up = {side: np.zeros(k, bool) for side in (1, -1)}
        size = np.abs(self.ratio[self.movable])
        forward = self.ratio[self.movable] > 0
        lower, upper = need.lower[self.movable], need.upper[self.movable]
        # levels in terms of the variables, one per movable cell that was asked for
        self.asked = self.variable[self.movable]
        self.need_high = np.where(forward, upper, lower) / size
        self.need_low = np.where(forward, lower, upper) / size
        self.need_width = need.sliding[self.movable] / size

    def run(self) -> Ranges:
        if self.program.n_variables:
            if self.exact:
                wanted = np.unique(self.asked)
                for side in (1, -1):
                    for j in wanted:
                        self._single(int(j), side)
            else:
                for side in (1, -1):
                    self._verdicts(side)
                self._widths()
        return self._result()

    # ------------------------------------------------------------------ verdicts

    def _missing(self, side: int) -> tuple[IntArray, FloatArray]:
        """Return the variables with a level on this side that is neither reached nor proven out of reach.

        Aliases may have different levels: the highest that is still open is the one to reach.
        """
        need = (self.need_high if side > 0 else self.need_low) * (1 - LEVEL_TOLERANCE)
        got, bound = (self.high, self.high_bound) if side > 0 else (-self.low, -self.low_bound)
        open_ = (got[self.asked] < need) & (bound[self.asked] >= need) & ~self.given_up[side][self.asked]
        variables, place = np.unique(self.asked[open_], return_inverse=True)
        level = np.zeros(len(variables))
        np.maximum.at(level, place, need[open_] / (1 - LEVEL_TOLERANCE))
        return variables, level

    def _verdicts(self, side: int) -> None:
        while True:
            missing, level = self._missing(side)
            if len(missing) == 0:
                return
            if len(missing) > 1:
                infinite = np.full(len(missing), np.inf)
                self.program.cap(missing, *((infinite, level) if side > 0 else (level, infinite)))
                self._learn(self.program.push(missing, side / level * self.program.unit))
                self.program.cap(missing, infinite, infinite)
                if len(missing) - len(self._missing(side)[0]) > 0.05 * len(missing):
                    continue
            hardest = int(missing[np.argmax(level)])
            self._single(hardest, side)
            if hardest in self._missing(side)[0]:
                self.given_up[side][hardest] = True

    def _widths(self) -> None:
        short = (self.high - self.low)[self.asked] < self.need_width * (1 - LEVEL_TOLERANCE)
        for j in np.unique(self.asked[short]):
            for side in (1, -1):
                self._single(int(j), side)

    def _single(self, j: int, side: int) -> None:
        """Solve for one variable and side to the end, and keep the proof of both the value and the bound."""
        if (self.high[j] >= self.high_bound[j]) if side > 0 else (self.low[j] <= self.low_bound[j]):
            return
        solution = self.program.push(np.array([j]), np.array([float(side)]), time_limit_s=self.time_limit_s)
        self._learn(solution)
        if solution.optimal:
            alpha, beta = self.program.multipliers(solution)
            bound = self.program.bound(alpha, beta)
            if side > 0:
                self.high_bound[j] = max(min(self.high_bound[j], bound), self.high[j])
            else:
                self.low_bound[j] = min(max(self.low_bound[j], -bound), self.low[j])
        elif solution.status is SolveStatus.UNBOUNDED:
            self._unbounded(j, side)

    def _unbounded(self, j: int, side: int) -> None:
        """Replace an infinite range by a witness far beyond every level."""
        far = 10.0 * self.program.unit
        ends = (np.array([np.inf]), np.array([far]))
        self.program.cap(np.array([j]), *(ends if side > 0 else ends[::-1]))
        self._learn(self.program.push(np.array([j]), np.array([float(side)])))
        self.program.cap(np.array([j]), np.array([np.inf]), np.array([np.inf]))
        if self.exact:
            (self.high if side > 0 else self.low)[j] = side * np.inf

    def _learn(self, solution: Solution) -> None:
        """Tick off everything the solution proves."""
        v = self.program.movement(solution)
        if v is None:
            return
        higher, lower = v > self.high, v < self.low
        asked = np.zeros(len(v), bool)
        asked[self.asked] = True
        higher, lower = higher & asked, lower & asked
        if not (higher.any() or lower.any()):
            return
        self.high_witness[higher] = self.low_witness[lower] = len(self.pool)
        self.high[higher], self.low[lower] = v[higher], v[lower]
        self.pool.append(v)

    # ------------------------------------------------------------------ result

    def _result(self) -> Ranges:
        m, j, r = self.movable, self.variable, self.ratio
        n = len(self.cells)
        ends = {name: np.zeros(n) for name in ("low", "high", "low_bound", "high_bound")}
        rows = {name: np.full(n, -1, np.int64) for name in ("low", "high")}
        forward = r[m] > 0
        for name, other in (("low", "high"), ("high", "low")):
            for kind in ("", "_bound"):
                mine, theirs = getattr(self, name + kind)[j[m]], getattr(self, other + kind)[j[m]]
                ends[name + kind][m] = r[m] * np.where(forward, mine, theirs)
            mine_row, other_row = getattr(self, f"{name}_witness")[j[m]], getattr(self, f"{other}_witness")[j[m]]
            rows[name][m] = np.where(forward, mine_row, other_row)
        keep = 1 - LEVEL_TOLERANCE
        need = self.need
        safe = (
            (ends["high"] >= need.upper * keep)
            & (-ends["low"] >= need.lower * keep)
            & (ends["high"] - ends["low"] >= need.sliding * keep)
        )
        unsafe = (
            (ends["high_bound"] < need.upper * keep)
            | (-ends["low_bound"] < need.lower * keep)
            | (ends["high_bound"] - ends["low_bound"] < need.sliding * keep)
        )
        a = self.point[self.cells]
        lift = self.program.merged.lift
        pool = csr_array(np.array(self.pool)) if self.pool else csr_array((0, self.program.n_variables))
        used = np.unique(np.concatenate([rows["low"], rows["high"], [-1]]))[1:]
        place = np.full(len(self.pool) + 1, -1, np.int64)
        place[used] = np.arange(len(used))
        return Ranges(
            cells=self.cells,
            low=a + ends["low"],
            high=a + ends["high"],
            low_bound=a + ends["low_bound"],
            high_bound=a + ends["high_bound"],
            safe=safe,
            unsafe=unsafe & ~safe,
            disclosed=self.reduction.determined & self.reduction.free,
            exact=self.exact,
            witnesses=csr_array(pool[used] @ lift.T),
            low_witness=place[rows["low"]],
            high_witness=place[rows["high"]],
            programs=self.program.solves,
        )
