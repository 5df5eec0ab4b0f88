"""A job from its file to its release: methods, rules, attacks, plans."""

import json

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest

from builders import convert_to_rows, write_job
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.outputs.manifest import check_manifest
from cellguard.jobs.runner import UnsafeReleaseError, run
from cellguard.release.release import UNSAFE, Suppression


def _protect_badly(table, job, tell, **_):
    """A method that forgets to protect: only the sensitive cells are withheld."""
    from cellguard.release.release import Status

    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive.copy())


def test_nothing_unsafe_leaves(office, monkeypatch, capsys):
    monkeypatch.setattr("cellguard.jobs.runner.protect_table", _protect_badly)
    with pytest.raises(UnsafeReleaseError, match="the audit refuses"):
        run(read_job(office / "job.toml"))
    assert not (office / "out" / "public").exists()
    assert not (office / "out" / "internal").exists()
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 2


def test_allow_unsafe_is_recorded_in_every_output(office, monkeypatch):
    monkeypatch.setattr("cellguard.jobs.runner.protect_table", _protect_badly)
    run(read_job(office / "job.toml"), allow_unsafe=True)
    public = office / "out" / "public"
    assert {row["warning"] for row in convert_to_rows(public / "UNSAFE-small.csv")} == {UNSAFE}
    assert set(pq.read_table(public / "UNSAFE-small.parquet")["warning"].to_pylist()) == {UNSAFE}
    sheet = openpyxl.load_workbook(public / "UNSAFE-small.xlsx").active
    assert {row[-1].value for row in list(sheet.iter_rows())[1:]} == {UNSAFE}
    for report in (public / "report.html", office / "out" / "internal" / "report.html"):
        assert "NOT SAFE" in report.read_text()
    for manifest in (public / "manifest.json", office / "out" / "internal" / "manifest.json"):
        assert json.loads(manifest.read_text())["unsafe"] is True
        assert not check_manifest(manifest)["accepted"]


def test_dry_run_writes_nothing(office, capsys):
    assert main(["protect", str(office / "job.toml"), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cells"] == 35
    assert plan["sensitive"] > 0
    assert not (office / "out").exists()


def test_report_option_and_json(office, capsys):
    assert main(["protect", str(office / "job.toml"), "--json", "--report", str(office / "r.html")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["audit"]["safe"] is True
    assert (office / "r.html").read_text() == (office / "out" / "public" / "report.html").read_text()


@pytest.mark.parametrize("method", ["adjust", "intervals", "round", "perturb"])
def test_every_method(office, method):
    text = (office / "job.toml").read_text().replace('name = "suppress"\nrounds = 2', f'name = "{method}"')
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert outcome.release.method == method
    if method == "adjust":  # decimals would tell which of the whole numbers moved
        assert np.array_equal(outcome.release.values, np.rint(outcome.release.values))
    assert outcome.audit.safe
    assert (office / "out" / "public" / "small.csv").is_file()


def test_rules_levels_and_attackers_of_the_job(office):
    text = (
        (office / "job.toml")
        .read_text()
        .replace(
            "[method]",
            '[[rules]]\nrule = "manual"\ncells = [{region = "North"}]\npercent = 5\n[[rules]]\nrule = "min_frequency"\nn = 3\n'
            '[[attackers]]\nname = "a firm"\nknows = [{cell = {region = "N1", sector = "A"}, contribution = 1.0}]\n[method]',
        )
    )
    (office / "job.toml").write_text(text)
    table = run(read_job(office / "job.toml")).release.table
    assert table.sensitive[table.cell({"region": "North"})]
    assert [a.name for a in table.attackers if not a.derived] == ["external", "a firm"]
    assert any(a.derived for a in table.attackers)  # respondents join, unless told otherwise
    assert "a firm" not in (office / "out" / "public" / "report.html").read_text()


def test_a_table_instead_of_records(office):
    table = run(read_job(office / "job.toml")).release.table
    table.write(office / "cells.jj.gz")
    (office / "job.toml").write_text(
        'name = "cells"\n[data]\ntable = "cells.jj.gz"\n[method]\nrounds = 0\n[output]\nfolder = "o2"\n'
    )
    outcome = run(read_job(office / "job.toml"))
    assert np.array_equal(outcome.release.table.values, table.values)
    assert outcome.audit.safe


def test_attack_and_comparison_of_a_job(office):
    text = (office / "job.toml").read_text().replace('name = "suppress"\nrounds = 2', 'name = "adjust"')
    text += '[attack]\nscenario = "B2"\nreplications = 2\n[compare]\nmethods = ["round"]\n'
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert [row["method"] for row in outcome.comparison.rows] == ["adjust", "round"]
    internal = (office / "out" / "internal" / "report.html").read_text()
    assert "Errors of the attacker's estimates" in internal
    assert "Other methods on the same table" in internal
    assert "Attack on the release" not in (office / "out" / "public" / "report.html").read_text()


@pytest.mark.parametrize(
    ("method", "attack"),
    [
        ('name = "round"', 'scenario = "nearest"\ncells = 2'),
        ('name = "intervals"', 'scenario = "sets"\ncells = 2'),
        ('name = "adjust"', 'scenario = "B3"\nreplications = 1\nbeta = 0.9\nsoft = false'),
    ],
)
def test_options_of_an_attack_are_taken_from_the_job(office, method, attack):
    text = (office / "job.toml").read_text().replace('name = "suppress"\nrounds = 2', method)
    (office / "job.toml").write_text(f"{text}[attack]\n{attack}\n")
    found = run(read_job(office / "job.toml")).attack
    if "beta" in attack:
        assert found.beta == 0.9
    else:
        assert len(found.cells) == 2


@pytest.mark.parametrize("search", ["exact", "auto"])
def test_a_pattern_with_a_proof(office, search):
    text = (office / "job.toml").read_text().replace("rounds = 2", f'search = "{search}"')
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert str(outcome.release.status) == "optimal"
    assert outcome.audit.safe
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["options"]["method"] == search
    assert manifest["repeatable"] is True
    assert manifest["not_hashed"].keys() == {"report.html", "timing.json"}


def job_of_counts(folder, counts, attack=None, **method):
    lines = [f"t{i},a{j}" for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    (folder / "people.csv").write_text("\n".join(["town,age", *lines]))
    return write_job(
        folder, "town", "age", name="people", insiders=False, data={"file": "people.csv"},
        rules=[{"rule": "min_frequency", "n": 5}], levels={"width": 8}, method=method | {"weights": "unit"},
        attack=attack or {"scenario": "matching"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "knows"),
    [({"resist": "matching"}, "mechanism"), ({"search": "exact"}, "algorithm"), ({"search": "heuristic"}, "rule")],
)
def test_matching_attack_of_a_job(tmp_path, method, knows, capsys):
    counts = [[3, 12, 9, 14], [11, 4, 13, 10], [12, 9, 15, 8], [10, 11, 7, 2]]
    job = job_of_counts(tmp_path, counts, **method)
    assert main(["protect", str(job), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)["attack"]
    assert found["knows"] == knows
    assert found["primary"] == 3
    if knows == "mechanism":
        assert found["unsafe"] == 0
        assert {row["status"] for row in convert_to_rows(tmp_path / "out" / "public" / "people.csv")} == {
            "withheld",
            "published",
        }
    assert "matching attack" not in (tmp_path / "out" / "public" / "report.html").read_text()
    assert "mechanism" in (tmp_path / "out" / "internal" / "report.html").read_text() or knows != "mechanism"


def test_a_dry_run_makes_every_check_of_the_method(office, capsys):
    """What the method would refuse is told before the work, and so is that nothing is possible."""
    path = office / "job.toml"
    text = path.read_text().replace('name = "suppress"\nrounds = 2', 'name = "round"\nbase = 0.001')
    path.write_text(text)
    assert main(["protect", str(path), "--dry-run"]) == 1
    assert "base" in capsys.readouterr().err


def test_attack_by_weighing_of_a_job(tmp_path):
    counts = [[2, 9, 8], [9, 9, 9], [8, 9, 3]]
    attack = {"scenario": "weighing", "share": 0.5, "draws": 20, "sample": 50}
    path = job_of_counts(tmp_path, counts, attack=attack, search="exact")
    found = run(read_job(path)).attack
    assert found.knows == "algorithm"
    assert found.summary()["candidates"] <= 50


def test_resistance_and_zeros_that_everybody_knows(tmp_path, capsys):
    counts = [[3, 12, 9, 0], [11, 4, 13, 10], [12, 9, 15, 8], [10, 11, 7, 2]]
    job = job_of_counts(tmp_path, counts, resist="matching")
    assert main(["protect", str(job), "--dry-run"]) == 1
    assert "known_zeros = false" in capsys.readouterr().err
    job.write_text(job.read_text().replace("[data]", "[data]\nknown_zeros = false"))
    assert main(["protect", str(job), "--dry-run"]) == 0
    assert main(["protect", str(job), "--quiet"]) == 0


def test_a_dimension_that_names_respondents_is_refused_unless_confirmed(tmp_path, capsys):
    lines = [f"F{k:03d},{'AB'[k % 2]},{50 + k}" for k in range(60)]
    (tmp_path / "firms.csv").write_text("firm,sector,turnover\n" + "\n".join(lines) + "\n")
    text = """
name = "by-firm"
[data]
file = "firms.csv"
value = "turnover"
[dimensions.firm]
[dimensions.sector]
[[rules]]
rule = "min_frequency"
n = 3
percent = 10
[method]
name = "suppress"
rounds = 0
"""
    path = tmp_path / "job.toml"
    path.write_text(text)
    for words in (["--dry-run"], ["--quiet"]):
        assert main(["protect", str(path), *words]) == 1
        assert "dimension firm: 60 of its 60 codes have a single contributor" in capsys.readouterr().err
    assert not (tmp_path / "release").exists()
    path.write_text(text.replace("[dimensions.firm]", "[dimensions.firm]\nnames_respondents = true"))
    assert main(["protect", str(path), "--dry-run"]) == 0
