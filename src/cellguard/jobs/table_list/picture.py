"""The picture of a plan: a box for each cluster, in it a box for each table with its parts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cellguard.jobs.report.drawing import INK, MUTED

if TYPE_CHECKING:
    from cellguard.jobs.table_list.plan import MergedTable, TablePlan

__all__ = ["draw_plan"]

_WIDTH = 640
"""Width of the picture, in pixels."""
_LINE = 18
"""Height of a line, in pixels."""
_PAD = 12
"""Space around the text, in pixels."""


def draw_plan(plan: TablePlan) -> str:
    """Return the plan as SVG."""
    parts, y = [], _PAD
    for name, tables in plan.clusters.items():
        boxes, bottom = [], y + _LINE + _PAD
        for table in tables:
            box, bottom = _draw_table(table, bottom)
            boxes.append(box)
        height = bottom - y
        parts.append(
            f'<rect x="{_PAD}" y="{y}" width="{_WIDTH - 2 * _PAD}" height="{height}" rx="6" {_draw_edge(MUTED)}/>'
        )
        parts.append(_draw_text(2 * _PAD, y + _LINE, name, bold=True))
        parts += boxes
        y = bottom + _PAD
    view = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}"'
    counted = plan.summary()
    title = f"{counted['listed']} tables become {counted['tables']} in {len(counted['clusters'])} clusters"
    return f'<svg {view} role="img"><title>{title}</title>{"".join(parts)}</svg>\n'


def _draw_table(table: MergedTable, y: int) -> tuple[str, int]:
    """Return the box of a table, and where the next one begins."""
    crossed = " x ".join("/".join(variables) for variables in table.dimensions.values())
    lines = [table.name, crossed]
    if len(table.indicators) > 1:
        lines.append(", ".join(table.indicators))
    height = _LINE * len(lines) + _PAD
    box = f'<rect x="{2 * _PAD}" y="{y}" width="{_WIDTH - 4 * _PAD}" height="{height}" rx="4" {_draw_edge(INK)}/>'
    texts = [_draw_text(3 * _PAD, y + _LINE * (k + 1), line) for k, line in enumerate(lines)]
    return box + "".join(texts), y + height + _PAD


def _draw_edge(colour: str) -> str:
    return f'fill="none" stroke="{colour}"'


def _draw_text(x: int, y: int, text: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    short = text if len(text) <= 84 else f"{text[:83]}…"
    return f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="13" fill="{INK}"{weight}>{escape(short)}</text>'
