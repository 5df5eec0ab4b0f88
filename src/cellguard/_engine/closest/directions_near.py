"""Senses near given ones that admit a table, by convex programs alone: flip the movers that miss their level most.

Let every mover that may choose miss its level at a cost, and minimise the total missed::

    min   sum e / (up + down) + a little of the distance
    s.t.  A v = 0, low <= v <= high, sense v + e >= level, e >= 0

This is the relaxation of the mixed-integer program of the fewest flips: a mover that
is at its level on the other side pays 1, a whole flip. The interior point that finds closest tables solves it as
fast as one of those. Movers that miss by more than half are nearer to the other side and are flipped; if none
does, all that miss are flipped. Two or three rounds are enough for most tables. This module proves nothing: the
caller must check whether a table has these senses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.closest_problem import ClosestRequest, Movers
from cellguard._engine.closest.interior import InteriorPoint, PointInequalities, Program, Projection
from cellguard._engine.threads import limit_blas_threads
from cellguard._types import BoolArray, ByteArray, FloatArray

__all__ = ["NearSenses"]

_LITTLE = 1e-4
"""Cost of a typical movement, in flips: it decides among flips, and hardly affects their number."""
_ROUGH_TOLERANCE = 1e-3
"""Tolerance of the interior point: it is clear early which movers miss their levels."""
_MAX_INTERIOR_STEPS = 60
"""Maximum number of its steps."""
_MISSED = 1e-3
"""Share of both levels from which a level counts as missed, not as nearly met by a rough solution."""
_ROUNDS = 4
"""Rounds after which the caller should use other methods."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearSenses:
    """Movers that must leave their intervals, and how far all movers may go."""

    movers: Movers
    projection: Projection
    slack: tuple[FloatArray, FloatArray]
    """How far movers may go down (at most 0) and up."""
    request: ClosestRequest
    choice: BoolArray
    """Which of the requests may go either way; the others keep their sense."""
    weight: FloatArray
    """Cost of the square of each mover, in any unit."""

    def propose_senses(self, s: ByteArray, deadline: Deadline) -> Iterator[ByteArray]:
        """Yield senses that may admit a table, near those given; take the next ones if they do not."""
        r, may_turn, seen = self.request, self.choice.copy(), True
        for _ in range(_ROUNDS):
            v = self._minimize_missed_levels(s, deadline)
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
            may_turn &= ~turned  # each mover turns once, so that the loop ends
            seen = bool((turned == missing).all())
            if seen:
                yield s

    def _minimize_missed_levels(self, s: ByteArray, deadline: Deadline) -> FloatArray | None:
        """Return where the requested movers go when levels may be missed at a cost; None if the solver failed."""
        r, (low, high) = self.request, self.slack
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
        with limit_blas_threads(self.projection.threads):
            run = InteriorPoint(program, self.projection)
            point = run.run(tolerance=_ROUGH_TOLERANCE, max_iterations=_MAX_INTERIOR_STEPS, deadline=deadline)
        return unit * point.v[r.mover] if point.converged else None
