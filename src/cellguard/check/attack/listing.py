"""All candidates of any table of counts, where they are few (minami2019 section 3.2, lines 6 to 9 of algorithm 1).

A candidate is the true table plus a whole-number combination of the null space of the relations between
the suppressed cells. The parameters of that space are cells; they are set one after the other, all partial
tables at once, and a partial table is dropped when no values of the parameters left keep a cell within
its range.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import FloatArray, IntArray
from cellguard.nouns.release import Suppression

__all__ = ["list_candidates"]

_PARTIAL = 50
"""Partial tables per candidate wanted: more, and the list is given up."""


def list_candidates(suppression: Suppression, low: FloatArray, high: FloatArray, limit: int) -> IntArray | None:
    """Return all candidates, one row of all cells each; None when there are more than `limit`, or too many on the way.

    Parameters
    ----------
    suppression
        What is published.
    low, high
        Whole-number ranges of the suppressed cells, in their order.
    limit
        How many candidates are few.
    """
    table, hidden = suppression.table, suppression.suppressed
    cells = np.flatnonzero(hidden)
    if not np.isfinite(high).all() or not np.isfinite(low).all():
        return None
    reduction = reduce(table.relations, hidden)
    order = np.argsort((high - low)[np.searchsorted(cells, reduction.parameters)], kind="stable")
    basis = reduction.basis[cells][:, order].toarray()
    at = np.searchsorted(cells, reduction.parameters[order])
    start = np.rint(table.values[cells])
    steps = [np.arange(low[k] - start[k], high[k] - start[k] + 1) for k in at.tolist()]
    # what the parameters that are not yet set can still do to each cell
    least, most = np.zeros((len(steps) + 1, len(cells))), np.zeros((len(steps) + 1, len(cells)))
    for k in range(len(steps) - 1, -1, -1):
        ends = np.outer([steps[k][0], steps[k][-1]], basis[:, k])
        least[k], most[k] = least[k + 1] + ends.min(axis=0), most[k + 1] + ends.max(axis=0)
    partial = start[None, :]
    for k, moves in enumerate(steps):
        if len(partial) * len(moves) > _PARTIAL * max(limit, 1) * 10:
            return None
        partial = (partial[:, None, :] + np.outer(moves, basis[:, k])[None]).reshape(-1, len(cells))
        possible = (partial + least[k + 1] <= high + WHOLE_SOLUTION) & (partial + most[k + 1] >= low - WHOLE_SOLUTION)
        partial = partial[possible.all(axis=1)]
        if len(partial) > _PARTIAL * limit:
            return None
    whole = partial[(np.abs(partial - np.rint(partial)) <= WHOLE_SOLUTION).all(axis=1)]
    if len(whole) > limit:
        return None
    out = np.tile(np.rint(table.values).astype(np.int64), (len(whole), 1))
    out[:, cells] = np.rint(whole).astype(np.int64)
    return out
