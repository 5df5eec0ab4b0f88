"""The unpublished cross of linked tables: its cells, and the relations that follow from its empty cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.checks import compute_residuals_and_noise

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._engine.space.cross import Cross
    from cellguard.model.hierarchy import Hierarchy
    from cellguard.model.table import Table

__all__ = [
    "add_cross",
    "find_known_zeros",
    "restrict_crosses",
    "select_true_relations",
    "split_crosses_by_size",
]


def find_known_zeros(table: Table) -> BoolArray:
    """Return which cells every attacker knows to be zero: they have no contributor, or their value is zero."""
    counted = table.count_cells & (table.values == 0) & ~table.sensitive & table.zeros_are_known
    return np.asarray((table.fixed & (table.lb == 0) & (table.ub == 0)) | counted)


def select_true_relations(relations: csr_array, values: FloatArray) -> csr_array:
    """Return the relations that the values satisfy; attackers know only true relations."""
    residual, allowed = compute_residuals_and_noise(relations, np.zeros(relations.shape[0]), values)
    return relations[np.flatnonzero(np.abs(residual) <= 100 * allowed)]


def add_cross(table: Table) -> Table:
    """Return a table whose crossings share dimensions in a cycle, with its cross and what its empty cells reveal."""
    if len(table.dimensions) < 3 or len(table.hierarchies) < len(table.dimensions):
        return table
    from cellguard._engine.space.cross import derive_cross_relations, filter_informative_crosses, find_crosses

    empty = find_known_zeros(table)
    crosses = find_crosses(table.coordinates, [_list_components(h) for h in table.hierarchies], empty)
    table = table.with_(**split_crosses_by_size(crosses))
    telling = filter_informative_crosses(crosses) if empty.any() else []
    if not telling:
        return table
    from scipy.sparse import vstack

    told = [derive_cross_relations(cross, empty, table.relations) for cross in telling]
    more = vstack([select_true_relations(some, table.values) for some in told], format="csr")
    rhs = np.concatenate([table.rhs, np.zeros(more.shape[0])])
    return table.with_(relations=vstack([table.relations, more], format="csr"), rhs=rhs)


def _list_components(hierarchy: Hierarchy) -> dict[int, list[list[int]]]:
    """Return the codes that each code is the sum of."""
    found = hierarchy.relations()
    tree: dict[int, list[list[int]]] = {}
    for k, total in enumerate(found.totals.tolist()):
        tree.setdefault(total, []).append(list(found.get_parts(k)))
    return tree


def split_crosses_by_size(crosses: Sequence[Cross]) -> dict[str, Any]:
    """Return the table's fields for its crosses: those small enough for programs, and the number of others."""
    from cellguard._engine.space.cross import MOST_IN_PROGRAMS

    small = tuple(cross.cells for cross in crosses if len(cross.cells) <= MOST_IN_PROGRAMS)
    return {"crosses": small, "crosses_left_out": len(crosses) - len(small)}


def restrict_crosses(crosses: Sequence[IntArray], cells: IntArray, n: int) -> tuple[IntArray, ...]:
    """Return the crosses of some cells of a table of `n`, renumbered; leave out a cross that needs other cells."""
    place = np.full(n, -1, np.int64)
    place[cells] = np.arange(len(cells))
    moved = (place[cross] for cross in crosses)
    return tuple(cross for cross in moved if len(cross) and (cross >= 0).all())
