"""Tables of any size: each cell is protected inside its neighbourhood, again and again.

No program ever sees the whole table. A movement found in a neighbourhood holds in the table, since
the other cells stay where they are. Improvement takes the protection of some neighbouring requests
away and gives them a new one, in which cells that others need anyway cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from cellguard._core.windows import Windows
from cellguard._engine.clock import Deadline, now
from cellguard._engine.ranges.witnesses.cheapest import AskedMovement, find_cheapest_witness
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.limits import Limits
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.cheapest_movement import plan_movements
from cellguard.methods.suppress.search.incumbent import Incumbent
from cellguard.methods.suppress.search.movement_pool import Ledger, Movement
from cellguard.methods.suppress.search.pattern import clean_pattern, prove_pattern
from cellguard.methods.suppress.search.space import PatternSpace

__all__ = ["LargeSearch", "protect_in_windows"]

_WINDOWS = ((6, 1, 500), (15, 1, 3_000), (15, 2, 10_000), (60, 3, 50_000), (0, 0, 0))
"""Partners per relation, generations of them, and cells per window, tried in turn; the last is the whole table."""
_SPREAD = 0.2
_OFTEN_S = 10.0
"""So often what was found is offered while the search goes on."""
_CLEAN = 0.4
"""Share of the time that is left for the clean-up at the end, which gains most."""
MAX_CLEAN_ENTRIES = 25_000_000
"""Movements times variables up to which a pattern is cleaned up in an echelon form: they take 200 megabytes."""


@dataclass(eq=False)
class LargeSearch(Incumbent):
    """The same as :class:`Search`, for tables too large for programs over all cells."""

    first: BoolArray | None = None
    """The first pattern that the range engine confirmed."""
    judging_s: float = 0.0
    """Seconds that the range engine took to confirm it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        T = self.problem.relations
        self.columns = csc_array(T)
        C = self.columns
        self._windows = Windows(*(a.astype(np.int64) for a in (T.indptr, T.indices, C.indptr, C.indices)))
        positive = self.problem.weight[self.problem.weight > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self.ledger = Ledger(self.problem)
        self._given = self.problem.shown.copy()
        self._proof = self.ledger.movements

    # ------------------------------------------------------------------ start

    def start(self, deadline: Deadline) -> bool:
        """Protect one request after the other, and have the range engine confirm it.

        Construction may use the time that `deadline` leaves for a later audit: a late pattern is better than none.
        """
        if not self._construct():
            return not self.limit.passed and self.start_from_everything()
        self.best, self._proof = self.ledger.pattern, self.ledger.movements
        self.first = self.best
        self.cost = self.problem.compute_cost(self.best)
        self.limits.tell(self.cost, self.bound)
        if not deadline.passed:
            self._protect_again(np.arange(len(self.problem.requests)), deadline)
        return True

    def _construct(self) -> bool:
        """Protect every request, in larger windows where the range engine does not confirm it."""
        p, r = self.problem, self.problem.requests
        met = p.find_met(p.forced, self.limit)
        level = np.maximum(np.maximum(r.lower, r.upper), r.sliding / 2)
        for first in range(len(_WINDOWS)):
            for q in np.argsort(-level, kind="stable"):
                if not met[q] and (self.limit.passed or not self.protect(int(q), first)):
                    return False
            self._tell_movements()
            begin = now()
            met = p.find_met(self.ledger.pattern, self.limit.move_later(self.limits.grace_s))
            self.judging_s = now() - begin
            if met.all():
                return True
        return False

    def protect(self, request: int, first: int = 0, noise: float = 0.0) -> bool:
        """Protect a request by what is there, or by new movements. Returns whether it worked."""
        number = self.ledger.find_existing_movement(request)
        if number is not None:
            self.ledger.serve(request, (number,))
            return True
        found = self._find_movements(request, first, noise)
        if found is None:
            return False
        self.ledger.serve(request, tuple(self.ledger.add(movement) for movement in found))
        return True

    def _find_movements(self, request: int, first: int, noise: float) -> list[Movement] | None:
        """Movements that meet a request, in the smallest window that allows it."""
        r = self.problem.requests
        p = int(r.cell[request])
        for size in _WINDOWS[first:]:
            cells = self.find_window(p, self.ledger.price, *size)
            if not len(cells):
                continue
            below, above = self.ledger.get_slack(int(r.attacker[request]), cells)
            both = np.minimum(below, above)
            A = self._restrict_relations(cells)
            price = self.ledger.price[cells] / self.unit
            if noise:
                price = price * np.exp(self.rng.normal(0.0, noise, len(cells)))
            at = int(np.searchsorted(cells, p))
            levels = float(r.lower[request]), float(r.upper[request]), float(r.sliding[request])
            for plan in plan_movements(*levels, float(below[at]), float(above[at])):
                found: list[Movement] = []
                for move, symmetric in plan:
                    low, high = (-both, both) if symmetric else (-below, above)
                    asked = AskedMovement(at, move, price, low, high)
                    z = find_cheapest_witness(A, asked, exact=first > 0, deadline=self.limit)
                    if z is None:
                        break
                    used = np.flatnonzero(z)
                    found.append((cells[used], z[used]))
                else:
                    return found
        return None

    def find_window(self, p: int, price: FloatArray, width: int, depth: int, most: int) -> IntArray:
        """Cells around a cell in which it can move; none if it cannot."""
        if not most:
            return np.flatnonzero(self.problem.usable)
        return self._windows.around(p, price, self.problem.usable, width, depth, most)

    def _restrict_relations(self, cells: IntArray) -> csc_array:
        """The relations between some cells, the others held fixed."""
        block = self.columns[:, cells]
        rows, place = np.unique(block.indices, return_inverse=True)
        return csc_array((block.data, place, block.indptr), shape=(len(rows), len(cells)))

    # ------------------------------------------------------------------ improvement

    def improve(self, deadline: Deadline, max_rounds: int | None = None) -> None:
        """Protect groups of neighbouring requests again until the time is up; publish what is not needed."""
        active = np.array([q for q, by in enumerate(self.ledger.by) if by], np.int64)
        if not len(active):
            return
        deadline = deadline.move_later(-self.judging_s)  # the last pattern must be confirmed as well
        cleans = len(self.ledger) * int(self.problem.usable.sum()) <= MAX_CLEAN_ENTRIES
        stop = deadline.take_share(1.0 - _CLEAN) if cleans else deadline
        often_s = max(_OFTEN_S, 10 * self.judging_s)
        told = Deadline.from_limit(often_s)
        for done in range(1 << 40 if max_rounds is None else max_rounds):
            if stop.passed:
                break
            self.rounds = done + 1
            self._protect_again(self._group(int(self.rng.choice(active))), stop, noisy=True)
            if told.passed:
                self._offer_ledger()
                told = Deadline.from_limit(often_s)
        self._offer_ledger()
        if self.best is not None and cleans:
            moves = self.ledger.movements
            space = PatternSpace.of(self.problem, self.best)
            hints = (space, space.convert_to_rows(moves.toarray())) if moves.shape[0] else None
            proof = prove_pattern(self.problem, self.best, hints, deadline)
            if proof.safe:
                cleaned, (space, moves_left) = clean_pattern(proof, deadline)
                self.problem.shown.remember(space.lift_movements(moves_left))
                self.offer(cleaned)

    def _offer_ledger(self) -> None:
        """Offer the pattern of the movements in use; those that prove the best pattern stay known."""
        self._tell_movements()
        if self.offer(self.ledger.pattern):
            self._proof = self.ledger.movements

    def _tell_movements(self) -> None:
        """Tell the range engine which movements prove the best pattern, and which are in use."""
        self.problem.shown.replace_by(self._given)
        self.problem.shown.remember(self._proof)
        self.problem.shown.remember(self.ledger.movements)

    def _group(self, request: int) -> IntArray:
        """A request, and some that are protected by the same movements or cells."""
        cells = np.concatenate([self.ledger.get_cells(n) for n in self.ledger.by[request]] or [np.zeros(0, np.int64)])
        near = self.ledger.list_requests_on(cells)
        near = near[[bool(self.ledger.by[q]) for q in near]] if len(near) else near
        near = np.setdiff1d(near, [request])
        some = self.rng.permutation(near)[: int(self.rng.integers(0, 6))]
        return self.rng.permutation(np.append(some, request))

    def _protect_again(self, requests: IntArray, deadline: Deadline, *, noisy: bool = False) -> None:
        """Protect requests again, one after the other or, with noise, all at once; keep what does not cost more."""
        ledger = self.ledger
        groups = [requests] if noisy else [np.array([q]) for q in requests]
        for group in groups:
            if deadline.passed:
                return
            before = ledger.cost
            kept = [(int(q), ledger.release(int(q))) for q in group if ledger.by[int(q)]]
            worked = True
            for q, _ in kept:
                worked = worked and self.protect(q, noise=_SPREAD if noisy else 0.0)
            if not worked or ledger.cost > before * (1 + 1e-12):
                for q, _ in kept:
                    ledger.serve(q, ())
                for q, old in kept:
                    ledger.restore(q, old)


def protect_in_windows(problem: SuppressionProblem, deadline: Deadline) -> BoolArray | None:
    """Return a pattern in which a movement of few cells meets every request; None if there is none in time.

    The movements are added to `problem.shown`.
    """
    search = LargeSearch(problem=problem, limits=Limits(time_limit_s=deadline.left))
    for request in range(len(problem.requests)):
        if deadline.passed or not search.protect(request, first=1):
            return None
    problem.shown.remember(search.ledger.movements)
    return search.ledger.pattern
