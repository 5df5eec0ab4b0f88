"""The cross of linked tables, which is not published: its cells, and what the empty ones tell as relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.nouns.checks import additivity_residuals

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._engine.space.cross import Cross
    from cellguard.nouns.hierarchy import Hierarchy
    from cellguard.nouns.table import Table

__all__ = [
    "crosses_of_cells",
    "crosses_to_audit",
    "relations_that_hold",
    "table_with_the_cross",
    "table_zeros_that_are_known",
]


def table_zeros_that_are_known(table: Table) -> BoolArray:
    """Return which cells everybody knows to be zero: nobody is in them, or nothing was given."""
    return np.asarray(table.fixed & (table.lb == 0) & (table.ub == 0))


def relations_that_hold(relations: csr_array, values: FloatArray) -> csr_array:
    """Return the relations that the values satisfy: only what is true is known."""
    residual, allowed = additivity_residuals(relations, np.zeros(relations.shape[0]), values)
    return relations[np.flatnonzero(np.abs(residual) <= 100 * allowed)]


def table_with_the_cross(table: Table) -> Table:
    """Return a table whose crossings share dimensions in a cycle with their cross, and what empty cells tell of it."""
    if len(table.dimensions) < 3 or len(table.hierarchies) < len(table.dimensions):
        return table
    from cellguard._engine.space.cross import crosses_of_tables, relations_from_cross_null_space, telling_crosses

    empty = table_zeros_that_are_known(table)
    crosses = crosses_of_tables(table.coordinates, [_tree_of_hierarchy(h) for h in table.hierarchies], empty)
    table = table.with_(**crosses_to_audit(crosses))
    telling = telling_crosses(crosses) if empty.any() else []
    if not telling:
        return table
    from scipy.sparse import vstack

    told = [relations_from_cross_null_space(cross, empty, table.relations) for cross in telling]
    more = vstack([relations_that_hold(some, table.values) for some in told], format="csr")
    rhs = np.concatenate([table.rhs, np.zeros(more.shape[0])])
    return table.with_(relations=vstack([table.relations, more], format="csr"), rhs=rhs)


def _tree_of_hierarchy(hierarchy: Hierarchy) -> dict[int, list[list[int]]]:
    """Return which codes each code is the sum of."""
    found = hierarchy.relations()
    tree: dict[int, list[list[int]]] = {}
    for k, total in enumerate(found.totals.tolist()):
        tree.setdefault(total, []).append(list(found.parts_of(k)))
    return tree


def crosses_to_audit(crosses: Sequence[Cross]) -> dict[str, Any]:
    """Return the fields of a table for its crosses: those that programs can take, and how many others there are."""
    from cellguard._engine.space.cross import MOST_IN_PROGRAMS

    small = tuple(cross.cells for cross in crosses if len(cross.cells) <= MOST_IN_PROGRAMS)
    return {"crosses": small, "crosses_left_out": len(crosses) - len(small)}


def crosses_of_cells(crosses: Sequence[IntArray], cells: IntArray, n: int) -> tuple[IntArray, ...]:
    """Return the crosses of some cells of a table of `n`, by their own numbers; one that needs others is left out."""
    place = np.full(n, -1, np.int64)
    place[cells] = np.arange(len(cells))
    moved = (place[cross] for cross in crosses)
    return tuple(cross for cross in moved if len(cross) and (cross >= 0).all())
