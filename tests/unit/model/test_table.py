"""Tables: construction from equations, what they say of themselves, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard import Attacker, Table
from cellguard.exceptions import AdditivityError, InputError, LevelError
from cellguard.model.attacker import EXTERNAL
from cellguard.model.levels import add_respondents


@pytest.fixture
def table():
    return Table.from_equations([30, 40, 70], [[2, 0, 1]], sensitive=[0], lower=[5], upper=[6], sliding=[8], ub=1000)


def make(**changes):
    fields = {"sensitive": [0], "lower": 5, "upper": 6, "ub": 1000.0} | changes
    return Table.from_equations(fields.pop("values", [30, 40, 70]), fields.pop("relations", [[2, 0, 1]]), **fields)


def test_from_equations_takes_lists_matrices_and_sparse_matrices():
    from scipy.sparse import csr_array

    rows = np.array([[1.0, 1, -1]])
    for relations in ([[2, 0, 1]], rows, csr_array(rows)):
        assert (make(relations=relations).relations.toarray() == rows).all()


def test_levels_follow_the_order_in_which_cells_are_named():
    t = make(sensitive=[1, 0], lower=[7, 5], upper=[0, 0])
    assert t.lower.tolist() == [5, 7, 0]
    assert make(sensitive=[True, True, False], lower=[5, 7], upper=0).lower.tolist() == [5, 7, 0]
    with pytest.raises(InputError, match="2 levels given for 1 sensitive"):
        make(lower=[1, 2])


def test_tables_are_immutable(table):
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 1
    with pytest.raises(AttributeError):
        table.values = np.zeros(3)
    mine = np.array([30.0, 40, 70])
    t = table.with_(values=mine)
    mine[0] = 0
    assert t.values[0] == 30


def test_labels_say_cells_and_relations(table):
    assert table.describe_relation(0) == "cell 2 = cell 0 + cell 1"
    wide = Table.from_equations([1] * 6 + [6], [[6, *range(6)]])
    assert wide.describe_relation(0) == "cell 6 = cell 0 + cell 1 + cell 2 + 3 more"
    signed = Table.from_equations([1, 1], np.array([[1.0, -2.0]]), rhs=[-1])
    assert signed.describe_relation(0) == "cell 1 = cell 0"
    assert "cell 0" in Table.from_equations([1, 1], np.array([[1.0, 1.0]]), rhs=[2]).describe_relation(0)
    assert repr(table) == "Table(3 cells, 1 relation, 1 sensitive)"


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"values": [30, np.nan, 70]}, InputError, "cell 1: the value is not a finite"),
        ({"values": [30, np.inf, 70]}, InputError, "cell 1: the value is not a finite"),
        ({"values": [30, 41, 70]}, AdditivityError, "1 of 1 relations do not hold.*cell 2 = cell 0 "),
        ({"lb": [0, 41, 0]}, InputError, "cell 1: the lower bound lies above"),
        ({"ub": [1000, 39, 1000]}, InputError, "cell 1: the upper bound lies below"),
        ({"lb": [0, np.nan, 0]}, InputError, "cell 1: a bound is not a number"),
        ({"weights": [1, -1, 1]}, InputError, "cell 1: the weight"),
        ({"weights": [1, np.inf, 1]}, InputError, "cell 1: the weight"),
        ({"lower": -5}, LevelError, "cell 0: the lower level is not a finite"),
        ({"upper": np.inf}, LevelError, "cell 0: the upper level is not a finite"),
        ({"lower": [5, 5, 0]}, LevelError, "cell 1: a lower level on a cell that is not sensitive"),
        ({"lower": 31}, LevelError, "cell 0: the lower level is wider.*external"),
        ({"upper": 971}, LevelError, "cell 0: the upper level is wider"),
        ({"sliding": 1001}, LevelError, "cell 0: the sliding level is wider"),
        ({"fixed": [0]}, LevelError, "cell 0: a sensitive cell cannot be fixed"),
        ({"sensitive": [3]}, InputError, "sensitive: a cell index lies outside 0..2"),
        ({"fixed": [True]}, InputError, "fixed: 1 truth values given for 3 cells"),
        ({"relations": [[2, 0, 5]]}, InputError, "names a cell outside 0..2"),
        ({"relations": [[2]]}, InputError, "a total and at least one part"),
        ({"relations": np.array([[1.0, np.nan, -1]])}, InputError, "a coefficient or right-hand side"),
        ({"rhs": [0, 0]}, InputError, "relations have shape"),
        ({"attackers": (EXTERNAL, Attacker(name="x", cells=[9], lb=[0], ub=[1]))}, InputError, "'x' names a cell"),
        ({"attackers": (EXTERNAL, Attacker(name="x", cells=[0], lb=[29], ub=[99]))}, LevelError, "attacker 'x'"),
        ({"dimensions": ("d",)}, InputError, "codes of 0 dimensions"),
        ({"dimensions": ("d",), "codes": (("T", "a", "b"),)}, InputError, "coordinates have shape"),
        ({"dimensions": ("d",), "codes": (("T", "a"),), "coordinates": np.array([[1], [2], [0]])}, InputError, "'d': a cell"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_without_values(changes, error, says):
    with pytest.raises(error, match=f"(?s){says}") as raised:
        make(**changes)
    text = str(raised.value)
    assert not any(value in text for value in ("30", "40", "70"))
    assert type(raised.value) is error


def test_rounding_alone_is_no_error():
    parts = np.full(1000, 0.1)
    Table.from_equations([*parts, 100.0], [[1000, *range(1000)]])
    with pytest.raises(AdditivityError):
        Table.from_equations([*parts, 100.001], [[1000, *range(1000)]])


def respondents(table):
    return [(a.cells.tolist(), a.sensitive.tolist()) for a in table.attackers if a.derived]


def test_a_change_of_the_table_does_not_lose_its_respondents():
    """What they know follows from the rest of the table: they are derived again, not dropped."""
    firms = {"region": list("NNSSWWW"), "size": list("ababbab"), "x": [9.0, 7.0, 8.0, 6.0, 5.0, 4.0, 3.0]}
    plain = cg.tabulate(firms, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
    known = add_respondents(plain)
    assert respondents(known)
    fixed = np.zeros(plain.n_cells, bool)
    fixed[0] = True
    for changes in ({"fixed": fixed}, {"upper": 2.0 * plain.upper}, {"smallest_width": 0.3}):
        changed = known.with_(**changes)
        assert respondents(changed) == respondents(add_respondents(plain.with_(**changes)))
        assert respondents(changed)
    assert not respondents(known.with_(insiders=False, attackers=()))
