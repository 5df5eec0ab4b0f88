"""Find names that may break the links of a publication: similar dimensions or indicators with different names.

Cells are linked by the names of dimensions and indicators. If two tables use two names for the same thing, they
share no cell, and one table may print what the other withholds. Only the author of the tables knows whether two
names mean the same, so similar names are reported, never changed. A release that prints under one name what it
withholds under the other is refused, unless the author declares the two names different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cellguard._engine.space.cell_grid import compute_grid_keys
from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard._types import IntArray
from cellguard.exceptions import InputError
from cellguard.model.linked.publication import INDICATOR

if TYPE_CHECKING:
    from cellguard.model.linked.publication import Part
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["Lookalike", "find_lookalikes", "refuse_lookalike_disclosures"]

_ENOUGH = 3
"""Minimum number of codes, or of cells with values, that must agree: fewer may agree by chance."""


class Lookalike(NamedTuple):
    """Two names that may mean the same."""

    what: str
    """Kind of the names: dimensions, indicators, or populations."""
    names: tuple[str, str]
    text: str
    """The message, including what to write if the names mean the same."""


def find_lookalikes(
    table: Table, equations: Collection[Collection[str]] = (), different: Collection[Collection[str]] = ()
) -> list[Lookalike]:
    """Return similar names in the system of a publication; nothing if it has only one table.

    `equations` are the names of indicators that are linked anyway; `different` are pairs of names that are declared to
    mean different things.
    """
    if table.parts is None:
        return []
    found = [
        *_find_similar_dimensions(table.parts),
        *_find_similar_populations(table.parts),
        *_find_similar_indicators(table, equations),
    ]
    return [one for one in found if set(one.names) not in [set(pair) for pair in different]]


def refuse_lookalike_disclosures(release: Release, found: Collection[Lookalike]) -> None:
    """Refuse a release that reveals more about a cell under one name than under a similar name.

    It compares cells that have the same value, and the same codes once both names are treated as one.
    """
    table = release.table
    shown = np.column_stack([np.unique(column, return_inverse=True)[1] for column in release.columns().values()])
    for one in found:
        twins = _find_twins(table, one.names)
        if not len(twins):
            continue
        first, second = table.values[twins].T
        same = np.abs(first - second) <= MEANT_TO_BE_SAME * np.maximum(np.abs(first), np.abs(second))
        unlike = twins[same & (shown[twins[:, 0]] != shown[twins[:, 1]]).any(axis=1)]
        if len(unlike):
            raise InputError(
                f"{len(unlike)} cells are published in one way by one name and in another way by the other, "
                f"{table.label(int(unlike[0, 0]))} for one: {one.text}",
                hint=f'if they are different things, say different = [["{one.names[0]}", "{one.names[1]}"]].',
            )


def _find_twins(table: Table, names: tuple[str, str]) -> IntArray:
    """Return pairs of cells that are the same cell if two dimensions, codes or indicators are the same."""
    places = table.coordinates.astype(np.int64)
    if set(names) <= set(table.dimensions):
        a, b = (table.dimensions.index(name) for name in names)
        place = {code: k for k, code in enumerate(table.codes[a])}
        own = [place.get(code, len(place) + k) for k, code in enumerate(table.codes[b])]
        own[0] = 0
        mine, theirs = places[:, a], np.array(own)[places[:, b]]
        merged = np.where(mine > 0, mine, theirs)
        keys = np.column_stack([np.delete(places, [a, b], axis=1), merged])
    else:
        d = next((d for d, codes in enumerate(table.codes) if set(names) <= set(codes)), None)
        if d is None:
            return np.zeros((0, 2), np.int64)
        a, b = (table.codes[d].index(name) for name in names)
        keys = places.copy()
        keys[keys[:, d] == b, d] = a
    group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(group, kind="stable")
    twin = group[order[1:]] == group[order[:-1]]
    return np.column_stack([order[:-1][twin], order[1:][twin]])


def _find_similar_dimensions(parts: Sequence[Part]) -> Iterator[Lookalike]:
    """Yield pairs of dimensions that have the same codes and never occur in the same table."""
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
        if not same or frozenset((a, b)) in together or _have_different_margins(parts, a, b):
            continue
        (one, _), (other, own) = first[a], first[b]
        say = f"call them {a!r} in both tables"
        say += f': there dimensions = ["{a}", ...] and columns = {{{a} = "{own}"}}' if other.source else ""
        text = (
            f"dimension {a!r} of table {one.name!r} and dimension {b!r} of table {other.name!r} have the same codes "
            f"and are not linked: what is withheld in one may be printed in the other. If they are one, {say}."
        )
        yield Lookalike("dimensions", (a, b), text)


def _have_different_margins(parts: Sequence[Part], a: str, b: str) -> bool:
    """Return whether most comparable margins of two dimensions have different values: the dimensions differ."""
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


def _find_similar_populations(parts: Sequence[Part]) -> Iterator[Lookalike]:
    """Yield parts of the population that no other table has, but whose name or code is similar to one of theirs."""
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


def _find_similar_indicators(table: Table, equations: Collection[Collection[str]]) -> Iterator[Lookalike]:
    """Yield pairs of indicators that have the same values wherever tables show both."""
    if table.dimensions[0] != INDICATOR:
        return
    keys = compute_grid_keys(table.coordinates[:, 1:], [len(codes) for codes in table.codes[1:]])
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
