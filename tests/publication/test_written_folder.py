"""What a job of a publication wrote is audited and verified again from the files alone, respondents included."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cellguard.cli import main

JOB = """
name = "turnover"
equations = ["turnover = domestic + exports"]

[data]
file = "firms.csv"

[dimensions.region]
hierarchy = {East = ["E1", "E2"], West = ["W1", "W2"]}
[dimensions.sector]
[dimensions.size]

[[indicators]]
name = "turnover"
value = "turnover"
[[indicators]]
name = "domestic"
value = "domestic"
[[indicators]]
name = "exports"
value = "exports"

[[tables]]
name = "sectors"
dimensions = ["region", "sector"]
[[tables]]
name = "sizes"
dimensions = ["region", "size"]
[[tables]]
name = "the East"
dimensions = ["sector", "size"]
where = {region = "East"}

[[rules]]
rule = "min_frequency"
n = 3
percent = 10

[method]
name = "suppress"

[limits]
time_limit_s = 20
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    rng, n = np.random.default_rng(4), 260
    codes = {"region": ["E1", "E2", "W1", "W2"], "sector": list("abcde"), "size": ["small", "middle", "large"]}
    rows = {name: rng.choice(listed, n, p=rng.dirichlet([1.2] * len(listed))) for name, listed in codes.items()}
    rows["domestic"] = rng.integers(5, 60, n)  # many of the same amounts
    rows["exports"] = rng.integers(0, 20, n)
    rows["turnover"] = rows["domestic"] + rows["exports"]
    with (folder / "firms.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(rows)
        writer.writerows(zip(*(column.tolist() for column in rows.values()), strict=True))
    (folder / "job.toml").write_text(JOB)
    assert main(["protect", str(folder / "job.toml"), "--quiet"]) == 0
    return folder


def test_the_files_are_safe_against_respondents_too(office, capsys):
    public = next(office.glob("*/public"))
    assert main(["audit", str(office / "job.toml"), str(public), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "safe"
    assert found["checked"] > 10
    assert sum(name.startswith("insider") for name in found["attackers"]) > 10


def test_people_read_how_many_respondents_there_are_not_their_names(office, capsys):
    public = next(office.glob("*/public"))
    assert main(["audit", str(office / "job.toml"), str(public)]) == 0
    printed = capsys.readouterr().out
    assert "respondents" in printed
    assert "insider" not in printed


def test_the_witnesses_prove_it_by_exact_arithmetic(office, capsys):
    public = next(office.glob("*/public"))
    witnesses = next(office.glob("*/internal/witnesses*"))
    assert main(["verify", str(office / "job.toml"), str(public), str(witnesses), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"] is True
    for manifest in office.glob("*/*/manifest.json"):
        assert main(["verify", str(manifest)]) == 0


def test_a_withheld_cell_that_one_file_prints_is_found(office, tmp_path, capsys):
    public = next(office.glob("*/public"))
    for file in public.glob("*.csv"):
        rows = list(csv.DictReader(file.read_text().splitlines()))
        if file.name == "sizes turnover.csv":
            hidden = next(row for row in rows if row["status"] == "withheld")
            hidden["status"], hidden["value"] = "published", true_value(office, hidden)
        with (tmp_path / file.name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    code = main(["audit", str(office / "job.toml"), str(tmp_path)])
    assert code != 0
    assert true_value(office, hidden) not in capsys.readouterr().err


def true_value(office: Path, row: dict[str, str]) -> str:
    below = {"East": ["E1", "E2"], "West": ["W1", "W2"]}
    wanted = {d: below.get(row[d], [row[d]]) for d in ("region", "size") if row[d] != "Total"}
    records = csv.DictReader((office / "firms.csv").read_text().splitlines())
    return str(sum(int(r["turnover"]) for r in records if all(r[d] in codes for d, codes in wanted.items())))
