"""How far cells can move when the unpublished cross of linked tables is not negative.

Tables of region by activity, activity by size and region by size are margins of one table of all three. An attacker
who knows that nothing in it is negative can exclude margins that no such cross has. That tells more than the relations
between the tables, and much more where published cells are nearly empty. So a movement of published cells counts
only with a matching movement of the cross.

The true cross is not needed. Any x >= 0 with the true margins will do as a start: the feasible set is convex, and
does not depend on the start. Iterative proportional fitting, from a cross of ones, finds the x farthest from all
zeros in a few sweeps. Most cells reach their levels by movements that spread over all cells by size, which take one
linear system. Each of the others has a program, and its movement counts for other cells too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array, hstack, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import ONCE, WARM, LinearModel, LinearProgram, SolveStatus
from cellguard._engine.space.cross import MOST_IN_PROGRAMS
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["CrossReach"]

_SWEEPS = 1_000
_FITS = 1e-11
"""Relative distance from its margins at which a cross fits."""
_DENSE = 4_000
"""Relations beyond which a dense factorization takes too long."""
_SMALL = 1e-2
"""Movements, in units of the typical value, below which they are lost in a program's tolerance."""
_FAR = 100.0
"""A program goes at most this many times as far as required."""
_REACHED = 1 - 1e-7
"""Share of a movement that counts as the whole."""


class CrossReach:
    """Movements of published cells, each with a movement of the cross."""

    def __init__(self, relations: csr_array, crosses: Sequence[IntArray], values: FloatArray, x: FloatArray) -> None:
        self.n = len(values)
        self.unit = float(np.median(np.abs(values[values != 0]))) if values.any() else 1.0
        self.x = x / self.unit
        cells = np.concatenate([cross.ravel() for cross in crosses])
        width = np.concatenate([np.full(len(cross), cross.shape[1]) for cross in crosses])
        counted = csr_array(
            (np.ones(len(cells)), (cells, np.repeat(np.arange(len(width)), width))), shape=(self.n, len(width))
        )
        leaves = np.unique(cells)
        of_leaves = csr_array((-np.ones(len(leaves)), (np.arange(len(leaves)), leaves)), shape=(len(leaves), self.n))
        without = csr_array((relations.shape[0], len(width)))
        self.A = csr_array(vstack([hstack([relations, without]), hstack([of_leaves, counted[leaves]])]))

    @classmethod
    def of(
        cls, relations: csr_array, crosses: Sequence[IntArray], values: FloatArray, deadline: Deadline
    ) -> list[CrossReach]:
        """Return it for the values of a table: for as many crosses at a time as one program takes.

        A cross that no margins fit is left out: no attacker can conclude anything from it. If this was not settled in
        time, nothing is shown.
        """
        fitted = [(cross, x) for cross in crosses if (x := _fit_inner_point(cross, values, deadline)) is not None]
        groups: list[list[tuple[IntArray, FloatArray]]] = []
        for one in fitted:
            if not groups or sum(len(x) for _, x in groups[-1]) + len(one[1]) > MOST_IN_PROGRAMS:
                groups.append([])
            groups[-1].append(one)
        return [
            cls(relations, [cross for cross, _ in group], values, np.concatenate([x for _, x in group]))
            for group in groups
        ]

    def find_shown(
        self, cells: IntArray, asked: tuple[FloatArray, FloatArray], bounds: tuple[FloatArray, FloatArray],
        deadline: Deadline,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Return lower limits of how far each cell can go down and up; as far as required, if possible.

        Parameters
        ----------
        cells
            Cells to move.
        asked
            How far each should go down and up.
        bounds
            Least and largest movement of every cell.
        deadline
            When to stop; levels not shown by then stay open.
        """
        if not np.isfinite(self.x).all():
            return np.zeros(len(cells)), np.zeros(len(cells))
        low = np.concatenate([bounds[0] / self.unit, -self.x])
        high = np.concatenate([bounds[1] / self.unit, np.full(len(self.x), np.inf)])
        need = np.zeros((2, self.n))
        need[:, cells] = np.array(asked) / self.unit
        furthest = self._spread(cells, need, (low, high), deadline)
        program: LinearProgram | None = None
        for side, sign in ((0, -1.0), (1, 1.0)):
            for cell in cells.tolist():
                if furthest[side, cell] >= _REACHED * need[side, cell] or deadline.passed:
                    continue
                program = program or LinearProgram(LinearModel(self.A, 0.0, 0.0, low, high), WARM)
                one, far = np.array([cell]), _FAR * need[side, cell]  # where no bound stops it
                program.set_bounds(one, np.maximum(low[one], -far), np.minimum(high[one], far))
                program.set_costs(one, np.array([-sign]))
                found = program.solve(time_limit_s=deadline.get_seconds_at_least(), duals=False)
                program.set_bounds(one, low[one], high[one])
                program.set_costs(one, np.zeros(1))
                if self._is_valid_movement(found.x, low, high):
                    furthest = np.maximum(furthest, [-found.x[: self.n], found.x[: self.n]])
        return furthest[0, cells] * self.unit, furthest[1, cells] * self.unit

    def _spread(
        self, cells: IntArray, need: FloatArray, bounds: tuple[FloatArray, FloatArray], deadline: Deadline
    ) -> FloatArray:
        """Return how far cells go, down and up, by movements that spread over all cells by size.

        The least sum of squares of relative movements is one linear system, the same for every cell; most cells
        reach their levels this way, since no cell must move by more than its value.
        """
        low, high = bounds
        furthest = np.zeros((2, self.n))
        free = np.flatnonzero(low < high)
        size = np.concatenate([np.minimum(-low[: self.n], high[: self.n]), self.x])[free]
        size = np.where(np.isfinite(size), size, 1.0)
        A = csr_array(self.A[:, free])
        D = diags_array(size)
        G = (A @ D @ A.T).toarray()
        if not len(free) or len(G) > _DENSE:
            return furthest
        G[np.diag_indices(len(G))] += 1e-12 * max(float(np.diag(G).max(initial=0.0)), 1e-300)
        try:
            factor = cho_factor(G, check_finite=False)
        except LinAlgError:  # sizes too different for it: programs take over
            return furthest
        place = np.full(self.A.shape[1], -1, np.int64)
        place[free] = np.arange(len(free))
        for cell in cells[place[cells] >= 0].tolist():
            if deadline.passed:
                break
            k = place[cell]
            z = -(A.T @ cho_solve(factor, A[:, [k]].toarray()[:, 0] * size[k], check_finite=False)) * size
            z[k] += size[k]
            if not z[k] > 0:
                continue
            for side, sign in ((0, -1.0), (1, 1.0)):
                move = np.zeros(self.A.shape[1])
                move[free] = z * (sign / z[k])
                with np.errstate(divide="ignore", invalid="ignore"):
                    steps = np.where(move > 0, high / move, np.where(move < 0, low / move, np.inf))
                move *= min(float(steps.min()), need[side, cell])
                if self._is_valid_movement(move, low, high):
                    furthest = np.maximum(furthest, [-move[: self.n], move[: self.n]])
        return furthest

    def _is_valid_movement(self, x: FloatArray, low: FloatArray, high: FloatArray) -> bool:
        """Check that a movement satisfies relations and bounds and leaves nothing negative; do not trust the solver."""
        if not np.isfinite(x).all():
            return False
        slack = 1e-7 * np.maximum(_SMALL, abs(self.A) @ np.abs(x))
        inside = (x >= low - 1e-7 * (_SMALL + np.abs(x))) & (x <= high + 1e-7 * (_SMALL + np.abs(x)))
        return bool(inside.all() and (np.abs(self.A @ x) <= slack).all())

    def find_cheapest(
        self, cell: int, by: float, free: BoolArray, prices: FloatArray, bounds: tuple[FloatArray, FloatArray],
        deadline: Deadline,
    ) -> BoolArray | None:  # fmt: skip
        """Return which cells move when one moves by this much, at the least cost of those that are not free; or None.

        `bounds` are the least and the largest movement of every cell if it may move.
        """
        if not np.isfinite(self.x).all():
            return None
        paid = np.flatnonzero(~free & (bounds[0] < bounds[1]))
        low, high = bounds[0] / self.unit, bounds[1] / self.unit
        low[cell] = high[cell] = by / self.unit
        k, m = len(paid), len(self.x)
        # movement of each cell that costs, up and down
        split = csr_array((np.ones(k), (np.arange(k), paid)), shape=(k, self.n + m))
        eye = csr_array((np.ones(k), (np.arange(k), np.arange(k))), shape=(k, k))
        A = vstack([hstack([self.A, csr_array((self.A.shape[0], 2 * k))]), hstack([split, -eye, eye])])
        price = np.concatenate(
            [np.zeros(self.n + m), np.tile(prices[paid] / max(prices[paid].max(initial=0.0), 1e-300), 2)]
        )
        lower = np.concatenate([low, -self.x, np.zeros(2 * k)])
        upper = np.concatenate([high, np.full(m + 2 * k, np.inf)])
        found = LinearProgram(LinearModel(A, 0.0, 0.0, lower, upper, price), ONCE).solve(
            time_limit_s=deadline.get_seconds_at_least(), duals=False
        )
        if not found.optimal or not self._is_valid_movement(
            found.x[: self.n + m], lower[: self.n + m], upper[: self.n + m]
        ):
            return None
        moved = np.abs(found.x[: self.n]) > 1e-9 * np.maximum(1.0, np.abs(by) / self.unit)
        return np.asarray(moved & ~free)


def _fit_inner_point(cross: IntArray, values: FloatArray, deadline: Deadline) -> FloatArray | None:
    """Return a cross that has the true margins and is as far from zero as possible; None if none fits.

    The cross is NaN if neither was found in time.
    """
    x = np.ones(len(cross))
    n = len(values)
    scale = np.maximum(np.abs(values), 1e-9 * np.abs(values).max(initial=0.0))
    filled = [np.unique(margin) for margin in cross.T]
    for sweep in range(_SWEEPS):
        for margin in cross.T:
            sums = np.bincount(margin, x, n)
            x = x * np.divide(values, sums, out=np.zeros(n), where=sums > 0)[margin]
        if sweep % 5 == 4:
            off = [
                (np.abs(np.bincount(m, x, n) - values) / scale)[f].max() for m, f in zip(cross.T, filled, strict=True)
            ]
            if max(off) <= _FITS:
                return x
            if deadline.passed:
                break
    return _fit_by_program(cross, values, deadline)


def _fit_by_program(cross: IntArray, values: FloatArray, deadline: Deadline) -> FloatArray | None:
    """Return a cross that has the true margins, by a linear program: for crosses in which much must be zero."""
    cells = np.unique(cross)
    unit = max(float(np.median(np.abs(values[cells]))), 1e-300)
    rows = np.searchsorted(cells, cross.ravel())
    A = csr_array(
        (np.ones(cross.size), (rows, np.repeat(np.arange(len(cross)), cross.shape[1]))), shape=(len(cells), len(cross))
    )
    side = values[cells] / unit
    model = LinearModel(A, side, side, np.zeros(len(cross)), np.full(len(cross), np.inf))
    found = LinearProgram(model, ONCE).solve(time_limit_s=deadline.get_seconds_at_least(), duals=False)
    if found.status is SolveStatus.INFEASIBLE:
        return None
    settled = found.optimal and model.is_satisfied_by(found.x)
    return np.maximum(found.x, 0.0) * unit if settled else np.full(len(cross), np.nan)
