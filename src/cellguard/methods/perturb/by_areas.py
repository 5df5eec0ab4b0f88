"""Perturbation area by area, as salazar2004 section 5 rounds a census: the finest areas alone, the others by addition.

Every finest area is a program of its own, so a table of any number of areas takes time in proportion to it. Larger
areas publish the sums of what their finest areas publish; their distance is the sum of those distances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.demands import Demand
from cellguard.methods.perturb.cell_limits import CellLimits
from cellguard.methods.perturb.cutting import PerturbationOutcome, perturb_by_cuts
from cellguard.model.areas import Areas
from cellguard.model.table import Table

__all__ = ["perturb_by_areas"]

_MAX_DRAWS = 20
"""Draws of an area before the search gives up: a sum that must move stays by chance in one of a few draws."""


def perturb_by_areas(
    table: Table,
    areas: Areas,
    demands: Sequence[Demand],
    deadline: Deadline,
    draw: Callable[[int], CellLimits],
) -> tuple[PerturbationOutcome, CellLimits]:
    """Perturb every finest area separately and add them up; also return the limits that were drawn.

    `draw` gives the limits of the first, second, ... draw. Where a sum must move and did not, one of its areas is drawn
    again. Nothing is returned if an area cannot be perturbed.
    """
    limits, todo = draw(0), list(range(len(areas.cells)))
    found: dict[int, PerturbationOutcome] = {}
    for attempt in range(1, _MAX_DRAWS + 1):
        for k in todo:
            found[k] = _perturb_area(table, areas, k, demands, deadline, limits)
            if found[k].movement is None:
                return _join_outcomes(areas, found, failed=k), limits
        whole = _join_outcomes(areas, found)
        assert whole.movement is not None  # noqa: S101 - every area has one
        todo = _find_areas_to_redraw(areas, limits, whole.movement)
        if not todo:
            return whole, limits
        again = np.zeros(table.n_cells, np.bool_)
        again[np.concatenate([areas.cells[k] for k in todo])] = True
        limits = _choose_limits(limits, draw(attempt), again)
    return replace(whole, movement=None), limits


def _perturb_area(
    table: Table, areas: Areas, k: int, demands: Sequence[Demand], deadline: Deadline, limits: CellLimits
) -> PerturbationOutcome:
    cells = areas.cells[k]
    part = _restrict_table(table, cells, areas.relations[k])
    asked = [_restrict_demand(demand, cells, table.n_cells) for demand in demands]
    return perturb_by_cuts(part, _restrict_limits(limits, cells), asked, deadline, rounded=None)


def _join_outcomes(
    areas: Areas, found: Mapping[int, PerturbationOutcome], failed: int | None = None
) -> PerturbationOutcome:
    movement, start = np.zeros(areas.sums.shape[0]), np.zeros(areas.sums.shape[0])
    rounds, cuts = (sum(getattr(outcome, name) for outcome in found.values()) for name in ("rounds", "cuts"))
    if failed is not None:
        last = found[failed]
        return replace(last, cells=areas.cells[failed][last.cells], start=start, rounds=rounds, cuts=cuts)
    for k, outcome in found.items():
        movement[areas.cells[k]], start[areas.cells[k]] = outcome.movement, outcome.start
    bound = sum(outcome.bound for outcome in found.values())
    return PerturbationOutcome(movement=areas.add_up(movement), bound=bound, start=start, rounds=rounds, cuts=cuts)


def _find_areas_to_redraw(areas: Areas, limits: CellLimits, movement: FloatArray) -> list[int]:
    """Return one finest area under each sum that must move and did not."""
    of = np.full(len(movement), -1, np.int64)
    for k, cells in enumerate(areas.cells):
        of[cells] = k
    stayed = np.abs(movement) <= 1e-9 * np.maximum(1.0, limits.distance)
    out = set()
    for cell in np.flatnonzero((limits.apart > 0) & (of < 0) & stayed).tolist():
        below = areas.sums.indices[areas.sums.indptr[cell] : areas.sums.indptr[cell + 1]]
        below = below[limits.low[below] < limits.high[below]]
        if len(below):
            out.add(int(of[below[0]]))
    return sorted(out)


def _choose_limits(limits: CellLimits, again: CellLimits, where: BoolArray) -> CellLimits:
    chosen: dict[str, Any] = {}
    for field in fields(limits):
        old, new = getattr(limits, field.name), getattr(again, field.name)
        chosen[field.name] = None if old is None else np.where(where, new, old)
    return CellLimits(**chosen)


def _restrict_table(table: Table, cells: IntArray, rows: IntArray) -> Table:
    return Table.from_equations(
        table.values[cells], csr_array(csr_array(table.relations[rows])[:, cells]),
        rhs=table.rhs[rows], lb=table.given_lb[cells], ub=table.ub[cells],
        weights=table.weights[cells], integer=table.integer, insiders=False,
    )  # fmt: skip


def _restrict_limits(limits: CellLimits, cells: IntArray) -> CellLimits:
    given = {field.name: getattr(limits, field.name) for field in fields(limits)}
    own: dict[str, Any] = {name: None if array is None else array[cells] for name, array in given.items()}
    return CellLimits(**own)


def _restrict_demand(demand: Demand, cells: IntArray, n_cells: int) -> Demand:
    place = np.full(n_cells, -1, np.int64)
    place[cells] = np.arange(len(cells))
    own = place[demand.cells] >= 0
    return Demand(
        cells=place[demand.cells[own]], lower=demand.lower[own], upper=demand.upper[own], sliding=demand.sliding[own],
        lb=demand.lb[cells], ub=demand.ub[cells],
    )  # fmt: skip
