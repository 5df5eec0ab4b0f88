"""What a report says of a publication: its tables, what they share, and in which tables a withheld cell stands.

Codes and layouts are public; which withheld cell is sensitive is not, and is told here in the internal version only.
"""

from __future__ import annotations

from html import escape
from math import cos, log1p, pi, sin, sqrt
from typing import Any

import numpy as np

from cellguard.nouns.distinct_cells import clusters
from cellguard.nouns.publication import Part, cells_shared_in_publication
from cellguard.nouns.release import Intervals, Release, Suppression
from cellguard.publish.report.content import Content
from cellguard.publish.report.drawing import INK, MUTED
from cellguard.publish.report.pictures import CHANGED, SAFE

__all__ = ["anchor_in_report", "clusters_drawn_in_report", "linked_tables_in_report"]

_MOST_ROWS = 300
"""So many withheld cells are listed; the files of the release have all."""
_MOST_NODES = 60
"""A cluster with more tables is drawn by its largest ones."""
_RING = 150.0
_LABELLED = 12
"""Up to so many tables the number of shared cells stands beside each line."""


def anchor_in_report(name: str) -> str:
    """Return where a table stands in the page.

    >>> anchor_in_report("activity by size")
    'table-activity-by-size'
    """
    return "table-" + "".join(c if c.isalnum() else "-" for c in name)


def linked_tables_in_report(content: Content, *, public: bool) -> dict[str, Any]:
    """Return what the template shows of a publication; nothing for a single table."""
    release = content.release
    parts = release.table.parts
    if not parts:
        return {}
    _, names = clusters(release.table, parts)
    shared = cells_shared_in_publication(parts)
    standing, more = _shared_cells_in_report(release, parts)
    return {
        "several_indicators": len({part.indicator for part in parts}) > 1,
        "index": _rows_of_report_index(release, parts, names, public=public and not content.primaries_shown),
        "clusters": len(names),
        "clusters_picture": clusters_drawn_in_report(parts, names, shared) if shared else "",
        "shared": sum(shared.values()),
        "standing": standing,
        "standing_more": more,
    }


def _rows_of_report_index(
    release: Release, parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...], *, public: bool
) -> list[dict[str, Any]]:
    """Return a row for each table: what it shows, its size, what is withheld in it, its cluster."""
    cluster = {name: k + 1 for k, cluster in enumerate(names) for name in cluster}
    rows = []
    for part in parts:
        figures: dict[str, int] = {"cells": part.table.n_cells}
        if isinstance(release, Suppression):
            if public:
                figures["withheld"] = int(release.suppressed[part.cells].sum())
            else:
                figures["primary"] = int(release.primary[part.cells].sum())
                figures["secondary"] = int(release.secondary[part.cells].sum())
        elif isinstance(release, Intervals):
            figures["intervals"] = int((release.upper > release.lower)[part.cells].sum())
        where = ", ".join(f"{d} {code}" for d, code in part.where.items())
        rows.append(
            {
                "name": part.name,
                "anchor": anchor_in_report(part.name),
                "dimensions": " × ".join(part.table.dimensions) + (f" ({where})" if where else ""),
                "indicator": part.indicator,
                "figures": {what: f"{n:,}" for what, n in figures.items()},
                "cluster": cluster[part.name],
            }
        )
    return rows


def _shared_cells_in_report(release: Release, parts: tuple[Part, ...]) -> tuple[list[tuple[str, list[str]]], int]:
    """Return withheld cells that stand in several tables, with these tables, and how many more there are."""
    if not isinstance(release, Suppression):
        return [], 0
    tables = np.zeros(release.table.n_cells, np.int64)
    for part in parts:
        tables[part.cells] += 1
    cells = np.flatnonzero(release.suppressed & (tables > 1))
    shown = cells[:_MOST_ROWS]
    where: dict[int, list[str]] = {int(cell): [] for cell in shown}
    for part in parts:
        for cell in np.intersect1d(part.cells, shown).tolist():
            where[cell].append(part.name)
    return [(_reported_name_of_cell(release, cell), names) for cell, names in where.items()], len(cells) - len(shown)


def _reported_name_of_cell(release: Release, cell: int) -> str:
    codes = zip(release.table.codes_of(cell).items(), release.table.codes, strict=True)
    told = [f"{d} {code}" for (d, code), known in codes if code != known[0] or d == "indicator"]
    return ", ".join(told) or "the total of all"


# ---------------------------------------------------------------- the picture


def clusters_drawn_in_report(
    parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...], shared: dict[tuple[str, str], int]
) -> str:
    """Draw tables as nodes and shared cells as edges, a ring for each cluster of several tables."""
    size = {part.name: part.table.n_cells for part in parts}
    several = [cluster for cluster in names if len(cluster) > 1]
    drawn = [_drawing_of_cluster_ring(cluster, size, shared) for cluster in several]
    x = y = row = width = 0.0
    placed = []
    for body, w, h in drawn:
        if x and x + w > 1080:
            x, y, row = 0.0, y + row + 20, 0.0
        placed.append(f'<g transform="translate({x:.0f} {y:.0f})">{body}</g>')
        x, row = x + w + 20, max(row, h)
        width = max(width, x)
    note = ""
    if alone := len(names) - len(several):
        y, row = y + row + 24, 10.0
        noun = "table shares" if alone == 1 else "tables share"
        note = f'<text x="4" y="{y:.0f}" fill="{MUTED}" font-size="12">{alone} {noun} nothing</text>'
    height = y + row + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(width, 200):.0f} {height:.0f}" '
        f'width="{max(width, 200):.0f}" height="{height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif" '
        f'role="img" aria-label="Tables that share cells">{"".join(placed)}{note}</svg>'
    )


def _drawing_of_cluster_ring(
    cluster: tuple[str, ...], size: dict[str, int], shared: dict[tuple[str, str], int]
) -> tuple[str, float, float]:
    """Draw one cluster: its tables on a ring in the order of the publication. Returns the drawing and its size."""
    largest = set(sorted(cluster, key=lambda name: -size[name])[:_MOST_NODES])
    order = [name for name in cluster if name in largest]
    radius = max(_RING if len(order) <= _LABELLED else 9.0 * len(order), 70.0)
    turn = -pi / 2 + (pi / len(order) if len(order) % 2 == 0 else 0.0)  # an even ring stands on its side
    angles = [2 * pi * k / len(order) + turn for k in range(len(order))]
    left, top = min(map(cos, angles)) * radius - 190.0, min(map(sin, angles)) * radius - 40.0
    at = {name: (radius * cos(a) - left, radius * sin(a) - top) for name, a in zip(order, angles, strict=True)}
    cx, cy = -left, -top
    most, most_cells = max(shared.values()), max(size[name] for name in order)
    lines, marks, nodes = [], [], []
    for (a, b), n in shared.items():
        if a in at and b in at:
            (x1, y1), (x2, y2) = at[a], at[b]
            wide = 1.0 + 5.0 * log1p(n) / log1p(most)
            title = f"<title>{escape(a)} and {escape(b)}: {n:,} cells</title>"
            lines.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{CHANGED}" '
                f'stroke-opacity="0.35" stroke-width="{wide:.1f}">{title}</line>'
            )
            if len(order) <= _LABELLED:  # a third of the way: in the middle lines cross
                mx, my = x1 + 0.36 * (x2 - x1), y1 + 0.36 * (y2 - y1)
                marks.append(
                    f'<text x="{mx:.1f}" y="{my + 4:.1f}" text-anchor="middle" font-size="11" fill="{INK}" '
                    f'stroke="#fff" stroke-width="3" paint-order="stroke">{n:,}</text>'
                )
    for name, (x, y) in at.items():
        r = 5.0 + 9.0 * sqrt(size[name] / most_cells)
        side = "start" if x > cx + 1 else "end" if x < cx - 1 else "middle"
        dx = 0.0 if side == "middle" else (r + 6 if side == "start" else -r - 6)
        dy = 4.0 if side != "middle" else (-r - 8 if y < cy else r + 16)
        short = name if len(name) <= 26 else name[:25] + "…"
        title = f"<title>{escape(name)}: {size[name]:,} cells</title>"
        nodes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{SAFE}">{title}</circle>')
        nodes.append(
            f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{side}" font-size="12" fill="{INK}">'
            f"{escape(short)}</text>"
        )
    if more := len(cluster) - len(order):
        nodes.append(
            f'<text x="{cx:.0f}" y="{cy:.0f}" text-anchor="middle" font-size="12" fill="{INK}">'
            f"and {more} smaller tables</text>"
        )
    width, height = (max(place) for place in zip(*at.values(), strict=True))
    return "".join([*lines, *marks, *nodes]), width + 190.0, height + 40.0
