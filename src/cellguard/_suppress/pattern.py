"""A safe pattern with its witnesses, and how it is cleaned up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._suppress.problem import Problem
from cellguard._suppress.space import Space
from cellguard.table import BoolArray, FloatArray, IntArray

__all__ = ["Proof", "clean", "prove"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """The movements of a pattern, and those that meet its requests."""

    space: Space
    """The pattern's own space."""
    Z: FloatArray
    """All its movements, in echelon form."""
    parameter: IntArray
    """Row of each movement's parameter."""
    bank: FloatArray
    """Movements that meet the requests."""
    failed: BoolArray
    """Requests of the space that they do not meet."""

    @property
    def safe(self) -> bool:
        """Whether every request is met."""
        return not self.failed.any() and not len(self.space.disclosed)

    def movements(self) -> FloatArray:
        """The bank as movements of all cells, one line each."""
        return np.asarray((self.space.lift @ self.bank.T).T)


def prove(problem: Problem, pattern: BoolArray, movements: FloatArray | None = None) -> Proof:
    """Look for witnesses of all requests; `movements` of all cells probably serve."""
    from cellguard._engine.kernels.patterns import prove as kernel

    space = Space.of(problem, pattern)
    Z, parameter = space.echelon()
    bank = space.rows_of(movements) if movements is not None and len(movements) else np.zeros((0, len(space)))
    order = np.arange(len(space.requests[1]))
    low, high = space.bounds
    bank, n, failed = kernel(
        Z, parameter, low, high, space.known, space.requests, bank, len(bank), order, len(order) + 1
    )
    return Proof(space=space, Z=Z, parameter=parameter, bank=bank[:n], failed=failed)


def clean(proof: Proof, noise: FloatArray | None = None, *, stop_above: float = np.inf) -> BoolArray:
    """Return the pattern without what it does not need; heaviest classes first, weights times `noise`."""
    from cellguard._engine.kernels.patterns import clean as kernel

    space = proof.space
    weight = space.weight * (1.0 if noise is None else noise[space.cells])
    low, high = space.bounds
    published, *_ = kernel(
        proof.Z, proof.parameter, weight, space.keep, low, high, space.known, space.requests,
        proof.bank, len(proof.bank), stop_above,
    )  # fmt: skip
    return space.pattern(~published)
