"""A method's own check: the audit sees a release before it is returned, and what it misses is asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cellguard._types import IntArray
from cellguard.check.read_release import check_release_to_audit
from cellguard.methods.cross import audit_what_method_planned
from cellguard.methods.demands import demanded_levels
from cellguard.methods.limits import Limits
from cellguard.nouns.levels import Levels
from cellguard.nouns.release import Release

__all__ = ["ATTEMPTS", "cells_not_confirmed", "levels_raised_to_confirm"]

ATTEMPTS = 4
"""Releases that are given to the audit before a method gives up."""
_MARGIN = 1e-5
"""Share of a level by which programs must exceed it where they missed it by their tolerance."""


def cells_not_confirmed(release: Release, limits: Limits) -> list[IntArray]:
    """Return the cells that the audit does not accept, attacker by attacker; nothing where it accepts all.

    Programs in floating point meet a level up to their tolerance, and with fractions where only whole
    numbers are possible; the audit does not. What it cannot decide within the limits counts as missed.
    """
    if not any(len(need.cells) for need in demanded_levels(release.table)):
        check_release_to_audit(release)
        return []
    found = audit_what_method_planned(release, everywhere=False, time_limit_s=limits.last_word.at_least())
    cells = [finding.cells[~finding.safe] for finding in found.findings]
    return cells if any(len(some) for some in cells) else []


def levels_raised_to_confirm(
    needs: Sequence[Levels], cells: Sequence[IntArray], *, integer: bool
) -> tuple[Levels, ...]:
    """Ask for a little more than what an audit missed: a whole number of a count, a small share of anything else."""
    out = []
    for need, which in zip(needs, cells, strict=True):
        more = {}
        for side in ("lower", "upper", "sliding"):
            level = getattr(need, side)
            wider = level + 1.0 if integer else level * (1 + _MARGIN)
            more[side] = np.where(np.isin(need.cells, which) & (level > 0), wider, level)
        out.append(replace(need, **more))
    return tuple(out)
