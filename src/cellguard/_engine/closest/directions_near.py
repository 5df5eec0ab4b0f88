"""Senses near given ones that leave a table, by convex programs alone: what misses its level most is flipped.

Let every mover that may choose miss its level at a price, and ask for as little as possible to be missed::

    min   sum e / (up + down) + a little of the distance
    s.t.  A v = 0, low <= v <= high, sense v + e >= level, e >= 0

which is what is left of the mixed-integer program of the fewest flips when its binaries may be fractions: a mover that
is at its level on the other side pays 1, a whole flip. The interior point that looks for closest tables solves it as
fast as one of those. Movers that miss by more than half are nearer to the other side and go there; where none
does, all that miss. Two or three rounds are enough for most tables. Whether a table has these senses is for
the caller to see: nothing is proven here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.closest_problem import ClosestRequest, Movers
from cellguard._engine.closest.interior import InteriorPoint, PointInequalities, Program, Projection
from cellguard._engine.threads import blas_threads
from cellguard._types import BoolArray, ByteArray, FloatArray

__all__ = ["NearSenses"]

_LITTLE = 1e-4
"""What a typical movement costs, in flips: decides among flips, hardly their number."""
_ROUGH, _STEPS = 1e-3, 60
"""Tolerance and steps of the interior point: which movers miss their levels is plain early."""
_MISSED = 1e-3
"""Share of both levels from which on one is missed, and not only nearly met by a rough solution."""
_ROUNDS = 4
"""Rounds after which the caller is left to better means."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearSenses:
    """Movers that must leave their intervals, and the room of all."""

    movers: Movers
    projection: Projection
    room: tuple[FloatArray, FloatArray]
    """How far movers may go down (at most 0) and up."""
    request: ClosestRequest
    choice: BoolArray
    """Which of the requests may go either way; the others keep their sense."""
    weight: FloatArray
    """What the square of each mover costs, in any unit."""

    def proposals(self, s: ByteArray, deadline: Deadline) -> Iterator[ByteArray]:
        """Yield senses that may leave a table, near those given; ask for the next ones when they do not."""
        r, may_turn, seen = self.request, self.choice.copy(), True
        for _ in range(_ROUNDS):
            v = self._least_missed(s, deadline)
            if v is None:
                return
            missed = np.maximum(np.where(s > 0, r.up, r.down) - s * v, 0.0) / (r.up + r.down)
            missing = may_turn & (missed > _MISSED)
            if not missing.any():
                if not seen and missed.max(initial=0.0) <= _MISSED:
                    yield s
                return
            nearer = missing & (missed > 0.5)
            turned = nearer if nearer.any() else missing
            s = np.where(turned, -s, s)
            may_turn &= ~turned  # once is enough: there is an end
            seen = bool((turned == missing).all())
            if seen:
                yield s

    def _least_missed(self, s: ByteArray, deadline: Deadline) -> FloatArray | None:
        """Where the requested movers go when levels may be missed at a price; None where no numbers were found."""
        r, (low, high) = self.request, self.room
        unit = float(np.median(np.maximum(r.up, r.down)))
        level = np.where(s > 0, r.up, r.down)
        lower, upper = low.copy(), high.copy()
        held = ~self.choice
        lower[r.mover[held & (s > 0)]] = level[held & (s > 0)]
        upper[r.mover[held & (s < 0)]] = -level[held & (s < 0)]
        from_below, from_above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        free = np.flatnonzero(self.choice)
        mover, pairs, k = r.mover[free], np.arange(len(free)), len(from_below) + len(from_above)
        rows = PointInequalities(
            mover=np.concatenate([from_below, from_above, mover, mover]),
            sign=np.concatenate([np.ones(len(from_below)), -np.ones(len(from_above)), s[free], 0.0 * pairs]),
            aux=np.concatenate([np.zeros(k, np.int64), pairs, pairs]),
            lift=np.concatenate([np.zeros(k), np.ones(2 * len(free))]),
            side=np.concatenate([lower[from_below], -upper[from_above], level[free], 0.0 * pairs]) / unit,
        )
        typical = float(np.median(self.weight[self.weight > 0])) if self.weight.any() else 1.0
        program = Program(
            linear=np.zeros(self.movers.n),
            quadratic=2.0 * _LITTLE * np.clip(self.weight / typical, 1e-6, 1e6),
            rows=rows,
            aux_cost=unit / (r.up + r.down)[free],
            aux_quadratic=np.zeros(len(free)),
            n_pairs=len(free),
            first_pair=k,
        )
        with blas_threads(self.projection.threads):
            run = InteriorPoint(program, self.projection)
            point = run.run(tolerance=_ROUGH, max_iterations=_STEPS, deadline=deadline)
        return unit * point.v[r.mover] if point.converged else None
