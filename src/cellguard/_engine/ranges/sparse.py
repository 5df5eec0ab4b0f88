"""Sparse movements for many views: what moves few cells stands in the way of few who know one of them.

For cells that thousands of views are asked about, the movement with the least sum is looked for, for some dozen cells
at once. It falls apart into movements of a few cells each, and each is a witness for everybody who knows none of
these. For those who do, others are looked for, in which what they know is dear to move. Few questions are left.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.cheapest import AskedMovement, cheapest, cheapest_together, split, taken_apart
from cellguard._engine.ranges.tally import Tally
from cellguard._types import FloatArray, IntArray

__all__ = ["settle_by_sparse"]

_FEW = 3
"""Views of a variable that are not worth a program here."""
_FURTHER = 1.001
"""So many times its level a variable moves: what a view takes back of it leaves enough."""
_TOGETHER = 20
"""Variables in one program."""
_AGAIN, _DEAR = 3, 30.0
"""So often another movement of a variable is looked for; to move what one who waits knows costs so much more."""
_ALIKE = 10
"""Programs whose variables are drawn from as many with levels of like size: neighbours are seldom together then."""


def settle_by_sparse(tally: Tally, deadline: Deadline) -> int:
    """Answer what sparse movements can answer; return how many programs that took."""
    asking = _Asking(tally, deadline)
    rng = np.random.default_rng(0)
    waiting = asking.waiting()
    for alike in np.array_split(waiting, max(1, len(waiting) // (_TOGETHER * _ALIKE))):
        for some in np.array_split(rng.permutation(alike), max(1, round(len(alike) / _TOGETHER))):
            asking.together(some, rng)
    for variable in asking.waiting().tolist():
        asking.alone(variable)
    return asking.programs


class _Asking:
    """One program that is changed from question to question."""

    def __init__(self, tally: Tally, deadline: Deadline) -> None:
        self.tally, self.deadline = tally, deadline
        self.A = tally.system.space.relations
        self.program = split(self.A)
        self.programs = 0

    def waiting(self) -> IntArray:
        """Return the variables with enough open questions, those with the highest levels first."""
        open_ = self.tally.open
        variable = self.tally.questions.variable[open_]
        level = np.zeros(len(self.tally.system.up))
        np.maximum.at(level, variable, self._levels(open_))
        some = np.flatnonzero(np.bincount(variable, minlength=len(level)) > _FEW)
        return some[np.argsort(-level[some], kind="stable")]

    def _levels(self, some: IntArray) -> FloatArray:
        """How far each question wants its variable to be able to move, both ways."""
        q = self.tally.questions
        return np.maximum(np.maximum(q.need_low[some], q.need_high[some]), q.need_width[some] / 2) * _FURTHER

    def together(self, variables: IntArray, rng: np.random.Generator) -> None:
        """Look for a movement of variables in everybody's eyes, as far up as down."""
        tally, room = self.tally, np.minimum(self.tally.system.down, self.tally.system.up)
        some = {int(x): tally.open_on(int(x)) for x in variables}
        level = {x: float(self._levels(mine).max()) for x, mine in some.items() if len(mine) > _FEW}
        moves = {x: far * float(rng.choice((-1.0, 1.0))) for x, far in level.items() if 0 < far <= room[x]}
        if not moves or self.deadline.passed:
            return
        self.programs += 1
        z = cheapest_together(self.program, moves, room, self.deadline)
        if z is not None:
            for part in taken_apart(self.A, np.clip(z, -room, room)):
                tally.learn(part)
        elif len(moves) > 1:  # they stand in each other's way
            for half in np.array_split(np.fromiter(moves, np.int64, len(moves)), 2):
                self.together(half, rng)

    def alone(self, variable: int) -> None:
        """Look for movements of one variable in which little moves that somebody knows whom none serves yet."""
        tally, q, s = self.tally, self.tally.questions, self.tally.system
        for _ in range(_AGAIN):
            some = tally.open_on(variable)
            if len(some) <= _FEW or self.deadline.passed:
                return
            price = 1.0 + _DEAR * tally.known_by(q.view[some])
            low, high, width = (float(need[some].max()) for need in (q.need_low, q.need_high, q.need_width))
            both, room = max(low, high, width / 2), np.minimum(s.down, s.up)
            if both <= room[variable] and self._move(variable, both, price, (room, room)):
                continue
            self._move(variable, max(high, width - low), price, (s.down, s.up))
            self._move(variable, -low, price, (s.down, s.up))

    def _move(self, variable: int, move: float, price: FloatArray, room: tuple[FloatArray, FloatArray]) -> bool:
        down, up = room
        move = float(np.clip(move * _FURTHER, -down[variable], up[variable]))
        if not move:
            return False
        self.programs += 1
        asked = AskedMovement(variable, move, price, -down, up)
        z = cheapest(self.A, asked, program=self.program, deadline=self.deadline)
        return z is not None and self.tally.learn(np.clip(z, -down, up))
