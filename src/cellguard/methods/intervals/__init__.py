"""Interval protection: every open cell is published as an interval that contains its value."""

from cellguard.methods.intervals.verb import intervals

__all__ = ["intervals"]
