"""Controlled tabular adjustment: the closest table in which every sensitive cell is away from the truth."""

from cellguard.methods.adjust.norms import NORMS
from cellguard.methods.adjust.sensitivity import Sensitivity, sensitivity
from cellguard.methods.adjust.verb import PLAIN, adjust

__all__ = ["NORMS", "PLAIN", "Sensitivity", "adjust", "sensitivity"]
