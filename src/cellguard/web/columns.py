"""What the page Data shows of a file: its columns, examples of codes, and what each was taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cellguard.publish.columns import Column, look
from cellguard.publish.guess import Guess, guess

__all__ = ["column_facts"]

_EXAMPLES = 6


def column_facts(path: Path) -> dict[str, Any]:
    """Return what can be said of the columns of a file; never an entry of an amount or of who answered."""
    columns, rows = look(path)
    found = guess(columns)
    return {"rows": rows, "columns": [_facts(c, found) for c in columns], "added_up": found.added_up}


def _facts(column: Column, found: Guess) -> dict[str, Any]:
    shared = column.name in {name for d in found.dimensions for name in (d.column.name, *d.levels)}
    roles = {found.value: "value", found.weight: "weight", found.holding: "holding"}
    level_of = next((d.column.name for d in found.dimensions if column.name in d.levels[:-1]), None)
    return {
        "name": column.name,
        "numeric": column.numeric,
        "whole": column.whole,
        "digits": column.digits,
        "distinct": column.distinct,
        "gaps": column.gaps,
        "examples": list(column.codes[:_EXAMPLES]) if shared else [],
        "codes": list(column.codes) if shared and column.distinct <= 400 else [],
        "role": "dimension" if any(d.column.name == column.name for d in found.dimensions) else roles.get(column.name),
        "level_of": level_of,
        "why": found.why.get(column.name, ""),
    }
