"""Publications from job files: tables that are ready, tables from records, and everything that can be wrong in them."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from builders import REGIONS, convert_to_rows, write_columns, write_job
from cellguard.exceptions import CellguardError, PublicationError
from cellguard.jobs import read_job
from cellguard.jobs import runner as runs
from cellguard.jobs.flags import flag_job
from cellguard.jobs.plan import plan
from cellguard.jobs.runner import run
from cellguard.jobs.tables import tabulate_job
from cellguard.model.linked.publication import Publication

LEAVES = np.array([[[300.0, 70, 210], [20, 8, 31]], [[120, 400, 90], [33, 6, 24]],
                   [[250, 180, 330], [41, 15, 20]], [[160, 270, 500], [18, 29, 36]]])  # fmt: skip
"""Region x size x sector."""
JOB = """\
name = "turnover"
seed = 1
{head}
[dimensions.region]
hierarchy = {{East = ["E1", "E2"], West = ["W1", "W2"]}}
[dimensions.sector]
[dimensions.size]

[[tables]]
name = "by sector"
file = "sector.csv"
dimensions = ["region", "sector"]
count = "firms"
value = "turnover"

[[tables]]
name = "by size"
file = "size.csv"
dimensions = ["region", "size"]
columns = {{region = "NUTS"}}
total = {{region = "Ensemble"}}
count = "firms"
value = "turnover"
{tables}
[[rules]]
rule = "min_frequency"
n = 4
percent = 10
{rules}
[method]
rounds = 1
[output]
folder = "out"
"""


def rows(cube: np.ndarray, labels: list[str], names: tuple[str, str], root: str = "Total") -> list[dict[str, object]]:
    """Return a table of regions and something else as rows, every margin included."""
    out = []
    groups = {root: [0, 1, 2, 3], "East": [0, 1], "West": [2, 3], "E1": [0], "E2": [1], "W1": [2], "W2": [3]}
    for region, members in groups.items():
        for label, columns in {"Total": range(len(labels)), **{x: [k] for k, x in enumerate(labels)}}.items():
            value = cube[members][:, list(columns)].sum()
            firms = 40 if label == "Total" or len(members) > 1 else int(2 + value % 9)
            out.append({names[0]: region, names[1]: label, "turnover": value, "firms": firms})
    return out


def write(path: Path, listed: list[dict[str, object]]) -> None:
    write_columns(path, {name: [row[name] for row in listed] for name in listed[0]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "sector.csv", rows(LEAVES.sum(axis=1), ["a", "b", "c"], ("region", "sector")))
    write(tmp_path / "size.csv", rows(LEAVES.sum(axis=2), ["small", "large"], ("NUTS", "size"), "Ensemble"))
    return tmp_path


RULE = """
[[rules]]
rule = "min_frequency"
n = 4
percent = 10
[output]
folder = "out"
"""


def job(folder: Path, *, head: str = "", tables: str = "", rules: str = "", change=lambda text: text):
    path = folder / "job.toml"
    path.write_text(change(JOB.format(head=head, tables=tables, rules=rules)))
    tomllib.loads(path.read_text())
    return read_job(path)


def edit(path: Path, line: int, text: str) -> None:
    """Replace a line of a file (the first is 1)."""
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")


def test_ready_tables_become_one_system(folder):
    parts = tabulate_job(job(folder))
    assert [part.name for part in parts] == ["by sector", "by size"]
    assert [part.source for part in parts] == ["sector.csv", "size.csv"]
    found = Publication.of(parts)
    assert found.table.n_cells == 7 * 4 + 7 * 3 - 7
    first = parts[0]
    lines = (folder / "sector.csv").read_text().splitlines()
    for cell in (0, 5, 11):
        codes = [column[0] for column in first.table.cell_codes([cell]).values()]
        assert lines[first.lines[cell] - 1].startswith(",".join(codes) + ",")


def test_a_run_writes_each_table_as_it_came(folder):
    outcome = run(job(folder))
    assert outcome.audit.safe
    public = folder / "out" / "public"
    assert {"by sector.csv", "by size.csv", "manifest.json", "report.html"} <= {p.name for p in public.iterdir()}
    shown = convert_to_rows(public / "by size.csv")
    assert list(shown[0]) == ["NUTS", "size", "status", "value"]
    assert shown[0]["NUTS"] == "Ensemble"
    assert {row["status"] for row in shown} == {"published", "withheld"}


def test_rules_hold_for_some_tables_and_parts(folder):
    plain = flag_job(tabulate_job(job(folder)), job(folder))
    more = '[[rules]]\nrule = "min_frequency"\nn = 9\ntables = ["by size"]\nonly = {region = ["E1"]}\n'
    strict = job(folder, rules=more)
    table = flag_job(tabulate_job(strict), strict)
    new = np.flatnonzero(table.sensitive & ~plain.sensitive)
    assert len(new)
    assert all("region=E1" in table.label(int(cell)) for cell in new)


def test_flags_of_all_tables_are_counted_once(folder):
    file = job(folder)
    table = flag_job(tabulate_job(file), file)
    assert sum(table.flags.count_by_rule().values()) == int(table.sensitive.sum())


# ---------------------------------------------------------------- records, parts of the population, indicators


@pytest.fixture
def records(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    n = 70
    columns = {
        "region": rng.choice(["E1", "E2", "W1", "W2"], n), "sector": rng.choice(["a", "b", "c"], n),
        "size": rng.choice(["small", "large"], n),
    }  # fmt: skip
    domestic, exports = (np.ceil(np.exp(rng.normal(5, 1.9, n))).astype(int) for _ in range(2))
    columns |= {"turnover": domestic + exports, "domestic": domestic, "exports": exports}
    write_columns(tmp_path / "firms.csv", columns)
    indicators = [{"name": name, "value": name} for name in ("turnover", "domestic", "exports")]
    indicators[2]["shadow_of"] = "turnover"
    write_job(
        tmp_path, "sector", "size", name="firms", equations=["turnover = domestic + exports"],
        data={"file": "firms.csv"}, dimensions={"region": {"hierarchy": REGIONS}}, indicators=indicators,
        tables=[
            {"dimensions": ["region", "sector"]},
            {"dimensions": ["region", "size"], "priority": 10, "indicators": ["turnover"]},
            {"name": "east", "dimensions": ["sector", "size"], "where": {"region": "E1"}, "indicators": ["turnover"]},
        ],
        rules=[{"rule": "p_percent", "p": 10, "indicators": ["turnover"]}], method={"rounds": 1, "weights": "unit"},
    )  # fmt: skip
    return tmp_path


def test_indicators_equations_populations_and_shadows_from_records(records):
    file = read_job(records / "job.toml")
    parts = tabulate_job(file)
    assert [(p.name, p.indicator) for p in parts] == [
        ("region by sector turnover", "turnover"), ("region by size turnover", "turnover"), ("east turnover", "turnover"),
        ("region by sector domestic", "domestic"), ("region by sector exports", "exports"),
    ]  # fmt: skip
    table = flag_job(parts, file)
    d = table.dimensions.index("indicator")
    sensitive = {table.codes[d][k] for k in table.coordinates[table.sensitive, d]}
    assert sensitive == {"turnover", "exports"}  # a shadow, and no rule for the domestic part
    assert table.flags.count_by_rule()["exports, shadow of turnover"] > 0
    assert all(table.flags.list_reasons(cell) for cell in table.sensitive_cells.tolist())
    # a margin by sector and size is shown by no table but the one for the east; priorities count for every weight
    sized = table.cell({"indicator": "turnover", "region": "W1", "size": "small"})
    other = table.cell({"indicator": "domestic", "region": "W1", "sector": "a"})
    shared = table.cell({"indicator": "turnover", "region": "W1"})
    assert (table.weights[sized], table.weights[other], table.weights[shared]) == (10.0, 1.0, 11.0)


def test_a_run_from_records(records):
    outcome = run(read_job(records / "job.toml"))
    assert outcome.audit.safe
    assert "east turnover.csv" in {p.name for p in (records / "out" / "public").iterdir()}


# ---------------------------------------------------------------- what is wrong


def test_everything_that_is_wrong_is_told_at_once(folder):
    edit(folder / "sector.csv", 3, "Total,a,many,40")
    edit(folder / "sector.csv", 4, "Total,,713,40")
    edit(folder / "sector.csv", 9, "Eest,c,300,40")
    edit(folder / "size.csv", 5, "East,Total,1,40")
    with pytest.raises(PublicationError) as caught:
        tabulate_job(job(folder))
    text = str(caught.value)
    assert len(caught.value.mistakes) == 5
    assert "sector.csv: line 3: no number in column 'turnover'" in text
    assert "sector.csv: line 4: no code in column 'sector'" in text
    assert "sector.csv: line 9: code 'Eest' of column 'region' is not in its hierarchy" in text
    assert "size.csv: line 5: turnover of (NUTS=East, size=Total) is not the sum of its parts" in text
    assert "size.csv: line 2: turnover of (NUTS=Ensemble, size=Total) is not the sum of its parts" in text
    assert "713" not in text
    assert not (folder / "out").exists()


def test_cells_listed_twice_name_both_lines(folder):
    edit(folder / "size.csv", 6, "East,Total,1,40")
    with pytest.raises(CellguardError, match=r"size.csv: line 6: cell \(NUTS=East, size=Total\).* in line 5"):
        tabulate_job(job(folder))


def test_totals_that_are_not_sums_name_their_lines_in_every_file(folder):
    size, sector = convert_to_rows(folder / "size.csv"), convert_to_rows(folder / "sector.csv")
    at = next(i for i, row in enumerate(size) if (row["NUTS"], row["size"]) == ("East", "Total"))
    size[at]["turnover"] = "1"
    leaf = next(i for i, row in enumerate(sector) if row["region"] == "W2" and row["sector"] != "Total")
    sector[leaf]["turnover"] = "1e6"
    write(folder / "size.csv", size)
    write(folder / "sector.csv", sector)
    with pytest.raises(PublicationError) as caught:
        tabulate_job(job(folder))
    text = str(caught.value)
    assert f"size.csv: line {at + 2}: turnover of (NUTS=East, size=Total) is not the sum of its parts." in text
    whole = next(i for i, row in enumerate(sector) if (row["region"], row["sector"]) == ("W2", "Total"))
    assert f"sector.csv: line {whole + 2}: turnover of (region=W2, sector=Total) is not" in text
    assert "tolerance" in text
    assert "1000000" not in text


def test_everything_that_is_wrong_in_a_template_is_told_at_once(records):
    rows = ["x,Total,Total", "x,E1,Total", "x,,Total", "x,E9,Total", "z,E1,Total", "x,E1,Total"]
    (records / "cells.csv").write_text("\n".join(["indicator,region,sector", *rows]) + "\n")
    text = """
[data]
file = "firms.csv"
template = "cells.csv"
[[indicators]]
name = "x"
value = "turnover"
[dimensions.region]
hierarchy = {East = ["E1", "E2"], West = ["W1", "W2"]}
[dimensions.sector]
[[rules]]
rule = "min_frequency"
n = 3
"""
    (records / "template.toml").write_text(text)
    with pytest.raises(PublicationError) as caught:
        tabulate_job(read_job(records / "template.toml"))
    told = sorted(m.removeprefix("cells.csv: ").split(": ")[0] for m in caught.value.mistakes)
    assert told == ["line 4", "line 5", "line 6", "line 7"]


def test_columns_that_are_not_there_get_hints(folder):
    wrong = job(folder, change=lambda text: text.replace('"NUTS"', '"NUT"').replace('"firms"', '"firm"'))
    with pytest.raises(PublicationError) as caught:
        tabulate_job(wrong)
    assert sorted(caught.value.mistakes) == [
        "sector.csv: line 1: there is no column 'firm'.", "size.csv: line 1: there is no column 'NUT'.",
        "size.csv: line 1: there is no column 'firm'.",
    ]  # fmt: skip
    assert "did you mean" in str(caught.value.hint)


def test_a_shared_cell_with_two_values_names_both_files_and_lines(folder):
    listed = rows(2 * LEAVES.sum(axis=2), ["small", "large"], ("NUTS", "size"), "Ensemble")
    write(folder / "size.csv", listed)
    with pytest.raises(
        CellguardError,
        match=r"different values in 'by sector' \(sector.csv, line 2\) and 'by size' \(size.csv, line 2\), .* 6 others",
    ) as caught:
        flag_job(tabulate_job(job(folder)), job(folder))
    assert str(int(LEAVES.sum())) not in str(caught.value)


def test_tables_of_different_periods(folder):
    for name, year in (("sector", 2023), ("size", 2024)):
        lines = (folder / f"{name}.csv").read_text().splitlines()
        dated = [lines[0] + ",TIME_PERIOD", *(f"{line},{year}" for line in lines[1:])]
        (folder / f"{name}.csv").write_text("\n".join(dated) + "\n")
    told = r"'by sector' \(sector.csv, line 2\) is about 2023, 'by size' \(size.csv, line 2\) about 2024"
    with pytest.raises(CellguardError, match=told):
        flag_job(tabulate_job(job(folder)), job(folder))
    lines = (folder / "size.csv").read_text().splitlines()
    again = [line.replace(",2024", ",2023") for line in lines[1:]]
    (folder / "size.csv").write_text("\n".join([*lines, *again]) + "\n")
    with pytest.raises(CellguardError, match=r"size.csv: line 23: column 'TIME_PERIOD' has 2 periods"):
        tabulate_job(job(folder))
    one = job(
        folder, change=lambda t: t.replace("total = {{region", "total = {region").replace(
            "total = {region", 'where = {TIME_PERIOD = "2023"}\ntotal = {region')
    )  # fmt: skip
    # the rows of that year alone, linked with the other table's
    assert flag_job(tabulate_job(one), one).n_cells == 42


def test_a_total_that_is_an_inner_code_elsewhere_names_both_lines(folder):
    listed = rows(LEAVES.sum(axis=2), ["a", "large"], ("region", "size"))
    for row in listed:
        row["size"] = {"Total": "a", "a": "b"}.get(str(row["size"]), row["size"])
    write(folder / "size.csv", listed)
    more = """[[tables]]
name = "odd"
file = "size.csv"
dimensions = ["region", "sector"]
columns = {sector = "size"}
total = {sector = "a"}
count = "firms"
value = "turnover"
"""
    one = job(
        folder,
        change=lambda t: t.partition('[[tables]]\nname = "by size"')[0].replace("[dimensions.size]", "") + more + RULE,
    )
    told = r"'a' is the total of 'odd' \(size.csv, line 2\) and an inner code of 'by sector' \(sector.csv, line 3\)"
    with pytest.raises(CellguardError, match=told):
        flag_job(tabulate_job(one), one)


def test_codes_that_no_table_has_are_refused_in_rules(folder):
    more = '[[rules]]\nrule = "min_frequency"\nn = 9\nonly = {region = ["E1", "Est"]}\n'
    more += '[[rules]]\nrule = "manual"\ncells = [{region = "E3"}]\n'
    file = job(folder, rules=more)
    with pytest.raises(PublicationError) as caught:
        flag_job(tabulate_job(file), file)
    assert [m.split(":")[0] for m in caught.value.mistakes] == ["rule min_frequency", "rule manual"]


def test_cells_marked_by_hand_are_found_in_the_tables_that_have_them(folder):
    more = '[[rules]]\nrule = "manual"\ncells = [{region = "W2", size = "large"}, {region = "W1"}]\n'
    file = job(folder, rules=more)
    table = flag_job(tabulate_job(file), file)
    assert table.sensitive[table.cell({"region": "W2", "size": "large"})]
    assert table.sensitive[table.cell({"region": "W1"})]


# ---------------------------------------------------------------- rounding


def rounded(folder: Path, unit: float) -> None:
    """Round every table by itself, totals included."""
    for name in ("sector", "size"):
        listed = convert_to_rows(folder / f"{name}.csv")
        for row in listed:
            row["turnover"] = unit * round(float(row["turnover"]) / unit)
        write(folder / f"{name}.csv", listed)


def test_rounded_tables_are_reconciled_within_the_tolerance(folder):
    rounded(folder, 4.0)
    with pytest.raises(CellguardError, match="is not the sum of its parts"):
        tabulate_job(job(folder))
    file = job(folder, head="tolerance = 0.1")
    table = flag_job(tabulate_job(file), file)
    assert np.abs(table.relations @ table.values).max() < 1e-6
    exact = job(folder, head="tolerance = 0.1")
    assert run(exact).audit.safe


# ---------------------------------------------------------------- the plan


def test_the_plan_draws_tables_clusters_and_flags(folder):
    more = (
        '[[tables]]\nname = "apart"\nfile = "apart.csv"\ndimensions = ["colour"]\nvalue = "turnover"\ncount = "firms"\n'
    )
    listed = [{"colour": c, "turnover": 10 * k + 5, "firms": 3 + k} for k, c in enumerate(("red", "blue", "green"))]
    write(folder / "apart.csv", listed)
    told = plan(
        job(folder, tables=more + 'where = {kind = "other"}\n',
            change=lambda t: t.replace("[dimensions.size]", "[dimensions.size]\n[dimensions.colour]\n[dimensions.kind]"))
    )  # fmt: skip
    assert told["cells"] == 42 + 4
    assert told["tables"][0].startswith("by sector: region x sector, 28 cells, ")
    assert told["tables"][0].endswith("from sector.csv")
    assert told["shared"] == ["by sector = by size: 7 cells"]
    assert [line.split(",")[0] for line in told["clusters"]] == ["2 tables", "1 table"]
    assert told["clusters"][1].endswith("1 sensitive: apart")
    assert sum(told["sensitive_by_rule"].values()) == told["sensitive"]
    assert told["steps"][0] == "read the tables"
    assert not (folder / "out").exists()


def test_a_stopped_run_goes_on_with_the_clusters_that_are_left(folder, monkeypatch):
    more = '[[tables]]\nname = "apart"\nfile = "apart.csv"\ndimensions = ["sector", "size"]\nvalue = "turnover"\ncount = "firms"\n'
    listed = [
        {"sector": sector, "size": size, "turnover": 10 * k + 7 * j + 5, "firms": 3 + (k + j) % 3}
        for k, sector in enumerate("abc")
        for j, size in enumerate(("small", "large"))
    ]
    write(folder / "apart.csv", listed)
    file = job(folder, tables=more + 'where = {residence = "abroad"}\n[dimensions.residence]\n')
    kept = runs._Clusters.save

    def stop(self, number, release):
        kept(self, number, release)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs._Clusters, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        run(file)
    assert not (folder / "out" / "public").exists()
    monkeypatch.setattr(runs._Clusters, "save", kept)
    outcome = run(file)
    assert [step for step in outcome.resumed if step.startswith("cluster")] == ["cluster 1"]
    assert outcome.audit.safe
    assert not (folder / "out" / ".work").exists()


def test_largest_contributions_are_those_to_the_first_indicator_of_a_file(tmp_path):
    cells = rows(LEAVES.sum(axis=1), ["a", "b", "c"], ("region", "sector"))
    write(tmp_path / "both.csv", [{**row, "exports": row["turnover"] / 4, "max": row["turnover"] / 2} for row in cells])
    (tmp_path / "job.toml").write_text("""
[dimensions.region]
hierarchy = {East = ["E1", "E2"], West = ["W1", "W2"]}
[dimensions.sector]
[[indicators]]
name = "turnover"
value = "turnover"
[[indicators]]
name = "exports"
value = "exports"
[[tables]]
name = "sectors"
file = "both.csv"
dimensions = ["region", "sector"]
count = "firms"
top = ["max"]
[[rules]]
rule = "dominance"
n = 1
k = 40
indicators = ["turnover"]
""")
    table = flag_job(tabulate_job(file := read_job(tmp_path / "job.toml")), file)
    first, second = (part.table for part in table.parts)
    assert first.statistics.top.shape[1] == 1
    assert second.statistics is None or second.statistics.top.shape[1] == 0
    assert second.counts is not None
    assert not second.sensitive.any()
    (tmp_path / "job.toml").write_text((tmp_path / "job.toml").read_text().replace('indicators = ["turnover"]', ""))
    with pytest.raises(CellguardError, match="1 largest contributions"):
        flag_job(tabulate_job(file := read_job(tmp_path / "job.toml")), file)


SECTORS = """
name = "sections"
[data]
file = "firms.csv"
value = "turnover"
[dimensions.region]
hierarchy = {East = ["E1", "E2"], West = ["W1", "W2"]}
[dimensions.sector]
[dimensions.size]
[[tables]]
dimensions = ["region", "sector"]
[[tables]]
name = "coast"
dimensions = ["region", "size"]
MORE
[[rules]]
rule = "min_frequency"
n = 4
[method]
rounds = 1
[output]
folder = "out"
"""


def sections(folder: Path, more: str):
    (folder / "sections.toml").write_text(SECTORS.replace("MORE", more))
    return read_job(folder / "sections.toml")


def test_inner_codes_in_the_hierarchy_of_a_table_from_records_stand_for_their_leaves(records):
    file = sections(records, 'hierarchies = {region = {Coast = ["East", "W1"], rest = ["W2"]}}')
    coast = next(part for part in tabulate_job(file) if part.name == "coast")
    assert coast.table.codes[0] == ("Total", "Coast", "East", "W1", "rest", "W2")
    table = flag_job(tabulate_job(file), file)
    east = table.cell({"region": "East", "size": "Total"})
    assert table.values[east] == sum(table.values[table.cell({"region": r})] for r in ("E1", "E2"))
    assert int(coast.table.counts[coast.table.cell({})]) == 70
    assert run(file).audit.safe


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('hierarchies = {region = {Coast = ["East"], rest = ["W2"]}}', r"table 'coast': .*1 codes .*'W1'"),
        ('hierarchies = {region = {Coast = ["East", "E1"], rest = ["West"]}}', "table 'coast': .*'E1'"),
        ('where = {region = "Est"}', r"table 'coast': where: 'region' has no code 'Est'.\nHint: did you mean 'East'"),
        ('where = {sector = "A"}', "table 'coast': where: no record has the code 'A' of 'sector'"),
    ],
)
def test_what_is_wrong_with_a_table_from_records_names_it(records, more, told):
    with pytest.raises(CellguardError, match=told) as caught:
        tabulate_job(sections(records, more))
    assert re.search(told, f"{caught.value.message}\nHint: {caught.value.hint}")


def test_columns_of_a_table_from_records_are_those_of_the_records(records):
    with pytest.raises(CellguardError) as caught:
        sections(records, 'columns = {region = "NOPE"}\ncount = "firms"\nwhere = {a = "1", b = "2"}')
    for text in ("tables.2.columns.region", "tables.2.count", "no column 'a'", "no column 'b'"):
        assert text in str(caught.value)


def test_a_template_of_a_period_without_records_hides_nothing_else(records):
    (records / "firms.csv").write_text(
        "\n".join(
            f"{'year' if k == 0 else 2023},{line}" for k, line in enumerate((records / "firms.csv").read_text().split())
        )
        + "\n"
    )
    rows = ["2023,x,Total,Total", "2023,x,E9,Total", "2023,z,E1,Total", "2025,x,Total,a", "2025,x,E1,a", "2025,x,Q,a"]
    (records / "cells.csv").write_text("\n".join(["year,indicator,region,sector", *rows]) + "\n")
    text = SECTORS.partition("[[tables]]")[0].replace('value = "turnover"', 'template = "cells.csv"')
    text = text.replace("[dimensions.size]", '[[indicators]]\nname = "x"\nvalue = "turnover"')
    (records / "template.toml").write_text(text + '[[rules]]\nrule = "min_frequency"\nn = 3\n')
    with pytest.raises(PublicationError) as caught:
        tabulate_job(read_job(records / "template.toml"))
    told = "\n".join(caught.value.mistakes)
    for text in (
        "cells.csv: line 3: fits no table: 'region' has no code 'E9'", "cells.csv: line 4: there is no indicator 'z'",
        "cells.csv: line 5: where: no record has the code '2025' of 'year'", "line 7: fits no table",
    ):  # fmt: skip
        assert text in told


def test_rules_that_a_table_knows_too_little_for_name_it(folder):
    file = job(folder, rules='[[rules]]\nrule = "p_percent"\np = 10\n')
    with pytest.raises(PublicationError) as caught:
        flag_job(tabulate_job(file), file)
    assert [m.split(":")[0] for m in caught.value.mistakes] == [
        "table 'by sector' (sector.csv)", "table 'by size' (size.csv)",
    ]  # fmt: skip
