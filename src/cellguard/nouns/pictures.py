"""How nouns look in a notebook: small tables of HTML. A release shows what its readers see, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.nouns.figures import figure
from cellguard.nouns.grid import Cell, GridPage, cells_of_release, figures_of_table, grids_of_table

if TYPE_CHECKING:
    from cellguard.nouns.hierarchy import Hierarchy
    from cellguard.nouns.publication import Publication
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["hierarchy_picture", "picture_of_figures", "publication_picture", "release_picture", "table_picture"]

_ROWS, _COLUMNS, _GRIDS = 30, 12, 2
"""What a notebook shows at most; files and reports have the rest."""
_COLOURS = {
    "primary": "#f3c6bb",
    "withheld": "#f7e2ae",
    "interval": "#d3e4f2",
    "changed": "#d3e4f2",
    "sensitive": "#f3c6bb",
}
_WORDS = {"withheld": "x: withheld", "empty": "–: no contributors", "sensitive": "coloured: sensitive"}


def release_picture(release: Release) -> str:
    """Draw a release as its readers see it."""
    head = f"<p><b>{escape(repr(release))}</b></p>"
    if not release.published:
        return head + f"<p>{escape(release.explanation)}</p>"
    return head + _html_repr_of_grids(grids_of_table(release.table, cells_of_release(release)))


def table_picture(table: Table) -> str:
    """Draw a table with its true values, and mark what is sensitive."""
    texts = figures_of_table(table, table.values)
    kinds = np.where(table.sensitive, "sensitive", "published").tolist()
    cells = [Cell(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    return f"<p><b>{escape(repr(table))}</b>, confidential</p>" + _html_repr_of_grids(grids_of_table(table, cells))


def publication_picture(publication: Publication) -> str:
    """Draw what a publication is made of: its tables, and what they share."""
    rows = [
        (part.name, " × ".join(part.table.dimensions), part.indicator, figure(part.table.n_cells),
         figure(int(part.table.sensitive.sum())))
        for part in publication.parts
    ]  # fmt: skip
    shared = "".join(f"<li>{escape(a)} and {escape(b)}: {n:,} cells</li>" for (a, b), n in publication.shared().items())
    listed = _html_repr_of_rows(("table", "dimensions", "indicator", "cells", "sensitive"), rows)
    also = f"<p>Shared:</p><ul>{shared}</ul>" if shared else ""
    return f"<p><b>{escape(repr(publication))}</b></p>{listed}{also}"


def hierarchy_picture(hierarchy: Hierarchy) -> str:
    """Draw a hierarchy as the tree that `repr` shows."""
    first, *lines = repr(hierarchy).splitlines()
    tree = escape("\n".join(lines))
    return f"<p><b>{escape(first)}</b></p><pre style='line-height: 1.2'>{tree}</pre>"


def picture_of_figures(title: str, pairs: Mapping[str, Any]) -> str:
    """Draw figures by name."""
    return f"<p><b>{escape(title)}</b></p>" + _html_repr_of_rows(
        (), [(name, figure(value)) for name, value in pairs.items()]
    )


def _html_repr_of_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = f"<thead><tr>{''.join(f'<th>{escape(h)}</th>' for h in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _html_repr_of_grids(grids: Iterable[GridPage]) -> str:
    shown, used, more = [], set(), 0
    for number, grid in enumerate(grids):
        if number < _GRIDS:
            shown.append(_html_repr_of_grid(grid))
            used |= {cell.kind for _, line in grid.rows[:_ROWS] for cell in line[:_COLUMNS]}
        else:
            more += 1
    legend = "; ".join(text for kind, text in _WORDS.items() if kind in used)
    rest = f"<p>and {more} more tables</p>" if more else ""
    return "".join(shown) + (f"<p>{legend}</p>" if legend else "") + rest


def _html_repr_of_grid(grid: GridPage) -> str:
    heads = "".join(f"<th>{escape(head.code)}</th>" for head in grid.columns[:_COLUMNS])
    wide = len(grid.columns) > _COLUMNS
    lines = [f"<tr><th style='text-align: left'>{escape(grid.corner)}</th>{heads}{'<th>…</th>' if wide else ''}</tr>"]
    for head, line in grid.rows[:_ROWS]:
        cells = "".join(_html_repr_of_cell(cell) for cell in line[:_COLUMNS])
        name = f"<th style='text-align: left; padding-left: {0.4 + head.depth}em'>{escape(head.code)}</th>"
        lines.append(f"<tr>{name}{cells}{'<td>…</td>' if wide else ''}</tr>")
    more = len(grid.rows) - _ROWS
    rest = f"<p>… {more} more rows</p>" if more > 0 else ""
    return f"<p>{escape(grid.title)}</p><table>{''.join(lines)}</table>{rest}"


def _html_repr_of_cell(cell: Cell) -> str:
    colour = _COLOURS.get(cell.kind)
    look = f"; background: {colour}" if colour else ""
    return f"<td style='text-align: right{look}'>{escape(cell.text)}</td>"
