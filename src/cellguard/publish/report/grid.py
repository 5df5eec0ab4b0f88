"""The tables of a report: what everybody reads, and in the internal version what only the office may know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cellguard.check.audit import Audit
from cellguard.nouns.figures import figure_with_decimals
from cellguard.nouns.grid import Cell, GridPage, figures_of_table, grid_texts_of_release, grids_of_table
from cellguard.nouns.release import Suppression
from cellguard.nouns.table import Table
from cellguard.publish.report.content import Content
from cellguard.publish.report.pictures import reported_findings

__all__ = ["grids_of_report"]

_NAMED = 5
"""So many respondents are named where a cell is not safe against them."""


def grids_of_report(content: Content, *, public: bool) -> Iterator[GridPage]:
    """Yield the tables of a release, one grid for each slice."""
    yield from grids_of_table(content.release.table, _cells_of_report(content, public=public), content.views)


def _cells_of_report(content: Content, *, public: bool) -> list[Cell]:
    release = content.release
    texts, kinds = grid_texts_of_release(release, mark_primary=content.primaries_shown or not public)
    if public:
        return [Cell(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    truth, notes = figures_of_table(release.table, release.table.values), _notes_on_report_cells(content)
    withheld = isinstance(release, Suppression)
    shown = [
        text if text == true or kind == "empty" else true if withheld else f"{text} ({true})"
        for text, true, kind in zip(texts, truth, kinds, strict=True)
    ]
    return [Cell(text, kind, note) for text, kind, note in zip(shown, kinds, notes, strict=True)]


def _notes_on_report_cells(content: Content) -> list[str]:
    """Say of each cell what only the office may know: the truth, the reasons, the range."""
    table = content.release.table
    point = content.release.point_values()
    notes = []
    for i, value in enumerate(table.values.tolist()):
        changed = point[i] != value or table.sensitive[i]
        reasons = "; ".join(table.reasons(i)) if table.sensitive[i] else ""
        notes.append(
            f"true value {figure_with_decimals(value)}" + (f". {reasons}" if reasons else "") if changed else ""
        )
    if content.audit is not None:
        for found in reported_findings(content.audit):
            for cell, low, high in zip(found.cells.tolist(), found.low, found.high, strict=True):
                if np.isfinite(low) and np.isfinite(high):
                    limits = f"{figure_with_decimals(low)} to {figure_with_decimals(high)}"
                    notes[cell] += f". Range against {found.attacker.name}: {limits}"
        for cell, told in _respondents_in_report_notes(table, content.audit):
            notes[cell] += f". {told}"
    return notes


def _respondents_in_report_notes(table: Table, audit: Audit) -> Iterator[tuple[int, str]]:
    """Say of each cell how many respondents are asked about, and who of them is not shown to be held off."""
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
            yield cell, f"{left:,} respondent{'' if left == 1 else 's'} can compute no more than its levels allow"
