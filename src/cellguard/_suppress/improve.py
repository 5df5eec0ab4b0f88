"""Improvement: ruin and repair, and recombination of movements found before, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cellguard._suppress.cleanup import Checked, check, cleanup
from cellguard._suppress.construct import construct
from cellguard._suppress.problem import Problem
from cellguard._suppress.protect import Protector
from cellguard.table import BoolArray, FloatArray

__all__ = ["Search"]

_POOL = 400


@dataclass(eq=False)
class Search:
    """The best safe pattern so far, and how to find a better one. It always holds a safe pattern or none."""

    problem: Problem
    protector: Protector
    rng: np.random.Generator
    best: BoolArray | None = None
    cost: float = float("inf")
    pool: list[FloatArray] = field(default_factory=list)
    unmet: list[int] = field(default_factory=list)
    """Requests that no pattern can meet, once construction has failed."""
    rounds: int = 0
    on_better: Callable[[float], None] | None = None

    def start(self, deadline: float) -> bool:
        """Construct in both orders and clean up. Returns whether there is a safe pattern."""
        for largest_first in (False, True):
            pattern, found, failed = construct(
                self.protector, self.problem.forced, largest_first=largest_first, deadline=deadline
            )
            if failed and self.best is None:
                self.unmet = failed
                return False
            self._remember(found)
            self._finish(pattern, found)
            if time.monotonic() > deadline:
                break
        return self.best is not None

    def _remember(self, found: list[FloatArray]) -> None:
        self.pool.extend(found)
        del self.pool[: max(0, len(self.pool) - _POOL)]

    def _secure(self, pattern: BoolArray, found: list[FloatArray]) -> Checked | None:
        """Check a pattern; what fails is protected again, with movements that noise cannot hide."""
        for _ in range(5):
            checked = check(self.problem, pattern, found)
            if checked.safe:
                return checked
            pattern = pattern.copy()
            for request in checked.unmet():
                again = self.protector.movements(request, np.where(pattern, 0.0, self.problem.weight), exact=True)
                if again is None:
                    return None
                for z in again:
                    pattern |= z != 0
        return None

    def _finish(
        self, pattern: BoolArray, found: list[FloatArray], noise: FloatArray | None = None
    ) -> tuple[BoolArray, float] | None:
        checked = self._secure(pattern, found)
        if checked is None:
            return None
        cleaned = cleanup(checked, noise)
        if noise is not None:
            again = check(self.problem, cleaned)
            if again.safe:
                cleaned = cleanup(again)
        cost = self.problem.cost(cleaned)
        if cost < self.cost:
            self.best, self.cost = cleaned, cost
            if self.on_better is not None:
                self.on_better(cost)
        return cleaned, cost

    def improve(self, deadline: float, max_rounds: int | None = None) -> None:
        """Search until the deadline or for so many rounds; accept slightly dearer patterns, ever less so."""
        if self.best is None or self.cost <= 0:
            return
        current, cost = self.best, self.cost
        begin, stale = time.monotonic(), 0
        for done in range(1_000_000 if max_rounds is None else max_rounds):
            now = time.monotonic()
            if now >= deadline:
                return
            self.rounds += 1
            share = done / max_rounds if max_rounds else (now - begin) / max(deadline - begin, 1e-9)
            move = self._recombine if self.rng.random() < 0.7 else self._ruin
            got = move(current)
            if got is None:
                continue
            stale += 1
            if got[1] <= cost * (1.0 + 0.01 * (1.0 - share)):
                if got[1] < cost * (1 - 1e-12):
                    stale = 0
                current, cost = got
            if stale > 60:
                current, cost, stale = self.best, self.cost, 0

    def _recombine(self, current: BoolArray) -> tuple[BoolArray, float] | None:
        """Open the supports of a few movements from the pool and clean up in a noisy order."""
        if not self.pool:
            return None
        k = int(self.rng.integers(1, 5))
        chosen = self.rng.choice(len(self.pool), size=min(k, len(self.pool)), replace=False)
        pattern = current.copy()
        for i in chosen:
            pattern |= self.pool[i] != 0
        noise = np.exp(self.rng.normal(0.0, 0.3, len(current)))
        return self._finish(pattern, [self.pool[i] for i in chosen], noise)

    def _ruin(self, current: BoolArray) -> tuple[BoolArray, float] | None:
        """Forbid some heavy cells, publish some others, protect again with noisy costs, clean up."""
        p, rng = self.problem, self.rng
        secondary = np.flatnonzero(current & ~p.forced)
        if not len(secondary):
            return None
        weight = p.weight * np.exp(rng.normal(0.0, 0.3, len(current)))
        heavy = p.weight[secondary] + 1e-300
        n = int(rng.integers(1, 4))
        forbidden = rng.choice(secondary, size=min(n, len(secondary)), replace=False, p=heavy / heavy.sum())
        weight[forbidden] = weight.max() * 10.0 + 1.0
        share = rng.uniform(0.02, 0.4)
        pattern = current.copy()
        pattern[secondary[rng.random(len(secondary)) < share]] = False
        pattern[forbidden] = False
        pattern, found, failed = construct(
            self.protector, pattern, largest_first=bool(rng.random() < 0.5), weight=weight,
            deadline=time.monotonic() + 20.0,
        )  # fmt: skip
        if failed:
            return None
        self._remember(found)
        return self._finish(pattern, found)
