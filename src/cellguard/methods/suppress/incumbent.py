"""The best safe pattern so far, as every search holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray
from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["Incumbent"]


@dataclass(eq=False)
class Incumbent:
    """A safe pattern or none; only what the range engine confirms replaces it."""

    problem: SuppressionProblem
    rng: np.random.Generator
    best: BoolArray | None = None
    cost: float = float("inf")
    unmet: list[int] = field(default_factory=list)
    """Requests of the problem that no pattern can meet, once construction has failed."""
    threads: int = 1
    """Cores that the search may use; what it finds does not depend on it."""
    rounds: int = 0
    limit: Deadline = field(default_factory=Deadline.never)
    """When the range engine must have confirmed what is offered."""
    on_better: Callable[[float], None] | None = None

    def offer(self, pattern: BoolArray) -> bool:
        """Take a pattern that is cheaper, if the range engine confirms it in time. Returns whether it was taken."""
        cost = self.problem.cost(pattern)
        if cost >= self.cost or not self.problem.verdicts(pattern, self.limit)[0].all():
            return False
        self.best, self.cost = pattern, cost
        if self.on_better is not None:
            self.on_better(cost)
        return True

    def start_from_everything(self) -> bool:
        """Withhold every cell that may be: what fails even then cannot be protected."""
        everything = self.problem.usable | self.problem.forced
        met, _ = self.problem.verdicts(everything, self.limit)
        if not met.all():
            self.unmet = [] if self.limit.passed else np.flatnonzero(~met).tolist()
            return False
        self.best, self.cost = everything, self.problem.cost(everything)
        return True
