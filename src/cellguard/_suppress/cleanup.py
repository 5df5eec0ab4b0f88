"""Clean-up: publish what a safe pattern does not need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._suppress.problem import Problem
from cellguard._suppress.space import Space
from cellguard.table import BoolArray, FloatArray, IntArray

__all__ = ["Checked", "check", "cleanup"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """A pattern with the witnesses of its requests."""

    space: Space
    failed: BoolArray
    """Requests of the space without a witness."""
    ups: FloatArray
    """A movement up for each request of the space."""
    downs: FloatArray
    """A movement down."""
    W: FloatArray
    """The echelon form of the space."""
    basis: IntArray
    """Row of each column's parameter."""

    @property
    def safe(self) -> bool:
        """Whether every request has its witnesses."""
        return not self.failed.any() and not self.space.disclosed.any()

    def unmet(self) -> list[int]:
        """Requests of the problem that the pattern does not meet."""
        space, r = self.space, self.space.problem.requests
        attacker, row = space.requests[:2]
        bad = {(int(k), int(i)) for k, i in zip(attacker[self.failed], row[self.failed], strict=True)}
        rows = space.row[r.cell]
        return [q for q in range(len(r)) if rows[q] < 0 or (int(r.attacker[q]), int(rows[q])) in bad]


def check(problem: Problem, pattern: BoolArray, seeds: list[FloatArray] | None = None) -> Checked:
    """Look for witnesses of all requests; `seeds` are movements that probably serve."""
    from cellguard._engine.kernels.patterns import first_witnesses

    space = Space.of(problem, pattern)
    W, basis = space.echelon()
    attacker, row, down, up, slide = space.requests
    m = len(space.cells)
    ups, downs = np.zeros((len(row), m)), np.zeros((len(row), m))
    movements = np.zeros((0, m))
    if seeds:
        movements = np.array([z[space.cells] for z in seeds])
    low, high = space.bounds
    failed = first_witnesses(W, basis, low, high, *space.known, attacker, row, down, up, slide, ups, downs, movements)
    return Checked(space=space, failed=failed, ups=ups, downs=downs, W=W, basis=basis)


def cleanup(checked: Checked, noise: FloatArray | None = None) -> BoolArray:
    """Return the pattern without what it does not need; heaviest classes first, weights times `noise`."""
    from cellguard._engine.kernels.patterns import clean

    space, p = checked.space, checked.space.problem
    attacker, row, down, up, slide = space.requests
    keep = np.zeros(len(space.cells), bool)
    keep[row] = True
    low, high = space.bounds
    factor = np.ones(len(space.cells)) if noise is None else noise[space.cells]
    published, _, _ = clean(
        checked.W, checked.basis, space.weight, low, high, keep, factor, *space.known,
        attacker, row, down, up, slide, checked.ups, checked.downs,
    )  # fmt: skip
    pattern = p.forced.copy()
    open_cells = np.flatnonzero((space.row >= 0) & space.pattern)
    pattern[open_cells[~published[space.row[open_cells]]]] = True
    return pattern
