"""Releases of publications: combine the releases of clusters, and show each table in its own layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import IntArray
from cellguard.model.levels import add_respondents
from cellguard.model.table import Table
from cellguard.release.base import Release, Status, check_row_order

if TYPE_CHECKING:
    from cellguard.model.linked.publication import Part

__all__ = ["PublishedTable", "join_releases_of_clusters", "list_published_tables"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedTable:
    """One table of a released publication, in its original layout."""

    part: Part
    """The table."""
    release: Release = field(repr=False)
    """The release of the whole publication."""

    def columns(self, *, mark_primary: bool = False, row_order: str = "canonical") -> dict[str, Any]:
        """Return its codes in its own spelling, and what is published about its cells."""
        from cellguard.release.formats.sheets import build_part_sheet

        published = self.release.columns(mark_primary=mark_primary)
        return build_part_sheet(self.part, published, row_order=row_order).columns

    def frame(self, like: Any = None, *, row_order: str = "canonical") -> Any:
        """Return the table as a frame of the same library as `like`, or as the table's source frame."""
        from cellguard._io.frames import build_frame

        check_row_order(row_order)
        return build_frame(self.columns(row_order=row_order), self.part.table.library if like is None else like)


def list_published_tables(release: Release) -> dict[str, PublishedTable]:
    """Return the tables of a released publication by name; empty if the release has only one table."""
    return {part.name: PublishedTable(part=part, release=release) for part in release.table.parts or ()}


def join_releases_of_clusters(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Release:
    """Combine the releases of clusters into one release of the whole system."""
    first = made[0][0]
    if len(made) == 1:
        return replace(first, table=_merge_cluster_attackers(table, made))
    worst = (Status.INFEASIBLE, Status.TIME_LIMIT, Status.FEASIBLE, Status.OPTIMAL)
    status = next(s for s in worst if any(release.status is s for release, _ in made))
    changed: dict[str, Any] = {
        "table": _merge_cluster_attackers(table, made),
        "status": status,
        "objective": float(sum(release.objective for release, _ in made)),
        "bound": float(sum(release.bound for release, _ in made)),
        "explanation": " ".join(dict.fromkeys(r.explanation for r, _ in made if r.explanation)),
        "seconds": _sum_figures(release.seconds for release, _ in made),
        "details": _sum_figures(release.details for release, _ in made),
    }
    if any("key" in release.options for release, _ in made):  # for all clusters, even if the first needed no key
        key = next(release.options["key"] for release, _ in made if "key" in release.options)
        changed["options"] = {**first.options, "key": key}
    for name, array in first.get_cell_arrays().items():
        changed[name] = np.zeros(table.n_cells, array.dtype)
        for release, cells in made:
            changed[name][cells] = getattr(release, name)
    if hasattr(first, "internal"):
        changed["internal"] = _release_columns_from_clusters(table, made)
    if hasattr(first, "step"):  # the published step applies to every cluster
        changed["step"] = max(getattr(release, "step", 1) for release, _ in made)
    return replace(first, **changed)


def _release_columns_from_clusters(table: Table, made: Sequence[tuple[Release, IntArray]]) -> dict[str, Any]:
    """Combine the details of the releases of clusters, cell by cell."""
    out: dict[str, Any] = {}
    for release, cells in made:
        for name, column in getattr(release, "internal", {}).items():
            out.setdefault(name, np.zeros(table.n_cells, column.dtype))[cells] = column
    return out


def _merge_cluster_attackers(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Table:
    """Return the system with all attackers of the clusters, and what they know about each cell."""
    table = table.remove_public_knowledge()
    lb, ub = table.lb.copy(), table.ub.copy()
    for release, cells in made:
        own = release.table.remove_public_knowledge()
        lb[cells], ub[cells] = own.lb, own.ub
    if (lb != table.lb).any() or (ub != table.ub).any():
        table = table.with_(lb=lb, ub=ub)
    fixed = table.fixed.copy()
    for release, cells in made:
        fixed[cells] = release.table.fixed  # a cell that a method kept is unchanged, and every attacker knows it
    if (fixed != table.fixed).any():
        table = table.with_(fixed=fixed)

    considered = any(release.table.insiders for release, _ in made)
    return add_respondents(table) if considered else table


def _sum_figures(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the figures of clusters; take a figure that is not a number from the first."""
    out: dict[str, Any] = {}
    for one in figures:
        for key, value in one.items():
            known = out.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and isinstance(known, int | float):
                out[key] = known + value
            else:
                out.setdefault(key, value)
    return out
