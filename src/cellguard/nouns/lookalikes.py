"""Names that may cut the links of a publication: dimensions and indicators that look the same and are called otherwise.

Cells are linked by the names of dimensions and indicators. Where two tables call the same thing by two names, they
share no cell, and what is withheld in one of them is printed in the other. Nobody but their maker knows whether two
names mean one thing: what looks alike is told, never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cellguard._engine.space.cell_grid import keys_on_cell_grid
from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard.nouns.publication import INDICATOR

if TYPE_CHECKING:
    from cellguard.nouns.publication import Part
    from cellguard.nouns.table import Table

__all__ = ["Lookalike", "lookalikes"]

_ENOUGH = 3
"""So many codes, or cells with values, must agree: fewer do by chance."""


class Lookalike(NamedTuple):
    """Two names that may mean one thing."""

    what: str
    """What they are names of: dimensions, indicators, or populations."""
    names: tuple[str, str]
    text: str
    """What is told, with what to write where they are one."""


def lookalikes(table: Table, equations: Collection[Collection[str]] = ()) -> list[Lookalike]:
    """Return what looks alike in the system of a publication; nothing where it is of one table.

    `equations` are the names of indicators that are linked anyhow.
    """
    if table.parts is None:
        return []
    return [
        *_lookalike_dimensions(table.parts),
        *_lookalike_populations(table.parts),
        *_lookalike_indicators(table, equations),
    ]


def _lookalike_dimensions(parts: Sequence[Part]) -> Iterator[Lookalike]:
    """Yield dimensions that have the same codes and never stand in one table."""
    codes: dict[str, set[str]] = {}
    first: dict[str, tuple[Part, str]] = {}
    together: set[frozenset[str]] = set()
    for part in parts:
        mine = [part.dimension(own) for own in part.table.dimensions]
        together.update(map(frozenset, combinations(dict.fromkeys([*mine, *part.where]), 2)))
        for d, own, listed in zip(mine, part.table.dimensions, part.table.codes, strict=True):
            codes.setdefault(d, set()).update(listed[1:])
            first.setdefault(d, (part, own))
    for a, b in combinations(codes, 2):
        small = min(codes[a], codes[b], key=len)
        same = len(small) >= _ENOUGH and small <= codes[a] and small <= codes[b]
        if not same or frozenset((a, b)) in together or _margins_of_lookalikes_differ(parts, a, b):
            continue
        (one, _), (other, own) = first[a], first[b]
        say = f"call them {a!r} in both tables"
        say += f': there dimensions = ["{a}", ...] and columns = {{{a} = "{own}"}}' if other.source else ""
        text = (
            f"dimension {a!r} of table {one.name!r} and dimension {b!r} of table {other.name!r} have the same codes "
            f"and are not linked: what is withheld in one may be printed in the other. If they are one, {say}."
        )
        yield Lookalike("dimensions", (a, b), text)


def _margins_of_lookalikes_differ(parts: Sequence[Part], a: str, b: str) -> bool:
    """Say whether most margins of two dimensions that can be compared have different values: two things, then."""
    margins: dict[tuple[str, tuple[tuple[str, str], ...], str], dict[str, float]] = {}
    for part in parts:
        for k, own in enumerate(part.table.dimensions):
            d = part.dimension(own)
            if d not in (a, b):
                continue
            cells = np.flatnonzero(~np.delete(part.table.coordinates, k, axis=1).any(axis=1))
            found = margins.setdefault((part.indicator, tuple(sorted(part.where.items())), d), {})
            listed = part.table.codes[k]
            for cell in cells[part.table.coordinates[cells, k] > 0].tolist():
                found.setdefault(listed[part.table.coordinates[cell, k]], float(part.table.values[cell]))
    equal = [
        bool(np.isclose(value, margins[indicator, where, b][code], rtol=1e-3))
        for (indicator, where, d), found in margins.items()
        if d == a and (indicator, where, b) in margins
        for code, value in found.items()
        if code in margins[indicator, where, b]
    ]
    return bool(equal) and sum(equal) < len(equal) / 2


def _lookalike_populations(parts: Sequence[Part]) -> Iterator[Lookalike]:
    """Yield parts of the population that no other table has, by a name or a code that is near to one of theirs."""
    codes: dict[str, set[str]] = {}
    for part in parts:
        for own, listed in zip(part.table.dimensions, part.table.codes, strict=True):
            codes.setdefault(part.dimension(own), set()).update(listed[1:])
    told = set()
    for part in parts:
        mine = {*map(part.dimension, part.table.dimensions), *part.where}
        for key, code in part.where.items():
            used = any(key in other.where for other in parts if other.where != part.where)
            if (key, code) in told or code in codes.get(key, ()) or (used and key not in codes):
                continue
            told.add((key, code))
            near = [d for d, listed in codes.items() if code in listed and d not in mine]
            name = next(iter(get_close_matches(key, [d for d in codes if d not in mine], n=1)), None)
            about = f"table {part.name!r} covers {key} = {code!r}, which no other table has"
            if key in codes:
                like = get_close_matches(code, sorted(codes[key]), n=1)
                if like:
                    yield Lookalike("populations", (code, like[0]), f"{about}: is {like[0]!r} meant?")
            elif near or name:
                other = near[0] if near else str(name)
                text = (
                    f"{about}, and is not linked with dimension {other!r}. If they are one, say where = "
                    f'{{{other} = "{code}"}}, and columns = {{{other} = "{key}"}} if that column tells its rows.'
                )
                yield Lookalike("populations", (key, other), text)


def _lookalike_indicators(table: Table, equations: Collection[Collection[str]]) -> Iterator[Lookalike]:
    """Yield indicators with the same values wherever tables show both."""
    if table.dimensions[0] != INDICATOR:
        return
    keys = keys_on_cell_grid(table.coordinates[:, 1:], [len(codes) for codes in table.codes[1:]])
    of = table.coordinates[:, 0]
    for i, j in combinations(range(len(table.codes[0])), 2):
        a, b = table.codes[0][i], table.codes[0][j]
        if any(a in names and b in names for names in equations):
            continue
        mine, theirs = np.flatnonzero(of == i), np.flatnonzero(of == j)
        _, x, y = np.intersect1d(keys[mine], keys[theirs], return_indices=True)
        first, second = table.values[mine[x]], table.values[theirs[y]]
        near = np.abs(first - second) <= MEANT_TO_BE_SAME * np.maximum(np.abs(first), np.abs(second))
        if near.all() and np.count_nonzero(first) >= _ENOUGH:
            text = (
                f"indicators {a!r} and {b!r} have the same values in all {len(first)} cells that tables of both show, "
                "and are not linked: what is withheld of one may be printed of the other. If they are one, give it one "
                f'name, and say value = "{b}" in the tables that call it so.'
            )
            yield Lookalike("indicators", (a, b), text)
