"""Values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["convert_to_plain_json"]


def convert_to_plain_json(value: Any) -> Any:
    """Return the value in a form that JSON can hold: plain numbers, null for numbers that are not finite.

    >>> convert_to_plain_json({"gap": float("nan"), "cells": (1, 2)})
    {'gap': None, 'cells': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): convert_to_plain_json(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [convert_to_plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
