"""Controlled tabular adjustment: the closest table in which every sensitive cell is away from the truth."""

from cellguard.adjust.norms import NORMS
from cellguard.adjust.sensitivity import Sensitivity, sensitivity
from cellguard.adjust.verb import PLAIN, adjust

__all__ = ["NORMS", "PLAIN", "Sensitivity", "adjust", "sensitivity"]
