"""castro2012 theorem 1 on random tables: how the least distance depends on errors of the bounds and of the weights.

Problem (15): the least ``sum w |z|`` or ``sum w z^2`` with ``T z = 0`` and ``l + e_l <= z <= u + e_u``.
"""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.distance import Distance, Target

NORMS = ("l1", "l2")
SEEDS = (0, 1, 2)


class Problem15:
    """A random two-way table with its margins, some inner cells of which must rise."""

    def __init__(self, seed: int, norm: str) -> None:
        self.rng, self.norm = np.random.default_rng(seed), norm
        table = cg.Table.from_leaves({"r": list("abcd"), "c": list("vwxyz")}, self.rng.integers(20, 200, (4, 5)))
        self.n = table.n_cells
        self.adjuster = Adjuster(table.relations, table.fixed)
        rises = np.zeros(self.n, bool)
        rises[self.rng.permutation(self.n)[:6]] = True
        self.lower = np.where(rises, 0.1 * table.values, -0.3 * table.values)
        self.upper = 0.5 * table.values
        self.weights = 1.0 / np.maximum(table.values, 1.0)
        self.levels = rises

    def distance(self, e_l=0.0, e_u=0.0, e_w=0.0) -> float:
        """The f of the theorem."""
        kind = {"absolute" if self.norm == "l1" else "square": self.weights + e_w}
        found = self.adjuster.solve(Target(self.lower + e_l, self.upper + e_u, Distance.of(self.n, **kind)))
        assert found.proven
        return found.objective

    def bound_errors(self) -> dict[str, np.ndarray]:
        """Errors of the levels and of all upper bounds, small enough to leave a table."""
        e_l = np.where(self.levels, self.rng.uniform(-1, 2, self.n) * np.abs(self.lower), 0.0)
        return {"e_l": e_l, "e_u": self.rng.uniform(-0.1, 0.1, self.n) * self.upper}

    def weight_errors(self) -> dict[str, np.ndarray]:
        return {"e_w": self.rng.uniform(-0.9, 3.0, self.n) * self.weights}

    def along(self, first, second, shares) -> np.ndarray:
        """The distance on the way from one error to another."""
        return np.array([self.distance(**{k: (1 - t) * first[k] + t * second[k] for k in first}) for t in shares])


def bends(values: np.ndarray) -> np.ndarray:
    """Second differences, relative to the values."""
    return np.diff(values, 2) / np.abs(values).max()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_statements_1_and_3_convex_in_the_bounds_concave_in_the_weights(seed, norm):
    problem, shares = Problem15(seed, norm), np.linspace(0.0, 1.0, 9)
    in_bounds = problem.along(problem.bound_errors(), problem.bound_errors(), shares)
    in_weights = problem.along(problem.weight_errors(), problem.weight_errors(), shares)
    assert bends(in_bounds).min() > -1e-8
    assert bends(in_bounds).max() > 1e-6  # not merely a straight line
    assert bends(in_weights).max() < 1e-8
    assert bends(in_weights).min() < -1e-6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("errors", ["bound_errors", "weight_errors"])
def test_statements_2_and_4_piecewise_linear_for_l1(seed, errors):
    """On a line all but a few of many short pieces are straight; with squares none of them is."""
    shares = np.linspace(0.0, 1.0, 41)
    straight = {}
    for norm in NORMS:
        problem = Problem15(seed, norm)
        first, second = getattr(problem, errors)(), getattr(problem, errors)()
        straight[norm] = (np.abs(bends(problem.along(first, second, shares))) < 1e-9).mean()
    assert 0.5 <= straight["l1"] < 1.0
    assert straight["l2"] < 0.1


def one_sided_slopes(problem: Problem15, side: str, cell: int) -> tuple[float, float]:
    """Return the slopes of the distance to the left and to the right in one bound."""
    step = np.zeros(problem.n)
    step[cell] = 1e-4 * abs(getattr(problem, {"e_l": "lower", "e_u": "upper"}[side])[cell])
    there = problem.distance()
    left = (there - problem.distance(**{side: -step})) / step[cell]
    return left, (problem.distance(**{side: step}) - there) / step[cell]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_equation_18_has_the_opposite_signs_of_those_printed(seed, norm):
    """(18) prints -mu for lower and +mu for upper bounds, multipliers being nonnegative.

    Raising a lower bound leaves fewer tables, so the least distance grows by mu_l; raising an upper bound leaves more,
    so it falls by mu_u. For L1 a multiplier lies between the slopes on both sides, which are the same in most places.
    """
    problem = Problem15(seed, norm)
    kind = {"absolute" if norm == "l1" else "square": problem.weights}

    def solve():
        return problem.adjuster.solve(Target(problem.lower, problem.upper, Distance.of(problem.n, **kind)))

    z = solve().z
    rise = [i for i in np.argsort(-z).tolist() if not problem.levels[i] and z[i] > 1e-6]
    for cell in rise[:3]:  # upper bounds that bind, where they leave a table
        before = problem.upper.copy()
        problem.upper[cell] = 0.7 * z[cell]
        if not solve().feasible:
            problem.upper = before
    found = solve()
    assert found.proven
    tested = 0
    for side, sign, multipliers in (("e_l", 1.0, found.lower), ("e_u", -1.0, found.upper)):
        binding = np.flatnonzero(multipliers > 1e-3 * max(found.lower.max(), found.upper.max()))
        assert len(binding), side
        for cell in binding[:4].tolist():
            slopes = sorted(sign * slope for slope in one_sided_slopes(problem, side, cell))
            slack = 2e-3 * multipliers[cell] + 1e-9
            assert slopes[0] - slack <= multipliers[cell] <= slopes[1] + slack, (side, cell)
            assert slopes[0] > 0  # which -mu for lower and +mu for upper bounds could not be
            tested += 1
    assert tested >= 4


@pytest.mark.parametrize("seed", SEEDS)
def test_statement_5_the_slope_is_the_multiplier(seed):
    problem = Problem15(seed, "l2")
    found = problem.adjuster.solve(Target(problem.lower, problem.upper, Distance.of(problem.n, square=problem.weights)))
    cells = np.flatnonzero(found.lower > 1e-3 * found.lower.max())
    assert len(cells)
    for i in cells.tolist():
        step = np.zeros(problem.n)
        step[i] = 1e-3 * abs(problem.lower[i])
        slope = (problem.distance(e_l=step) - problem.distance(e_l=-step)) / (2 * step[i])
        assert slope == pytest.approx(found.lower[i], rel=1e-3)
