"""The best safe pattern so far, as every search holds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.standing import Standing
from cellguard._types import BoolArray
from cellguard.methods.limits import Limits
from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["Incumbent"]


@dataclass(eq=False, kw_only=True)
class Incumbent(Standing[BoolArray]):
    """A safe pattern or none; only what the range engine confirms replaces it."""

    problem: SuppressionProblem
    limits: Limits
    rng: np.random.Generator = field(init=False)
    bound: float = 0.0
    cuts: int = 0
    nodes: int = 0
    unmet: list[int] = field(default_factory=list)
    """Requests of the problem that no pattern can meet, once construction has failed."""
    rounds: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.limits.seed)
        self.gap = max(self.limits.gap, 1e-9)

    @property
    def limit(self) -> Deadline:
        """When the range engine must have confirmed what is offered."""
        return self.limits.deadline

    def offer(self, pattern: BoolArray) -> bool:
        """Take a pattern that is cheaper, if the range engine confirms it in time. Returns whether it was taken."""
        cost = self.problem.compute_cost(pattern)
        if cost >= self.cost or not self.problem.find_met(pattern, self.limit).all():
            return False
        self.best, self.cost = pattern, cost
        self.limits.tell(cost, self.bound)
        return True

    def find_first(self, deadline: Deadline) -> bool:
        """Find some safe pattern, as early as possible. Returns whether there is one."""
        return self.start(deadline)

    def start_from(self, pattern: BoolArray | None) -> bool:
        """Go on from a pattern instead of constructing one. Returns whether that was worthwhile."""
        del pattern
        return False

    def start(self, deadline: Deadline) -> bool:
        """Find a safe pattern that is good enough to be improved. Returns whether there is one."""
        raise NotImplementedError

    def start_from_everything(self) -> bool:
        """Withhold every cell that may be: what fails even then cannot be protected."""
        everything = self.problem.usable | self.problem.forced
        met = self.problem.find_met(everything, self.limit)
        if not met.all():
            self.unmet = [] if self.limit.passed else np.flatnonzero(~met).tolist()
            return False
        self.best, self.cost = everything, self.problem.compute_cost(everything)
        return True
