"""The suppression problem in arrays: what may be suppressed, at what cost, and what must be reached.

A pattern is safe when, for every attacker and every cell they must not narrow, two movements of the
suppressed cells exist that keep all relations and the attacker's bounds: one reaches the upper level and one
the lower (baena2018 (3)). A movement that reaches a level is called a witness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.many import Views, compute_ranges_for_views
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.suppress.requests import (
    AskedPattern,
    PatternRequests,
    compute_slack_of_cells,
    translate_levels,
)
from cellguard.model.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["PatternRequests", "SuppressionProblem"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SuppressionProblem:
    """The problem that :func:`cellguard.methods.suppress.suppress` solves, without names and labels."""

    relations: csr_array
    """The table's relations."""
    weight: FloatArray
    """Cost of suppressing the cell; 0 for cells that are suppressed anyway."""
    forced: BoolArray
    """Cells suppressed in every pattern: the sensitive ones, and those suppressed before."""
    usable: BoolArray
    """Cells that may be suppressed and that some attacker does not know exactly: the only useful partners."""
    down: FloatArray
    """How far down the external attacker must consider the cell able to go."""
    up: FloatArray
    """How far up, likewise."""
    requests: PatternRequests
    """The requests to meet."""
    known_ptr: IntArray
    """Where the knowledge of each attacker begins in the next three; one entry more than attackers."""
    known_cell: IntArray
    """Cells on which the attacker has tighter bounds."""
    known_down: FloatArray
    """The attacker's slack below the value."""
    known_up: FloatArray
    """The attacker's slack above the value."""
    shown: ShownMovements = field(default_factory=ShownMovements)
    """Movements proven to be possible before, in this search or in earlier ones for the same table."""

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        forced: BoolArray,
        asked: AskedPattern | None = None,
        shown: ShownMovements | None = None,
    ) -> SuppressionProblem:
        """Translate the table; `forced` are the cells suppressed in every pattern, `asked` is what must be met."""
        if (forced & table.fixed).any():
            bad = int(np.argmax(forced & table.fixed))
            raise InputError(
                f"{table.label(bad)}: must be published and must be suppressed.",
                hint="take it out of the cells that must be published, or out of the suppressed and sensitive ones.",
            )
        asked = translate_levels(table) if asked is None else asked
        room_down, room_up = compute_slack_of_cells(table, np.arange(table.n_cells), table.lb, table.ub)
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
            shown=ShownMovements() if shown is None else shown,
        )

    @property
    def n_attackers(self) -> int:
        """Number of attackers."""
        return len(self.known_ptr) - 1

    def get_slack(self, attacker: int) -> tuple[FloatArray, FloatArray]:
        """Return how far each cell can go down and up according to the attacker's knowledge."""
        start, stop = self.known_ptr[attacker], self.known_ptr[attacker + 1]
        if start == stop:
            return self.down, self.up
        down, up = self.down.copy(), self.up.copy()
        cells = self.known_cell[start:stop]
        down[cells], up[cells] = self.known_down[start:stop], self.known_up[start:stop]
        return down, up

    def check_requests(self, pattern: BoolArray, deadline: Deadline = NEVER) -> tuple[BoolArray, list[FloatArray]]:
        """Compute which requests a pattern meets, and the movements that show it, with the range engine.

        What is not decided before the deadline counts as not met.
        """
        met, witnesses = self._compute_met(pattern, deadline)
        return met, list(witnesses.toarray()) if witnesses is not None else []

    def find_met(self, pattern: BoolArray, deadline: Deadline = NEVER) -> BoolArray:
        """Return which requests a pattern meets: as :meth:`check_requests`, in memory that grows with the table."""
        return self._compute_met(pattern, deadline)[0]

    def _compute_met(self, pattern: BoolArray, deadline: Deadline) -> tuple[BoolArray, csr_array | None]:
        r = self.requests
        who = np.unique(r.attacker)
        if len(who) == 1:
            down, up = self.get_slack(int(who[0]))
            alone = compute_ranges(
                self._build_sight(np.where(pattern, -down, 0.0), np.where(pattern, up, 0.0)),
                AskedRanges(r.cell, r.lower, r.upper, r.sliding),
                time_limit_s=deadline.left,
            )
            return alone.safe, alone.witnesses
        if not len(who):
            return np.zeros(0, bool), None
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
        found = compute_ranges_for_views(self._build_sight(lo, hi), views, time_limit_s=deadline.left)
        return found.safe, found.witnesses

    def _build_sight(self, lo: FloatArray, hi: FloatArray) -> Sight:
        """Return what an attacker sees of movements between these bounds."""
        return Sight(self.relations, lo, hi, np.zeros(len(lo)), shown=self.shown)

    def compute_cost(self, pattern: BoolArray) -> float:
        """Return the cost of the pattern: the weights of its secondary cells."""
        return float(self.weight[pattern].sum())
