"""What the page Data shows of a file: its columns, examples of codes, and what each was taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cellguard.publish.columns import Column, columns_to_guess_from
from cellguard.publish.guess import Guess, guess

__all__ = ["columns_for_browser"]

_EXAMPLES = 6
_MOST_CODES = 400
"""Codes of a hierarchy that somebody may want to draw by hand."""


def columns_for_browser(path: Path) -> dict[str, Any]:
    """Return what can be said of the columns of a file; never an entry of an amount or of who answered."""
    columns, rows = columns_to_guess_from(path)
    found = guess(columns)
    return {"rows": rows, "columns": [_column_for_browser(c, found) for c in columns], "added_up": found.added_up}


def _column_for_browser(column: Column, found: Guess) -> dict[str, Any]:
    nested = next((d for d in found.dimensions if column.name in d.levels), None)
    shared = nested is not None or any(d.column.name == column.name for d in found.dimensions)
    # other numbers may be amounts, even where they nest in one column, as employees do in classes of size
    codes = shared and (not column.numeric or column.digits or (nested is not None and len(nested.levels) > 2))
    roles = {found.value: "value", found.weight: "weight", found.holding: "holding"}
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
        "levels": list(nested.levels) if nested is not None and nested.column.name == column.name else [],
        "why": found.why.get(column.name, ""),
    }
