"""What empty cells of linked tables tell about their cross, which is not published, as relations of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import BoolArray, FloatArray
from cellguard.nouns.checks import additivity_residuals

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.nouns.table import Table

__all__ = ["empty_cells", "relations_that_hold", "with_relations_of_the_cross"]


def empty_cells(table: Table) -> BoolArray:
    """Return which cells everybody knows to be empty."""
    return np.asarray(table.fixed & (table.lb == 0) & (table.ub == 0))


def relations_that_hold(relations: csr_array, values: FloatArray) -> csr_array:
    """Return the relations that the values satisfy: only what is true is known."""
    residual, allowed = additivity_residuals(relations, np.zeros(relations.shape[0]), values)
    return relations[np.flatnonzero(np.abs(residual) <= 100 * allowed)]


def with_relations_of_the_cross(table: Table) -> Table:
    """Return a table whose crossings share dimensions in a cycle with what its empty cells tell besides."""
    if len(table.dimensions) < 3 or len(table.hierarchies) < len(table.dimensions):
        return table
    empty = empty_cells(table)
    if not empty.any():
        return table
    from scipy.sparse import vstack

    from cellguard._engine.space.cross import relations_of_the_cross

    leaves = [np.isin(np.arange(len(h)), h.leaves[h.leaves > 0]) for h in table.hierarchies]
    found = relations_of_the_cross(table.coordinates, leaves, empty, table.relations)
    more = relations_that_hold(found, table.values)
    if not more.shape[0]:
        return table
    rhs = np.concatenate([table.rhs, np.zeros(more.shape[0])])
    return table.with_(relations=vstack([table.relations, more], format="csr"), rhs=rhs)
