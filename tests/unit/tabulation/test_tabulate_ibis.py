"""The same table, whichever database adds up the records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cellguard as cg
from builders import columns_of_records, renumbered
from cellguard.exceptions import InputError
from cellguard.tabulation.engines.through_ibis import IbisRecords
from cellguard.tabulation.request import Roles, Scale

ibis = pytest.importorskip("ibis")

# ibis calls what duckdb 1.5 deprecates
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
REGIONS = cg.Hierarchy.from_nested({"N": ["N1", "N2"], "S": ["S1", "S2", "S3"]})
DIMS = {"region": REGIONS, "nace": None}
CASES = {
    "plain": {"value": "x"},
    "frequencies": {},
    "weighted frequencies": {"weight": "w"},
    "weights": {"value": "x", "weight": "w"},
    "holdings": {"value": "x", "holding": "h"},
    "weights and holdings": {"value": "x", "weight": "w", "holding": "h"},
    "shadow, cost": {"value": "x", "shadow": "s", "cost": "w"},
    "waivers and requests": {"value": "x", "waiver": "q", "request": "r", "holding": "h"},
    "negative": {"value": "d"},
    "linked": {"value": "x", "tables": [["region"], ["nace"]]},
    "skipped": {"value": "g", "skip_missing": True},
}


def records() -> pd.DataFrame:
    return pd.DataFrame(columns_of_records(400, decimals=3))


def assert_same(one: cg.Table, other: cg.Table) -> None:
    assert one.codes == other.codes
    for name in ("values", "counts", "weights", "fixed"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("total", "weight", "top", "top_weights", "protected", "request"):
        a, b = getattr(one.statistics, name), getattr(other.statistics, name)
        assert (a is None and b is None) or np.array_equal(a, b, equal_nan=name == "protected"), name
    assert np.array_equal(renumbered(one), renumbered(other))


@pytest.mark.parametrize("case", CASES)
def test_ibis_on_duckdb(case):
    frame = records()
    connection = ibis.duckdb.connect()
    table = connection.create_table("records", frame)
    options = CASES[case]
    assert_same(cg.tabulate(table, DIMS, **options), cg.tabulate(frame, DIMS, **options))
    assert connection.list_tables() == ["records"]


@pytest.mark.parametrize("dialect", ["bigquery", "trino", "snowflake", "postgres", "mssql"])
def test_every_database_is_asked_in_its_own_words(dialect):
    kinds = {
        "region": "string",
        "x": "float64",
        "s": "int64",
        "w": "float64",
        "h": "string",
        "q": "boolean",
        "r": "int64",
    }
    roles = Roles(
        dimensions=("region",), value="x", shadow="s", weight="w", holding="h", waiver="q", request="r", cost="w"
    )
    scales = dict.fromkeys(("value", "contributions", "total", "weight", "cost"), Scale.of(1e6, 1000))
    records = IbisRecords(ibis.table(kinds, name="records"))
    questions = list(records.build_queries(roles, scales, 3))
    records.number(list(kinds))  # of several tables: who it is, in every question
    questions += records.build_queries(replace(roles, standalone=True), scales, 3)
    plain = Roles(dimensions=("region",), value="x")
    questions += [question for question in records.build_queries(plain, scales, 3) if question is not None]
    assert len(questions) == 8
    for question in questions:
        assert "records" in ibis.to_sql(question, dialect=dialect)


def test_text_where_a_number_is_needed():
    table = ibis.memtable({"r": ["A"], "x": ["1"]})
    with pytest.raises(InputError, match=r"column 'x' \(value\) is of type string"):
        cg.tabulate(table, ["r"], "x")


def test_facts_are_checked_as_elsewhere():
    table = ibis.memtable(pd.DataFrame({"r": ["A", "B"], "x": [1.0, 2.0], "w": [1.0, -1.0], "h": ["a", " "]}))
    with pytest.raises(InputError, match="1 records are negative"):
        cg.tabulate(table, ["r"], "x", weight="w")
    with pytest.raises(InputError, match="belong to no holding"):
        cg.tabulate(table, ["r"], "x", holding="h")


def test_records_without_a_holding_may_stand_alone():
    frame = pd.DataFrame({"r": list("NNNSS"), "x": [4.0, 3.0, 2.0, 5.0, 1.0], "h": ["a", None, " ", "a", None]})
    here, there = (
        cg.tabulate(data, ["r"], "x", holding="h", standalone=True) for data in (frame, ibis.memtable(frame))
    )
    assert here.counts.tolist() == there.counts.tolist() == [4, 3, 2]
    assert here.statistics.top.tolist() == there.statistics.top.tolist()


def test_errors_of_a_database_show_no_record():
    connection = ibis.duckdb.connect()
    table = connection.sql("SELECT 'A' AS r, CAST(t AS DOUBLE) AS x FROM (VALUES ('secret')) v(t)")
    with pytest.raises(InputError, match="database could not add up") as error:
        cg.tabulate(table, ["r"], "x")
    assert "secret" not in str(error.value)


def test_records_are_counted_where_some_stand_alone():
    """Without a value there was nothing to number them by: an error of Ibis's own."""
    frame = {"r": ["N", "N", "N", "S", "S"], "h": ["a", None, None, "a", None]}
    for data in (frame, ibis.memtable(frame)):
        table = cg.tabulate(data, ["r"], None, holding="h", standalone=True)
        assert table.counts.tolist() == [4, 3, 2]
        assert table.values.tolist() == [5, 3, 2]
