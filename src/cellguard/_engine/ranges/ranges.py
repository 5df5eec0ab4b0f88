"""Ranges: the least and greatest value of a cell that an attacker cannot exclude.

The attacker's programs (salazar2004 section 2) are solved for movements ``z = y - a`` around the
true table: ``T z = 0`` and ``-down <= z <= up``, so that no program is ever infeasible. The relations
are reduced first: cells that cannot move are disclosed, cells that can only move
together are one variable, and independent components are solved in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.parts import RangeRequest, search_range_parts
from cellguard._engine.ranges.search.attacker_program import AttackerProgram
from cellguard._engine.ranges.search.integer import search_whole_ranges
from cellguard._engine.ranges.search.range_search import Reach
from cellguard._engine.ranges.sight import AskedRanges, ShownRanges, Sight
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.witnesses.witness import ExactMovements, Inexact, make_witnesses_exact, refine_witnesses
from cellguard._tolerances import LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["AskedRanges", "AttackerProgram", "Ranges", "Sight", "compute_ranges", "get_entries"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranges(ShownRanges):
    """What an attacker can compute about the requested cells."""

    cells: IntArray
    """The requested cells."""
    disclosed: BoolArray
    """For every cell of the table: not published, but known exactly, without any linear program."""
    exact: bool
    """Whether whole ranges were requested, not only verdicts: low and high are then their ends."""


def compute_ranges(
    sight: Sight,
    asked: AskedRanges,
    *,
    exact: bool = False,
    certify: bool = False,
    time_limit_s: float = float("inf"),
    jobs: int | None = None,
) -> Ranges:
    """Compute what an attacker can infer about some cells.

    Parameters
    ----------
    sight
        What the attacker knows. If only whole numbers are possible, both ends are computed over those.
    asked
        Which cells, with their levels.
    exact
        Compute both ends of every range; otherwise stop when the verdict is known.
    certify
        Make the witnesses exact, and call safe only what they prove.
    time_limit_s
        For the whole search; what stays open is neither safe nor unsafe.
    jobs
        Parts of the table to search at the same time, through joblib: one unless given, or what an
        enclosing ``joblib.parallel_config`` (threads, processes, Dask, Ray) says.

    Examples
    --------
    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> lo, hi, a = np.array([9.0, 0, 0]), np.array([9.0, 9, 9]), np.array([9.0, 4, 5])
    >>> found = compute_ranges(Sight(T, lo, hi, a), AskedRanges(np.array([1])), exact=True)
    >>> found.low.tolist(), found.high.tolist()
    ([0.0], [9.0])
    """
    deadline = Deadline.from_limit(time_limit_s)
    system, point = sight.build_system(), sight.point
    request = RangeRequest.of(system, asked.cells, *asked.levels)
    if sight.integer:
        reach, pool = search_whole_ranges(system, request, *sight.slack, deadline=deadline, exact=exact)
    else:
        reach, pool = search_range_parts(system, request, exact=exact, deadline=deadline, jobs=jobs, shown=sight.shown)
    movements = csr_array(pool @ system.space.lift.T)
    if sight.shown is not None:
        sight.shown.remember(movements)
    if not certify:
        return _translate_to_cells(system, request, reach, movements, point, exact=exact)
    component = system.reduction.component
    given = Inexact(
        reduction=system.reduction, movements=movements, lo=sight.lo, hi=sight.hi, point=point, component=component
    )
    proof = make_witnesses_exact(given, deadline)
    found = _translate_to_cells(system, request, reach, proof, point, exact=exact)
    open_ = ~found.safe & ~found.unsafe
    if open_.any():
        rows = np.concatenate([found.low_witness[open_], found.high_witness[open_]])
        pairs = set(zip(rows.tolist(), np.tile(component[asked.cells[open_]], 2).tolist(), strict=True))
        pairs = {(row, c) for row, c in pairs if row >= 0}
        proof = refine_witnesses(proof, given, pairs, deadline)
        found = _translate_to_cells(system, request, reach, proof, point, exact=exact)
    return found


def _translate_to_cells(
    system: System,
    request: RangeRequest,
    reach: Reach,
    found: csr_array | ExactMovements,
    point: FloatArray,
    *,
    exact: bool,
) -> Ranges:
    """Translate from variables to cells, and judge by the witnesses."""
    certificate = found if isinstance(found, ExactMovements) else None
    movements = found if certificate is None else certificate.convert_to_floats()
    n = len(request.cells)
    m, j, r = request.movable, request.variable, request.ratio
    forward = r > 0

    def compute_ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        both = np.zeros(n), np.zeros(n)
        both[0][m] = r * np.where(forward, low[j], high[j])
        both[1][m] = r * np.where(forward, high[j], low[j])
        return both

    low, high = compute_ends(reach.low, reach.high)
    low_bound, high_bound = compute_ends(reach.low_bound, reach.high_bound)
    low_row, high_row = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    low_row[m] = np.where(forward, reach.low_witness[j], reach.high_witness[j])
    high_row[m] = np.where(forward, reach.high_witness[j], reach.low_witness[j])
    shown_low, shown_high = (get_entries(movements, row, request.cells) for row in (low_row, high_row))
    keep = 1 - 0.9 * LEVEL_SHARE  # the rest is reserved for checking the witnesses in other arithmetic
    safe = (
        (shown_high >= request.upper * keep)
        & (-shown_low >= request.lower * keep)
        & (shown_high - shown_low >= request.sliding * keep)
    )
    keep = 1 - LEVEL_SHARE
    unsafe = (
        (high_bound < request.upper * keep)
        | (-low_bound < request.lower * keep)
        | (high_bound - low_bound < request.sliding * keep)
    )
    if certificate is not None and not exact:
        low, high = np.minimum(shown_low, 0.0), np.maximum(shown_high, 0.0)
    a = point[request.cells]
    return Ranges(
        cells=request.cells,
        low=a + low,
        high=a + high,
        low_bound=a + low_bound,
        high_bound=a + high_bound,
        safe=safe,
        unsafe=unsafe & ~safe,
        disclosed=system.free & system.reduction.determined,
        exact=exact,
        witnesses=movements,
        exact_witnesses=certificate,
        low_witness=low_row,
        high_witness=high_row,
        programs=reach.programs,
    )


def get_entries(matrix: csr_array, rows: IntArray, columns: IntArray) -> FloatArray:
    """Return the entries at the given places; 0 where the row is -1."""
    out = np.zeros(len(rows))
    some = rows >= 0
    if some.any():
        matrix.sum_duplicates()  # sorted rows are searched by bisection
        out[some] = np.asarray(matrix[rows[some], columns[some]]).ravel()
    return out
