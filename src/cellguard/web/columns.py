"""What the page Data shows of a file: its columns, examples of codes, and what each was taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError
from cellguard.publish.columns import Column, look
from cellguard.publish.guess import Guess, guess

__all__ = ["column_facts", "ready_table"]

_EXAMPLES = 6
_MOST_CODES = 400
"""Codes of a hierarchy that somebody may want to draw by hand."""
_COUNTS = ("n_obs", "nobs", "count", "freq", "contributors", "number", "n")
_LARGEST = ("max", "top", "largest")


def column_facts(path: Path) -> dict[str, Any]:
    """Return what can be said of the columns of a file; never an entry of an amount or of who answered."""
    columns, rows = look(path)
    found = guess(columns)
    return {"rows": rows, "columns": [_facts(c, found) for c in columns], "added_up": found.added_up}


def _facts(column: Column, found: Guess) -> dict[str, Any]:
    shared = column.name in {name for d in found.dimensions for name in (d.column.name, *d.levels)}
    codes = shared and (not column.numeric or column.digits)  # other numbers may be amounts
    roles = {found.value: "value", found.weight: "weight", found.holding: "holding"}
    level_of = next((d.column.name for d in found.dimensions if column.name in d.levels[:-1]), None)
    return {
        "name": column.name,
        "numeric": column.numeric,
        "whole": column.whole,
        "digits": column.digits,
        "distinct": column.distinct,
        "gaps": column.gaps,
        "examples": list(column.codes[:_EXAMPLES]) if codes else [],
        "codes": list(column.codes) if codes and column.distinct <= _MOST_CODES else [],
        "role": "dimension" if any(d.column.name == column.name for d in found.dimensions) else roles.get(column.name),
        "level_of": level_of,
        "why": found.why.get(column.name, ""),
    }


def ready_table(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Guess the columns of a table that is already added up: dimensions, value, count, largest contribution."""
    columns, _ = look(path)
    numeric = [c.name for c in columns if c.numeric]
    dimensions = [c.name for c in columns if not c.numeric]
    if not dimensions or not numeric:
        raise InputError(f"{path.name}: a ready table has columns of codes and a column of values.")
    count = next((name for name in numeric if name.lower() in _COUNTS), None)
    top = [name for name in numeric if name.lower().startswith(_LARGEST)]
    value = next((name for name in numeric if name != count and name not in top), numeric[0])
    stem = path.name.partition(".")[0]
    entry = {"name": stem, "dimensions": dimensions, "value": value, "count": count, "top": top}
    return {k: v for k, v in entry.items() if v}, dimensions
