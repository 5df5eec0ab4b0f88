"""Movements in whole numbers without a program: a cell is pushed unit by unit, and others give way.

In a rounded table nearly every cell can move by a few units, and so can the sums that contain it. A walk adds columns
of a null-space basis, one unit each, and moves whatever leaves its bounds back by other columns. What it finds is a
witness in whole numbers; what it does not find is left to programs. Walks with other seeds take other ways, so that
several of them suit most attackers who know a few cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.parts import RangeRequest
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.witnesses.shown import select_valid_movements
from cellguard._engine.space.space import convert_matrix_for_core, convert_slack_to_variables
from cellguard._tolerances import LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["MAX_UNITS", "find_improving", "get_needs", "show_by_walks", "walk_in_units"]

MAX_UNITS = 24.0
"""A walk goes at most this far: a wide range is followed to its end by a program."""
MAX_SHARE = 0.2
"""Share of the time left that walks may take."""


def get_needs(system: System, request: RangeRequest) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how far down, how far up and how far in all each variable must be able to go, in whole numbers."""
    m, k = request.movable, len(system.up)
    low, high = convert_slack_to_variables(request.ratio, request.lower[m], request.upper[m])
    needs = np.zeros(k), np.zeros(k), np.zeros(k)
    for need, asked in zip(needs, (low, high, request.sliding[m] / np.abs(request.ratio)), strict=True):
        np.maximum.at(need, request.variable, np.ceil(asked * (1 - LEVEL_SHARE) - 1e-9))
    return needs


def walk_in_units(
    system: System,
    down: FloatArray,
    up: FloatArray,
    *,
    deadline: Deadline,
    slacks: Sequence[tuple[FloatArray, FloatArray]] | None = None,
) -> csr_array:
    """Return movements of the variables in whole numbers, one row each, that push variables as far as wanted.

    Parameters
    ----------
    system
        The reduced relations, and how far each variable can move.
    down, up
        How far to push each variable to either side: 0 not to push it.
    deadline
        When the walks stop; they take a share of the time that is left.
    slacks
        A walk for each of them: how far down and up the variables may move to give way, at most as the system says;
        the system's own unless given. Each walk has its own random numbers.

    Examples
    --------
    >>> T, slack = csr_array(np.array([[-1.0, 1, 1]])), np.array([2.0, 3.0, 3.0])
    >>> system = System.of(T, np.ones(3, bool), slack, slack)
    >>> walk_in_units(system, np.zeros(3), np.array([0.0, 2.0, 0.0]), deadline=Deadline.from_limit(9)).toarray()[:, 1]
    array([2.])
    """
    from cellguard._core.unit_walks import walk

    space, k = system.space, len(system.up)
    nothing = csr_array((0, k))
    N, ratio = space.basis, space.members[2]
    if (N.data != np.rint(N.data)).any() or (ratio != np.rint(ratio)).any():
        return nothing
    far = np.minimum(np.floor(np.minimum(down, system.implied_down) + 1e-6), MAX_UNITS)
    high = np.minimum(np.floor(np.minimum(up, system.implied_up) + 1e-6), MAX_UNITS)
    variables = np.concatenate([np.flatnonzero(high > 0), np.flatnonzero(far > 0)])
    wanted = np.concatenate([high[high > 0], -far[far > 0]])
    if not len(variables):
        return nothing
    slacks = [(system.down, system.up)] if slacks is None else slacks
    basis = *convert_matrix_for_core(csc_array(N)), *convert_matrix_for_core(csr_array(N))
    left_s = MAX_SHARE * deadline.left / len(slacks)
    found = []
    for seed, (below, above) in enumerate(slacks):
        whole = np.floor(below + 1e-6), np.floor(above + 1e-6)
        start, index, value = walk(*basis, *whole, variables, wanted, seed, left_s)
        found.append(csr_array((value, index, start), shape=(len(variables), k)))
    rows = select_valid_movements(csr_array(vstack(found)), space.relations)
    return _keep_inside(rows, system.down, system.up)


def show_by_walks(sight: Sight, asked: AskedRanges, deadline: Deadline) -> BoolArray:
    """Return which of the asked cells keep their levels by movements in whole numbers that walks find.

    >>> T, a = csr_array(np.array([[-1.0, 1, 1]])), np.array([9.0, 4, 5])
    >>> sight = Sight(T, a - 2, a + 2, a)
    >>> show_by_walks(sight, AskedRanges(np.array([1, 2]), upper=np.array([2.0, 3.0])), Deadline.from_limit(9)).tolist()
    [True, False]
    """
    system = sight.build_system()
    request = RangeRequest.of(system, asked.cells, *asked.levels)
    low, high, width = get_needs(system, request)
    found = walk_in_units(system, np.maximum(low, width), np.maximum(high, width), deadline=deadline)
    rises, falls = csc_array(found.maximum(0.0)), csc_array((-found).maximum(0.0))
    up, down = (np.zeros(len(system.up)), np.zeros(len(system.up)))
    for furthest, moved in ((up, rises), (down, falls)):
        np.maximum.at(furthest, np.repeat(np.arange(len(furthest)), np.diff(moved.indptr)), moved.data)
    met = (up >= high) & (down >= low) & (up + down >= width)
    out = np.zeros(len(asked.cells), bool)
    out[request.movable] = met[request.variable]
    return out


def _keep_inside(movements: csr_array, down: FloatArray, up: FloatArray) -> csr_array:
    """Return the movements that stay within the slack of every variable."""
    moved, variable = movements.data, movements.indices
    bad = (moved > up[variable]) | (-moved > down[variable])
    owner = np.repeat(np.arange(movements.shape[0]), np.diff(movements.indptr))
    inside = np.bincount(owner[bad], minlength=movements.shape[0]) == 0
    return csr_array(movements[np.flatnonzero(inside)])


def find_improving(movements: csr_array, low: FloatArray, high: FloatArray) -> IntArray:
    """Return the rows that take a variable further than any other does: the fewest that reach all ends."""
    by_variable = csc_array(movements)
    column = np.repeat(np.arange(movements.shape[1]), np.diff(by_variable.indptr))
    rows = []
    for sign, reached in ((1.0, high), (-1.0, -low)):
        size = sign * by_variable.data
        order = np.lexsort((by_variable.indices, -size, column))
        first = order[np.unique(column[order], return_index=True)[1]]
        first = first[size[first] > reached[column[first]]]
        rows.append(by_variable.indices[first])
    return np.unique(np.concatenate(rows))
