"""Attacks on releases, as an informed attacker would make them. No method is imported here."""

from __future__ import annotations

from cellguard.attacks.attack import attack
from cellguard.attacks.counts import CountRule
from cellguard.attacks.intervals import IntervalAttack, attack_intervals
from cellguard.attacks.matching import MatchingAttack, matching_attack
from cellguard.attacks.rounding import MethodAttack, attack_method
from cellguard.attacks.scenarios import Attack
from cellguard.attacks.weighing import WeighingAttack, attack_by_weighing

__all__ = [
    "Attack",
    "CountRule",
    "IntervalAttack",
    "MatchingAttack",
    "MethodAttack",
    "WeighingAttack",
    "attack",
    "attack_by_weighing",
    "attack_intervals",
    "attack_method",
    "matching_attack",
]  # fmt: skip
