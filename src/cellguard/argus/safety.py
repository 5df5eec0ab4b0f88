"""``<SAFETYRULE>``: translate the rules of a batch into cellguard's rules.

The first two P and NK rules and the first FREQ and REQ rule apply to records, later ones to
holdings; a rule whose parameters are 0 is a placeholder and requires nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cellguard.exceptions import InputError
from cellguard.rules import Dominance, MinFrequency, PPercent, PriorPosterior, Request, Rule, Zero

__all__ = ["Safety", "build_safety"]

_OWN_PLACES = {"P": 2, "NK": 2, "FREQ": 1, "REQ": 1}
"""Number of rules of a kind that apply to records; further ones apply to holdings."""


@dataclass(slots=True, kw_only=True)
class Safety:
    """The rules of one table."""

    records: list[Rule] = field(default_factory=list)
    holdings: list[Rule] = field(default_factory=list)
    weighted: bool = False
    missing_is_safe: bool = False
    manual_percent: float = 20.0

    @property
    def top(self) -> int:
        """Number of largest contributions that the rules use."""
        return max((rule.units for rule in (*self.records, *self.holdings)), default=0)


def build_safety(rules: Sequence[tuple[str, tuple[float, ...]]], place: str) -> Safety:
    """Return the rules of a table; `place` is their place in the batch, for messages."""
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
                rule = _build_safety_rule(name, numbers)
            except InputError as error:
                raise type(error)(f"{place}: {error.message}", hint=error.hint) from None
            if rule is not None:
                target.append(rule)
    return safety


def _build_safety_rule(name: str, numbers: tuple[float, ...]) -> Rule | None:
    """Return the rule, or None for a placeholder."""
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
        return MinFrequency(numbers[0], percent=numbers[1], basis="weights") if numbers[0] else None
    if name == "ZERO":
        return Zero(numbers[0])
    first, second, least, percent = numbers  # REQ
    return Request(first, second, least, percent) if first or second or least else None
