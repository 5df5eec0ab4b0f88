"""The Newton system of the interior point, in the null space or by the normal equations.

All solve ``min 1/2 x' Theta x - g x`` subject to ``A (v + x) = 0`` with a diagonal Theta, for a v that
is in the null space up to rounding. Which one is cheapest depends on the numbers of relations and
degrees of freedom, see :func:`choose_newton_system`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_array, tril

from cellguard._core.gram import DenseSystem, places, sparse_gram
from cellguard._engine.solvers.cholesky import SparseCholesky
from cellguard._engine.space.space import convert_matrix_for_core
from cellguard._engine.threads import count_cores
from cellguard._types import FloatArray

__all__ = [
    "DenseNormal",
    "IterativeNormal",
    "NullSpace",
    "SparseNormal",
    "Unrelated",
    "choose_newton_system",
    "factor_with_shift",
    "transpose_sorted",
]  # fmt: skip


@dataclass(frozen=True)
class OperationRates:
    """Operations per second, as measured."""

    dense: float = 3e10
    """Of a dense factorization."""
    sparse: float = 1.2e10
    """Of a sparse factorization."""
    scatter: float = 8e8
    """Of adding up products."""


_RATES = OperationRates()
_CHEAP = 3e-3
"""Seconds per factorization below which the analysis of a sparse one does not pay."""

_HUGE = 2e10
"""Operations from which a factorization is worth several cores."""
_MAX_GRADIENT_STEPS = 2000
"""Maximum number of steps of conjugate gradients."""
_GRADIENT_PRECISION = 1e-10
"""Share of the first residual at which conjugate gradients stop."""


def choose_newton_system(
    A: csr_array, basis: Callable[[], csr_array]
) -> NullSpace | DenseNormal | SparseNormal | Unrelated:
    """Choose by the cost of one factorization, given independent relations and a function for a null-space basis."""
    rank, n = A.shape
    if rank == 0:
        return Unrelated()
    dense = rank**3 / 3 / _RATES.dense
    null = (n - rank) ** 3 / 3 / _RATES.dense
    if null < 10 * max(dense, _CHEAP):
        N = basis()
        null += float((np.diff(N.indptr).astype(np.float64) ** 2).sum()) / 2 / _RATES.scatter
    if min(dense, null) < _CHEAP:
        return NullSpace(N) if null <= dense else DenseNormal(A)
    sparse = SparseNormal(A)
    if min(null, dense) < sparse.factors.flops / _RATES.sparse:
        return NullSpace(N) if null <= dense else DenseNormal(A)
    return sparse


class Unrelated:
    """Movers without relations: each has its own minimum."""

    threads = 1

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        self.theta = theta

    def solve(self, g: FloatArray, v: FloatArray | None = None, *, rough: bool = False) -> FloatArray:  # noqa: ARG002
        """Return the minimiser for one g; there are no relations to restore."""
        return g / self.theta


class NullSpace:
    """``x = N u``: a dense Cholesky factor of ``N' Theta N``, one row and column per degree of freedom."""

    threads = 1

    def __init__(self, N: csr_array) -> None:
        self.system = DenseSystem(*convert_matrix_for_core(N), N.shape[1])
        self.S = np.zeros((N.shape[1], N.shape[1]), order="F")

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        self.theta = theta
        shift = factor_with_shift(self.S, lambda: self.system.fill(theta, self.S.T))
        self.refinements = 3 if shift else 0

    def solve(self, g: FloatArray, v: FloatArray | None = None, *, rough: bool = False) -> FloatArray:  # noqa: ARG002
        """Return the minimiser for one g; v stays in the null space."""
        return self.system.along(self.S.T, g, self.theta, self.refinements)


class _Normal:
    """``x = D (g - A' y)`` with ``A D A' y = A D g``: one multiplier per relation."""

    threads = 1

    def __init__(self, A: csr_array) -> None:
        self.A, self.AT = A, transpose_sorted(A)
        self._columns = convert_matrix_for_core(self.AT)
        self.refinements = 1
        self.D = np.ones(A.shape[1])

    def _solve_multipliers(self, b: FloatArray) -> FloatArray:
        raise NotImplementedError

    def solve(self, g: FloatArray, v: FloatArray | None = None, *, rough: bool = False) -> FloatArray:
        """Return the minimiser for one g, and bring v back to the relations."""
        start = np.zeros(len(g)) if v is None else v
        x: FloatArray = self.D * (g - self.AT @ self._solve_multipliers(self.A @ (self.D * g + start)))
        for _ in range(_count_refinements(self.refinements, rough)):
            x -= self.D * (self.AT @ self._solve_multipliers(self.A @ (start + x)))
        return x


class DenseNormal:
    """The normal equations with a dense Cholesky factor."""

    threads = 1

    def __init__(self, A: csr_array) -> None:
        self.system = DenseSystem(*convert_matrix_for_core(transpose_sorted(A)), A.shape[0])
        self.S = np.zeros((A.shape[0], A.shape[0]), order="F")

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        self.D = D = 1.0 / theta
        shift = factor_with_shift(self.S, lambda: self.system.fill(D, self.S.T))
        self.refinements = 3 if shift else 1

    def solve(self, g: FloatArray, v: FloatArray | None = None, *, rough: bool = False) -> FloatArray:
        """Return the minimiser for one g, and bring v back to the relations."""
        start = np.zeros(len(g)) if v is None else v
        return self.system.across(self.S.T, g, start, self.D, _count_refinements(self.refinements, rough))


class SparseNormal(_Normal):
    """The normal equations with a sparse Cholesky factor, analysed once."""

    def __init__(self, A: csr_array) -> None:
        super().__init__(A)
        pattern = csr_array(tril(abs(self.A) @ abs(self.AT)))
        pattern.sort_indices()
        self.factors = SparseCholesky(pattern)
        if self.factors.flops > _HUGE:
            self.threads = count_cores()
        self.place = places(*self._columns[:2], *convert_matrix_for_core(pattern)[:2])
        self.entries = np.zeros(pattern.nnz)

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        self.D = 1.0 / theta
        start, _, data = self._columns
        sparse_gram(start, data, self.D, self.place, self.entries)
        raised = self.factors.factor(self.entries)
        self.refinements = 3 if raised else 1

    def _solve_multipliers(self, b: FloatArray) -> FloatArray:
        return self.factors.solve(b)


class IterativeNormal(_Normal):
    """The normal equations by conjugate gradients, scaled by their diagonal: for large tables and square distances.

    With squares Theta has a lower bound, and every relation has a total that appears in few others,
    so that some 30 steps reach ten digits, regardless of the size of the table.
    """

    def __init__(self, A: csr_array) -> None:
        super().__init__(A)
        self.squared = csr_array(A.multiply(A))

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        self.D = 1.0 / theta
        self.scale = 1.0 / (self.squared @ self.D)

    def _solve_multipliers(self, b: FloatArray) -> FloatArray:
        y, r = np.zeros_like(b), b.copy()
        p = self.scale * r
        size = first = float(r @ p)
        for _ in range(_MAX_GRADIENT_STEPS):
            if size <= _GRADIENT_PRECISION**2 * first:
                return y
            q = self.A @ (self.D * (self.AT @ p))
            step = size / float(p @ q)
            y += step * p
            r -= step * q
            z = self.scale * r
            size, before = float(r @ z), size
            p = z + (size / before) * p
        raise np.linalg.LinAlgError


def _count_refinements(needed: int, rough: bool) -> int:
    """Return how often to refine an answer: never for a rough one from exact factors."""
    return 0 if rough and needed == 1 else needed


def transpose_sorted(A: csr_array) -> csr_array:
    """Return the transpose, with sorted entries."""
    AT = csr_array(A.T)
    AT.sort_indices()
    return AT


def factor_with_shift(S: FloatArray, build: Callable[[], None], *, most: float = 1e-4) -> float:
    """Build and factor the lower triangle of S in place; return the amount added to its diagonal.

    Rounding makes systems indefinite near the end of an interior point. A diagonal entry of 0 is raised too.
    """
    shift = 0.0
    while True:
        build()
        if shift:
            largest = float(S.diagonal().max(initial=0.0))
            S[np.diag_indices(len(S))] = S.diagonal() * (1.0 + shift) + 1e-6 * shift * largest
        _, info = dpotrf(S, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return shift
        if shift > most:
            raise np.linalg.LinAlgError
        shift = max(1e-14, 100.0 * shift)
