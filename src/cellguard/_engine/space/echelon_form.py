"""A null space in echelon form, and the compiled simplex method on it, for questions about many variables."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._core.patterns import prove, stretch
from cellguard._types import FloatArray, IntArray

__all__ = ["EchelonForm", "find_anchors", "reduce_to_echelon_form"]


def find_anchors(N: csr_array) -> tuple[IntArray, FloatArray]:
    """Return for each column of a basis a variable that moves only with its parameter, and by how much."""
    single = np.flatnonzero(np.diff(N.indptr) == 1)
    _, first = np.unique(N.indices[N.indptr[single]], return_index=True)
    anchor = single[first]
    return anchor, N.data[N.indptr[anchor]]


def reduce_to_echelon_form(N: csr_array) -> tuple[FloatArray, IntArray]:
    """Return a basis as dense rows, parameters by variables, and the variable that moves only with each parameter."""
    anchor, ratio = find_anchors(N)
    return np.ascontiguousarray((N.toarray() / ratio).T, np.float64), anchor


class EchelonForm:
    """Movements ``v = N p`` within the slack of each variable, by the compiled simplex method.

    Results for one question serve the next ones too.
    """

    def __init__(self, N: csr_array, down: FloatArray, up: FloatArray) -> None:
        self.Z, self.parameter = reduce_to_echelon_form(N)
        self.low, self.high = -down, up
        self._nothing_known = np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        self._bank = np.zeros((0, len(up)))

    def find_movements(
        self, variables: IntArray, need: FloatArray, patience: int, time_left_s: float = float("inf")
    ) -> tuple[list[FloatArray], int]:
        """Find movements in which variables reach their needs; stop after a number of failures, or seconds.

        Rows of `need` are how far down, up, and in total each variable must go. Returns the movements, as far as the
        slack allows both ways, and the number of failures.
        """
        requests = (np.zeros(len(variables), np.int64), variables, *need)
        n = len(self._bank)
        self._bank, failed = prove(
            self.Z, self.parameter, self.low, self.high, self._nothing_known, requests, self._bank, patience,
            time_left_s=time_left_s,
        )  # fmt: skip
        out = []
        for z in self._bank[n:]:
            backward, forward = (1.0 if np.isinf(step) else step for step in stretch(z, self.low, self.high))
            out += [forward * z, -backward * z]
        return out, int(failed.sum())
