"""Improvement: ruin and repair, and recombination of movements found before, until the time is up."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cellguard._engine import clock
from cellguard._engine.clock import Deadline
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.cheapest_movement import Protector
from cellguard.methods.suppress.construct import construct
from cellguard.methods.suppress.incumbent import Incumbent
from cellguard.methods.suppress.joint_movement import jointly
from cellguard.methods.suppress.pattern import Movements, PatternProof, clean, prove
from cellguard.methods.suppress.space import Space

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
_FIRST = 0.3
"""Share of the time for one step before there is a pattern."""
_CAREFUL, _ROUTES = 0.4, 0.6
"""Shares of the time for a second, cheaper first pattern of a heavy table, and for cleaning it up."""
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
    _routes: Movements | None = None
    """Movements in use, of a pattern that is too large for an echelon form."""
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
        _, witnesses = self.problem.verdicts(self.problem.forced, Deadline(clock.until(_FIRST, deadline)))
        bank = self.space.rows_of(witnesses) if len(witnesses) else np.zeros((0, len(self.space)))
        begin = clock.now()
        orders = (False, True)
        if len(self.space) > max(_MANY_ROWS, _RIGID * self.space.reduction.degrees_of_freedom):
            self._start_jointly(bank, deadline)
            orders = (True, False)  # with the largest levels first fewer programs are left
        if self.heavy:
            return self._start_by_routes(bank, deadline)
        for largest_first in orders:
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first, deadline=deadline
            )
            self._remember(found)
            if not failed:
                self.offer(self.space.pattern(rows))  # dear as it is, it is safe: cleaning it up can take long
                self._finish(rows, np.array([*bank, *found]), clock.until(_CLEAN, deadline))
            spent = clock.now() - begin
            if self.best is None or clock.now() + spent > deadline:  # the other order would take as long
                break
        return self.best is not None or self._clean_everything(deadline)

    @cached_property
    def heavy(self) -> bool:
        """Whether an echelon form of a pattern would be large and dense: then programs are sparse and quicker."""
        rigid = len(self.space) > _RIGID * self.space.reduction.degrees_of_freedom
        return not rigid and len(self.space) > _MANY_ROWS and len(self.space.requests[0]) > _MANY_REQUESTS

    def _start_by_routes(self, bank: FloatArray, deadline: float) -> bool:
        """Construct quickly, then with care, and clean up the cheaper pattern by other routes."""
        from cellguard.methods.suppress.reroute import Routes

        best: FloatArray | None = None
        for largest_first, share in ((True, 1.0), (False, _CAREFUL)):
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first,
                deadline=clock.until(share, deadline),
            )  # fmt: skip
            if not failed and self.offer(self.space.pattern(rows)):
                best = np.array([*bank, *found])
        if self.best is None or best is None:
            return self.best is not None or self._clean_everything(deadline)
        routes = Routes(self.problem, self.best, (self.space, best), Deadline(deadline))
        routes.clean(Deadline(clock.until(_ROUTES, deadline)))
        self.offer(routes.pattern)
        self._routes = routes.movements
        return True

    def _improve_by_routes(self, deadline: float, max_rounds: int | None) -> None:
        """Give the requests that a heavy row serves other routes, wherever these lead."""
        from cellguard.methods.suppress.reroute import Routes

        if self._routes is None:
            return
        routes = Routes(self.problem, self.problem.usable | self.problem.forced, self._routes, Deadline(deadline))
        self.rounds += routes.improve(self.rng, Deadline(deadline), max_rounds)
        self.offer(routes.pattern)

    def _start_jointly(self, bank: FloatArray, deadline: float) -> None:
        """Let one movement meet all requests of an attacker; what is left over is protected one by one."""
        rows, found = self.forced_rows, [*bank]
        attackers, asked = np.unique(self.space.requests[0], return_counts=True)
        if not (asked >= _MANY_REQUESTS).any():
            return
        for attacker in attackers[asked >= _MANY_REQUESTS]:
            weight = np.where(rows, 0.0, self.space.weight)
            mine = np.flatnonzero(self.space.requests[0] == attacker)
            z = jointly(self.space, mine, weight, clock.until(_FIRST, deadline))
            if z is None:
                return
            rows = rows | (z != 0)
            found.append(z)
        self._finish(rows, np.array(found), clock.until(_CLEAN, deadline))

    def _clean_everything(self, deadline: float) -> bool:
        if not self.start_from_everything() or self.best is None:
            return False
        proof = prove(self.problem, self.best, deadline=deadline)
        if proof.safe:
            self._take(*clean(proof, deadline), deadline=deadline)
        return True

    def _remember(self, found: list[FloatArray]) -> None:
        self.pool.extend(found)
        del self.pool[: max(0, len(self.pool) - _POOL)]

    def _finish(self, rows: BoolArray, found: FloatArray, deadline: float) -> _Current | None:
        """Prove and clean up the pattern of these rows, in its own space."""
        proof = self._secure(rows, found, deadline)
        if proof is None:
            return None
        return self._take(*clean(proof, deadline), deadline=self.limit.at)

    def _secure(self, rows: BoolArray, found: FloatArray, deadline: float) -> PatternProof | None:
        """Prove a pattern; what fails is protected again, with movements that noise cannot hide."""
        for _ in range(5):
            hints = (self.space, found) if len(found) else None
            proof = prove(self.problem, self.space.pattern(rows), hints, deadline)
            if proof.safe:
                return proof
            if clock.now() > deadline:
                return None
            rows = rows.copy()
            cells = proof.space.cells[proof.space.requests[1][proof.failed]]
            failed = np.append(self.space.row[cells], self.space.row[self.problem.requests.cell[proof.space.disclosed]])
            for request in np.flatnonzero(np.isin(self.space.requests[1], failed)):
                weight = np.where(rows, 0.0, self.space.weight)
                again = self.protector.movements(int(request), weight, exact=True, deadline=Deadline(deadline))
                if again is None:
                    return None
                for z in again:
                    rows |= z != 0
        return None

    def _take(
        self, pattern: BoolArray, hints: Movements | None = None, *, deadline: float = float("inf")
    ) -> _Current | None:
        """Look at a clean pattern again: its whole space, its cost."""
        proof = prove(self.problem, pattern, hints, deadline)
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
        if self.heavy:
            self._improve_by_routes(deadline, max_rounds)
            return
        kept = self._kept
        current = best = (
            kept if kept is not None and kept.cost == self.cost else self._take(self.best, deadline=deadline)
        )
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
            got = self._recombine(current, limit, deadline) if cheap else self._ruin(current, deadline)
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

    def _recombine(self, current: _Current, limit: float, deadline: float) -> _Current | None:
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
            current.bank, limit * 1.2, time_left_s=deadline - clock.now(),
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
            deadline=min(deadline, clock.now() + 20.0),
        )  # fmt: skip
        if failed:
            return None
        self._remember(found)
        return self._finish(rows, np.array([*bank, *found]), deadline)
