"""The state of a search: the best found, the proven bound, and whether the two have met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Standing"]

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class Standing(Generic[T]):
    """What a minimisation knows so far; every search that proves a bound has one.

    >>> search = Standing[str](gap=0.05)
    >>> search.take("dear", 12.0), search.take("dearer", 13.0)
    (True, False)
    >>> search.prove(11.0)
    >>> search.is_closed()
    False
    >>> search.prove(11.5)
    >>> search.is_closed()
    True
    """

    best: T | None = None
    """The best found; None before there is any."""
    cost: float = float("inf")
    """Its cost."""
    bound: float = float("-inf")
    """Proven: nothing costs less; infinite when it is proven that no solution exists."""
    gap: float = 0.0
    """Gap that is good enough, as a share of the cost."""
    rounding: float = 0.0
    """Gap below this counts as zero: it is rounding error."""

    def take(self, best: T, cost: float) -> bool:
        """Keep a better solution. Return whether it was better."""
        if cost >= self.cost:
            return False
        self.best, self.cost = best, cost
        return True

    def prove(self, bound: float) -> None:
        """Keep a better bound."""
        self.bound = max(self.bound, bound)

    @property
    def missing(self) -> float:
        """Difference between the best and the bound."""
        return self.cost - self.bound

    def is_closed(self) -> bool:
        """Whether the best is proven good enough, or proven not to exist."""
        if self.best is None:
            return self.bound == float("inf")
        return self.missing <= self.gap * abs(self.cost) + self.rounding
