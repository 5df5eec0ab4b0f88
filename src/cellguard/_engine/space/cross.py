"""What empty cells reveal about the cross of several tables, which none of them publishes.

Tables of region by activity, activity by size and region by size are margins of one table of all three. Its cells are
not published, but a cell of it is empty where one of its margins is, and everybody sees that. Let M say which cell of
the cross, if it may be filled, counts in which published cell. Every y with ``y M = 0`` is a relation between
published cells, for any values of the cross. A full cross gives the relations of the tables; where much is
empty there are more. Example: if only mines and power stations are large, then the large firms of a
region minus its power stations are its mines.

Tables that form a tree (no cycle of shared dimensions) reveal nothing in this way: any values that fit each of
them are the margins of some cross. The other known fact, that nothing in the cross is negative, is used in
:mod:`cellguard._engine.ranges.search.cross_reach`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsqr

from cellguard._engine.space.reduce import scale_to_whole_coefficients, select_independent_rows
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray

__all__ = [
    "MOST_IN_PROGRAMS",
    "Cross",
    "Tree",
    "derive_cross_relations",
    "filter_informative_crosses",
    "find_crosses",
]  # fmt: skip

Tree: TypeAlias = Mapping[int, Sequence[Sequence[int]]]
"""Code -> the codes that add up to it, for each known way."""
Layout = frozenset[int]
"""The dimensions of a table."""

MOST_IN_PROGRAMS = 50_000
"""Number of cells of a cross beyond which programs take too long, so that only its empty cells are used."""
_MOST = 200_000
"""Number of cells beyond which a cross is ignored."""
_ENTRIES = 5_000_000
"""Entries beyond which an elimination is abandoned."""
_STEPS = 2_000
"""Steps of least squares after which it is unknown whether the margins are the only relations."""
_FIRST = 2
"""Number of cells of the cross per published cell with which the elimination begins."""


class Cross(NamedTuple):
    """The unpublished cross of some tables."""

    cells: IntArray
    """Its cells that may be filled, as the published cells in which each counts: a column for each table."""
    margins: csr_array
    """Relations between the tables that hold regardless of empty cells: the margins that two of them share."""


def find_crosses(coordinates: Coordinates, trees: Sequence[Tree], empty: BoolArray) -> list[Cross]:
    """Return the crosses of tables, each with its cells that may be filled.

    Each group of tables that are linked in cycles has a cross, by the finest codes that all of them
    have. There is none where it is published itself, where the tables form a tree, and where it has too many cells.

    Parameters
    ----------
    coordinates
        Code of each cell in each dimension; 0 is the total.
    trees
        Dimension by dimension: the codes that add up to each code, in one way or several.
    empty
        Cells that everybody knows to be empty.
    """
    layout = (coordinates > 0) @ (1 << np.arange(len(trees)))
    tables: dict[Layout, IntArray] = {}
    for number in np.unique(layout).tolist():
        dimensions = frozenset(d for d in range(len(trees)) if number >> d & 1)
        cells = np.flatnonzero(layout == number)
        if dimensions and _select_finest_cells({dimensions: cells}, coordinates, trees) is not None:
            tables[dimensions] = cells
    found = []
    for group in _group_layouts(_find_cyclic_layouts(list(tables))):
        chosen = _select_finest_cells({one: tables[one] for one in group}, coordinates, trees)
        if chosen is not None:
            filled = [(one, cells[~empty[cells]]) for one, cells in chosen.items()]
            cross = _build_filled_incidence(filled, coordinates)
            if cross is not None and len(cross):
                found.append(Cross(cross, _find_shared_margins(filled, coordinates)))
    return found


def _find_shared_margins(tables: Sequence[tuple[Layout, IntArray]], coordinates: Coordinates) -> csr_array:
    """Return the margins that each pair of tables shares, as relations between their cells."""
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


def derive_cross_relations(cross: Cross, empty: BoolArray, known: csr_array) -> csr_array:
    """Return relations between cells that follow from empty cells of the cross, and not from known relations."""
    return _drop_implied_relations(_compute_left_null_space(cross.cells, len(empty)), known, empty)


def filter_informative_crosses(crosses: Sequence[Cross]) -> list[Cross]:
    """Return the crosses whose empty cells reveal something; indicators of the same tables are examined once."""
    tells: dict[bytes, bool] = {}
    out = []
    for cross in crosses:
        key = np.unique(cross.cells, return_inverse=True)[1].astype(np.int32).tobytes()
        if key not in tells:
            tells[key] = not _is_uninformative(cross)
        if tells[key]:
            out.append(cross)
    return out


def _is_uninformative(cross: Cross) -> bool:
    """Return whether only the shared margins hold between the tables, as far as a random combination shows.

    Remove from a random vector its projection on the margins. Least squares recover the rest from its sums over
    the cells of the cross exactly when no other relation holds.
    """
    columns, place = np.unique(cross.cells, return_inverse=True)
    M, K = _build_incidence(place.reshape(cross.cells.shape), len(columns)), cross.margins[:, columns]
    rng = np.random.default_rng(1)
    b = rng.standard_normal(len(columns))
    b -= K.T @ lsqr(K.T, b, atol=1e-13, btol=1e-13, iter_lim=_STEPS)[0]
    seen = lsqr(M, M @ b, atol=1e-13, btol=1e-13, iter_lim=_STEPS)[0]
    return bool(np.linalg.norm(b - seen) <= 1e-7 * np.linalg.norm(b))


def _select_finest_cells(
    tables: dict[Layout, IntArray], coordinates: Coordinates, trees: Sequence[Tree]
) -> dict[Layout, IntArray] | None:
    """Return the cells of tables by the finest codes that all of them have; None if these do not make up the whole."""
    chosen = {}
    for d in sorted({d for layout in tables for d in layout}):
        own = [set(np.unique(coordinates[cells, d]).tolist()) for layout, cells in tables.items() if d in layout]
        codes = _find_finest_codes(set.intersection(*own), trees[d], 0, {})
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


def _find_finest_codes(known: set[int], tree: Tree, code: int, seen: dict[int, list[int] | None]) -> list[int] | None:
    """Return the finest known codes that make up a code; None if there are none. `seen` holds earlier results."""
    if code not in seen:
        seen[code] = [code] if code in known else None
        for kids in tree.get(code, ()):
            below = [_find_finest_codes(known, tree, kid, seen) for kid in kids if kid != code]
            if below and all(part is not None for part in below):
                seen[code] = [one for part in below for one in part or ()]
                break
    return seen[code]


def _group_layouts(layouts: Sequence[Layout]) -> list[list[Layout]]:
    """Return the combinations of dimensions that are linked by shared ones."""
    groups: list[list[Layout]] = []
    for layout in layouts:
        near = [group for group in groups if any(layout & other for other in group)]
        groups = [group for group in groups if group not in near] + [
            [layout, *(one for group in near for one in group)]
        ]
    return groups


def _find_cyclic_layouts(layouts: Sequence[Layout]) -> list[Layout]:
    """Return the combinations of dimensions that form cycles, by Graham's algorithm, which removes ears."""
    left = list(layouts)
    while True:
        left = [a for k, a in enumerate(left) if not any(a < b or (a == b and j < k) for j, b in enumerate(left))]
        lonely = {d for a in left for d in a if sum(d in b for b in left) == 1}
        cut = [a - lonely for a in left]
        if cut == left:
            return [a for a in left if a in layouts] if len(left) > 2 else []
        left = [a for a in cut if a]


def _build_filled_incidence(tables: Sequence[tuple[Layout, IntArray]], coordinates: Coordinates) -> IntArray | None:
    """Return the cells of the cross that may be filled, as the published cells in which each counts; None: too many."""
    if len(tables) < 3:
        return None
    joined: dict[int, IntArray] = {}
    columns: list[IntArray] = []
    for layout, cells in tables:
        own = {d: coordinates[cells, d].astype(np.int64) for d in layout}
        shared = [d for d in layout if d in joined]
        left, right = _join_rows([joined[d] for d in shared], [own[d] for d in shared], columns, len(cells))
        if len(left) > _MOST:
            return None
        joined = {d: codes[left] for d, codes in joined.items()} | {d: codes[right] for d, codes in own.items()}
        columns = [*(column[left] for column in columns), cells[right]]
    return np.column_stack(columns)


def _join_rows(
    there: Sequence[IntArray], own: Sequence[IntArray], columns: Sequence[IntArray], n: int
) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows that agree in all the given codes, like a join of two tables."""
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


def _compute_left_null_space(cross: IntArray, n: int) -> csr_array:
    """Return a basis of the relations between published cells that hold for every cell of the cross."""
    from cellguard._core.widest import widest

    columns, place = np.unique(cross, return_inverse=True)
    place = place.reshape(cross.shape)
    rng = np.random.default_rng(0)
    some = rng.permutation(len(place))[: _FIRST * len(columns)]
    M = _build_incidence(place, len(columns))
    while True:
        A = M[some]
        start, index, value = widest(
            A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data, np.arange(len(columns)), _ENTRIES
        )
        found = csr_array((value, index, start), shape=(len(start) - 1, len(columns)))
        # a cell of the cross that violates one of them shows in random combinations of all
        mixed = found.T @ rng.uniform(1.0, 2.0, (found.shape[0], 2))
        wrong = np.flatnonzero((np.abs(M @ mixed) > 1e-7 * (M @ np.abs(mixed))).any(axis=1))
        if not len(wrong):
            return csr_array((found.data, columns[found.indices], found.indptr), shape=(found.shape[0], n))
        some = np.concatenate([some, wrong[: _FIRST * len(columns)]])


def _build_incidence(place: IntArray, n: int) -> csr_array:
    rows, width = place.shape
    return csr_array((np.ones(place.size), place.ravel(), np.arange(0, place.size + 1, width)), shape=(rows, n))


def _drop_implied_relations(found: csr_array, known: csr_array, empty: BoolArray) -> csr_array:
    """Return the relations that the known ones do not imply, given the empty cells."""
    if not found.shape[0]:
        return found
    found = scale_to_whole_coefficients(found)
    known = csr_array(known * ~empty)
    known.eliminate_zeros()
    known = csr_array(known[np.flatnonzero(np.diff(known.indptr))])
    kept = select_independent_rows(csr_array(vstack([known, found])))
    if len(kept) == len(select_independent_rows(known)):
        return found[:0]
    return csr_array(found[kept[kept >= known.shape[0]] - known.shape[0]])
