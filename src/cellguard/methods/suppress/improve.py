"""Improvement: ruin and repair, and recombination of movements found before, until the time is up."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cellguard._engine import clock
from cellguard.methods.suppress.cheapest_movement import Protector
from cellguard.methods.suppress.construct import construct
from cellguard.methods.suppress.incumbent import Incumbent
from cellguard.methods.suppress.joint_movement import jointly
from cellguard.methods.suppress.pattern import Movements, Proof, clean, prove
from cellguard.methods.suppress.space import Space
from cellguard.nouns.table import BoolArray, FloatArray

__all__ = ["Search"]

_POOL = 600
_DENSE = 1_000_000
"""Entries of a pattern's movements beyond which recombining them takes too long."""


@dataclass(eq=False)
class _Current:
    """A safe pattern as the search sees it."""

    cost: float
    Z: FloatArray
    """Movements that span its space, in rows of the whole table."""
    bank: FloatArray
    """Movements that meet all requests."""


_MANY_ROWS, _MANY_REQUESTS = 1800, 20
"""From so many on, one movement for all requests comes first: programs for each take long, and may stall."""
_RIGID = 3
"""Rows per degree of freedom from which on that is so: where rows are freer, each request needs a few of them only."""
_CLEAN = 0.5
"""Share of the time for cleaning up a first pattern; confirming it takes time as well."""
_CHEAP = 50
"""Rounds of recombination, a millisecond each, before the first ruin."""
_STALE = 300
"""Rounds without a better pattern after which the search starts again from another one."""
_KICKS, _DEARER = 6, 1.06
"""How often that is tried, and how much dearer the other one may be."""


@dataclass(eq=False)
class Search(Incumbent):
    """Find a safe pattern and better ones, with programs over the whole table."""

    pool: list[FloatArray] = field(default_factory=list)
    """Movements found before, for recombination."""
    _kept: _Current | None = None
    """Movements of the best pattern, if its cost is theirs."""

    def __post_init__(self) -> None:
        self.space = Space.of(self.problem, self.problem.usable)
        self.protector = Protector(self.space)
        self.forced_rows = np.zeros(len(self.space), bool)
        rows = self.space.row[self.problem.forced]
        self.forced_rows[rows[rows >= 0]] = True

    # ------------------------------------------------------------------ start

    def start(self, deadline: float) -> bool:
        """Construct in several ways and clean up. Returns whether there is a safe pattern."""
        self.unmet = self.space.disclosed.tolist()
        if self.unmet:
            return False
        _, witnesses = self.problem.verdicts(self.problem.forced)
        bank = self.space.rows_of(witnesses) if len(witnesses) else np.zeros((0, len(self.space)))
        begin = clock.now()
        orders = (False, True)
        if len(self.space) > max(_MANY_ROWS, _RIGID * self.space.reduction.degrees_of_freedom):
            self._start_jointly(bank, deadline)
            orders = (True, False)  # with the largest levels first fewer programs are left
        for largest_first in orders:
            limit = float("inf") if self.best is None else deadline  # a first pattern is needed in any case
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first, deadline=limit
            )
            self._remember(found)
            if not failed:
                self._finish(rows, np.array([*bank, *found]), deadline)
            spent = clock.now() - begin
            if self.best is None or clock.now() + spent > deadline:  # the other order would take as long
                break
        return self.best is not None or self._clean_everything(deadline)

    def _start_jointly(self, bank: FloatArray, deadline: float) -> None:
        """Let one movement meet all requests of an attacker; what is left over is protected one by one."""
        rows, found = self.forced_rows, [*bank]
        attackers, asked = np.unique(self.space.requests[0], return_counts=True)
        if not (asked >= _MANY_REQUESTS).any():
            return
        for attacker in attackers[asked >= _MANY_REQUESTS]:
            weight = np.where(rows, 0.0, self.space.weight)
            z = jointly(self.space, np.flatnonzero(self.space.requests[0] == attacker), weight)
            if z is None:
                return
            rows = rows | (z != 0)
            found.append(z)
        self._finish(rows, np.array(found), clock.until(_CLEAN, deadline))

    def _clean_everything(self, deadline: float) -> bool:
        if not self.start_from_everything() or self.best is None:
            return False
        proof = prove(self.problem, self.best)
        if proof.safe:
            self._take(*clean(proof, deadline))
        return True

    def _remember(self, found: list[FloatArray]) -> None:
        self.pool.extend(found)
        del self.pool[: max(0, len(self.pool) - _POOL)]

    def _finish(self, rows: BoolArray, found: FloatArray, deadline: float) -> _Current | None:
        """Prove and clean up the pattern of these rows, in its own space."""
        proof = self._secure(rows, found)
        if proof is None:
            return None
        return self._take(*clean(proof, deadline))

    def _secure(self, rows: BoolArray, found: FloatArray) -> Proof | None:
        """Prove a pattern; what fails is protected again, with movements that noise cannot hide."""
        for _ in range(5):
            proof = prove(self.problem, self.space.pattern(rows), (self.space, found) if len(found) else None)
            if proof.safe:
                return proof
            rows = rows.copy()
            cells = proof.space.cells[proof.space.requests[1][proof.failed]]
            failed = np.append(self.space.row[cells], self.space.row[self.problem.requests.cell[proof.space.disclosed]])
            for request in np.flatnonzero(np.isin(self.space.requests[1], failed)):
                again = self.protector.movements(int(request), np.where(rows, 0.0, self.space.weight), exact=True)
                if again is None:
                    return None
                for z in again:
                    rows |= z != 0
        return None

    def _take(self, pattern: BoolArray, hints: Movements | None = None) -> _Current | None:
        """Look at a clean pattern again: its whole space, its cost."""
        proof = prove(self.problem, pattern, hints)
        cost = self.problem.cost(pattern)
        if (cost < self.cost and not self.offer(pattern)) or not proof.safe:
            return None
        Z, bank = proof.spread([part.Z for part in proof.parts]), proof.spread(proof.banks)
        Z, bank = (self.space.translated(proof.space, movements) for movements in (Z, bank))
        current = _Current(cost=cost, Z=Z, bank=bank)
        if cost == self.cost:
            self._kept = current
        return current

    def adopt(self, rows: BoolArray) -> None:
        """Take a pattern found elsewhere, if the range engine confirms it and it is cheaper."""
        self.offer(self.space.pattern(rows | self.forced_rows))

    def follow(self, y: FloatArray, deadline: float) -> None:
        """Construct along a fractional point: the more of a row it suppresses, the less the row counts."""
        weight = self.space.weight * (1.0 - y) + 1e-6 * self.space.weight
        bank = np.zeros((0, len(self.space)))
        rows, found, failed = construct(self.protector, self.forced_rows, bank, weight=weight, deadline=deadline)
        self._remember(found)
        if not failed:
            self._finish(rows, np.array(found), deadline)

    # ------------------------------------------------------------------ improvement

    def improve(self, deadline: float, max_rounds: int | None = None) -> None:
        """Search until the deadline or for so many rounds; accept slightly dearer patterns, ever less so."""
        if self.best is None or self.cost <= 0:
            return
        kept = self._kept
        current = best = kept if kept is not None and kept.cost == self.cost else self._take(self.best)
        begin, stale = clock.now(), 0
        often = 0.99 if current is None or current.Z.size < _DENSE else 0.0
        for done in range(1 << 40 if max_rounds is None else max_rounds):
            now = clock.now()
            if now >= deadline or current is None or best is None:
                return
            self.rounds += 1
            share = done / max_rounds if max_rounds else (now - begin) / max(deadline - begin, 1e-9)
            slack = 0.01 * (1.0 - share)
            limit = current.cost * (1.0 + slack)
            cheap = often > 0 and (done < _CHEAP or self.rng.random() < often)
            got = self._recombine(current, limit) if cheap else self._ruin(current, deadline)
            stale += 1
            if got is not None and got.cost <= limit:
                if got.cost < best.cost * (1 - 1e-12):
                    rows = (got.Z != 0).any(axis=0) | self.forced_rows
                    better = self._finish(rows, got.bank, deadline)
                    best = current = better if better is not None else got
                    stale = 0
                else:
                    current = got
            if stale > _STALE:
                current, stale = self._kicked(best, deadline), 0

    def _kicked(self, best: _Current, deadline: float) -> _Current:
        """Start again from another pattern near the best one, even if it is dearer."""
        for _ in range(_KICKS):
            got = self._ruin(best, deadline)
            if got is not None and got.cost <= best.cost * _DEARER:
                return got
        return best

    def _recombine(self, current: _Current, limit: float) -> _Current | None:
        """Add a few movements from the pool and clean up in a noisy order."""
        from cellguard._core.patterns import recombine

        if not self.pool:
            return None
        rng, space = self.rng, self.space
        k = min(int(rng.integers(1, 5)), len(self.pool))
        chosen = [self.pool[i] for i in rng.choice(len(self.pool), size=k, replace=False)]
        vectors = np.vstack([current.Z, *chosen])
        noisy = space.weight * np.exp(rng.normal(0.0, rng.uniform(0.05, 0.5), len(space)))
        low, high = space.bounds
        cost, Z, bank = recombine(
            vectors, space.weight, noisy, space.keep, low, high, space.known, space.requests,
            current.bank, limit * 1.2,
        )  # fmt: skip
        return _Current(cost=cost, Z=Z, bank=bank) if np.isfinite(cost) else None

    def _ruin(self, current: _Current, deadline: float) -> _Current | None:
        """Forbid some heavy rows, publish some others, protect again with noisy costs, clean up."""
        space, rng = self.space, self.rng
        rows = (current.Z != 0).any(axis=0) | self.forced_rows
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
            self.protector, rows, bank, largest_first=bool(rng.random() < 0.5), weight=weight,
            deadline=clock.now() + 20.0,
        )  # fmt: skip
        if failed:
            return None
        self._remember(found)
        return self._finish(rows, np.array([*bank, *found]), deadline)
