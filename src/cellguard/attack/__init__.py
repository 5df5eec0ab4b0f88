"""Attacks on releases, the way an informed intruder would make them. No method is imported here."""

from __future__ import annotations

from cellguard.attack.counts import CountRule
from cellguard.attack.matching import MatchingAttack, matching_attack
from cellguard.attack.rounding import MethodAttack, method_attack
from cellguard.attack.scenarios import Attack
from cellguard.attack.verb import attack
from cellguard.attack.weighing import WeighingAttack, weighing_attack

__all__ = [
    "Attack",
    "CountRule",
    "MatchingAttack",
    "MethodAttack",
    "WeighingAttack",
    "attack",
    "matching_attack",
    "method_attack",
    "weighing_attack",
]
