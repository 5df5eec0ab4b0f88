"""Many tables and indicators from one set of records: read once, each in its own tree, or for a part of everybody."""

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import cellguard as cg
from cellguard.exceptions import PublicationError, UnknownCodeError
from cellguard.model.linked.publication import Publication
from cellguard.tabulation.engines.duck import DuckRecords
from cellguard.tabulation.engines.gathered import Gathered
from cellguard.tabulation.many import AskedTable, tabulate_parts

REGIONS = cg.Hierarchy.from_nested({"East": ["E1", "E2"], "West": ["W1", "W2"]})
COASTS = cg.Hierarchy.from_nested({"Coast": ["E1", "W1"], "Inland": ["E2", "W2"]})
BY = {"region": REGIONS, "sector": None, "size": None}


def firms(n: int = 80) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    codes = {"region": ["E1", "E2", "W1", "W2"], "sector": ["a", "b", "c"], "size": ["small", "large"]}
    made = {name: rng.choice(listed, n) for name, listed in codes.items()}
    x, y = (np.ceil(np.exp(rng.normal(4, 1.5, n))) for _ in range(2))
    return made | {"x": x, "y": y, "z": x + y}


ASKED = (
    AskedTable(name="sectors", dimensions=("region", "sector")),
    AskedTable(name="sizes", dimensions=("region", "size"), indicators=("z",)),
    AskedTable(name="coasts", dimensions=("region", "sector"), hierarchies={"region": COASTS}, indicators=("z",)),
    AskedTable(name="east", dimensions=("region", "size", "sector"), where={"region": "East"}, indicators=("z",)),
    AskedTable(name="north", dimensions=("sector",), where={"region": "E1"}, indicators=("z",)),
)


def test_a_file_is_read_once_for_all_tables_and_indicators(tmp_path, monkeypatch):
    rows = firms()
    with (tmp_path / "firms.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(rows)
        writer.writerows(zip(*(column.tolist() for column in rows.values()), strict=True))
    opened, reads = DuckRecords.from_files.__func__, []

    def counted(cls, path, **options):
        reads.append(path)
        return opened(cls, path, **options)

    monkeypatch.setattr(DuckRecords, "from_files", classmethod(counted))
    indicators = {"x": "x", "y": "y", "z": "z"}
    read = tabulate_parts(str(tmp_path / "firms.csv"), BY, ASKED, indicators)
    assert len(reads) == 1
    for one, other in zip(read, tabulate_parts(rows, BY, ASKED, indicators), strict=True):
        assert (one.name, one.table.codes) == (other.name, other.table.codes)
        assert np.array_equal(one.table.values, other.table.values)


def test_own_trees_and_parts_of_everybody_are_one_system():
    found = Publication.of(tabulate_parts(firms(), BY, ASKED, {"z": "z"}))
    system, rows = found.table, firms()
    assert len(found.clusters) == 1
    # the table for the east has its own total, which is a region of the others
    east = found.parts[3]
    assert east.table.codes[0] == ("East", "E1", "E2")
    assert found.shared()["sectors", "east"] == 3 * 4
    cell = east.cells[east.table.cell({"size": "small"})]
    expected = rows["z"][np.isin(rows["region"], ["E1", "E2"]) & (rows["size"] == "small")].sum()
    assert system.values[cell] == expected
    assert found.shared()["sectors", "north"] == 4
    # a total that does not nest joins the leaves of the others
    coast = system.cell({"region": "Coast", "sector": "a"})
    parts = [system.cell({"region": r, "sector": "a"}) for r in ("E1", "W1")]
    row = np.zeros(system.n_cells)
    row[[coast, *parts]] = [-1, 1, 1]
    assert (system.relations.toarray() == row).all(axis=1).any()


def test_what_does_not_exist_is_told_at_once():
    rows = firms()
    wrong = [
        AskedTable(name="t", dimensions=("region", "secto")),
        AskedTable(name="u", dimensions=("size",), indicators=("w",)),
    ]
    with pytest.raises(PublicationError) as caught:
        tabulate_parts(rows, BY, wrong, {"z": "z"})
    assert caught.value.mistakes == (
        "table 't': there is no dimension 'secto'.", "table 'u': there is no indicator 'w'.",
    )  # fmt: skip
    with pytest.raises(PublicationError, match=r"no column 'zz'[\s\S]*no column 'firm'"):
        tabulate_parts(rows, BY, ASKED[:1], {"z": "zz"}, holding="firm")
    with pytest.raises(UnknownCodeError, match="'region' has no code 'Est'"):
        tabulate_parts(rows, BY, [AskedTable(name="t", dimensions=("size",), where={"region": "Est"})], {"z": "z"})


def test_a_publication_from_records():
    tables = {"sectors": ["region", "sector"], "east": {"dimensions": ["size"], "where": {"region": "East"}}}
    indicators = {"x": "x", "y": "y", "z": "z"}
    found = cg.tabulate_publication(firms(), BY, tables, indicators=indicators, equations=["z = x + y"])
    assert [part.name for part in found.parts[:2]] == ["sectors x", "east x"]
    assert len(found.clusters) == 1
    release = cg.suppress(found.apply(cg.PPercent(10)), method="heuristic", rounds=0)
    assert release.audit().safe
    with pytest.raises(cg.InputError, match="dimensions must"):
        cg.tabulate_publication(firms(), BY, {"t": {"where": {}}})
    with pytest.raises(cg.InputError, match="not both"):
        cg.tabulate_publication(firms(), BY)


def some_amounts(n: int = 90) -> dict[str, np.ndarray]:
    """Firms with few different amounts: nobody is known by what he gave."""
    rng = np.random.default_rng(3)
    sizes = {"region": 12, "sector": 9, "size": 8, "form": 7}
    made = {name: rng.choice([f"{name[0]}{name[1]}{k}" for k in range(m)], n) for name, m in sizes.items()}
    x = rng.integers(1, 4, n).astype(float)
    y = rng.integers(0, 3, n).astype(float)
    return made | {
        "x": x,
        "y": y,
        "z": x + y,
        "group": np.where(rng.random(n) < 0.5, "", rng.choice(list("ABCDEF"), n)),
    }


CROSSED = tuple(
    AskedTable(name=f"{a} {b} {where}", dimensions=(a, b), where=where)
    for a, b in (("region", "sector"), ("region", "size"), ("sector", "form"))
    for where in ({}, {"size": "si1"}, {"form": "fo2"})
)


def sources(rows: dict[str, np.ndarray], folder: Path) -> dict[str, Any]:
    ibis = pytest.importorskip("ibis")
    frame = pd.DataFrame(rows)
    frame.to_csv(folder / "firms.csv", index=False)
    connection, database = duckdb.connect(), ibis.duckdb.connect()
    return {
        "columns": rows,
        "file": str(folder / "firms.csv"),
        "relation": connection.from_df(frame),
        "database": database.create_table("firms", frame),
    }


@pytest.mark.parametrize("source", ["columns", "file", "relation", "database"])
@pytest.mark.parametrize("holding", [None, "group"])
def test_a_respondent_has_one_number_in_all_tables_and_indicators(tmp_path, source, holding):
    rows = some_amounts()
    by = dict.fromkeys(("region", "sector", "size", "form"))
    roles = {} if holding is None else {"holding": holding, "standalone": True}
    parts = tabulate_parts(sources(rows, tmp_path)[source], by, CROSSED, {"x": "x", "y": "y", "z": "z"}, **roles)
    # who he is: a holding by its name, a record by all that is known of it
    alike = list(zip(*(rows[name].tolist() for name in (*by, "x", "y", "z")), strict=True))
    person = alike if holding is None else [h or one for h, one in zip(rows["group"].tolist(), alike, strict=True)]
    number: dict[Any, set[int]] = {}
    for part in parts:
        cells = part.table.statistics
        for cell, codes in enumerate(zip(*part.table.cell_codes().values(), strict=True)):
            known = part.where | {d: c for d, c in zip(part.table.dimensions, codes, strict=True) if c != "Total"}
            mine = np.logical_and.reduce([np.ones(len(person), bool), *(rows[d] == c for d, c in known.items())])
            there = {person[k] for k in np.flatnonzero(mine)}
            if cells.count[cell] == len(there) == 1:
                number.setdefault(there.pop(), set()).add(int(cells.contributors[cell, 0]))
    assert all(len(found) == 1 for found in number.values())
    assert len(set.union(*number.values())) == len(number) > 30


PARTS = (
    *ASKED,
    AskedTable(name="two", dimensions=("sector",), where={"region": "West", "size": "small"}),
    AskedTable(name="numbers", dimensions=("region", "size"), indicators=("firms",)),
)
SHOWN = {"x": "x", "loss": "loss", "z": "z", "firms": None}


def with_losses() -> dict[str, np.ndarray]:
    """Firms of which nobody gave the same amount."""
    rows = firms()
    x, z = rows["x"] + np.arange(80) / 100, rows["z"] + np.arange(80) / 100
    return rows | {"x": x, "z": z, "loss": np.where(np.arange(80) % 7 == 0, -3, 2) * x}


@pytest.mark.parametrize("kind", ["columns", "file", "relation"])
def test_all_tables_and_indicators_take_one_look_and_one_pass(tmp_path, monkeypatch, kind):
    given = sources(with_losses(), tmp_path)[kind]
    asked: list[str] = []
    ask = DuckRecords._run

    def counted(self, query):
        asked.append(query)
        return ask(self, query)

    monkeypatch.setattr(DuckRecords, "_run", counted)
    made = tabulate_parts(given, BY, PARTS, SHOWN, decimals=2)
    assert len(asked) == 2
    monkeypatch.setattr(Gathered, "of", classmethod(lambda *_: None))
    apart = tabulate_parts(given, BY, PARTS, SHOWN, decimals=2)
    assert len(asked) > 20
    for one, other in zip(made, apart, strict=True):
        assert (one.name, one.indicator, one.table.codes) == (other.name, other.indicator, other.table.codes)
        for name in ("values", "lb", "fixed", "weights", "counts"):
            assert np.array_equal(getattr(one.table, name), getattr(other.table, name)), (one.name, name)
        a, b = one.table.statistics, other.table.statistics
        for name in ("total", "count", "weight", "top", *(["contributors"] if kind != "relation" else [])):
            assert np.array_equal(getattr(a, name), getattr(b, name)), (one.name, name)


def test_what_is_wrong_in_a_part_of_the_population_is_no_matter_to_others(tmp_path):
    rows = firms()
    rows["z"] = np.where(rows["region"] == "W2", np.nan, rows["z"])
    east = (ASKED[3], ASKED[4])
    assert len(tabulate_parts(rows, BY, east, {"z": "z"})) == 2
    with pytest.raises(cg.InputError, match=r"'z' .*no number"):
        tabulate_parts(rows, BY, (*east, PARTS[-2]), {"z": "z"})


def test_people_of_different_records_are_found_again_by_what_they_gave():
    rows = with_losses()
    one, other = ASKED[0], AskedTable(name="sizes", dimensions=("region", "size"))
    by = {"region": REGIONS, "sector": None, "size": None}
    first, second = (tabulate_parts(rows, by, [asked], {"x": "x"})[0] for asked in (one, other))
    assert first.table.statistics.people != second.table.statistics.people
    apart = Publication.of([first, second]).table
    together = Publication.of(tabulate_parts(rows, by, [one, other], {"x": "x"})).table
    assert (apart.statistics.people, together.statistics.people != "") == ("", True)
    # everybody gave another amount: what two readings tell is what one tells
    place = [apart.cell(dict(zip(together.dimensions, codes, strict=True))) for codes in cell_codes(together)]
    a, b = apart.statistics.contributors[place], together.statistics.contributors
    pairs = {(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)}
    assert len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def cell_codes(table: cg.Table) -> list[tuple[str, ...]]:
    return list(zip(*table.cell_codes().values(), strict=True))
