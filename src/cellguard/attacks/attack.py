"""The entry point: which attack a release of each kind must resist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

from cellguard.attackers.public import add_public_knowledge
from cellguard.attacks.intervals import IntervalAttack, attack_intervals
from cellguard.attacks.rounding import MethodAttack, attack_method
from cellguard.attacks.scenarios import Attack
from cellguard.attacks.scenarios import attack as attack_by_scenario
from cellguard.release.release import Adjustment, Intervals, Perturbation, Release, Rounding

__all__ = ["ATTACKS", "attack"]


@overload
def attack(release: Adjustment, scenario: str | None = None, **options: Any) -> Attack: ...
@overload
def attack(release: Rounding | Perturbation, scenario: str | None = None, **options: Any) -> MethodAttack: ...
@overload
def attack(release: Intervals, scenario: str | None = None, **options: Any) -> IntervalAttack: ...
@overload
def attack(release: Release, scenario: str | None = None, **options: Any) -> Any: ...
def attack(release: Release, scenario: str | None = None, **options: Any) -> Any:
    """Attack a release as an informed attacker would.

    Parameters
    ----------
    release
        An adjusted table is attacked by scenarios (:func:`cellguard.attacks.scenarios.attack`), a rounded or
        perturbed one by what its method implies (:func:`cellguard.attacks.rounding.attack_method`), intervals
        by their ends and all relations (:func:`cellguard.attacks.intervals.attack_intervals`).
    scenario
        What the attacker knows: ``B1``, ``B2`` (default), ``B3``, ``C``, ... for an adjusted table; ``nearest``
        (default) or ``levels`` for a rounded or perturbed one; ``levels`` (default), ``formulas`` or
        ``sets`` for intervals.
    options
        Those of the attack.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([21, 52, 34, 107], [[3, 0, 1, 2]], sensitive=[0], sliding=2, weights=1.0)
    >>> cg.attack(cg.round(table, base=5)).fits
    True
    """
    if release.by_ranges:
        release = replace(release, table=add_public_knowledge(release.table))
    kind = next((kind for kind in type(release).__mro__ if kind in ATTACKS), Adjustment)
    run, usual = ATTACKS[kind]
    return run(release, usual if scenario is None else scenario, **options)


ATTACKS: dict[type, tuple[Callable[..., Any], str]] = {
    Adjustment: (attack_by_scenario, "B2"),
    Rounding: (attack_method, "nearest"),
    Perturbation: (attack_method, "nearest"),
    Intervals: (attack_intervals, "levels"),
}
"""Kind of release -> its attack, and the default scenario. A kind without an entry is refused."""
