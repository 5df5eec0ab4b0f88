"""Which cells to open when most will stay closed: a first choice, and the prices of the others.

Interval protection opens a few cells among many. Solved with the others closed, the problem is small, and
its answer works for the whole table. Its multipliers, extended to the closed cells, tell which of them
should have been opened, and bound what opening all of them could save (column generation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack

__all__ = ["Prices", "Widener", "joint_movement", "price_cells"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_REWEIGHTINGS = 6
_CLOSED = 100.0
"""How much more it costs to widen what is closed: better a little more of what is open."""
_OPEN_COUNTS = 1e10
"""How much more an error in an open cell's multipliers counts than the multiplier of a closed cell."""


def joint_movement(
    relations: csr_array, weight: FloatArray, need: FloatArray, down: FloatArray, up: FloatArray
) -> FloatArray | None:
    """Return the cheapest movement that moves every cell by what it needs at once; None if there is none.

    ``min weight |z|`` such that ``T z = 0``, ``z >= need`` where needed and ``-down <= z <= up``.
    """
    from cellguard._engine.lp import LinearProgram

    n = len(weight)
    sides = np.zeros(relations.shape[0])
    asked = need > 0
    lower = np.concatenate([np.where(asked, need, 0.0), np.zeros(n)])
    upper = np.concatenate([up, np.where(asked, 0.0, down)])
    if (lower > upper).any():
        return None
    both = csr_array(hstack([relations, -relations]))
    cost = np.concatenate([weight, weight]) / float(np.median(weight))
    solution = LinearProgram(both, sides, sides, lower, upper, cost, simplex="dual", presolve=True).solve()
    if not solution.optimal:
        return None
    movement = solution.x[:n] - solution.x[n:]
    movement[np.abs(movement) <= 1e-9 * float(need.max(initial=1.0))] = 0.0
    return np.asarray(movement)


class Widener:
    """Widen some widths, as cheaply as possible, until one more movement fits between them.

    The movement is ``inside + above - below``; what exceeds the widths has its price.
    """

    def __init__(
        self, relations: csr_array, weight: FloatArray, limits: tuple[FloatArray, FloatArray], unit: float
    ) -> None:
        from cellguard._engine.lp import LinearProgram

        self.limits, self.unit = limits, unit
        n = len(weight)
        sides = np.zeros(relations.shape[0])
        self.price = weight / float(np.median(weight))
        every = csr_array(hstack([relations, relations, -relations]))
        bounds = np.zeros(3 * n)
        self.program = LinearProgram(every, sides, sides, bounds, bounds, simplex="dual")

    def widen(
        self, upper: FloatArray, lower: FloatArray, cell: int, movement: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return widths above and below in which the cell can make the movement; its own must suffice already."""
        n = len(upper)
        least = np.concatenate([-lower, np.zeros(2 * n)]) / self.unit
        most = np.concatenate([upper, self.limits[0] - upper, self.limits[1] - lower]) / self.unit
        least[cell] = most[cell] = movement / self.unit
        most[[n + cell, 2 * n + cell]] = 0.0
        self.program.set_bounds(np.arange(3 * n), least, np.maximum(most, least))
        price = np.concatenate([np.where(side > 0, 1.0, _CLOSED) * self.price for side in (upper, lower)])
        self.program.set_costs(np.arange(n, 3 * n), price)
        solution = self.program.solve()
        if not solution.optimal:
            return None
        above, below = np.maximum(solution.x[n : 2 * n], 0.0), np.maximum(solution.x[2 * n :], 0.0)
        return upper + above * self.unit, lower + below * self.unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """What the multipliers of a problem with closed cells say about the whole."""

    bound: float
    """No widths of any cells cost less than this."""
    share: FloatArray
    """What a unit of each cell's width would save, divided by its weight: above 1 it should be open."""


def price_cells(
    relations: csr_array,
    weight: FloatArray,
    opened: BoolArray,
    limits: tuple[FloatArray, FloatArray],
    request: tuple[IntArray, FloatArray, FloatArray],
    multipliers: FloatArray,
    tied: bool,
    least: tuple[FloatArray, FloatArray] | None = None,
) -> Prices:
    """Extend multipliers to the closed cells and bound the whole problem.

    Parameters
    ----------
    relations
        Independent relations.
    opened
        Cells to which `multipliers` belong.
    limits
        Of the widths above and below; 0 for cells that cannot be opened at all.
    request
        For each request its cell, its multiplier with the sign of its direction, and its level.
    multipliers
        Requests by cells: that of ``z <= u`` minus that of ``-z <= l``.
    tied
        One width for both sides, without limits.
    least
        Widths above and below that are needed anyway.

    Notes
    -----
    The dual asks for ``lambda_k - mu_k = gamma_k s_k e_k - A' y_k`` with any y. It is chosen to agree with the
    multipliers of the open cells and to be small on the others, in units of their weights (least
    squares); what is counted is recomputed from y, so that the bound holds however it was found.
    """
    cell, price, level = request
    K = len(cell)
    asked = np.zeros((K, len(weight)))
    asked[np.arange(K), cell] = price
    unit = float(np.median(weight))
    importance = np.where(opened, _OPEN_COUNTS, 1.0) * (unit / np.maximum(weight, 1e-3 * unit)) ** 2
    target = np.where(opened, asked - multipliers, 0.0)
    movable = (limits[0] > 0) | (limits[1] > 0)
    bound, share = 0.0, np.zeros(len(weight))
    for _ in range(_REWEIGHTINGS):
        net = asked - _nearest(relations, importance, target)
        found = _count(weight, np.where(movable, net, 0.0), limits, float(np.abs(price) @ level), tied, least)
        # a cell that is too cheap under any of the extensions may be the one that helps
        bound, share = max(bound, found.bound), np.maximum(share, found.share)
        too_much = movable & ~opened & (found.share > 1.0)
        if not too_much.any():
            break
        importance[too_much] *= np.minimum(found.share[too_much], 30.0) ** 2
    return Prices(bound=bound, share=share)


def _nearest(relations: csr_array, importance: FloatArray, target: FloatArray) -> FloatArray:
    """Combinations of the relations nearest to each row of the target, by weighted least squares."""
    scaled = relations.multiply(importance[None, :]).tocsr()
    M = (scaled @ relations.T).toarray()
    M[np.diag_indices(len(M))] *= 1.0 + 1e-13
    factor = cho_factor(M, lower=True)
    y = np.zeros((len(target), relations.shape[0]))
    for _ in range(3):
        y += cho_solve(factor, scaled @ (target.T - relations.T @ y.T)).T
    return np.asarray((relations.T @ y.T).T)


def _count(
    weight: FloatArray,
    net: FloatArray,
    limits: tuple[FloatArray, FloatArray],
    value: float,
    tied: bool,
    least: tuple[FloatArray, FloatArray] | None,
) -> Prices:
    """Add up over the requests, and bound."""
    above, below = np.maximum(net, 0.0).sum(axis=0), np.maximum(-net, 0.0).sum(axis=0)
    if tied:
        unlimited = np.full(len(weight), np.inf)
        bound = _best_scale(value, above + below, 2.0 * weight, unlimited, np.zeros(len(weight)))
        return Prices(bound=bound, share=(above + below) / (2.0 * weight))
    used, allowed = np.concatenate([above, below]), np.concatenate([weight, weight])
    needed = np.zeros(len(used)) if least is None else np.concatenate(least)
    bound = _best_scale(value, used, allowed, np.concatenate(limits), needed)
    return Prices(bound=bound, share=np.maximum(above, below) / weight)


def _best_scale(value: float, used: FloatArray, allowed: FloatArray, limit: FloatArray, least: FloatArray) -> float:
    """Maximise ``f value + sum least (allowed - f used)+ - limit (f used - allowed)+`` over f >= 0.

    Scaling all multipliers keeps the equations. What they leave of a weight proves what the least width
    costs; where they ask for more, the limit of the width pays, and without a limit they must not.
    """
    known = float(least @ allowed)
    matters = (used > 0) & (limit > 0)
    used, allowed, limit, least = used[matters], allowed[matters], limit[matters], least[matters]
    ratio = allowed / used
    order = np.argsort(ratio)
    with np.errstate(invalid="ignore"):
        slope = value - float(least @ used) - np.cumsum((used * (limit - least))[order])  # behind each breakpoint
    stop = np.flatnonzero(slope <= 0)
    if not len(stop):  # nothing stops the growth: only without any movable cell
        return max(0.0, known)
    f = float(ratio[order[stop[0]]])
    before = order[: stop[0]]
    scaled = f * (value - float(least @ used))
    return max(0.0, known, known + scaled - float((limit - least)[before] @ (f * used[before] - allowed[before])))
