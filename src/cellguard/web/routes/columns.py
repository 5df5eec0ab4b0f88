"""The columns of a file for the page Data, with examples of codes and guessed roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cellguard.jobs.proposal.columns import Column, sample_columns
from cellguard.jobs.proposal.guess import Guess, guess

__all__ = ["describe_columns"]

_EXAMPLES = 6
_MOST_CODES = 400
"""Largest number of codes for which a user may want to draw a hierarchy by hand."""


def describe_columns(path: Path) -> dict[str, Any]:
    """Describe the columns of a file, without entries of amounts or of columns that identify respondents."""
    columns, rows = sample_columns(path)
    found = guess(columns)
    return {"rows": rows, "columns": [_describe_browser_column(c, found) for c in columns], "added_up": found.added_up}


def _describe_browser_column(column: Column, found: Guess) -> dict[str, Any]:
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
