import numpy as np
import pytest

from cellguard.model.table import Table
from cellguard.release.release import Adjustment, Status, Suppression
from cellguard.testing import assert_additive, assert_releases_equal, assert_safe, assert_tables_equal


@pytest.fixture
def table():
    return Table.from_equations([20, 50, 70, 30, 40], [[2, 0, 1], [2, 3, 4]], sensitive=[0], lower=[4], upper=[4])


def adjusted(table, values):
    return Adjustment(table=table, status=Status.OPTIMAL, objective=1.0, values=np.array(values, float))


def suppressed(table, cells, status=Status.OPTIMAL):
    mask = np.isin(np.arange(table.n_cells), cells)
    objective = float("nan") if status is Status.INFEASIBLE else 1.0
    return Suppression(table=table, status=status, objective=objective, suppressed=mask)


def test_additive(table):
    assert_additive(table)
    assert_additive(adjusted(table, [24, 46, 70, 30, 40]))


def test_not_additive_names_the_relation_and_no_value(table):
    with pytest.raises(AssertionError, match=r"cell 2 = cell 0 \+ cell 1") as error:
        assert_additive(adjusted(table, [24, 50, 70, 30, 40]))
    assert "24" not in str(error.value)


def test_relations_with_a_suppressed_cell_are_left_out(table):
    assert_additive(suppressed(table, [0, 1]))


def test_safe_asks_the_audit(table, monkeypatch):
    verdict = type("Verdict", (), {"safe": True, "summary": lambda _self: {"unsafe": 1}})
    monkeypatch.setattr(Suppression, "audit", lambda _self: verdict())
    assert_safe(suppressed(table, [0, 1]))
    monkeypatch.setattr(verdict, "safe", False)
    with pytest.raises(AssertionError, match="refuses"):
        assert_safe(suppressed(table, [0]))


def test_no_release_is_not_safe(table):
    with pytest.raises(AssertionError, match="infeasible"):
        assert_safe(suppressed(table, [], Status.INFEASIBLE))


def test_tables_equal(table):
    assert_tables_equal(table, table.with_(name="another"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"weights": np.arange(5.0)}, "weights differs; first in cell 0"),
        ({"ub": np.array([np.inf, np.inf, np.inf, 99, np.inf])}, "ub differs; first in cell 3"),
        ({"counts": np.ones(5)}, "counts differs"),
        (
            {"dimensions": ("d",), "codes": (tuple("abcde"),), "coordinates": np.arange(5, dtype=np.int32)[:, None]},
            "dimensions or their codes differ",
        ),
    ],
)
def test_tables_differ(table, change, text):
    for pair in ((table, table.with_(**change)), (table.with_(**change), table)):
        with pytest.raises(AssertionError, match=text):
            assert_tables_equal(*pair)


def test_relations_differ(table):
    other = Table.from_equations([20, 50, 70, 30, 40], [[2, 0, 1], [2, 0, 1]])
    with pytest.raises(AssertionError, match="relations differ"):
        assert_tables_equal(table, other)
    with pytest.raises(AssertionError, match="relations and cells differ"):
        assert_tables_equal(table, Table.from_equations([1, 2, 3], [[2, 0, 1]]))


def test_releases(table):
    assert_releases_equal(suppressed(table, [0, 1]), suppressed(table, [0, 1]))
    with pytest.raises(AssertionError, match="first in cell 3"):
        assert_releases_equal(suppressed(table, [0, 1]), suppressed(table, [0, 1, 3]))
    with pytest.raises(AssertionError, match="kinds differ"):
        assert_releases_equal(suppressed(table, [0]), adjusted(table, np.zeros(5)))
