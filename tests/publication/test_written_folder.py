"""What a job of a publication wrote is audited and verified again from the files alone, respondents included."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from builders import REGIONS, rows_of, write_columns, write_job
from cellguard.cli import main


@pytest.fixture(scope="module")
def office(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    rng, n = np.random.default_rng(4), 260
    codes = {"region": ["E1", "E2", "W1", "W2"], "sector": list("abcde"), "size": ["small", "middle", "large"]}
    rows = {name: rng.choice(listed, n, p=rng.dirichlet([1.2] * len(listed))) for name, listed in codes.items()}
    rows["domestic"] = rng.integers(5, 60, n)  # many of the same amounts
    rows["exports"] = rng.integers(0, 20, n)
    rows["turnover"] = rows["domestic"] + rows["exports"]
    write_columns(folder / "firms.csv", rows)
    job = write_job(
        folder, "sector", "size", name="turnover", equations=["turnover = domestic + exports"],
        data={"file": "firms.csv"}, dimensions={"region": {"hierarchy": REGIONS}},
        indicators=[{"name": name, "value": name} for name in ("turnover", "domestic", "exports")],
        tables=[
            {"name": "sectors", "dimensions": ["region", "sector"]}, {"name": "sizes", "dimensions": ["region", "size"]},
            {"name": "the East", "dimensions": ["sector", "size"], "where": {"region": "East"}},
        ],
        rules=[{"rule": "min_frequency", "n": 3, "percent": 10}], limits={"time_limit_s": 20},
    )  # fmt: skip
    assert main(["protect", str(job), "--quiet"]) == 0
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
        rows = rows_of(file)
        if file.name == "sizes turnover.csv":
            hidden = next(row for row in rows if row["status"] == "withheld")
            hidden["status"], hidden["value"] = "published", true_value(office, hidden)
        write_columns(tmp_path / file.name, {name: [row[name] for row in rows] for name in rows[0]})
    code = main(["audit", str(office / "job.toml"), str(tmp_path)])
    assert code != 0
    said = capsys.readouterr().err.replace(str(tmp_path), "")  # a folder of the tests may be called by the number
    assert true_value(office, hidden) not in said


def true_value(office: Path, row: dict[str, str]) -> str:
    wanted = {d: REGIONS.get(row[d], [row[d]]) for d in ("region", "size") if row[d] != "Total"}
    records = rows_of(office / "firms.csv")
    return str(sum(int(r["turnover"]) for r in records if all(r[d] in codes for d, codes in wanted.items())))
