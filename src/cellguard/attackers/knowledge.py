"""Own parts: what every contributor knows about the cells to which they contribute.

A contributor knows what they gave to each of their cells. Each of those cells is at least that large, and a cell with
no other contributor is known to them exactly. A holding knows the sum of its shares in every cell. If a weight
represents other units as well, only the contributor's own answer is their own part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cellguard._engine.space.groups import find_groups
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attackers.public import find_connected_parts
from cellguard.exceptions import InputError
from cellguard.model.table import Table

__all__ = [
    "OwnParts", "add_possible_parts", "add_up_parts", "can_tell_counts", "can_tell_shares", "count_contributors",
    "find_own_parts",
]  # fmt: skip

ROUNDING = 1e-9
"""Share of a value that sums of contributions may be off by."""
MAX_DEPTH = 64
"""Levels of a classification through which parts are added up; no classification is deeper."""
RANKS_WITHOUT_NAMES = 2
"""Contributors of a cell that become attackers of their own if their names are unknown; the rest are bounded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnParts:
    """What contributors gave to cells: one entry per contributor and cell, ordered by contributor and cell."""

    who: IntArray
    """Number of the contributor."""
    cell: IntArray
    """A cell to which they contribute."""
    amount: FloatArray
    """How much of the published value is their own."""
    alone: BoolArray
    """Whether they are its only contributor."""
    rest: FloatArray
    """One per cell of the table: the most that a contributor without an entry for it gave. 0 where all have one."""
    missing: FloatArray
    """How much more the contributor gave to all cells together than to this one; infinite where that is unknown."""
    certain: FloatArray | None = None
    """How much of `amount` is certainly their own, where the rest is only possible; None: all of it."""

    def select(self, which: BoolArray | IntArray) -> OwnParts:
        """Return some of the entries."""
        return OwnParts(
            who=self.who[which], cell=self.cell[which], amount=self.amount[which], alone=self.alone[which],
            rest=self.rest, missing=self.missing[which], certain=None if self.certain is None else self.certain[which],
        )  # fmt: skip

    @classmethod
    def from_entries(
        cls,
        who: IntArray,
        cell: IntArray,
        amount: FloatArray,
        alone: BoolArray,
        rest: FloatArray,
        missing: FloatArray | None = None,
    ) -> OwnParts:
        """Order entries; of two for one contributor and cell, keep the larger part."""
        order = np.lexsort((-amount, cell, who))
        same = (np.diff(who[order]) == 0) & (np.diff(cell[order]) == 0)
        order = order[np.append(True, ~same)] if len(order) else order
        missing = np.zeros(len(who)) if missing is None else missing
        return cls(
            who=who[order], cell=cell[order].astype(np.int64), amount=amount[order], alone=alone[order], rest=rest,
            missing=missing[order],
        )  # fmt: skip


def find_own_parts(table: Table) -> OwnParts:
    """Return what the contributors of a table gave, as far as the table knows."""
    parts = _find_parts_by_name(table) if _has_names(table) else _find_parts_by_rank(table)
    parts = _add_empty_parts(table, parts)
    return parts if table.parts is None else _split_by_cluster(table, parts)


def can_tell_counts(table: Table) -> bool:
    """Return whether the table knows how many contributors its cells have."""
    return _has_names(table) or table.counts is not None


def can_tell_shares(table: Table) -> bool:
    """Return whether the table knows what the largest contributors of its cells gave of the published values."""
    return _get_largest_shares(table) is not None


def count_contributors(table: Table) -> FloatArray:
    """Return the number of contributors of each cell."""
    if _has_names(table):
        return np.asarray(table.statistics.count, np.float64)
    if table.counts is None:
        raise InputError(
            "the table does not know who contributed to its cells, nor how many did.",
            hint="make it with cg.tabulate, or give the numbers of contributors (counts=...).",
        )
    return table.counts


def _has_names(table: Table) -> bool:
    cells: Any = table.statistics
    return getattr(cells, "contributors", None) is not None and cells.units >= 1


def _are_contributor_counts(table: Table) -> bool:
    """Return whether the values are the numbers of contributors: each of them gave 1."""
    return table.integer and table.counts is not None and np.array_equal(table.counts, table.values)


def _get_own_statistics(table: Table) -> Any:
    """Return the statistics of the published variable; None where only those of another one are known."""
    cells: Any = table.statistics
    own = getattr(cells, "own", None)
    return own if own is not None else None if getattr(cells, "shadow", False) else cells


def _get_largest_shares(table: Table) -> FloatArray | None:
    """Return the largest own parts of each cell, largest first; None if they are unknown."""
    top = getattr(_get_own_statistics(table), "top", None)
    if top is not None and top.shape[1] > 0:
        return np.asarray(top)
    return np.ones((table.n_cells, 1)) if _are_contributor_counts(table) else None


# ---------------------------------------------------------------------- contributors with names


def _find_parts_by_name(table: Table) -> OwnParts:
    """Return the parts of respondents and holdings, in every cell in which they are among the largest."""
    cells: Any = _get_own_statistics(table)
    known = cells is not None and cells.contributors is not None
    if not known:
        cells = table.statistics
    names = np.asarray(cells.contributors)
    listed = names >= 0
    cell, column = np.nonzero(listed)
    alone = table.statistics.count[cell] == 1
    who = _join_lone_contributors(table, names[cell, column].astype(np.int64), cell, alone)
    if not known:  # a contribution to another variable says nothing about this one
        amount = np.where(alone, table.values[cell], 0.0)
        return OwnParts.from_entries(who, cell, amount, alone, np.zeros(table.n_cells))
    own = cells.top[cell, column]
    missing = np.zeros(len(cell)) if cells.whole is None else cells.whole[cell, column] - own
    if cells.top_weights is not None:
        own = own * np.minimum(cells.top_weights[cell, column], 1.0)
    amount = np.where(alone, table.values[cell], own)
    rest = _bound_the_rest(table, cells.top, cells.top_weights, listed)
    return OwnParts.from_entries(who, cell, amount, alone, rest, missing)


def _add_empty_parts(table: Table, parts: OwnParts) -> OwnParts:
    """Add what the only contributor of a total knows of the cells below it: those that are not theirs are empty.

    They know this regardless of the release. It matters where zeros are sensitive, or where no other attacker knows
    which cells are empty.
    """
    from scipy.sparse import csr_array

    empty = (count_contributors(table) == 0) & (table.values == 0) & ~table.fixed
    if not empty.any() or not parts.alone.any():
        return parts
    total, relation_of, below = _find_sums(table)
    matters = empty[below] & (total >= 0)[relation_of]
    under = csr_array(
        (np.ones(int(matters.sum())), (total[relation_of[matters]], below[matters])),
        shape=(table.n_cells, table.n_cells),
    )
    people, row = np.unique(parts.who[parts.alone], return_inverse=True)
    known = csr_array((np.ones(len(row)), (row.ravel(), parts.cell[parts.alone])), shape=(len(people), table.n_cells))
    for _ in range(MAX_DEPTH):
        more = known + known @ under
        more.data[:] = 1.0
        if more.nnz == known.nnz:
            break
        known = csr_array(more)
    found = known.tocoo()
    new = empty[found.coords[1]]
    who, cell = people[found.coords[0][new]], found.coords[1][new].astype(np.int64)
    return OwnParts.from_entries(
        np.concatenate([parts.who, who]), np.concatenate([parts.cell, cell]),
        np.concatenate([parts.amount, np.zeros(len(who))]), np.concatenate([parts.alone, np.ones(len(who), bool)]),
        parts.rest, np.concatenate([parts.missing, np.full(len(who), np.inf)]),
    )  # fmt: skip


def _bound_the_rest(table: Table, shares: FloatArray, weights: FloatArray | None, listed: BoolArray) -> FloatArray:
    """Return the most that an unlisted contributor gave to each cell.

    This is at most the smallest listed contribution, and at most what the listed contributions leave of the cell.
    """
    count = count_contributors(table)
    kept = listed.sum(axis=1)
    given = np.where(listed, shares[:, : listed.shape[1]], 0.0)
    smallest = np.where(listed, given, np.inf).min(axis=1, initial=np.inf)
    left = table.values - (given if weights is None else given * weights).sum(axis=1)
    bound = np.minimum(smallest, np.maximum(left + ROUNDING * np.abs(table.values), 0.0))
    some_left = (count > kept) & np.isfinite(count) & (kept > 0)
    return np.where(some_left, np.minimum(bound, np.abs(table.values)), 0.0)


def add_up_parts(table: Table, parts: OwnParts, *, own_only: bool = False) -> OwnParts:
    """Return what contributors know after adding up: a total is at least the sum of the parts that they know.

    For the other parts, every attacker knows the lower bounds, unless only own parts are added up. A part equals its
    total if every attacker knows that the other parts are empty.
    """
    from scipy.sparse import csr_array

    n = table.n_cells
    total, relation_of, below = _find_sums(table)
    above = csr_array((np.ones(len(below)), (below, relation_of)), shape=(n, len(total)))
    people, row = np.unique(parts.who, return_inverse=True)
    key, amount = row.astype(np.int64) * n + parts.cell, parts.amount
    least = (
        np.zeros(n) if own_only else np.maximum(table.lb, 0.0)
    )  # cells that must be published are part of the release: they cap no level
    public = np.asarray(least @ above)
    for _ in range(MAX_DEPTH):
        own = np.maximum(amount - least[key % n], 0.0)
        known = csr_array((own, (key // n, key % n)), shape=(len(people), n))
        sums = (known @ above).tocoo()
        sums.data = sums.data + public[sums.coords[1]]
        more = sums.coords[0].astype(np.int64) * n + total[sums.coords[1]]
        keys, amounts = np.concatenate([key, more]), np.concatenate([amount, sums.data])
        order = np.lexsort((amounts, keys))
        last = order[np.append(np.diff(keys[order]) > 0, True)] if len(order) else order
        if len(last) == len(key) and (amounts[last] <= amount * (1 + ROUNDING)).all():
            break
        key, amount = keys[last], amounts[last]
    place = np.minimum(np.searchsorted(key, row.astype(np.int64) * n + parts.cell), max(len(key) - 1, 0))
    alone, missing = np.zeros(len(key), bool), np.full(len(key), np.inf)
    alone[place], missing[place] = parts.alone, parts.missing
    cell = (key % n).astype(np.int64)
    amount = np.where(alone, table.values[cell], np.minimum(amount, np.maximum(table.values[cell], 0.0)))
    return OwnParts(who=people[key // n], cell=cell, amount=amount, alone=alone, rest=parts.rest, missing=missing)


def add_possible_parts(table: Table, parts: OwnParts) -> OwnParts:
    """Add up parts, and the most that holdings may have given to cells where they are not among the largest.

    What a holding gave to a total that lists it, or gave overall, may exceed the sum of its parts in the cells below.
    The remainder may be in any cell whose list is incomplete, as far as the totals allow, among the cells that
    relations tie to theirs. Elsewhere the holding is a person of its own (:func:`_split_by_cluster`).
    """
    sums, known = _find_sums(table), add_up_parts(table, parts)
    parts = add_up_parts(table, parts, own_only=True)
    rows = [parts.select(mine) for mine in _find_incomplete(table, parts, sums)]
    component = find_connected_parts(table) if rows else np.zeros(table.n_cells, np.int64)
    found = [_find_possible_parts(table, one, sums, component) for one in rows]
    who = np.concatenate([parts.who, *(np.full(len(c), one.who[0]) for one, (c, _) in zip(rows, found, strict=True))])
    cell = np.concatenate([parts.cell, *(c for c, _ in found)])
    amount = np.concatenate([parts.amount, *(most for _, most in found)])
    if len(who) == len(parts.who):
        return known
    alone = np.concatenate([parts.alone, np.zeros(len(who) - len(parts.who), bool)])
    most = add_up_parts(table, OwnParts.from_entries(who, cell, amount, alone, parts.rest))
    return replace(most, certain=_find_certain(table, known, most))


def _find_certain(table: Table, known: OwnParts, most: OwnParts) -> FloatArray:
    """Return what contributors certainly know of the cells in which they may know more."""
    if not len(known.who):
        return np.minimum(table.lb[most.cell], most.amount)
    key, wanted = known.who * table.n_cells + known.cell, most.who * table.n_cells + most.cell
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    certain = np.where(key[place] == wanted, known.amount[place], table.lb[most.cell])
    return np.minimum(certain, most.amount)


Sums = tuple[IntArray, IntArray, IntArray]


def _find_incomplete(table: Table, parts: OwnParts, sums: Sums) -> list[IntArray]:
    """Return the entries of each contributor who gave more than the cells that list them add up to."""
    from scipy.sparse import csr_array

    total, relation_of, below = sums
    people, row = np.unique(parts.who, return_inverse=True)
    shape = len(people), table.n_cells
    whole = _find_whole_amounts(parts, row, len(people))
    exact = np.isfinite(parts.missing) | (parts.amount >= whole[row] * (1 - ROUNDING))
    above = csr_array((np.ones(len(below)), (below, relation_of)), shape=(table.n_cells, len(total)))
    located = csr_array((parts.amount, (row, parts.cell)), shape=shape) @ above
    used = np.flatnonzero(total >= 0)
    of_relation = csr_array((np.ones(len(used)), (total[used], used)), shape=(table.n_cells, len(total)))
    known = csr_array((np.where(exact, parts.amount, 0.0), (row, parts.cell)), shape=shape) @ of_relation
    short = (known - located).tocoo()
    incomplete = np.zeros(len(people), bool)
    incomplete[short.coords[0][short.data > ROUNDING * whole[short.coords[0]]]] = True
    most = np.zeros(len(people))
    np.maximum.at(most, row, parts.amount)
    incomplete |= most < whole * (1 - ROUNDING)
    order = np.argsort(row, kind="stable")
    spans = np.split(order, np.cumsum(np.bincount(row, minlength=len(people)))[:-1]) if len(people) else []
    return [spans[k] for k in np.flatnonzero(incomplete & np.isfinite(whole)).tolist()]


def _find_whole_amounts(parts: OwnParts, row: IntArray, n: int) -> FloatArray:
    """Return what each contributor gave overall, for the indicator to which they gave most; infinite if unknown."""
    listed = np.isfinite(parts.missing)
    whole = np.full(n, -np.inf)
    np.maximum.at(whole, row[listed], (parts.amount + parts.missing)[listed])
    return np.where(np.isfinite(whole), whole, np.inf)


def _find_possible_parts(table: Table, parts: OwnParts, sums: Sums, component: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the cells that may hold more from one contributor than is known, and the most that each may hold."""
    total, relation_of, below = sums
    own, listed = np.zeros(table.n_cells), np.isfinite(parts.missing)
    own[parts.cell] = parts.amount
    whole = float((parts.amount + parts.missing)[listed].max())
    most = np.where(np.isin(component, component[parts.cell]), np.minimum(parts.rest, whole), 0.0)
    most = np.maximum(most, own)
    most[parts.cell[listed]] = parts.amount[listed]
    for _ in range(MAX_DEPTH):
        slack = np.minimum(most[total], whole) - np.bincount(relation_of, own[below], minlength=len(total))
        before = most.copy()
        np.minimum.at(most, below, np.maximum(slack, 0.0)[relation_of] + own[below])
        if np.array_equal(most, before):
            break
    more = (most > own * (1 + ROUNDING)) & ~table.fixed & (table.lb >= 0) & (most > table.lb)
    cell = np.flatnonzero(more)
    return cell, most[cell]


def _find_sums(table: Table) -> Sums:
    """Return the cells that are at least the sum of known parts: the cell of each sum, and (sum, part) pairs.

    These are relations with one total over cells that are not negative. If only one part of a total may be non-empty,
    that part equals the total, and the pair is listed in the other direction as well.
    """
    T = table.relations.tocoo()
    (row, column), n = T.coords, table.n_relations
    least = np.where(table.fixed, table.values, table.lb)
    plain = np.bincount(row, (least[column] < 0) | (np.abs(T.data) != 1), minlength=n) == 0
    one_total = np.bincount(row, T.data < 0, minlength=n) == 1  # several cells on both sides bound none
    usable = (one_total & plain & (table.rhs == 0))[row]
    total = np.full(n, -1, np.int64)
    total[row[usable & (T.data < 0)]] = column[usable & (T.data < 0)]
    part = usable & (T.data > 0)
    filled = part & ~(table.fixed & (table.values == 0))[column]
    only = filled & (np.bincount(row[filled], minlength=n) == 1)[row]
    again = n + np.arange(int(only.sum()))
    sums = np.concatenate([total, column[only]])
    return sums, np.concatenate([row[part], again]), np.concatenate([column[part], total[row[only]]])


def _join_lone_contributors(table: Table, who: IntArray, cell: IntArray, alone: BoolArray) -> IntArray:
    """Give the same number to lone contributors who must be the same unit.

    A unit that is alone in the turnover of a cell is alone in its exports as well. Indicators are aggregated one by
    one, and each numbers its respondents independently.
    """
    people, person = np.unique(who, return_inverse=True)
    lone = _group_lone_cells(table)[cell[alone]]
    n = len(people)
    return find_groups(person[alone], n + lone, n + int(lone.max(initial=-1)) + 1)[:n][person]


def _group_lone_cells(table: Table) -> IntArray:
    """Return a number for each cell; lone cells share a number if one is the total of the other."""
    T = table.relations.tocoo()
    lone = count_contributors(table) == 1
    relation, cell = (x[lone[T.coords[1]]] for x in T.coords)
    totals = T.coords[0][lone[T.coords[1]] & (T.data < 0)]
    mine = np.isin(relation, totals)  # a total with one contributor has one non-empty part
    n = table.n_cells
    return find_groups(cell[mine], n + relation[mine], n + table.n_relations)[:n]


def _split_by_cluster(table: Table, parts: OwnParts) -> OwnParts:
    """Treat a contributor as a different person in each cluster: knowledge of one says nothing about another."""
    from cellguard.model.linked.distinct_cells import find_clusters

    cluster_of, names = find_clusters(table, table.parts or ())
    _, apart = np.unique(parts.who * len(names) + cluster_of[parts.cell], return_inverse=True)
    return OwnParts.from_entries(
        apart.astype(np.int64).ravel(), parts.cell, parts.amount, parts.alone, parts.rest, parts.missing
    )


# ---------------------------------------------------------------------- contributors without names


def _find_parts_by_rank(table: Table) -> OwnParts:
    """Return the parts of contributors who must exist by the counts: one for each lone cell, some for others.

    Lone cells have the same respondent if one is the total of the other; for other cells this is unknown. In a cell
    with several contributors, the largest ones are separate persons; no other contributor gave more than the smallest
    of them.
    """
    count = count_contributors(table)
    size, group = table.n_cells + table.n_relations, _group_lone_cells(table)
    alone = np.flatnonzero(count == 1)
    who, cells, amounts = [group[alone]], [alone], [table.values[alone]]
    rest = np.zeros(table.n_cells)
    shares = None if _are_contributor_counts(table) else _get_largest_shares(table)
    if shares is not None:
        cell, rank, amount = _list_ranks(table, shares)
        who.append(size + cell * RANKS_WITHOUT_NAMES + rank)
        cells, amounts = [*cells, cell], [*amounts, amount]
        smallest = np.full(table.n_cells, np.inf)
        np.minimum.at(smallest, cell, amount)
        listed, given = np.bincount(cell, minlength=table.n_cells), np.bincount(cell, amount, minlength=table.n_cells)
        more = (listed > 0) & (count > listed) & np.isfinite(count)
        left = np.maximum(table.values - given + ROUNDING * np.abs(table.values), 0.0)
        rest = np.where(more, np.minimum(np.minimum(smallest, left), np.abs(table.values)), 0.0)
    elif _are_contributor_counts(table):
        rest = np.where((count > 1) & np.isfinite(count), 1.0, 0.0)  # each of them counts once
    everybody = np.concatenate(who)
    entries = everybody, np.concatenate(cells), np.concatenate(amounts), everybody < size
    unknown = np.full(len(everybody), np.inf)
    return OwnParts.from_entries(*entries, _raise_totals(table, rest), unknown)


def _list_ranks(table: Table, shares: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return cells with several contributors, and the ranks and parts of their largest contributors."""
    count, value = count_contributors(table), table.values
    given = shares[:, :RANKS_WITHOUT_NAMES].copy()
    if given.shape[1] == 1:  # with two contributors, the second gave what the first leaves
        given = np.column_stack([given, np.where(count == 2, value - given[:, 0], np.nan)])
    there = np.isfinite(given) & (np.arange(given.shape[1]) < count[:, None]) & (count[:, None] > 1) & (given > 0)
    cell, rank = np.nonzero(there)
    return cell, rank, np.minimum(given[cell, rank], value[cell])


def _raise_totals(table: Table, rest: FloatArray) -> FloatArray:
    """Return bounds on the parts of the rest, raised so that the bound of a total is at least that of its parts."""
    total, relation_of, part = _find_sums(table)
    at = total[relation_of]
    for _ in range(MAX_DEPTH):
        before = rest.copy()
        np.maximum.at(rest, at, before[part])
        if np.array_equal(rest, before):
            break
    return np.minimum(rest, np.abs(table.values))
