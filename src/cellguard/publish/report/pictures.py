"""The pictures of a report, as SVG that is the same for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cellguard._types import FloatArray
from cellguard.check.audit import Audit, Finding
from cellguard.nouns.attacker import EXTERNAL
from cellguard.nouns.table import Table
from cellguard.publish.report.drawing import Axis, Canvas, text_width_in_drawing

__all__ = ["drawing_of_bars", "drawing_of_positions", "drawing_of_ranges", "drawing_of_shares", "reported_findings"]

PRIMARY, SECONDARY, CHANGED, SAFE = "#c8553d", "#e0a526", "#3a7ca5", "#5b8c5a"
_LIMIT = 150.0
"""Ranges are shown up to this percentage of the value on either side."""
_ROW = 25.0
"""The height of a line of a list."""


def cell_label_in_report(table: Table, cell: int) -> str:
    """Name a cell by its codes alone, totals left out."""
    if not table.dimensions:
        return f"cell {cell}"
    told = [code for code, known in zip(table.codes_of(cell).values(), table.codes, strict=True) if code != known[0]]
    text = " · ".join(told) or "Total"
    return text if len(text) <= 44 else text[:43] + "…"


def drawing_of_ranges(table: Table, audit: Audit, *, most: int = 30) -> str:
    """Draw what attackers can compute of the sensitive cells, against what they must not: the tightest cells first."""
    rows = sorted(
        (row for found in reported_findings(audit) for row in _tightest_ranges_in_drawing(table, found, most)),
        key=lambda row: row[:2],
    )
    rows = rows[:most]
    top, left = 34.0, 14 + max((text_width_in_drawing(row[1]) for row in rows), default=0.0)
    bottom = top + _ROW * len(rows)
    canvas = Canvas(912, bottom + 44, "what an attacker can compute of the sensitive cells")
    canvas.legend([("what an attacker can compute", CHANGED), ("must stay possible", SECONDARY)], 16)
    shown = [np.clip(row[2:], -_LIMIT, _LIMIT) for row in rows]
    widest = max((float(np.abs(ends).max()) for ends in shown), default=0.0) or 1.0
    x = Axis((-widest, widest), (left, canvas.width - 12))
    for k, (row, ends) in enumerate(zip(rows, shown, strict=True)):
        y = top + _ROW * (k + 0.5)
        lo, hi, down, up = (x(float(end)) for end in ends)
        canvas.text((left - 8, y + 4), row[1], "end")
        canvas.line((down, y), (up, y), SECONDARY, 9)
        canvas.line((lo, y), (hi, y), CHANGED, 2.5)
        if row[3] > _LIMIT:
            canvas.arrow((hi + 4, y), -9, CHANGED)
        if row[2] < -_LIMIT:
            canvas.arrow((lo - 4, y), 9, CHANGED)
    canvas.line((x(0), top), (x(0), bottom), PRIMARY, 1.5)
    x.draw_below(canvas, bottom, "per cent of the true value (red line: the truth)")
    return canvas.svg()


def reported_findings(audit: Audit) -> list[Finding]:
    """Return the findings with exact ranges: of respondents only verdicts are computed."""
    return [found for found in audit.findings if not found.attacker.derived]


def _tightest_ranges_in_drawing(
    table: Table, found: Finding, most: int
) -> list[tuple[float, str, float, float, float, float]]:
    """Return the cells of one attacker with the least to spare: slack, label, range and levels in per cent."""
    a = table.values[found.cells]
    size = np.where(a != 0, np.abs(a), np.maximum(found.levels.sliding, 1e-100))  # a zero is measured by its width
    low, high = 100 * (found.low - a) / size, 100 * (found.high - a) / size
    down, up = -100 * found.levels.lower / size, 100 * found.levels.upper / size
    slack = np.minimum(np.abs(low) - np.abs(down), high - up)
    chosen = np.argsort(slack, kind="stable")[:most]
    columns = (x[chosen].tolist() for x in (slack, low, high, down, up))
    whose = "" if found.attacker.name == EXTERNAL.name else f", {found.attacker.name}"
    labels = [cell_label_in_report(table, int(c)) + whose for c in found.cells[chosen]]
    return [(s, label, lo, hi, d, u) for label, s, lo, hi, d, u in zip(labels, *columns, strict=True)]


def drawing_of_positions(table: Table, audit: Audit) -> str:
    """Draw where the truth lies in the attackers' ranges: 0 is the lower end, 1 the upper."""
    place: list[FloatArray] = [np.zeros(0)]
    for found in reported_findings(audit):
        width = found.high - found.low
        fits = np.isfinite(width) & (width > 0)
        place.append((table.values[found.cells][fits] - found.low[fits]) / width[fits])
    x, y = "position of the truth in its range", "sensitive cells"
    counts, ends = np.histogram(np.clip(np.concatenate(place), 0.0, 1.0), bins=20, range=(0.0, 1.0))
    canvas = Canvas(595, 268, f"{y} by {x}")
    most = max(int(counts.max()), 1)
    across = Axis((0.0, 1.0), (28 + text_width_in_drawing(f"{most:,}"), 583))
    up = Axis((0, most), (224, 26), whole=True)
    for count, low, high in zip(counts.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if count:
            canvas.box((across(low) + 0.5, up(count)), (across(high) - across(low) - 1, up(0) - up(count)), CHANGED)
    across.draw_below(canvas, 224, x)
    up.draw_left(canvas, across.start, y)
    return canvas.svg()


def drawing_of_bars(figures: Mapping[str, float], x: str) -> str:
    """Draw a bar for each of the first 20 names, in the order given."""
    rows = [(n if len(n) <= 40 else n[:39] + "…", v) for n, v in list(figures.items())[:20]]
    labels = [f"{value:,.3g}" for _, value in rows]
    left = 14 + max((text_width_in_drawing(name) for name, _ in rows), default=0.0)
    room = 14 + max((text_width_in_drawing(label, 11) for label in labels), default=0.0)
    bottom = 6 + _ROW * len(rows)
    canvas = Canvas(518, bottom + 44, x)
    across = Axis((0, max((v for _, v in rows), default=0.0) or 1.0), (left, canvas.width - room), whole=True)
    for k, ((name, value), label) in enumerate(zip(rows, labels, strict=True)):
        y = 6 + _ROW * (k + 0.5)
        canvas.text((left - 8, y + 4), name, "end")
        canvas.box((left, y - 8), (across(value) - left, 16), PRIMARY)
        canvas.text((across(value) + 5, y + 4), label, size=11)
    across.draw_below(canvas, bottom, x)
    return canvas.svg()


def drawing_of_shares(parts: Sequence[tuple[str, int, str]]) -> str:
    """Draw how the cells divide: one bar, a piece for each part with its name and share."""
    total = max(sum(count for _, count, _ in parts), 1)
    canvas = Canvas(912, 116, "how the cells divide")
    canvas.legend([(f"{name}: {count:,} ({100 * count / total:.1f}%)", colour) for name, count, colour in parts], 18)
    across = Axis((0, 100), (22, canvas.width - 22))
    left = across.start
    for _, count, colour in parts:
        width = count / total * (across.end - across.start)
        canvas.box((left, 34), (width, 34), colour)
        left += width
    across.draw_below(canvas, 72, "per cent of the cells")
    return canvas.svg()
