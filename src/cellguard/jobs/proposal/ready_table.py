"""Recognise a ready table: total codes, values, counts and largest contributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cellguard._types import FloatArray
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs.proposal.columns import Column
from cellguard.jobs.proposal.guess import (
    COUNTS,
    LARGEST,
    VALUES,
    describe_strays,
    explain_identifier,
    split_name,
)
from cellguard.model.hierarchy import Hierarchy
from cellguard.tabulation.template import find_total

__all__ = ["Ready", "ReadyDimension", "guess_hierarchy_beside", "guess_ready_table", "is_ready_table"]

_ANY_NUMBER = ("value", "wert", "valor")
"""Names of values that say nothing about what is measured."""
_AMOUNTS = ("tot", "total", "sum", "response", "y")
_MANY = 200
"""Endings of files beside the table that may hold a hierarchy."""
_LARGEST = 1 << 20
"""Size limit of such a file in bytes: larger ones hold data."""


@dataclass(frozen=True, kw_only=True)
class ReadyDimension:
    """A column of codes."""

    name: str
    total: str
    """Code of the total in the file; empty if it has none."""
    hierarchy: Path | None = None
    """A file whose hierarchy has all its codes."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The recognised parts of a ready table."""

    dimensions: tuple[ReadyDimension, ...]
    value: str
    count: str | None
    top: tuple[str, ...]
    why: Mapping[str, str]
    """Column -> its guessed role."""
    unconfirmed: tuple[str, ...] = ()
    rows: int = 0
    cells: int = 0
    """Number of cells of the full cross of the dimensions; those without a row have no data."""


def is_ready_table(columns: Sequence[Column]) -> bool:
    """Return whether the file is a table: it has codes of totals, and each combination of codes has one row."""
    return bool(_find_code_columns(columns))


_FULL = 0.5
"""A file without totals is a table if at least this share of the combinations of its codes has a row."""


def _find_code_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns whose codes identify the cells of a table; none if the file holds records.

    These are the columns with the code of a total, and as many other columns of codes as needed. Without any total,
    a file is a table if most combinations of two or more codes have exactly one row.
    """
    codes = [c for c in columns if not c.numeric and c.distinct > 1 and not c.dates]
    chosen = [c for c in codes if _has_total(c)]
    others = [
        c
        for c in codes
        if not _has_total(c) and c.gaps == 0 and c.records_per_code >= _SHARED and not explain_identifier(c)
    ]
    if not chosen:
        records = any(explain_identifier(c) for c in columns)  # a column that names respondents is in no table
        full = not records and len(others) > 1 and _has_one_row_per_cell(others)
        dense = full and others[0].filled >= _FULL * np.prod([float(c.distinct) for c in others])
        return others if dense else []
    for more in range(len(others) + 1):
        needed = [*chosen, *others[:more]]
        if _has_one_row_per_cell(needed):
            return [c for c in codes if c in needed]
    return []


_SHARED = 1.5
"""A code shared by fewer rows than this on average is a label or an identifier."""


def _has_one_row_per_cell(columns: Sequence[Column]) -> bool:
    index = np.column_stack([c.index for c in columns])
    return len(np.unique(index, axis=0)) == len(index)


def guess_ready_table(path: Path, columns: Sequence[Column]) -> Ready:
    """Recognise the parts of a table: dimensions by their total codes; counts, value and contributions by shape."""
    why: dict[str, str] = {}
    found = _find_code_columns(columns) or [c for c in columns if _has_total(c)]
    totals = {c.name: find_total(c.codes) or "" for c in found}
    dims = []
    for c in found:
        total = totals[c.name]
        tree = guess_hierarchy_beside(path, c, total)
        dims.append(ReadyDimension(name=c.name, total=total, hierarchy=tree))
        why[c.name] = f"dimension: {c.distinct} codes, " + (f"total {total!r}" if total else "their total is computed")
        why[c.name] += f"; {tree.name} has the hierarchy" if tree is not None else ""
    numbers = [c for c in columns if c.numeric and c.name not in totals]
    count = _guess_count_column(numbers)
    value, sure = _guess_value_column([c for c in numbers if c is not count])
    if value is None and count is not None:  # a table of counts: they are the value
        value, sure = count, True
    if value is None:
        raise InputError(f"{path}: no column of numbers looks like the value.", hint="a table has one number per cell.")
    top = _guess_largest_contributions([c for c in numbers if c not in (count, value)], value)
    why[value.name] = "value: " + ("its name suggests it" if sure else "the largest numbers")
    unconfirmed = [] if sure else ["value"]
    if count is value:
        why[value.name] = "value: its name suggests numbers of contributors; a table of counts"
    elif count is not None:
        why[count.name] = "count: whole numbers, and its name suggests contributors"
    elif not top and value.whole and not value.negative and not _is_amount(value):
        count = value
        why[value.name] += "; whole numbers and nothing about contributors: taken for counts of them"
        unconfirmed.append("count")
    why |= {c.name: "top: a largest contribution, never above the value" for c in top}
    for c in columns:
        why[c.name] = why.get(c.name, "not used") + describe_strays(c)
    return Ready(
        dimensions=tuple(dims), value=value.name, count=None if count is None else count.name,
        top=tuple(c.name for c in top), why=why, unconfirmed=tuple(unconfirmed),
        rows=max(c.filled for c in columns), cells=int(np.prod([c.distinct for c in found])),
    )  # fmt: skip


def _is_amount(c: Column) -> bool:
    """Return whether the name of a column says that it holds amounts, which are no numbers of contributors."""
    return any(word in c.name.lower() for word in VALUES if word not in _ANY_NUMBER)


def _has_total(c: Column) -> bool:
    return find_total(c.codes) is not None


def _guess_count_column(numbers: Sequence[Column]) -> Column | None:
    whole = [c for c in numbers if c.whole and not c.negative]
    joined = {c.name: "".join(split_name(c.name)) for c in whole}
    return next((c for word in COUNTS for c in whole if word in (*split_name(c.name), joined[c.name])), None)


def _guess_value_column(numbers: Sequence[Column]) -> tuple[Column | None, bool]:
    """Return the column of values, and whether its name says so; otherwise take the largest numbers."""
    for word in (*VALUES, *_AMOUNTS):
        named = [c for c in numbers if word in split_name(c.name) or (len(word) > 3 and word in c.name.lower())]
        if named:
            return named[0], True
    if not numbers:
        return None, False
    return max(numbers, key=lambda c: float(np.nansum(np.abs(_get_numbers(c))))), len(numbers) == 1


def _guess_largest_contributions(numbers: Sequence[Column], value: Column) -> list[Column]:
    """Return the columns of largest contributions, largest first: by name, and never above the value."""
    whole = _get_numbers(value)
    fits = []
    for c in numbers:
        x = _get_numbers(c)
        both = np.isfinite(x) & np.isfinite(whole)
        named = any(word in c.name.lower() for word in LARGEST)
        if named and both.any() and bool((x[both] <= whole[both] * (1 + 1e-9) + 1e-9).all()):
            fits.append((float(np.nansum(x)), c))
    return [c for _, c in sorted(fits, key=lambda pair: -pair[0])]


def _get_numbers(c: Column) -> FloatArray:
    parsed = np.array([_number_to_guess_by(code) for code in c.codes] + [np.nan])
    return np.asarray(parsed[c.index])


def _number_to_guess_by(code: str) -> float:
    try:
        return float(code.strip().replace(",", "."))
    except ValueError:
        return float("nan")


def guess_hierarchy_beside(path: Path, column: Column, total: str = "", *, leaves: bool = False) -> Path | None:
    """Return the smallest file beside the data whose hierarchy has all codes of a column.

    `leaves` requires that all of them are leaves, as in records.
    """
    codes = {code for code in column.codes if code != total}
    names = (".hrc", ".txt", ".csv")
    files = sorted(f for f in path.parent.iterdir() if f.suffix.lower() in names and f.is_file() and f != path)
    found = []
    for file in [f for f in files if f.stat().st_size <= _LARGEST][:_MANY] if codes else ():
        try:
            tree = Hierarchy.read(file, total=total or "Total")
        except (CellguardError, OSError, ValueError):
            continue
        known = {tree.codes[i] for i in tree.leaves} if leaves else set(tree.codes)
        if codes <= known and tree.n_levels > 2:
            found.append((len(tree), file))
    return min(found)[1] if found else None
