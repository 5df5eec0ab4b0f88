"""Respondents as attackers: who contributed to a cell knows more about it than a stranger.

A respondent who is alone in a withheld cell knows it; two cells that hide each other then hide
nothing from him. One of two respondents knows that the cell is at least his own contribution. A
holding knows this of every cell it is in. Each becomes an :class:`Attacker` that the methods and the
audit treat like any other (salazar2004 section 2).
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.space.groups import groups
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.data.rules.statistics import CellStatistics
from cellguard.exceptions import InputError
from cellguard.nouns.attacker import Attacker
from cellguard.nouns.table import Table

__all__ = ["can_tell_insiders", "can_tell_insiders_shares", "insiders", "with_insiders"]


def with_insiders(table: Table, *, at_most: int = 2, scope: str = "near") -> Table:
    """Return the table with its respondents among the attackers (see :func:`insiders`)."""
    known = tuple(a for a in table.attackers if not a.derived)
    return table.with_(attackers=known + insiders(table, at_most=at_most, scope=scope), insiders=True)


def insiders(table: Table, *, at_most: int = 2, scope: str = "near") -> tuple[Attacker, ...]:
    """Return the respondents who could undo a release, as attackers.

    Parameters
    ----------
    table
        Made by :func:`cellguard.data.tabulate`, or with the numbers of contributors, with rules applied: what is
        sensitive is to be protected against them too, except from those who are alone in it.
    at_most
        1: who is alone in a cell. 2: also who shares a cell with one other.
    scope
        ``"near"``: methods plan against an insider for the sensitive cells in a relation with a cell he has inside
        knowledge of, and for what the audit finds besides. ``"all"``: for every sensitive cell from the start.

    Examples
    --------
    >>> import cellguard as cg
    >>> firms = {"region": ["N", "N", "S", "S", "W", "W", "W"], "size": ["a", "b", "a", "b", "a", "b", "b"],
    ...          "x": [9.0, 7.0, 8.0, 6.0, 5.0, 4.0, 3.0]}
    >>> t = cg.tabulate(firms, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
    >>> insiders(t, at_most=1)[0]
    Attacker('insider 1', tighter bounds on 4 cells)
    """
    if at_most not in {1, 2}:
        raise InputError(f"at_most={at_most!r}: 1 or 2 is needed.")
    if scope not in ("near", "all"):
        raise InputError(f"scope={scope!r}: 'near' or 'all' is needed.")
    who, cell, amount, alone = (
        _insiders_by_identity(table) if _knows_who_insiders_are(table) else _insiders_by_counts(table)
    )
    if table.parts is not None:
        who, cell, amount, alone = _insiders_by_cluster(table, (who, cell, amount, alone))
    few = np.asarray(_counts_to_find_insiders(table))[cell] <= at_most
    chosen = np.unique(who[alone | (few & table.sensitive[cell])])
    near = _Neighbours(table) if scope == "near" else None
    start = np.searchsorted(who, [chosen, chosen + 1])
    out: list[Attacker] = []
    for first, last in start.T.tolist():
        mine = slice(first, last)
        out.append(_insider_as_attacker(table, f"{_NAME} {len(out) + 1}", cell[mine], amount[mine], alone[mine], near))
    return tuple(out)


_NAME = "insider"
Knowledge = tuple[IntArray, IntArray, FloatArray, BoolArray]
"""Who knows something of which cell, how much is his own, and whether he is alone there; ordered by who."""


def _insiders_by_cluster(table: Table, known: Knowledge) -> Knowledge:
    """Take a respondent for one in each cluster: what he knows of one tells nothing about another."""
    from cellguard.nouns.distinct_cells import clusters

    who, cell, amount, alone = known
    cluster_of, names = clusters(table, table.parts or ())
    _, apart = np.unique(who * len(names) + cluster_of[cell], return_inverse=True)
    order = np.lexsort((cell, apart))
    return apart[order].astype(np.int64), cell[order], amount[order], alone[order]


def can_tell_insiders(table: Table) -> bool:
    """Say whether the table can tell who is alone in a cell."""
    return _knows_who_insiders_are(table) or table.counts is not None


def can_tell_insiders_shares(table: Table) -> bool:
    """Say whether the table can tell what one of two contributors to a cell gave."""
    return _larger_of_two_insiders(table) is not None


def _larger_of_two_insiders(table: Table) -> FloatArray | None:
    """Return what the larger of two contributors gave to each cell; None where nobody can tell."""
    top = getattr(table.statistics, "top", None)
    if top is not None and top.shape[1] > 0 and not table.statistics.shadow:
        return np.asarray(top[:, 0])
    counted = table.integer and table.counts is not None and np.array_equal(table.counts, table.values)
    return np.ones(table.n_cells) if counted else None  # who is counted is one


def _knows_who_insiders_are(table: Table) -> bool:
    cells = table.statistics
    return isinstance(cells, CellStatistics) and cells.contributors is not None and cells.units >= 2


def _counts_to_find_insiders(table: Table) -> FloatArray:
    if _knows_who_insiders_are(table):
        return np.asarray(table.statistics.count, np.float64)
    if table.counts is None:
        raise InputError(
            "the table does not know who contributed to its cells, nor how many did.",
            hint="make it with cg.tabulate, or give the numbers of contributors (counts=...).",
        )
    return table.counts


def _insiders_by_identity(table: Table) -> Knowledge:
    """Respondents and holdings, each with every cell he is among the largest of."""
    cells: CellStatistics = table.statistics
    contributors = np.asarray(cells.contributors)
    cell, column = np.nonzero(contributors >= 0)
    alone = cells.count[cell] == 1
    who = _insiders_who_are_one(table, contributors[cell, column].astype(np.int64), cell, alone)
    # his own share; a contribution to another variable says nothing about this one
    own = np.zeros(len(cell)) if cells.shadow else cells.top[cell, column]
    if cells.top_weights is not None:
        own = own * np.minimum(cells.top_weights[cell, column], 1.0)
    amount = np.where(alone, table.values[cell], own)
    if cells.top_weights is not None or cells.shadow:  # his own answer is less than the cells that he knows
        amount = _amounts_insiders_add_up(table, who, cell, amount)
    return _knowledge_ordered_by_insider(who, cell, amount, alone)


def _amounts_insiders_add_up(table: Table, who: IntArray, cell: IntArray, amount: FloatArray) -> FloatArray:
    """Return what each knows of his cells once he adds up: a total is at least the sum of the parts he knows.

    And a part is as large as its total where everybody knows the others to be empty.
    """
    from scipy.sparse import csr_array

    n = table.n_cells
    total, relation_of, below = _sums_below_insiders(table)
    parts = csr_array((np.ones(len(below)), (below, relation_of)), shape=(n, len(total)))
    people, row = np.unique(who, return_inverse=True)
    key = row.astype(np.int64) * n + cell
    order = np.argsort(key, kind="stable")
    for _ in range(64):  # no classification is deeper
        known = csr_array((amount, (row, cell)), shape=(len(people), n))
        sums = (known @ parts).tocoo()
        wanted = sums.coords[0].astype(np.int64) * n + total[sums.coords[1]]
        place = np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)
        hit = key[order][place] == wanted
        better = amount.copy()
        np.maximum.at(better, order[place[hit]], sums.data[hit])
        if np.array_equal(better, amount):
            break
        amount = better
    return amount


def _sums_below_insiders(table: Table) -> tuple[IntArray, IntArray, IntArray]:
    """Return the cells that are at least what is known below them: the cell of each sum, and (sum, part) pairs.

    These are relations with one total over cells that are not negative; and of a total with a single part that is not
    known to be empty, the part, which is as large as the total.
    """
    T = table.relations.tocoo()
    (row, column), n = T.coords, table.n_relations
    least = np.where(table.fixed, table.values, table.lb)
    plain = np.bincount(row, (least[column] < 0) | (np.abs(T.data) != 1), minlength=n) == 0
    one_total = np.bincount(row, T.data < 0, minlength=n) == 1  # two sides of several cells each say nothing of one
    told = (one_total & plain & (table.rhs == 0))[row]
    total = np.full(n, -1, np.int64)
    total[row[told & (T.data < 0)]] = column[told & (T.data < 0)]
    part = told & (T.data > 0)
    filled = part & ~(table.fixed & (table.values == 0))[column]
    only = filled & (np.bincount(row[filled], minlength=n) == 1)[row]
    again = n + np.arange(int(only.sum()))
    sums = np.concatenate([total, column[only]])
    return sums, np.concatenate([row[part], again]), np.concatenate([column[part], total[row[only]]])


def _insiders_who_are_one(table: Table, who: IntArray, cell: IntArray, alone: BoolArray) -> IntArray:
    """Give one number to those who must be one: who is alone in the turnover of a cell is alone in its exports.

    Indicators are added up one by one, and number their respondents each for itself.
    """
    people, person = np.unique(who, return_inverse=True)
    lone = _groups_of_lone_contributors(table)[cell[alone]]
    n = len(people)
    return groups(person[alone], n + lone, n + int(lone.max(initial=-1)) + 1)[:n][person]


def _groups_of_lone_contributors(table: Table) -> IntArray:
    """Return for each cell a number; lone cells one of which is the total of the other have the same one."""
    T = table.relations.tocoo()
    lone = _counts_to_find_insiders(table) == 1
    relation, cell = (x[lone[T.coords[1]]] for x in T.coords)
    totals = T.coords[0][lone[T.coords[1]] & (T.data < 0)]
    mine = np.isin(relation, totals)  # the only contributor of a total is that of its only part that is not empty
    n = table.n_cells
    size = n + table.n_relations
    return groups(cell[mine], n + relation[mine], size)[:n]


def _insiders_by_counts(table: Table) -> Knowledge:
    """Whoever must be there by the numbers alone: one for each lone cell, two for each cell of two.

    Lone cells one of which is the total of the other have the same respondent; of others nobody can tell.
    """
    count = _counts_to_find_insiders(table)
    size, group = table.n_cells + table.n_relations, _groups_of_lone_contributors(table)
    alone = np.flatnonzero(count == 1)
    who, cells, amounts = [group[alone]], [alone], [table.values[alone]]
    larger = _larger_of_two_insiders(table)
    if larger is not None:
        pairs = np.flatnonzero((count == 2) & table.sensitive & np.isfinite(larger))
        first = np.minimum(larger[pairs], table.values[pairs])
        second = table.values[pairs] - first
        other = second != first  # who gave the same knows the same: one stands for both
        number = size + 2 * np.arange(len(pairs))
        who += [number, number[other] + 1]
        cells, amounts = [*cells, pairs, pairs[other]], [*amounts, first, second[other]]
    everybody = np.concatenate(who)
    return _insiders_with_totals(table, everybody, np.concatenate(cells), np.concatenate(amounts), everybody < size)


def _insiders_with_totals(
    table: Table, who: IntArray, cell: IntArray, amount: FloatArray, alone: BoolArray
) -> Knowledge:
    """Add what everybody knows of the totals over his cells: they are at least what he gave."""
    from scipy.sparse import coo_array, csr_array

    n = table.n_cells
    total, relation_of, start = _sums_below_insiders(table)
    end = total[relation_of]
    up = csr_array(coo_array((np.ones(len(start)), (start, end)), shape=(n, n)))
    # of different amounts (turnover here, exports there) each tells about the totals over its own cells only
    gifts, row = np.unique(np.column_stack([who.astype(np.float64), amount]), axis=0, return_inverse=True)
    row = row.ravel()
    own = csr_array(coo_array((np.ones(len(row)), (row, cell)), shape=(len(gifts), n)))
    above, step = own * 0, own
    for _ in range(64):  # no classification is deeper
        step = csr_array(step @ up)
        step.data[:] = 1.0
        before = above.nnz
        above = csr_array((above + step) > 0).astype(np.float64)
        if step.nnz == 0 or above.nnz == before:
            break
    more = above.tocoo()
    theirs, gave = gifts[more.coords[0], 0].astype(np.int64), gifts[more.coords[0], 1]
    key = theirs * n + more.coords[1]
    order = np.lexsort((gave, key))
    largest = order[np.append(np.diff(key[order]) > 0, True)] if len(order) else order
    largest = largest[~np.isin(key[largest], who * n + cell)]
    who = np.concatenate([who, theirs[largest]])
    cell = np.concatenate([cell, more.coords[1][largest]])
    amount = np.concatenate([amount, gave[largest]])
    return _knowledge_ordered_by_insider(who, cell, amount, np.concatenate([alone, np.zeros(len(largest), bool)]))


def _knowledge_ordered_by_insider(who: IntArray, cell: IntArray, amount: FloatArray, alone: BoolArray) -> Knowledge:
    order = np.lexsort((-amount, cell, who))
    same = (np.diff(who[order]) == 0) & (np.diff(cell[order]) == 0)  # taken for one, by mistake: he has the larger part
    order = order[np.append(True, ~same)] if len(order) else order
    return who[order], cell[order].astype(np.int64), amount[order], alone[order]


class _Neighbours:
    """Which cells stand in a relation with given ones."""

    def __init__(self, table: Table) -> None:
        self.rows, self.columns = table.relations, table.relations.tocsc()

    def of(self, cells: IntArray) -> IntArray:
        T, C = self.rows, self.columns
        relations = np.concatenate([C.indices[C.indptr[c] : C.indptr[c + 1]] for c in cells] or [cells[:0]])
        return np.concatenate([T.indices[T.indptr[r] : T.indptr[r + 1]] for r in np.unique(relations)] or [cells[:0]])


def _insider_as_attacker(
    table: Table, name: str, cell: IntArray, amount: FloatArray, alone: BoolArray, near: _Neighbours | None
) -> Attacker:
    """Return the attacker: what he knows, and the sensitive cells near it that he does not."""
    # where contributions may be negative, a part says nothing about the whole
    tells = alone | ((table.lb[cell] >= 0) & (amount > table.lb[cell]))
    cell, amount, alone = cell[tells], amount[tells], alone[tells]
    target = table.sensitive_cells if near is None else np.unique(near.of(cell[alone | table.sensitive[cell]]))
    wanted = np.setdiff1d(target[table.sensitive[target]], cell[alone])
    low, high = np.minimum(amount, table.values[cell]), np.where(alone, table.values[cell], table.ub[cell])
    low = np.maximum(low, table.lb[cell])
    known_low, known_high = table.lb[wanted], table.ub[wanted]
    both, at, of = np.intersect1d(wanted, cell, assume_unique=True, return_indices=True)
    if len(both):
        known_low[at], known_high[at] = low[of], high[of]
    a = table.values[wanted]
    return Attacker(
        name=name,
        derived=True,
        cells=cell,
        lb=low,
        ub=high,
        sensitive=wanted,
        lower=np.minimum(table.lower[wanted], a - known_low),
        upper=np.minimum(table.upper[wanted], known_high - a),
        sliding=np.minimum(table.sliding[wanted], known_high - known_low),
    )
