"""The types of arrays: every annotation in the package uses one of these."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "ByteArray", "Coordinates", "FloatArray", "IntArray"]

FloatArray: TypeAlias = NDArray[np.float64]
"""Values, bounds, levels, movements."""
IntArray: TypeAlias = NDArray[np.int64]
"""Indices of cells, relations and variables; counts."""
BoolArray: TypeAlias = NDArray[np.bool_]
"""Which cells."""
Coordinates: TypeAlias = NDArray[np.int32]
"""Cells by dimensions: indices of codes in their hierarchies."""
ByteArray: TypeAlias = NDArray[np.int8]
"""Small marks of many cells: senses, requests."""
