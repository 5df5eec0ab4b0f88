"""Implied slack: how far relations let a variable move when the others move as far as they can, without a solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from cellguard._types import FloatArray, IntArray

__all__ = ["Tightened", "expand_rows", "tighten_slack", "tighten_slack_of_views"]


_PASSES = 3
"""Rounds of tightening by the relations; later ones gain ever less."""


def tighten_slack(A: csr_array, down: FloatArray, up: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slack that the relations leave of `down` and `up`."""
    coo = A.tocoo()
    for _ in range(_PASSES):
        rise, fall = _compute_implied_limits(coo.row, A.shape[0], coo.data, down[coo.col], up[coo.col])
        new_down, new_up = down.copy(), up.copy()
        np.minimum.at(new_up, coo.col, rise)
        np.minimum.at(new_down, coo.col, fall)
        if (new_down == down).all() and (new_up == up).all():
            break
        down, up = new_down, new_up
    return down, up


def _compute_implied_limits(
    row: IntArray, n: int, data: FloatArray, down: FloatArray, up: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return how far each entry's variable can rise and fall before the others of its row cannot compensate.

    Parameters
    ----------
    row, n
        Row of each entry, and the number of rows.
    data
        Coefficient of each entry.
    down, up
        Slack of each entry's variable.
    """
    size, positive = np.abs(data), data > 0
    # how far the term of each entry can rise, and fall
    rise = size * np.where(positive, up, down)
    fall = size * np.where(positive, down, up)
    limits = []
    for term in (fall, rise):  # a term can rise at most as far as all others together can fall
        infinite = np.isinf(term)
        finite = np.where(infinite, 0.0, term)
        total = np.bincount(row, finite, minlength=n)[row]
        n_infinite = np.bincount(row, infinite, minlength=n)[row]
        rest = (total - finite) * (1 + 1e-14) + 1e-15 * total
        rest[total - finite <= 0] = 0.0
        limits.append(np.where(n_infinite - infinite > 0, np.inf, rest) / size)
    return np.where(positive, limits[0], limits[1]), np.where(positive, limits[1], limits[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Tightened:
    """Slack of some variables for some views, where it is tighter than the public slack."""

    n_variables: int
    key: IntArray
    """``view * n_variables + variable``, ascending."""
    down: FloatArray
    up: FloatArray

    def get_slack(
        self, view: IntArray, variable: IntArray, down: FloatArray, up: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the slack of variables for views: `down` and `up` where it is not tightened."""
        if not len(self.key):
            return down, up
        wanted = view * self.n_variables + variable
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        hit = self.key[place] == wanted
        return np.where(hit, self.down[place], down), np.where(hit, self.up[place], up)

    @classmethod
    def join_least(cls, n_variables: int, key: IntArray, down: FloatArray, up: FloatArray) -> Tightened:
        """Take the least slack where a key occurs more than once."""
        keys, place = np.unique(key, return_inverse=True)
        least = np.full(len(keys), np.inf), np.full(len(keys), np.inf)
        np.minimum.at(least[0], place, down)
        np.minimum.at(least[1], place, up)
        return cls(n_variables=n_variables, key=keys, down=least[0], up=least[1])


def tighten_slack_of_views(A: csr_array, down: FloatArray, up: FloatArray, known: Tightened) -> Tightened:
    """Return the slack that the relations leave, for many views at once.

    Only relations with a variable on which a view has tighter bounds are examined, and those that this
    changes in turn.

    Parameters
    ----------
    A
        Relations between the variables.
    down, up
        Public slack, tightened by the relations.
    known
        Tighter bounds of the views.
    """
    m, k = A.shape
    columns = csr_array(A.T)
    changed = known.key
    for _ in range(_PASSES):
        view, entry = expand_rows(columns.indptr, changed % k, changed // k)
        pair = np.unique(view * m + columns.indices[entry])
        number, entry = expand_rows(A.indptr, pair % m, np.arange(len(pair)))
        view, variable = pair[number] // m, A.indices[entry].astype(np.int64)
        before = known.get_slack(view, variable, down[variable], up[variable])
        rise, fall = _compute_implied_limits(number, len(pair), A.data[entry], *before)
        better = (fall < before[0]) | (rise < before[1])
        if not better.any():
            break
        fall, rise = np.minimum(fall, before[0])[better], np.minimum(rise, before[1])[better]
        new = view[better] * k + variable[better]
        known = Tightened.join_least(
            k, np.concatenate([known.key, new]), np.concatenate([known.down, fall]), np.concatenate([known.up, rise])
        )
        changed = np.unique(new)
    return known


def expand_rows(indptr: IntArray, rows: IntArray, label: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions of all entries of some rows, and the label of the row of each."""
    start, length = indptr[rows].astype(np.int64), np.diff(indptr)[rows].astype(np.int64)
    first = np.cumsum(length) - length
    place = np.arange(int(length.sum())) - np.repeat(first, length) + np.repeat(start, length)
    return np.repeat(label, length), place
