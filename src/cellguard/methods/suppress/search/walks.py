"""Walks from a safe pattern to cheaper ones: recombination of movements found before, ruin and repair.

The first rounds gain most and build on each other, so one walk makes them. Then several go on side by side, each
with random numbers, programs and a pool of movements of its own; at counted points they show each other what they
have found, and who has fallen behind goes on from the best one. How many walks there are does not depend on how
many threads carry them: the same seed and rounds give the same pattern on one core and on several.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.threads import run_on_threads
from cellguard._types import FloatArray
from cellguard.methods.suppress.search.construct import construct

if TYPE_CHECKING:
    from cellguard.methods.suppress.search.improve import Search

__all__ = ["WALK_POLICY", "Current", "Walk", "WalkPolicy", "improve_side_by_side"]


@dataclass(frozen=True, kw_only=True)
class WalkPolicy:
    """How walks from pattern to pattern spend their rounds.

    `accepted_excess` was chosen on INSEE's four linked tables with unit weights (``bench/bench_publication.py``): with
    2% instead of 1%, 279.0 instead of 280.75 cells were withheld on average over four seeds; tables of CSPLIB
    (``bench/bench_suppress.py``) did not change beyond their noise.
    """

    pool_size: int = 600
    """Number of movements kept for recombination."""
    max_entries: int = 1_000_000
    """Entries of a pattern's movements beyond which recombining them takes too long."""
    accepted_excess: float = 0.02
    """Share by which a pattern may cost more than the last one and still be accepted at first; it falls to 0."""
    rounds_before_ruin: int = 50
    """Rounds of recombination, a millisecond each, before the first ruin."""
    rounds_per_ruin: int = 100
    """One round in this many is a ruin, which takes a hundred times as long."""
    stale_rounds: int = 300
    """Rounds without a better pattern after which a walk starts again from another one."""
    max_restarts: int = 6
    """Attempts to find such a pattern."""
    restart_cost_ratio: float = 1.06
    """Cost of such a pattern at most, as a multiple of the best one's."""
    ruin_limit_s: float = 20.0
    """Seconds after which a repair is given up."""
    rounds_alone: int = 1000
    """Rounds of the first walk before it is joined by others."""
    walks: int = 4
    """Number of walks side by side: as many threads as have something to do."""
    turn_rounds: int = 100
    """Rounds of each walk between two exchanges if most rounds are recombinations."""
    ruin_turn_rounds: int = 2
    """Rounds of each walk between two exchanges if every round is a ruin."""


WALK_POLICY = WalkPolicy()


@dataclass(eq=False)
class Current:
    """A safe pattern as the search sees it."""

    cost: float
    Z: FloatArray
    """Movements that span its space, in rows of the whole table."""
    bank: FloatArray
    """Movements that meet all requests."""


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """The rounds of a walk up to the next exchange."""

    rounds: int
    deadline: Deadline
    share: float
    """How much of the whole way is behind when it begins."""
    step: float
    """How much of it a round is, where rounds are counted."""

    def compute_slack(self, done: int) -> float:
        """How much more than the last pattern the next one may cost."""
        return WALK_POLICY.accepted_excess * max(0.0, 1.0 - self.share - done * self.step)


def improve_side_by_side(search: Search, start: Current, deadline: Deadline, max_rounds: int | None) -> None:
    """Improve the pattern of a search until the deadline or for at most `max_rounds` rounds in all."""
    whole, done = max(deadline.left, 1e-9), 0
    limit = 1 << 40 if max_rounds is None else max_rounds
    walks = [Walk(search, start)]
    each = WALK_POLICY.turn_rounds if start.Z.size < WALK_POLICY.max_entries else WALK_POLICY.ruin_turn_rounds
    while done < limit and not deadline.passed:
        if len(walks) == 1 and search.rounds >= WALK_POLICY.rounds_alone:
            walks = [walks[0].copy_with(rng) for rng in search.rng.spawn(WALK_POLICY.walks)]
        n, rounds = len(walks), min(limit - done, each * len(walks))
        share = done / limit if max_rounds else 1.0 - deadline.left / whole
        step = n / limit if max_rounds else 0.0
        turns = [
            _Turn(rounds=rounds // n + (k < rounds % n), deadline=deadline, share=share, step=step) for k in range(n)
        ]
        try:
            run_on_threads(
                search.limits.threads, [partial(walk.run, turn) for walk, turn in zip(walks, turns, strict=True)]
            )
        finally:  # walks that still run when Ctrl-C was pressed stop after their round
            for walk in walks:
                walk.halted = True
            _collect_best_pattern(search, walks)
        _share_patterns(walks)
        done += rounds


def _collect_best_pattern(search: Search, walks: list[Walk]) -> None:
    """Hand the best pattern of all walks to the search they began from."""
    if walks[0].search is search:
        return
    search.rounds += sum(walk.search.rounds for walk in walks)
    leader = min((walk.search for walk in walks), key=lambda s: s.cost)
    for walk in walks:
        walk.search.rounds = 0
    search.take_over(leader)


def _share_patterns(walks: list[Walk]) -> None:
    """Show all walks what each has found; those behind continue from the best pattern."""
    found = [walk.fresh for walk in walks]
    leader = min((walk.best for walk in walks), key=lambda best: best.cost)
    for walk in walks:
        for other in found:
            if other is not walk.fresh:
                walk.search.remember(other)
        if walk.best.cost > leader.cost:
            walk.current = walk.best = leader
        walk.fresh, walk.halted = [], False


class Walk:
    """Rounds from pattern to pattern; slightly more expensive ones are accepted, less and less often."""

    def __init__(self, search: Search, start: Current) -> None:
        self.search = search
        self.current = self.best = start
        self.fresh: list[FloatArray] = []
        """Movements found since the last exchange."""
        self.halted = False
        self.rounds = self.stale = 0

    def copy_with(self, rng: np.random.Generator) -> Walk:
        """Return a walk that goes on from here on its own."""
        other = Walk(self.search.copy_with(rng), self.best)
        other.current, other.rounds, other.stale = self.current, self.rounds, self.stale
        return other

    def run(self, turn: _Turn) -> None:
        """Make the rounds of a turn."""
        for done in range(turn.rounds):
            if self.halted or turn.deadline.passed:
                return
            self.search.rounds += 1
            self._round(turn.compute_slack(done), turn.deadline)

    def _round(self, slack: float, deadline: Deadline) -> None:
        limit = self.current.cost * (1.0 + slack)
        cheap = (
            self.current.Z.size < WALK_POLICY.max_entries
            and self.rounds % WALK_POLICY.rounds_per_ruin != WALK_POLICY.rounds_before_ruin
        )
        got = self._combine_with_pool(limit, deadline) if cheap else self._remove_and_protect(self.current, deadline)
        self.rounds, self.stale = self.rounds + 1, self.stale + 1
        if got is not None and got.cost <= limit:
            if got.cost < self.best.cost * (1 - 1e-12):
                rows = (got.Z != 0).any(axis=0) | self.search.forced_rows
                better = self.search.finish(rows, got.bank, deadline)
                self.best = self.current = better if better is not None else got
                self.stale = 0
            else:
                self.current = got
        if self.stale > WALK_POLICY.stale_rounds:
            self.current, self.stale = self._start_nearby(deadline), 0

    def _start_nearby(self, deadline: Deadline) -> Current:
        """Start again from another pattern near the best one, even if it costs more."""
        for _ in range(WALK_POLICY.max_restarts):
            got = self._remove_and_protect(self.best, deadline)
            if got is not None and got.cost <= self.best.cost * WALK_POLICY.restart_cost_ratio:
                return got
        return self.best

    def _combine_with_pool(self, limit: float, deadline: Deadline) -> Current | None:
        """Add a few movements from the pool and clean up in a noisy order."""
        from cellguard._core.patterns import recombine

        current, pool = self.current, self.search.pool
        if not pool:
            return None
        rng, space = self.search.rng, self.search.space
        k = min(int(rng.integers(1, 5)), len(pool))
        chosen = [pool[i] for i in rng.choice(len(pool), size=k, replace=False)]
        vectors = np.vstack([current.Z, *chosen])
        noisy = space.weight * np.exp(rng.normal(0.0, rng.uniform(0.05, 0.5), len(space)))
        low, high = space.bounds
        cost, Z, bank = recombine(
            vectors, space.weight, noisy, space.keep, low, high, space.known, space.requests,
            current.bank, limit * 1.2, time_left_s=deadline.left,
        )  # fmt: skip
        return Current(cost=cost, Z=Z, bank=bank) if np.isfinite(cost) else None

    def _remove_and_protect(self, current: Current, deadline: Deadline) -> Current | None:
        """Forbid some heavy rows, publish some others, protect again with noisy costs, clean up."""
        space, rng = self.search.space, self.search.rng
        rows = (current.Z != 0).any(axis=0) | self.search.forced_rows
        secondary = np.flatnonzero(rows & (space.weight > 0) & ~space.keep)
        if not len(secondary):
            return None
        weight = space.weight * np.exp(rng.normal(0.0, 0.3, len(space)))
        heavy = space.weight[secondary]
        n = int(rng.integers(1, 4))
        forbidden = rng.choice(secondary, size=min(n, len(secondary)), replace=False, p=heavy / heavy.sum())
        weight[forbidden] = weight.max() * 10.0 + 1.0
        rows[secondary[rng.random(len(secondary)) < rng.uniform(0.02, 0.4)]] = False
        rows[forbidden] = False
        bank = current.bank[~(current.bank[:, ~rows] != 0).any(axis=1)]
        rows, found, failed = construct(
            self.search.protector, rows, bank, largest_first=bool(rng.random() < 0.5), weight=weight,
            deadline=deadline.choose_earlier(WALK_POLICY.ruin_limit_s),
        )  # fmt: skip
        if failed:
            return None
        self.search.remember(found)
        self.fresh.extend(found)
        return self.search.finish(rows, np.array([*bank, *found]), deadline)
