"""Complete a pattern against every respondent: withhold more where no movement shows that a cell keeps its levels.

A thousand respondents attack every sensitive cell: millions of requests, nearly all of which a movement that is known
already meets. Check those by arithmetic. Give each other request a movement of its own, in which withheld cells
cost nothing; it ticks off others that it meets. Nothing is proven unsafe on the way, which is what an audit spends its
time on, and the audit that follows finds a witness for nearly every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard._engine.ranges.many import Sight, Views, find_unshown_requests
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.requests import translate_everything
from cellguard.methods.suppress.search.cheapest_movement import Protector
from cellguard.methods.suppress.search.construct import construct
from cellguard.methods.suppress.search.space import PatternSpace

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard._engine.ranges.witnesses.shown import ShownMovements
    from cellguard._types import BoolArray, IntArray
    from cellguard.methods.suppress.requests import AskedPattern
    from cellguard.model.table import Table

__all__ = ["CompletedPattern", "complete_pattern"]

KNOWN_PRICE = 3.0
"""Extra cost of a cell, as a multiple of its weight, for each attacker who asks and knows it."""
MAX_KNOWING = 10.0
"""Maximum number of such attackers that count."""
MAX_OPEN_REQUESTS = 50_000
"""With more requests than this that no movement shows, the pattern is not worth completing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CompletedPattern:
    """A pattern in which movements meet the requests of every attacker, and the requests that asked for more."""

    withheld: BoolArray
    """The suppressed cells."""
    attacker: IntArray
    """The number of the attacker of each request for which cells had to be added."""
    cell: IntArray
    """Its cell."""


def complete_pattern(
    table: Table, withheld: BoolArray, deadline: Deadline, shown: ShownMovements
) -> CompletedPattern | None:
    """Return a pattern that meets what every attacker of the table requires; None if none was found in time.

    The movements that meet it are remembered in `shown`.
    """
    everything = translate_everything(table)
    open_ = _find_open(table, withheld, everything, deadline, shown)
    if len(open_) > MAX_OPEN_REQUESTS:
        return None
    left = _select_unmet(table, withheld, everything.select(open_), deadline, shown)
    requests = left.requests
    if len(requests):
        problem = SuppressionProblem.of(table, forced=withheld, asked=left, shown=shown)
        space = PatternSpace.of(problem, problem.usable)
        if len(space.disclosed):
            return None
        rows, moves, failed = construct(
            Protector(space), _find_forced_rows(space), np.zeros((0, len(space))), largest_first=True, deadline=deadline
        )
        if failed:
            return None
        shown.remember(space.lift_movements(np.array(moves)))
        withheld = space.build_pattern(rows)
    return CompletedPattern(withheld=withheld, attacker=requests.attacker, cell=requests.cell)


def _select_unmet(
    table: Table, withheld: BoolArray, asked: AskedPattern, deadline: Deadline, shown: ShownMovements
) -> AskedPattern:
    """Return the requests that no movement of the withheld cells meets, or none that was found in time.

    Cells that many of those who ask know are dear, so that one movement meets the requests of many.
    """
    if not len(asked.requests):
        return asked
    problem = SuppressionProblem.of(table, forced=withheld, asked=asked, shown=shown)
    space = PatternSpace.of(problem, withheld)
    asking = np.zeros(problem.n_attackers, bool)
    asking[asked.requests.attacker] = True
    knows = np.repeat(asking, np.diff(space.known[0]))
    known = np.bincount(space.known[1][knows], minlength=len(space)).astype(np.float64)
    price = 1.0 + KNOWN_PRICE * np.minimum(known, MAX_KNOWING)
    everything = np.zeros(len(space), bool)
    _, moves, failed = construct(
        Protector(space, nearby=True), everything, np.zeros((0, len(space))), largest_first=True, weight=price,
        deadline=deadline,
    )  # fmt: skip
    shown.remember(space.lift_movements(np.array(moves).reshape(-1, len(space))))
    row, n = space.row[asked.requests.cell], len(space)
    unmet = [space.requests[k][failed] for k in (0, 1)]
    is_unmet = (row < 0) | np.isin(asked.requests.attacker * n + row, unmet[0] * n + unmet[1])
    return asked.select(np.flatnonzero(is_unmet))


def _find_forced_rows(space: PatternSpace) -> BoolArray:
    rows = np.zeros(len(space), bool)
    forced = space.row[space.problem.forced]
    rows[forced[forced >= 0]] = True
    return rows


def _find_open(
    table: Table, withheld: BoolArray, asked: AskedPattern, deadline: Deadline, shown: ShownMovements
) -> IntArray:
    """Return the requests that no known movement of a pattern meets."""
    problem = SuppressionProblem.of(table, forced=withheld, asked=asked, shown=shown)
    hidden, r = withheld[asked.known_cell], asked.requests
    views = Views(
        known_ptr=asked.known_ptr,
        known_cell=asked.known_cell,
        known_lo=np.where(hidden, -asked.known_down, 0.0),
        known_hi=np.where(hidden, asked.known_up, 0.0),
        view=r.attacker,
        cell=r.cell,
        lower=r.lower,
        upper=r.upper,
        sliding=r.sliding,
    )
    lo, hi = np.where(withheld, -problem.down, 0.0), np.where(withheld, problem.up, 0.0)
    sight = Sight(table.relations, lo, hi, np.zeros(len(lo)), shown=shown)
    return np.flatnonzero(find_unshown_requests(sight, views, time_limit_s=deadline.left))
