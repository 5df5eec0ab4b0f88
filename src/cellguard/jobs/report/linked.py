"""The section of a report on a publication: its tables, their shared cells, and the tables of each withheld cell.

Codes and layouts are public. Which withheld cells are sensitive is confidential, and only in the internal version.
"""

from __future__ import annotations

from html import escape
from math import cos, log1p, pi, sin, sqrt
from typing import Any

import numpy as np

from cellguard.jobs.report.content import Content
from cellguard.jobs.report.drawing import INK, MUTED
from cellguard.jobs.report.pictures import CHANGED, SAFE
from cellguard.model.linked.distinct_cells import find_clusters
from cellguard.model.linked.publication import Part, count_shared_cells
from cellguard.release.release import Release

__all__ = ["describe_linked_tables", "draw_clusters", "make_anchor"]

_MOST_ROWS = 300
"""Number of withheld cells that are listed; the files of the release have all."""
_MOST_NODES = 60
"""Of a cluster with more tables, only the largest are drawn."""
_RING = 150.0
_LABELLED = 12
"""Largest number of tables for which each line is labelled with the number of shared cells."""


def make_anchor(name: str) -> str:
    """Return the anchor of a table in the page.

    >>> make_anchor("activity by size")
    'table-activity-by-size'
    """
    return "table-" + "".join(c if c.isalnum() else "-" for c in name)


def describe_linked_tables(content: Content, *, public: bool) -> dict[str, Any]:
    """Return the template's data for a publication; nothing for a single table."""
    release = content.release
    parts = release.table.parts
    if not parts:
        return {}
    _, names = find_clusters(release.table, parts)
    shared = count_shared_cells(parts)
    standing, more = _list_shared_cells(release, parts)
    return {
        "several_indicators": len({part.indicator for part in parts}) > 1,
        "index": _build_index_rows(release, parts, names, public=public and not content.primaries_shown),
        "clusters": len(names),
        "clusters_picture": draw_clusters(parts, names, shared) if shared else "",
        "shared": sum(shared.values()),
        "standing": standing,
        "standing_more": more,
    }


def _build_index_rows(
    release: Release, parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...], *, public: bool
) -> list[dict[str, Any]]:
    """Return a row for each table: its content, size, number of withheld cells, and cluster."""
    cluster = {name: k + 1 for k, cluster in enumerate(names) for name in cluster}
    rows = []
    for part in parts:
        figures = {"cells": part.table.n_cells, **release.count_cells(part.cells, mark_primary=not public)}
        where = ", ".join(f"{d} {code}" for d, code in part.where.items())
        rows.append(
            {
                "name": part.name,
                "anchor": make_anchor(part.name),
                "dimensions": " × ".join(part.table.dimensions) + (f" ({where})" if where else ""),
                "indicator": part.indicator,
                "figures": {what: f"{n:,}" for what, n in figures.items()},
                "cluster": cluster[part.name],
            }
        )
    return rows


def _list_shared_cells(release: Release, parts: tuple[Part, ...]) -> tuple[list[tuple[str, list[str]]], int]:
    """Return withheld cells that are in several tables, with these tables, and the number of cells not listed."""
    if not release.withholds_cells:
        return [], 0
    tables = np.zeros(release.table.n_cells, np.int64)
    for part in parts:
        tables[part.cells] += 1
    cells = np.flatnonzero(release.withheld & (tables > 1))
    shown = cells[:_MOST_ROWS]
    where: dict[int, list[str]] = {int(cell): [] for cell in shown}
    for part in parts:
        for cell in np.intersect1d(part.cells, shown).tolist():
            where[cell].append(part.name)
    return [(_name_cell(release, cell), names) for cell, names in where.items()], len(cells) - len(shown)


def _name_cell(release: Release, cell: int) -> str:
    codes = zip(release.table.cell_codes(int(cell)).items(), release.table.codes, strict=True)
    told = [f"{d} {code}" for (d, code), known in codes if code != known[0] or d == "indicator"]
    return ", ".join(told) or "the total of all"


# ---------------------------------------------------------------- the picture


def draw_clusters(
    parts: tuple[Part, ...], names: tuple[tuple[str, ...], ...], shared: dict[tuple[str, str], int]
) -> str:
    """Draw tables as nodes and shared cells as edges, a ring for each cluster of several tables."""
    size = {part.name: part.table.n_cells for part in parts}
    several = [cluster for cluster in names if len(cluster) > 1]
    drawn = [_draw_cluster_ring(cluster, size, shared) for cluster in several]
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


def _draw_cluster_ring(
    cluster: tuple[str, ...], size: dict[str, int], shared: dict[tuple[str, str], int]
) -> tuple[str, float, float]:
    """Draw one cluster: its tables on a ring in the order of the publication. Returns the drawing and its size."""
    largest = set(sorted(cluster, key=lambda name: -size[name])[:_MOST_NODES])
    order = [name for name in cluster if name in largest]
    radius = max(_RING if len(order) <= _LABELLED else 9.0 * len(order), 70.0)
    turn = -pi / 2 + (pi / len(order) if len(order) % 2 == 0 else 0.0)  # an even ring is rotated onto its side
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
            if len(order) <= _LABELLED:  # a third of the way along: lines cross in the middle
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
