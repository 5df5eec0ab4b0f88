"""What the rules of publication reveal to every attacker, regardless of the release.

Empty cells are known: anyone can see that there is no bakery in the village, and releases publish the zero. So a
cell that is withheld, rounded or published as an interval is **not empty**. A withheld count is at least 1; a
withheld magnitude is at least one unit of its last decimal. Three withheld counts that add up to 3 are 1, 1 and 1.

This holds unless the user says otherwise (`Table.known_zeros`):

- ``None``: empty cells of a table of counts are known, those of other tables are not;
- ``True``: empty cells are known, as :meth:`cellguard.Table.with_known_zeros` says;
- ``False``: attackers do not know which cells are empty. A zero may be withheld, and a withheld cell may be 0.

If a zero is itself sensitive, it is withheld like any other sensitive cell, so a withheld cell may be 0 as well.
Bounds that a user gave are never loosened.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.space.groups import find_groups
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.parts.sums import add_up_lower_bounds
from cellguard.model.table import Table
from cellguard.model.units import find_unit_of_values

__all__ = ["add_public_knowledge", "find_connected_parts"]


def add_public_knowledge(table: Table) -> Table:
    """Return the table with the bounds that follow from the rules of publication.

    Methods, audit and verification all call this first, so that they agree on what is safe. Calling it twice changes
    nothing, and :meth:`Table.with_` undoes it if a change may invalidate it.

    >>> counts = Table.from_equations([1, 5, 0, 6], [[3, 0, 1, 2]], sensitive=[0], integer=True)
    >>> known = add_public_knowledge(counts)
    >>> known.lb, known.ub
    (array([1., 1., 0., 2.]), array([inf, inf,  0., inf]))
    >>> add_public_knowledge(counts.with_(known_zeros=False)).lb
    array([0., 0., 0., 0.])
    """
    if table.has_public_knowledge or not table.zeros_are_known or not _is_anything_sensitive(table):
        return table
    part = find_connected_parts(table)
    zero, counts = table.values == 0, table.count_cells
    # a sensitive zero is withheld, so a withheld cell of its table may be 0
    open_zero = np.isin(part, part[zero & _find_sensitive_cells(table)])
    empty = counts & zero & ~open_zero & ~table.sensitive
    published = table.fixed | empty
    least = np.where(counts, 1.0, _find_units(table, part, published) if table.known_zeros else 0.0)
    lifted = ~published & ~open_zero & (table.lb >= 0) & (table.values >= least)
    lb = np.where(empty, 0.0, np.where(lifted, np.maximum(table.lb, least), table.lb))
    return table.apply_public_knowledge(
        lb=add_up_lower_bounds(table, lb, zero & published), ub=np.where(empty, 0.0, table.ub), fixed=published
    )


def _is_anything_sensitive(table: Table) -> bool:
    return bool(_find_sensitive_cells(table).any())


def _find_sensitive_cells(table: Table) -> BoolArray:
    """Return the cells that must be protected against some attacker."""
    out = table.sensitive.copy()
    for attacker in table.attackers:
        if attacker.sensitive is not None and not attacker.derived:
            out[attacker.sensitive] = True
    return out


def find_connected_parts(table: Table) -> IntArray:
    """Return for each cell the number of its connected part: the cells that relations tie together.

    What holds for a part holds both for the part alone and within a publication.
    """
    n, T = table.n_cells, table.relations.tocoo()
    relation, cell = T.coords
    return find_groups(cell, n + relation, n + table.n_relations)[:n]


def _find_units(table: Table, part: IntArray, published: BoolArray) -> FloatArray:
    """Return the unit of the last decimal of each cell's connected part; 0 if the values have none.

    An unpublished zero shows that a withheld cell of its part may be 0, so no unit follows for that part.
    """
    zero = (table.values == 0) & ~published
    out = np.zeros(table.n_cells)
    order = np.argsort(part, kind="stable")
    for cells in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        if not zero[cells].any():
            out[cells] = find_unit_of_values(table.values[cells])
    return out
