"""When the parameters of a suppression are secret: the attacker tries all their values (minami2019 section 2.5).

No published count is below the minimum frequency, and the least width is no wider than the widest suppressed cell:
that leaves few values. One of them is possible when some candidate, suppressed by it, gives the published pattern;
a count is possible when one possible value of the parameters leaves it possible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._engine.counts import twoway
from cellguard._types import BoolArray
from cellguard.check.attack.counts import CountRule, Grid

__all__ = ["over_all_parameters"]


def over_all_parameters(
    grid: Grid, pattern: BoolArray, rule: CountRule, how: str, limit: int
) -> tuple[list[CountRule], twoway.Effective]:
    """Return the rules that could have led to the pattern, and the hull of their survivors.

    `how` says when a candidate survives a rule, `limit` how many nodes the attack on each rule may take. What a
    limit leaves open counts as possible.
    """
    low, high = twoway.feasibility_intervals(grid.counts, pattern)
    wanted = np.flatnonzero(pattern)
    possible: list[CountRule] = []
    total: twoway.Effective | None = None
    for candidate in _rules(grid, pattern, rule, int((high - low)[pattern].max(initial=1))):
        law = candidate.law(grid)
        found = twoway.effective_intervals(grid.counts, pattern, law, survive=how, limit=limit, cells=wanted)
        nobody = (found.inner_low > found.inner_high)[pattern].all()
        if nobody and found.finished:
            continue
        possible.append(candidate)
        total = found if total is None else _joined(total, found)
    assert total is not None  # noqa: S101 - the true rule is among them
    return possible, total


def _rules(grid: Grid, pattern: BoolArray, rule: CountRule, widest: int) -> list[CountRule]:
    """Return the rule with every minimum that no published count is below, and every width that a cell has."""
    shown = grid.counts[~pattern] + grid.least
    if not rule.zeros:
        shown = shown[shown > 0]
    most = int(shown.min()) if len(shown) else int((grid.counts + grid.least).max()) + 1
    widths = range(1, widest + 1)
    return [replace(rule, minimum=minimum, width=width) for minimum in range(1, most + 1) for width in widths]


def _joined(one: twoway.Effective, other: twoway.Effective) -> twoway.Effective:
    """Return the hull of two results."""
    return replace(
        one,
        low=np.minimum(one.low, other.low),
        high=np.maximum(one.high, other.high),
        inner_low=np.minimum(one.inner_low, other.inner_low),
        inner_high=np.maximum(one.inner_high, other.inner_high),
        finished=one.finished and other.finished,
        work=one.work + other.work,
    )
