"""Cell perturbation: every cell moves a little and the table stays additive (salazar2004 section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine import clock
from cellguard.exceptions import InputError, LevelError
from cellguard.levels import with_respondents
from cellguard.publication import takes_publications
from cellguard.release import Perturbation, Status
from cellguard.table import BoolArray, FloatArray, Table, residuals

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._engine.cuts import Cut, Separator
    from cellguard._engine.lp import LinearProgram, Solution

__all__ = ["perturb"]

_ROUNDS = 500
_CUTS_PER_ROUND = 200


@takes_publications
def perturb(
    table: Table,
    base: ArrayLike | None = None,
    *,
    distance: ArrayLike | None = None,
    round_sensitive: bool = False,
    time_limit_s: float | None = None,
    seed: int = 0,
) -> Perturbation:
    """Publish an additive table near the truth; what is published of each cell leaves its levels open.

    With a base, a cell may be moved to anything between the multiples next to it and is drawn towards
    the nearest; with distances, to anything within its distance, and a seeded coin tells to which
    side it is drawn: otherwise the original table would be the best answer (section 4). The base,
    or the distance, is published: an attacker knows that the truth is not farther away than that.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of distance from where a cell is drawn to.
    base
        One base or one per cell (5 unless `distance` is given).
    distance
        One distance or one per cell, instead of a base.
    round_sensitive
        Sensitive cells take one of their two multiples (constraints (1) of the paper, for them only).
    time_limit_s
        Stop after this.
    seed
        Of the coins, with distances.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([21, 52, 73], [[2, 0, 1]], sensitive=[0], lower=[1], upper=[3])
    >>> release = cg.perturb(table, base=5)
    >>> bool(abs(release.values[0] + release.values[1] - release.values[2]) < 1e-9)
    True
    """
    begin = clock.now()
    table = with_respondents(table)
    limits = _Limits.make(table, base, distance, seed)
    limits.refuse_hopeless(table)
    solver = _CuttingPlanes(table, limits, round_sensitive)
    reduced = clock.now()
    deadline = np.inf if time_limit_s is None else begin + time_limit_s
    status, values, bound = solver.solve(deadline)
    found = values is not None
    objective = solver.objective(values) if values is not None else float("nan")
    return Perturbation(
        table=table,
        status=status,
        objective=objective,
        bound=min(bound, objective) if found else float("nan"),
        seconds={"reduce": reduced - begin, "solve": clock.now() - reduced},
        options={"round_sensitive": round_sensitive, "time_limit_s": time_limit_s, "seed": seed},
        details={"cuts": solver.n_cuts, "rounds": solver.rounds},
        explanation="" if found else solver.explain(),
        values=table.values if values is None else values,
        distance=limits.distance,
        base=limits.base,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Limits:
    """How far each cell may move, where it is drawn to, and what is published about it."""

    low: FloatArray
    high: FloatArray
    target: FloatArray
    distance: FloatArray
    base: FloatArray | None

    @classmethod
    def make(cls, table: Table, base: ArrayLike | None, distance: ArrayLike | None, seed: int) -> _Limits:
        if base is not None and distance is not None:
            raise InputError("base and distance are two ways to say the same.", hint="give one of them.")
        a = table.values
        if distance is None:
            r = _per_cell(5.0 if base is None else base, table, "base", positive=True)
            low, high = np.floor(a / r + 1e-12) * r, np.ceil(a / r - 1e-12) * r
            target = np.where(a - low <= high - a, low, high)
            room, bases = r, r
        else:
            room, bases = _per_cell(distance, table, "distance", positive=False), None
            low, high = a - room, a + room
            up = np.random.default_rng(seed).random(table.n_cells) < 0.5
            target = np.where(up, high, low)
        low = np.where(table.fixed, a, np.maximum(low, table.lb))
        high = np.where(table.fixed, a, np.minimum(high, table.ub))
        published = np.where(table.fixed, 0.0, room)
        return cls(low=low, high=high, target=np.clip(target, low, high), distance=published, base=bases)

    def refuse_hopeless(self, table: Table) -> None:
        """Refuse levels wider than the published interval: max(SPL, UPL + LPL) <= 2 r (section 4)."""
        for attacker in table.attackers:
            need = table.levels(attacker)
            asked = np.maximum(need.sliding, need.lower + need.upper)
            over = asked > 2 * self.distance[need.cells] * (1 + 1e-9)
            if over.any():
                cell = int(need.cells[np.argmax(over)])
                more = f" (and {int(over.sum()) - 1} more)" if over.sum() > 1 else ""
                raise LevelError(
                    f"{table.label(cell)}{more}: the levels ask for a wider range than twice the distance that is "
                    "published, so no perturbation can meet them.",
                    hint="raise the base or distance of this cell to at least half of max(sliding, lower + upper).",
                )


def _per_cell(given: ArrayLike, table: Table, name: str, *, positive: bool) -> FloatArray:
    array = np.asarray(given, np.float64)
    if array.ndim and array.shape != (table.n_cells,):
        raise InputError(
            f"{name}: {array.size} numbers given for {table.n_cells} cells.", hint="give one number, or one per cell."
        )
    out = np.broadcast_to(array, table.n_cells).copy()
    bad = ~np.isfinite(out) | (out <= 0 if positive else out < 0)
    if bad.any():
        least = "above 0" if positive else "of at least 0"
        raise InputError(f"{name} of {table.label(int(np.argmax(bad)))}: a finite number {least} is needed.")
    return out


class _CuttingPlanes:
    """The linear program in the movements ``z = v - a``, with cuts where an attacker comes too close."""

    def __init__(self, table: Table, limits: _Limits, round_sensitive: bool) -> None:
        from cellguard._engine.reduce import reduce

        self.table, self.limits = table, limits
        a = table.values
        self.low, self.high = limits.low - a, limits.high - a
        self._apply_trivial_bounds()
        # w |z - target|, linear because the target is an end of the cell's interval
        self.cost = table.weights * np.where(limits.target - a <= (self.low + self.high) / 2, 1.0, -1.0)
        self.whole: BoolArray = np.asarray(table.sensitive & round_sensitive & (self.low < self.high))
        self.rows = reduce(table.relations, self.low < self.high).rows
        self.relations: csr_array = table.relations[self.rows]
        self.cut_rows: list[tuple[Cut, FloatArray, float]] = []
        self.rounds = 0

    def _apply_trivial_bounds(self) -> None:
        """A sensitive cell's own interval must reach its levels: capacity constraints with one cell (section 4)."""
        t, d = self.table, self.limits.distance
        for attacker in t.attackers:
            need = t.levels(attacker)
            self.low[need.cells] = np.maximum(self.low[need.cells], need.upper - d[need.cells])
            self.high[need.cells] = np.minimum(self.high[need.cells], d[need.cells] - need.lower)
        # rounding alone must not make an interval empty
        nearly = (self.low > self.high) & (self.low - self.high <= 1e-9 * (1 + np.abs(self.table.values)))
        self.low[nearly] = self.high[nearly]

    @property
    def n_cuts(self) -> int:
        return len(self.cut_rows)

    def objective(self, values: FloatArray) -> float:
        """Weighted distance from where the cells are drawn to."""
        return float(self.table.weights @ np.abs(values - self.limits.target))

    def solve(self, deadline: float) -> tuple[Status, FloatArray | None, float]:
        if (self.low > self.high).any():
            return Status.INFEASIBLE, None, float("nan")
        program = self._program()
        separators = self._separators()
        best = -np.inf
        for self.rounds in range(1, _ROUNDS + 1):
            left = max(0.1, deadline - clock.now())
            solution = program.solve(time_limit_s=left)
            if not solution.optimal:
                infeasible = solution.status == "infeasible"
                return Status.INFEASIBLE if infeasible else Status.TIME_LIMIT, None, float("nan")
            best = max(best, self._bound(solution))
            z = np.clip(self._movement(solution.x), self.low, self.high)
            cuts = self._violated(separators, z)
            if not cuts:
                values = self._additive(z)
                optimal = self.objective(values) - best <= 1e-6 * max(1.0, abs(best))
                return Status.OPTIMAL if optimal else Status.FEASIBLE, values, best
            if clock.now() > deadline:
                return Status.TIME_LIMIT, None, float("nan")
            self._add(program, cuts)
        return Status.TIME_LIMIT, None, float("nan")

    def _program(self) -> LinearProgram:
        """Movements, and for whole cells a choice ``z = low + (high - low) x``, x in {0, 1}."""
        from scipy.sparse import csr_array, hstack, vstack

        from cellguard._engine.lp import LinearProgram

        n, chosen = self.table.n_cells, np.flatnonzero(self.whole)
        k = len(chosen)
        A = self.relations
        lower, upper = self.low, self.high
        sides = np.zeros(A.shape[0])
        integer = None
        if k:
            span = (self.high - self.low)[chosen]
            pick = csr_array((np.ones(k), (np.arange(k), chosen)), shape=(k, n))
            link = hstack([pick, csr_array((-span, (np.arange(k), np.arange(k))), shape=(k, k))])
            A = vstack([hstack([A, csr_array((A.shape[0], k))]), link])
            sides = np.concatenate([sides, self.low[chosen]])
            lower, upper = np.concatenate([lower, np.zeros(k)]), np.concatenate([upper, np.ones(k)])
            integer = np.arange(n + k) >= n
        cost = np.concatenate([self.cost, np.zeros(k)])
        self._rows, self._sides = csr_array(A), sides
        return LinearProgram(
            A, sides, sides, lower, upper, cost, simplex="dual", presolve=True, integer=integer, tolerance=1e-9
        )

    def _movement(self, x: FloatArray) -> FloatArray:
        return x[: self.table.n_cells]

    def _separators(self) -> list[Separator]:
        from cellguard._engine.cuts import Separator

        t, a = self.table, self.table.values
        free = self.limits.distance > 0
        out = []
        for attacker in t.attackers:
            need = t.levels(attacker)
            lo, hi = t.bounds(attacker)
            out.append(
                Separator(
                    t.relations,
                    need.cells,
                    lower=need.lower,
                    upper=need.upper,
                    sliding=need.sliding,
                    known_down=a - lo,
                    known_up=hi - a,
                    free=free,
                )
            )
        return out

    def _violated(self, separators: list[Separator], z: FloatArray) -> list[Cut]:
        d = self.limits.distance
        down, up = np.maximum(d - z, 0.0), np.maximum(d + z, 0.0)
        return [c for s in separators for c in s.separate(down, up, max_cuts=_CUTS_PER_ROUND)]

    def _add(self, program: LinearProgram, cuts: list[Cut]) -> None:
        from scipy.sparse import csr_array

        d = self.limits.distance
        one = np.ones_like(d)
        start = len(self.cut_rows)
        for cut in cuts:
            coefficients, rhs = cut.row(up=(d, one), down=(d, -one))
            self.cut_rows.append((cut, coefficients, rhs))
        new = self.cut_rows[start:]
        data = np.concatenate([c for _, c, _ in new])
        indices = np.concatenate([cut.support for cut, _, _ in new])
        indptr = np.concatenate([[0], np.cumsum([len(c) for _, c, _ in new])])
        rows = csr_array((data, indices, indptr), shape=(len(new), program.n_columns))
        program.add_rows(rows, np.array([rhs for _, _, rhs in new]), np.full(len(new), np.inf))

    def _bound(self, solution: Solution) -> float:
        """What the multipliers prove of the objective, whatever the solver claims."""
        from scipy.sparse import csr_array, vstack

        from cellguard._engine.lp import weak_duality_bound

        a, target = self.table.values, self.limits.target
        constant = -float(self.cost @ (target - a))
        if self.whole.any():
            return solution.bound + constant
        n = self.table.n_cells
        rows, low, high = self.relations, np.zeros(len(self.rows)), np.zeros(len(self.rows))
        if self.cut_rows:
            data = np.concatenate([c for _, c, _ in self.cut_rows])
            indices = np.concatenate([cut.support for cut, _, _ in self.cut_rows])
            indptr = np.concatenate([[0], np.cumsum([len(c) for _, c, _ in self.cut_rows])])
            rows = csr_array(vstack([rows, csr_array((data, indices, indptr), shape=(len(self.cut_rows), n))]))
            low = np.concatenate([low, [rhs for _, _, rhs in self.cut_rows]])
            high = np.concatenate([high, np.full(len(self.cut_rows), np.inf)])
        y = np.where(np.isinf(high), np.maximum(solution.row_dual, 0.0), solution.row_dual)
        return weak_duality_bound(rows, low, high, self.low, self.high, self.cost, y) + constant

    def _additive(self, z: FloatArray) -> FloatArray:
        """Values of the published table; what rounding left in the relations is moved into the parameters' cells."""
        values = self.table.values + z
        residual, allowed = residuals(self.table.relations, self.table.rhs, values)
        if (np.abs(residual) <= allowed * 0.1).all():
            return values
        from cellguard._engine.reduce import reduce

        reduction = reduce(self.table.relations, self.low < self.high)
        return np.asarray(self.table.values + reduction.basis @ z[reduction.parameters])

    def explain(self) -> str:
        """Name what stands against a perturbation."""
        t = self.table
        empty = np.flatnonzero(self.low > self.high)
        if len(empty):
            return f"{t.label(int(empty[0]))}: its levels cannot be met within its limits."
        if self.cut_rows:
            names = sorted({cut.cell for cut, _, _ in self.cut_rows})[:5]
            cells = ", ".join(t.label(c) for c in names)
            return f"no additive table within the limits meets the levels of {cells} together; raise the base there."
        return "no additive table lies within the limits; raise the base."
