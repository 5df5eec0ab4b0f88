"""Draw objects in a notebook as small HTML tables. A release shows only what its readers see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.release.figures import format_short_figure
from cellguard.release.grid import Cell, GridPage, build_grids, describe_cells, format_table_figures

if TYPE_CHECKING:
    from cellguard.model.hierarchy import Hierarchy
    from cellguard.model.linked.publication import Publication
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["draw_figures", "draw_hierarchy", "draw_publication", "draw_release", "draw_table"]

_MAX_ROWS = 30
"""Maximum number of rows of a table in a notebook; files and reports have the rest."""
_MAX_COLUMNS = 12
"""Maximum number of its columns."""
_MAX_GRIDS = 2
"""Maximum number of grids of a table in a notebook."""
_COLOURS = {
    "primary": "#f3c6bb",
    "withheld": "#f7e2ae",
    "interval": "#d3e4f2",
    "changed": "#d3e4f2",
    "sensitive": "#f3c6bb",
}
_WORDS = {"withheld": "x: withheld", "empty": "–: no contributors", "sensitive": "coloured: sensitive"}


def draw_release(release: Release) -> str:
    """Draw a release as its readers see it."""
    head = f"<p><b>{escape(repr(release))}</b></p>"
    if not release.published:
        return head + f"<p>{escape(release.explanation)}</p>"
    return head + _render_grids(build_grids(release.table, describe_cells(release)))


def draw_table(table: Table) -> str:
    """Draw a table with its true values, and mark sensitive cells."""
    texts = format_table_figures(table, table.values)
    kinds = np.where(table.sensitive, "sensitive", "published").tolist()
    cells = [Cell(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    return f"<p><b>{escape(repr(table))}</b>, confidential</p>" + _render_grids(build_grids(table, cells))


def draw_publication(publication: Publication) -> str:
    """Draw the tables of a publication, and what they share."""
    rows = [
        (part.name, " × ".join(part.table.dimensions), part.indicator, format_short_figure(part.table.n_cells),
         format_short_figure(int(part.table.sensitive.sum())))
        for part in publication.parts
    ]  # fmt: skip
    shared = "".join(f"<li>{escape(a)} and {escape(b)}: {n:,} cells</li>" for (a, b), n in publication.shared().items())
    listed = _render_rows(("table", "dimensions", "indicator", "cells", "sensitive"), rows)
    also = f"<p>Shared:</p><ul>{shared}</ul>" if shared else ""
    return f"<p><b>{escape(repr(publication))}</b></p>{listed}{also}"


def draw_hierarchy(hierarchy: Hierarchy) -> str:
    """Draw a hierarchy as the tree that `repr` shows."""
    first, *lines = repr(hierarchy).splitlines()
    tree = escape("\n".join(lines))
    return f"<p><b>{escape(first)}</b></p><pre style='line-height: 1.2'>{tree}</pre>"


def draw_figures(title: str, pairs: Mapping[str, Any]) -> str:
    """Draw figures by name."""
    return f"<p><b>{escape(title)}</b></p>" + _render_rows(
        (), [(name, format_short_figure(value)) for name, value in pairs.items()]
    )


def _render_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = f"<thead><tr>{''.join(f'<th>{escape(h)}</th>' for h in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _render_grids(grids: Iterable[GridPage]) -> str:
    shown, used, more = [], set(), 0
    for number, grid in enumerate(grids):
        if number < _MAX_GRIDS:
            shown.append(_render_grid(grid))
            used |= {cell.kind for _, line in grid.rows[:_MAX_ROWS] for cell in line[:_MAX_COLUMNS]}
        else:
            more += 1
    legend = "; ".join(text for kind, text in _WORDS.items() if kind in used)
    rest = f"<p>and {more} more tables</p>" if more else ""
    return "".join(shown) + (f"<p>{legend}</p>" if legend else "") + rest


def _render_grid(grid: GridPage) -> str:
    heads = "".join(f"<th>{escape(head.code)}</th>" for head in grid.columns[:_MAX_COLUMNS])
    wide = len(grid.columns) > _MAX_COLUMNS
    lines = [f"<tr><th style='text-align: left'>{escape(grid.corner)}</th>{heads}{'<th>…</th>' if wide else ''}</tr>"]
    for head, line in grid.rows[:_MAX_ROWS]:
        cells = "".join(_render_grid_cell(cell) for cell in line[:_MAX_COLUMNS])
        name = f"<th style='text-align: left; padding-left: {0.4 + head.depth}em'>{escape(head.code)}</th>"
        lines.append(f"<tr>{name}{cells}{'<td>…</td>' if wide else ''}</tr>")
    more = len(grid.rows) - _MAX_ROWS
    rest = f"<p>… {more} more rows</p>" if more > 0 else ""
    return f"<p>{escape(grid.title)}</p><table>{''.join(lines)}</table>{rest}"


def _render_grid_cell(cell: Cell) -> str:
    colour = _COLOURS.get(cell.kind)
    look = f"; background: {colour}" if colour else ""
    return f"<td style='text-align: right{look}'>{escape(cell.text)}</td>"
