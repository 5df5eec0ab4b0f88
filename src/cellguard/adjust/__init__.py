"""Controlled tabular adjustment: the closest table in which every sensitive cell is away from the truth."""

from cellguard.adjust.verb import adjust

__all__ = ["adjust"]
