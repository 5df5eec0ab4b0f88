"""One copy of the table per request, eliminated from a Newton step by its own small factorisation.

Each request k has its own movement ``z_k`` with ``A z_k = 0`` and a diagonal ``D_k``. What the rest of the
step needs of it is ``G_k = N (N' D_k N)^-1 N'``, N a basis of the null space of A, or the same from the
other side: ``G_k = D^-1 - D^-1 A' (A D^-1 A')^-1 A D^-1``. The smaller of the two systems is factored.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas, cho_solve, lapack, solve_triangular
from scipy.sparse import csr_array

from cellguard._core import schur
from cellguard._engine.clock import NEVER, Deadline, OutOfTimeError
from cellguard._engine.closest.newton_systems import factor_with_shift, transpose_sorted
from cellguard._engine.space.space import convert_matrix_for_core
from cellguard._types import FloatArray, IntArray

__all__ = ["Copies", "NullSpaceCopies", "RangeCopies", "factor_robustly", "make_newton_copies"]

_NEGLIGIBLE = 1e-10
"""Share of a width's diagonal below which a request's part in the dense system is left out."""


class Copies(Protocol):
    """The copies of all requests, factored for one Newton step."""

    deadline: Deadline
    """On the clock of time limits; checked before each copy."""

    def factor(self, tp: FloatArray, tq: FloatArray, extra: FloatArray, tied: bool) -> FloatArray:
        """Factor ``D = tp + tq + extra`` of every request (rows) and return the system in the widths.

        Only its lower triangle is filled: ``sum theta - theta G theta`` over the requests, for one width per
        cell if `tied`, otherwise for the widths above and then those below.
        """

    def project(self, b: FloatArray) -> FloatArray:
        """Return ``G_k b_k`` for every request k."""


def make_newton_copies(relations: csr_array, basis: csr_array) -> Copies:
    """Choose the form with the smaller systems."""
    if relations.shape[0] < basis.shape[1]:
        return RangeCopies(relations)
    return NullSpaceCopies(basis)


class NullSpaceCopies:
    """``N' D N``, as large as the degrees of freedom."""

    def __init__(self, basis: csr_array) -> None:
        self.N = basis.toarray()
        self.deadline = NEVER
        self.factors: list[tuple[FloatArray, bool]] = []

    def factor(self, tp: FloatArray, tq: FloatArray, extra: FloatArray, tied: bool) -> FloatArray:
        """Factorise each copy's system and return the Schur complement in the shared widths."""
        D = tp + tq + extra
        diagonal = (tp + tq).sum(axis=0) if tied else np.concatenate([tp.sum(axis=0), tq.sum(axis=0)])
        S = np.zeros((len(diagonal), len(diagonal)))
        self.factors = []
        for k in range(len(D)):
            _check_clock(self.deadline)
            factor = factor_robustly((self.N.T * D[k]) @ self.N)
            X = solve_triangular(factor[0], self.N.T, lower=True, check_finite=False)
            parts = _compute_responses(tp[k], tq[k], D[k], diagonal, tied)
            _subtract_width_columns(S, np.hstack([X * part for part in parts]), np.flatnonzero(np.concatenate(parts)))
            self.factors.append(factor)
        S[np.diag_indices(len(S))] += diagonal
        return S

    def project(self, b: FloatArray) -> FloatArray:
        """Solve each copy's system for its right-hand side."""
        reduced = b @ self.N
        solved = [cho_solve(factor, reduced[k], check_finite=False) for k, factor in enumerate(self.factors)]
        return np.asarray(np.stack(solved) @ self.N.T)


class RangeCopies:
    """``A D^-1 A'``, as large as the rank; the relations stay sparse."""

    def __init__(self, relations: csr_array) -> None:
        self.rank = relations.shape[0]
        self.deadline = NEVER
        self.touched = convert_matrix_for_core(transpose_sorted(relations))
        self.inverse = np.zeros((0, self.rank, self.rank))
        self.reciprocal = np.zeros((0, 0))

    def factor(self, tp: FloatArray, tq: FloatArray, extra: FloatArray, tied: bool) -> FloatArray:
        """Factorise each copy's system and return the Schur complement in the shared widths."""
        D = tp + tq + extra
        K, C = D.shape
        self.reciprocal = 1.0 / D
        if len(self.inverse) != K:
            self.inverse = np.empty((K, self.rank, self.rank))
        reference = (tp + tq).sum(axis=0) if tied else np.concatenate([tp.sum(axis=0), tq.sum(axis=0)])
        S = np.zeros((len(reference), len(reference)))
        for k in range(K):
            _check_clock(self.deadline)
            schur.normal(*self.touched, self.reciprocal[k], self.inverse[k])
            self._invert(self.inverse[k])
            parts = _compute_responses(tp[k], tq[k], D[k], reference, tied)
            schur.accumulate(S, *self.touched, self.inverse[k], *(part * self.reciprocal[k] for part in parts))
        # theta - theta^2 / D, without cancellation: nothing is subtracted in this form
        if tied:
            S[np.diag_indices(C)] += ((4.0 * tp * tq + extra * (tp + tq)) / D).sum(axis=0)
        else:
            up, down = (tp * (tq + extra) / D).sum(axis=0), (tq * (tp + extra) / D).sum(axis=0)
            S[np.diag_indices(2 * C)] += np.concatenate([up, down])
            S[np.arange(C) + C, np.arange(C)] += (tp * tq / D).sum(axis=0)
        return S

    @staticmethod
    def _invert(M: FloatArray) -> None:
        """Replace a positive definite matrix, given by its lower triangle, by its inverse."""
        if not len(M):  # no relation: every cell moves on its own
            return
        given = M.copy()
        # the transpose of a matrix in C order is the same memory in the order of LAPACK
        factor, failed = lapack.dpotrf(M.T, lower=0, clean=0, overwrite_a=1)
        if failed:
            M[:] = factor_robustly(given)[0]
            factor = M.T
        lapack.dpotri(factor, lower=0, overwrite_c=1)
        schur.mirror(M)

    def project(self, b: FloatArray) -> FloatArray:
        """Solve each copy's system for its right-hand side."""
        return schur.project(*self.touched, self.inverse, self.reciprocal, b)


def _check_clock(deadline: Deadline) -> None:
    if deadline.passed:
        raise OutOfTimeError


def _compute_responses(
    tp: FloatArray, tq: FloatArray, D: FloatArray, reference: FloatArray, tied: bool
) -> list[FloatArray]:
    """Return how a request's movement responds to each width; 0 if the response is lost in rounding."""
    C = len(D)
    parts = [tp - tq] if tied else [tp, -tq]
    return [
        np.where(part * part > _NEGLIGIBLE * D * reference[side * C : (side + 1) * C], part, 0.0)
        for side, part in enumerate(parts)
    ]


def _subtract_width_columns(S: FloatArray, W: FloatArray, strong: IntArray) -> None:
    """Subtract ``W'W``, a column per width, from the lower triangle; columns that are not strong are 0."""
    if 4 * len(strong) > 3 * W.shape[1]:  # S.T is the same matrix as BLAS stores it: its upper triangle
        blas.dsyrk(-1.0, W, beta=1.0, c=S.T, trans=1, lower=0, overwrite_c=1)
    elif len(strong):
        S[np.ix_(strong, strong)] -= blas.dsyrk(1.0, W[:, strong], trans=1, lower=1)


def factor_robustly(M: Any) -> tuple[FloatArray, bool]:
    """Return the Cholesky factor of the lower triangle; increase the diagonal if rounding made it indefinite."""
    S = np.empty(M.shape, order="F")
    factor_with_shift(S, lambda: np.copyto(S, M), most=1e8)
    return np.tril(S), True
