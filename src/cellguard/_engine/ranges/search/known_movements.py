"""Levels that known movements reach: chosen for all variables at once, without a dense row for any of them.

A search for patterns in a large table knows a movement for nearly every level. Each movement has some dozens of
entries among hundreds of thousands of variables, so only entries are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.witnesses.shown import scale_movements, select_valid_movements
from cellguard._tolerances import LEVEL_LOOKED_FOR
from cellguard._types import FloatArray, IntArray

__all__ = ["ChosenWitnesses", "Movement", "choose_witnesses", "stack_movements", "take_movement"]

Movement: TypeAlias = tuple[IntArray, FloatArray]
"""Variables that move, and by how much."""


def take_movement(v: FloatArray) -> Movement:
    """Return the variables that move, and by how much."""
    moving = np.flatnonzero(v)
    return moving, v[moving]


def stack_movements(pool: list[Movement], n_variables: int) -> csr_array:
    """Return movements as the rows of a matrix."""
    start = np.cumsum([0, *(len(moving) for moving, _ in pool)])
    column = np.concatenate([np.zeros(0, np.int64), *(moving for moving, _ in pool)])
    value = np.concatenate([np.zeros(0), *(v for _, v in pool)])
    return csr_array((value, column, start), shape=(len(pool), n_variables))


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenWitnesses:
    """How far known movements take each variable, and which of them does."""

    low: FloatArray
    """How far down a movement takes the variable, at most 0."""
    high: FloatArray
    """How far up a movement takes the variable."""
    low_row: IntArray
    """The row of the pool that does so; -1: none."""
    high_row: IntArray
    """The row of the pool that takes it up; -1: none."""
    pool: list[Movement]
    """The movements that were chosen."""


def choose_witnesses(
    movements: csr_array,
    relations: csr_array,
    slack: tuple[FloatArray, FloatArray],
    components: tuple[IntArray, int],
    enough: tuple[FloatArray, FloatArray],
) -> ChosenWitnesses:
    """Choose, for every variable that must reach a level, the first movement that takes it far enough.

    Parameters
    ----------
    movements
        Known movements of the variables, a row each; those that break a relation are ignored.
    relations
        Relations between the variables.
    slack
        How far the variables can move down and up.
    components
        The component of each variable, and how many there are.
    enough
        How far down and how far up each variable must reach; 0 where nothing is required.

    Examples
    --------
    >>> moves, relation = csr_array(np.array([[1.0, -1.0, 0.0]])), csr_array(np.ones((1, 3)))
    >>> chosen = choose_witnesses(
    ...     moves, relation, (np.full(3, 5.0), np.full(3, 5.0)), (np.zeros(3, np.int64), 1), (np.ones(3), np.ones(3)))
    >>> chosen.low.tolist(), chosen.high.tolist(), len(chosen.pool)
    ([-5.0, -5.0, 0.0], [5.0, 5.0, 0.0], 2)
    """
    valid = select_valid_movements(movements, relations)
    both = [csr_array(scale_movements(way, slack, *components)) for way in (valid, -valid)]
    count = valid.shape[0]
    row = np.concatenate([np.repeat(np.arange(count), np.diff(way.indptr)) + k * count for k, way in enumerate(both)])
    column = np.concatenate([way.indices for way in both]).astype(np.int64)
    value = np.concatenate([way.data for way in both])
    low, low_row = _choose_farthest(column, row, -value, enough[0])
    high, high_row = _choose_farthest(column, row, value, enough[1])
    used = np.unique(np.concatenate([low_row, high_row, [-1]]))[1:]
    place = np.full(2 * count + 1, -1, np.int64)  # index -1 finds the last entry
    place[used] = np.arange(len(used))
    pool = []
    for number in used.tolist():
        way, at = both[number // count], number % count
        span = slice(way.indptr[at], way.indptr[at + 1])
        pool.append((way.indices[span].astype(np.int64), way.data[span].copy()))
    return ChosenWitnesses(low=0.0 - low, high=high, low_row=place[low_row], high_row=place[high_row], pool=pool)


def _choose_farthest(
    column: IntArray, row: IntArray, value: FloatArray, enough: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return how far each variable gets outward, and the first row that takes it far enough, or farthest."""
    far, chosen = np.zeros(len(enough)), np.full(len(enough), -1, np.int64)
    some = np.flatnonzero((value > 0) & (enough[column] > 0))
    column, row, value = column[some], row[some], value[some]
    counted = np.minimum(value, LEVEL_LOOKED_FOR * enough[column])
    order = np.lexsort((row, -counted, column))
    at, first = np.unique(column[order], return_index=True)
    best = order[first]
    far[at], chosen[at] = value[best], row[best]
    return far, chosen
