"""Attacks on releases, the way an informed intruder would make them. No method is imported here."""

from __future__ import annotations

from cellguard.attack.scenarios import Attack, attack

__all__ = ["Attack", "attack"]
