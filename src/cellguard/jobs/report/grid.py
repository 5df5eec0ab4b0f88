"""The tables of a report: published content, and in the internal version also confidential notes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cellguard.auditing.audit import Audit
from cellguard.jobs.report.content import Content
from cellguard.jobs.report.pictures import select_exact_findings
from cellguard.model.table import Table
from cellguard.release.figures import format_figure
from cellguard.release.grid import Cell, GridPage, build_grids, format_cells, format_table_figures

__all__ = ["build_report_grids"]

_NAMED = 5
"""Number of respondents that are named where a cell is not safe against them."""


def build_report_grids(content: Content, *, public: bool) -> Iterator[GridPage]:
    """Yield the tables of a release, one grid for each slice."""
    yield from build_grids(content.release.table, _describe_report_cells(content, public=public), content.views)


def _describe_report_cells(content: Content, *, public: bool) -> list[Cell]:
    release = content.release
    texts, kinds = format_cells(release, mark_primary=content.primaries_shown or not public)
    if public:
        return [Cell(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    truth, notes = format_table_figures(release.table, release.table.values), _build_notes(content)
    withheld = release.withholds_cells
    shown = [
        text if text == true or kind == "empty" else true if withheld else f"{text} ({true})"
        for text, true, kind in zip(texts, truth, kinds, strict=True)
    ]
    return [Cell(text, kind, note) for text, kind, note in zip(shown, kinds, notes, strict=True)]


def _build_notes(content: Content) -> list[str]:
    """Return a confidential note for each cell: the true value, the reasons, the range."""
    table = content.release.table
    point = content.release.get_point_values()
    notes = []
    for i, value in enumerate(table.values.tolist()):
        changed = point[i] != value or table.sensitive[i]
        reasons = "; ".join(table.reasons(i)) if table.sensitive[i] else ""
        notes.append(f"true value {format_figure(value)}" + (f". {reasons}" if reasons else "") if changed else "")
    if content.audit is not None:
        for found in select_exact_findings(content.audit):
            for cell, low, high in zip(found.cells.tolist(), found.low, found.high, strict=True):
                if np.isfinite(low) and np.isfinite(high):
                    limits = f"{format_figure(low)} to {format_figure(high)}"
                    notes[cell] += f". Range against {found.attacker.name}: {limits}"
        for cell, told in _describe_respondents(table, content.audit):
            notes[cell] += f". {told}"
    return notes


def _describe_respondents(table: Table, audit: Audit) -> Iterator[tuple[int, str]]:
    """Describe, for each cell, how many respondents were checked, and against which it is not shown safe."""
    derived = [found for found in audit.findings if found.attacker.derived]
    asked = np.zeros(table.n_cells, np.int64)
    seen: dict[int, list[str]] = {}
    for found in derived:
        asked[found.cells] += 1
        for cell in found.cells[~found.safe].tolist():
            seen.setdefault(cell, []).append(found.attacker.name)
    for cell in np.flatnonzero(asked).tolist():
        left = int(asked[cell]) - len(seen.get(cell, ()))
        if cell in seen:
            names, others = seen[cell][:_NAMED], " and others" if len(seen[cell]) > _NAMED else ""
            yield cell, f"Not shown safe against {', '.join(names)}{others}"
        if left:
            who = f"{left:,} respondent{'' if left == 1 else 's'}"
            yield cell, f"{who} cannot infer it more precisely than its levels allow"
