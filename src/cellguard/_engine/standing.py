"""How a search stands: the best that it has found, what is proven of everything else, and whether the two have met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Standing"]

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class Standing(Generic[T]):
    """What a minimisation knows so far; every search that proves something is one.

    >>> search = Standing[str](gap=0.05)
    >>> search.take("dear", 12.0), search.take("dearer", 13.0)
    (True, False)
    >>> search.prove(11.0)
    >>> search.closed()
    False
    >>> search.prove(11.5)
    >>> search.closed()
    True
    """

    best: T | None = None
    """The best; None before there is any."""
    cost: float = float("inf")
    """What it costs."""
    bound: float = float("-inf")
    """Proven: nothing costs less; infinite when it is proven that there is nothing."""
    gap: float = 0.0
    """Distance between the two that is good enough, as a share of the cost."""
    rounding: float = 0.0
    """A distance below this is what arithmetic leaves of none."""

    def take(self, best: T, cost: float) -> bool:
        """Take what is better. Returns whether it was."""
        if cost >= self.cost:
            return False
        self.best, self.cost = best, cost
        return True

    def prove(self, bound: float) -> None:
        """Take what is proven, if it is more than before."""
        self.bound = max(self.bound, bound)

    @property
    def missing(self) -> float:
        """How far the proof is from the best."""
        return self.cost - self.bound

    def closed(self) -> bool:
        """Whether the best is proven good enough, or proven not to exist."""
        if self.best is None:
            return self.bound == float("inf")
        return self.missing <= self.gap * abs(self.cost) + self.rounding
