"""Tabulation: every kind of input, what is published, and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cellguard as cg
from cellguard.exceptions import FormatError, InputError, UnknownCodeError

FIRMS = {
    "region": ["N1", "N1", "N2", "S1", "S1", "S1"],
    "size": ["2", "1", "2", "1", "10", "10"],
    "turnover": [90.5, 8.25, 40.0, 30.0, 12.25, 0.0],
    "weight": [1.0, 2.0, 1.5, 1.0, 1.0, 3.0],
    "group": ["a", "b", "a", "c", "d", "c"],
}
REGIONS = cg.Hierarchy.from_nested({"N": ["N1", "N2"], "S": ["S1", "S2"]})


def grid(table: cg.Table) -> dict[tuple[str, ...], float]:
    """Values by codes."""
    codes = table.cell_codes()
    return dict(zip(zip(*codes.values(), strict=True), table.values.tolist(), strict=True))


def same(one: cg.Table, other: cg.Table) -> bool:
    arrays = ("values", "counts", "coordinates", "fixed")
    tops = np.array_equal(one.statistics.top, other.statistics.top)
    return one.codes == other.codes and tops and all(np.array_equal(getattr(one, a), getattr(other, a)) for a in arrays)


@pytest.fixture
def expected() -> cg.Table:
    return cg.tabulate(FIRMS, {"region": REGIONS, "size": None}, "turnover")


def test_values_counts_and_largest_contributions(expected):
    values = grid(expected)
    assert values["Total", "Total"] == 181.0
    assert values["N", "2"] == 130.5
    assert values["S2", "1"] == 0
    assert expected.codes[1] == ("Total", "1", "2", "10")  # numbers in the order of numbers
    at = list(values).index(("N", "Total"))
    assert expected.counts[at] == 3
    assert expected.statistics.top[at, :3].tolist() == [90.5, 40.0, 8.25]
    assert not expected.integer


def test_cells_without_records_are_empty_and_fixed(expected):
    at = list(grid(expected)).index(("S2", "Total"))
    assert expected.fixed[at]
    assert expected.counts[at] == 0
    zero = list(grid(expected)).index(("S1", "10"))
    assert not expected.fixed[zero]


# ---------------------------------------------------------------- inputs


def test_every_kind_of_frame(expected):
    for frame in (pd.DataFrame(FIRMS), pl.DataFrame(FIRMS), pa.table(FIRMS), FIRMS):
        assert same(cg.tabulate(frame, {"region": REGIONS, "size": None}, "turnover"), expected)


def test_whole_numbers_and_categories_are_codes_too(expected):
    frame = pd.DataFrame(FIRMS).assign(size=[2, 1, 2, 1, 10, 10], region=pd.Categorical(FIRMS["region"]))
    assert same(cg.tabulate(frame, {"region": REGIONS, "size": None}, "turnover"), expected)
    frame["size"] = frame["size"].astype(float)
    assert same(cg.tabulate(frame, {"region": REGIONS, "size": None}, "turnover"), expected)


def test_files(expected, tmp_path):
    frame = pd.DataFrame(FIRMS)
    dims = {"region": REGIONS, "size": None}
    frame.to_parquet(tmp_path / "firms.parquet")
    assert same(cg.tabulate(tmp_path / "firms.parquet", dims, "turnover"), expected)
    frame.iloc[:3].to_parquet(tmp_path / "part1.parquet")
    frame.iloc[3:].to_parquet(tmp_path / "part2.parquet")
    assert same(cg.tabulate(tmp_path / "part*.parquet", dims, "turnover"), expected)
    frame.to_csv(tmp_path / "firms.csv", index=False)
    assert same(cg.tabulate(str(tmp_path / "firms.csv"), dims, "turnover"), expected)
    (tmp_path / "firms.csv.gz").write_bytes(gzip.compress((tmp_path / "firms.csv").read_bytes()))
    assert same(cg.tabulate(tmp_path / "firms.csv.gz", dims, "turnover"), expected)


def test_semicolons_comma_decimals_and_leading_zeros(tmp_path):
    path = tmp_path / "firms.csv"
    path.write_text("nace;x\n01;1,5\n02;2,25\n01; 3\n")
    table = cg.tabulate(path, ["nace"], "x", decimal=",")
    assert grid(table) == {("Total",): 6.75, ("01",): 4.5, ("02",): 2.25}
    with pytest.raises(
        InputError, match=r"column 'x' \(value\): 2 records \(the first in line 2\) hold something.*\n.*decimal = ','"
    ) as error:
        cg.tabulate(path, ["nace"], "x")
    assert "1,5" not in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "orte.csv"
    path.write_bytes("ort,x\nKöln,3\nÅbo,4\n".encode(encoding))
    assert grid(cg.tabulate(path, ["ort"], "x")) == {("Total",): 7, ("Köln",): 3, ("Åbo",): 4}


def test_duckdb_relations_leave_the_users_database_alone(expected):
    import duckdb

    connection = duckdb.connect()
    connection.register("firms", pa.table(FIRMS))
    dims = {"region": REGIONS, "size": None}
    for relation in (connection.table("firms"), connection.sql("SELECT * FROM firms WHERE turnover >= 0")):
        assert same(cg.tabulate(relation, dims, "turnover"), expected)
    holdings = cg.tabulate(connection.table("firms"), dims, "turnover", holding="group")
    assert same(holdings, cg.tabulate(FIRMS, dims, "turnover", holding="group"))
    assert connection.sql("SELECT table_name FROM duckdb_tables()").fetchall() == []
    assert connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == [("firms",)]


# ---------------------------------------------------------------- what is published


def test_frequencies():
    table = cg.tabulate(FIRMS, ["region"])
    assert table.integer
    assert grid(table) == {("Total",): 6, ("N1",): 2, ("N2",): 1, ("S1",): 3}
    assert table.apply(cg.MinFrequency(3)).sensitive_cells.tolist() == [1, 2]
    weighted = cg.tabulate(FIRMS, ["region"], weight="weight")
    assert not weighted.integer
    assert grid(weighted)["S1",] == 5


def test_crossings_and_linked_tables():
    dims = ["region", "size", "group"]
    linked = cg.tabulate(FIRMS, dims, "turnover", tables=[("region", "size"), ("region", "group")])
    alone = [cg.tabulate(FIRMS, names, "turnover") for names in (["region", "size"], ["region", "group"])]
    joined = cg.Table.from_linked(alone)
    assert linked.n_cells == joined.n_cells
    assert linked.n_relations == joined.n_relations
    assert grid(linked) == {
        (r, s, g): v for (r, s, g), v in grid(joined).items()
    }  # from_linked lists the dimensions in the same order
    shared = [i for i, (r, s, g) in enumerate(grid(linked)) if s == g == "Total"]
    assert len(shared) == 4


def test_a_table_may_publish_some_margins_only():
    table = cg.tabulate(FIRMS, ["region", "size"], "turnover", crossings=[("region",), ()])
    assert set(grid(table)) == {("Total", "Total"), ("N1", "Total"), ("N2", "Total"), ("S1", "Total")}
    deep = cg.tabulate(FIRMS, {"region": REGIONS, "size": None}, "turnover", crossings=[{"region": 1}, ()])
    assert set(grid(deep)) == {("Total", "Total"), ("N", "Total"), ("S", "Total")}


def test_empty_cells_may_be_left_out():
    dims = {"region": REGIONS, "size": None, "group": None}
    for linked in (None, [("region", "size"), ("region", "group")]):
        full = cg.tabulate(FIRMS, dims, "turnover", tables=linked)
        sparse = cg.tabulate(FIRMS, dims, "turnover", tables=linked, empty="drop")
        assert grid(sparse) == {codes: v for (codes, v), e in zip(grid(full).items(), full.fixed, strict=True) if not e}
        # the same relations, without the zeros
        kept = ~full.fixed
        T = full.relations[:, np.flatnonzero(kept)]
        T = T[np.diff(T.indptr) > 0]
        assert {tuple(row) for row in T.toarray()} == {tuple(row) for row in sparse.relations.toarray()}
    with pytest.raises(InputError, match="empty="):
        cg.tabulate(FIRMS, dims, "turnover", crossings=[()], empty="drop")


def test_hierarchies_that_are_not_nested():
    coast = cg.Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2"]})
    values = grid(cg.tabulate(FIRMS, {"region": (REGIONS, coast)}, "turnover"))
    assert values["Coast",] == 141.0
    assert values["N",] == 138.75


def test_hierarchies_that_do_not_stand_over_the_same_leaves():
    other = cg.Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2"]})
    with pytest.raises(InputError, match="same leaves"):
        cg.tabulate(FIRMS, {"region": (REGIONS, other)}, "turnover")
    with pytest.raises(InputError, match="N1"):
        cg.tabulate(FIRMS, {"region": {"N": ["N1", "N2"], "S": ["N1", "S1"]}}, "turnover")


def test_a_hierarchy_file(tmp_path):
    path = tmp_path / "regions.hrc"
    path.write_text("N\n@N1\n@N2\nS\n@S1\n@S2\n")
    assert same(
        cg.tabulate(FIRMS, {"region": path}, "turnover", total="All"),
        cg.tabulate(FIRMS, {"region": cg.Hierarchy.from_hrc(path, total="All")}, "turnover"),
    )


def test_holdings_count_once_and_add_up():
    table = cg.tabulate(FIRMS, {"region": REGIONS}, "turnover", holding="group")
    at = {code: i for i, code in enumerate(table.codes[0])}
    assert table.counts[at["N"]] == 2
    assert table.statistics.top[at["N"], :2].tolist() == [130.5, 8.25]
    assert table.counts[at["Total"]] == 4
    north, n1 = table.statistics.contributors[at["N"]], table.statistics.contributors[at["N1"]]
    assert north[0] == n1[0]  # holding a is the same in both


def test_weights_and_holdings_together():
    table = cg.tabulate(FIRMS, {"region": REGIONS}, "turnover", holding="group", weight="weight")
    at = table.codes[0].index("N")
    weight = (90.5 + 1.5 * 40) / 130.5  # makes the holding's contribution the sum of its weighted records
    assert table.statistics.top_weights[at, 0] == pytest.approx(weight)
    assert table.values[at] == pytest.approx(90.5 + 16.5 + 60)


def test_negative_contributions_count_by_their_size():
    frame = {"r": ["A", "A", "A"], "x": [-60.0, 50.0, 5.0]}
    table = cg.tabulate(frame, ["r"], "x")
    assert table.values.tolist() == [-5.0, -5.0]
    assert table.statistics.total[1] == 115
    assert table.statistics.top[1].tolist() == [60, 50, 5]
    assert np.isneginf(table.lb).all()
    assert table.apply(cg.PPercent(10)).upper[1] == pytest.approx(6 + 110 - 115)


def test_waivers_requests_and_costs():
    frame = {
        "r": ["A", "A", "B", "B"],
        "x": [90.0, 1.0, 60.0, 50.0],
        "q": ["yes", "no", "no", "no"],
        "ask": [1, 0, 2, 0],
        "c": [1, 2, 3, 4],
    }
    table = cg.tabulate(frame, ["r"], "x", waiver="q", request="ask", cost="c")
    assert table.statistics.protected.tolist() == [60, 1, 60]
    assert table.statistics.request.tolist() == [1, 1, 2]
    assert table.weights.tolist() == [10, 3, 7]
    assert not table.apply(cg.Dominance(1, 80)).sensitive.any()
    assert table.apply(cg.Request(60, 60)).sensitive_cells.tolist() == [1]


def test_missing_codes_have_a_place_below_the_total():
    frame = {"r": ["N1", None, "99"], "x": [1.0, 2.0, 4.0]}
    table = cg.tabulate(frame, {"r": REGIONS}, "x", missing={"r": "99"})
    values = grid(table)
    assert values["99",] == 6
    assert values["Total",] == 7
    assert table.counts[table.codes[0].index("99")] == 2


def test_records_without_a_value_may_be_skipped():
    frame = pd.DataFrame({"r": ["A", "A", "B"], "x": [1.0, None, 3.0]})
    with pytest.raises(InputError, match=r"column 'x' \(value\): 1 record has no number"):
        cg.tabulate(frame, ["r"], "x")
    table = cg.tabulate(frame, ["r"], "x", skip_missing=True)
    assert table.counts.tolist() == [2, 1, 1]


def test_decimal_amounts_come_out_exactly():
    frame = {"r": ["A"] * 1000, "x": [0.1] * 1000}
    assert cg.tabulate(frame, ["r"], "x").values[0] == 100.0
    large = {"r": ["A"] * 3, "x": [1e15 + 0.5, 0.25, -1e15]}
    assert cg.tabulate(large, ["r"], "x").values[0] == 0.75


def test_the_same_bytes_whatever_the_number_of_threads():
    rng = np.random.default_rng(1)
    n = 200_000
    frame = pa.table({"r": rng.integers(0, 30, n).astype(str), "x": rng.lognormal(3, 3, n)})
    tables = [cg.tabulate(frame, ["r"], "x", threads=t) for t in (1, 2, 4)]
    assert all(same(tables[0], t) for t in tables[1:])


# ---------------------------------------------------------------- what is refused


def test_records_without_a_holding_may_stand_alone():
    frame = {"r": ["N", "N", "N", "S", "S"], "x": [4.0, 3.0, 2.0, 5.0, 1.0], "h": ["a", None, " ", "a", None]}
    table = cg.tabulate(frame, ["r"], "x", holding="h", standalone=True)
    assert table.counts.tolist() == [4, 3, 2]  # the holding a counts once in the total
    assert table.statistics.top[0].tolist()[:2] == [9.0, 3.0]


def test_hierarchies_by_digits_and_totals_by_dimension():
    frame = {"nace": ["11", "12", "21", "21"], "r": ["N", "S", "N", "S"], "x": [1.0, 2.0, 3.0, 4.0]}
    table = cg.tabulate(frame, {"nace": (1, 1), "r": None}, "x", total={"r": "all"})
    assert table.codes == (("Total", "1", "11", "12", "2", "21"), ("all", "N", "S"))
    with pytest.raises(InputError, match="digits"):
        cg.tabulate(frame, {"nace": (1, 2)}, "x")


def test_codes_are_sorted_by_the_number_they_begin_with():
    frame = {"size": ["250+", "50-249", "1-9", "10-49"], "x": [1.0, 2.0, 3.0, 4.0]}
    assert cg.tabulate(frame, ["size"], "x").codes[0] == ("Total", "1-9", "10-49", "50-249", "250+")


def test_unknown_codes_are_counted_and_the_first_are_shown():
    frame = {"r": ["N1"] + ["X"] * 3 + ["Y1", "Y2", "Y3", "Y4", "Y5"], "x": [1.0] * 9}
    with pytest.raises(
        UnknownCodeError, match=r"dimension 'r': 8 records have 6 codes .*'X', 'Y1', 'Y2', 'Y3', 'Y4', \.\.\."
    ):
        cg.tabulate(frame, {"r": REGIONS}, "x")
    with pytest.raises(UnknownCodeError, match=r"totals of other codes: 'N'"):
        cg.tabulate({"r": ["N", "S1"], "x": [1.0, 2.0]}, {"r": REGIONS}, "x")


def test_records_without_a_code():
    with pytest.raises(InputError, match=r"dimension 'r': 2 records have no code\.\n.*missing gives"):
        cg.tabulate({"r": ["N1", None, None], "x": [1.0, 2.0, 3.0]}, {"r": REGIONS}, "x")


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ({"w": [1, -1]}, {"weight": "w"}, r"'w' \(weight\): 1 records are negative"),
        ({"w": [1, None]}, {"weight": "w"}, r"'w' \(weight\): 1 record has no number"),
        ({"h": ["a", None]}, {"holding": "h"}, r"'h' \(holding\): 1 records belong to no holding"),
        ({"h": ["a", " "]}, {"holding": "h"}, r"'h' \(holding\): 1 records belong to no holding"),
        ({"c": [1, -2]}, {"cost": "c"}, r"'c' \(cost\): 1 records are negative"),
        ({"s": ["a", "b"]}, {"shadow": "s"}, r"'s' \(shadow\): 2 records hold something that is not a finite number"),
        ({"s": [1.0, float("inf")]}, {"shadow": "s"}, r"1 record holds something that is not a finite number"),
        ({"s": [1e308, 1e308]}, {"shadow": "s"}, r"'s' \(shadow\): the numbers are too large"),
        ({"s": [1.0, float("nan")]}, {"shadow": "s"}, r"'s' \(shadow\): 1 record"),
    ],
)
def test_records_that_cannot_be_added_up(column, options, message):
    frame = {"r": ["A", "B"], "x": [1.0, 2.0], **column}
    with pytest.raises(InputError, match=message):
        cg.tabulate(frame, ["r"], "x", **options)


def test_requests_that_make_no_sense(tmp_path):
    frame = {"region": ["A"], "x": [1.0]}
    with pytest.raises(UnknownCodeError, match=r"no column 'regio'.*\n.*did you mean 'region'"):
        cg.tabulate(frame, ["regio"], "x")
    with pytest.raises(InputError, match="dimension and the value at once"):
        cg.tabulate(frame, ["region", "x"], "x")
    with pytest.raises(InputError, match="no dimension"):
        cg.tabulate(frame, [], "x")
    with pytest.raises(InputError, match="exclude each other"):
        cg.tabulate(frame, ["region"], "x", tables=[["region"]], crossings=[()])
    with pytest.raises(UnknownCodeError, match="no dimension 'size'"):
        cg.tabulate(frame, ["region"], "x", tables=[["size"]])
    with pytest.raises(UnknownCodeError, match="no dimension 'size'"):
        cg.tabulate(frame, ["region"], "x", crossings=[("size",)])
    with pytest.raises(InputError, match="top="):
        cg.tabulate(frame, ["region"], "x", top=-1)
    with pytest.raises(InputError, match="memory_limit"):
        cg.tabulate(frame, ["region"], "x", memory_limit="much")
    with pytest.raises(InputError, match="not a frame"):
        cg.tabulate(42, ["region"], "x")
    with pytest.raises(InputError, match="no records"):
        cg.tabulate({"region": pa.array([], pa.string()), "x": pa.array([], pa.float64())}, ["region"], "x")
    with pytest.raises(InputError, match="no such file"):
        cg.tabulate(tmp_path / "none.parquet", ["region"], "x")


def test_broken_files_show_no_record(tmp_path):
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 secret PAR1")
    with pytest.raises(FormatError, match="cannot be read as parquet") as error:
        cg.tabulate(path, ["r"], "x")
    assert "secret" not in str(error.value)
    path = tmp_path / "broken.csv"
    path.write_text("r,x\nA,1\nB,2,secret\nC,3\n" * 3)
    with pytest.raises(InputError) as error:
        cg.tabulate(path, ["r"], "x")
    assert "secret" not in str(error.value)
    path.write_text("")
    with pytest.raises(FormatError, match="empty"):
        cg.tabulate(path, ["r"], "x")
    path.write_text("r,r\nA,1\n")
    with pytest.raises(FormatError, match=":1: two columns have the same name"):
        cg.tabulate(path, ["r"], "x")


def test_names_are_names_whatever_they_hold():
    odd = """it's "odd"; DROP TABLE records; --"""
    table = cg.tabulate({odd: ["A", "B", "B"], f"{odd}x": [1.0, 2.0, 3.0]}, [odd], f"{odd}x", holding=odd)
    assert grid(table) == {("Total",): 6, ("A",): 1, ("B",): 5}


def test_rules_ask_for_more_contributions_than_were_kept():
    table = cg.tabulate(FIRMS, ["region"], "turnover", top=2)
    table.apply(cg.PPercent(10))
    with pytest.raises(InputError, match=r"looks at the 3 largest.*\n.*top=3"):
        table.apply(cg.Dominance(3, 75))


def test_tables_have_the_decimals_that_were_asked_for():
    records = {"r": ["N", "N", "S"], "s": ["a", "b", "a"], "x": [1 / 3, 2 / 3, 10 / 7], "w": [1.1, 2.3, 3.7]}
    for options in ({}, {"weight": "w"}):
        t = cg.tabulate(records, ["r", "s"], "x", decimals=2, **options)
        assert np.array_equal(t.values, np.round(t.values, 2))
        assert abs(t.relations @ t.values).max() < 1e-9
    weighted = cg.tabulate(records, ["r"], "x", weight="w", decimals=1)
    assert weighted.values[weighted.cell({"r": "S"})] == 5.3  # 3.7 x 10/7: what it stands for is rounded, not x
    with pytest.raises(InputError, match="from 0 to 9"):
        cg.tabulate(records, ["r"], "x", decimals=-1)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("N,secret", r"1 record \(line 4\) holds something"),
        ("N,", r"1 record \(line 4\) has no number"),
        ("N,12,5", "firms.csv:4: 3 columns; the first line names 2"),
    ],
)
def test_what_is_wrong_in_a_text_file_is_told_by_its_line(tmp_path, line, says):
    (tmp_path / "firms.csv").write_text("\n".join(["region,x", 'N,"1"', "S,2", line, *["S,7"] * 3000, ""]))
    with pytest.raises(InputError, match=says) as error:
        cg.tabulate(tmp_path / "firms.csv", ["region"], "x")
    assert "secret" not in str(error.value)
