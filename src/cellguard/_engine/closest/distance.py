"""The distance between a table and its adjusted version, and a lower bound of it (independent of any solver).

One form covers the norms of castro2004 (4), (5), (6) and (10)::

    sum absolute |z| + sum square z^2 + sum over groups of max(largest |z|)

Nothing here trusts a solver: :func:`certify_closest` takes a movement ``z`` and multipliers ``y`` of the
relations from anywhere, and returns what they prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._tolerances import EXACT_RELATION
from cellguard._types import FloatArray, IntArray

__all__ = ["Certificate", "Distance", "Target", "certify_closest", "is_proven_infeasible"]

_WHOLE = 2.0**30
"""Digits of multipliers that are whole numbers: sums of thousands of them are exact."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """Weights of a distance, one of each kind per cell; all at least 0."""

    absolute: FloatArray
    """Weights of |z|."""
    square: FloatArray
    """Weights of z^2."""
    largest: FloatArray
    """Weights of |z| inside the maximum of the cell's group."""
    group: IntArray
    """Group of each cell, 0 or 1 (sensitive and the others in castro2004 (6))."""

    @classmethod
    def of(
        cls,
        n: int,
        *,
        absolute: FloatArray | None = None,
        square: FloatArray | None = None,
        largest: FloatArray | None = None,
        group: IntArray | None = None,
    ) -> Distance:
        """Return a distance between tables of n cells; weights that are not given are 0."""
        none = np.zeros(n)
        return cls(
            absolute=none if absolute is None else absolute,
            square=none if square is None else square,
            largest=none if largest is None else largest,
            group=np.zeros(n, np.int64) if group is None else group,
        )

    def compute_value(self, z: FloatArray) -> float:
        """Return the distance of a movement."""
        size = np.abs(z)
        total = float(self.absolute @ size + self.square @ size**2)
        moved = self.largest * size
        return total + sum(float(moved[self.group == g].max(initial=0.0)) for g in (0, 1))

    def minimize(
        self, force: FloatArray, lower: FloatArray, upper: FloatArray, share: FloatArray, soft: FloatArray | None = None
    ) -> float:
        """Return the minimum over ``lower <= z <= upper`` of the Lagrangian, cell by cell.

        Parameters
        ----------
        force
            ``T'y`` for any multipliers y of the relations.
        lower, upper
            Bounds of the movements, possibly infinite.
        share
            Any share of its group's maximum for each cell, at least 0; scaled to sum to 1 in each
            group. ``max >= sum share largest |z|`` makes the maximum separable.
        soft
            Cost of missing a bound by one; bounds are strict unless given.
        """
        sums = np.bincount(self.group, share, 2)
        weight = self.absolute + self.largest * share / np.where(sums > 0, sums, 1.0)[self.group]
        if soft is not None:
            return self._minimize_with_soft_bounds(force, lower, upper, weight, soft)
        z = np.clip(_minimize_under_force(force, weight, self.square), lower, upper)
        if not np.isfinite(z).all():
            return float("-inf")
        return float((weight * np.abs(z) + self.square * z**2 - force * z).sum())

    def _minimize_with_soft_bounds(
        self, force: FloatArray, lower: FloatArray, upper: FloatArray, weight: FloatArray, soft: FloatArray
    ) -> float:
        """Minimise as :meth:`minimize` does, by trying every point where such a convex function can be least."""
        if (((self.square == 0) | np.isinf(soft)) & (np.abs(force) > weight + soft)).any():
            return float("-inf")
        places = [np.zeros(len(force)), lower, upper]
        places += [_minimize_under_force(force + shift, weight, self.square) for shift in (0.0, soft, -soft)]
        best = np.full(len(force), np.inf)
        for z in places:
            at = np.where(np.isfinite(z), z, 0.0)
            value = (
                weight * np.abs(at) + self.square * at**2 - force * at + _compute_missed_cost(at, lower, upper, soft)
            )
            best = np.minimum(best, value)
        return float(best.sum())


def _minimize_under_force(force: FloatArray, weight: FloatArray, square: FloatArray) -> FloatArray:
    """Return where ``weight |z| + square z^2 - force z`` is least, possibly at infinity."""
    pull = np.sign(force) * np.maximum(np.abs(force) - weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(square > 0, pull / (2.0 * square), np.where(pull == 0.0, 0.0, np.sign(pull) * np.inf))


def _compute_missed_cost(z: FloatArray, lower: FloatArray, upper: FloatArray, soft: FloatArray) -> FloatArray:
    """Return the cost of the bounds that a movement misses."""
    missed = np.maximum(lower - z, 0.0) + np.maximum(z - upper, 0.0)
    return missed * np.where(missed > 0, soft, 0.0)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a movement and multipliers prove."""

    objective: float
    """Distance of the movement."""
    bound: float
    """No movement within the bounds and relations is closer than this."""
    residual: float
    """Largest violation of a relation, relative to the movements in it."""
    violation: float
    """Largest violation of a bound, relative to it or to the typical movement."""

    @property
    def gap(self) -> float:
        """Difference between objective and bound, relative to the objective."""
        distance = self.objective - self.bound
        return 0.0 if distance <= 0 else distance / max(abs(self.objective), 1e-300)


@dataclass(frozen=True, eq=False)
class Target:
    """Bounds and distance of the closest movement to find."""

    lower: FloatArray
    """Bound of each cell's movement, possibly infinite; so is `upper`."""
    upper: FloatArray
    distance: Distance
    """What is minimised."""
    soft: FloatArray | None = None
    """Cost of missing a cell's bounds by one (castro2012 section 5); bounds are strict unless given."""


def certify_closest(
    relations: csr_array, z: FloatArray, y: FloatArray, target: Target, share: FloatArray | None = None
) -> Certificate:
    """Check a movement against the relations and bounds, and bound all others by the multipliers.

    Any y proves something; only the right one proves a small gap. See :meth:`Distance.minimize` for
    `share` and soft bounds; with soft bounds the objective includes the cost of missing them.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> d = Distance.of(3, square=np.array([1 / 20, 1 / 12, 1 / 8]))
    >>> z, y = np.array([4.0, 2.4, 1.6]), np.array([0.4])
    >>> c = certify_closest(T, z, y, Target(np.array([4.0, -12, -8]), np.full(3, np.inf), d))
    >>> round(c.objective, 9), round(c.bound, 9), c.residual, c.violation
    (1.6, 1.6, 0.0, 0.0)
    """
    lower, upper, distance, soft = target.lower, target.upper, target.distance, target.soft
    force = relations.T @ y
    needed = np.maximum(np.maximum(lower, -upper), 0.0)
    typical = float(np.median(needed[needed > 0])) if needed.any() else 1.0
    share = np.ones(len(z)) if share is None else share
    wrong = np.maximum(np.maximum(lower - z, z - upper), 0.0)
    bounds = np.where(lower > z, np.abs(lower), np.where(upper < z, np.abs(upper), 0.0))
    hard = 1.0 if soft is None else np.isinf(soft)
    paid = (
        0.0 if soft is None else float(_compute_missed_cost(z, lower, upper, np.where(np.isinf(soft), 0.0, soft)).sum())
    )
    return Certificate(
        objective=distance.compute_value(z) + paid,
        bound=_choose_best_bound(lambda scale: distance.minimize(scale * force, lower, upper, share, soft)),
        residual=float((np.abs(relations @ z) / np.maximum(abs(relations) @ np.abs(z), typical)).max(initial=0.0)),
        violation=float((hard * wrong / np.maximum(bounds, typical)).max(initial=0.0)),
    )


def is_proven_infeasible(relations: csr_array, y: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    """Return whether multipliers of the relations prove that no movement satisfies them and the bounds (Farkas).

    Every movement satisfies ``(T'y) z = 0``; if no z between the bounds does, no movement exists.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> is_proven_infeasible(T, np.array([1.0]), np.array([-1.0, 2, 0]), np.array([1.0, 9, 9]))
    True
    """
    largest = float(np.abs(y).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return False
    # whole multipliers cancel exactly, as they must for cells without bounds
    for multipliers in (y, np.rint(y * (_WHOLE / largest))):
        force = relations.T @ multipliers
        acts = force != 0.0
        below, above = force[acts] * lower[acts], force[acts] * upper[acts]
        least, most = np.minimum(below, above), -np.maximum(below, above)
        sums = float(least.sum()), float(most.sum())
        for far, total in zip((least, most), sums, strict=True):
            if np.isfinite(total) and total > EXACT_RELATION * np.abs(far).sum():
                return True
        if np.isfinite(sums).all():
            break
    return False


def _choose_best_bound(bound_at: Callable[[float], float]) -> float:
    """Return the best bound of the multipliers, unchanged or scaled down a little.

    A force that exceeds a weight only by rounding costs its excess times the whole width of a loose
    bound; scaling all forces down costs only that share of the objective. The bound is concave in
    the scale, so the first decrease ends the search.
    """
    best = bound_at(1.0)
    for shrinkage in 10.0 ** np.arange(-13.0, -6.0):
        bound = bound_at(1.0 - shrinkage)
        if bound < best:
            break
        best = bound
    return best
