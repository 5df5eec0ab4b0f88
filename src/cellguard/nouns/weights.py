"""Weights: how much information is lost with a cell, by its value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cellguard._types import FloatArray
from cellguard.exceptions import UnknownCodeError, raise_if_unknown

__all__ = ["WEIGHTS", "weights_by_value"]


def _inverse_weights(size: FloatArray) -> FloatArray:
    """1/value, which makes a change relative (castro2004 section 5); a zero weighs as a one."""
    return 1.0 / np.where(size > 0, size, 1.0)


WEIGHTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "unit": np.ones_like,
    "value": np.copy,
    "inverse": _inverse_weights,
    "inverse_square": lambda size: _inverse_weights(size) ** 2,
    "inverse_sqrt": lambda size: np.sqrt(_inverse_weights(size)),
    "sqrt": np.sqrt,
    "log": np.log1p,
}
"""Name -> weights from absolute values."""


def weights_by_value(kind: str, values: FloatArray) -> FloatArray:
    """Return the weights of a kind for cells of these values.

    >>> weights_by_value("inverse", np.array([4.0, 0.0, -2.0]))
    array([0.25, 1.  , 0.5 ])
    """
    if kind not in WEIGHTS:
        raise_if_unknown("kind of weights", kind, ["table", *WEIGHTS], UnknownCodeError)
    return WEIGHTS[kind](np.abs(values))
