"""The verb: which attack a release of each kind must withstand."""

from __future__ import annotations

from typing import Any, overload

from cellguard.check.attack.intervals import IntervalAttack, interval_attack
from cellguard.check.attack.rounding import MethodAttack, method_attack
from cellguard.check.attack.scenarios import Attack
from cellguard.check.attack.scenarios import attack as attack_by_scenario
from cellguard.nouns.release import Adjustment, Intervals, Perturbation, Release, Rounding

__all__ = ["attack"]


@overload
def attack(release: Adjustment, scenario: str | None = None, **options: Any) -> Attack: ...
@overload
def attack(release: Rounding | Perturbation, scenario: str | None = None, **options: Any) -> MethodAttack: ...
@overload
def attack(release: Intervals, scenario: str | None = None, **options: Any) -> IntervalAttack: ...
@overload
def attack(release: Release, scenario: str | None = None, **options: Any) -> Any: ...
def attack(release: Release, scenario: str | None = None, **options: Any) -> Any:
    """Attack a release the way somebody would who knows how it was made.

    Parameters
    ----------
    release
        An adjusted table is attacked by scenarios (:func:`cellguard.check.attack.scenarios.attack`), a rounded or
        perturbed one by what its method implies (:func:`cellguard.check.attack.rounding.method_attack`), intervals
        by their ends and all relations (:func:`cellguard.check.attack.intervals.interval_attack`).
    scenario
        What the attacker knows: ``B1``, ``B2`` (unless given), ``B3``, ``C``, ... of an adjusted table; ``nearest``
        (unless given) or ``levels`` of a rounded or perturbed one; ``levels`` (unless given), ``formulas`` or
        ``sets`` of intervals.
    options
        Those of the attack.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([21, 52, 34, 107], [[3, 0, 1, 2]], sensitive=[0], sliding=2, weights=1.0)
    >>> cg.attack(cg.round(table, base=5)).fits
    True
    """
    if isinstance(release, Rounding | Perturbation):
        return method_attack(release, "nearest" if scenario is None else scenario, **options)
    if isinstance(release, Intervals):
        return interval_attack(release, "levels" if scenario is None else scenario, **options)
    return attack_by_scenario(release, "B2" if scenario is None else scenario, **options)
