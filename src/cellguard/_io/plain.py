"""What JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain_json"]


def plain_json(value: Any) -> Any:
    """Return the value as JSON can hold it: plain numbers, null for what is not finite.

    >>> plain_json({"gap": float("nan"), "cells": (1, 2)})
    {'gap': None, 'cells': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
