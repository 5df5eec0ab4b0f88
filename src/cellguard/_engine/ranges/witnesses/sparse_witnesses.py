"""Witnesses of a few cells each: they keep what a movement of thousands loses when it is made exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.system import System
from cellguard._engine.ranges.witnesses.cheapest import AskedMovement, find_cheapest_witness, split_witness_program
from cellguard._engine.ranges.witnesses.witness import ExactMovements, Inexact, make_witnesses_exact, refine_witnesses
from cellguard._engine.solvers.lp import LinearProgram
from cellguard._tolerances import LEVEL_SHARE
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["SparseWitnesses", "find_sparse_witnesses"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseWitnesses:
    """Exact movements, and the one that takes each cell down and up."""

    movements: ExactMovements
    rows: IntArray
    """Two rows, down and up; -1: none."""
    met: BoolArray
    """Cells whose levels they reach."""
    programs: int


def find_sparse_witnesses(sight: Sight, asked: AskedRanges, deadline: Deadline) -> SparseWitnesses:
    """Find a movement of few cells for each level, and make it exact."""
    system = sight.build_system()
    found: list[FloatArray] = []
    rows = np.full((2, len(asked.cells)), -1, np.int64)
    levels = _split_levels_by_side(sight, asked)
    program = split_witness_program(system.space.relations)
    for k, cell in enumerate(asked.cells.tolist()):
        for side, sign in enumerate((-1.0, 1.0)):
            level = float(levels[side, k])
            z = _find_sparse_movement(system, cell, sign * level, program, deadline) if level > 0 else None
            if z is not None:
                rows[side, k] = len(found)
                found.append(z)
    movements = csr_array(csr_array(np.reshape(found, (len(found), len(system.up)))) @ system.space.lift.T)
    component = system.reduction.component
    given = Inexact(
        reduction=system.reduction, movements=movements, lo=sight.lo, hi=sight.hi, point=sight.point,
        component=component,
    )  # fmt: skip
    exact = make_witnesses_exact(given, deadline)
    short = ~_check_levels_reached(exact, asked.cells, rows, levels)
    some = [(int(row), int(component[asked.cells[k]])) for side in (0, 1) for k in np.flatnonzero(short[side])
            if (row := rows[side, k]) >= 0]  # fmt: skip
    if some and not deadline.passed:
        exact = refine_witnesses(exact, given, some, deadline)
        short = ~_check_levels_reached(exact, asked.cells, rows, levels)
    return SparseWitnesses(movements=exact, rows=rows, met=np.asarray(~short.any(axis=0)), programs=len(found))


def _split_levels_by_side(sight: Sight, asked: AskedRanges) -> FloatArray:
    """Return how far down and up each cell must go: sliding levels go up where there is slack."""
    nothing = np.zeros(len(asked.cells))
    lower, upper, sliding = (nothing if x is None else x for x in (asked.lower, asked.upper, asked.sliding))
    slack = sight.slack[1][asked.cells]
    high = np.minimum(np.maximum(upper, sliding - lower), np.maximum(slack, upper))
    return np.stack([np.maximum(lower, sliding - high), high])


def _find_sparse_movement(
    system: System, cell: int, move: float, program: LinearProgram, deadline: Deadline
) -> FloatArray | None:
    """Return the movement of the variables with the least sum in which a cell goes this far, or None."""
    variable = int(system.space.variable_of[cell])
    if variable < 0 or deadline.passed:
        return None
    far = float(np.clip(move / system.reduction.ratio[cell], -system.down[variable], system.up[variable]))
    if not far:
        return None
    asked = AskedMovement(variable, far, np.ones(len(system.up)), -system.down, system.up)
    z = find_cheapest_witness(system.space.relations, asked, exact=True, program=program, deadline=deadline)
    return None if z is None else np.clip(z, -system.down, system.up)


def _check_levels_reached(exact: ExactMovements, cells: IntArray, rows: IntArray, levels: FloatArray) -> BoolArray:
    """Return whether each cell reaches its level, down and up."""
    moved = exact.convert_to_floats()
    out = levels <= 0
    for side, sign in enumerate((-1.0, 1.0)):
        for k in np.flatnonzero(rows[side] >= 0).tolist():
            out[side, k] |= sign * moved[rows[side, k], cells[k]] >= levels[side, k] * (1 - LEVEL_SHARE / 2)
    return np.asarray(out)
