"""Cell perturbation: an additive table near the truth."""

from cellguard.methods.perturb.verb import perturb

__all__ = ["perturb"]
