"""The choice of senses where only totals respond to it: a program in the senses alone.

Write every mover as a combination of parameters, ``v = C p``, with the parameters' own movers on the
identity. A parameter *never pays* when moving it costs at least as much as everything it could save:
``cost_k >= sum_i |C_ik| cost_i`` over the movers that depend on it. If that holds of all parameters, if
every mover that must choose is one, and if no bound of a dependent mover can bind, then some closest
table moves no parameter further than its level and no other parameter at all: from any table put every
parameter back, and the distance does not grow. What is left of baena2018 (6) is

    min  sum_k cost_k |p_k| + sum_i cost_i |sum_k C_ik p_k|,    p_k = -down_k or up_k,

without a continuous variable that has to be bounded from above. Tables of leaves and their totals with
weights 1/value are of this kind wherever no leaf is nearly all of its total. A thousand continuous
variables of (6) disappear, and annealing finds good senses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array, hstack

from cellguard._core.senses import anneal
from cellguard._engine.clock import Deadline
from cellguard._engine.closest.closest_problem import ClosestRequest
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._engine.space.echelon_form import find_anchors
from cellguard._engine.space.groups import place_in_group
from cellguard._engine.space.space import Space, convert_matrix_for_core
from cellguard._types import BoolArray, FloatArray

__all__ = ["SensesOfTotals", "build_totals_directions"]


@dataclass(frozen=True, kw_only=True)
class AnnealingPolicy:
    """How long the annealing of senses lasts, and how it cools; ``bench/bench_adjust.py`` compares changes.

    No measurement is recorded here for the single numbers.
    """

    runs: int = 8
    """Number of runs."""
    steps_per_sense: int = 10_000
    """Steps per sense in a run."""
    first_temperature: float = 1 / 8
    """Temperature at the start, in units of the cost of flipping a typical sense."""
    last_temperature: float = 1 / 80
    """Temperature at the end, in the same units."""


ANNEALING = AnnealingPolicy()


@dataclass(frozen=True, kw_only=True, eq=False)
class SensesOfTotals:
    """``fixed + sum own_k y_k + sum weight_i |offset_i + (H y)_i|``, y 1 where a mover rises; in units of its own."""

    fixed: float
    own: FloatArray
    weight: FloatArray
    offset: FloatArray
    H: csc_array
    either_way: bool
    """Whether reversing all senses leaves the cost unchanged."""

    def compute_distance(self, rises: BoolArray) -> float:
        """Return the distance with these senses."""
        y = rises.astype(np.float64)
        return self.fixed + float(self.own @ y + self.weight @ np.abs(self.offset + self.H @ y))

    def round_relaxation(self, time_limit_s: float) -> tuple[BoolArray, float]:
        """Return the senses that the linear relaxation rounds to, and its bound."""
        found = LinearProgram(self._build_program(), ONCE).solve(time_limit_s=time_limit_s)
        if not found.optimal:
            return np.zeros(len(self.own), bool), self.fixed + float(np.minimum(self.own, 0.0).sum())
        return found.x[: len(self.own)] > 0.5, self.fixed + found.objective

    def search_by_annealing(self, seed: int, time_limit_s: float) -> BoolArray:
        """Return good senses, found by annealing."""
        typical = float(np.median(abs(self.H).T @ self.weight + np.abs(self.own)))
        if not typical > 0:
            return np.asarray(self.own < 0)
        rises, _ = anneal(
            *(*convert_matrix_for_core(self.H), self.weight, self.offset, self.own),
            *(
                (ANNEALING.runs, ANNEALING.steps_per_sense * len(self.own)),
                (ANNEALING.first_temperature * typical, ANNEALING.last_temperature * typical),
                seed,
                time_limit_s,
            ),
        )
        return rises

    def prove_best(self, rises: BoolArray, time_limit_s: float, gap: float) -> tuple[BoolArray, float]:
        """Return the best senses of a mixed-integer program that starts from the given ones, and the bound."""
        model = self._build_program()
        y = rises.astype(np.float64)
        if self.either_way:  # one of two mirror images is enough
            y = y if rises[0] else 1.0 - y
            model.lower[0] = 1.0
        sums = self.offset + self.H @ y
        f, k = len(y), len(sums)
        found = solve_mixed(
            replace(model, integer=np.arange(f + 2 * k) < f),
            Until(time_limit_s=time_limit_s, absolute_gap=0.99 * gap * self.compute_distance(rises)),
            start=np.concatenate([y, np.maximum(sums, 0.0), np.maximum(-sums, 0.0)]),
            heuristics=False,
        )
        return (found.x[:f] > 0.5 if found.found else rises), self.fixed + found.bound

    def _build_program(self) -> LinearModel:
        """Return rows, their sides, bounds and costs: ``H y - p + q = -offset``."""
        f, k = len(self.own), len(self.weight)
        A = csr_array(hstack([self.H, -eye_array(k), eye_array(k)]))
        upper = np.concatenate([np.ones(f), np.full(2 * k, np.inf)])
        cost = np.concatenate([self.own, self.weight, self.weight])
        return LinearModel(A, -self.offset, -self.offset, np.zeros(f + 2 * k), upper, cost)

    def search(self, gap: float, deadline: Deadline, seed: int) -> tuple[BoolArray, float, float]:
        """Return senses, their distance and a bound, when the gap is closed or time is up."""
        best, bound = self.round_relaxation(deadline.get_seconds_at_least())
        if self.compute_distance(best) - bound > gap * self.compute_distance(best) and not deadline.passed:
            best = min(best, self.search_by_annealing(seed, deadline.left), key=self.compute_distance)
            if self.compute_distance(best) - bound > gap * self.compute_distance(best) and not deadline.passed:
                found, proven = self.prove_best(best, deadline.left, gap)
                best, bound = min(best, found, key=self.compute_distance), max(bound, proven)
        return best, self.compute_distance(best), min(bound, self.compute_distance(best))


def build_totals_directions(
    space: Space, cost: FloatArray, slack: tuple[FloatArray, FloatArray], request: ClosestRequest
) -> SensesOfTotals | None:
    """Return the program in the senses alone, if only levels and totals have to move; else None.

    Parameters
    ----------
    space
        Of the table: its variables are the movers.
    cost
        Cost of moving each mover by one.
    slack
        How far each mover may go, down (negative) and up.
    request
        Movers that choose. Their levels must be within `slack`, both ways.
    """
    N = space.basis
    anchor, ratio = find_anchors(N)
    parameter = place_in_group(anchor, len(space))
    chosen = parameter[request.mover]
    if len(anchor) < N.shape[1] or (chosen < 0).any() or not ((slack[0] <= 0) & (slack[1] >= 0)).all():
        return None
    dependent = np.flatnonzero(parameter < 0)
    C = csc_array(N[dependent].multiply(1.0 / ratio[None, :]))
    size = abs(C)
    reach = size[:, chosen] @ np.maximum(request.up, request.down)
    binding = (reach > np.minimum(slack[1], -slack[0])[dependent]).any()
    if binding or (cost[anchor] < size.T @ cost[dependent]).any():
        return None
    C = csr_array(C[:, chosen])
    felt = np.flatnonzero(np.diff(C.indptr))
    C, rows = C[felt], dependent[felt]
    own = cost[request.mover]
    unit = float(np.median(np.maximum(request.up, request.down)))
    return SensesOfTotals(
        fixed=float(own @ request.down),
        own=own * (request.up - request.down),
        weight=cost[rows] * unit,
        offset=-(C @ request.down) / unit,
        H=csc_array(C.multiply(((request.up + request.down) / unit)[None, :])),
        either_way=bool((request.up == request.down).all()),
    )
