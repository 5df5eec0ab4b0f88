"""``<SAFETYRULE>``: the rules of a batch as ours.

The first two P and NK rules and the first FREQ and REQ rule look at records, those behind them at
holdings; a rule whose numbers are 0 fills its place and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cellguard.data.rules import Dominance, MinFrequency, PPercent, PriorPosterior, Request, Rule, Zero
from cellguard.exceptions import InputError

__all__ = ["Safety", "safety_of"]

_OWN_PLACES = {"P": 2, "NK": 2, "FREQ": 1, "REQ": 1}
"""How many rules of a kind look at records; further ones look at holdings."""


@dataclass(slots=True, kw_only=True)
class Safety:
    """What the rules of one table ask for."""

    records: list[Rule] = field(default_factory=list)
    holdings: list[Rule] = field(default_factory=list)
    weighted: bool = False
    missing_is_safe: bool = False
    manual_percent: float = 20.0

    @property
    def top(self) -> int:
        """How many of the largest contributions the rules look at."""
        return max((rule.units for rule in (*self.records, *self.holdings)), default=0)


def safety_of(rules: Sequence[tuple[str, tuple[float, ...]]], place: str) -> Safety:
    """Make the rules of a table; `place` is where they stand, for messages."""
    safety = Safety()
    seen: dict[str, int] = {}
    for name, numbers in rules:
        if name == "WGT":
            safety.weighted = numbers[0] == 1
        elif name == "MIS":
            safety.missing_is_safe = numbers[0] == 1
        elif name == "MAN":
            safety.manual_percent = numbers[0]
        else:
            seen[name] = seen.get(name, 0) + 1
            target = safety.records if seen[name] <= _OWN_PLACES.get(name, 1) else safety.holdings
            try:
                rule = _safety_rule_of_batch(name, numbers)
            except InputError as error:
                raise type(error)(f"{place}: {error.message}", hint=error.hint) from None
            if rule is not None:
                target.append(rule)
    return safety


def _safety_rule_of_batch(name: str, numbers: tuple[float, ...]) -> Rule | None:
    """Return the rule, or None for one that only fills its place."""
    if name == "P":
        p, *rest = numbers
        if p == 0:
            return None
        if len(rest) == 2:  # P(p, q, n)
            q, n = rest
            return PPercent(p, int(n)) if q == 100 else PriorPosterior(p, q, int(n))
        return PPercent(p, int(rest[0]) if rest else 1)
    if name == "NK":
        n, k = numbers
        return Dominance(int(n), k) if n and k else None
    if name == "FREQ":
        return MinFrequency(numbers[0], percent=numbers[1]) if numbers[0] else None
    if name == "ZERO":
        return Zero(numbers[0])
    first, second, least, percent = numbers  # REQ
    return Request(first, second, least, percent) if first or second or least else None
