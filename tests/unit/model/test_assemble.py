"""Tables made from frames of cells, leaf cells and linked tables."""

from __future__ import annotations

import numpy as np
import pytest

from builders import sums_of_leaves
from cellguard import Hierarchy, Table
from cellguard.exceptions import AdditivityError, InputError, UnknownCodeError
from cellguard.model.attacker import EXTERNAL, Attacker

REGION = Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2", "S3"]})
FRAME = {"region": ["N1", "N2", "S1", "S3"], "sex": ["f", "m", "f", "m"], "value": [1.0, 2, 4, 8]}


def frame_of(library, data):
    if library == "dict":
        return data
    module = pytest.importorskip(library)
    return module.table(data) if library == "pyarrow" else module.DataFrame(data)


def value(table, *codes):
    match = np.ones(table.n_cells, bool)
    for d, code in enumerate(codes):
        match &= table.coordinates[:, d] == table.codes[d].index(code)
    return table.values[np.flatnonzero(match)].item()


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow"])
def test_missing_inner_cells_are_zeros_and_missing_totals_are_computed(library):
    t = Table.from_frame(frame_of(library, FRAME), {"region": REGION, "sex": None})
    assert (t.n_cells, t.n_relations) == (24, 8 + 3 * 3)
    assert value(t, "North", "f") == 1
    assert value(t, "S2", "Total") == 0
    assert value(t, "Total", "Total") == 15
    assert t.label(0) == "(region=Total, sex=Total)"
    assert t.hierarchies[0] == REGION


def test_missing_cells_are_an_error_when_asked():
    with pytest.raises(InputError, match=r"\(region=N1, sex=m\) \(and 5 more\): there is no row"):
        Table.from_frame(FRAME, {"region": REGION, "sex": None}, missing="error")


def test_relations_are_all_of_the_grid():
    t = Table.from_frame(FRAME, {"region": REGION, "sex": None})
    totals, parts = (np.flatnonzero(t.relations.data == s) for s in (-1, 1))
    assert len(totals) == t.n_relations
    assert len(parts) == 8 * 2 + 3 * 7
    assert t.describe_relation(0) == (
        "(region=Total, sex=Total) = (region=North, sex=Total) + (region=South, sex=Total)"
    )


def test_whole_numbers_and_categories_are_codes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1, 2, 2], "kind": pandas.Categorical(["a", "a", "b"]), "value": [1, 2, 3]})
    t = Table.from_frame(frame, ["size", "kind"])
    assert t.codes == (("Total", "1", "2"), ("Total", "a", "b"))


def test_given_totals_must_hold_unless_repaired():
    frame = {"region": ["N", "S", "Total"], "value": [1.0, 2, 4]}
    with pytest.raises(AdditivityError, match=r"\(region=Total\) = \(region=N\) \+ \(region=S\)"):
        Table.from_frame(frame, ["region"])
    assert Table.from_frame(frame, ["region"], repair="leaves").values.tolist() == [3, 1, 2]


def test_columns_say_what_is_sensitive_and_known():
    frame = {
        "region": ["N", "S", "E", "Total"],
        "value": [5, 6, 7, 18],
        "status": ["u", "s", "Fixed", None],
        "lower": [2, None, None, None],
        "weight": [1, 2, 3, 4],
        "n": [2, 9, 9, None],
        "low": [1, 1, 1, 1],
    }
    t = Table.from_frame(
        frame, ["region"], status="status", lower="lower", weights="weight", counts="n", lb="low", ub=100.0, name="x"
    )
    assert t.codes == (("Total", "E", "N", "S"),)
    assert t.sensitive.tolist() == [False, False, True, False]
    assert t.fixed.tolist() == [False, True, False, False]
    assert t.lower.tolist() == [0, 0, 2, 0]
    assert t.weights.tolist() == [4, 3, 1, 2]
    assert t.counts.tolist() == [20, 9, 2, 9]
    assert t.lb.tolist() == [1, 1, 1, 1]
    assert t.ub.tolist() == [100] * 4
    assert t.name == "x"


def test_levels_without_a_status_make_cells_sensitive():
    t = Table.from_frame({"r": ["a", "b"], "value": [5, 6], "up": [0, 2]}, ["r"], upper="up")
    assert t.sensitive.tolist() == [False, False, True]


def test_unpublished_cells_and_their_relations_are_left_out():
    t = Table.from_frame({"r": ["Total", "a"], "value": [9, 4]}, {"r": ["a", "b"]}, missing="unpublished")
    assert (t.n_cells, t.n_relations) == (2, 0)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"region": ["N1", "N2", "S1", "Sout"]}, UnknownCodeError, "'region': unknown code 'Sout'.*mean 'South'"),
        ({"region": ["N1", "N2", "S1", "9"]}, UnknownCodeError, "'region': unknown code '9'.*known codes are Total, N"),
        ({"region": ["N1", "N2", "S1", None]}, InputError, "column 'region': row 3 has no code"),
        ({"region": ["N1", "N1", "S1", "S3"], "sex": ["f", "f", "f", "m"]}, InputError, r"N1, sex=f\) is listed twice"),
        ({"value": [1.0, None, 4, 8]}, InputError, r"N2, sex=m\): column 'value' has no finite number"),
        ({"value": [1.0, np.nan, np.inf, 8]}, InputError, r"\(and 1 more\): column 'value' has no finite number"),
        ({"value": ["1", "2", "x", "8"]}, InputError, "column 'value' holds something that is not a number"),
        ({"value": None}, UnknownCodeError, "no column 'value'"),
    ],
)
def test_bad_frames(change, error, says):
    frame = {k: v for k, v in {**FRAME, **change}.items() if v is not None}
    with pytest.raises(error, match=f"(?s){says}") as raised:
        Table.from_frame(frame, {"region": REGION, "sex": None})
    assert "8" not in str(raised.value)  # no value of a cell in the text


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"missing": "guess"}, InputError, "missing='guess'"),
        ({"repair": "all"}, InputError, "repair='all'"),
        ({"status": "sex"}, UnknownCodeError, "unknown status 'f'"),
        ({"crossings": [("region", "age")]}, UnknownCodeError, "no dimension 'age'"),
        ({"crossings": [("region",), ()]}, InputError, "belongs to no crossing"),
        ({"lower": "lwr"}, UnknownCodeError, "no column 'lwr'"),
    ],
)
def test_bad_options(options, error, says):
    with pytest.raises(error, match=says):
        Table.from_frame(FRAME, {"region": REGION, "sex": None}, **options)


def test_no_dimensions_and_too_many_cells():
    with pytest.raises(InputError, match="no dimensions"):
        Table.from_frame(FRAME, {})
    flat = Hierarchy.flat([str(i) for i in range(1000)])
    with pytest.raises(InputError, match="would have 1003003001 cells"):
        Table.from_frame({"a": ["1"], "b": ["1"], "c": ["1"], "value": [1]}, dict.fromkeys("abc", flat))


# ---------------------------------------------------------------- crossings


def rank(T):
    return np.linalg.matrix_rank(T.toarray()) if T.shape[0] else 0


def degrees_of_freedom(table):
    """What the relations leave free, and what the sums of leaves really leave free."""
    return table.n_cells - rank(table.relations), int(np.linalg.matrix_rank(sums_of_leaves(table)))


CROSSINGS = {
    "all": None,
    "census": [("a", "b", "c"), ("a", "b"), ("b", "c"), ("a",), ("b",), ()],
    "leap": [("a", "b", "c"), ()],
    "no total": [("a", "b"), ("b", "c")],
    "bridge": [("a",), ("b",), ("c",)],
    "mixed": [("a", "b"), ("c",), ("b", "c")],
    "depth": [{"a": 1, "b": 1}, {"a": 2}, {"b": 1}, ()],
    "depth and leap": [{"a": 2, "b": 1, "c": 1}, {"a": 1}, ()],
}


@pytest.mark.parametrize("crossings", CROSSINGS.values(), ids=CROSSINGS)
def test_relations_span_all_that_hold_between_published_cells(crossings):
    a = Hierarchy.from_nested({"x": ["x1", "x2"], "y": ["y1"], "z": None})
    dims = {"a": a, "b": ["f", "m"], "c": ["u", "v", "w"]}
    leaves = np.arange(4 * 2 * 3).reshape(4, 2, 3) ** 2
    t = Table.from_leaves(dims, leaves, crossings=crossings)
    free, truly = degrees_of_freedom(t)
    assert free == truly


def test_census_margins_have_eighty_relations_per_area():
    dims = {"age": [str(i) for i in range(20)], "sex": ["f", "m"], "living": list("abcdefg")}
    crossings = [("age", "sex", "living"), ("age", "sex"), ("sex", "living"), "age", "sex", ()]
    t = Table.from_leaves(dims, np.ones((20, 2, 7)), crossings=crossings)
    assert (t.n_cells, t.n_relations) == (357, 80)


def test_two_trees_give_their_relations_in_every_margin():
    coast = Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2", "S3"]})
    t = Table.from_leaves({"region": Hierarchy.join(REGION, coast), "sex": ["f", "m"]}, np.arange(10).reshape(5, 2))
    assert t.n_relations == 10 + 6 * 3
    free, truly = degrees_of_freedom(t)
    assert free == truly == 10


def test_from_leaves_checks_the_shape():
    with pytest.raises(InputError, match="shape"):
        Table.from_leaves({"region": REGION}, [1, 2])


# ---------------------------------------------------------------- linked tables


@pytest.fixture
def linked():
    by_sex = Table.from_leaves(
        {"region": REGION, "sex": ["f", "m"]}, np.arange(10).reshape(5, 2), sensitive=[4], upper=1
    )
    by_age = Table.from_leaves(
        {"region": REGION, "age": ["young", "old"]}, np.arange(10).reshape(5, 2)[:, ::-1], ub=1e3
    )
    return by_sex, by_age


def test_linked_tables_share_cells_and_relations(linked):
    t = Table.from_linked(linked, name="both")
    assert t.n_cells == 24 + 24 - 8
    assert t.n_relations == 2 * 17 - 3
    assert t.dimensions == ("region", "sex", "age")
    assert t.sensitive_cells.tolist() == [4]
    assert np.isinf(t.ub[4])
    assert t.ub[0] == 1000
    assert t.name == "both"
    free, truly = degrees_of_freedom(t)
    assert free == truly


def test_linked_tables_of_different_depth():
    fine = Table.from_leaves({"region": REGION}, [1, 2, 4, 8, 16])
    coarse = Table.from_leaves({"region": REGION.collapse(1), "sex": ["f", "m"]}, [[1, 2], [10, 18]])
    t = Table.from_linked([coarse, fine])
    assert (t.n_cells, t.n_relations) == (9 + 5, 6 + 2)


def test_linked_tables_without_hierarchies_keep_their_relations(linked):
    plain = [t.with_(hierarchies=()) for t in linked]
    a, b = Table.from_linked(plain), Table.from_linked(linked)
    assert a.hierarchies == ()
    assert a.n_relations == b.n_relations


def test_linked_tables_must_agree(linked):
    by_sex, by_age = linked
    other = by_age.with_(values=by_age.values * 2)
    with pytest.raises(InputError, match=r"\(region=Total, sex=Total, age=Total\) has different values"):
        Table.from_linked([by_sex, other])
    renamed = Table.from_leaves({"region": Hierarchy.flat(["N1"], total="All")}, [1])
    with pytest.raises(InputError, match="two totals, 'Total' and 'All'"):
        Table.from_linked([by_sex, renamed])
    with pytest.raises(InputError, match="no dimensions"):
        Table.from_linked([Table.from_equations([1, 1], [[0, 1]])])
    with pytest.raises(InputError, match="no tables"):
        Table.from_linked([])


def test_linked_attackers_follow_their_cells(linked):
    by_sex, by_age = linked
    firm = Attacker(name="firm", cells=[23], lb=[0], ub=[50])
    t = Table.from_linked([by_sex, by_age.with_(attackers=(EXTERNAL, firm))])
    assert [a.name for a in t.attackers] == ["external", "firm"]
    assert t.label(int(t.attackers[1].cells[0])) == "(region=S3, sex=Total, age=old)"
    with pytest.raises(InputError, match="'firm' occurs in two tables"):
        Table.from_linked([x.with_(attackers=(EXTERNAL, firm)) for x in linked])


def test_hierarchies_must_fit_the_codes(linked):
    with pytest.raises(InputError, match="not those of their hierarchies"):
        linked[0].with_(codes=(("Total",), ("Total", "f", "m")))


def test_noise_of_the_program_that_wrote_a_table_is_not_published():
    cells = {"size": ["Total", "a", "b"], "value": [182780310.07610002, 182743954.0866, 36355.989499999996]}
    table = Table.from_frame(cells, ["size"])
    assert table.values.tolist() == [182780310.0761, 182743954.0866, 36355.9895]
    measured = {"size": ["a", "b"], "value": [1 / 3, 2.0]}
    assert Table.from_frame(measured, ["size"]).values[1] == 1 / 3
