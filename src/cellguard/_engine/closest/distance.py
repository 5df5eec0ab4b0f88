"""The distance between a table and its adjusted one, and what it is at least (solver-independent).

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

__all__ = ["Certificate", "Distance", "Target", "certify_closest", "no_closest_movement"]

_WHOLE = 2.0**30
"""Digits of whole multipliers: sums of thousands of them are exact."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance:
    """Weights of a distance, one of each kind per cell; all of them at least 0."""

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
        """Make a distance between tables of n cells; what is not given is 0."""
        none = np.zeros(n)
        return cls(
            absolute=none if absolute is None else absolute,
            square=none if square is None else square,
            largest=none if largest is None else largest,
            group=np.zeros(n, np.int64) if group is None else group,
        )

    def value(self, z: FloatArray) -> float:
        """Distance of a movement."""
        size = np.abs(z)
        total = float(self.absolute @ size + self.square @ size**2)
        moved = self.largest * size
        return total + sum(float(moved[self.group == g].max(initial=0.0)) for g in (0, 1))

    def least(
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
            What it costs to miss a bound by one; bounds hold unless given.
        """
        sums = np.bincount(self.group, share, 2)
        weight = self.absolute + self.largest * share / np.where(sums > 0, sums, 1.0)[self.group]
        if soft is not None:
            return self._least_softly(force, lower, upper, weight, soft)
        z = np.clip(_closest_under_force(force, weight, self.square), lower, upper)
        if not np.isfinite(z).all():
            return float("-inf")
        return float((weight * np.abs(z) + self.square * z**2 - force * z).sum())

    def _least_softly(
        self, force: FloatArray, lower: FloatArray, upper: FloatArray, weight: FloatArray, soft: FloatArray
    ) -> float:
        """As :meth:`least`, by trying every place where a convex function of this form can have its minimum."""
        if (((self.square == 0) | np.isinf(soft)) & (np.abs(force) > weight + soft)).any():
            return float("-inf")
        places = [np.zeros(len(force)), lower, upper]
        places += [_closest_under_force(force + shift, weight, self.square) for shift in (0.0, soft, -soft)]
        best = np.full(len(force), np.inf)
        for z in places:
            at = np.where(np.isfinite(z), z, 0.0)
            value = (
                weight * np.abs(at)
                + self.square * at**2
                - force * at
                + _missed_distance_of_closest(at, lower, upper, soft)
            )
            best = np.minimum(best, value)
        return float(best.sum())


def _closest_under_force(force: FloatArray, weight: FloatArray, square: FloatArray) -> FloatArray:
    """Where ``weight |z| + square z^2 - force z`` has its minimum, possibly infinitely far away."""
    pull = np.sign(force) * np.maximum(np.abs(force) - weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(square > 0, pull / (2.0 * square), np.where(pull == 0.0, 0.0, np.sign(pull) * np.inf))


def _missed_distance_of_closest(z: FloatArray, lower: FloatArray, upper: FloatArray, soft: FloatArray) -> FloatArray:
    """Price of the bounds that a movement misses."""
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
        """Distance of objective and bound, relative to the objective."""
        distance = self.objective - self.bound
        return 0.0 if distance <= 0 else distance / max(abs(self.objective), 1e-300)


@dataclass(frozen=True, eq=False)
class Target:
    """What a closest movement is asked for."""

    lower: FloatArray
    """Bound of each cell's movement, possibly infinite; so is `upper`."""
    upper: FloatArray
    distance: Distance
    """What is minimised."""
    soft: FloatArray | None = None
    """What it costs to miss a cell's bounds by one (castro2012 section 5); every bound holds unless given."""


def certify_closest(
    relations: csr_array, z: FloatArray, y: FloatArray, target: Target, share: FloatArray | None = None
) -> Certificate:
    """Check a movement against the relations and bounds, and bound all others by the multipliers.

    Any y proves something; only the right one proves a small gap. See :meth:`Distance.least` for
    `share` and soft bounds; with soft bounds the objective includes what is paid for missing them.

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
        0.0
        if soft is None
        else float(_missed_distance_of_closest(z, lower, upper, np.where(np.isinf(soft), 0.0, soft)).sum())
    )
    return Certificate(
        objective=distance.value(z) + paid,
        bound=_best_bound_of_distance(lambda scale: distance.least(scale * force, lower, upper, share, soft)),
        residual=float((np.abs(relations @ z) / np.maximum(abs(relations) @ np.abs(z), typical)).max(initial=0.0)),
        violation=float((hard * wrong / np.maximum(bounds, typical)).max(initial=0.0)),
    )


def no_closest_movement(relations: csr_array, y: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    """Whether multipliers of the relations prove that no movement satisfies them and the bounds (Farkas).

    Every movement has ``(T'y) z = 0``; when nothing between the bounds has, there is none.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> no_closest_movement(T, np.array([1.0]), np.array([-1.0, 2, 0]), np.array([1.0, 9, 9]))
    True
    """
    largest = float(np.abs(y).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return False
    # whole multipliers cancel exactly, which they must where nothing bounds a cell
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


def _best_bound_of_distance(bound_at: Callable[[float], float]) -> float:
    """Return the best bound of the multipliers, as they are or a little smaller.

    A force that exceeds a weight by rounding alone costs its excess times the whole width of a loose
    bound; making all forces smaller costs only that share of the objective. The bound is concave in
    the scale, so that the first decrease ends the search.
    """
    best = bound_at(1.0)
    for shrinkage in 10.0 ** np.arange(-13.0, -6.0):
        bound = bound_at(1.0 - shrinkage)
        if bound < best:
            break
        best = bound
    return best
