"""Why there is no adjusted table, in the user's labels, without any value."""

from __future__ import annotations

from typing import Any

import numpy as np

from cellguard._types import BoolArray, FloatArray
from cellguard.methods.adjust.conflict import Conflict, find_conflict
from cellguard.methods.adjust.senses import Need
from cellguard.nouns.table import Table

__all__ = ["explain"]

_SHOWN = 8
"""So many relations and cells are named in a sentence; all of them are in the release's details."""


_LONGEST_S = 20.0
"""Seconds after which an explanation may name more than is needed."""


def explain(
    table: Table,
    need: Need,
    up: BoolArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    time_limit_s: float = _LONGEST_S,
) -> tuple[str, dict[str, Any]]:
    """Return a sentence and the details: which relations and cells conflict."""
    if need.stuck.any():
        names = [table.label(int(c)) for c in np.flatnonzero(need.stuck)]
        shown = ", ".join(names[:_SHOWN]) + _more(len(names))
        text = f"the known bounds leave no room for what must be between a sensitive cell and its truth: {shown}."
        return text, {"conflict": {"relations": [], "cells": dict.fromkeys(names, "has no room"), "irreducible": True}}
    conflict = find_conflict(table.relations, *bounds, time_limit_s=min(time_limit_s, _LONGEST_S))
    if conflict is None:
        return "no table was found, though none of the relations and bounds seem to conflict.", {}
    cells = _reasons(table, need, up, conflict)
    relations = [table.relation_label(int(r)) for r in conflict.relations]
    kind = "cannot hold together" if conflict.irreducible else "(perhaps not all of them) cannot hold together"
    parts = []
    if relations:
        parts.append("; ".join(relations[:_SHOWN]) + _more(len(relations)))
    parts.append("; ".join(f"{name} {why}" for name, why in list(cells.items())[:_SHOWN]) + _more(len(cells)))
    text = f"these {kind}: " + ", with ".join(parts) + "."
    return text, {"conflict": {"relations": relations, "cells": cells, "irreducible": conflict.irreducible}}


def _more(n: int) -> str:
    return f" (and {n - _SHOWN} more)" if n > _SHOWN else ""


def _reasons(table: Table, need: Need, up: BoolArray, conflict: Conflict) -> dict[str, str]:
    """Say of each cell in the conflict what holds it."""
    lower, upper = set(conflict.lower.tolist()), set(conflict.upper.tolist())
    reasons = {}
    for cell in sorted(lower | upper):
        if table.fixed[cell]:
            why = "is fixed"
        elif need.cells[cell]:
            rises = bool(up[cell])
            by_level = cell in (lower if rises else upper)
            by_bound = cell in (upper if rises else lower)
            way = f"must {'rise' if rises else 'fall'} by its level"
            known = f"cannot pass its known {'upper' if rises else 'lower'} bound"
            why = f"{way} and {known}" if by_level and by_bound else way if by_level else known
        else:
            sides = " and ".join(name for name, side in (("lower", lower), ("upper", upper)) if cell in side)
            why = f"cannot pass its known {sides} bound{'s' if ' and ' in sides else ''}"
        reasons[table.label(cell)] = why
    return reasons
