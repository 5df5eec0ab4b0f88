"""Sparse movements for many views: what moves few cells stands in the way of few who know one of them.

For a variable that many wait for, the movement with the least sum is looked for, in which what they know is dear to
move; again for those whom it does not serve. Few questions are left.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.cheapest import AskedMovement, cheapest_witness, split_witness_program
from cellguard._engine.ranges.tally import Tally
from cellguard._types import FloatArray

__all__ = ["settle_by_sparse"]

_AGAIN, _DEAR = 3, 30.0
"""So often another movement of a variable is looked for; to move what one who waits knows costs so much more."""


def settle_by_sparse(tally: Tally, deadline: Deadline) -> int:
    """Answer what sparse movements can answer; return how many programs that took."""
    asking = _Asking(tally, deadline)
    for variable in tally.waiting().tolist():
        asking.about(variable)
    return asking.programs


class _Asking:
    """One program that is changed from question to question."""

    def __init__(self, tally: Tally, deadline: Deadline) -> None:
        self.tally, self.deadline = tally, deadline
        self.A = tally.system.space.relations
        self.program = split_witness_program(self.A)
        self.programs = 0

    def about(self, variable: int) -> None:
        """Look for movements of one variable in which little moves that somebody knows whom none serves yet."""
        tally, q, s = self.tally, self.tally.questions, self.tally.system
        for _ in range(_AGAIN):
            some = tally.waiting_for(variable)
            if not len(some) or self.deadline.passed:
                return
            price = 1.0 + _DEAR * tally.known_by(q.view[some])
            low, high, width = (float(need[some].max()) for need in (q.need_low, q.need_high, q.need_width))
            both, room = float(q.both_ways(some).max()), np.minimum(s.down, s.up)
            if both <= room[variable] and self._move(variable, both, price, (room, room)):
                continue
            self._move(variable, max(high, width - low), price, (s.down, s.up))
            self._move(variable, -low, price, (s.down, s.up))

    def _move(self, variable: int, move: float, price: FloatArray, room: tuple[FloatArray, FloatArray]) -> bool:
        down, up = room
        move = float(np.clip(move, -down[variable], up[variable]))
        if not move:
            return False
        self.programs += 1
        asked = AskedMovement(variable, move, price, -down, up)
        z = cheapest_witness(self.A, asked, program=self.program, deadline=self.deadline)
        return z is not None and self.tally.learn(np.clip(z, -down, up))
