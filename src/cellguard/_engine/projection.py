"""The Newton system of the interior point, in the null space or by the normal equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse import csr_array

__all__ = ["DenseNormal", "NullSpace"]

FloatArray = NDArray[np.float64]


def _factor(S, build):
    delta=0.0
    while True:
        build()
        if delta: S[np.diag_indices(len(S))] *= 1.0 + delta
        _, info = dpotrf(S, lower=1, overwrite_a=1, clean=0)
        if not info: return delta
        delta = max(1e-14, delta*100)
        if delta > 1e-4: raise np.linalg.LinAlgError

class NullSpace:
    """``x = N u``: a dense Cholesky factor of ``N' Theta N``, one row and column per degree of freedom."""

    def __init__(self, N: csr_array) -> None:
        self.N, self.NT = N, csr_array(N.T)
        self.S = np.zeros((N.shape[1], N.shape[1]), order="F")

    def factor(self, theta: FloatArray) -> None:
        from cellguard._engine.kernels.gram import gram

        self.theta = theta
        self.delta = _factor(self.S, lambda: gram(self.N.indptr, self.N.indices, self.N.data, theta, self.S))

    def solve(self, g: FloatArray) -> FloatArray:
        u, _ = dpotrs(self.S, self.NT @ g, lower=1)
        x = self.N @ u
        for _ in range(3 if self.delta else 0):
            r = self.NT @ (g - self.theta * x)
            u, _ = dpotrs(self.S, r, lower=1)
            x += self.N @ u
        return x


class DenseNormal:
    """``x = D (g + A' y)``: a dense Cholesky factor of ``A D A'``, one row and column per relation."""

    def __init__(self, A: csr_array) -> None:
        self.A, self.AT = A, csr_array(A.T)
        self.AT.sort_indices()
        self.S = np.zeros((A.shape[0], A.shape[0]), order="F")

    def factor(self, theta: FloatArray) -> None:
        from cellguard._engine.kernels.gram import gram

        self.D = 1.0 / theta
        _factor(self.S, lambda: gram(self.AT.indptr, self.AT.indices, self.AT.data, self.D, self.S))

    def solve(self, g: FloatArray) -> FloatArray:
        y, _ = dpotrs(self.S, self.A @ (self.D * g), lower=1)
        x = self.D * (g - self.AT @ y)
        y, _ = dpotrs(self.S, self.A @ x, lower=1)  # one step of refinement
        return x - self.D * (self.AT @ y)
