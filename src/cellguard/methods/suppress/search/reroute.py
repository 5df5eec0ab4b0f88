"""Cleaning up a large pattern: rows are published one after the other, and what they served is protected another way.

Every request is served by a movement or two. To publish a row, the requests that its movements serve are given
others: ones that are there already, or the cheapest new one among the rows that are still open, in which rows that
are sure to stay cost next to nothing. A row without which a request cannot be met stays for good. What no movement
in use moves is published as well. Programs over the open rows are sparse and small where the echelon form
of :mod:`pattern` would be dense and large, and what attackers know besides is only bounds.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.witnesses.cheapest import AskedMovement, find_cheapest_witness, split_witness_program
from cellguard._tolerances import MET_BY_PROGRAM
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.cheapest_movement import Protector, plan_movements
from cellguard.methods.suppress.search.pattern import Movements
from cellguard.methods.suppress.search.space import PatternSpace

__all__ = ["Routes"]

_NEARBY = 400
"""Rows among which another route is looked for, besides those in use: what takes more is given up."""
_USED = 0.1
"""Share of its cost that a row has which another request uses: it may still be published."""


class Routes:
    """The movements of a pattern that are in use, and which requests each of them serves.

    Parameters
    ----------
    problem
        What is asked.
    pattern
        Cells that are suppressed.
    found
        Movements of the pattern or of a larger one, which together meet what is asked.
    deadline
        When to stop protecting what they do not meet.
    """

    def __init__(self, problem: SuppressionProblem, pattern: BoolArray, found: Movements, deadline: Deadline) -> None:
        self.space = PatternSpace.of(problem, pattern)
        self.protector = Protector(self.space)
        self.weight = self.space.weight
        _, self.row, self.down, self.up, self.slide = self.space.requests
        self.closed = np.zeros(len(self.space), bool)
        self._columns = csc_array(self.space.variables.relations)
        # where relations and rows meet: flags over these are quicker than selections of a sparse matrix
        self._meets_row = np.repeat(np.arange(len(self.space)), np.diff(self._columns.indptr))
        self._meets_relation = self._columns.indices.astype(np.int64)
        self.stays = self.space.keep.copy()
        moves = self.space.translate_movements(*found)
        moves = moves[(moves != 0).any(axis=1)]
        self._moves = np.zeros((len(moves) + 64, len(self.space)))
        self._touches = np.zeros(self._moves.shape, bool)
        self._reach = np.zeros((2, len(self._moves), len(self.row)))
        self._n = 0
        for z in moves:
            self._add(z)
        self.served = np.full((2, len(self.row)), -1, np.int64)
        self._before = self.served
        self.trouble = np.zeros(len(self.row))
        everything = np.arange(len(self.row))
        unmet = self._assign(everything, np.ones(self._n, bool))
        self.complete = not len(self.space.disclosed) and self._protect(unmet, -1, deadline)

    # ------------------------------------------------------------------ movements

    def _add(self, z: FloatArray) -> None:
        """Take a movement in, and note how far it takes every request."""
        from cellguard._core.patterns import count

        if self._n == len(self._moves):
            self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)])
            self._touches = np.concatenate([self._touches, np.zeros_like(self._touches)])
            self._reach = np.concatenate([self._reach, np.zeros_like(self._reach)], axis=1)
        low, high = self.space.bounds
        self._moves[self._n] = z
        self._touches[self._n] = z != 0
        count(z, low, high, self.space.known, self.space.requests, *self._reach[:, self._n])
        self._n += 1

    def _has_levels(self, down: FloatArray, up: FloatArray, some: IntArray) -> BoolArray:
        enough = (down >= self.down[some] * MET_BY_PROGRAM) & (up >= self.up[some] * MET_BY_PROGRAM)
        return np.asarray(enough & (down + up >= self.slide[some] * MET_BY_PROGRAM))

    def _assign(self, some: IntArray, allowed: BoolArray) -> IntArray:
        """Serve requests by movements that are there; return those that these do not meet."""
        numbers = np.flatnonzero(allowed)
        if not len(some) or not len(numbers):
            return some
        down, up = (reach[np.ix_(numbers, some)] for reach in self._reach[:, : self._n])
        alone = self._has_levels(down, up, some)
        single = alone.any(axis=0)
        best = np.where(single, alone.argmax(axis=0), -1)
        by = np.stack([np.where(single, best, down.argmax(axis=0)), np.where(single, best, up.argmax(axis=0))])
        at = np.arange(len(some))
        met = self._has_levels(down[by[0], at], up[by[1], at], some)
        self.served[:, some[met]] = numbers[by][:, met]
        return some[~met]

    def _list_rows_in_use(self) -> BoolArray:
        used = np.zeros(self._n, bool)
        used[self.served[self.served >= 0]] = True
        return used

    def _protect(self, requests: IntArray, without: int, deadline: Deadline) -> bool:
        """Find new movements for the requests while one row stays fixed; return whether all were found."""
        for q in requests[np.argsort(-self.trouble[requests], kind="stable")].tolist():
            if (self.served[:, q] >= 0).all():  # one that was found for another serves it too
                continue
            if deadline.passed:
                return False
            found = self._route_nearby(q, without, deadline)
            if found is None:
                self.trouble[q] += 1.0
                return False
            if not self._serve(q, found, requests):
                return False
        return True

    def _serve(self, q: int, found: list[FloatArray], others: IntArray) -> bool:
        """Let new movements serve the request for which they were made, and whichever others they meet."""
        first = self._n
        for z in found:
            self._add(z)
        left = others[(self.served[:, others] < 0).any(axis=0)]
        return q not in self._assign(left, np.arange(self._n) >= first)

    def _route_nearby(self, q: int, without: int, deadline: Deadline) -> list[FloatArray] | None:
        """Movements for a request among the open rows near it, what it uses now, and what it shall not use."""
        if without < 0:
            return self.protector.find_movements(q, self._compute_price(), closed=self.closed, deadline=deadline)
        closed = self.closed | (np.arange(len(self.space)) == without)
        start = np.asarray(self._touches[self._before[:, q]].any(axis=0))
        start[self.row[q]] = True
        start |= self._list_neighbours(np.arange(len(self.space)) == without)
        rows = np.flatnonzero(self._expand_neighbourhood(start & ~closed, closed))
        return self._route_by_program(q, rows, deadline)

    def _route_by_program(self, q: int, rows: IntArray, deadline: Deadline) -> list[FloatArray] | None:
        """Movements for a request among some rows, by a program over these."""
        A = self._columns[:, rows]
        relations, place = np.unique(A.indices, return_inverse=True)
        A = csc_array((A.data, place, A.indptr), shape=(len(relations), len(rows)))
        attacker, _, down, up, slide = (a[q] for a in self.space.requests)
        low, high = (bound[rows] for bound in self.space.get_bounds(int(attacker)))
        price, at = self._compute_price()[rows] / self.protector.unit, int(np.searchsorted(rows, self.row[q]))
        slack, program = np.minimum(-low, high), split_witness_program(A)
        for plan in plan_movements(float(down), float(up), float(slide), float(-low[at]), float(high[at])):
            found = []
            for move, both in plan:
                asked = AskedMovement(at, move, price, *((-slack, slack) if both else (low, high)))
                v = find_cheapest_witness(A, asked, program=program, deadline=deadline)
                if v is None:
                    break
                z = np.zeros(len(self.space))
                z[rows] = v
                found.append(z)
            else:
                return found
        return None

    def _list_neighbours(self, rows: BoolArray) -> BoolArray:
        """Rows that share a relation with one of these, and these."""
        relations = np.zeros(self._columns.shape[0], bool)
        relations[self._meets_relation[rows[self._meets_row]]] = True
        near = rows.copy()
        near[self._meets_row[relations[self._meets_relation]]] = True
        return near

    def _expand_neighbourhood(self, inside: BoolArray, closed: BoolArray) -> BoolArray:
        """Rows with those that share a relation with them, generation by generation, up to a size."""
        while True:
            more = self._list_neighbours(inside) & ~closed
            if more.sum() > _NEARBY or (more == inside).all():
                return inside
            inside = more

    def _compute_price(self) -> FloatArray:
        return np.where(self.stays, 0.0, np.where(self._find_moved(), _USED, 1.0) * self.weight)

    def _find_moved(self) -> BoolArray:
        """Rows that a movement in use moves."""
        return np.asarray(self._touches[: self._n][self._list_rows_in_use()].any(axis=0))

    # ------------------------------------------------------------------ cleaning

    @property
    def open_rows(self) -> BoolArray:
        """Rows that a movement in use moves, or that must be able to move."""
        return np.asarray(self._find_moved() | self.space.keep)

    def clean(self, deadline: Deadline) -> None:
        """Publish what can be spared, heaviest rows first."""
        if not self.complete:
            return
        while not deadline.passed:
            open_ = self.open_rows
            self.closed = ~open_
            candidates = np.flatnonzero(open_ & ~self.stays & (self.weight > 0))
            if not len(candidates):
                return
            self._try_to_publish(int(candidates[np.argmax(self.weight[candidates])]), deadline)
            if self._n > 2 * len(self.row) + 64:
                self._drop_unused()

    def _try_to_publish(self, row: int, deadline: Deadline) -> None:
        """Publish a row if everything can be protected without it; else it stays."""
        uses = self._touches[: self._n, row].copy()
        affected = np.flatnonzero(uses[self.served].any(axis=0))
        before, n = self.served.copy(), self._n
        self._before = before
        unmet = self._assign(affected, self._list_rows_in_use() & ~uses)
        self.served[:, unmet] = -1
        if self._protect(unmet, row, deadline):
            return
        self._restore_movements(before, n)
        self.stays[row] = True

    def improve(self, rng: np.random.Generator, deadline: Deadline, max_rounds: int | None) -> int:
        """Hold rows in use fast, give what they served the cheapest routes, keep what is cheaper; return rounds."""
        if not self.complete:
            return 0
        for done in range(1 << 40 if max_rounds is None else max_rounds):
            open_ = self.open_rows
            candidates = np.flatnonzero(open_ & ~self.space.keep & (self.weight > 0))
            if deadline.passed or not len(candidates):
                return done
            weight = self.weight[candidates]
            self._replace(
                int(rng.choice(candidates, p=weight / weight.sum())), float(self.weight[open_].sum()), deadline
            )
            if self._n > 2 * len(self.row) + 64:
                self._drop_unused()
        return max_rounds or 0

    def _replace(self, row: int, cost: float, deadline: Deadline) -> None:
        uses = self._touches[: self._n, row].copy()
        affected = np.flatnonzero(uses[self.served].any(axis=0))
        before, n = self.served.copy(), self._n
        self.served[:, affected] = -1
        closed = np.arange(len(self.weight)) == row
        for q in affected.tolist():
            if (self.served[:, q] >= 0).all():
                continue
            price = np.where(self.open_rows, 0.0, self.weight)
            found = self.protector.find_movements(q, price, closed=closed, deadline=deadline)
            if found is None or not self._serve(q, found, affected):
                break
        else:
            if float(self.weight[self.open_rows].sum()) < cost * (1 - 1e-12):
                return
        self._restore_movements(before, n)

    def _restore_movements(self, before: IntArray, n: int) -> None:
        self._reach[:, n : self._n] = 0.0
        self.served, self._n = before, n

    def _drop_unused(self) -> None:
        """Drop movements that are not in use."""
        used = np.flatnonzero(self._list_rows_in_use())
        place = np.full(self._n + 1, -1, np.int64)
        place[used] = np.arange(len(used))
        self.served = place[self.served]
        capacity = len(used) + 64
        moves, reach = np.zeros((capacity, self._moves.shape[1])), np.zeros((2, capacity, len(self.row)))
        moves[: len(used)], reach[:, : len(used)] = self._moves[used], self._reach[:, used]
        self._moves, self._touches, self._reach, self._n = moves, moves != 0, reach, len(used)

    @property
    def pattern(self) -> BoolArray:
        """The suppressed cells."""
        return self.space.build_pattern(self.open_rows)

    @property
    def movements(self) -> Movements:
        """The movements in use."""
        return self.space, self._moves[: self._n][self._list_rows_in_use()]
