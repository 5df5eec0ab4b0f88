"""Explain why there is no adjusted table, in the user's labels, without any value.

The explanation names a conflict: relations and bounds that cannot hold together, none of which can be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from cellguard._engine.clock import Deadline
from cellguard._engine.solvers.lp import DUAL, ONCE, LinearModel, LinearProgram, SolveStatus
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.adjust.senses import Need
from cellguard.model.table import Table

__all__ = ["explain_no_adjustment", "find_adjustment_conflict"]

_SHOWN = 8
"""Maximum relations and cells named in a sentence; the release's details have all of them."""
_LONGEST_S = 20.0
"""Seconds after which an explanation may name more than is needed."""


def explain_no_adjustment(
    table: Table, need: Need, up: BoolArray, bounds: tuple[FloatArray, FloatArray], *, time_limit_s: float
) -> tuple[str, dict[str, Any]]:
    """Return a sentence and the details: which relations and cells conflict."""
    if need.stuck.any():
        names = [table.label(int(c)) for c in np.flatnonzero(need.stuck)]
        shown = _name_some(names, ", ")
        text = f"the known bounds leave no room for what must be between a sensitive cell and its truth: {shown}."
        return text, {"conflict": {"relations": [], "cells": dict.fromkeys(names, "has no room"), "irreducible": True}}
    conflict = find_adjustment_conflict(table.relations, *bounds, time_limit_s=min(time_limit_s, _LONGEST_S))
    if conflict is None:
        return "no table was found, though none of the relations and bounds seem to conflict.", {}
    cells = _explain_conflict_cells(table, need, up, conflict)
    relations = [table.describe_relation(int(r)) for r in conflict.relations]
    kind = "cannot hold together" if conflict.irreducible else "(perhaps not all of them) cannot hold together"
    parts = [_name_some(relations)] if relations else []
    parts.append(_name_some([f"{name} {why}" for name, why in cells.items()]))
    text = f"these {kind}: " + ", with ".join(parts) + "."
    return text, {"conflict": {"relations": relations, "cells": cells, "irreducible": conflict.irreducible}}


def _name_some(names: list[str], between: str = "; ") -> str:
    more = f" (and {len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return between.join(names[:_SHOWN]) + more


def _explain_conflict_cells(table: Table, need: Need, up: BoolArray, conflict: Conflict) -> dict[str, str]:
    """Return for each cell in the conflict what restricts it."""
    lower, upper = set(conflict.lower.tolist()), set(conflict.upper.tolist())
    reasons = {}
    for cell in sorted(lower | upper):
        if table.fixed[cell]:
            why = "is fixed"
        elif need.cells[cell]:
            level, bound, way, side = (lower, upper, "rise", "upper") if up[cell] else (upper, lower, "fall", "lower")
            held = [f"must {way} by its level"] if cell in level else []
            held += [f"cannot pass its known {side} bound"] if cell in bound else []
            why = " and ".join(held)
        else:
            sides = " and ".join(name for name, side in (("lower", lower), ("upper", upper)) if cell in side)
            why = f"cannot pass its known {sides} bound{'s' if ' and ' in sides else ''}"
        reasons[table.label(cell)] = why
    return reasons


# ---------------------------------------------------------------------- the conflict


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflict:
    """Relations and bounds that cannot hold together."""

    relations: IntArray
    """Numbers of the relations."""
    lower: IntArray
    """Cells whose lower bounds take part."""
    upper: IntArray
    """Cells whose upper bounds take part."""
    irreducible: bool
    """Whether leaving out any one of them would end the conflict."""


def find_adjustment_conflict(
    relations: csr_array, lower: FloatArray, upper: FloatArray, *, time_limit_s: float = _LONGEST_S
) -> Conflict | None:
    """Return a conflict of ``T z = 0`` with ``lower <= z <= upper``, or None if there is none.

    The multipliers of a program that pays for every missed bound name the few relations that matter. Of these,
    leave out one by one those that are not needed.

    >>> T = csr_array(np.array([[-1.0, 1, 1]]))
    >>> found = find_adjustment_conflict(T, np.array([-1.0, 2, 0]), np.array([1.0, 9, 9]))
    >>> found.relations.tolist(), found.lower.tolist(), found.upper.tolist()
    ([0], [1, 2], [0])
    """
    deadline = Deadline.from_limit(time_limit_s)
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        one = crossed[:1]
        return Conflict(relations=np.zeros(0, np.int64), lower=one, upper=one, irreducible=True)
    needs = np.maximum(np.maximum(lower, -upper), 0.0)
    unit = float(np.median(needs[needs > 0])) if (needs > 0).any() else 1.0
    low, high = lower / unit, upper / unit
    rows = _find_conflicting_relations(relations, low, high, time_limit_s)
    return None if rows is None else _Filter(relations, rows, low, high, deadline).run()


def _find_conflicting_relations(
    T: csr_array, low: FloatArray, high: FloatArray, time_limit_s: float
) -> IntArray | None:
    """Return the relations that matter if every missed bound has a price; None if none need be missed."""
    n = T.shape[1]
    M = csr_array(hstack([T, T, -T]))  # z inside the bounds, plus what is above, minus what is below
    below, above = np.isfinite(low), np.isfinite(high)
    least = np.concatenate([np.where(below, low, -np.inf), np.zeros(2 * n)])
    most = np.concatenate([np.where(above, high, np.inf), np.where(above, np.inf, 0.0), np.where(below, np.inf, 0.0)])
    model = LinearModel(M, 0.0, 0.0, least, most, np.concatenate([np.zeros(n), np.ones(2 * n)]))
    solution = LinearProgram(model, ONCE).solve(time_limit_s=time_limit_s)
    if not solution.optimal:
        return np.arange(T.shape[0])
    return None if solution.objective < 1e-9 else np.flatnonzero(np.abs(solution.row_dual) > 1e-9)


class _Filter:
    """Leaves out what the conflict does not need, one by one."""

    def __init__(self, T: csr_array, rows: IntArray, low: FloatArray, high: FloatArray, deadline: Deadline) -> None:
        part = csr_array(T[rows])
        self.cells = np.unique(part.indices)
        self.rows, self.deadline = rows, deadline
        self.low, self.high = low[self.cells].copy(), high[self.cells].copy()
        self.lp = LinearProgram(LinearModel(csr_array(part[:, self.cells]), 0.0, 0.0, self.low, self.high), DUAL)
        self.timely = True

    def is_infeasible(self) -> bool:
        if self.deadline.passed:
            self.timely = False
            return False
        return (
            self.lp.solve(time_limit_s=min(5.0, self.deadline.get_seconds_at_least())).status is SolveStatus.INFEASIBLE
        )

    def run(self) -> Conflict:
        keep = np.ones(len(self.rows), bool)
        if self.is_infeasible():
            for k in range(len(self.rows)):
                self.lp.set_row_sides(k, -np.inf, np.inf)
                keep[k] = not self.is_infeasible()
                if keep[k]:
                    self.lp.set_row_sides(k, 0.0, 0.0)
            self.leave_out_bounds(self.low, -np.inf)
            self.leave_out_bounds(self.high, np.inf)
        else:  # the tolerances of the two programs disagree: keep all
            self.timely = False
        lower, upper = (self.cells[np.isfinite(bound)] for bound in (self.low, self.high))
        return Conflict(relations=self.rows[keep], lower=lower, upper=upper, irreducible=self.timely)

    def leave_out_bounds(self, bound: FloatArray, endless: float) -> None:
        for c in np.flatnonzero(np.isfinite(bound)):
            at, before = np.array([c]), bound[c]
            bound[c] = endless
            self.lp.set_bounds(at, self.low[at], self.high[at])
            if not self.is_infeasible():
                bound[c] = before
                self.lp.set_bounds(at, self.low[at], self.high[at])
