"""Which withheld cells keep a sensitive one uncertain: the smallest movement that reaches its levels.

``min sum |z|`` with ``T z = 0``, ``z_p`` at its level and the other cells within publicly known bounds: a cell that
moves could not be published without withholding another instead. Proofs of safety (witnesses) move many cells for many
sensitive ones at once, and would name nearly all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, hstack

from cellguard._engine.solvers.lp import DUAL, LinearModel, LinearProgram

if TYPE_CHECKING:
    from cellguard._types import FloatArray, IntArray
    from cellguard.release.release import Suppression

__all__ = ["find_partners"]

_MOVED = 1e-6
"""Movements below this share of the level are rounding of the solver."""
_WORK = 20_000_000
"""Steps of the simplex method times withheld cells after which the rest is left out: this explains a release and
proves nothing. It takes about a second, but is not counted in seconds: a slow machine writes the same file."""
MAX_WITHHELD_CELLS = 5_000
"""With more withheld cells nothing is computed: one program could take longer than all files together."""


def find_partners(release: Suppression, *, most_work: int = _WORK) -> dict[int, list[int]]:
    """Return for each secondary cell the sensitive ones that it protects, as far as the work limit allows.

    What is left out is computed when asked for: ``release.why(cell)``.

    >>> import cellguard as cg
    >>> cells = {"region": ["N", "N", "S", "S"], "sex": ["f", "m", "f", "m"], "value": [9, 8, 7, 6]}
    >>> table = cg.Table.from_frame(cells, ["region", "sex"]).apply(cg.Manual([4]))
    >>> find_partners(cg.suppress(table, time_limit_s=1))
    {5: [4], 7: [4], 8: [4]}
    """
    table = release.table
    hidden = np.flatnonzero(release.suppressed)
    found: dict[int, list[int]] = {}
    if not 0 < len(hidden) <= MAX_WITHHELD_CELLS:
        return found
    below, above = table.values[hidden] - table.lb[hidden], table.ub[hidden] - table.values[hidden]
    T = csr_array(table.relations[:, hidden])
    T = T[np.flatnonzero(np.diff(T.indptr))]
    movement = _Movement(T, np.maximum(below, 0.0), np.maximum(above, 0.0))
    place = np.full(table.n_cells, -1)
    place[hidden] = np.arange(len(hidden))
    for cell in table.sensitive_cells.tolist():
        if movement.work > most_work:
            break
        moved: set[int] = set()
        for level in (table.upper[cell], -table.lower[cell]):
            if level:
                moved |= set(hidden[movement.find_support(int(place[cell]), float(level))].tolist())
        for other in sorted(moved):
            if release.secondary[other]:
                found.setdefault(other, []).append(cell)
    return dict(sorted(found.items()))


class _Movement:
    """The program of the smallest movement, kept warm from one cell to the next."""

    def __init__(self, T: csr_array, below: FloatArray, above: FloatArray) -> None:
        self.below, self.above, self.n = below, above, T.shape[1]
        self.work = 0
        zero, cost = np.zeros(2 * self.n), np.ones(2 * self.n)
        self.program = LinearProgram(LinearModel(hstack([T, -T]), 0.0, 0.0, zero, zero, cost), DUAL)

    def find_support(self, cell: int, level: float) -> IntArray:
        """Return which cells move when one cell moves by its level; none if no movement reaches it."""
        scale = abs(level)
        lower, upper = np.zeros(2 * self.n), np.concatenate([self.above, self.below]) / scale
        up, down = (cell, cell + self.n) if level > 0 else (cell + self.n, cell)
        lower[up], upper[up], upper[down] = 1.0, 1.0, 0.0
        self.program.set_bounds(np.arange(2 * self.n), lower, upper)
        found = self.program.solve(duals=False)
        self.work += self.n * (1 + int(self.program.solver.getInfo().simplex_iteration_count))
        if not found.optimal:
            return np.zeros(0, np.int64)
        z = found.x[: self.n] - found.x[self.n :]
        return np.flatnonzero(np.abs(z) > _MOVED)
