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
from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.cheapest import AskedMovement, cheapest_witness
from cellguard._engine.ranges.shown import remember_shown
from cellguard._types import FloatArray, IntArray
from cellguard.methods.suppress.cheapest_movement import plans_of_cheapest_movement
from cellguard.methods.suppress.incumbent import Incumbent
from cellguard.methods.suppress.ledger import Ledger, Movement
from cellguard.methods.suppress.pattern import clean_pattern, prove_pattern
from cellguard.methods.suppress.space import PatternSpace

__all__ = ["LargeSearch"]

_WINDOWS = ((6, 1, 500), (15, 1, 3_000), (15, 2, 10_000), (60, 3, 50_000), (0, 0, 0))
"""Partners per relation, generations of them, and cells per window, tried in turn; the last is the whole table."""
_SPREAD = 0.2
_OFTEN_S = 10.0
"""So often what was found is offered while the search goes on."""
_CLEAN = 0.4
"""Share of the time that is left for the clean-up at the end, which gains most."""


@dataclass(eq=False)
class LargeSearch(Incumbent):
    """The same as :class:`Search`, for tables too large for programs over all cells."""

    def __post_init__(self) -> None:
        super().__post_init__()
        T = self.problem.relations
        self.columns = csc_array(T)
        C = self.columns
        self._windows = Windows(*(a.astype(np.int64) for a in (T.indptr, T.indices, C.indptr, C.indices)))
        positive = self.problem.weight[self.problem.weight > 0]
        self.unit = float(np.median(positive)) if len(positive) else 1.0
        self.ledger = Ledger(self.problem)

    # ------------------------------------------------------------------ start

    def start(self, deadline: Deadline) -> bool:
        """Protect one request after the other, and have the range engine confirm it."""
        p, r = self.problem, self.problem.requests
        met, _ = p.verdicts(p.forced, self.limit)
        level = np.maximum(np.maximum(r.lower, r.upper), r.sliding / 2)
        for first in range(len(_WINDOWS)):  # what the engine does not confirm gets a larger window
            for q in np.argsort(-level, kind="stable"):
                if not met[q] and (deadline.passed or not self._protect(int(q), first)):
                    return self.start_from_everything()
            remember_shown(self.ledger.movements)
            met, _ = p.verdicts(self.ledger.pattern, self.limit)
            if met.all():
                break
        if not met.all():
            return self.start_from_everything()
        self.best, self.cost = self.ledger.pattern, p.cost(self.ledger.pattern)
        self.limits.tell(self.cost, self.bound)
        if not deadline.passed:
            self._again(np.arange(len(r)), deadline)
        return True

    def _protect(self, request: int, first: int = 0, noise: float = 0.0) -> bool:
        """Protect a request by what is there, or by new movements. Returns whether it worked."""
        number = self.ledger.already(request)
        if number is not None:
            self.ledger.serve(request, (number,))
            return True
        found = self._movements(request, first, noise)
        if found is None:
            return False
        self.ledger.serve(request, tuple(self.ledger.add(movement) for movement in found))
        return True

    def _movements(self, request: int, first: int, noise: float) -> list[Movement] | None:
        """Movements that meet a request, in the smallest window that allows it."""
        r = self.problem.requests
        p = int(r.cell[request])
        for size in _WINDOWS[first:]:
            cells = self.window(p, self.ledger.price, *size)
            if not len(cells):
                continue
            below, above = self.ledger.room(int(r.attacker[request]), cells)
            both = np.minimum(below, above)
            A = self._relations(cells)
            price = self.ledger.price[cells] / self.unit
            if noise:
                price = price * np.exp(self.rng.normal(0.0, noise, len(cells)))
            at = int(np.searchsorted(cells, p))
            levels = float(r.lower[request]), float(r.upper[request]), float(r.sliding[request])
            for plan in plans_of_cheapest_movement(*levels, float(below[at]), float(above[at])):
                found: list[Movement] = []
                for move, symmetric in plan:
                    low, high = (-both, both) if symmetric else (-below, above)
                    asked = AskedMovement(at, move, price, low, high)
                    z = cheapest_witness(A, asked, exact=first > 0, deadline=self.limit)
                    if z is None:
                        break
                    used = np.flatnonzero(z)
                    found.append((cells[used], z[used]))
                else:
                    return found
        return None

    def window(self, p: int, price: FloatArray, width: int, depth: int, most: int) -> IntArray:
        """Cells around a cell in which it can move; none if it cannot."""
        if not most:
            return np.flatnonzero(self.problem.usable)
        return self._windows.around(p, price, self.problem.usable, width, depth, most)

    def _relations(self, cells: IntArray) -> csc_array:
        """The relations between some cells, the others held fast."""
        block = self.columns[:, cells]
        rows, place = np.unique(block.indices, return_inverse=True)
        return csc_array((block.data, place, block.indptr), shape=(len(rows), len(cells)))

    # ------------------------------------------------------------------ improvement

    def improve(self, deadline: Deadline, max_rounds: int | None = None) -> None:
        """Protect groups of neighbouring requests anew until the time is up; publish what is not needed."""
        active = np.array([q for q, by in enumerate(self.ledger.by) if by], np.int64)
        if not len(active):
            return
        stop, told = deadline.part(1.0 - _CLEAN), Deadline.after(_OFTEN_S)
        for done in range(1 << 40 if max_rounds is None else max_rounds):
            if stop.passed:
                break
            self.rounds = done + 1
            self._again(self._group(int(self.rng.choice(active))), stop, noisy=True)
            if told.passed:
                remember_shown(self.ledger.movements)
                self.offer(self.ledger.pattern)
                told = Deadline.after(_OFTEN_S)
        remember_shown(self.ledger.movements)
        self.offer(self.ledger.pattern)
        if self.best is not None:
            moves = self.ledger.movements
            space = PatternSpace.of(self.problem, self.best)
            hints = (space, space.rows_of(moves.toarray())) if moves.shape[0] else None
            proof = prove_pattern(self.problem, self.best, hints, deadline)
            if proof.safe:
                self.offer(clean_pattern(proof, deadline)[0])

    def _group(self, request: int) -> IntArray:
        """A request, and some that are protected by the same movements or cells."""
        cells = np.concatenate([self.ledger.cells_of(n) for n in self.ledger.by[request]] or [np.zeros(0, np.int64)])
        near = self.ledger.asked_on(cells)
        near = near[[bool(self.ledger.by[q]) for q in near]] if len(near) else near
        near = np.setdiff1d(near, [request])
        some = self.rng.permutation(near)[: int(self.rng.integers(0, 6))]
        return self.rng.permutation(np.append(some, request))

    def _again(self, requests: IntArray, deadline: Deadline, *, noisy: bool = False) -> None:
        """Protect requests anew, one after the other or, with noise, all at once; keep what is not dearer."""
        ledger = self.ledger
        groups = [requests] if noisy else [np.array([q]) for q in requests]
        for group in groups:
            if deadline.passed:
                return
            before = ledger.cost
            kept = [(int(q), ledger.release(int(q))) for q in group if ledger.by[int(q)]]
            worked = True
            for q, _ in kept:
                worked = worked and self._protect(q, noise=_SPREAD if noisy else 0.0)
            if not worked or ledger.cost > before * (1 + 1e-12):
                for q, _ in kept:
                    ledger.serve(q, ())
                for q, old in kept:
                    ledger.restore(q, old)
