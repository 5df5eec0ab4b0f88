"""Respondents as attackers: every contributor who could learn more than an external attacker.

Contributor j knows ``y_c >= w_jc`` for every cell c to which they contribute, and ``y_c = a_c`` where they are alone
(:mod:`cellguard.attackers.knowledge`). A table of n records has n such attackers. Few of them need programs of their
own, for three reasons.

**Slack.** A movement z (a table a + z that agrees with the release) is possible for attacker j when
``w_jc <= a_c + z_c`` for all c. Cells mostly move by at most a level of a sensitive cell nearby: a contributor who
leaves that much slack in each of their cells blocks no movement. Such contributors are not listed one by one. Together
they form one attacker, the *other contributors*, who knows ``y_c >= r_c``, where r_c is the largest part of any
unlisted contributor. What is safe against that attacker is safe against each of them, because their bounds are weaker.
Levels are not reduced by r_c, since none of them needs to know that much. Where r_c leaves less than the level of c, a
second attacker knows r everywhere but in c and is asked about c alone: a contributor between the two considers every
table between the truth and that attacker's witness possible, as far as their own part goes. At worst the audit rejects
a release that only a coalition of them could undo.

**What is not kept.** A table keeps the largest contributions of a cell, and what each of these contributors gave
overall. A contribution that is not kept exceeds neither the smallest kept one nor what the kept ones leave of the cell:
r_c covers it. A listed contributor may have such small parts elsewhere, but only if what they gave overall exceeds the
sum over their listed cells. They are then given the most that they can have in each of those cells, and levels are
reduced only by what they certainly gave.

**Dominance.** If k contributes to every cell of j, with parts at least as large, then every table that k considers
possible is also possible for j: what k cannot infer, j cannot. Levels are capped by what an attacker's own part
leaves open, so less may be required against a larger contributor in one of their own cells. Only there is protection
against j required as well. With the contributors of a cell in order of size, it is enough to compare each contributor
with the next larger one.

**Public cells.** A cell that is always published tells every attacker the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attackers.knowledge import (
    OwnParts,
    add_possible_parts,
    add_up_parts,
    can_tell_counts,
    can_tell_shares,
    count_contributors,
    find_own_parts,
)
from cellguard.attackers.public import add_public_knowledge
from cellguard.exceptions import InputError
from cellguard.model.attacker import Attacker
from cellguard.model.levels import compute_required_levels
from cellguard.model.table import Table

__all__ = ["can_tell_counts", "can_tell_shares", "insiders", "with_insiders"]

NEIGHBOUR_STEPS = 1
"""Relations between a cell and the sensitive cells for whose levels contributors must leave slack.

Of the 9,150 cells of a survey of 20,000 records, 1,708 contributors are listed with one step and 3,100 with two; the
audit takes 16 and 29 processor seconds. With two, fewer cells are called unsafe because the other contributors are
taken together: 27 instead of 29 of 137 in a pattern of 1,525 cells that was made without contributors in mind."""
_NAME = "insider"
OTHER_CONTRIBUTORS = "other contributors"
"""Name of the attacker who represents all contributors that are not separate attackers."""


def with_insiders(table: Table, *, at_most: int | None = None, scope: str = "near") -> Table:
    """Return the table with its respondents among the attackers (see :func:`insiders`)."""
    known = tuple(a for a in table.attackers if not a.derived)
    return table.with_(attackers=known + insiders(table, at_most=at_most, scope=scope), insiders=True)


def insiders(table: Table, *, at_most: int | None = None, scope: str = "near") -> tuple[Attacker, ...]:
    """Return the respondents who could undo a release, as attackers.

    Parameters
    ----------
    table
        Made by :func:`cellguard.tabulate`, or with the numbers of contributors, with rules applied: sensitive cells
        are protected against respondents too, except against those who are alone in the cell.
    at_most
        Leave out contributors of larger cells. 1: only those who are alone in a cell. 2: also those who share a
        sensitive cell with one other. None: every contributor who may learn more than an external attacker; those
        who leave slack for all levels nearby together form one attacker, the last one.
    scope
        ``"near"``: methods plan against a respondent for the sensitive cells in a relation with a cell that they know,
        and for what the audit finds besides. ``"all"``: for every sensitive cell from the start.

    Examples
    --------
    >>> import cellguard as cg
    >>> firms = {"region": ["N", "N", "S", "S", "W", "W", "W"], "size": ["a", "b", "a", "b", "a", "b", "b"],
    ...          "x": [9.0, 7.0, 8.0, 6.0, 5.0, 4.0, 3.0]}
    >>> t = cg.tabulate(firms, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
    >>> insiders(t, at_most=1)[0]
    Attacker('insider 1', tighter bounds on 4 cells)
    """
    if at_most not in {None, 1, 2}:
        raise InputError(f"at_most={at_most!r}: 1, 2 or None is needed.")
    if scope not in ("near", "all"):
        raise InputError(f"scope={scope!r}: 'near' or 'all' is needed.")
    table = add_public_knowledge(table)  # what others gave at least is part of every sum
    parts = find_own_parts(table)
    useful = _find_useful_parts(table, parts)
    if at_most is not None:
        chosen = np.unique(parts.who[useful & _find_planned(table, parts, at_most)])
        listed = _complete_parts(table, parts.select(np.isin(parts.who, chosen)))
        return _relax_own_cells(
            table, _build_attackers(table, listed, _find_planned(table, listed, at_most), {}, scope)
        )
    slack = table.values[parts.cell] - parts.amount
    matters = useful & (parts.alone | (slack < _find_near_levels(table)[parts.cell]))
    is_listed = np.isin(parts.who, np.unique(parts.who[matters]))
    others = _build_others(table, parts, is_listed, scope)
    listed = _complete_parts(table, parts.select(is_listed))
    implied, narrow = _find_dominated(table, listed)
    listed = listed.select(~np.isin(listed.who, implied))
    people = _build_attackers(table, listed, _find_planned(table, listed, 2), narrow, scope)
    return _relax_own_cells(table, (*people, *others))


def _complete_parts(table: Table, parts: OwnParts) -> OwnParts:
    """Return the parts with everything that follows from them, if it says more than every attacker knows."""
    parts = add_possible_parts(table, parts)
    return parts.select(_find_useful_parts(table, parts))


def _find_planned(table: Table, parts: OwnParts, at_most: int) -> BoolArray:
    """Return the parts near which methods plan from the start: lone contributors, and few in a sensitive cell."""
    few = (count_contributors(table) <= at_most) & table.sensitive
    return np.asarray(parts.alone | few[parts.cell])


def _find_useful_parts(table: Table, parts: OwnParts) -> BoolArray:
    """Return which own parts say more than every attacker knows; none does where parts may be negative."""
    lb = table.lb[parts.cell]
    return ~table.fixed[parts.cell] & (parts.alone | ((lb >= 0) & (parts.amount > lb)))


def _find_near_levels(table: Table) -> FloatArray:
    """Return for each cell the largest level of the sensitive cells in a relation with it, including itself.

    When a sensitive cell moves by its level, another cell in its row and one in its column move by the same amount.
    """
    need = compute_required_levels(table)
    near = np.zeros(table.n_cells)
    near[need.cells] = np.maximum(np.maximum(need.lower, need.upper), need.sliding)
    T = table.relations.tocoo()
    relation, cell = T.coords
    for _ in range(NEIGHBOUR_STEPS):
        largest = np.zeros(table.n_relations)
        np.maximum.at(largest, relation, near[cell])
        np.maximum.at(near, cell, largest[relation])
    return near


# ---------------------------------------------------------------------- dominance


def _find_dominated(table: Table, parts: OwnParts) -> tuple[IntArray, dict[int, IntArray]]:
    """Return the contributors whom a larger one dominates, and those who still need protection for some cells.

    For the latter, only those cells must be protected against each of them, because less is required against the
    larger contributor. All other cells are protected against an attacker who knows more.
    """
    n = table.n_cells
    larger = _find_next_larger(table, parts)
    key = parts.who * n + parts.cell
    wanted = larger * n + parts.cell
    place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    there = (larger >= 0) & (key[place] == wanted) & (parts.amount[place] >= parts.amount) & ~parts.alone
    dominated = np.setdiff1d(parts.who, parts.who[~there])
    need = compute_required_levels(table)
    lower, sliding = np.zeros(n), np.zeros(n)
    lower[need.cells], sliding[need.cells] = need.lower, need.sliding
    a, ub = table.values[parts.cell], table.ub[parts.cell]
    lower, sliding = lower[parts.cell], sliding[parts.cell]
    mine = parts.amount if parts.certain is None else parts.certain
    theirs = mine[place]
    with np.errstate(invalid="ignore"):
        more = np.minimum(lower, a - mine) > np.minimum(lower, a - theirs)
        more |= np.minimum(sliding, ub - mine) > np.minimum(sliding, ub - theirs)
    more &= np.isin(parts.who, dominated)
    who, cell = parts.who[more], parts.cell[more]
    people, first = np.unique(who, return_index=True)
    narrow = dict(zip(people.tolist(), np.split(cell, first[1:]), strict=True)) if len(people) else {}
    return np.setdiff1d(dominated, people), narrow


def _find_next_larger(table: Table, parts: OwnParts) -> IntArray:
    """Return for each entry the next larger contributor in the smallest cell of its contributor; -1: none."""
    order = np.lexsort((parts.cell, table.values[parts.cell], parts.who))
    first = order[np.append(True, np.diff(parts.who[order]) > 0)] if len(order) else order
    person = parts.who[first]  # ascending
    smallest = parts.cell[first]
    by_size = np.lexsort((parts.who, -parts.amount, parts.cell))
    in_order = np.empty(len(by_size), np.int64)
    in_order[by_size] = np.arange(len(by_size))
    at = in_order[first]
    before = by_size[np.maximum(at - 1, 0)]
    larger = np.where((at > 0) & (parts.cell[before] == smallest), parts.who[before], -1)
    return np.asarray(larger[np.searchsorted(person, parts.who)])


# ---------------------------------------------------------------------- as attackers


class _Neighbours:
    """Finds the cells that are in a relation with given cells."""

    def __init__(self, table: Table) -> None:
        self.rows, self.columns = table.relations, table.relations.tocsc()

    def find(self, cells: IntArray) -> IntArray:
        T, C = self.rows, self.columns
        relations = np.concatenate([C.indices[C.indptr[c] : C.indptr[c + 1]] for c in cells] or [cells[:0]])
        return np.concatenate([T.indices[T.indptr[r] : T.indptr[r + 1]] for r in np.unique(relations)] or [cells[:0]])


def _build_attackers(
    table: Table, parts: OwnParts, chosen: BoolArray, narrow: dict[int, IntArray], scope: str
) -> tuple[Attacker, ...]:
    """Return an attacker for each contributor; `chosen` are the entries near which methods plan from the start."""
    near = _Neighbours(table) if scope == "near" else None
    people, first = np.unique(parts.who, return_index=True)
    out: list[Attacker] = []
    for number, mine in zip(people.tolist(), np.split(np.arange(len(parts.who)), first[1:]), strict=False):
        cell, alone = parts.cell[mine], parts.alone[mine]
        only = narrow.get(number)
        if only is not None:
            target = only
        else:
            target = table.sensitive_cells if near is None else np.unique(near.find(cell[chosen[mine]]))
        wanted = np.setdiff1d(target[table.sensitive[target]], cell[alone])
        low = np.maximum(np.minimum(parts.amount[mine], table.values[cell]), table.lb[cell])
        high = np.where(alone, table.values[cell], table.ub[cell])
        certain = None if parts.certain is None else np.maximum(np.minimum(parts.certain[mine], low), table.lb[cell])
        known = Attacker(
            name=f"{_NAME} {len(out) + 1}", derived=True, cells=cell, lb=low, ub=high, certain=certain
        )  # fmt: skip
        out.append(replace(_set_levels(table, known, wanted), only=only))
    return tuple(out)


def _build_others(table: Table, parts: OwnParts, is_listed: BoolArray, scope: str) -> tuple[Attacker, ...]:
    """Return all contributors who are not listed as one attacker; none if they know only what every attacker knows."""
    rest = parts.rest.copy()
    np.maximum.at(rest, parts.cell[~is_listed], parts.amount[~is_listed])
    cell = np.flatnonzero(rest > 0)
    none = np.zeros(len(cell), np.int64)
    known = add_up_parts(table, OwnParts.from_entries(none, cell, rest[cell], none.astype(bool), parts.rest))
    known = known.select(_find_useful_parts(table, known))
    if not len(known.cell):
        return ()
    ub = table.ub[known.cell]
    low = np.minimum(known.amount, table.values[known.cell])
    certain = np.minimum(table.lb[known.cell], low)
    attacker = Attacker(name=OTHER_CONTRIBUTORS, derived=True, cells=known.cell, lb=low, ub=ub, certain=certain)
    wanted = table.sensitive_cells if scope == "all" else cell[:0]  # they leave slack for the levels nearby
    return (_set_levels(table, attacker, wanted),)


def _relax_own_cells(table: Table, people: tuple[Attacker, ...]) -> tuple[Attacker, ...]:
    """Add attackers who do not know the most that anyone may have given to a cell, if that leaves less than its level.

    Against the attacker who knows it, as much of the level is required as that leaves open; against the other one, who
    is asked about this cell alone, all of it.
    """
    need = compute_required_levels(table)
    lower, sliding = np.zeros(table.n_cells), np.zeros(table.n_cells)
    lower[need.cells], sliding[need.cells] = need.lower, need.sliding
    out: list[Attacker] = []
    more: list[Attacker] = []
    for attacker in people:
        if attacker.certain is None:
            out.append(attacker)
            continue
        cell, known, certain = attacker.cells, attacker.lb, attacker.certain
        a, ub = table.values[cell], table.ub[cell]
        short = np.minimum(lower[cell], a - certain) > a - known
        short |= np.minimum(sliding[cell], ub - certain) > ub - known
        both = replace(attacker, certain=np.where(short, known, certain))
        out.append(both if attacker.sensitive is None else _set_levels(table, both, attacker.sensitive))
        asked = cell if attacker.only is None else attacker.only
        for k in np.flatnonzero(short & np.isin(cell, asked)).tolist():
            less = np.where(cell == cell[k], certain, known)
            name = f"{attacker.name}, {len(more) + 1}"
            one = replace(attacker, name=name, lb=less, certain=np.minimum(certain, less), only=cell[k : k + 1])
            more.append(_set_levels(table, one, cell[k : k + 1]))
    return (*out, *more)


def _set_levels(table: Table, attacker: Attacker, wanted: IntArray) -> Attacker:
    """Return the attacker with the levels of some cells, capped by what their own knowledge leaves open."""
    low, high = attacker.tighten_certainly(wanted, table.lb[wanted], table.ub[wanted])
    a = table.values[wanted]
    return replace(
        attacker,
        sensitive=wanted,
        lower=np.minimum(table.lower[wanted], a - low),
        upper=np.minimum(table.upper[wanted], high - a),
        sliding=np.minimum(table.sliding[wanted], high - low),
    )
