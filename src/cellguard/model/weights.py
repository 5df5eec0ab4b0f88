"""Weights: the information lost with a cell, computed from its value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cellguard._types import FloatArray
from cellguard.exceptions import UnknownCodeError, raise_if_unknown

__all__ = ["WEIGHTS", "compute_weights"]


def _compute_inverse_weights(size: FloatArray) -> FloatArray:
    """Return 1/value, which makes a change relative (castro2004 section 5); a zero has weight 1."""
    return 1.0 / np.where(size > 0, size, 1.0)


WEIGHTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "unit": np.ones_like,
    "value": np.copy,
    "inverse": _compute_inverse_weights,
    "inverse_square": lambda size: _compute_inverse_weights(size) ** 2,
    "inverse_sqrt": lambda size: np.sqrt(_compute_inverse_weights(size)),
    "sqrt": np.sqrt,
    "log": np.log1p,
}
"""Name -> weights from absolute values."""


def compute_weights(kind: str, values: FloatArray) -> FloatArray:
    """Return the weights of one kind for cells with these values.

    >>> compute_weights("inverse", np.array([4.0, 0.0, -2.0]))
    array([0.25, 1.  , 0.5 ])
    """
    if kind not in WEIGHTS:
        raise_if_unknown("kind of weights", kind, ["table", *WEIGHTS], UnknownCodeError)
    return WEIGHTS[kind](np.abs(values))
