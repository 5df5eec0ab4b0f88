"""What empty cells tell about the cross of several tables, which none of them publishes.

Tables of region by activity, activity by size and region by size are margins of one table of all three. Its cells are
not published, but a cell of it is empty where one of its margins is, and everybody sees that. Let M say which cell of
the cross, if it may be filled, counts in which published cell. Every y with ``y M = 0`` is a relation between
published cells, whatever the cross holds. Those of a full cross are the relations of the tables; where much is
empty there are more: where mines and power stations are large and everything else is small, the large firms of a
region less its power stations are its mines.

Tables that hang together like a tree (no cycle of shared dimensions) tell nothing in this way: whatever fits each of
them is the margins of some cross. What else is known of the cross, that nothing in it is negative, stands in
:mod:`cellguard._engine.ranges.cross_reach`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr

from cellguard._engine.space.reduce import independent_rows, reduced_to_whole_coefficients
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray

__all__ = [
    "MOST_IN_PROGRAMS", "Cross", "Tree", "crosses_of_tables", "relations_from_cross_null_space", "telling_crosses",
]  # fmt: skip

Tree: TypeAlias = Mapping[int, Sequence[Sequence[int]]]
"""Code -> the codes that it is the sum of, in each way that is known."""
Layout = frozenset[int]
"""The dimensions of a table."""

MOST_IN_PROGRAMS = 50_000
"""Cells of a cross beyond which programs take too long, so that only its empty cells are looked at."""
_MOST = 200_000
"""Cells of a cross, beyond which it is left alone."""
_ENTRIES = 5_000_000
"""Entries of an elimination, beyond which it is given up."""
_STEPS = 2_000
"""Steps of least squares, after which it is not known whether margins are all."""
_FIRST = 2
"""The elimination begins with so many cells of the cross for each published one."""


class Cross(NamedTuple):
    """The unpublished cross of some tables."""

    cells: IntArray
    """Its cells that may be filled, as the published cells that each counts in: a column for each table."""
    margins: csr_array
    """What holds between the tables whatever is empty: the margins that two of them share."""


def crosses_of_tables(coordinates: Coordinates, trees: Sequence[Tree], empty: BoolArray) -> list[Cross]:
    """Return the crosses of tables, each with its cells that may be filled.

    Tables that hang together in cycles have a cross, each group of them its own: by the finest codes that all of them
    have. There is none where it is published itself, where the tables form a tree, and where it has too many cells.

    Parameters
    ----------
    coordinates
        Code of each cell in each dimension; 0 is the total.
    trees
        Dimension by dimension: the codes that each code is the sum of, in one way or in several.
    empty
        Cells that everybody knows to be empty.
    """
    layout = (coordinates > 0) @ (1 << np.arange(len(trees)))
    tables: dict[Layout, IntArray] = {}
    for number in np.unique(layout).tolist():
        dimensions = frozenset(d for d in range(len(trees)) if number >> d & 1)
        cells = np.flatnonzero(layout == number)
        if dimensions and _cut_of_cross_space({dimensions: cells}, coordinates, trees) is not None:
            tables[dimensions] = cells
    found = []
    for group in _groups_of_layouts(_cyclic_layouts_in_cross_space(list(tables))):
        chosen = _cut_of_cross_space({one: tables[one] for one in group}, coordinates, trees)
        if chosen is not None:
            filled = [(one, cells[~empty[cells]]) for one, cells in chosen.items()]
            cross = _filled_incidence_of_cross(filled, coordinates)
            if cross is not None and len(cross):
                found.append(Cross(cross, _shared_margins(filled, coordinates)))
    return found


def _shared_margins(tables: Sequence[tuple[Layout, IntArray]], coordinates: Coordinates) -> csr_array:
    """Return the margins that each two tables share, as relations between their cells."""
    rows: list[IntArray] = []
    columns: list[IntArray] = []
    signs: list[FloatArray] = []
    first = 0
    for (one, mine), (other, theirs) in combinations(tables, 2):
        shared = sorted(one & other)
        both = np.concatenate([mine, theirs])
        _, group = np.unique(coordinates[both][:, shared], axis=0, return_inverse=True)
        rows.append(first + group.ravel())
        columns.append(both)
        signs.append(np.repeat([1.0, -1.0], [len(mine), len(theirs)]))
        first = int(rows[-1].max(initial=first - 1)) + 1
    shape = (first, len(coordinates))
    return csr_array((np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def relations_from_cross_null_space(cross: Cross, empty: BoolArray, known: csr_array) -> csr_array:
    """Return relations between cells that no known one implies, since much of the cross is empty."""
    return _relations_outside_known_space(_left_null_space(cross.cells, len(empty)), known, empty)


def telling_crosses(crosses: Sequence[Cross]) -> list[Cross]:
    """Return the crosses whose empty cells tell something; indicators of the same tables are looked at once."""
    tells: dict[bytes, bool] = {}
    out = []
    for cross in crosses:
        key = np.unique(cross.cells, return_inverse=True)[1].astype(np.int32).tobytes()
        if key not in tells:
            tells[key] = not _cross_tells_nothing(cross)
        if tells[key]:
            out.append(cross)
    return out


def _cross_tells_nothing(cross: Cross) -> bool:
    """Whether nothing but the shared margins holds between the tables, as far as a random combination tells.

    Take from a random vector what is a combination of margins. Least squares recover the rest of it from its sums over
    the cells of the cross exactly when nothing else is lost in these sums, that is, when no other relation holds.
    """
    columns, place = np.unique(cross.cells, return_inverse=True)
    M, K = _incidence(place.reshape(cross.cells.shape), len(columns)), cross.margins[:, columns]
    rng = np.random.default_rng(1)
    b = rng.standard_normal(len(columns))
    b -= K.T @ lsqr(K.T, b, atol=1e-13, btol=1e-13, iter_lim=_STEPS)[0]
    seen = lsqr(M, M @ b, atol=1e-13, btol=1e-13, iter_lim=_STEPS)[0]
    return bool(np.linalg.norm(b - seen) <= 1e-7 * np.linalg.norm(b))


def _cut_of_cross_space(
    tables: dict[Layout, IntArray], coordinates: Coordinates, trees: Sequence[Tree]
) -> dict[Layout, IntArray] | None:
    """Return the cells of tables by the finest codes that all of them have; None where these do not make the whole."""
    chosen = {}
    for d in sorted({d for layout in tables for d in layout}):
        own = [set(np.unique(coordinates[cells, d]).tolist()) for layout, cells in tables.items() if d in layout]
        codes = _finest_codes(set.intersection(*own), trees[d], 0, {})
        if codes is None or 0 in codes:
            return None
        chosen[d] = np.array(codes)
    out = {}
    for layout, cells in tables.items():
        mine = cells[np.all([np.isin(coordinates[cells, d], chosen[d]) for d in layout], axis=0)]
        if len(mine) != np.prod([len(chosen[d]) for d in layout]):
            return None
        out[layout] = mine
    return out


def _finest_codes(known: set[int], tree: Tree, code: int, seen: dict[int, list[int] | None]) -> list[int] | None:
    """Return the finest of the known codes that make up a code; None where there are none. `seen` is what was found."""
    if code not in seen:
        seen[code] = [code] if code in known else None
        for kids in tree.get(code, ()):
            below = [_finest_codes(known, tree, kid, seen) for kid in kids if kid != code]
            if below and all(part is not None for part in below):
                seen[code] = [one for part in below for one in part or ()]
                break
    return seen[code]


def _groups_of_layouts(layouts: Sequence[Layout]) -> list[list[Layout]]:
    """Return the combinations of dimensions that hang together by shared ones."""
    groups: list[list[Layout]] = []
    for layout in layouts:
        near = [group for group in groups if any(layout & other for other in group)]
        groups = [group for group in groups if group not in near] + [
            [layout, *(one for group in near for one in group)]
        ]
    return groups


def _cyclic_layouts_in_cross_space(layouts: Sequence[Layout]) -> list[Layout]:
    """Return the combinations of dimensions that form cycles, by Graham's algorithm: ears are cut off."""
    left = list(layouts)
    while True:
        left = [a for k, a in enumerate(left) if not any(a < b or (a == b and j < k) for j, b in enumerate(left))]
        lonely = {d for a in left for d in a if sum(d in b for b in left) == 1}
        cut = [a - lonely for a in left]
        if cut == left:
            return [a for a in left if a in layouts] if len(left) > 2 else []
        left = [a for a in cut if a]


def _filled_incidence_of_cross(tables: Sequence[tuple[Layout, IntArray]], coordinates: Coordinates) -> IntArray | None:
    """Return the cells of the cross that may be filled, as the published cells that each counts in; None: too many."""
    if len(tables) < 3:
        return None
    joined: dict[int, IntArray] = {}
    columns: list[IntArray] = []
    for layout, cells in tables:
        own = {d: coordinates[cells, d].astype(np.int64) for d in layout}
        shared = [d for d in layout if d in joined]
        left, right = _matching_rows_in_cross_space(
            [joined[d] for d in shared], [own[d] for d in shared], columns, len(cells)
        )
        if len(left) > _MOST:
            return None
        joined = {d: codes[left] for d, codes in joined.items()} | {d: codes[right] for d, codes in own.items()}
        columns = [*(column[left] for column in columns), cells[right]]
    return np.column_stack(columns)


def _matching_rows_in_cross_space(
    there: Sequence[IntArray], own: Sequence[IntArray], columns: Sequence[IntArray], n: int
) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows that agree in all the given codes, as a join of two tables does."""
    rows = len(columns[0]) if columns else 1
    size = [int(max(a.max(initial=0), b.max(initial=0))) + 1 for a, b in zip(there, own, strict=True)]
    first, second = np.zeros(rows, np.int64), np.zeros(n, np.int64)
    for a, b, s in zip(there, own, size, strict=True):
        first, second = first * s + a, second * s + b
    order = np.argsort(second, kind="stable")
    begin, end = (np.searchsorted(second[order], first, side) for side in ("left", "right"))
    count = np.minimum(end - begin, _MOST + 1)
    if count.sum() > _MOST:
        return np.zeros(_MOST + 1, np.int64), np.zeros(_MOST + 1, np.int64)
    left = np.repeat(np.arange(rows), count)
    place = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
    return left, order[begin[left] + place]


def _left_null_space(cross: IntArray, n: int) -> csr_array:
    """Return a basis of what holds between published cells for every cell of the cross."""
    from cellguard._core.widest import widest

    columns, place = np.unique(cross, return_inverse=True)
    place = place.reshape(cross.shape)
    rng = np.random.default_rng(0)
    some = rng.permutation(len(place))[: _FIRST * len(columns)]
    M = _incidence(place, len(columns))
    while True:
        A = M[some]
        start, index, value = widest(
            A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data, np.arange(len(columns)), _ENTRIES
        )
        found = csr_array((value, index, start), shape=(len(start) - 1, len(columns)))
        # a cell of the cross for which one of them does not hold is seen in random combinations of all
        mixed = found.T @ rng.uniform(1.0, 2.0, (found.shape[0], 2))
        wrong = np.flatnonzero((np.abs(M @ mixed) > 1e-7 * (M @ np.abs(mixed))).any(axis=1))
        if not len(wrong):
            return csr_array((found.data, columns[found.indices], found.indptr), shape=(found.shape[0], n))
        some = np.concatenate([some, wrong[: _FIRST * len(columns)]])


def _incidence(place: IntArray, n: int) -> csr_array:
    rows, width = place.shape
    return csr_array((np.ones(place.size), place.ravel(), np.arange(0, place.size + 1, width)), shape=(rows, n))


def _relations_outside_known_space(found: csr_array, known: csr_array, empty: BoolArray) -> csr_array:
    """Return the relations that the known ones do not imply, given what is empty."""
    if not found.shape[0]:
        return found
    found = reduced_to_whole_coefficients(found)
    known = csr_array(known * ~empty)
    known.eliminate_zeros()
    known = csr_array(known[np.flatnonzero(np.diff(known.indptr))])
    kept = independent_rows(csr_array(vstack([known, found])))
    if len(kept) == len(independent_rows(known)):
        return found[:0]
    return csr_array(found[kept[kept >= known.shape[0]] - known.shape[0]])
