"""Respondents as attackers: who contributed to a cell knows more about it than a stranger.

A respondent who is alone in a withheld cell knows it; two cells that hide each other then hide
nothing from him. One of two respondents knows that the cell is at least his own contribution. A
holding knows this of every cell it is in. Each becomes an :class:`Attacker` that the methods and the
audit treat like any other (salazar2004 section 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cellguard.attacker import Attacker
from cellguard.exceptions import InputError
from cellguard.rules.statistics import CellStatistics
from cellguard.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["insiders", "with_insiders"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def with_insiders(table: Table, *, at_most: int = 2, scope: str = "near") -> Table:
    """Return the table with its respondents among the attackers (see :func:`insiders`)."""
    known = tuple(a for a in table.attackers if not a.derived)
    return table.with_(attackers=known + insiders(table, at_most=at_most, scope=scope), insiders=True)


def insiders(table: Table, *, at_most: int = 2, scope: str = "near") -> tuple[Attacker, ...]:
    """Return the respondents who could undo a release, as attackers.

    Parameters
    ----------
    table
        Made by :func:`cellguard.tabulate`, with rules applied: what is sensitive is to be protected
        against them too, except from those who are alone in it.
    at_most
        1: who is alone in a cell. 2: also who shares a cell with one other.
    scope
        ``"near"``: an insider is held off the sensitive cells in a relation with a cell he has inside
        knowledge of. ``"all"``: off every sensitive cell, at the price of a linear program or two for
        each pair.

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
    cells = _statistics(table)
    who, cell, amount, alone = _knowledge(table, cells)
    chosen = np.unique(who[alone | ((cells.count[cell] <= at_most) & table.sensitive[cell])])
    near = _relations_of(table) if scope == "near" else None
    out: list[Attacker] = []
    for respondent in chosen.tolist():
        mine = slice(*np.searchsorted(who, [respondent, respondent + 1]))
        attacker = _attacker(table, f"{_NAME} {len(out) + 1}", cell[mine], amount[mine], alone[mine], near)
        if attacker is not None:
            out.append(attacker)
    return tuple(out)


_NAME = "insider"


def _statistics(table: Table) -> CellStatistics:
    cells = table.statistics
    if not isinstance(cells, CellStatistics) or cells.contributors is None:
        raise InputError(
            "the table does not know who contributed to its cells.",
            hint="make it with cg.tabulate, with top=2 at least.",
        )
    cells.require(2)
    return cells


def _knowledge(table: Table, cells: CellStatistics) -> tuple[IntArray, IntArray, FloatArray, NDArray[np.bool_]]:
    """Return who knows something of which cell, how much is his own, and whether he is alone there; by who."""
    contributors = np.asarray(cells.contributors)
    cell, column = np.nonzero(contributors >= 0)
    who = contributors[cell, column]
    alone = cells.count[cell] == 1
    # his own share; a contribution to another variable says nothing about this one
    own = np.zeros(len(cell)) if cells.shadow else cells.top[cell, column]
    if cells.top_weights is not None:
        own = own * np.minimum(cells.top_weights[cell, column], 1.0)
    amount = np.where(alone, table.values[cell], own)
    order = np.lexsort((cell, who))
    return who[order], cell[order], amount[order], alone[order]


def _relations_of(table: Table) -> csr_array:
    """Return which cells are in a relation with each other."""
    T = abs(table.relations)
    return (T.T @ T).tocsr()


def _attacker(
    table: Table, name: str, cell: IntArray, amount: FloatArray, alone: NDArray[np.bool_], near: csr_array | None
) -> Attacker | None:
    """Return the attacker, or None when there is nothing to hold him off."""
    # where contributions may be negative, a part says nothing about the whole
    tells = alone | ((table.lb[cell] >= 0) & (amount > table.lb[cell]))
    cell, amount, alone = cell[tells], amount[tells], alone[tells]
    target = table.sensitive.copy()
    target[cell[alone]] = False
    if near is not None:
        there = np.zeros(table.n_cells, dtype=bool)
        for c in cell[alone | table.sensitive[cell]]:
            there[near.indices[near.indptr[c] : near.indptr[c + 1]]] = True
        target &= there
    wanted = np.flatnonzero(target)
    low = np.array(table.lb)
    low[cell] = np.minimum(amount, table.values[cell])
    high = np.array(table.ub)
    high[cell[alone]] = table.values[cell[alone]]
    return Attacker(
        name=name,
        derived=True,
        cells=cell,
        lb=low[cell],
        ub=high[cell],
        sensitive=wanted,
        lower=np.minimum(table.lower[wanted], table.values[wanted] - low[wanted]),
        upper=np.minimum(table.upper[wanted], high[wanted] - table.values[wanted]),
        sliding=np.minimum(table.sliding[wanted], high[wanted] - low[wanted]),
    )
