"""Who attacks a release, and what they know before they read it."""

from cellguard.attackers.public import add_public_knowledge

__all__ = ["add_public_knowledge"]
