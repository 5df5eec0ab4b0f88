"""The closest-table problem between movers: cells that can only move together are one variable.

Merging makes the problem smaller and better scaled: the weights of cells that move together add up, and the
tightest of their bounds counts. The result of the interior point is translated back to cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.distance import Target
from cellguard._engine.closest.interior import Point, PointInequalities, Program
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram, SolveStatus, Way, solve_lp_for_least_movement
from cellguard._engine.space.reduce import Reduction
from cellguard._types import FloatArray, IntArray

__all__ = ["ClosestProblem", "ClosestRequest", "Movers"]


class Movers:
    """Which cells move with which mover, and how far."""

    def __init__(self, reduction: Reduction) -> None:
        space = reduction.space
        self.n_cells, self.n = len(reduction.free), len(space)
        self.relations: csr_array = space.relations
        self.cell, self.mover, self.ratio = space.members
        self.size = np.abs(self.ratio)
        self.ratio_of = np.zeros(self.n_cells)
        self.ratio_of[self.cell] = self.ratio

    def sum_by_mover(self, weight: FloatArray) -> FloatArray:
        """Return sums over the cells of each mover; one weight per moving cell."""
        return np.asarray(np.bincount(self.mover, weight, self.n), np.float64)

    def compute_extremes(self, value: FloatArray, choose: np.ufunc) -> tuple[FloatArray, IntArray]:
        """Return the largest (or smallest) value of each mover, and the cell that attains it."""
        best = np.full(self.n, -np.inf if choose is np.maximum else np.inf)
        choose.at(best, self.mover, value)
        owner = np.zeros(self.n, np.int64)
        holds = value == best[self.mover]
        owner[self.mover[holds]] = self.cell[holds]
        return best, owner

    def compute_bounds(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
        """Return the tightest lower bound of each mover and its cell, and the upper ones."""
        low, high = lower[self.cell], upper[self.cell]
        start = np.where(self.ratio > 0, low, high) / self.ratio
        stop = np.where(self.ratio > 0, high, low) / self.ratio
        return *self.compute_extremes(start, np.maximum), *self.compute_extremes(stop, np.minimum)

    def expand_to_cells(self, v: FloatArray) -> FloatArray:
        """Return the movements of the cells, given those of the movers."""
        z = np.zeros(self.n_cells)
        z[self.cell] = self.ratio * v[self.mover]
        return z


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosestRequest:
    """Movers that must leave the open interval (-down, up), either way; the envelope of their distance counts."""

    mover: IntArray
    down: FloatArray
    up: FloatArray


class _Pairs:
    """Auxiliaries ``e`` with two rows each: ``sign1 v + e >= side1`` and ``sign2 v + e >= side2``."""

    def __init__(self) -> None:
        self.parts: list[tuple[IntArray, list[FloatArray]]] = []

    def add(self, mover: IntArray, first: tuple[Any, Any], second: tuple[Any, Any], cost: Any, quadratic: Any) -> slice:
        """Append auxiliaries; return their positions."""
        n, begin = len(mover), sum(len(part[0]) for part in self.parts)
        numbers = (*first, *second, cost, quadratic)
        self.parts.append((mover, [np.broadcast_to(np.asarray(x, np.float64), n) for x in numbers]))
        return slice(begin, begin + n)

    def join_rows(self) -> tuple[IntArray, list[FloatArray]]:
        """Return the movers, the signs and sides of the first and second rows, costs and curvatures."""
        movers, numbers = zip(*self.parts, strict=True)
        return np.concatenate(movers), [np.concatenate(each) for each in zip(*numbers, strict=True)]


class ClosestProblem:
    """One problem between movers, in units of a typical movement."""

    def __init__(self, movers: Movers, target: Target, request: ClosestRequest | None = None) -> None:
        lower, upper, distance, soft = target.lower, target.upper, target.distance, target.soft
        self.m, self.d, self.soft, self.request = movers, distance, soft, request
        self.cell_lower, self.cell_upper = lower, upper
        # values may be 1e11 and levels 1e5 (toysarah): the required movement is the unit
        needs = np.maximum(lower, -upper)[movers.cell]
        needs = needs[np.isfinite(needs)]
        needs = needs[needs > 0] if request is None else np.concatenate([needs[needs > 0], request.up, request.down])
        self.unit = float(np.median(needs)) if len(needs) else 1.0
        hard = soft is None
        none = np.full(movers.n_cells, np.inf)
        low, self.lower_cell, high, self.upper_cell = movers.compute_bounds(
            lower if hard else -none, upper if hard else none
        )
        self.lower, self.upper = low / self.unit, high / self.unit
        self.absolute = movers.sum_by_mover(distance.absolute[movers.cell] * movers.size) * self.unit
        self.square = movers.sum_by_mover(distance.square[movers.cell] * movers.size**2) * self.unit**2
        self.caps = [
            movers.compute_extremes(
                np.where(distance.group == g, distance.largest, 0.0)[movers.cell] * movers.size * self.unit, np.maximum
            )
            for g in ((0, 1) if distance.largest.any() else ())
        ]

    @property
    def flat(self) -> bool:
        """Whether only absolute movements count, so that some vertex is closest."""
        plain = self.soft is None and self.request is None
        return plain and bool(self.absolute.any()) and not self.square.any() and not self.caps

    def solve_by_simplex(self, deadline: Deadline = NEVER) -> tuple[SolveStatus, FloatArray | None]:
        """Return the solver's status, and the movement with the least sum within the bounds, or None."""
        price = np.where(self.absolute > 0, self.absolute, 1.0)
        price = np.clip(price / np.median(price), 1e-6, 1e6)  # wide cost ratios slow the solver
        return solve_lp_for_least_movement(
            self.m.relations, self.lower, self.upper, price, ONCE, deadline.get_seconds_at_least()
        )

    @property
    def curved(self) -> bool:
        """Whether the square of every movement counts."""
        return self.request is None and bool((self.square > 0).all())

    def build_program(self) -> Program:
        """Return the rows of the interior point: bounds, then pairs, then largest movements."""
        rises, falls = self.lower >= 0, self.upper <= 0
        self.lean = np.where(rises, 1.0, np.where(falls, -1.0, 0.0))  # slope of |v| where it is known
        linear, quadratic, constant = self.lean * self.absolute, 2.0 * self.square, 0.0
        curved_only = self.absolute.copy()
        pairs = _Pairs()
        if self.request is not None:
            constant = self._replace_by_envelope(pairs, linear, quadratic, curved_only)
        self.split = np.flatnonzero((curved_only > 0) & ~rises & ~falls)
        self.pair_split = pairs.add(self.split, (-1.0, 0.0), (1.0, 0.0), self.absolute[self.split], 0.0)
        if self.soft is not None:
            self._allow_missed_bounds(pairs)
        self.low, self.high = np.flatnonzero(np.isfinite(self.lower)), np.flatnonzero(np.isfinite(self.upper))
        return self._assemble(linear, quadratic, pairs, constant)

    def _replace_by_envelope(
        self, pairs: _Pairs, linear: FloatArray, quadratic: FloatArray, absolute: FloatArray
    ) -> float:
        """Replace the distance of requested movers by the largest convex function below it outside (-down, up).

        Inside it is the chord. For w v^2 that is ``w ((up - down) v + up down)``, and a distance e further out
        costs ``w ((up + down) e + e^2)`` more; for w |v| only the slopes change.
        Return the constant term.
        """
        r = self.request
        assert r is not None  # noqa: S101 - the caller asked
        j, up, down = r.mover, r.up / self.unit, r.down / self.unit
        w1, w2, width = self.absolute[j], self.square[j], up + down
        linear[j] = w1 * (up - down) / width + w2 * (up - down)
        quadratic[j] = 0.0
        absolute[j] = 0.0
        for sign, end, other in ((-1.0, up, down), (1.0, down, up)):
            price = w2 * width + w1 * 2.0 * other / width
            k = np.flatnonzero(price > 0)
            pairs.add(j[k], (sign, -end[k]), (0.0, 0.0), price[k], 2.0 * w2[k])
        return float((w1 * 2.0 * up * down / width + w2 * up * down).sum())

    def _allow_missed_bounds(self, pairs: _Pairs) -> None:
        """Add bounds that may be missed at a cost, cell by cell: ``v + e >= l, e >= 0`` and the same above."""
        m, soft = self.m, self.soft
        assert soft is not None  # noqa: S101 - the caller asked
        self.soft_cells: list[tuple[IntArray, slice, int]] = []
        for which, bound in ((0, self.cell_lower), (1, self.cell_upper)):
            k = np.flatnonzero(np.isfinite(bound[m.cell]))
            sign = np.sign(m.ratio[k]) * (1.0 if which == 0 else -1.0)
            side = (1.0 if which == 0 else -1.0) * bound[m.cell[k]] / m.size[k] / self.unit
            at = pairs.add(m.mover[k], (sign, side), (0.0, 0.0), soft[m.cell[k]] * m.size[k] * self.unit, 0.0)
            self.soft_cells.append((m.cell[k], at, which))

    def _assemble(self, linear: FloatArray, quadratic: FloatArray, pairs: _Pairs, constant: float) -> Program:
        low, high = self.low, self.high
        pair_mover, (first_sign, first_side, second_sign, second_side, cost, curve) = pairs.join_rows()
        P, k = len(cost), len(low) + len(high)
        mover, aux = [low, high, pair_mover, pair_mover], [np.zeros(k, np.int64), np.arange(P), np.arange(P)]
        sign = [np.ones(len(low)), -np.ones(len(high)), first_sign, second_sign]
        side = [self.lower[low], -self.upper[high], first_side, second_side]
        lift = [np.zeros(k), np.ones(2 * P)]
        self.cap_rows: list[tuple[IntArray, Any]] = []
        n_caps = 0
        for most, owner in self.caps:
            for rows, direction, height in self._build_maximum_rows(most):
                mover.append(rows)
                sign.append(np.broadcast_to(direction, len(rows)))
                aux.append(np.full(len(rows), P + n_caps))
                lift.append(1.0 / most[rows])
                side.append(np.broadcast_to(height, len(rows)))
                self.cap_rows.append((owner[rows], direction))
            n_caps += bool(most.any())
        self.n_pairs = P
        return Program(
            linear=linear,
            quadratic=quadratic,
            rows=PointInequalities(
                mover=np.concatenate(mover),
                sign=np.concatenate(sign),
                aux=np.concatenate(aux),
                lift=np.concatenate(lift),
                side=np.concatenate(side),
            ),
            aux_cost=np.concatenate([cost, np.ones(n_caps)]),
            aux_quadratic=np.concatenate([curve, np.zeros(n_caps)]),
            constant=constant,
            n_pairs=P,
            first_pair=k,
        )

    def _build_maximum_rows(self, most: FloatArray) -> Iterator[tuple[IntArray, Any, Any]]:
        """Yield rows ``tau / most + direction v >= height`` of one maximum: movers, directions, heights."""
        capped = np.flatnonzero(most > 0)
        yield capped[self.upper[capped] > 0], -1.0, 0.0
        yield capped[self.lower[capped] < 0], 1.0, 0.0
        if self.request is not None:  # the chord of w |v| inside the interval is below the maximum, too
            r, keep = self.request, most[self.request.mover] > 0
            up, down = r.up[keep] / self.unit, r.down[keep] / self.unit
            yield r.mover[keep], (down - up) / (up + down), 2.0 * up * down / (up + down)

    # ------------------------------------------------------------------ the result, cell by cell

    def compute_forces(self, point: Point, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return forces, multipliers of the bounds, and shares of the maxima, cell by cell.

        The force of a cell is its marginal cost minus the multipliers of its own bounds; together the forces
        are multipliers times relations, hence orthogonal to every movement.
        """
        m, d, unit, y = self.m, self.d, self.unit, point.multiplier
        n_low, first = len(self.low), len(self.low) + len(self.high)
        one, two = y[first : first + self.n_pairs], y[first + self.n_pairs : first + 2 * self.n_pairs]
        lean = self.lean.copy()
        lean[self.split] = (one - two)[self.pair_split] / self.absolute[self.split]
        force = 2.0 * d.square * z
        force[m.cell] += d.absolute[m.cell] * np.sign(m.ratio) * np.clip(lean[m.mover], -1.0, 1.0)
        owner = np.concatenate([self.lower_cell[self.low], self.upper_cell[self.high]])
        above = np.repeat([False, True], [n_low, first - n_low]) == (m.ratio_of[owner] > 0)
        borne = y[:first] / np.abs(m.ratio_of[owner]) / unit
        bounds = np.asarray(np.bincount(above * m.n_cells + owner, borne, 2 * m.n_cells), np.float64).reshape(2, -1)
        for cells, at, which in self.soft_cells if self.soft is not None else ():
            bounds[which, cells] += one[at] / np.abs(m.ratio_of[cells]) / unit
        force += bounds[1] - bounds[0]
        share, begin = np.zeros(m.n_cells), first + 2 * self.n_pairs
        for owner, direction in self.cap_rows:
            weight = y[begin : begin + len(owner)]
            begin += len(owner)
            np.add.at(share, owner, weight / (d.largest[owner] * np.abs(m.ratio_of[owner]) * unit))
            np.add.at(force, owner, -direction * weight / m.ratio_of[owner] / unit)
        return force, bounds, share

    def find_vertex(self, point: Point, deadline: Deadline = NEVER) -> FloatArray | None:
        """Return a vertex of the closest movements, if one program finds it; for :attr:`flat` problems.

        At the end of an interior point it is clear which rows are active: their multipliers are
        larger than their slacks. With the movers of active rows fixed there, a small linear program
        remains, nearly always with one solution.
        """
        active = point.multiplier > point.slack
        n_low, first, P = len(self.low), len(self.low) + len(self.high), self.n_pairs
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[self.split[active[first : first + P]]] = 0.0
        upper[self.split[active[first + P : first + 2 * P]]] = 0.0
        at_low, at_high = self.low[active[:n_low]], self.high[active[n_low:first]]
        upper[at_low] = lower[at_low] = self.lower[at_low]
        lower[at_high] = upper[at_high] = self.upper[at_high]
        held = lower >= upper
        v = np.where(held, lower, 0.0)
        A = self.m.relations
        side = -(A @ v)
        cost = np.where(point.v > 0, 1.0, -1.0) * self.absolute
        lp = LinearProgram(
            LinearModel(A[:, ~held], side, side, lower[~held], upper[~held], cost[~held]), Way(presolve=True)
        )
        found = lp.solve(time_limit_s=deadline.get_seconds_at_least())
        if not found.optimal:
            return None
        v[~held] = found.x
        no_worse = self.absolute @ np.abs(v) <= (1.0 + 1e-8) * (self.absolute @ np.abs(point.v))
        return v if no_worse else None
