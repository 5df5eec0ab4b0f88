"""The suppression problem in arrays: what may be suppressed, at what cost, and what must be reached.

A pattern is safe when, for every attacker and every cell he must not narrow, two movements of the
suppressed cells exist that keep all relations and his bounds, one reaching the upper level and one
the lower (baena2018 (3)). A movement that reaches a level is called a witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.many import Views, ranges_for
from cellguard._engine.ranges.ranges import AskedRanges, Sight, ranges
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.suppress.requests import (
    AskedPattern,
    PatternRequests,
    pattern_asked_by_levels,
    room_behind_pattern,
)
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["PatternRequests", "SuppressionProblem"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SuppressionProblem:
    """What :func:`cellguard.methods.suppress.verb` decides, without names and labels."""

    relations: csr_array
    """The table's relations."""
    weight: FloatArray
    """What suppressing the cell costs; 0 for cells that are suppressed anyway."""
    forced: BoolArray
    """Cells suppressed in every pattern: the sensitive ones, and those suppressed before."""
    usable: BoolArray
    """Cells that may be suppressed and that somebody cannot know exactly: the only useful partners."""
    down: FloatArray
    """How far the external attacker must think that the cell can go down."""
    up: FloatArray
    """How far it can go up."""
    requests: PatternRequests
    """What must be reached."""
    known_ptr: IntArray
    """Where the knowledge of each attacker begins in the next three; one entry more than attackers."""
    known_cell: IntArray
    """Cells on which the attacker has tighter bounds."""
    known_down: FloatArray
    """His room below the value."""
    known_up: FloatArray
    """His room above the value."""

    @classmethod
    def of(cls, table: Table, *, forced: BoolArray, asked: AskedPattern | None = None) -> SuppressionProblem:
        """Translate the table; `forced` are the cells suppressed in every pattern, `asked` is what must be met."""
        if (forced & table.fixed).any():
            bad = int(np.argmax(forced & table.fixed))
            raise InputError(
                f"{table.label(bad)}: must be published and must be suppressed.",
                hint="take it out of the cells that must be published, or out of the suppressed and sensitive ones.",
            )
        asked = pattern_asked_by_levels(table) if asked is None else asked
        room_down, room_up = room_behind_pattern(table, np.arange(table.n_cells), table.lb, table.ub)
        hidden = forced.copy()
        hidden[asked.requests.cell] = True
        if (hidden & table.fixed).any():
            bad = int(np.argmax(hidden & table.fixed))
            raise InputError(f"{table.label(bad)}: must be published and must be protected.")
        return cls(
            relations=table.relations,
            weight=np.where(hidden, 0.0, table.weights),
            forced=hidden,
            usable=~table.fixed & (room_down + room_up > 0),
            down=room_down,
            up=room_up,
            requests=asked.requests,
            known_ptr=asked.known_ptr,
            known_cell=asked.known_cell,
            known_down=asked.known_down,
            known_up=asked.known_up,
        )

    @property
    def n_attackers(self) -> int:
        """Number of attackers."""
        return len(self.known_ptr) - 1

    def room(self, attacker: int) -> tuple[FloatArray, FloatArray]:
        """How far each cell can go down and up in the eyes of the attacker."""
        start, stop = self.known_ptr[attacker], self.known_ptr[attacker + 1]
        if start == stop:
            return self.down, self.up
        down, up = self.down.copy(), self.up.copy()
        cells = self.known_cell[start:stop]
        down[cells], up[cells] = self.known_down[start:stop], self.known_up[start:stop]
        return down, up

    def verdicts(self, pattern: BoolArray, deadline: Deadline = NEVER) -> tuple[BoolArray, list[FloatArray]]:
        """Ask the range engine which requests a pattern meets, and for the movements that show it.

        What is not decided before the deadline counts as not met.
        """
        r = self.requests
        nothing, who = np.zeros(len(pattern)), np.unique(r.attacker)
        if len(who) == 1:
            down, up = self.room(int(who[0]))
            alone = ranges(
                Sight(self.relations, np.where(pattern, -down, 0.0), np.where(pattern, up, 0.0), nothing),
                AskedRanges(r.cell, r.lower, r.upper, r.sliding),
                time_limit_s=deadline.left,
            )
            return alone.safe, list(alone.witnesses.toarray())
        if not len(who):
            return np.zeros(0, bool), []
        hidden = pattern[self.known_cell]
        views = Views(
            known_ptr=self.known_ptr,
            known_cell=self.known_cell,
            known_lo=np.where(hidden, -self.known_down, 0.0),
            known_hi=np.where(hidden, self.known_up, 0.0),
            view=r.attacker,
            cell=r.cell,
            lower=r.lower,
            upper=r.upper,
            sliding=r.sliding,
        )
        lo, hi = np.where(pattern, -self.down, 0.0), np.where(pattern, self.up, 0.0)
        found = ranges_for(Sight(self.relations, lo, hi, nothing), views, time_limit_s=deadline.left)
        return found.safe, list(found.witnesses.toarray())

    def cost(self, pattern: BoolArray) -> float:
        """What the pattern costs: the weights of its secondary cells."""
        return float(self.weight[pattern].sum())
