"""The pictures of a report as SVG; equal figures give equal SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cellguard._types import FloatArray
from cellguard.auditing.audit import Audit, Finding
from cellguard.jobs.report.drawing import Axis, Canvas, measure_text
from cellguard.model.attacker import EXTERNAL
from cellguard.model.table import Table

__all__ = ["draw_bars", "draw_positions", "draw_ranges", "draw_shares", "select_exact_findings"]

PRIMARY, SECONDARY, CHANGED, SAFE = "#c8553d", "#e0a526", "#3a7ca5", "#5b8c5a"
_LIMIT = 150.0
"""Ranges are drawn up to this percentage of the value on either side."""
_ROW = 25.0
"""Height of a line of a list."""


def format_cell_label(table: Table, cell: int) -> str:
    """Return the label of a cell: its codes, without totals."""
    if not table.dimensions:
        return f"cell {cell}"
    told = [
        code for code, known in zip(table.cell_codes(int(cell)).values(), table.codes, strict=True) if code != known[0]
    ]
    text = " · ".join(told) or "Total"
    return text if len(text) <= 44 else text[:43] + "…"


def draw_ranges(table: Table, audit: Audit, *, most: int = 30) -> str:
    """Draw the attackers' ranges of the sensitive cells against the required levels, the tightest cells first."""
    rows = sorted(
        (row for found in select_exact_findings(audit) for row in _select_tightest_ranges(table, found, most)),
        key=lambda row: row[:2],
    )
    rows = rows[:most]
    top, left = 34.0, 14 + max((measure_text(row[1]) for row in rows), default=0.0)
    bottom = top + _ROW * len(rows)
    canvas = Canvas(912, bottom + 44, "what an attacker can infer about the sensitive cells")
    canvas.draw_legend([("what an attacker can infer", CHANGED), ("must stay possible", SECONDARY)], 16)
    shown = [np.clip(row[2:], -_LIMIT, _LIMIT) for row in rows]
    widest = max((float(np.abs(ends).max()) for ends in shown), default=0.0) or 1.0
    x = Axis((-widest, widest), (left, canvas.width - 12))
    for k, (row, ends) in enumerate(zip(rows, shown, strict=True)):
        y = top + _ROW * (k + 0.5)
        lo, hi, down, up = (x(float(end)) for end in ends)
        canvas.draw_text((left - 8, y + 4), row[1], "end")
        canvas.draw_line((down, y), (up, y), SECONDARY, 9)
        canvas.draw_line((lo, y), (hi, y), CHANGED, 2.5)
        if row[3] > _LIMIT:
            canvas.draw_arrow((hi + 4, y), -9, CHANGED)
        if row[2] < -_LIMIT:
            canvas.draw_arrow((lo - 4, y), 9, CHANGED)
    canvas.draw_line((x(0), top), (x(0), bottom), PRIMARY, 1.5)
    x.draw_below(canvas, bottom, "per cent of the true value (red line: the truth)")
    return canvas.render_svg()


def select_exact_findings(audit: Audit) -> list[Finding]:
    """Return the findings with exact ranges; for respondents the audit computes only verdicts."""
    return [found for found in audit.findings if not found.attacker.derived]


def _select_tightest_ranges(
    table: Table, found: Finding, most: int
) -> list[tuple[float, str, float, float, float, float]]:
    """Return the cells of one attacker with the least slack: slack, label, range and levels in per cent."""
    a = table.values[found.cells]
    size = np.where(a != 0, np.abs(a), np.maximum(found.levels.sliding, 1e-100))  # a zero is scaled by its width
    low, high = 100 * (found.low - a) / size, 100 * (found.high - a) / size
    down, up = -100 * found.levels.lower / size, 100 * found.levels.upper / size
    slack = np.minimum(np.abs(low) - np.abs(down), high - up)
    chosen = np.argsort(slack, kind="stable")[:most]
    columns = (x[chosen].tolist() for x in (slack, low, high, down, up))
    whose = "" if found.attacker.name == EXTERNAL.name else f", {found.attacker.name}"
    labels = [format_cell_label(table, int(c)) + whose for c in found.cells[chosen]]
    return [(s, label, lo, hi, d, u) for label, s, lo, hi, d, u in zip(labels, *columns, strict=True)]


def draw_positions(table: Table, audit: Audit) -> str:
    """Draw the position of the true value in the attackers' ranges: 0 is the lower end, 1 the upper."""
    place: list[FloatArray] = [np.zeros(0)]
    for found in select_exact_findings(audit):
        width = found.high - found.low
        fits = np.isfinite(width) & (width > 0)
        place.append((table.values[found.cells][fits] - found.low[fits]) / width[fits])
    x, y = "position of the truth in its range", "sensitive cells"
    counts, ends = np.histogram(np.clip(np.concatenate(place), 0.0, 1.0), bins=20, range=(0.0, 1.0))
    canvas = Canvas(595, 268, f"{y} by {x}")
    most = max(int(counts.max()), 1)
    across = Axis((0.0, 1.0), (28 + measure_text(f"{most:,}"), 583))
    up = Axis((0, most), (224, 26), whole=True)
    for count, low, high in zip(counts.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if count:
            canvas.draw_box(
                (across(low) + 0.5, up(count)), (across(high) - across(low) - 1, up(0) - up(count)), CHANGED
            )
    across.draw_below(canvas, 224, x)
    up.draw_left(canvas, across.start, y)
    return canvas.render_svg()


def draw_bars(figures: Mapping[str, float], x: str) -> str:
    """Draw a bar for each of the first 20 names, in the order given."""
    rows = [(n if len(n) <= 40 else n[:39] + "…", v) for n, v in list(figures.items())[:20]]
    labels = [f"{value:,.3g}" for _, value in rows]
    left = 14 + max((measure_text(name) for name, _ in rows), default=0.0)
    margin = 14 + max((measure_text(label, 11) for label in labels), default=0.0)
    bottom = 6 + _ROW * len(rows)
    canvas = Canvas(518, bottom + 44, x)
    across = Axis((0, max((v for _, v in rows), default=0.0) or 1.0), (left, canvas.width - margin), whole=True)
    for k, ((name, value), label) in enumerate(zip(rows, labels, strict=True)):
        y = 6 + _ROW * (k + 0.5)
        canvas.draw_text((left - 8, y + 4), name, "end")
        canvas.draw_box((left, y - 8), (across(value) - left, 16), PRIMARY)
        canvas.draw_text((across(value) + 5, y + 4), label, size=11)
    across.draw_below(canvas, bottom, x)
    return canvas.render_svg()


def draw_shares(parts: Sequence[tuple[str, int, str]]) -> str:
    """Draw the shares of the cells as one bar, with a labelled piece for each part."""
    total = max(sum(count for _, count, _ in parts), 1)
    canvas = Canvas(912, 116, "shares of published, withheld and changed cells")
    canvas.draw_legend(
        [(f"{name}: {count:,} ({100 * count / total:.1f}%)", colour) for name, count, colour in parts], 18
    )
    across = Axis((0, 100), (22, canvas.width - 22))
    left = across.start
    for _, count, colour in parts:
        width = count / total * (across.end - across.start)
        canvas.draw_box((left, 34), (width, 34), colour)
        left += width
    across.draw_below(canvas, 72, "per cent of the cells")
    return canvas.render_svg()
