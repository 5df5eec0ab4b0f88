"""The choice of senses as a mixed-integer linear program (baena2018 (6)), between movers."""

from __future__ import annotations

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array

from cellguard._engine.closest.closest_problem import Movers
from cellguard._engine.closest.distance import Distance
from cellguard._engine.solvers.lp import LinearModel
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["FAR", "MixedSenses"]

FAR = 1e6
"""Largest distance of a mover, in levels: an infinite one would make the choice meaningless."""

_SLACK = 1e-6
"""Share by which a movement may cost more than the best known one and still be considered."""
_DEAREST = 1e14
"""HiGHS refuses coefficients from 1e15 on."""


class MixedSenses:
    """Movers are ``p - q``; one that must choose has ``up y <= p <= high y``, ``down (1 - y) <= q <= -low (1 - y)``.

    Columns are p, q, then one y per mover that must choose, then one maximum per group.
    """

    def __init__(self, movers: Movers, distance: Distance, low: FloatArray, high: FloatArray) -> None:
        self.m, self.n = movers, movers.n
        self.p, self.q = [np.zeros(self.n), np.maximum(high, 0.0)], [np.zeros(self.n), np.maximum(-low, 0.0)]
        self.cost = movers.sum_by_mover(distance.absolute[movers.cell] * movers.size)
        groups = (0, 1) if distance.largest.any() else ()
        weights = [np.where(distance.group == g, distance.largest, 0.0)[movers.cell] * movers.size for g in groups]
        largest = [movers.compute_extremes(w, np.maximum)[0] for w in weights]
        self.largest = [most for most in largest if most.max(initial=0.0) > 0]
        # weights may be 1e11 or 1e-11: divide all costs by the typical cost of moving
        all_weights = np.concatenate([self.cost, *self.largest])
        self.price = float(np.median(all_weights[all_weights > 0])) if all_weights.any() else 1.0
        # lower than the true cost where the solver takes no larger number: the bound stays valid
        self.cost = np.minimum(self.cost / self.price, _DEAREST)
        self.largest = [np.minimum(most / self.price, _DEAREST) for most in self.largest]

    def hold(self, mover: IntArray, sense: int, far: FloatArray) -> None:
        """Fix the sense of movers, and the least distance that they go."""
        this, other = (self.p, self.q) if sense > 0 else (self.q, self.p)
        this[0][mover] = far
        other[1][mover] = 0.0

    def ask(self, mover: IntArray, down: FloatArray, up: FloatArray, far: float, known: float = np.inf) -> None:
        """Let movers choose between the two senses.

        They go at most `far` times the typical level, their own level or the levels around them, whichever is largest;
        and never so far that their movement alone would cost more than `known`, the distance of the best one so far.
        """
        self.choice, self.down, self.up, self.far, self.known = mover, down, up, far, known

    def solve(
        self, start: FloatArray | None, time_limit_s: float, gap: float, prefer: FloatArray | None = None
    ) -> tuple[BoolArray | None, float]:
        """Return which movers rise (None when no choice was found), and the proven bound.

        The search starts from movements that satisfy every row, if there are any. If senses to keep (1 or -1) are
        given, maximise the number kept instead of minimising the distance.
        """
        f, n, groups = len(self.choice), self.n, len(self.largest)
        unit = float(np.median(np.maximum(self.up, self.down))) if f else 1.0
        p, q = [b / unit for b in self.p], [b / unit for b in self.q]
        M, lower, upper = self._build_rows(unit, p[1], q[1])
        distance = self.cost if prefer is None else np.zeros(n)
        choice = np.zeros(f) if prefer is None else -prefer
        point = None
        if start is not None and np.isfinite(start).all():
            v = start / unit
            tau = [float((most * np.abs(v)).max()) for most in self.largest]
            point = np.concatenate([np.maximum(v, 0.0), np.maximum(-v, 0.0), v[self.choice] > 0, tau])
        found = solve_mixed(
            LinearModel(
                M,
                lower,
                upper,
                np.concatenate([p[0], q[0], np.zeros(f + groups)]),
                np.concatenate([p[1], q[1], np.ones(f), np.full(groups, np.inf)]),
                np.concatenate([distance, distance, choice, np.full(groups, 1.0 if prefer is None else 0.0)]),
                integer=np.concatenate([np.zeros(2 * n, bool), np.ones(f, bool), np.zeros(groups, bool)]),
            ),
            Until(time_limit_s=max(0.1, time_limit_s), relative_gap=gap, absolute_gap=0.0),
            start=point,
        )
        bound = found.bound * self.price * unit if prefer is None else found.bound
        return (found.x[2 * n : 2 * n + f] > 0.5 if found.found else None), bound

    def _limit_distances(self, unit: float) -> FloatArray:
        """Return how far movers that choose may go, in units: one level may be 1e9 times another."""
        level = np.zeros(self.n)
        level[self.choice] = np.maximum(self.up, self.down) / unit
        A = abs(self.m.relations)
        around = A.T @ (A @ level)  # at least the sum of the levels in every relation of a mover
        farthest = self.far * np.maximum(np.maximum(around, level), 1.0 if self.far >= FAR else 0.0)
        price = np.max([self.cost, *self.largest], axis=0) * (self.price * unit)
        with np.errstate(divide="ignore", invalid="ignore"):
            affordable = np.where(price > 0, (1.0 + _SLACK) * self.known / price, np.inf)
        return np.asarray(np.minimum(farthest, np.maximum(affordable, level))[self.choice])

    @property
    def capped(self) -> bool:
        """Whether a mover could go further than this program allows: then failing to find a choice proves nothing."""
        farthest = self._limit_distances(1.0)
        return bool((np.maximum(self.p[1], self.q[1])[self.choice] > farthest).any())

    def _build_rows(self, unit: float, high: FloatArray, low: FloatArray) -> tuple[csr_array, FloatArray, FloatArray]:
        f, n, A = len(self.choice), self.n, self.m.relations
        up, down = self.up / unit, self.down / unit
        pick = csr_array((np.ones(f), (np.arange(f), self.choice)), shape=(f, n))
        top, bottom = (diags_array(np.minimum(b[self.choice], self._limit_distances(unit))) for b in (high, low))
        zero, inf = np.zeros(f), np.full(f, np.inf)
        rows = [
            [A, -A, None, None],
            [pick, None, -diags_array(up), None],
            [pick, None, -top, None],
            [None, pick, diags_array(down), None],
            [None, pick, bottom, None],
        ]
        none = np.zeros(A.shape[0])
        sides = [(none, none), (zero, inf), (-inf, zero), (down, inf), (-inf, bottom.diagonal())]
        for g, most in enumerate(self.largest):
            capped = np.flatnonzero(most > 0)
            k = len(capped)
            size = csr_array((most[capped], (np.arange(k), capped)), shape=(k, n))
            tau = csr_array((-np.ones(k), (np.arange(k), np.full(k, g))), shape=(k, len(self.largest)))
            rows.append([size, size, None, tau])
            sides.append((np.full(k, -np.inf), np.zeros(k)))
        if not self.largest:
            rows = [row[:3] for row in rows]
        M = csr_array(block_array(rows))
        return M, np.concatenate([s[0] for s in sides]), np.concatenate([s[1] for s in sides])
