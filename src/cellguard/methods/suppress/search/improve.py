"""A safe pattern for tables of some thousand cells: constructed, cleaned up, and handed to what improves it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline, now
from cellguard._engine.ranges.witnesses.shown import select_valid_movements
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.search.cheapest_movement import Protector
from cellguard.methods.suppress.search.construct import construct
from cellguard.methods.suppress.search.incumbent import Incumbent
from cellguard.methods.suppress.search.joint_movement import find_pattern_movement
from cellguard.methods.suppress.search.pattern import Movements, PatternProof, clean_pattern, prove_pattern
from cellguard.methods.suppress.search.space import PatternSpace
from cellguard.methods.suppress.search.walks import WALK_POLICY, Current, improve_side_by_side

if TYPE_CHECKING:
    from cellguard.methods.suppress.search.reroute import Routes

__all__ = ["Search"]


@dataclass(frozen=True, kw_only=True)
class SearchPolicy:
    """How the search for a pattern is started and divided.

    `max_echelon_work` lies between two tables of CSPLIB (``bench/bench_suppress.py``): table3 (1.0 thousand million; a
    clean pattern after 20 CPU seconds) and cbs (20 thousand million).
    """

    many_rows: int = 1800
    """From this many rows on, one movement for all requests comes first: single programs take long and may stall."""
    many_requests: int = 20
    """An attacker with at least this many requests gets such a movement."""
    rigid_rows: int = 3
    """Rows per degree of freedom from which on that is so: where rows are freer, a request needs only a few of them."""
    max_echelon_work: int = 2_000_000_000
    """Rows times degrees of freedom times requests up to which patterns are cleaned in an echelon form."""
    first_share: float = 0.3
    """Share of the time for one step before there is a pattern."""
    careful_share: float = 0.4
    """Share of the time for a second, cheaper first pattern of a heavy table."""
    routes_share: float = 0.6
    """Share of the time for cleaning up that pattern."""
    max_known_movements: int = 2_000
    """Known movements from which the search continues."""
    clean_share: float = 0.5
    """Share of the time for cleaning up a first pattern; confirming it takes time as well."""


SEARCH_POLICY = SearchPolicy()


@dataclass(eq=False)
class Search(Incumbent):
    """Find a safe pattern and better ones, with programs over the whole table."""

    once: bool = False
    """Whether one construction is enough to begin with: a proof follows, which constructs again along its point."""
    followed: bool = False
    """Whether the search begins with a pattern that was constructed along a fractional point already."""
    pool: list[FloatArray] = field(default_factory=list)
    """Movements found before, for recombination."""
    _routes: Movements | None = None
    """Movements in use, of a pattern that is too large for an echelon form."""
    _kept: Current | None = None
    """Movements of the best pattern, if its cost is theirs."""
    _uncleaned: tuple[BoolArray, FloatArray] | None = None
    """The pattern that the search began with and movements of it, until it is cleaned up."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.space = PatternSpace.of(self.problem, self.problem.usable)
        self.protector = Protector(self.space)
        self.forced_rows = np.zeros(len(self.space), bool)
        rows = self.space.row[self.problem.forced]
        self.forced_rows[rows[rows >= 0]] = True

    # ------------------------------------------------------------------ start

    def start_from(self, pattern: BoolArray | None) -> bool:
        """Take a known pattern of a heavy table, to be cleaned up before it is improved. Returns whether it is safe."""
        if pattern is None or not self.heavy or len(self.space.disclosed) or not self.offer(pattern):
            return False
        open_ = np.zeros(len(self.space), bool)
        rows = self.space.row[pattern]
        open_[rows[rows >= 0]] = True
        known = self.problem.shown.select_cells(len(pattern), self.space.cells)
        found = np.zeros((0, len(self.space)))
        if known is not None:
            inside = np.asarray(abs(known) @ (~open_).astype(np.float64)).ravel() == 0
            latest = known[np.flatnonzero(inside & (np.diff(known.indptr) > 0))[: SEARCH_POLICY.max_known_movements]]
            found = select_valid_movements(csr_array(latest), self.space.variables.relations).toarray()
        self._uncleaned = pattern, found
        return True

    def _clean_start(self, deadline: Deadline) -> None:
        """Clean up the pattern that the search began with, unless it has found a cheaper one."""
        if self._uncleaned is None:
            return
        pattern, found = self._uncleaned
        self._uncleaned = None
        if self.problem.compute_cost(pattern) <= self.cost:
            self._clean_by_routes(pattern, found, deadline)

    def find_first(self, deadline: Deadline) -> bool:
        """Construct once, and clean up only what takes little time. Returns whether there is a safe pattern."""
        if not (self.heavy or self._many_free_rows):
            return self.start(deadline)
        self.unmet = self.space.disclosed.tolist()
        if self.unmet:
            return False
        bank = np.zeros((0, len(self.space)))
        rows, found, failed = construct(self.protector, self.forced_rows, bank, largest_first=True, deadline=deadline)
        self.remember(found)
        if failed:
            return False
        self.best = self.space.build_pattern(rows)
        self.cost = self.problem.compute_cost(self.best)
        return True

    def start(self, deadline: Deadline) -> bool:
        """Construct in several ways and clean up. Returns whether there is a safe pattern."""
        self.unmet = self.space.disclosed.tolist()
        if self.unmet:
            return False
        _, witnesses = self.problem.check_requests(self.problem.forced, deadline.take_share(SEARCH_POLICY.first_share))
        bank = self.space.convert_to_rows(witnesses) if len(witnesses) else np.zeros((0, len(self.space)))
        begin = now()
        orders: tuple[bool, ...] = (False, True)
        if len(self.space) > max(
            SEARCH_POLICY.many_rows, SEARCH_POLICY.rigid_rows * self.space.reduction.degrees_of_freedom
        ):
            self._start_jointly(bank, deadline)
            orders = (True, False)  # with the largest levels first fewer programs are left
        if self.heavy:
            return self._start_by_routes(bank, deadline)
        if self._many_free_rows:
            orders = (True,)  # one construction with few programs: the time is better spent on the bound
        for largest_first in orders[:1] if self.once else orders:
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first, deadline=deadline
            )
            self.remember(found)
            if not failed:
                self.offer(self.space.build_pattern(rows))  # expensive but safe: cleaning it up can take long
                self.finish(rows, np.array([*bank, *found]), deadline.take_share(SEARCH_POLICY.clean_share))
            if self.best is None or now() - begin > deadline.left:  # the other order would take as long
                break
        return self.best is not None or self._clean_everything(deadline)

    @cached_property
    def _many_free_rows(self) -> bool:
        """Whether there are many rows and requests, and the rows move freely."""
        rigid = len(self.space) > SEARCH_POLICY.rigid_rows * self.space.reduction.degrees_of_freedom
        return (
            not rigid
            and len(self.space) > SEARCH_POLICY.many_rows
            and len(self.space.requests[0]) > SEARCH_POLICY.many_requests
        )

    @cached_property
    def heavy(self) -> bool:
        """Whether an echelon form of a pattern would be large and dense: then programs are sparse and quicker."""
        work = len(self.space) * self.space.reduction.degrees_of_freedom * len(self.space.requests[0])
        return self._many_free_rows and work > SEARCH_POLICY.max_echelon_work

    def _start_by_routes(self, bank: FloatArray, deadline: Deadline) -> bool:
        """Construct quickly, then with care, and clean up the cheaper pattern by other routes."""
        best: FloatArray | None = None
        took = 0.0
        for largest_first, share in ((True, 1.0), (False, SEARCH_POLICY.careful_share)):
            begin = now()
            if took > deadline.take_share(share).left:  # the other order would not come to an end
                break
            rows, found, failed = construct(
                self.protector, self.forced_rows, bank, largest_first=largest_first,
                deadline=deadline.take_share(share),
            )  # fmt: skip
            took = now() - begin
            self.problem.shown.remember(self.space.lift_movements(np.array([*bank, *found])))
            if not failed and self.offer(self.space.build_pattern(rows)):
                best = np.array([*bank, *found])
        if self.best is None or best is None:
            return self.best is not None or self._clean_everything(deadline)
        self._clean_by_routes(self.best, best, deadline)
        return True

    def _clean_by_routes(self, pattern: BoolArray, found: FloatArray, deadline: Deadline) -> None:
        """Publish what a pattern can spare; go on from the movements in use if nothing cheaper is known."""
        from cellguard.methods.suppress.search.reroute import Routes

        routes = Routes(self.problem, pattern, (self.space, found), deadline)
        routes.clean(deadline.take_share(SEARCH_POLICY.routes_share))
        self._offer_routes(routes)
        if self._routes is None or self.problem.compute_cost(routes.pattern) <= self.cost:
            self._routes = routes.movements

    def _improve_by_routes(self, deadline: Deadline, max_rounds: int | None) -> None:
        """Give the requests that a heavy row serves other routes, wherever these lead."""
        from cellguard.methods.suppress.search.reroute import Routes

        if self._routes is None:
            return
        routes = Routes(self.problem, self.problem.usable | self.problem.forced, self._routes, deadline)
        self.rounds += routes.improve(self.rng, deadline, max_rounds)
        self._offer_routes(routes)
        if routes.complete:
            self._routes = routes.movements

    def _offer_routes(self, routes: Routes) -> None:
        """Offer a pattern, and tell the range engine of the movements that prove it."""
        space, moves = routes.movements
        self.problem.shown.remember(space.lift_movements(moves))
        self.offer(routes.pattern)

    def _start_jointly(self, bank: FloatArray, deadline: Deadline) -> None:
        """Let one movement meet all requests of an attacker; what is left over is protected one by one."""
        rows, found = self.forced_rows, [*bank]
        attackers, asked = np.unique(self.space.requests[0], return_counts=True)
        if not (asked >= SEARCH_POLICY.many_requests).any():
            return
        for attacker in attackers[asked >= SEARCH_POLICY.many_requests]:
            weight = np.where(rows, 0.0, self.space.weight)
            mine = np.flatnonzero(self.space.requests[0] == attacker)
            z = find_pattern_movement(self.space, mine, weight, deadline.take_share(SEARCH_POLICY.first_share))
            if z is None:
                return
            rows = rows | (z != 0)
            found.append(z)
        self.finish(rows, np.array(found), deadline.take_share(SEARCH_POLICY.clean_share))

    def _clean_everything(self, deadline: Deadline) -> bool:
        if not self.start_from_everything() or self.best is None:
            return False
        proof = prove_pattern(self.problem, self.best, deadline=deadline)
        if proof.safe:
            self._take(*clean_pattern(proof, deadline), deadline=deadline)
        return True

    def remember(self, found: list[FloatArray]) -> None:
        """Keep movements for recombination, forgetting the oldest; pass them to the range engine, too."""
        if found:
            self.problem.shown.remember(self.space.lift_movements(np.array(found)))
        self.pool.extend(found)
        del self.pool[: max(0, len(self.pool) - WALK_POLICY.pool_size)]

    def finish(self, rows: BoolArray, found: FloatArray, deadline: Deadline) -> Current | None:
        """Prove and clean up the pattern of these rows, in its own space."""
        proof = self._prove_or_repair(rows, found, deadline)
        if proof is None:
            return None
        return self._take(*clean_pattern(proof, deadline), deadline=self.limit)

    def _prove_or_repair(self, rows: BoolArray, found: FloatArray, deadline: Deadline) -> PatternProof | None:
        """Prove a pattern; what fails is protected again, with movements that noise cannot hide."""
        for _ in range(5):
            hints = (self.space, found) if len(found) else None
            proof = prove_pattern(self.problem, self.space.build_pattern(rows), hints, deadline)
            if proof.safe:
                return proof
            if deadline.passed:
                return None
            rows = rows.copy()
            cells = proof.space.cells[proof.space.requests[1][proof.failed]]
            failed = np.append(self.space.row[cells], self.space.row[self.problem.requests.cell[proof.space.disclosed]])
            for request in np.flatnonzero(np.isin(self.space.requests[1], failed)):
                weight = np.where(rows, 0.0, self.space.weight)
                again = self.protector.find_movements(int(request), weight, exact=True, deadline=deadline)
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
            self.problem.shown.remember(hints[0].lift_movements(hints[1]))
        proof = prove_pattern(self.problem, pattern, hints, deadline)
        cost = self.problem.compute_cost(pattern)
        if (cost < self.cost and not self.offer(pattern)) or not proof.safe:
            return None
        Z, bank = proof.spread([part.Z for part in proof.parts]), proof.spread(proof.banks)
        Z, bank = (self.space.translate_movements(proof.space, movements) for movements in (Z, bank))
        current = Current(cost=cost, Z=Z, bank=bank)
        if cost == self.cost:
            self._kept = current
        return current

    def adopt(self, rows: BoolArray) -> None:
        """Take a pattern found elsewhere, if the range engine confirms it and it is cheaper."""
        self.offer(self.space.build_pattern(rows | self.forced_rows))

    def follow(self, y: FloatArray, deadline: Deadline) -> None:
        """Construct along a fractional point: the more of a row it suppresses, the less the row counts."""
        weight = self.space.weight * (1.0 - y) + 1e-6 * self.space.weight
        bank = np.zeros((0, len(self.space)))
        rows, found, failed = construct(self.protector, self.forced_rows, bank, weight=weight, deadline=deadline)
        self.remember(found)
        if failed:
            return
        if self.heavy:
            self._clean_by_routes(self.space.build_pattern(rows), np.array(found), deadline)
        else:
            self.finish(rows, np.array(found), deadline)

    # ------------------------------------------------------------------ improvement

    def improve(self, deadline: Deadline, max_rounds: int | None = None) -> None:
        """Search until the deadline or for at most `max_rounds` rounds."""
        if self.best is None or self.cost <= 0:
            return
        if self.heavy:
            self._clean_start(deadline)
            self._improve_by_routes(deadline, max_rounds)
            return
        kept = self._kept
        if kept is None or kept.cost != self.cost:
            kept = self._take(self.best, deadline=deadline)
        if kept is not None:
            improve_side_by_side(self, kept, deadline, max_rounds)

    def copy_with(self, rng: np.random.Generator) -> Search:
        """Return a search that goes on from here on its own, with programs of its own."""
        other = copy(self)
        other.problem = replace(self.problem, shown=self.problem.shown.copy())  # threads share no memory
        other.rng, other.pool, other.protector = rng, list(self.pool), Protector(self.space)
        other.limits, other.rounds = replace(self.limits, progress=None), 0
        return other

    def take_over(self, other: Search) -> None:
        """Go on from what another search has found and confirmed."""
        self.pool = list(other.pool)
        if other.best is None or other.cost >= self.cost:
            return
        self.best, self.cost, self._kept = other.best, other.cost, other._kept
        self.problem.shown.replace_by(other.problem.shown)
        self.limits.tell(self.cost, self.bound)
