"""A safe pattern for tables of some thousand cells: constructed, cleaned up, and handed to what improves it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import NEVER, Deadline, now
from cellguard._engine.ranges.shown import remember_shown
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.cheapest_movement import Protector
from cellguard.methods.suppress.construct import construct
from cellguard.methods.suppress.incumbent import Incumbent
from cellguard.methods.suppress.joint_movement import joint_movement_of_pattern
from cellguard.methods.suppress.pattern import Movements, PatternProof, clean_pattern, prove_pattern
from cellguard.methods.suppress.space import PatternSpace
from cellguard.methods.suppress.walks import POOL, Current, improve_side_by_side

if TYPE_CHECKING:
    from cellguard.methods.suppress.reroute import Routes

__all__ = ["Search"]


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


@dataclass(eq=False)
class Search(Incumbent):
    """Find a safe pattern and better ones, with programs over the whole table."""

    once: bool = False
    """Whether one construction is enough to begin with: a proof follows, which constructs again along its point."""
    pool: list[FloatArray] = field(default_factory=list)
    """Movements found before, for recombination."""
    _routes: Movements | None = None
    """Movements in use, of a pattern that is too large for an echelon form."""
    _kept: Current | None = None
    """Movements of the best pattern, if its cost is theirs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.space = PatternSpace.of(self.problem, self.problem.usable)
        self.protector = Protector(self.space)
        self.forced_rows = np.zeros(len(self.space), bool)
        rows = self.space.row[self.problem.forced]
        self.forced_rows[rows[rows >= 0]] = True

    # ------------------------------------------------------------------ start

    def start(self, deadline: Deadline) -> bool:
        """Construct in several ways and clean up. Returns whether there is a safe pattern."""
        self.unmet = self.space.disclosed.tolist()
        if self.unmet:
            return False
        _, witnesses = self.problem.verdicts(self.problem.forced, deadline.part(_FIRST))
        bank = self.space.rows_of(witnesses) if len(witnesses) else np.zeros((0, len(self.space)))
        begin = now()
        orders = (False, True)
        if len(self.space) > max(_MANY_ROWS, _RIGID * self.space.reduction.degrees_of_freedom):
            self._start_jointly(bank, deadline)
            orders = (True, False)  # with the largest levels first fewer programs are left
        if self.heavy:
            return self._start_by_routes(bank, deadline)
        for largest_first in orders[:1] if self.once else orders:
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first, deadline=deadline
            )
            self.remember(found)
            if not failed:
                self.offer(self.space.pattern(rows))  # dear as it is, it is safe: cleaning it up can take long
                self.finish(rows, np.array([*bank, *found]), deadline.part(_CLEAN))
            if self.best is None or now() - begin > deadline.left:  # the other order would take as long
                break
        return self.best is not None or self._clean_everything(deadline)

    @cached_property
    def heavy(self) -> bool:
        """Whether an echelon form of a pattern would be large and dense: then programs are sparse and quicker."""
        rigid = len(self.space) > _RIGID * self.space.reduction.degrees_of_freedom
        return not rigid and len(self.space) > _MANY_ROWS and len(self.space.requests[0]) > _MANY_REQUESTS

    def _start_by_routes(self, bank: FloatArray, deadline: Deadline) -> bool:
        """Construct quickly, then with care, and clean up the cheaper pattern by other routes."""
        from cellguard.methods.suppress.reroute import Routes

        best: FloatArray | None = None
        took = 0.0
        for largest_first, share in ((True, 1.0), (False, _CAREFUL)):
            begin = now()
            if took > deadline.part(share).left:  # the other order would not come to an end
                break
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first,
                deadline=deadline.part(share),
            )  # fmt: skip
            took = now() - begin
            remember_shown(self.space.lifted(np.array([*bank, *found])))
            if not failed and self.offer(self.space.pattern(rows)):
                best = np.array([*bank, *found])
        if self.best is None or best is None:
            return self.best is not None or self._clean_everything(deadline)
        routes = Routes(self.problem, self.best, (self.space, best), deadline)
        routes.clean(deadline.part(_ROUTES))
        self._offer_routes(routes)
        self._routes = routes.movements
        return True

    def _improve_by_routes(self, deadline: Deadline, max_rounds: int | None) -> None:
        """Give the requests that a heavy row serves other routes, wherever these lead."""
        from cellguard.methods.suppress.reroute import Routes

        if self._routes is None:
            return
        routes = Routes(self.problem, self.problem.usable | self.problem.forced, self._routes, deadline)
        self.rounds += routes.improve(self.rng, deadline, max_rounds)
        self._offer_routes(routes)

    def _offer_routes(self, routes: Routes) -> None:
        """Offer a pattern, and tell the range engine of the movements that prove it."""
        space, moves = routes.movements
        remember_shown(space.lifted(moves))
        self.offer(routes.pattern)

    def _start_jointly(self, bank: FloatArray, deadline: Deadline) -> None:
        """Let one movement meet all requests of an attacker; what is left over is protected one by one."""
        rows, found = self.forced_rows, [*bank]
        attackers, asked = np.unique(self.space.requests[0], return_counts=True)
        if not (asked >= _MANY_REQUESTS).any():
            return
        for attacker in attackers[asked >= _MANY_REQUESTS]:
            weight = np.where(rows, 0.0, self.space.weight)
            mine = np.flatnonzero(self.space.requests[0] == attacker)
            z = joint_movement_of_pattern(self.space, mine, weight, deadline.part(_FIRST))
            if z is None:
                return
            rows = rows | (z != 0)
            found.append(z)
        self.finish(rows, np.array(found), deadline.part(_CLEAN))

    def _clean_everything(self, deadline: Deadline) -> bool:
        if not self.start_from_everything() or self.best is None:
            return False
        proof = prove_pattern(self.problem, self.best, deadline=deadline)
        if proof.safe:
            self._take(*clean_pattern(proof, deadline), deadline=deadline)
        return True

    def remember(self, found: list[FloatArray]) -> None:
        """Keep movements for recombination, the oldest are forgotten; the range engine is told of them, too."""
        if found:
            remember_shown(self.space.lifted(np.array(found)))
        self.pool.extend(found)
        del self.pool[: max(0, len(self.pool) - POOL)]

    def finish(self, rows: BoolArray, found: FloatArray, deadline: Deadline) -> Current | None:
        """Prove and clean up the pattern of these rows, in its own space."""
        proof = self._secure(rows, found, deadline)
        if proof is None:
            return None
        return self._take(*clean_pattern(proof, deadline), deadline=self.limit)

    def _secure(self, rows: BoolArray, found: FloatArray, deadline: Deadline) -> PatternProof | None:
        """Prove a pattern; what fails is protected again, with movements that noise cannot hide."""
        for _ in range(5):
            hints = (self.space, found) if len(found) else None
            proof = prove_pattern(self.problem, self.space.pattern(rows), hints, deadline)
            if proof.safe:
                return proof
            if deadline.passed:
                return None
            rows = rows.copy()
            cells = proof.space.cells[proof.space.requests[1][proof.failed]]
            failed = np.append(self.space.row[cells], self.space.row[self.problem.requests.cell[proof.space.disclosed]])
            for request in np.flatnonzero(np.isin(self.space.requests[1], failed)):
                weight = np.where(rows, 0.0, self.space.weight)
                again = self.protector.movements(int(request), weight, exact=True, deadline=deadline)
                if again is None:
                    return None
                for z in again:
                    rows |= z != 0
        return None

    def _take(
        self, pattern: BoolArray, hints: Movements | None = None, *, deadline: Deadline = NEVER
    ) -> Current | None:
        """Look at a clean pattern again: its whole space, its cost."""
        if hints is not None:
            remember_shown(hints[0].lifted(hints[1]))
        proof = prove_pattern(self.problem, pattern, hints, deadline)
        cost = self.problem.cost(pattern)
        if (cost < self.cost and not self.offer(pattern)) or not proof.safe:
            return None
        Z, bank = proof.spread([part.Z for part in proof.parts]), proof.spread(proof.banks)
        Z, bank = (self.space.translated(proof.space, movements) for movements in (Z, bank))
        current = Current(cost=cost, Z=Z, bank=bank)
        if cost == self.cost:
            self._kept = current
        return current

    def adopt(self, rows: BoolArray) -> None:
        """Take a pattern found elsewhere, if the range engine confirms it and it is cheaper."""
        self.offer(self.space.pattern(rows | self.forced_rows))

    def follow(self, y: FloatArray, deadline: Deadline) -> None:
        """Construct along a fractional point: the more of a row it suppresses, the less the row counts."""
        weight = self.space.weight * (1.0 - y) + 1e-6 * self.space.weight
        bank = np.zeros((0, len(self.space)))
        rows, found, failed = construct(self.protector, self.forced_rows, bank, weight=weight, deadline=deadline)
        self.remember(found)
        if not failed:
            self.finish(rows, np.array(found), deadline)

    # ------------------------------------------------------------------ improvement

    def improve(self, deadline: Deadline, max_rounds: int | None = None) -> None:
        """Search until the deadline or for so many rounds."""
        if self.best is None or self.cost <= 0:
            return
        if self.heavy:
            self._improve_by_routes(deadline, max_rounds)
            return
        kept = self._kept
        if kept is None or kept.cost != self.cost:
            kept = self._take(self.best, deadline=deadline)
        if kept is not None:
            improve_side_by_side(self, kept, deadline, max_rounds)

    def forked(self, rng: np.random.Generator) -> Search:
        """Return a search that goes on from here on its own, with programs of its own."""
        other = copy(self)
        other.rng, other.pool, other.protector = rng, list(self.pool), Protector(self.space)
        other.limits, other.rounds = replace(self.limits, progress=None), 0
        return other

    def take_over(self, other: Search) -> None:
        """Go on from what another search has found and confirmed."""
        self.pool = list(other.pool)
        if other.best is None or other.cost >= self.cost:
            return
        self.best, self.cost, self._kept = other.best, other.cost, other._kept
        self.limits.tell(self.cost, self.bound)
