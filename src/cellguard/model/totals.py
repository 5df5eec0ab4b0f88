"""Names of totals, and the check whether a code with such a name is a total.

A table that is already added up lists its totals among its codes. Treating such a code as a category adds
every value to itself and publishes twice the truth. A name alone proves nothing ("All" may be a category), so
a code is the total only if it is named like one and is the sum of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["find_flat_total", "find_total", "is_called_total", "refuse_doubled_totals"]

_TOTALS = (
    *("_t", "total", "tot", "ensemble", "insgesamt", "gesamt", "totaal", "totale", "all", "zusammen", "alle", "sum"),
    *("summe", "somme", "grand total", "totals", "razem", "yhteensä", "i alt"),
)
"""Names of totals in lower case, most likely first."""


def find_total(codes: Iterable[str], *, letter: bool = False) -> str | None:
    """Return the code that is named like a total; with `letter`, a single T is one, too.

    >>> find_total(["N", "S", "Insgesamt"]), find_total(["T", "N"]), find_total(["T", "N"], letter=True)
    ('Insgesamt', None, 'T')
    """
    spelt = {code.strip().lower(): code for code in reversed(list(codes))}
    return next((spelt[name] for name in (*_TOTALS, *(("t",) if letter else ())) if name in spelt), None)


def is_called_total(code: str) -> bool:
    """Return whether a code is named like a total."""
    return find_total([code]) is not None


def find_flat_total(
    column: tuple[Sequence[str], IntArray],
    others: Sequence[IntArray],
    values: FloatArray,
    *,
    declared: str = "Total",
    tolerance: float = 0.0,
) -> str:
    """Return the code of the total of a column whose codes simply add up: the declared one, or one named like a total.

    Parameters
    ----------
    column
        Its codes, and for each row the index of its code.
    others
        The code indices of the rows in the other columns of codes.
    values
        The value of each row.
    declared
        Code of the total, if no code of the column is named like one.
    tolerance
        A total may differ from the sum of its parts by this share.

    Raises
    ------
    InputError
        If a code is named like a total, but is not the sum of the others.

    >>> rows = np.array([0, 1, 2])
    >>> find_flat_total((["a", "b", "Ensemble"], rows), [], np.array([1.0, 2.0, 3.0]))
    'Ensemble'
    """
    codes = [code for code in column[0] if code]
    if declared in codes or len(codes) < 2:
        return declared
    share = max(tolerance, MEANT_TO_BE_SAME)
    word = find_total(codes)
    maybe = [code for code in codes if code.strip().lower() == "t" or code.lower().startswith("total")]
    for code in [word] if word is not None else maybe if len(codes) > 2 else []:
        missed = _share_missed_by_total(column, code, others, values)
        if (missed <= share).all():
            return code
        if word is not None or (missed <= _NEARLY).mean() > 0.5:
            raise InputError(
                f"code {code!r} is called like a total, and is not the sum of the other codes.",
                hint=f"if it is the total, say total = {code!r} of this dimension; if it is one code among others, "
                "say so by a hierarchy that lists them all.",
            )
    return declared


_NEARLY = 0.05
"""Share of a sum: a letter T that differs by less in most rows is a total with errors, not section T."""


def _share_missed_by_total(
    column: tuple[Sequence[str], IntArray], code: str, others: Sequence[IntArray], values: FloatArray
) -> FloatArray:
    """Return the share by which each row of a code differs from the sum of all other rows with the same codes."""
    seen, index = column
    total = index == list(seen).index(code)
    same = np.unique(np.column_stack([np.zeros(len(index), np.int64), *others]), axis=0, return_inverse=True)[1]
    groups = same.ravel()
    n = int(groups.max(initial=-1)) + 1
    known = np.where(np.isfinite(values), values, 0.0)
    own, rest, size = (
        np.bincount(groups, weights=w, minlength=n)
        for w in (np.where(total, known, 0.0), np.where(total, 0.0, known), np.abs(known))
    )
    listed = np.bincount(groups[total], minlength=n) > 0
    listed &= size > 0
    return np.asarray(2 * np.abs(own - rest)[listed] / size[listed])


def refuse_doubled_totals(table: Table) -> None:
    """Refuse a table in which a code named like a total makes up half of its parent in every cell."""
    for d, h in enumerate(table.hierarchies):
        parents = h.parents[0]
        for code in (i for i, name in enumerate(h.codes) if parents[i] >= 0 and is_called_total(name)):
            if (parents == code).any() or (parents == parents[code]).sum() < 3:
                continue  # it has parts of its own, or only its name suggests a total
            mine = np.flatnonzero(table.coordinates[:, d] == code)
            there = table.coordinates[mine].copy()
            there[:, d] = parents[code]
            above = table.cells_at(there)
            listed = above >= 0
            whole, own = table.values[above[listed]], table.values[mine[listed]]
            if whole.any() and bool((np.abs(whole - 2 * own) <= MEANT_TO_BE_SAME * np.abs(whole)).all()):
                _refuse_doubled_total(table.dimensions[d], h.codes[code], h.codes[int(parents[code])])


def _refuse_doubled_total(dimension: str, code: str, above: str) -> None:
    raise InputError(
        f"dimension {dimension!r}: {code!r} is called like a total and is the sum of the codes beside it, but is "
        f"added to them below {above!r}: everything would count twice.",
        hint=f"say that {code!r} is the total, or leave it out of the hierarchy.",
    )
