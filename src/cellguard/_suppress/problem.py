"""The suppression problem in arrays: what may be suppressed, at what cost, and what must be reached.

A pattern is safe when, for every attacker and every cell he must not narrow, two movements of the
suppressed cells exist that keep all relations and his bounds, one reaching the upper level and one
the lower (baena2018 (3)). A movement that reaches a level is called a witness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.ranges import ranges
from cellguard.exceptions import InputError
from cellguard.table import BoolArray, FloatArray, IntArray, Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Problem", "Requests"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """One entry per attacker and cell that must keep its levels against him."""

    attacker: IntArray
    """Number of the attacker."""
    cell: IntArray
    """The cell to be protected."""
    lower: FloatArray
    """Its range must reach down by this much."""
    upper: FloatArray
    """Its range must reach up by this much."""
    sliding: FloatArray
    """Its range must be this wide."""

    def __len__(self) -> int:
        return len(self.cell)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What :func:`cellguard.suppress` decides, without names and labels."""

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
    requests: Requests
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
    def of(cls, table: Table, *, forced: BoolArray) -> Problem:
        """Translate the table; `forced` are the cells suppressed in every pattern."""
        if (forced & table.fixed).any():
            bad = int(np.argmax(forced & table.fixed))
            raise InputError(
                f"{table.label(bad)}: must be published and must be suppressed.",
                hint="take it out of the cells that must be published, or out of the suppressed and sensitive ones.",
            )
        a = table.values
        requests: list[tuple[NDArray[Any], ...]] = []
        ptr, cells, down, up = [0], [], [], []
        for k, attacker in enumerate(table.attackers):
            lo, hi = table.bounds(attacker)
            need = table.levels(attacker)
            some = (need.lower > 0) | (need.upper > 0) | (need.sliding > 0)
            requests.append(
                (np.full(int(some.sum()), k), need.cells[some], need.lower[some], need.upper[some], need.sliding[some])
            )
            tighter = np.flatnonzero((lo > table.lb) | (hi < table.ub))
            cells.append(tighter)
            down.append(np.maximum(a - lo, 0.0)[tighter])
            up.append(np.maximum(hi - a, 0.0)[tighter])
            ptr.append(ptr[-1] + len(tighter))
        columns = [np.concatenate(c) for c in zip(*requests, strict=True)] if requests else [np.zeros(0)] * 5
        room_down, room_up = np.maximum(a - table.lb, 0.0), np.maximum(table.ub - a, 0.0)
        hidden = forced.copy()
        hidden[columns[1].astype(np.int64)] = True
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
            requests=Requests(
                attacker=columns[0].astype(np.int64),
                cell=columns[1].astype(np.int64),
                lower=columns[2].astype(np.float64),
                upper=columns[3].astype(np.float64),
                sliding=columns[4].astype(np.float64),
            ),
            known_ptr=np.asarray(ptr, np.int64),
            known_cell=np.concatenate(cells).astype(np.int64) if cells else np.zeros(0, np.int64),
            known_down=np.concatenate(down) if down else np.zeros(0),
            known_up=np.concatenate(up) if up else np.zeros(0),
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

    def verdicts(self, pattern: BoolArray, *, time_limit_s: float = 60.0) -> tuple[BoolArray, list[FloatArray]]:
        """Ask the range engine which requests a pattern meets, and for the movements that show it."""
        r = self.requests
        met = np.zeros(len(r), bool)
        found: list[FloatArray] = []
        nothing = np.zeros(len(pattern))
        for k in np.unique(r.attacker):
            mine = np.flatnonzero(r.attacker == k)
            down, up = self.room(int(k))
            out = ranges(
                self.relations, np.where(pattern, -down, 0.0), np.where(pattern, up, 0.0), nothing, r.cell[mine],
                lower=r.lower[mine], upper=r.upper[mine], sliding=r.sliding[mine], time_limit_s=time_limit_s,
            )  # fmt: skip
            met[mine] = out.safe
            found.extend(out.witnesses.toarray())
        return met, found

    def cost(self, pattern: BoolArray) -> float:
        """What the pattern costs: the weights of its secondary cells."""
        return float(self.weight[pattern].sum())
