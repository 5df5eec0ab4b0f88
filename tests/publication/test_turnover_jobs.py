"""The same four tables as an office has them: from files by a job to a report; more tables, from records.

The files are those of a public example (see ``shared/publication``); without them the tests are skipped.
"""

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.runner import run
from cellguard.model.linked.publication import Part, Publication
from cellguard.tabulation.many import AskedTable, tabulate_parts
from cellguard.tabulation.template import Template

FOLDER = Path(os.environ.get("CELLGUARD_PUBLICATION", Path(__file__).resolve().parents[3] / "shared" / "publication"))
FOUR = ("turnover_act_size.csv", "turnover_act_cj.csv", "turnover_nuts_size.csv", "turnover_nuts_cj.csv")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the example's files are not here")


@pytest.fixture
def office(tmp_path) -> Path:
    """A folder with the tables and the correspondence tables beside them."""
    for path in FOLDER.glob("*.csv"):
        shutil.copyfile(path, tmp_path / path.name)
    return tmp_path


def test_a_publication_is_proposed_from_the_files_and_runs_to_a_report(office, capsys):
    assert main(["init", *(str(office / name) for name in FOUR)]) == 0
    told = capsys.readouterr().err
    assert "NUTS: nuts23_fr_corr_table.csv says how 100% of its codes nest" in told
    assert "to be confirmed" not in told
    job = office / "job.toml"
    quick = job.read_text().replace('name = "suppress"', 'name = "suppress"\nrounds = 0\nweights = "unit"')
    job.write_text("insiders = false\n" + quick)
    outcome = run(read_job(job))
    assert outcome.audit.safe
    assert outcome.audit.checked == 260
    public = outcome.folder / "public"
    shown = (public / "report.html").read_text()
    assert "4 tables in 1 cluster" in shown
    assert 'href="#table-ACTIVITY-by-SIZE"' in shown
    assert "Withheld cells that are in several tables" in shown
    with (public / "NUTS by CJ.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["NUTS", "CJ", "status", "value"]
    with (office / "turnover_nuts_cj.csv").open(newline="") as stream:  # the same rows, in the order of the codes
        came = [(row["NUTS"], row["CJ"]) for row in csv.DictReader(stream)]
    shown = [(row["NUTS"], row["CJ"]) for row in rows]
    assert shown != came
    assert sorted(shown) == sorted(came)
    assert shown[0] == ("Total", "Total")
    capsys.readouterr()
    assert main(["audit", "--json", str(job), str(public)]) == 0  # the files alone
    assert json.loads(capsys.readouterr().out)["audit"] == {"safe": True, "checked": 260, "exact": 0, "unsafe": 0}
    part = next(part for part in outcome.release.table.parts if part.name == "NUTS by CJ")
    hidden = outcome.release.suppressed[part.cells][part.rows()]
    assert [row["value"] == "" for row in rows] == hidden.tolist()


def test_the_fifth_table_is_refused_with_both_places(office, capsys):
    assert main(["init", *(str(office / name) for name in (*FOUR, "turnover_act_nuts_size.csv"))]) == 0
    told = capsys.readouterr().err
    job = office / "job.toml"
    assert 'unconfirmed = ["publication"]' in job.read_text()
    lines = [line for line in job.read_text().splitlines() if not line.startswith("unconfirmed")]
    job.write_text("\n".join(lines) + "\n")
    assert main(["protect", str(job)]) == 1
    message = capsys.readouterr().err
    for text in (told, message):
        assert "(turnover_nuts_size.csv, line 10)" in text
        assert "(turnover_act_nuts_size.csv, line 12), and so have 51 others" in text
    assert not (office / "publication-release").exists()


def test_the_template_of_the_example_is_six_tables():
    found = Template.read(FOLDER / "enterprise_template.csv")
    assert [(t.period, t.indicator, t.dimensions[1], len(t.codes)) for t in found.tables] == [
        (period, indicator, dimension, n)
        for period, indicator in (("2022", "SAL"), ("2021", "SAL_DTH"), ("2022", "SAL_DTH"))
        for dimension, n in (("NUMBER_EMPL", 660), ("LEGAL_FORM", 528))
    ]


# ---------------------------------------------------------------- more tables, from the records


def records() -> dict[str, list]:
    import gzip

    with gzip.open(FOLDER / "indiv_dt.csv.gz", "rt", newline="") as stream:
        rows = list(csv.DictReader(stream))
    out: dict[str, list] = {
        name: [row[name] for row in rows] for name in ("A21", "A88", "SIZE", "CJ", "NUTS1", "NUTS2")
    }
    return out | {name: [round(float(row[name]), 2) for row in rows] for name in ("TURNOVER", "WEIGHT")}


def tree(rows: dict[str, list], above: str, below: str) -> dict[str, list[str]]:
    out: dict[str, set[str]] = {}
    for parent, child in zip(rows[above], rows[below], strict=True):
        out.setdefault(parent, set()).add(child)
    return {parent: sorted(children) for parent, children in sorted(out.items())}


def test_a_total_that_does_not_nest_and_a_part_of_the_country_join_the_tables():
    rows = records()
    activities = cg.Hierarchy.from_nested(tree(rows, "A21", "A88"))
    sections = tree(rows, "A21", "A88")
    inside = [a for a in sections if "D" <= a <= "M"]
    d_to_m = cg.Hierarchy.from_nested({"D to M": inside, "others": [a for a in sections if a not in inside]})
    regions = cg.Hierarchy.from_nested(tree(rows, "NUTS1", "NUTS2"))
    asked = [
        AskedTable(name="activity by size", dimensions=("A88", "SIZE")),
        AskedTable(name="region by size", dimensions=("NUTS2", "SIZE")),
    ]
    by = {"A88": activities, "NUTS2": regions, "SIZE": None, "CJ": None}
    parts = tabulate_parts(rows, by, asked, {"turnover": "TURNOVER"})
    extra = cg.tabulate(rows, {"A21": d_to_m, "CJ": None}, "TURNOVER", name="D to M")
    parts.append(Part(name="D to M by form", table=extra, indicator="turnover", dimensions={"A21": "A88"}))
    east = {
        name: [x for x, part in zip(column, rows["NUTS1"], strict=True) if part == "FR2"]
        for name, column in rows.items()
    }
    own = cg.Hierarchy.from_nested(tree(rows, "NUTS1", "NUTS2")["FR2"], total="Total_EAST")
    part = cg.tabulate(east, {"NUTS2": own, "A88": activities, "SIZE": None}, "TURNOVER", name="east")
    parts.append(Part(name="east", table=part, indicator="turnover"))
    rules = (cg.PPercent(10), cg.MinFrequency(3, percent=10))
    found = Publication.of(
        [
            cg.Part(name=p.name, table=p.table.apply(*rules), indicator=p.indicator, dimensions=p.dimensions)
            for p in parts
        ]
    )
    assert len(found.clusters) == 1
    system = found.table
    # the extra total adds up over the sections of the first table, which knows nothing of it
    total = system.cell({"A88": "D to M"})
    assert system.values[total] == pytest.approx(sum(system.values[system.cell({"A88": a})] for a in inside))
    # the part of the country is a region of the second table: its margin by size is shared
    assert found.shared()["region by size", "east"] == (1 + len(own.leaves)) * 4
    assert found.parts[3].cells[part.cell({})] == system.cell({"NUTS2": "FR2"})
    alone = found.replace_table(system.with_(insiders=False, weights=np.ones(system.n_cells)))
    release = cg.suppress(alone, method="heuristic", rounds=0, time_limit_s=60)
    assert release.audit().safe
    assert release.tables["east"].columns()["NUTS2"][0] == "Total_EAST"
