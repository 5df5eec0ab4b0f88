"""A table as people read it: axes with their trees, windows of cells, and everything about one cell.

What a release shows is read from the files that were published, in the order of the table's cells; what the
audit found stands in its own file. Nothing is computed twice, and a release of the command looks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.methods.registry import METHODS
from cellguard.nouns.figures import figure_with_decimals
from cellguard.nouns.release import Status, Suppression
from cellguard.nouns.table import Table
from cellguard.publish.audit_file import ranges_in_audit_file
from cellguard.publish.model import Job
from cellguard.web.bodies import Window
from cellguard.web.projects import Project
from cellguard.web.released import (
    KINDS,
    browser_texts_of_numbers,
    json_of_released_file,
    project_job_of_release,
    released_cells_for_browser,
)
from cellguard.web.tables import Tables

__all__ = ["Look", "look_at"]

_MAX_WINDOW = 20_000
_LOOK_S = 10.0
"""How long somebody who looks at a cell waits for an answer."""
_MAX_MARKED = 5_000_000


@dataclass(frozen=True, eq=False)
class View:
    """One table: its own dimensions, and where its cells stand in the system."""

    name: str
    table: Table
    cells: IntArray
    """Place in the system of each of its cells."""
    dimensions: tuple[int, ...]
    """Which of the table's dimensions it shows; the others are at their total."""

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(codes) for codes in self.table.codes)

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """Return the sorted keys of all cells, and the cells in that order."""
        keys = np.ravel_multi_index(tuple(self.table.coordinates.T.astype(np.int64)), self._sizes)
        order = np.argsort(keys, kind="stable")
        return keys[order], self.cells[order]

    def find(self, coordinates: IntArray) -> IntArray:
        """Return the cells of the system at some coordinates; -1 where the table has none."""
        keys, cells = self._places
        wanted = np.ravel_multi_index(tuple(coordinates.T), self._sizes)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, cells[at], -1)

    def axes(self) -> list[dict[str, Any]]:
        """Return each dimension with its codes in the order of their tree."""
        return [self._axis(d) for d in self.dimensions]

    def _axis(self, d: int) -> dict[str, Any]:
        codes = self.table.codes[d]
        if not self.table.hierarchies:
            parent = np.where(np.arange(len(codes)) > 0, 0, -1)
            labels: Sequence[str] = codes
        else:
            h = self.table.hierarchies[d]
            parent, labels = h.parents[0], h.labels
        order, depth = _tree_order_for_browser(parent)
        place = {code: k for k, code in enumerate(order)}
        return {
            "name": self.table.dimensions[d],
            "index": d,
            "id": order,
            "code": [codes[i] for i in order],
            "label": [labels[i] if labels[i] != codes[i] else "" for i in order],
            "parent": [place.get(int(parent[i]), -1) for i in order],
            "depth": [depth[i] for i in order],
        }


def _tree_order_for_browser(parent: Any) -> tuple[list[int], dict[int, int]]:
    """Return the codes of a tree with every code behind its parent and its elder sisters, and their depths."""
    children: dict[int, list[int]] = {}
    for i, up in enumerate(parent.tolist()):
        children.setdefault(max(up, -1), []).append(i)
    order: list[int] = []
    depth: dict[int, int] = {}
    left = [(i, 0) for i in reversed(children.get(-1, []))]
    while left:
        i, deep = left.pop()
        order.append(i)
        depth[i] = deep
        left += [(child, deep + 1) for child in reversed(children.get(i, []))]
    return order, depth


@dataclass(frozen=True, eq=False)
class Look:
    """A table with what is shown of every cell: the truth with its marks, or a release."""

    table: Table
    views: tuple[View, ...]
    shown: tuple[str, ...]
    """What stands in each cell."""
    kinds: IntArray
    """Place of each cell's kind in :data:`KINDS`."""
    method: str = ""
    """The method of the release; empty where there is none."""
    audit: Path | None = None
    """The audit's file: it may be large, and is read for what is asked of a cell."""

    def facts(self) -> dict[str, Any]:
        """Return what a page needs to draw the table without its cells."""
        names, counts = np.unique(self.kinds, return_counts=True)
        return {
            "method": self.method,
            "cells": self.table.n_cells,
            "kinds": list(KINDS),
            "counts": {KINDS[k]: int(n) for k, n in zip(names.tolist(), counts.tolist(), strict=True)},
            "views": [{"name": view.name, "axes": view.axes()} for view in self.views],
        }

    def window(self, block: Window) -> dict[str, Any]:
        """Return texts and kinds of the cells of a block."""
        width = block.width
        if len(block.down) * width > _MAX_WINDOW:
            raise InputError("that are more cells than one window shows.")
        cells = self._cells_of_block(block)
        shown = [self.shown[c] if c >= 0 else "" for c in cells.tolist()]
        kinds = np.where(cells >= 0, self.kinds[cells], KINDS.index("nothing")).tolist()
        return {
            "texts": [shown[k : k + width] for k in range(0, len(shown), width)],
            "kinds": [kinds[k : k + width] for k in range(0, len(kinds), width)],
        }

    def marked(self, block: Window) -> list[list[int]]:
        """Return where marked cells stand in a block: withheld, sensitive, or an interval."""
        if len(block.down) * block.width > _MAX_MARKED:
            raise InputError("the table is too large for that.")
        cells = self._cells_of_block(block)
        which = [KINDS.index(kind) for kind in ("sensitive", "primary", "secondary", "interval")]
        places = np.flatnonzero((cells >= 0) & np.isin(self.kinds[cells], which))[:_MAX_WINDOW]
        return np.stack(np.divmod(places, block.width), axis=1).tolist()  # type: ignore[no-any-return]

    def _cells_of_block(self, block: Window) -> IntArray:
        """Return the cells of a block, row by row; -1 where the table has none."""
        places = {block.rows: np.repeat(np.asarray(block.down, np.int64), block.width)}
        if block.columns is not None:
            places[block.columns] = np.tile(np.asarray(block.across, np.int64), len(block.down))
        return self._find_cells(block.view, {**block.at, **places}, len(block.down) * block.width)

    def _find_cells(self, view: int, codes: Mapping[int, int | IntArray], n: int) -> IntArray:
        """Return `n` cells by the places of their codes, the total where none is named; -1 where the table has none."""
        table = self.views[view].table
        out = np.zeros((n, len(table.dimensions)), np.int64)
        known = all(0 <= d < len(table.dimensions) for d in codes)
        for d, places in codes.items() if known else ():
            out[:, d] = places
        if not known or ((out < 0) | (out >= [len(own) for own in table.codes])).any():
            raise UnknownCodeError("there is no such code.")
        return self.views[view].find(out)

    def cell(self, view: int, codes: dict[int, int]) -> int:
        """Return the cell with these codes."""
        (found,) = self._find_cells(view, codes, 1).tolist()
        if found < 0:
            raise UnknownCodeError("the table has no such cell.")
        return int(found)

    def about(self, cell: int) -> dict[str, Any]:
        """Return everything the office may know of a cell: the truth, the reasons, the ranges."""
        t = self.table
        codes = t.codes_of(cell)
        return {
            "cell": cell,
            "codes": codes,
            "shown": self.shown[cell],
            "kind": KINDS[int(self.kinds[cell])],
            "true": figure_with_decimals(float(t.values[cell])),
            "value": float(t.values[cell]),
            "sensitive": bool(t.sensitive[cell]),
            "fixed": bool(t.fixed[cell]),
            "contributors": None if t.counts is None or np.isinf(t.counts[cell]) else int(t.counts[cell]),
            "reasons": self._reasons(cell),
            "ranges": self._ranges(codes),
        }

    def _reasons(self, cell: int) -> list[str]:
        found = list(self.table.reasons(cell))
        for view in self.views if self.table.parts else ():
            own = np.flatnonzero(view.cells == cell)
            found += [reason for i in own.tolist() for reason in view.table.reasons(i)]
        return list(dict.fromkeys(found))

    def _ranges(self, codes: dict[str, str]) -> list[dict[str, Any]]:
        """Return what each attacker can compute of a cell, as the audit wrote it."""
        return ranges_in_audit_file(self.audit, codes) if self.audit is not None and self.audit.is_file() else []

    def suppression(self) -> Suppression | None:
        """Return the release, where cells were withheld."""
        method = METHODS.get(self.method)
        if method is None or not method.marks_primary:
            return None
        hidden = np.isin(self.kinds, [KINDS.index("primary"), KINDS.index("secondary")])
        return Suppression(table=self.table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)

    def protects(self, cell: int) -> dict[str, Any]:
        """Say which sensitive cells would be known too closely if this withheld cell were published."""
        release = self.suppression()
        if release is None or self.kinds[cell] != KINDS.index("secondary"):
            return {"cells": [], "known": False}
        hidden = release.suppressed.copy()
        hidden[cell] = False
        found = replace(release, suppressed=hidden).audit(time_limit_s=_LOOK_S)
        sure = sorted({int(c) for f in found.findings for c in f.cells[f.unsafe].tolist()})
        return {
            "cells": [self.table.codes_of(c) for c in sure[:50]],
            "more": max(0, len(sure) - 50),
            "known": not found.unknown,
        }

    def range_of(self, cell: int) -> dict[str, Any]:
        """Return what everybody can compute of a withheld cell that is not sensitive: nothing is asked for it."""
        release = self.suppression()
        if release is None or not release.suppressed[cell]:
            return {"ranges": []}
        only = np.arange(self.table.n_cells) == cell
        none = np.zeros(self.table.n_cells)
        asked = self.table.with_(sensitive=only, lower=none, upper=none, sliding=none, attackers=(), insiders=False)
        found = replace(release, table=asked).audit(exact=True, time_limit_s=_LOOK_S)
        return {
            "ranges": [
                {"attacker": name, "lowest": _end_for_browser(low[0]), "highest": _end_for_browser(high[0])}
                for name, (_, low, high) in found.ranges.items()
            ]
        }


def _end_for_browser(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def look_at(project: Project, tables: Tables, release: str | None) -> Look:
    """Return the table of a project as it is, or one of its releases."""
    if release is None:
        file = project.job_file()
        table = tables.flagged(file)
        kinds = np.where(table.sensitive, KINDS.index("sensitive"), KINDS.index("published"))
        kinds = np.where(table.fixed & ~table.sensitive & (table.values != 0), KINDS.index("fixed"), kinds)
        return Look(
            table, _browser_views_of_table(table, file.job), browser_texts_of_numbers(table, table.values), kinds
        )
    folder = project.release(release)
    manifest = json_of_released_file(folder / "internal" / "manifest.json")
    file = project_job_of_release(project, folder)
    table = tables.flagged(file)
    shown, kinds = released_cells_for_browser(table, folder / "public", file.job)
    audit = folder / "internal" / "audit.json"
    return Look(table, _browser_views_of_table(table, file.job), shown, kinds, str(manifest.get("method", "")), audit)


def _browser_views_of_table(table: Table, job: Job) -> tuple[View, ...]:
    if table.parts:
        return tuple(
            View(part.name, part.table, part.cells, tuple(range(len(part.table.dimensions)))) for part in table.parts
        )
    if not table.dimensions:
        return (_look_at_numbered_cells(table),)
    everything = np.arange(table.n_cells)
    own: list[tuple[str, Sequence[str]]] = [(entry.title, entry.dimensions) for entry in job.tables]
    return tuple(
        View(name, table, everything, tuple(table.dimensions.index(d) for d in dimensions))
        for name, dimensions in own or [(table.name, table.dimensions)]
    )


def _look_at_numbered_cells(table: Table) -> View:
    """Show a table of raw equations as a list of cells."""
    n = table.n_cells
    listed = Table.from_equations(
        np.zeros(n),
        np.zeros((0, n)),
        dimensions=("cell",),
        codes=(tuple(str(i) for i in range(n)),),
        coordinates=np.arange(n, dtype=np.int32).reshape(-1, 1),
    )
    return View(table.name, listed, np.arange(n), (0,))
