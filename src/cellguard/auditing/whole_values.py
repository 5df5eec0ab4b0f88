"""Whole values that are not counts: small levels are confirmed by tables of whole numbers.

Attackers know that there are no half employees. Where a level is large, a table of real numbers that shows it kept has
one of whole numbers next to it. Where it is a few units, only tables of whole numbers prove anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cellguard.model.levels import MAX_WHOLE_LEVEL

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.witness import ExactMovements
    from cellguard._types import BoolArray, FloatArray, IntArray
    from cellguard.auditing.finding import Finding
    from cellguard.model.attacker import Attacker
    from cellguard.model.levels import Levels
    from cellguard.model.table import Table

__all__ = ["confirm_whole_values", "find_small_levels"]

Asked = tuple["Attacker", "Levels"]


def find_small_levels(table: Table, need: Levels) -> BoolArray:
    """Return the cells whose levels are a few units of values that are whole, though they are not counts."""
    if not table.whole:
        return np.zeros(len(need.cells), bool)
    small = np.maximum(np.maximum(need.lower, need.upper), need.sliding) <= MAX_WHOLE_LEVEL
    return small & table.whole_cells[need.cells] & ~table.count_cells[need.cells]


def confirm_whole_values(
    table: Table, findings: Sequence[Finding], search: Callable[[list[Asked]], Sequence[Finding]]
) -> list[Finding]:
    """Return the findings in which small levels of whole values are shown by tables of whole numbers.

    `search` looks for such tables. It is asked only for what the witnesses over real numbers do not show.
    """
    whole_rows: dict[int, BoolArray] = {}  # thousands of respondents share their witnesses
    which = [_find_broken(finding, table, whole_rows) for finding in findings]
    asked = [k for k, broken in enumerate(which) if broken.any()]
    if not asked:
        return list(findings)
    found = search([(findings[k].attacker, findings[k].levels.select(which[k])) for k in asked])
    out, joined = list(findings), _Joined()
    for k, whole in zip(asked, found, strict=True):
        out[k] = _take_over(findings[k], whole, np.flatnonzero(which[k]), joined)
    return out


def _find_broken(finding: Finding, table: Table, whole_rows: dict[int, BoolArray]) -> BoolArray:
    """Return the small levels that are shown, but not by tables of whole numbers.

    `whole_rows` remembers, for each set of witnesses, which of them are whole.
    """
    small = finding.safe & find_small_levels(table, finding.levels)
    if not small.any() or finding.witnesses is None:
        return small
    known = id(finding.witnesses)
    if known not in whole_rows:  # -1 is the true table
        whole_rows[known] = np.append(_find_whole_rows(finding.witnesses, table.whole_cells), True)
    is_whole = whole_rows[known]
    shown = np.ones(len(small), bool)
    for rows, shares in zip((finding.low_witness, finding.high_witness), finding.shares, strict=True):
        complete = np.ones(len(small), bool) if shares is None else (shares == 1.0) | (rows < 0)
        shown &= is_whole[rows] & complete
    return small & ~shown


def _find_whole_rows(witnesses: ExactMovements, whole: BoolArray) -> BoolArray:
    """Return which movements are whole numbers in every cell that is known to be whole."""
    k = witnesses.numerators
    broken = whole[k.indices] & (k.data % witnesses.denominator[k.indices] != 0)
    row = np.repeat(np.arange(k.shape[0]), np.diff(k.indptr))
    out: BoolArray = np.bincount(row[broken], minlength=k.shape[0]) == 0
    for number, moved in witnesses.careful.items():
        out[number] &= all(by.denominator == 1 for cell, by in moved.items() if whole[cell])
    return out


class _Joined:
    """Witnesses of several searches as one list, once for all attackers that share them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ExactMovements | None, ExactMovements, int]] = {}

    def join(self, first: ExactMovements | None, more: ExactMovements) -> tuple[ExactMovements, int]:
        """Return both, and where the second begin."""
        if id(first) not in self._known:
            both = more if first is None else first.append_movements(more)
            self._known[id(first)] = first, both, 0 if first is None else first.numerators.shape[0]
        return self._known[id(first)][1:]


def _take_over(finding: Finding, whole: Finding, at: IntArray, joined: _Joined) -> Finding:
    """Return a finding with the verdicts and witnesses of the search over whole numbers for some of its cells."""
    safe, unsafe, exact = finding.safe.copy(), finding.unsafe.copy(), finding.exact.copy()
    safe[at], unsafe[at] = whole.safe, whole.unsafe
    exact[at] |= whole.exact
    changed = replace(
        finding, safe=safe, unsafe=unsafe, exact=exact, disclosed=np.union1d(finding.disclosed, whole.disclosed),
        programs=finding.programs + whole.programs,
    )  # fmt: skip
    if whole.witnesses is None:
        return changed
    witnesses, begin = joined.join(finding.witnesses, whole.witnesses)
    rows, shares = [], []
    for old, new, share in zip(
        (finding.low_witness, finding.high_witness), (whole.low_witness, whole.high_witness), finding.shares,
        strict=True,
    ):  # fmt: skip
        row = old.copy()
        row[at] = np.where(new < 0, -1, begin + new)
        rows.append(row)
        shares.append(_use_whole(share, at))
    return replace(
        changed, witnesses=witnesses, low_witness=rows[0], high_witness=rows[1], shares=(shares[0], shares[1])
    )


def _use_whole(share: FloatArray | None, at: IntArray) -> FloatArray | None:
    """Return shares of which some are all of the way."""
    if share is None:
        return None
    out = share.copy()
    out[at] = 1.0
    return out
