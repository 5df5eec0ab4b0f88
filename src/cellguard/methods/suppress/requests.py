"""What is asked: which cell must keep which levels against whom, and what he knows besides.

A thousand respondents ask for the same cells again and again. Of two requests for one cell only the harder
one stays: a movement that fits what the one who knows more leaves possible fits the other's bounds too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import WHOLE_BOUND
from cellguard._types import FloatArray, IntArray
from cellguard.nouns.attacker import Attacker
from cellguard.nouns.levels import Levels, attackers_of_table, required_levels
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["AskedPattern", "PatternRequests", "missed_by_pattern", "pattern_asked_by_levels", "room_behind_pattern"]

Knowledge = tuple[IntArray, FloatArray, FloatArray]
"""Cells that an attacker knows better than everybody does, and the room below and above that he leaves them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternRequests:
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

    def some(self, which: IntArray) -> PatternRequests:
        """Return those with the given numbers."""
        return PatternRequests(
            attacker=self.attacker[which],
            cell=self.cell[which],
            lower=self.lower[which],
            upper=self.upper[which],
            sliding=self.sliding[which],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskedPattern:
    """The requests of all attackers, and what these know besides the table's bounds."""

    requests: PatternRequests
    """Those that no other implies."""
    known_ptr: IntArray
    """Where the knowledge of each attacker begins in the next three; one entry more than attackers."""
    known_cell: IntArray
    """Cells on which the attacker has tighter bounds, in order."""
    known_down: FloatArray
    """His room below the value."""
    known_up: FloatArray
    """His room above the value."""


def pattern_asked_by_levels(table: Table) -> AskedPattern:
    """Translate the levels of every attacker, without what others imply."""
    attackers = attackers_of_table(table)
    known = [_knowledge_against_pattern(table, attacker) for attacker in attackers]
    every = _every_pattern_request([required_levels(table, attacker) for attacker in attackers])
    requests = _essential_pattern_requests(every, known, whole=table.integer) if len(attackers) > 1 else every
    return _pattern_requests_with_knowledge(requests, known)


def missed_by_pattern(found: Audit) -> AskedPattern:
    """Translate what the audit of a pattern did not accept."""
    failing = [f for f in found.findings if not f.safe.all()]
    table = found.release.table
    known = [_knowledge_against_pattern(table, f.attacker) for f in failing]
    return _pattern_requests_with_knowledge(_every_pattern_request([f.levels.some(~f.safe) for f in failing]), known)


def _every_pattern_request(needs: list[Levels]) -> PatternRequests:
    """The requests of all attackers, each one's levels given."""
    every = PatternRequests(
        attacker=np.repeat(np.arange(len(needs)), [len(need.cells) for need in needs]),
        cell=np.concatenate([np.zeros(0, np.int64), *(need.cells for need in needs)]),
        lower=np.concatenate([np.zeros(0), *(need.lower for need in needs)]),
        upper=np.concatenate([np.zeros(0), *(need.upper for need in needs)]),
        sliding=np.concatenate([np.zeros(0), *(need.sliding for need in needs)]),
    )
    return every.some(np.flatnonzero((every.lower > 0) | (every.upper > 0) | (every.sliding > 0)))


def _pattern_requests_with_knowledge(requests: PatternRequests, known: list[Knowledge]) -> AskedPattern:
    none: Knowledge = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    cells, down, up = (np.concatenate(column) for column in zip(none, *known, strict=True))
    ptr = np.cumsum([0, *(len(cells) for cells, _, _ in known)])
    return AskedPattern(
        requests=requests, known_ptr=ptr.astype(np.int64), known_cell=cells, known_down=down, known_up=up
    )


def _knowledge_against_pattern(table: Table, attacker: Attacker) -> Knowledge:
    """Cells that the attacker knows better than everybody does, and the room that he leaves them."""
    order = np.argsort(attacker.cells, kind="stable")
    cells = attacker.cells[order].astype(np.int64)
    lo, hi = np.maximum(attacker.lb[order], table.lb[cells]), np.minimum(attacker.ub[order], table.ub[cells])
    some = (lo > table.lb[cells]) | (hi < table.ub[cells])
    return cells[some], *room_behind_pattern(table, cells[some], lo[some], hi[some])


def room_behind_pattern(table: Table, cells: IntArray, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Room of some cells below and above their values between known bounds; of counts, in whole numbers."""
    a = table.values[cells]
    if table.integer:
        lo, hi = np.ceil(lo - WHOLE_BOUND), np.floor(hi + WHOLE_BOUND)
    return np.maximum(a - lo, 0.0), np.maximum(hi - a, 0.0)


def _essential_pattern_requests(requests: PatternRequests, known: list[Knowledge], *, whole: bool) -> PatternRequests:
    """The requests that no other one for the same cell implies."""
    rooms = [dict(zip(c.tolist(), zip(d.tolist(), u.tolist(), strict=True), strict=True)) for c, d, u in known]
    knowing: dict[int, set[int]] = {}
    for attacker, room_of in enumerate(rooms):
        for cell in room_of:
            knowing.setdefault(cell, set()).add(attacker)
    of_cell: dict[int, dict[int, list[int]]] = {}
    for q, (cell, attacker) in enumerate(zip(requests.cell.tolist(), requests.attacker.tolist(), strict=True)):
        of_cell.setdefault(cell, {}).setdefault(attacker, []).append(q)
    scalable = (not whole) & (requests.sliding <= requests.lower + requests.upper)
    dropped: set[int] = set()
    for q, (cell, attacker) in enumerate(zip(requests.cell.tolist(), requests.attacker.tolist(), strict=True)):
        group = of_cell[cell]
        needed = [c for c in rooms[attacker] if not (scalable[q] and c == cell)]
        if needed:  # only who knows all of this can ask for as much: few know the cell that fewest know
            few = min((knowing[c] for c in needed), key=len)
            asking = [a for a in few if a in group] if len(few) < len(group) else [a for a in group if a in few]
        else:
            asking = list(group)
        others = (by for a in asking for by in group[a] if by != q and by not in dropped)
        if any(_pattern_request_implies(requests, rooms, by, q, scalable=bool(scalable[q])) for by in others):
            dropped.add(q)
    keep = np.setdiff1d(np.arange(len(requests)), np.fromiter(dropped, np.int64, len(dropped)))
    return requests.some(keep)


def _pattern_request_implies(
    requests: PatternRequests, rooms: list[dict[int, tuple[float, float]]], by: int, q: int, *, scalable: bool
) -> bool:
    """Whether whatever meets one request for a cell meets another, `q`.

    A movement that may be scaled down (each side has a level of its own, and numbers need not be whole)
    fits what he who asks for `q` knows of the cell itself.
    """
    r = requests
    if r.lower[by] < r.lower[q] or r.upper[by] < r.upper[q] or r.sliding[by] < r.sliding[q]:
        return False
    less, more = rooms[r.attacker[q]], rooms[r.attacker[by]]
    for cell, (down, up) in less.items():
        if scalable and cell == r.cell[q]:
            continue
        own = more.get(cell)
        if own is None or own[0] > down or own[1] > up:
            return False
    return True
