"""The meaning of the codes of linked tables: the leaves below a code define it, regardless of its name.

Tables of one publication may have their own trees over the same leaves, and their own names for totals. Two
codes of a dimension mean the same if they have the same spelling, or if one of them is a table's total and both
have the same leaves. The leaves of a code are collected over all tables: a code without parts in one table
may have parts in another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard.exceptions import CellguardError, InputError, PublicationError

if TYPE_CHECKING:
    from cellguard.model.linked.publication import Part

__all__ = ["Meanings"]

Family = tuple[str, tuple[str, ...]]
"""A code and the codes that add up to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Meanings:
    """The codes of each dimension of a publication, one per meaning."""

    codes: dict[str, tuple[str, ...]]
    """Dimension -> its codes, total first."""
    names: tuple[dict[str, dict[str, str]], ...]
    """For each table: dimension -> the table's code -> the publication's code."""
    families: dict[str, tuple[Family, ...]]
    """Dimension -> how codes add up, in the publication's codes."""

    @classmethod
    def of(cls, parts: Sequence[Part]) -> tuple[Meanings, list[Part], list[CellguardError]]:
        """Find the meanings from the hierarchies of all tables.

        Tables with a dimension whose codes mean different things in different tables are left out. Return the
        tables that fit, and the errors of the others.
        """
        left, wrong = list(parts), []
        while left:
            found: dict[str, _Dimension] = {}
            bad = set()
            for d in _list_dimensions(left):
                try:
                    found[d] = _Dimension(d, left)
                except InputError as error:
                    bad.add(d)
                    wrong.append(error)
            if not bad:
                meanings = cls(
                    codes={d: tuple(one.codes) for d, one in found.items()},
                    names=tuple({d: one.names[k] for d, one in found.items()} for k in range(len(left))),
                    families={d: tuple(one.families) for d, one in found.items()},
                )
                return meanings, left, list(wrong)
            left = [part for part in left if bad.isdisjoint(_list_dimensions([part]))]
        raise PublicationError.of(wrong)


def _list_dimensions(parts: Sequence[Part]) -> list[str]:
    """Return the dimensions of some tables, including those that define their part of the population."""
    own = [part.dimension(d) for part in parts for d in part.table.dimensions]
    return list(dict.fromkeys([*own, *(d for part in parts for d in part.where)]))


class _Dimension:
    """One dimension across all tables."""

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        self.name = name
        self.trees = [_get_part_tree(part, name) for part in parts]
        below: dict[str, set[str]] = defaultdict(set)
        for tree in self.trees:
            for code, children in tree.families:
                below[code].update(children)
        self.leaves = _collect_leaves(name, below)
        roots = list(dict.fromkeys(tree.root for tree in self.trees if tree.root is not None))
        listed = list(dict.fromkeys(code for tree in self.trees for code in tree.codes))
        self._refuse_two_meanings(roots, below)
        total = max(roots, key=lambda code: len(self._list_leaves(code)), default="Total")
        same = {code: self._find_same_code(code, listed, roots, total) for code in listed}
        self.codes = list(dict.fromkeys([total, *(same[code] for code in listed)]))
        self.names = [
            {spelt: same[code] for spelt, code in zip(tree.spelt, tree.codes, strict=True)} for tree in self.trees
        ]
        families = ((same[code], tuple(same[c] for c in kids)) for tree in self.trees for code, kids in tree.families)
        self.families = [f for f in dict.fromkeys(families) if f[0] not in f[1]]

    def _list_leaves(self, code: str) -> frozenset[str]:
        return self.leaves.get(code, frozenset([code]))

    def _find_same_code(self, code: str, listed: Sequence[str], roots: Sequence[str], total: str) -> str:
        """Return the representative of a code: the first code with the same meaning."""
        if code not in roots:
            return code
        if code == total or self._list_leaves(code) == self._list_leaves(total):
            return total
        inner = (c for c in listed if c not in roots and self._are_alike(c, code))
        return next(inner, total if self._is_complete_total(code, total) else code)

    def _is_complete_total(self, code: str, total: str) -> bool:
        """Accept a total over fewer codes if its value is the same: codes without data have no row."""
        by_indicator = {t.grand[0]: t.grand[1] for t in self.trees if t.root == total and t.grand is not None}
        own = [t.grand for t in self.trees if t.root == code and t.grand is not None and t.grand[0] in by_indicator]
        return bool(own) and all(np.isclose(value, by_indicator[name], rtol=1e-9) for name, value in own)

    def _are_alike(self, first: str, second: str) -> bool:
        return len(self._list_leaves(first)) > 1 and self._list_leaves(first) == self._list_leaves(second)

    def _refuse_two_meanings(self, roots: Sequence[str], below: dict[str, set[str]]) -> None:
        """Require that a total that is an inner code elsewhere has the same parts there, or is declared that part."""
        for root in roots:
            totals = [tree for tree in self.trees if tree.root == root]
            inner = [tree for tree in self.trees if tree.root not in (root, None) and root in tree.codes]
            if not inner or root not in below:
                continue
            sets = [
                frozenset().union(*(self._list_leaves(c) for c in kids))
                for tree in self.trees
                for code, kids in tree.families
                if code == root
            ]
            known = any(code == root for tree in inner for code, _ in tree.families)
            guessed = [tree for tree in totals if not (tree.declared or known)]
            if guessed:  # the same word, and no table says what is below it there
                raise InputError(
                    f"dimension {self.name!r}: {root!r} is the total of {guessed[0].place(root)} and an inner code of "
                    f"{inner[0].place(root)}.",
                    hint=f'if the table covers that part only, say where = {{{self.name} = "{root}"}}; '
                    "otherwise give its total a code of its own.",
                )
            if any(s != self._list_leaves(root) for s in sets):
                raise InputError(
                    f"dimension {self.name!r}: {root!r} is the total of {totals[0].place(root)} and an inner code of "
                    f"{inner[0].place(root)}, with other parts.",
                    hint="give the total a code of its own, or say which part of the population the table covers.",
                )


@dataclass(frozen=True, kw_only=True)
class _Tree:
    """The codes of one table in one dimension."""

    root: str | None
    spelt: tuple[str, ...]
    """Its codes in the table's spelling."""
    codes: tuple[str, ...]
    """The same; the total of a part of the population has the code of that part."""
    families: tuple[Family, ...]
    part: Part
    """The table."""
    declared: bool = False
    """Whether its total is declared to be a part of the population."""
    grand: tuple[str, float] | None = None
    """Its indicator and the value of its grand total, which shows whether it covers the whole population."""

    def place(self, code: str) -> str:
        """Return the name of the table for messages, with the first line that has a code."""
        table = self.part.table
        if code not in self.codes:
            return self.part.place(-1)
        spelt = self.spelt[self.codes.index(code)]
        own = [table.coordinates[:, d] == c.index(spelt) for d, c in enumerate(table.codes) if tuple(c) == self.spelt]
        return self.part.name_first_place(np.any(own, axis=0)) if own else self.part.place(-1)


def _get_part_tree(part: Part, dimension: str) -> _Tree:
    """Return the codes that a table has in a dimension, or the code of its population if it has none."""
    table = part.table
    own = next((d for d, name in enumerate(table.dimensions) if part.dimension(name) == dimension), None)
    if own is None:
        code = part.where.get(dimension)
        alone = () if code is None else (code,)
        return _Tree(root=None, spelt=alone, codes=alone, families=(), part=part)
    codes = table.codes[own]
    families: list[Family] = [(codes[0], tuple(codes[1:]))]
    if table.hierarchies:
        found = table.hierarchies[own].relations()
        totals = enumerate(found.totals.tolist())
        families = [(codes[total], tuple(codes[c] for c in found.get_parts(k))) for k, total in totals]
    if dimension in part.where:  # the total of a table for a part of the population is that part
        root = part.where[dimension]
        families = [(root if code == codes[0] else code, kids) for code, kids in families]
        renamed = (root, *codes[1:])
        return _Tree(root=root, spelt=codes, codes=renamed, families=tuple(families), part=part, declared=True)
    top = np.flatnonzero(~table.coordinates.any(axis=1))
    grand = (part.indicator, float(table.values[top[0]])) if len(top) and not part.where else None
    return _Tree(root=codes[0], spelt=codes, codes=codes, families=tuple(families), part=part, grand=grand)


def _collect_leaves(name: str, below: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    """Return the leaves below every code that has parts, over all tables; refuse codes that contain each other."""
    done: dict[str, frozenset[str]] = {}
    for start, first in below.items():
        if start in done:
            continue
        stack = [(start, iter(sorted(first)))]
        path = {start}
        while stack:
            code, kids = stack[-1]
            kid = next((k for k in kids if k in below and k not in done), None)
            if kid is None:
                stack.pop()
                path.discard(code)
                done[code] = frozenset().union(*(done.get(k, frozenset([k])) for k in below[code]))
            elif kid in path:
                raise InputError(
                    f"dimension {name!r}: {kid!r} is above {code!r} in one table and below it in another.",
                    hint="a code must mean the same in every table.",
                )
            else:
                path.add(kid)
                stack.append((kid, iter(sorted(below[kid]))))
    return done
