"""The Newton system of the interior point, in the null space or by the normal equations.

Both solve ``min 1/2 x' Theta x - g x`` subject to ``A x = r`` with a diagonal Theta.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse import csr_array

__all__ = ["DenseNormal", "NullSpace"]

FloatArray = NDArray[np.float64]


class NullSpace:
    """``x = N u``: a dense Cholesky factor of ``N' Theta N``, one row and column per degree of freedom."""

    def __init__(self, N: csr_array) -> None:
        self.N, self.NT = N, csr_array(N.T)
        self.S = np.zeros((N.shape[1], N.shape[1]), order="F")

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        from cellguard._engine.kernels.gram import gram

        self.theta = theta
        self.shifted = _cholesky(self.S, lambda: gram(self.N.indptr, self.N.indices, self.N.data, theta, self.S))

    def solve(self, g: FloatArray) -> FloatArray:
        """Return the minimiser for one g."""
        x: FloatArray = self.N @ dpotrs(self.S, self.NT @ g, lower=1)[0]
        for _ in range(3 if self.shifted else 0):
            x += self.N @ dpotrs(self.S, self.NT @ (g - self.theta * x), lower=1)[0]
        return x

    def drift(self, v: FloatArray) -> FloatArray:
        """Return what brings v back to ``A v = 0``: nothing, it never leaves."""
        return np.zeros(len(v))


class DenseNormal:
    """``x = D (g - A' y)``: a dense Cholesky factor of ``A D A'``, one row and column per relation."""

    def __init__(self, A: csr_array) -> None:
        self.A, self.AT = A, csr_array(A.T)
        self.AT.sort_indices()
        self.S = np.zeros((A.shape[0], A.shape[0]), order="F")

    def factor(self, theta: FloatArray) -> None:
        """Prepare for the weights theta."""
        from cellguard._engine.kernels.gram import gram

        self.D = 1.0 / theta
        AT, D = self.AT, self.D
        self.shifted = _cholesky(self.S, lambda: gram(AT.indptr, AT.indices, AT.data, D, self.S))

    def solve(self, g: FloatArray) -> FloatArray:
        """Return the minimiser for one g."""
        x: FloatArray = self.D * (g - self.AT @ dpotrs(self.S, self.A @ (self.D * g), lower=1)[0])
        for _ in range(3 if self.shifted else 1):
            x -= self.D * (self.AT @ dpotrs(self.S, self.A @ x, lower=1)[0])
        return x

    def drift(self, v: FloatArray) -> FloatArray:
        """Return the smallest movement that brings v back to ``A v = 0``."""
        back: FloatArray = -self.D * (self.AT @ dpotrs(self.S, self.A @ v, lower=1)[0])
        return back


def _cholesky(S: FloatArray, build: Callable[[], None]) -> float:
    """Build and factor S in place, with a larger diagonal where rounding made it indefinite; return by how much."""
    shift = 0.0
    while True:
        build()
        if shift:
            S[np.diag_indices(len(S))] *= 1.0 + shift
        _, info = dpotrf(S, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return shift
        if shift > 1e-4:
            raise np.linalg.LinAlgError
        shift = max(1e-14, 100.0 * shift)
