"""Explain why no pattern is safe: which cell cannot be protected, and which cells must be freed for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.cheapest_movement import Protector
from cellguard.methods.suppress.search.space import PatternSpace
from cellguard.model.levels import list_attackers
from cellguard.model.table import Table

__all__ = ["explain_no_pattern"]

_NAMED = 5
"""Maximum number of cells that a message names."""


def explain_no_pattern(table: Table, problem: SuppressionProblem, unmet: list[int], deadline: Deadline) -> str:
    """Explain in the table's labels which cells cannot be protected, and which published cells prevent it.

    After the deadline, name only the cells that cannot be protected.
    """
    cells = list(dict.fromkeys(int(problem.requests.cell[q]) for q in unmet))
    names = _name_cells(table, np.array(cells))
    verb = "cannot be protected" if len(cells) < 2 else "cannot be protected, each on its own"
    text = f"{names} {verb} regardless of what else is withheld."
    freed = _find_extra_cells(table, problem, unmet[:_NAMED], deadline)
    if deadline.passed:
        return text
    if freed is None:
        who = list_attackers(table)[int(problem.requests.attacker[unmet[0]])].name
        return (
            f"{text} Nor would it help to withhold cells that must be published: what attacker {who!r} knows of the "
            "cells beforehand leaves too little slack. Lower its levels, or widen the known bounds."
        )
    must = "must be published" if len(freed) == 1 else "must all be published"
    names = _name_cells(table, freed)
    return f"{text} In the way: {names} {must}; free {'it' if len(freed) == 1 else 'them'}."


def _name_cells(table: Table, cells: IntArray) -> str:
    shown = ", ".join(table.label(int(c)) for c in cells[:_NAMED])
    return shown + (f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else "")


def _find_extra_cells(
    table: Table, problem: SuppressionProblem, unmet: list[int], deadline: Deadline
) -> IntArray | None:
    """Return the fewest fixed cells, by a linear program, that must be withheld as well; None if nothing helps."""
    if deadline.passed:
        return None
    movable = (problem.down + problem.up > 0) | problem.forced
    freed: BoolArray = movable & table.fixed
    space = PatternSpace.of(replace(problem, usable=movable), movable)
    protector = Protector(space)
    protector.unit = 1.0
    rows, row, _ = space.members
    weight = np.bincount(row, freed[rows], len(space)).astype(np.float64)
    needed = np.zeros(len(freed), bool)
    for q in unmet:
        attacker, cell = int(problem.requests.attacker[q]), int(problem.requests.cell[q])
        own = np.flatnonzero((space.requests[0] == attacker) & (space.requests[1] == space.row[cell]))
        found = (
            protector.find_movements(int(own[0]), weight, deadline=deadline)
            if len(own) and space.row[cell] >= 0
            else None
        )
        if found is None:
            return None
        for z in found:
            needed |= (space.variables.lift @ z != 0) & freed
    return np.flatnonzero(needed)
