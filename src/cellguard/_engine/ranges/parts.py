"""Parts: the search split into independent pieces, run in parallel, and joined again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.implied import tighten_slack
from cellguard._engine.ranges.search.range_search import RangePart, Reach, search_ranges
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.witnesses.shown import LARGE, ShownMovements
from cellguard._engine.space.space import convert_slack_to_variables, list_group_members
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["RangeRequest", "extract_part", "search_range_parts"]


PART_SIZE = 400
"""Small components are searched together, up to this many variables."""
CHUNK_SIZE = 256
"""Exact ranges of a large component are searched this many variables at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeRequest:
    """What is required, in terms of the variables: one entry per requested cell that can move."""

    cells: IntArray
    lower: FloatArray
    upper: FloatArray
    sliding: FloatArray
    movable: BoolArray
    variable: IntArray
    ratio: FloatArray

    @classmethod
    def of(
        cls, system: System, cells: IntArray, lower: FloatArray, upper: FloatArray, sliding: FloatArray
    ) -> RangeRequest:
        reduction = system.reduction
        movable = reduction.alias[cells] >= 0
        variable = system.space.variable_of[cells[movable]]
        return cls(
            cells=cells,
            lower=lower,
            upper=upper,
            sliding=sliding,
            movable=movable,
            variable=variable,
            ratio=reduction.ratio[cells[movable]],
        )


def search_range_parts(
    system: System,
    request: RangeRequest,
    *,
    exact: bool,
    deadline: Deadline,
    jobs: int | None,
    shown: ShownMovements | None = None,
) -> tuple[Reach, csr_array]:
    """Search every part with requested cells; return what they reach, and the pool of movements as one matrix."""
    parts = _split_into_parts(system, request, exact=exact, deadline=deadline, shown=shown)
    return _join_reaches(
        system, [variables for _, variables in parts], _search_each_part([part for part, _ in parts], jobs)
    )


def _split_into_parts(
    system: System, request: RangeRequest, *, exact: bool, deadline: Deadline, shown: ShownMovements | None
) -> list[tuple[RangePart, IntArray]]:
    """Split the work into parts that do not depend on how many run at the same time."""
    if len(request.variable) == 0:
        return []
    m = request.movable
    need_low, need_high = convert_slack_to_variables(request.ratio, request.lower[m], request.upper[m])
    need_width = request.sliding[m] / np.abs(request.ratio)
    wanted = np.zeros(system.n_components, bool)
    wanted[system.component[request.variable]] = True
    counts = np.bincount(system.component, minlength=system.n_components)
    group = np.full(system.n_components, -1, np.int64)
    number, filled = -1, PART_SIZE
    for c in np.flatnonzero(wanted):
        if filled + counts[c] > PART_SIZE:
            number, filled = number + 1, 0
        group[c] = number
        filled += int(counts[c])
    of_variable = group[system.component] if len(system.component) else np.zeros(0, np.int64)
    parts = []
    members = (list_group_members(x, number + 1) for x in (of_variable, of_variable[request.variable]))
    for variables, asked in zip(*members, strict=True):
        needs = (need_high[asked], need_low[asked], need_width[asked])
        part = replace(extract_part(system, variables, request.variable[asked], needs, deadline), exact=exact)
        if len(variables) > LARGE and shown is not None:
            part = replace(part, shown=shown.select_cells(len(system.free), system.space.cells[variables]))
        parts += [(chunk, variables) for chunk in _split_into_chunks(part)]
    return parts


def extract_part(
    system: System,
    variables: IntArray,
    asked: IntArray,
    needs: tuple[FloatArray, FloatArray, FloatArray],
    deadline: Deadline,
    slack: tuple[FloatArray, FloatArray] | None = None,
) -> RangePart:
    """Extract the components of some variables.

    Parameters
    ----------
    system
        The reduced relations.
    variables
        All variables of some components, ascending.
    asked
        Which of them are requested.
    needs
        How far up, how far down and how far in total these must reach.
    deadline
        When to stop.
    slack
        How far the variables can move down and up, where this differs from the system.
    """
    place = np.full(len(system.up), -1, np.int64)
    place[variables] = np.arange(len(variables))
    A = system.space.relations
    first = A.indices[A.indptr[:-1]] if A.shape[0] else np.zeros(0, np.int64)
    A = _number_columns(A[np.flatnonzero(place[first] >= 0)], place, len(variables))
    down, up = (system.down[variables], system.up[variables]) if slack is None else slack
    implied = (system.implied_down[variables], system.implied_up[variables])
    if slack is not None:
        implied = tighten_slack(A, np.minimum(implied[0], down), np.minimum(implied[1], up))
    return RangePart(
        A=A,
        N=_number_columns(system.space.basis[variables]),
        down=down,
        up=up,
        implied_down=implied[0],
        implied_up=implied[1],
        component=np.unique(system.component[variables], return_inverse=True)[1].astype(np.int64),
        asked=place[asked],
        need_high=needs[0],
        need_low=needs[1],
        need_width=needs[2],
        exact=False,
        deadline=deadline,
    )


def _number_columns(M: csr_array, place: IntArray | None = None, n_columns: int = 0) -> csr_array:
    """Renumber the columns: by `place`, or those in use in order."""
    if place is None:
        used, indices = np.unique(M.indices, return_inverse=True)
        return csr_array((M.data, indices, M.indptr), shape=(M.shape[0], len(used)))
    return csr_array((M.data, place[M.indices], M.indptr), shape=(M.shape[0], n_columns))


def _split_into_chunks(part: RangePart) -> list[RangePart]:
    """Split a part in which many variables need both ends."""
    variables = np.unique(part.asked)
    if not part.exact or len(variables) <= CHUNK_SIZE:
        return [part]
    chunks = []
    for first in range(0, len(variables), CHUNK_SIZE):
        mine = np.isin(part.asked, variables[first : first + CHUNK_SIZE])
        chunks.append(
            replace(
                part,
                asked=part.asked[mine],
                need_high=part.need_high[mine],
                need_low=part.need_low[mine],
                need_width=part.need_width[mine],
            )
        )
    return chunks


def _search_each_part(parts: list[RangePart], jobs: int | None) -> list[Reach]:
    if len(parts) <= 1:
        return [search_ranges(part) for part in parts]
    from joblib import Parallel, delayed

    found: list[Reach] = Parallel(n_jobs=jobs, prefer="threads")(delayed(search_ranges)(part) for part in parts)
    return found


def _join_reaches(system: System, variables: list[IntArray], reaches: list[Reach]) -> tuple[Reach, csr_array]:
    """Join the parts: a row of the pool holds movements of parts that have no variable in common."""
    k = len(system.up)
    whole = Reach.start(system.implied_down, system.implied_up)
    used = np.zeros(k, np.int64)  # rows of the pool that already hold a movement of this variable
    row, column, value = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for mine, reach in zip(variables, reaches, strict=True):
        offset = int(used[mine].max(initial=0))
        whole.programs += reach.programs
        whole.high[mine] = np.maximum(whole.high[mine], reach.high)
        whole.low[mine] = np.minimum(whole.low[mine], reach.low)
        whole.high_bound[mine] = np.minimum(whole.high_bound[mine], reach.high_bound)
        whole.low_bound[mine] = np.maximum(whole.low_bound[mine], reach.low_bound)
        for theirs, ours in ((reach.high_witness, whole.high_witness), (reach.low_witness, whole.low_witness)):
            ours[mine[theirs >= 0]] = theirs[theirs >= 0] + offset
        for i, (moving, v) in enumerate(reach.pool):
            row.append(np.full(len(moving), i + offset))
            column.append(mine[moving])
            value.append(v)
        used[mine] = offset + len(reach.pool)
    where = (np.concatenate(row), np.concatenate(column))
    return whole, csr_array((np.concatenate(value), where), shape=(int(used.max(initial=0)), k))
