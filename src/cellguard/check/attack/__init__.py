"""Attacks on releases, the way an informed intruder would make them. No method is imported here."""

from __future__ import annotations

from cellguard.check.attack.counts import CountRule
from cellguard.check.attack.intervals import IntervalAttack, interval_attack
from cellguard.check.attack.matching import MatchingAttack, matching_attack
from cellguard.check.attack.rounding import MethodAttack, method_attack
from cellguard.check.attack.scenarios import Attack
from cellguard.check.attack.verb import attack
from cellguard.check.attack.weighing import WeighingAttack, weighing_attack

__all__ = [
    "Attack", "CountRule", "IntervalAttack", "MatchingAttack", "MethodAttack", "WeighingAttack", "attack",
    "interval_attack", "matching_attack", "method_attack", "weighing_attack",
]  # fmt: skip
