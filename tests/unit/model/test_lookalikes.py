"""Names that may cut links are told: dimensions, populations and indicators that look alike."""

import logging

import pytest

import cellguard as cg
from cellguard.exceptions import InputError
from cellguard.model.linked.lookalikes import find_lookalikes
from cellguard.model.linked.publication import Part, Publication

ACT = ["a", "b", "c"]
FIRST = cg.Table.from_leaves({"act": ACT, "size": ["s", "l"]}, [[10, 20], [30, 40], [11, 14]])


def other(name: str = "act", factor: float = 1.0) -> cg.Table:
    return cg.Table.from_leaves({name: ACT, "form": ["x", "y"]}, [[15 * factor, 15], [30, 40 * factor], [12, 13]])


def told(tables, **options) -> list[tuple[str, tuple[str, str]]]:
    made = Publication.of(tables, **options)
    return [(one.what, one.names) for one in find_lookalikes(made.table, [e.names for e in made.equations])]


def test_dimensions_with_the_same_codes_are_told():
    assert told({"A": FIRST, "B": other("activity")}) == [("dimensions", ("act", "activity"))]
    assert told({"A": FIRST, "B": other()}) == []


def test_dimensions_whose_margins_differ_are_two():
    assert told({"A": FIRST, "B": Part(name="B", table=other("branch", 3.0), indicator="other")})  # nothing to compare
    moved = cg.Table.from_leaves({"branch": ACT, "form": ["x", "y"]}, [[60, 15], [20, 5], [12, 13]])
    assert told({"A": FIRST, "B": moved}) == []


def test_dimensions_of_one_table_are_two():
    trips = cg.Table.from_leaves({"origin": ACT, "target": ACT}, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert told({"trips": trips}) == []


def test_indicators_with_the_same_values_are_told_unless_an_equation_links_them():
    parts = [Part(name="A", table=FIRST, indicator="v"), Part(name="B", table=other(), indicator="turnover")]
    assert told(parts) == [("indicators", ("v", "turnover"))]
    nothing = Part(name="C", table=FIRST.with_(values=0 * FIRST.values), indicator="exports")
    assert told([*parts, nothing], equations=["turnover = v + exports"]) == []
    parts[1] = Part(name="B", table=other(factor=2.0), indicator="turnover")
    assert told(parts) == []


def test_populations_by_a_name_or_a_code_that_is_nearly_one_of_the_others():
    regions = cg.Table.from_leaves(
        {"region": ["East", "West", "North"], "act": ACT}, [[10, 30, 11], [2, 3, 4], [5, 6, 7]]
    )
    east = cg.Table.from_leaves({"act": ACT, "size": ["s", "l"]}, [[4, 6], [10, 20], [5, 6]])
    for where, names in (
        ({"regoin": "East"}, ("regoin", "region")),
        ({"region": "Esat"}, ("Esat", "East")),
        ({"area": "East"}, ("area", "region")),
    ):
        assert told([Part(name="all", table=regions), Part(name="E", table=east, where=where)]) == [
            ("populations", names)
        ]
    assert told([Part(name="all", table=regions), Part(name="E", table=east, where={"region": "East"})]) == []


def test_a_publication_in_python_is_warned_of_when_it_is_protected(caplog):
    flagged = FIRST.with_(sensitive=FIRST.values == 11).with_levels(0.1, 0.1)
    with caplog.at_level(logging.WARNING, logger="cellguard"):
        cg.suppress(Publication.of({"A": flagged, "B": other("activity")}))
    assert ["activity" in record.message for record in caplog.records] == [True]


# ---------------------------------------------------------------- what one name prints and the other withholds


def two_names(second: str = "activity", **options):
    """Return a publication of one table by two names, of which only the first has a sensitive cell."""
    leaves = [[10, 20], [30, 40], [11, 14]]
    one = cg.Table.from_leaves({"act": ACT, "size": ["s", "l"]}, leaves, sensitive=[4], lower=2, upper=2)
    return Publication.of({"A": one, "B": cg.Table.from_leaves({second: ACT, "size": ["s", "l"]}, leaves)}, **options)


@pytest.mark.parametrize("method", ["suppress", "intervals"])
def test_a_cell_that_one_name_prints_and_the_other_withholds_is_refused(method):
    with pytest.raises(InputError, match="published in one way by one name"):
        getattr(cg, method)(two_names())
    made = getattr(cg, method)(two_names(different=[("activity", "act")]))
    assert made.audit().safe
    assert getattr(cg, method)(two_names("act")).audit().safe


def test_an_indicator_by_two_names_is_refused():
    dims = {"act": ACT, "size": ["s", "l"]}
    table = cg.Table.from_leaves(dims, [[10, 20], [30, 40], [11, 14]], sensitive=[4], lower=2, upper=2)
    parts = [Part(name="A", table=table, indicator="v"), Part(name="B", table=FIRST, indicator="turnover")]
    with pytest.raises(InputError, match="indicators 'v' and 'turnover'"):
        cg.suppress(Publication.of(parts))
    assert cg.suppress(Publication.of(parts, different=[("v", "turnover")])).published


def test_lookalikes_that_are_published_alike_are_only_told(caplog):
    with caplog.at_level(logging.WARNING, "cellguard"):
        release = cg.suppress(Publication.of({"A": FIRST, "B": other("activity")}))
    assert release.published
    assert "have the same codes" in caplog.text
