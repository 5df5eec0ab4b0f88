"""Compiled loops (numba, cached on disk): plain arrays in and out, called only by their neighbours above."""

from __future__ import annotations

from pathlib import Path

__all__ = ["compiled"]


def compiled() -> bool:
    """Whether the loops were compiled before: the first run takes a minute or two longer."""
    return any((Path(__file__).parent / "__pycache__").glob("*.nbi"))
