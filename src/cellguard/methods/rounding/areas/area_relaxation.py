"""The relaxation of a few areas that add up: a bound, and a guide for the flows that decide them one by one.

An interior point without crossover is the right tool: it is fast where the simplex drowns in ties,
and a point in the middle of the optimal face says which cells are undecided. Its bound is computed
here from its duals, so that nothing depends on how exactly it ended. While areas are decided one by one,
it follows what is decided, and guides what comes next; the area with the fewest undecided cells goes first:
rounding it moves the others least.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, vstack

from cellguard._core.areas import halve
from cellguard._core.saddle import saddle_steps
from cellguard._engine.clock import Deadline, OutOfTimeError
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard._engine.space.reduce import reduce
from cellguard._types import FloatArray, IntArray
from cellguard.methods.rounding.areas.grid import AreaGrid, Prices
from cellguard.methods.rounding.model import Pieces, make_rounding_pieces

__all__ = ["AreaRelaxation", "decide_area_by_area", "make_areas_whole"]

_IMPRECISE = 1e-4
"""Largest residual of a relation at which a relaxed solution is still used."""
_UNDECIDED = 0.02
"""A relaxed cell this far from a whole number is undecided."""


def _build_area_program(
    grid: AreaGrid, areas: IntArray, target: IntArray, members: IntArray
) -> tuple[csr_array, FloatArray, Pieces]:
    """Rows: relations of codes per area and line; sums of lines per area; sums of areas per line."""
    low, high, p = grid.low[members], grid.high[members], grid.prices
    pieces = make_rounding_pieces(low.ravel(), high.ravel(), p.slope[members].ravel(), p.outer[members].ravel())
    n, n_lines, n_codes = low.shape
    n_rel, leaves, n_leaf = grid.blocks.n_relations, grid.leaf_codes, len(grid.leaf_codes)
    of_leaf = np.full(n_codes, -1)
    of_leaf[leaves] = np.arange(n_leaf)
    area, line, code = (index.ravel() for index in np.indices(low.shape))
    part, total, leaf = grid.blocks.part_of[code], grid.blocks.total_of[code], of_leaf[code]
    lines_at, areas_at = n * n_lines * n_rel, n * n_lines * n_rel + n * n_leaf
    entries = [  # which cells, their row, their coefficient
        (part >= 0, (area * n_lines + line) * n_rel + part, np.ones(low.size)),
        (total >= 0, (area * n_lines + line) * n_rel + total, -np.ones(low.size)),
        (leaf >= 0, lines_at + area * n_leaf + leaf, np.where(line == n_lines - 1, -1.0, 1.0)),
        (leaf >= 0, areas_at + line * n_leaf + leaf, np.where(area < len(areas), 1.0, -1.0)),
    ]
    row = np.concatenate([r[which] for which, r, _ in entries])
    cell = np.concatenate([np.flatnonzero(which) for which, _, _ in entries])
    value = np.concatenate([v[which] for which, _, v in entries])
    T = csr_array(coo_array((value, (row, cell)), shape=(areas_at + n_lines * n_leaf, low.size)))
    A = csr_array(T[:, pieces.cell])
    A.sort_indices()
    A.data = A.data * pieces.sign[A.indices]
    sums = grid.code_sums[members], grid.line_sums[members][:, leaves], target[:, leaves]
    return A, np.concatenate([each.ravel() for each in sums]) - T @ pieces.start, pieces


class AreaRelaxation:
    """The relaxation of areas that add up: solved once, then followed while area after area is decided.

    `target` is their sum, lines by codes; with a `parent`, their sum minus the parent's x, which is free.
    """

    def __init__(self, grid: AreaGrid, areas: IntArray, target: IntArray, *, parent: int | None = None) -> None:
        self.grid, self.areas = grid, areas
        members = areas if parent is None else np.append(areas, parent)
        self.shape = (len(members), *grid.shape[1:])
        A, rhs, self.pieces = _build_area_program(grid, areas, target, members)
        rows = reduce(A).rows
        self.A, self.rhs = csc_array(A[rows]), rhs[rows]
        self.constant = grid.compute_price(members, self.pieces.start.reshape(self.shape))
        self.area = self.pieces.cell // (self.shape[1] * self.shape[2])
        self.solved: tuple[FloatArray, FloatArray] | None = None
        """Primal and dual solution with nothing decided."""
        self.return_to_root()

    def solve(self, *, time_limit_s: float = float("inf")) -> bool:
        """Solve by interior point; returns whether that gave something usable."""
        y, dual = np.zeros(self.pieces.n_columns), np.zeros(len(self.rhs))
        if len(y):
            program = LinearProgram(
                LinearModel(self.A, self.rhs, self.rhs, y, self.pieces.upper, self.pieces.cost),
                Way(solver="ipx", presolve=True, crossover=False, tolerance=1e-6),
            )
            program.set_options(ipm_optimality_tolerance=1e-6)
            found = program.solve_by_interior_point(time_limit_s=time_limit_s)
            if found is None or np.abs(self.A @ found.x - self.rhs).max(initial=0.0) > _IMPRECISE:
                return False
            y, dual = np.clip(found.x, 0.0, self.pieces.upper), found.row_dual
        self.solved = y, dual
        self.return_to_root()
        return True

    def return_to_root(self) -> None:
        """Go back to the solution with nothing decided."""
        y, dual = self.solved or (np.zeros(self.pieces.n_columns), np.zeros(len(self.rhs)))
        self.y, self.dual, self.sides = y.copy(), dual.copy(), self.rhs.copy()
        self.open = np.ones(len(y), np.bool_)

    @property
    def x(self) -> FloatArray:
        """Areas by lines by codes, the parent last if there is one."""
        return self.pieces.compute_relaxed_x(self.y).reshape(self.shape)

    @property
    def bound(self) -> float:
        """Proven by the duals: no rounding of these areas is cheaper, with what is decided."""
        reduced = self.pieces.cost - self.A.T @ self.dual
        return self.constant + self.grid.scale * float(
            self.rhs @ self.dual + np.minimum(0.0, reduced) @ self.pieces.upper
        )

    def settle(self, number: int, x: IntArray) -> None:
        """Fix an area, by its place in the program, to a decision; outside of its bounds it counts as at them."""
        columns = np.flatnonzero(self.area == number)
        whole = self.pieces.start.reshape(self.shape).copy()
        whole[number] = x
        self.y[columns] = self.pieces.compute_y(whole.ravel())[columns]
        self.sides = self.sides - self.A[:, columns] @ self.y[columns]
        self.open[columns] = False

    def follow(self, steps: int) -> None:
        """Let what is open follow what was decided."""
        A, columns = self.A, np.flatnonzero(self.open)
        last, mean = self.y.copy(), self.y.copy()
        saddle_steps(
            A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data, self.sides,
            self.pieces.cost, self.pieces.upper, columns, last, self.dual, self.length, steps, mean,
        )  # fmt: skip
        self.y = mean

    @cached_property
    def length(self) -> float:
        """A safe length of steps: below one over the norm of A."""
        v = np.ones(self.A.shape[1])
        norm = 1.0
        for _ in range(40):
            v = self.A.T @ (self.A @ v)
            norm = float(np.linalg.norm(v))
            v /= norm
        return 0.9 / float(np.sqrt(norm))


def make_areas_whole(
    grid: AreaGrid,
    areas: IntArray,
    target: IntArray,
    *,
    time_limit_s: float,
    more: tuple[csr_array, FloatArray] | None = None,
) -> IntArray | None:
    """Find the cheapest rounding of a few areas that add up to the target, exactly; None if none was found.

    `more` has the rows and sides of more conditions ``rows x >= sides`` on the areas' cells, in their order.
    """
    A, rhs, pieces = _build_area_program(grid, areas, target, areas)
    lower, upper = rhs, rhs
    if more is not None:
        rows, sides = more
        A = csr_array(vstack([A, rows[:, pieces.cell] * pieces.sign]))
        lower = np.concatenate([lower, sides - rows @ pieces.start])
        upper = np.concatenate([upper, np.full(len(sides), np.inf)])
    found = solve_mixed(
        LinearModel(A, lower, upper, np.zeros(pieces.n_columns), pieces.upper, pieces.cost),
        Until(time_limit_s=time_limit_s, relative_gap=1e-4),
        seed=0,
    )
    return pieces.compute_x(found.x).reshape(len(areas), *grid.shape[1:]) if found.found else None


def decide_area_by_area(
    relaxation: AreaRelaxation, target: IntArray, x: IntArray, *, steps: int, deadline: Deadline
) -> None:
    """Decide the areas of a relaxation that must add up to the target, lines by codes, and write them to x.

    The relaxation follows: after every decision it takes this many steps.
    """
    grid, areas = relaxation.grid, relaxation.areas
    left = np.arange(len(areas))
    while len(left) > 2:
        if deadline.passed:
            raise OutOfTimeError
        relaxation.follow(steps)
        guide = relaxation.x[left]
        undecided = (np.abs(guide - np.rint(guide)) > _UNDECIDED).sum(axis=(1, 2))
        first = int(np.argmin(undecided))
        part = _decide_area(grid, areas[left], first, target, guide)
        x[areas[left[first]]] = part
        relaxation.settle(int(left[first]), part)
        left, target = np.delete(left, first), target - part
    if len(left) == 2:  # the cheapest split of two is one flow
        x[areas[left[0]]] = part = _decide_area(grid, areas[left], 0, target, None)
        target = target - part
    x[areas[left[-1]]] = target


def _decide_area(grid: AreaGrid, areas: IntArray, first: int, target: IntArray, guide: FloatArray | None) -> IntArray:
    """Decide one of some areas so that the others can add up to the rest: near the guide, or at the true price."""
    shape = (len(areas), target.size)
    prices = grid.prices.select_areas(areas) if guide is None else Prices.from_distance(guide)
    cells = prices.build_within(grid.low[areas], grid.high[areas], shape)
    others = np.delete(np.arange(len(areas)), first)
    answer = np.empty(target.size, np.int64)
    halve(
        grid.network, np.array([first]), others, target.ravel(), cells,
        grid.area_needs[areas[first]], grid.soft.ravel(), answer,
    )  # fmt: skip
    return answer.reshape(target.shape)
