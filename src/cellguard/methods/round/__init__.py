"""Controlled rounding: an additive table of multiples of a base."""

from cellguard.methods.round.verb import round

__all__ = ["round"]
