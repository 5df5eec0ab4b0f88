"""The statistics of all margins of a crossing, and their positions in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellguard._engine.space.cell_grid import compute_grid_keys, decode_grid_keys, find_grid_places
from cellguard._types import BoolArray, ByteArray, Coordinates, FloatArray, IntArray
from cellguard.model.hierarchy import Hierarchy
from cellguard.rules.statistics import CellStatistics, number_contributors_jointly
from cellguard.tabulation.decode import Decoded
from cellguard.tabulation.holdings import Judged, tabulate_shared_holdings
from cellguard.tabulation.request import Roles, Scale
from cellguard.tabulation.rollup import Cells, Items, roll_up

__all__ = ["CrossingMargins", "compute_margins", "find_cells_with_records", "order_margins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossingMargins:
    """All margins of one crossing, with their statistics."""

    dimensions: tuple[int, ...]
    """Which dimensions of the table are crossed."""
    keys: IntArray
    """The cells, numbered in the grid of these dimensions, in ascending order."""
    statistics: CellStatistics
    cost: FloatArray | None


def _join_exact_halves(sums: Mapping[str, FloatArray], name: str, scale: Scale) -> FloatArray:
    """Combine the two halves of an exact sum."""
    return sums[f"{name}0"] / scale.whole + sums[f"{name}1"] / (scale.whole * scale.part)


def compute_margins(
    decoded: Decoded, roles: Roles, hierarchies: Sequence[Hierarchy], scales: Mapping[str, Scale], units: int
) -> tuple[IntArray, CellStatistics, FloatArray | None]:
    """Add every margin; return the cells, numbered in the grid of the crossing, their statistics and their costs.

    Shared holdings are evaluated separately and merged here.
    """
    items = decoded.items
    margins = roll_up(decoded.cells, hierarchies, items, units)
    keys = compute_grid_keys(margins.coordinates, [len(h) for h in hierarchies])
    sums = dict(zip(decoded.measures, margins.sums.T, strict=True))
    judged = None if decoded.shared is None else tabulate_shared_holdings(decoded.shared, hierarchies, units)
    value = _join_exact_halves(sums, "y", scales["value"])
    total = _join_exact_halves(sums, "x", scales["total"]) if "total" in scales else value
    count = sums["n"]
    weight = _join_exact_halves(sums, "w", scales["weight"]) if roles.weight else count
    largest, ptr, chosen = margins.largest, margins.ptr, margins.items
    if judged is not None:
        at = find_grid_places(keys, judged.keys, [int(keys.max()) + 1])
        count = _add_at(count, at, judged.count)
        weight = _add_at(weight, at, judged.weight) if roles.weight else count
        total = _add_at(total, at, judged.total) if "total" in scales else total
        largest = largest.copy()
        largest[at] = np.maximum(largest[at], judged.largest)
        items, ptr, chosen = _merge_holdings(margins, items, judged, at, units)
    top, listed = _pad_contributions(ptr, chosen, items.value)
    statistics = CellStatistics(
        value=value,
        total=total,
        count=count,
        weight=weight,
        top=top,
        top_weights=_pad_contributions(ptr, chosen, items.weight)[0] if roles.weight else None,
        units=units,
        protected=np.where(largest >= 0, largest, np.nan) if roles.waiver else None,
        request=_select_first_contributions(ptr, chosen, items.request) if roles.request else None,
        contributors=np.where(listed, _pad_contributions(ptr, chosen, items.who)[0], -1),
        whole=_pad_contributions(ptr, chosen, items.whole)[0],
        shadow=roles.shadow is not None,
    )
    return keys, statistics, _join_exact_halves(sums, "c", scales["cost"]) if roles.cost else None


def _add_at(x: FloatArray, at: IntArray, more: FloatArray) -> FloatArray:
    out = x.copy()
    out[at] += more
    return out


def _merge_holdings(
    margins: Cells, items: Items, judged: Judged, at: IntArray, units: int
) -> tuple[Items, IntArray, IntArray]:
    """Merge the large contributions of shared holdings into the lists of the cells."""
    order = np.lexsort((judged.item_who, -judged.item_value, judged.item_key))
    joined = Items(
        value=np.concatenate([items.value, judged.item_value[order]]),
        weight=np.concatenate([items.weight, judged.item_weight[order]]),
        request=np.concatenate([items.request, judged.item_request[order]]),
        who=np.concatenate([items.who, judged.item_who[order]]),
        whole=np.concatenate([items.whole, judged.item_whole[order]]),
    )
    n, own = len(margins.ptr) - 1, len(items.value)
    bounds = np.searchsorted(judged.item_key[order], judged.keys), len(order)
    ends = np.append(bounds[0], bounds[1])
    ptr = np.concatenate([margins.ptr, margins.ptr[-1] + ends[1:]]).astype(np.int64)
    listed = np.concatenate([margins.items, own + np.arange(len(order))]).astype(np.int64)
    second = np.full(n, -1, np.int64)
    second[at] = n + np.arange(len(at))
    pairs = np.column_stack([np.arange(n), second])
    there = pairs >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    from cellguard._core.top import merge_top

    if not units:
        return joined, np.zeros(n + 1, np.int64), np.zeros(0, np.int64)
    new_ptr, chosen = merge_top(indptr, pairs[there], ptr, listed, joined.value, joined.weight, float(units))
    return joined, new_ptr, chosen


def _pad_contributions(ptr: IntArray, chosen: IntArray, x: NDArray[Any]) -> tuple[NDArray[Any], BoolArray]:
    """Return lists as rows of equal length, and a mask of the entries that exist."""
    length = np.diff(ptr)
    listed = np.arange(int(length.max(initial=0))) < length[:, None]
    out = np.zeros(listed.shape, x.dtype)
    out[listed] = x[chosen]
    return out, listed


def _select_first_contributions(ptr: IntArray, chosen: IntArray, x: ByteArray) -> ByteArray:
    padded, _ = _pad_contributions(ptr, chosen, x)
    return padded[:, 0] if padded.shape[1] else np.zeros(len(ptr) - 1, np.int8)


# ---------------------------------------------------------------- into the table's order


def _locate_statistics(cells: Coordinates, sizes: Sequence[int], parts: Sequence[CrossingMargins]) -> list[IntArray]:
    """Return for each part where its statistics go, as pairs (cell, row); the first part provides a shared cell."""
    free = np.ones(len(cells), dtype=bool)
    out = []
    for part in parts:
        others = [d for d in range(len(sizes)) if d not in part.dimensions]
        mine = free & (cells[:, others] == 0).all(axis=1)
        free &= ~mine
        cell = np.flatnonzero(mine)
        own = [sizes[d] for d in part.dimensions]
        row = find_grid_places(part.keys, compute_grid_keys(cells[cell][:, list(part.dimensions)], own), own)
        out.append(np.column_stack([cell, row])[row >= 0])
    return out


def _join_contributors(
    cells: Coordinates, sizes: Sequence[int], parts: Sequence[CrossingMargins]
) -> list[IntArray] | None:
    """Return the contributors of every part under common numbers."""
    listed = compute_grid_keys(cells, sizes)
    place = [find_grid_places(listed, _compute_crossing_keys(part, sizes), sizes) for part in parts]
    return number_contributors_jointly([part.statistics for part in parts], place, len(cells))


def _compute_crossing_keys(part: CrossingMargins, sizes: Sequence[int]) -> IntArray:
    """Return the part's cells in the grid of all dimensions."""
    own = decode_grid_keys(part.keys, [sizes[d] for d in part.dimensions])
    whole = np.zeros((len(own), len(sizes)), np.int32)
    whole[:, list(part.dimensions)] = own
    return compute_grid_keys(whole, sizes)


def find_cells_with_records(parts: Sequence[CrossingMargins], sizes: Sequence[int]) -> Coordinates:
    """Return the cells that have records, in the order of the grid of codes."""
    found = [_compute_crossing_keys(part, sizes) for part in parts]
    return decode_grid_keys(np.unique(np.concatenate(found)), sizes)


def order_margins(
    cells: Coordinates, sizes: Sequence[int], parts: Sequence[CrossingMargins]
) -> tuple[CellStatistics, FloatArray | None]:
    """Return the statistics (and costs) of the table's cells; cells without records are empty."""
    where = _locate_statistics(cells, sizes, parts)
    people = None if len(parts) == 1 else _join_contributors(cells, sizes, parts)
    columns: dict[str, Any] = {}
    for field in fields(CellStatistics):
        given = [getattr(part.statistics, field.name) for part in parts]
        if field.name == "contributors" and people is not None:
            given = people
        if isinstance(given[0], np.ndarray):
            empty = {"protected": np.nan, "contributors": -1}.get(field.name, 0)
            columns[field.name] = _order_column(given, where, len(cells), empty)
        else:
            columns[field.name] = given[0]
    costs = [part.cost for part in parts if part.cost is not None]
    return CellStatistics(**columns), _order_column(costs, where, len(cells), 0.0) if costs else None


def _order_column(columns: Sequence[NDArray[Any]], where: Sequence[IntArray], n: int, empty: float) -> NDArray[Any]:
    width = (max(c.shape[1] for c in columns),) if columns[0].ndim == 2 else ()
    out = np.full((n, *width), empty, dtype=columns[0].dtype)
    for column, pairs in zip(columns, where, strict=True):
        at = (pairs[:, 0], slice(column.shape[1])) if width else pairs[:, 0]
        out[at] = column[pairs[:, 1]]
    return out
