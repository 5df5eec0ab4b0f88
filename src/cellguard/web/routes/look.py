"""A table for display: axes with their hierarchies, windows of cells, and all facts about one cell.

The content of a release is read from the published files, in the order of the table's cells; the
findings of the audit are in its own file. Nothing is computed twice, and releases of the command look the same.
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
from cellguard.jobs.definition.model import Job
from cellguard.jobs.outputs.audit_file import read_cell_ranges
from cellguard.methods.registry import METHODS
from cellguard.model.table import Table
from cellguard.release.figures import format_figure
from cellguard.release.release import Status, Suppression
from cellguard.web.projects import Project
from cellguard.web.routes.bodies import Window
from cellguard.web.routes.released import (
    KINDS,
    format_numbers,
    project_job_of_release,
    read_released_cells,
    read_released_json,
)
from cellguard.web.tables import Tables

__all__ = ["Look", "look_at"]

_MAX_WINDOW = 20_000
_LOOK_S = 10.0
"""Time limit in seconds for an answer about a cell."""
_MAX_MARKED = 5_000_000


@dataclass(frozen=True, eq=False)
class View:
    """One table: its own dimensions, and the indices of its cells in the joint table."""

    name: str
    table: Table
    cells: IntArray
    """Index of each of its cells in the joint table."""
    dimensions: tuple[int, ...]
    """The dimensions that it shows; the others are at their total."""

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
        """Return the cells of the joint table at these coordinates; -1 where the table has none."""
        keys, cells = self._places
        wanted = np.ravel_multi_index(tuple(coordinates.T), self._sizes)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, cells[at], -1)

    def list_axes(self) -> list[dict[str, Any]]:
        """Return each dimension with its codes in the order of the hierarchy."""
        return [self._build_axis(d) for d in self.dimensions]

    def _build_axis(self, d: int) -> dict[str, Any]:
        codes = self.table.codes[d]
        if not self.table.hierarchies:
            parent = np.where(np.arange(len(codes)) > 0, 0, -1)
            labels: Sequence[str] = codes
        else:
            h = self.table.hierarchies[d]
            parent, labels = h.parents[0], h.labels
        order, depth = _order_codes(parent)
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


def _order_codes(parent: Any) -> tuple[list[int], dict[int, int]]:
    """Return the codes of a hierarchy in depth-first order, with their depths."""
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
    """A table with the displayed content of every cell: true values with marks, or a release."""

    table: Table
    views: tuple[View, ...]
    shown: tuple[str, ...]
    """Displayed text of each cell."""
    kinds: IntArray
    """Index of each cell's kind in :data:`KINDS`."""
    method: str = ""
    """The method of the release; empty if there is none."""
    audit: Path | None = None
    """The audit file; it may be large, so only the part about one cell is read."""

    def collect_facts(self) -> dict[str, Any]:
        """Return what the page needs to draw the table, without its cells."""
        names, counts = np.unique(self.kinds, return_counts=True)
        return {
            "method": self.method,
            "cells": self.table.n_cells,
            "kinds": list(KINDS),
            "counts": {KINDS[k]: int(n) for k, n in zip(names.tolist(), counts.tolist(), strict=True)},
            "views": [{"name": view.name, "axes": view.list_axes()} for view in self.views],
        }

    def read_window(self, block: Window) -> dict[str, Any]:
        """Return texts and kinds of the cells of a block."""
        width = block.width
        if len(block.down) * width > _MAX_WINDOW:
            raise InputError("that are more cells than one window shows.")
        cells = self._list_block_cells(block)
        shown = [self.shown[c] if c >= 0 else "" for c in cells.tolist()]
        kinds = np.where(cells >= 0, self.kinds[cells], KINDS.index("nothing")).tolist()
        return {
            "texts": [shown[k : k + width] for k in range(0, len(shown), width)],
            "kinds": [kinds[k : k + width] for k in range(0, len(kinds), width)],
        }

    def find_marked(self, block: Window) -> list[list[int]]:
        """Return the positions of marked cells in a block: withheld, sensitive, or an interval."""
        if len(block.down) * block.width > _MAX_MARKED:
            raise InputError("the table is too large for that.")
        cells = self._list_block_cells(block)
        which = [KINDS.index(kind) for kind in ("sensitive", "primary", "secondary", "interval")]
        places = np.flatnonzero((cells >= 0) & np.isin(self.kinds[cells], which))[:_MAX_WINDOW]
        return np.stack(np.divmod(places, block.width), axis=1).tolist()  # type: ignore[no-any-return]

    def _list_block_cells(self, block: Window) -> IntArray:
        """Return the cells of a block, row by row; -1 where the table has none."""
        places = {block.rows: np.repeat(np.asarray(block.down, np.int64), block.width)}
        if block.columns is not None:
            places[block.columns] = np.tile(np.asarray(block.across, np.int64), len(block.down))
        return self._find_cells(block.view, {**block.at, **places}, len(block.down) * block.width)

    def _find_cells(self, view: int, codes: Mapping[int, int | IntArray], n: int) -> IntArray:
        """Return `n` cells by the indices of their codes (default: the total); -1 where the table has none."""
        table = self.views[view].table
        out = np.zeros((n, len(table.dimensions)), np.int64)
        known = all(0 <= d < len(table.dimensions) for d in codes)
        for d, places in codes.items() if known else ():
            out[:, d] = places
        if not known or ((out < 0) | (out >= [len(own) for own in table.codes])).any():
            raise UnknownCodeError("there is no such code.")
        return self.views[view].find(out)

    def find_cell(self, view: int, codes: dict[int, int]) -> int:
        """Return the cell with these codes."""
        (found,) = self._find_cells(view, codes, 1).tolist()
        if found < 0:
            raise UnknownCodeError("the table has no such cell.")
        return int(found)

    def describe_cell(self, cell: int) -> dict[str, Any]:
        """Return all confidential facts about a cell: the true value, the reasons, the ranges."""
        t = self.table
        codes = t.cell_codes(int(cell))
        return {
            "cell": cell,
            "codes": codes,
            "shown": self.shown[cell],
            "kind": KINDS[int(self.kinds[cell])],
            "true": format_figure(float(t.values[cell])),
            "value": float(t.values[cell]),
            "sensitive": bool(t.sensitive[cell]),
            "fixed": bool(t.fixed[cell]),
            "contributors": None if t.counts is None or np.isinf(t.counts[cell]) else int(t.counts[cell]),
            "reasons": self._describe_reasons(cell),
            "ranges": self._read_ranges(codes),
        }

    def _describe_reasons(self, cell: int) -> list[str]:
        found = list(self.table.reasons(cell))
        for view in self.views if self.table.parts else ():
            own = np.flatnonzero(view.cells == cell)
            found += [reason for i in own.tolist() for reason in view.table.reasons(i)]
        return list(dict.fromkeys(found))

    def _read_ranges(self, codes: dict[str, str]) -> list[dict[str, Any]]:
        """Return the range that each attacker can infer for a cell, as the audit wrote it."""
        return read_cell_ranges(self.audit, codes) if self.audit is not None and self.audit.is_file() else []

    def read_suppression(self) -> Suppression | None:
        """Return the release, if it withholds cells."""
        method = METHODS.get(self.method)
        if method is None or not method.marks_primary:
            return None
        hidden = np.isin(self.kinds, [KINDS.index("primary"), KINDS.index("secondary")])
        return Suppression(table=self.table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)

    def list_protected(self, cell: int) -> dict[str, Any]:
        """Return the sensitive cells that would be disclosed if this withheld cell were published."""
        release = self.read_suppression()
        if release is None or self.kinds[cell] != KINDS.index("secondary"):
            return {"cells": [], "known": False}
        hidden = release.suppressed.copy()
        hidden[cell] = False
        found = replace(release, suppressed=hidden).audit(time_limit_s=_LOOK_S)
        sure = sorted({int(c) for f in found.findings for c in f.cells[f.unsafe].tolist()})
        return {
            "cells": [self.table.cell_codes(int(c)) for c in sure[:50]],
            "more": max(0, len(sure) - 50),
            "known": not found.unknown,
        }

    def compute_range(self, cell: int) -> dict[str, Any]:
        """Return the external attacker's range of a withheld cell that is not sensitive: no level is required of it."""
        release = self.read_suppression()
        if release is None or not release.suppressed[cell]:
            return {"ranges": []}
        only = np.arange(self.table.n_cells) == cell
        none = np.zeros(self.table.n_cells)
        asked = self.table.with_(sensitive=only, lower=none, upper=none, sliding=none, attackers=(), insiders=False)
        found = replace(release, table=asked).audit(exact=True, time_limit_s=_LOOK_S)
        return {
            "ranges": [
                {"attacker": name, "lowest": _format_end(low[0]), "highest": _format_end(high[0])}
                for name, (_, low, high) in found.ranges.items()
            ]
        }


def _format_end(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def look_at(project: Project, tables: Tables, release: str | None) -> Look:
    """Return the table of a project before protection, or one of its releases."""
    if release is None:
        file = project.get_job_file()
        table = tables.get_flagged(file)
        kinds = np.where(table.sensitive, KINDS.index("sensitive"), KINDS.index("published"))
        kinds = np.where(table.fixed & ~table.sensitive & (table.values != 0), KINDS.index("fixed"), kinds)
        return Look(table, _list_views(table, file.job), format_numbers(table, table.values), kinds)
    folder = project.release(release)
    manifest = read_released_json(folder / "internal" / "manifest.json")
    file = project_job_of_release(project, folder)
    table = tables.get_flagged(file)
    shown, kinds = read_released_cells(table, folder / "public", file.job)
    audit = folder / "internal" / "audit.json"
    return Look(table, _list_views(table, file.job), shown, kinds, str(manifest.get("method", "")), audit)


def _list_views(table: Table, job: Job) -> tuple[View, ...]:
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
