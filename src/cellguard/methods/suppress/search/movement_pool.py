"""Which movements protect which requests, and which cells they keep suppressed."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._tolerances import MET
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["Ledger", "Movement"]

Movement = tuple[IntArray, FloatArray]
"""Cells that move, and by how much."""


class Ledger:
    """Movements in use. A cell is suppressed while a movement in use moves it; its price is then 0."""

    def __init__(self, problem: SuppressionProblem) -> None:
        self.problem = problem
        self.price = problem.weight.copy()
        self.cost = 0.0
        self._use = np.zeros(len(problem.weight), np.int64)
        self._moves: dict[int, Movement] = {}
        self._served: dict[int, int] = {}
        self._movers: dict[int, set[int]] = {}
        self._far: dict[int, tuple[float, float]] = {}
        """How many times each movement in use, and its opposite, fits what everybody knows."""
        self._next = 0
        self.by: list[tuple[int, ...]] = [() for _ in range(len(problem.requests))]
        """The movements that protect each request; none when it is open or needs none."""
        self._order = np.argsort(problem.requests.cell, kind="stable")
        self._cells = problem.requests.cell[self._order]

    def __len__(self) -> int:
        return len(self._moves)

    @property
    def pattern(self) -> BoolArray:
        """The suppressed cells."""
        return (self._use > 0) | self.problem.forced

    @property
    def movements(self) -> csr_array:
        """The movements in use, as movements of all cells, one line each."""
        used = [movement for number, movement in self._moves.items() if self._served[number]]
        ptr = np.cumsum([0, *(len(cells) for cells, _ in used)])
        cells = np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in used)])
        z = np.concatenate([np.zeros(0), *(z for _, z in used)])
        return csr_array((z, cells, ptr), shape=(len(used), len(self.price)))

    def add(self, movement: Movement) -> int:
        """Take a movement in; it counts for nothing until it serves a request."""
        self._moves[self._next], self._served[self._next] = movement, 0
        self._next += 1
        return self._next - 1

    def serve(self, request: int, by: tuple[int, ...]) -> None:
        """Let movements protect a request, instead of those that did."""
        before, self.by[request] = self.by[request], by
        for number in by:
            self._served[number] += 1
            if self._served[number] == 1:
                self._enter(number)
        for number in before:
            self._served[number] -= 1
            if self._served[number] == 0:
                self._leave(number)

    def release(self, request: int) -> tuple[tuple[int, ...], list[Movement]]:
        """Leave a request unprotected; returns what is needed to :meth:`restore` it."""
        before = self.by[request]
        moves = [self._moves[number] for number in before]
        self.serve(request, ())
        return before, moves

    def restore(self, request: int, before: tuple[tuple[int, ...], list[Movement]]) -> None:
        """Undo a release."""
        for number, movement in zip(*before, strict=True):
            if number not in self._moves:
                self._moves[number], self._served[number] = movement, 0
        self.serve(request, before[0])

    def _enter(self, number: int) -> None:
        cells, z = self._moves[number]
        self._far[number] = _measure_stretch_between(z, self.problem.down[cells], self.problem.up[cells])
        fresh = cells[self._use[cells] == 0]
        self.cost += float(self.price[fresh].sum())
        self._use[cells] += 1
        self.price[fresh] = 0.0
        for c in cells.tolist():
            self._movers.setdefault(c, set()).add(number)

    def _leave(self, number: int) -> None:
        cells = self._moves.pop(number)[0]
        del self._served[number], self._far[number]
        self._use[cells] -= 1
        gone = cells[self._use[cells] == 0]
        self.price[gone] = self.problem.weight[gone]
        self.cost -= float(self.price[gone].sum())
        for c in cells.tolist():
            self._movers[c].discard(number)

    # ------------------------------------------------------------------ what movements reach

    def get_slack(self, attacker: int, cells: IntArray) -> tuple[FloatArray, FloatArray]:
        """Room of some cells below and above, in the eyes of an attacker."""
        p = self.problem
        down, up = p.down[cells], p.up[cells]
        span = slice(p.known_ptr[attacker], p.known_ptr[attacker + 1])
        known = p.known_cell[span]
        if len(known):
            at = np.minimum(np.searchsorted(known, cells), len(known) - 1)
            same = known[at] == cells
            down = np.where(same, p.known_down[span][at], down)
            up = np.where(same, p.known_up[span][at], up)
        return down, up

    def is_met_by(self, request: int, number: int) -> bool:
        """Whether a movement in use, stretched both ways, meets a request alone."""
        r = self.problem.requests
        cells, z = self._moves[number]
        size = abs(v := float(z[np.searchsorted(cells, r.cell[request])]))
        if not self._is_enough(request, v, tuple(far * size for far in self._far[number])):
            return False  # not even against an attacker without other knowledge
        far = self._measure_stretch(int(r.attacker[request]), number)
        return self._is_enough(request, v, tuple(one * size for one in far))

    def _is_enough(self, request: int, v: float, far: tuple[float, ...]) -> bool:
        """Whether a cell that moves so far forth and back, with `v` forth, reaches its levels."""
        r = self.problem.requests
        up, down = far if v > 0 else far[::-1]
        levels = (float(r.upper[request]), up), (float(r.lower[request]), down), (float(r.sliding[request]), up + down)
        return all(reached >= level * MET for level, reached in levels)

    def _measure_stretch(self, attacker: int, number: int) -> tuple[float, float]:
        """How far a movement can be stretched forth and back for an attacker: only their knowledge differs."""
        p, forth, back = self.problem, *self._far[number]
        span = slice(p.known_ptr[attacker], p.known_ptr[attacker + 1])
        cells, z = self._moves[number]
        known = p.known_cell[span]
        at = np.minimum(np.searchsorted(cells, known), len(cells) - 1)
        same = np.flatnonzero(cells[at] == known)
        if not len(same):
            return forth, back
        own = _measure_stretch_between(z[at[same]], p.known_down[span][same], p.known_up[span][same])
        return min(forth, own[0]), min(back, own[1])

    def find_existing_movement(self, request: int) -> int | None:
        """A movement in use that meets the request, if there is one."""
        for number in sorted(self._movers.get(int(self.problem.requests.cell[request]), ())):
            if self.is_met_by(request, number):
                return number
        return None

    def list_requests_on(self, cells: IntArray) -> IntArray:
        """Requests on some cells."""
        left, right = np.searchsorted(self._cells, cells, "left"), np.searchsorted(self._cells, cells, "right")
        return np.concatenate([self._order[a:b] for a, b in zip(left, right, strict=True)] or [np.zeros(0, np.int64)])

    def get_cells(self, number: int) -> IntArray:
        """Cells that a movement in use moves."""
        return self._moves[number][0]


def _measure_stretch_between(z: FloatArray, below: FloatArray, above: FloatArray) -> tuple[float, float]:
    """How many times a movement, and its opposite, fits between bounds."""
    size, rises = np.abs(z), z > 0
    return float(np.min(np.where(rises, above, below) / size)), float(np.min(np.where(rises, below, above) / size))
