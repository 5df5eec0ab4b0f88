"""Cell suppression: the cheapest pattern of withheld cells behind which every sensitive one is hidden."""

from cellguard.methods.suppress.verb import suppress

__all__ = ["suppress"]
