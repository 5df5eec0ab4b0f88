"""Holdings in several cells: their contributions are added up before a margin is judged.

A holding in a single finest cell behaves like a record and is rolled up with the others. A holding
in several cells must be added up again for every margin: it counts once there, with the sum of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from math import prod

import numpy as np

from cellguard._engine.space.cell_grid import compute_grid_keys
from cellguard._types import BoolArray, ByteArray, Coordinates, FloatArray, IntArray
from cellguard.model.hierarchy import Hierarchy
from cellguard.tabulation.rollup import build_rollup_layers, group_keys

__all__ = ["Judged", "Shared", "tabulate_shared_holdings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Holdings in several cells: one row per holding and finest cell."""

    coordinates: Coordinates
    who: IntArray
    x: FloatArray
    """Sum of the contributions, with their sign."""
    ax: FloatArray
    """Sum of their absolute values."""
    wax: FloatArray
    """The same, weighted."""
    w: FloatArray
    """Sum of the weights."""
    n: FloatArray
    """Number of records."""
    waived: BoolArray
    request: ByteArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What shared holdings add to cells: one row per cell, and one row per large contribution."""

    keys: IntArray
    count: FloatArray
    weight: FloatArray
    total: FloatArray
    largest: FloatArray
    item_key: IntArray
    item_value: FloatArray
    item_weight: FloatArray
    item_request: ByteArray
    item_who: IntArray
    item_whole: FloatArray


def tabulate_shared_holdings(shared: Shared, hierarchies: Sequence[Hierarchy], units: int) -> Judged:
    """Add up every shared holding in every cell, for one combination of levels after the other."""
    sizes = [len(h) for h in hierarchies]
    passes = [
        _check_level(shared, [step[shared.coordinates[:, d]] for d, step in enumerate(steps)], sizes, units)
        for steps in product(*(build_rollup_layers(h) for h in hierarchies))
    ]
    joined = {f.name: np.concatenate([getattr(p, f.name) for p in passes]) for f in fields(Judged)}
    order = np.argsort(joined["keys"], kind="stable")
    for name in ("keys", "count", "weight", "total", "largest"):
        joined[name] = joined[name][order]
    return Judged(**joined)


def _check_level(shared: Shared, codes: Sequence[IntArray], sizes: Sequence[int], units: int) -> Judged:
    inside = np.flatnonzero(np.logical_and.reduce([c >= 0 for c in codes]))
    key = compute_grid_keys(np.column_stack([c[inside] for c in codes]).astype(np.int32), sizes)
    cell_keys, cell = group_keys(key, prod(sizes))
    n_who = int(shared.who.max()) + 1
    pair_keys, pair = np.unique(cell * n_who + shared.who[inside], return_inverse=True)
    pair = pair.ravel()

    def add(x: FloatArray) -> FloatArray:
        return np.bincount(pair, weights=x[inside], minlength=len(pair_keys)).astype(np.float64)

    x, ax, wax, w, n = add(shared.x), add(shared.ax), add(shared.wax), add(shared.w), add(shared.n)
    # A holding has the mean weight of its records, weighted by their contributions.
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(ax > 0, wax / ax, w / n)
    open_ = np.zeros(len(pair_keys), dtype=bool)
    open_[pair[~shared.waived[inside]]] = True  # one member of the holding has not waived
    request = np.zeros(len(pair_keys), dtype=np.int8)
    np.maximum.at(request, pair, shared.request[inside])
    at, who = np.divmod(pair_keys, n_who)
    value = np.abs(x)
    largest = np.full(len(cell_keys), -1.0)
    np.maximum.at(largest, at[open_], value[open_])

    def sum_by_cell(amount: FloatArray) -> FloatArray:
        return np.bincount(at, weights=amount, minlength=len(cell_keys)).astype(np.float64)

    keep = _select_largest_holdings(at, value, weight, units)
    return Judged(
        keys=cell_keys,
        count=sum_by_cell(np.ones(len(at))),
        weight=sum_by_cell(weight),
        total=sum_by_cell(weight * value),
        largest=largest,
        item_key=cell_keys[at[keep]],
        item_value=value[keep],
        item_weight=weight[keep],
        item_request=request[keep],
        item_who=who[keep],
        item_whole=np.bincount(shared.who, np.abs(shared.x), minlength=n_who)[who[keep]],
    )


def _select_largest_holdings(cell: IntArray, value: FloatArray, weight: FloatArray, units: int) -> IntArray:
    """Return the rows that fill the first units of each cell, largest first."""
    if not units or not len(cell):
        return np.zeros(0, np.int64)
    order = np.lexsort((-value, cell))
    running = np.cumsum(weight[order]) - weight[order]
    start = np.flatnonzero(np.diff(cell[order], prepend=-1))
    base = np.repeat(running[start], np.diff(np.append(start, len(order))))
    kept: IntArray = order[running - base < units]
    return kept
