"""Sparse movements for many views: a movement of few cells conflicts with few attackers who know one of them.

For a variable that many open questions are about, find the movement with the least sum in which cells that the
attackers know cost more; repeat for the attackers whom it does not serve. Few questions are left.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.witnesses.cheapest import AskedMovement, find_cheapest_witness, split_witness_program
from cellguard._types import FloatArray

__all__ = ["settle_by_sparse"]

_TRIES_PER_VARIABLE = 1
"""Number of times that movements are tried for each variable; later searches settle what is left.

With 3 tries, an audit of 9,150 cells with 282 unsafe ones took 41 and 43 CPU seconds in two runs instead of 34 and 36,
with the same verdicts; one with no unsafe cell took 4.5 instead of 2.8.
"""
_KNOWN_PRICE = 30.0
"""Extra cost of a cell for each attacker with an open question and knowledge of it."""


def settle_by_sparse(tally: Tally, deadline: Deadline) -> int:
    """Answer questions by sparse movements; return the number of programs solved."""
    asking = _Asking(tally, deadline)
    for variable in tally.list_waiting().tolist():
        asking.search_variable(variable)
    return asking.programs


class _Asking:
    """One program that changes from question to question."""

    def __init__(self, tally: Tally, deadline: Deadline) -> None:
        self.tally, self.deadline = tally, deadline
        self.A = tally.system.space.relations
        self.program = split_witness_program(self.A)
        self.programs = 0

    def search_variable(self, variable: int) -> None:
        """Find movements of one variable that move few cells known to the attackers whom no movement serves yet."""
        tally, q, s = self.tally, self.tally.questions, self.tally.system
        for _ in range(_TRIES_PER_VARIABLE):
            some = tally.find_open_questions(variable)
            if not len(some) or self.deadline.passed:
                return
            price = 1.0 + _KNOWN_PRICE * tally.count_knowing_views(q.view[some])
            low, high, width = (float(need[some].max()) for need in (q.need_low, q.need_high, q.need_width))
            both, slack = float(q.get_both_distances(some).max()), np.minimum(s.down, s.up)
            if both <= slack[variable] and self._move(variable, both, price, (slack, slack)):
                continue
            self._move(variable, max(high, width - low), price, (s.down, s.up))
            self._move(variable, -low, price, (s.down, s.up))

    def _move(self, variable: int, move: float, price: FloatArray, slack: tuple[FloatArray, FloatArray]) -> bool:
        down, up = slack
        move = float(np.clip(move, -down[variable], up[variable]))
        if not move:
            return False
        self.programs += 1
        asked = AskedMovement(variable, move, price, -down, up)
        z = find_cheapest_witness(self.A, asked, program=self.program, deadline=self.deadline)
        return z is not None and self.tally.note_movement(np.clip(z, -down, up))
