"""Cells that an adjusted table publishes unchanged must not disclose sensitive ones to any attacker."""

from __future__ import annotations

from cellguard.auditing.adjusted import view_as_pattern
from cellguard.auditing.audit import audit
from cellguard.model.table import Table

__all__ = ["explain_unchanged_cells"]

MAX_NAMED_CELLS = 3
"""Maximum number of cells that an explanation names."""


def explain_unchanged_cells(table: Table, time_limit_s: float) -> str | None:
    """Explain why no adjusted table is safe because of its fixed and kept cells; None if they are harmless."""
    pattern = view_as_pattern(table, table.values)
    if pattern is None or not table.sensitive.any():
        return None
    found = audit(pattern, time_limit_s=time_limit_s)
    if found.safe:
        return None
    cells = found.unsafe_cells.tolist()
    named = ", ".join(table.label(cell) for cell in cells[:MAX_NAMED_CELLS])
    more = f" and {len(cells) - MAX_NAMED_CELLS} more" if len(cells) > MAX_NAMED_CELLS else ""
    return (
        f"cells that stay unchanged (fixed or kept) disclose {named}{more}, to every attacker or to a contributor, "
        "regardless of the other cells. Keep fewer totals, or use another method."
    )
