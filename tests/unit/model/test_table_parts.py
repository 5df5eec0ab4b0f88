"""A change of a table keeps every field that it does not name."""

import dataclasses
import functools

import numpy as np
import pytest

import cellguard as cg
from cellguard.model.levels import add_respondents
from cellguard.model.parts.contents import Contents
from cellguard.model.parts.protection import ProtectedCells
from cellguard.model.parts.structure import Structure
from cellguard.model.table import Table

FIELDS = [f.name for f in dataclasses.fields(Table) if f.init]


@functools.cache
def make_table() -> Table:
    records = {
        "region": ["N", "N", "N", "S", "S", "W", "W", "W", "W"],
        "sex": ["f", "f", "m", "f", "m", "f", "m", "m", "m"],
        "turnover": [90, 3, 40, 70, 60, 20, 30, 35, 38],
    }
    table = cg.tabulate(records, by=["region", "sex"], value="turnover").apply(cg.PPercent(10))
    assert table.sensitive.any()
    return table.with_(name="turnover", library="polars", crosses_left_out=2)


def make_change(table: Table, field: str) -> object:
    """Return another value of a field with which the table is still valid."""
    n, free = table.n_cells, ~table.sensitive
    return {
        "values": lambda: 2 * table.values,
        "relations": lambda: table.relations[:-1],
        "rhs": table.rhs.copy,
        "lb": lambda: table.lb - 1,
        "ub": lambda: np.maximum(table.values * 3, 1.0),
        "weights": lambda: table.weights + 1,
        "fixed": lambda: free & (np.arange(n) == np.flatnonzero(free)[-1]),
        "sensitive": lambda: np.ones(n, bool) & ~table.fixed,
        "lower": lambda: table.lower / 2,
        "upper": lambda: table.upper / 2,
        "sliding": lambda: np.where(table.sensitive, 1.0, 0.0),
        "attackers": lambda: (cg.Attacker(name="another"),),
        "insiders": lambda: False,
        "coordinates": table.coordinates.copy,
        "counts": lambda: None,
        "integer": lambda: True,
        "counted": lambda: np.arange(n) < 0,
        "whole": lambda: not table.whole,
        "known_zeros": lambda: False,
        "smallest_width": lambda: 0.2,
        "name": lambda: "other",
        "statistics": lambda: None,
        "flags": lambda: None,
        "crosses_left_out": lambda: 3,
        "library": lambda: "pandas",
        "hierarchies": lambda: (),
    }.get(field, lambda: getattr(table, field))()


def is_same(one: object, two: object) -> bool:
    if hasattr(one, "toarray"):
        return np.array_equal(one.toarray(), two.toarray())
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and np.array_equal(one, two)
    return one is two or one == two


@pytest.mark.parametrize("field", FIELDS)
def test_a_change_keeps_every_other_field(field):
    table = make_table()
    changes = {field: make_change(table, field)}
    if field == "relations":
        changes["rhs"] = table.rhs[:-1]
    changed = table.with_(**changes)
    lost = [f for f in FIELDS if f not in changes and not is_same(getattr(table, f), getattr(changed, f))]
    assert lost == []


@pytest.mark.parametrize("field", FIELDS)
def test_what_was_derived_is_derived_again(field):
    """Changing a field, then deriving attackers, equals deriving attackers, then changing it."""
    table = make_table()
    derived = add_respondents(table)
    assert derived.has_public_knowledge
    assert any(attacker.derived for attacker in derived.attackers)
    changes = {field: make_change(table, field)}
    if field == "relations":
        changes["rhs"] = table.rhs[:-1]
    after = derived.with_(**changes)
    if field in {"attackers", "insiders"}:  # the change decides who attacks
        assert getattr(after, field) is changes[field]
        return
    before = add_respondents(table.with_(**changes))
    plain = [f for f in FIELDS if f != "attackers"]
    assert [f for f in plain if not is_same(getattr(before, f), getattr(after, f))] == []
    assert [a.name for a in after.attackers] == [a.name for a in before.attackers]
    for one, two in zip(before.attackers, after.attackers, strict=True):
        assert all(is_same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one))


def test_public_knowledge_without_respondents_is_derived_again():
    table = cg.Table.from_equations([1, 5, 0, 6], [[3, 0, 1, 2]], sensitive=[0], integer=True)
    known = add_respondents(table)
    assert known.lb.tolist() == [1, 1, 0, 2]
    assert known.with_(smallest_width=4).lb.tolist() == [1, 1, 0, 2]
    assert known.with_(known_zeros=False).lb.tolist() == [0, 0, 0, 0]
    assert known.remove_public_knowledge().lb.tolist() == [0, 0, 0, 0]


def test_every_field_belongs_to_one_part():
    parts = [Structure, Contents, ProtectedCells, Table]
    assert Table.__mro__[:4] == tuple(reversed(parts))
    own = [set(part.__annotations__) for part in parts]
    assert sum(map(len, own)) == len(set().union(*own)) == len(dataclasses.fields(Table))
    assert max(map(len, own)) <= 12
