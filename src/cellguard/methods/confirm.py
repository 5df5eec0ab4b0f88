"""A method's own check: the audit sees a release before it is returned, and what it misses is asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.check.read_release import check_release
from cellguard.methods.limits import Limits
from cellguard.nouns.levels import Levels, attackers_of, required_levels
from cellguard.nouns.release import Release

__all__ = ["ATTEMPTS", "missed", "raised"]

ATTEMPTS = 4
"""Releases that are given to the audit before a method gives up."""
_MARGIN = 1e-5
"""Share of a level by which programs must exceed it where they missed it by their tolerance."""


def missed(release: Release, limits: Limits) -> list[IntArray]:
    """Return the cells that the audit does not accept, attacker by attacker.

    Programs in floating point meet a level up to their tolerance, and with fractions where only whole
    numbers are possible; the audit does not. What it cannot decide within the limits counts as missed.
    """
    table = release.table
    if not any(len(required_levels(table, attacker).cells) for attacker in attackers_of(table)):
        check_release(release)
        return []
    found = release.audit(everywhere=False, time_limit_s=limits.last_word.at_least())
    return [finding.cells[~finding.safe] for finding in found.findings]


def raised(needs: Sequence[Levels], cells: Sequence[IntArray], *, integer: bool) -> tuple[Levels, ...]:
    """Ask for a little more than what an audit missed: a whole number of a count, a small share of anything else."""

    def more(level: FloatArray, which: IntArray, need: Levels) -> FloatArray:
        wider = level + 1.0 if integer else level * (1 + _MARGIN)
        return np.where(np.isin(need.cells, which) & (level > 0), wider, level)

    return tuple(
        replace(
            need,
            lower=more(need.lower, which, need),
            upper=more(need.upper, which, need),
            sliding=more(need.sliding, which, need),
        )
        for need, which in zip(needs, cells, strict=True)
    )
