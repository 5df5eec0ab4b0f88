"""Ranges from public data alone: rows with sides instead of a true table.

What is published leaves rows ``lower <= A y <= upper`` between the unknown cells and bounds on them. Bounds are
tightened first, because that fixes most of what can be computed exactly; a feasible table is found by one program,
and from there on the search for ranges is the one of the audit, which never needs the true table but only a feasible
one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.ranges import compute_ranges
from cellguard._engine.ranges.search.ends import search_ends
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, SolveStatus, Way
from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import FIXED_WIDTH, WHOLE_BOUND
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = [
    "Contradiction",
    "Possible",
    "PublicKnowledge",
    "compute_public_ranges",
    "find_exact_cells",
    "tighten_bounds",
]  # fmt: skip

MAX_PASSES = 200
"""Rounds of tightening; bounds that still shrink after that do so ever more slowly."""
WHOLE_CELLS = 2_500
"""Over whole numbers, both ends of every range are computed for at most this many unknown cells."""
_POINT = Way(solver="choose", simplex="dual", presolve=True, tolerance=1e-9)


class Contradiction(Exception):  # noqa: N818 - the caller, which knows the labels, raises the error
    """No table agrees with the rows and bounds; `rows` are some that contradict each other, the worst first."""

    def __init__(self, rows: IntArray, cells: IntArray, distance: float) -> None:
        super().__init__("the published figures contradict each other")
        self.rows, self.cells, self.distance = rows, cells, distance


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicKnowledge:
    """Everything that is known about the unknown cells: ``row_lower <= A y <= row_upper``, ``lo <= y <= hi``."""

    A: csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lo: FloatArray
    hi: FloatArray
    integer: bool = False

    @property
    def equations(self) -> BoolArray:
        """Rows whose sides are equal."""
        return np.asarray(self.row_lower == self.row_upper)


@dataclass(frozen=True, kw_only=True, eq=False)
class Possible:
    """What is possible for each unknown cell."""

    low: FloatArray
    """Least value that a feasible table attains, or the best found when the time was over."""
    high: FloatArray
    """Greatest value that a feasible table attains."""
    low_bound: FloatArray
    """Proven: no feasible table has a smaller value."""
    high_bound: FloatArray
    """Proven: no feasible table has a greater value."""
    programs: int
    """Number of linear programs solved."""


def tighten_bounds(known: PublicKnowledge) -> PublicKnowledge:
    """Return the bounds that follow from single rows, until nothing changes.

    >>> A, nine = csr_array(np.array([[1.0, 1.0]])), np.array([9.0])
    >>> some = PublicKnowledge(A=A, row_lower=nine, row_upper=nine, lo=np.zeros(2), hi=np.array([4.0, np.inf]))
    >>> tightened = tighten_bounds(some)
    >>> tightened.lo.round(6).tolist(), tightened.hi.round(6).tolist()
    ([0.0, 5.0], [4.0, 9.0])
    """
    A, lo, hi = known.A, known.lo.copy(), known.hi.copy()
    if known.integer:
        lo, hi = np.ceil(lo - WHOLE_BOUND), np.floor(hi + WHOLE_BOUND)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    column, data = A.indices, A.data
    positive = data > 0
    scale = 1.0 + _measure_rows(known)
    for _ in range(MAX_PASSES):
        least = data * np.where(positive, lo[column], hi[column])
        most = data * np.where(positive, hi[column], lo[column])
        rest_least, rest_most = (_sum_others(row, A.shape[0], term) for term in (least, most))
        below, above = known.row_lower[row] - rest_most, known.row_upper[row] - rest_least
        noise = 1e-12 * scale[row]  # bounds are rounded outward, so that no feasible table is lost
        new_low = np.where(positive, below - noise, above + noise) / data
        new_high = np.where(positive, above + noise, below - noise) / data
        if known.integer:
            new_low, new_high = np.ceil(new_low - WHOLE_BOUND), np.floor(new_high + WHOLE_BOUND)
        tighter_lo, tighter_hi = lo.copy(), hi.copy()
        np.maximum.at(tighter_lo, column, new_low)
        np.minimum.at(tighter_hi, column, new_high)
        step = 1e-10 * (1.0 + np.abs(np.where(np.isfinite(lo), lo, 0.0)))
        moved = (tighter_lo > lo + step) | (tighter_hi < hi - step)
        lo, hi = np.where(tighter_lo > lo + step, tighter_lo, lo), np.where(tighter_hi < hi - step, tighter_hi, hi)
        if not moved.any():
            break
        _refuse_crossed_bounds(known, lo, hi)
    return replace(known, lo=np.minimum(lo, hi), hi=np.maximum(lo, hi))


def _measure_rows(known: PublicKnowledge) -> FloatArray:
    """Return the size of the sides of each row, for rounding."""
    sides = np.abs(np.stack([known.row_lower, known.row_upper]))
    return np.asarray(np.where(np.isfinite(sides), sides, 0.0).max(axis=0, initial=0.0))


def _sum_others(row: IntArray, n: int, term: FloatArray) -> FloatArray:
    """Return for each entry the sum of the other entries of its row, which may be infinite."""
    infinite = np.isinf(term)
    finite = np.where(infinite, 0.0, term)
    total = np.bincount(row, finite, minlength=n)[row] - finite
    count = np.bincount(row, infinite, minlength=n)[row] - infinite
    sign = np.bincount(row, np.where(infinite, np.sign(term), 0.0), minlength=n)[row] - np.where(
        infinite, np.sign(term), 0.0
    )
    return np.asarray(np.where(count > 0, np.copysign(np.inf, sign), total))


def _refuse_crossed_bounds(known: PublicKnowledge, lo: FloatArray, hi: FloatArray) -> None:
    size = 1.0 + np.abs(np.where(np.isfinite(lo), lo, 0.0))
    crossed = np.flatnonzero(lo - hi > 1e-7 * size)
    if len(crossed):
        rows = np.unique(csr_array(known.A[:, crossed[:1]]).nonzero()[0])
        raise Contradiction(rows, crossed, float((lo - hi)[crossed].max()))


def find_exact_cells(known: PublicKnowledge) -> BoolArray:
    """Return the cells that addition, subtraction and the bounds determine: no program is needed for them."""
    fixed = _find_fixed(known)
    while True:
        rows = np.flatnonzero(known.equations)
        determined = reduce(csr_array(known.A[rows]), ~fixed).determined
        if not (determined & ~fixed).any():
            return np.asarray(determined)
        fixed = determined | fixed


def _find_fixed(known: PublicKnowledge) -> BoolArray:
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(known.lo) & np.isfinite(known.hi), (known.lo + known.hi) / 2, 0.0)
    return np.asarray(known.hi - known.lo <= 1e-9 * np.maximum(1.0, np.abs(middle)))


def find_feasible_table(known: PublicKnowledge, deadline: Deadline) -> FloatArray:
    """Return values of the unknown cells that agree with all rows and bounds; raise if there are none."""
    whole = np.ones(len(known.lo), bool) if known.integer else None
    model = LinearModel(known.A, known.row_lower, known.row_upper, known.lo, known.hi, None, None)
    found = LinearProgram(model, _POINT).solve(time_limit_s=deadline.get_seconds_at_least(), duals=False)
    if found.optimal and whole is not None and (np.abs(found.x - np.rint(found.x)) > 1e-6).any():
        model = LinearModel(known.A, known.row_lower, known.row_upper, known.lo, known.hi, None, whole)
        found = LinearProgram(model, replace(_POINT, tolerance=1e-7)).solve(
            time_limit_s=deadline.get_seconds_at_least(), duals=False
        )
    if found.status is SolveStatus.INFEASIBLE:
        raise _explain_contradiction(known, deadline)
    x = np.rint(found.x) if known.integer else found.x
    if not model.is_satisfied_by(x):
        raise Contradiction(np.zeros(0, np.int64), np.zeros(0, np.int64), float("nan"))
    return np.clip(x, known.lo, known.hi)


def _explain_contradiction(known: PublicKnowledge, deadline: Deadline) -> Contradiction:
    """Find the rows that must give way, by the least sum of violations."""
    m, n = known.A.shape
    wide = csr_array(hstack([known.A, diags_array(np.ones(m)), diags_array(-np.ones(m))]))
    lower, upper = np.concatenate([known.lo, np.zeros(2 * m)]), np.concatenate([known.hi, np.full(2 * m, np.inf)])
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    model = LinearModel(wide, known.row_lower, known.row_upper, lower, upper, cost)
    found = LinearProgram(model, _POINT).solve(time_limit_s=deadline.get_seconds_at_least(), duals=False)
    missed = found.x[n : n + m] + found.x[n + m :]
    rows = np.argsort(-missed, kind="stable")
    rows = rows[missed[rows] > 1e-6]
    return Contradiction(rows, np.zeros(0, np.int64), float(missed.max(initial=0.0)))


def compute_public_ranges(
    known: PublicKnowledge, cells: IntArray, *, time_limit_s: float = float("inf"), jobs: int | None = None
) -> Possible:
    """Compute what is possible for some of the unknown cells; `known` is tightened already.

    Parameters
    ----------
    known
        Rows and bounds. If only whole numbers are possible, the ends of small systems are computed over those; those
        of larger ones are the ends over real numbers, rounded inward: no possible value is lost.
    cells
        Cells whose ranges are computed.
    time_limit_s
        For the whole search; afterwards a range is what was found, and its bounds are what was proven.
    jobs
        Parts to search at the same time, through joblib.
    """
    deadline = Deadline.from_limit(time_limit_s)
    sight = _look_from_feasible_table(known, find_feasible_table(known, deadline))
    ends: tuple[FloatArray, ...]
    if sight.integer:
        found = compute_ranges(sight, AskedRanges(cells), exact=True, time_limit_s=deadline.left, jobs=jobs)
        ends, programs = (found.low, found.high, found.low_bound, found.high_bound), found.programs
    else:
        ends, programs = _find_real_ends(sight, cells, deadline)
    low, high, low_bound, high_bound = ends
    if known.integer:
        low, low_bound = (np.ceil(x - WHOLE_BOUND * np.maximum(1.0, np.abs(x))) for x in (low, low_bound))
        high, high_bound = (np.floor(x + WHOLE_BOUND * np.maximum(1.0, np.abs(x))) for x in (high, high_bound))
    low_bound, high_bound = np.maximum(low_bound, known.lo[cells]), np.minimum(high_bound, known.hi[cells])
    return Possible(
        low=np.maximum(low, low_bound), high=np.minimum(high, high_bound),
        low_bound=low_bound, high_bound=high_bound, programs=programs,
    )  # fmt: skip


def _look_from_feasible_table(known: PublicKnowledge, point: FloatArray) -> Sight:
    """Return what is possible around a feasible table: a row with two sides is an equation with a slack column."""
    sloped = np.flatnonzero(~known.equations)
    slack = csr_array((-np.ones(len(sloped)), (sloped, np.arange(len(sloped)))), shape=(known.A.shape[0], len(sloped)))
    lo = np.concatenate([known.lo, known.row_lower[sloped]])
    hi = np.concatenate([known.hi, known.row_upper[sloped]])
    start = np.clip(np.concatenate([point, (known.A @ point)[sloped]]), lo, hi)
    narrow = hi - lo <= FIXED_WIDTH * np.maximum(1.0, np.abs(start))
    whole = known.integer and len(known.lo) <= WHOLE_CELLS and bool((known.A.data == np.rint(known.A.data)).all())
    return Sight(csr_array(hstack([known.A, slack])), lo, np.where(narrow, lo, hi), start, integer=whole)


def _find_real_ends(sight: Sight, cells: IntArray, deadline: Deadline) -> tuple[tuple[FloatArray, ...], int]:
    """Return low, high and their bounds over real numbers, and the number of programs."""
    system = sight.build_system()
    ends = search_ends(system, deadline)
    variable, ratio = system.space.variable_of[cells], system.reduction.ratio[cells]
    sides = [(ends.low, ends.high), (ends.high, ends.low)]
    sides += [(ends.low_bound, ends.high_bound), (ends.high_bound, ends.low_bound)]
    moved = [_lift_ends(ahead, back, variable, ratio) for ahead, back in sides]
    return tuple(sight.point[cells] + movement for movement in moved), ends.programs


def _lift_ends(ahead: FloatArray, back: FloatArray, variable: IntArray, ratio: FloatArray) -> FloatArray:
    """Return the movements of cells from those of their variables: a cell that moves backward swaps the sides."""
    out, moves = np.zeros(len(variable)), np.flatnonzero(variable >= 0)
    j, r = variable[moves], ratio[moves]
    out[moves] = r * np.where(r > 0, ahead[j], back[j])
    return out
