"""Requests: which cell must keep which levels against which attacker, and what that attacker knows.

A thousand respondents request protection of the same cells again and again. Of two requests for one cell, only the
harder one is kept: a movement that fits the tighter knowledge of one attacker fits the other's bounds too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import WHOLE_BOUND
from cellguard._types import FloatArray, IntArray
from cellguard.model.attacker import Attacker
from cellguard.model.levels import Levels, compute_required_levels, list_attackers
from cellguard.model.table import Table

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit

__all__ = [
    "AskedPattern",
    "PatternRequests",
    "compute_slack_of_cells",
    "translate_everything",
    "translate_findings",
    "translate_levels",
]

Knowledge = tuple[IntArray, FloatArray, FloatArray]
"""Cells that an attacker knows better than the public, and the slack below and above that they leave."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternRequests:
    """One entry per attacker and cell that must keep its levels against them."""

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

    def select(self, which: IntArray) -> PatternRequests:
        """Return the requests with the given numbers."""
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
    """Requests that no other implies."""
    known_ptr: IntArray
    """Where the knowledge of each attacker begins in the next three; one entry more than attackers."""
    known_cell: IntArray
    """Cells on which the attacker has tighter bounds, in order."""
    known_down: FloatArray
    """The attacker's slack below the value."""
    known_up: FloatArray
    """The attacker's slack above the value."""

    def select(self, some: IntArray) -> AskedPattern:
        """Return some of the requests; attackers keep their numbers."""
        return replace(self, requests=self.requests.select(some))


def translate_everything(table: Table) -> AskedPattern:
    """Translate the levels of every attacker for every sensitive cell, near what they know or not."""
    attackers = list_attackers(table)
    every = _list_requests([compute_required_levels(table, attacker, everywhere=True) for attacker in attackers])
    return _add_knowledge(every, [_collect_knowledge(table, attacker) for attacker in attackers])


def translate_levels(table: Table) -> AskedPattern:
    """Translate the levels of every attacker, without requests that others imply."""
    attackers = list_attackers(table)
    known = [_collect_knowledge(table, attacker) for attacker in attackers]
    every = _list_requests([compute_required_levels(table, attacker) for attacker in attackers])
    requests = _drop_implied_requests(every, known, whole=table.integer) if len(attackers) > 1 else every
    return _add_knowledge(requests, known)


def translate_findings(found: Audit) -> AskedPattern:
    """Translate the findings of an audit that did not accept a pattern."""
    failing = [f for f in found.findings if not f.safe.all()]
    table = found.release.table
    known = [_collect_knowledge(table, f.attacker) for f in failing]
    return _add_knowledge(_list_requests([f.levels.select(~f.safe) for f in failing]), known)


def _list_requests(needs: list[Levels]) -> PatternRequests:
    """Return the requests of all attackers, given the levels of each."""
    every = PatternRequests(
        attacker=np.repeat(np.arange(len(needs)), [len(need.cells) for need in needs]),
        cell=np.concatenate([np.zeros(0, np.int64), *(need.cells for need in needs)]),
        lower=np.concatenate([np.zeros(0), *(need.lower for need in needs)]),
        upper=np.concatenate([np.zeros(0), *(need.upper for need in needs)]),
        sliding=np.concatenate([np.zeros(0), *(need.sliding for need in needs)]),
    )
    return every.select(np.flatnonzero((every.lower > 0) | (every.upper > 0) | (every.sliding > 0)))


def _add_knowledge(requests: PatternRequests, known: list[Knowledge]) -> AskedPattern:
    none: Knowledge = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    cells, down, up = (np.concatenate(column) for column in zip(none, *known, strict=True))
    ptr = np.cumsum([0, *(len(cells) for cells, _, _ in known)])
    return AskedPattern(
        requests=requests, known_ptr=ptr.astype(np.int64), known_cell=cells, known_down=down, known_up=up
    )


def _collect_knowledge(table: Table, attacker: Attacker) -> Knowledge:
    """Return the cells that the attacker knows better than the public, and the slack that they leave."""
    order = np.argsort(attacker.cells, kind="stable")
    cells = attacker.cells[order].astype(np.int64)
    lo, hi = np.maximum(attacker.lb[order], table.lb[cells]), np.minimum(attacker.ub[order], table.ub[cells])
    some = (lo > table.lb[cells]) | (hi < table.ub[cells])
    return cells[some], *compute_slack_of_cells(table, cells[some], lo[some], hi[some])


def compute_slack_of_cells(
    table: Table, cells: IntArray, lo: FloatArray, hi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the slack of some cells below and above their values between known bounds; whole numbers for counts."""
    a = table.values[cells]
    if table.integer:
        lo, hi = np.ceil(lo - WHOLE_BOUND), np.floor(hi + WHOLE_BOUND)
    return np.maximum(a - lo, 0.0), np.maximum(hi - a, 0.0)


def _drop_implied_requests(requests: PatternRequests, known: list[Knowledge], *, whole: bool) -> PatternRequests:
    """Return the requests that no other one for the same cell implies."""
    slack_of = [dict(zip(c.tolist(), zip(d.tolist(), u.tolist(), strict=True), strict=True)) for c, d, u in known]
    knowing: dict[int, set[int]] = {}
    for attacker, slack in enumerate(slack_of):
        for cell in slack:
            knowing.setdefault(cell, set()).add(attacker)
    rare = [sorted(slack, key=lambda cell: len(knowing[cell]))[:2] for slack in slack_of]
    of_cell: dict[int, dict[int, list[int]]] = {}
    for q, (cell, attacker) in enumerate(zip(requests.cell.tolist(), requests.attacker.tolist(), strict=True)):
        of_cell.setdefault(cell, {}).setdefault(attacker, []).append(q)
    scalable = (not whole) & (requests.sliding <= requests.lower + requests.upper)
    dropped: set[int] = set()
    for q, (cell, attacker) in enumerate(zip(requests.cell.tolist(), requests.attacker.tolist(), strict=True)):
        group = of_cell[cell]
        rarest = next((c for c in rare[attacker] if not (scalable[q] and c == cell)), None)
        if rarest is not None:  # only attackers who know all of it can imply it: start with the cell that fewest know
            few = knowing[rarest]
            asking = [a for a in few if a in group] if len(few) < len(group) else [a for a in group if a in few]
        else:
            asking = list(group)
        others = (by for a in asking for by in group[a] if by != q and by not in dropped)
        if any(_is_implied_by(requests, slack_of, by, q, scalable=bool(scalable[q])) for by in others):
            dropped.add(q)
    keep = np.setdiff1d(np.arange(len(requests)), np.fromiter(dropped, np.int64, len(dropped)))
    return requests.select(keep)


def _is_implied_by(
    requests: PatternRequests, slack_of: list[dict[int, tuple[float, float]]], by: int, q: int, *, scalable: bool
) -> bool:
    """Return whether meeting one request for a cell also meets another, `q`.

    A movement that may be scaled down (each side has its own level, and numbers need not be whole) fits what the
    attacker of `q` knows about the cell itself.
    """
    r = requests
    if r.lower[by] < r.lower[q] or r.upper[by] < r.upper[q] or r.sliding[by] < r.sliding[q]:
        return False
    less, more = slack_of[r.attacker[q]], slack_of[r.attacker[by]]
    for cell, (down, up) in less.items():
        if scalable and cell == r.cell[q]:
            continue
        own = more.get(cell)
        if own is None or own[0] > down or own[1] > up:
            return False
    return True
