"""What a job of a publication wrote is audited and verified again from the files alone, respondents included."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from builders import REGIONS, convert_to_rows, write_columns, write_job
from cellguard.cli import main
from cellguard.jobs.definition.read import read_job
from cellguard.jobs.flags import flag_job
from cellguard.jobs.tables import tabulate_job
from cellguard.model.levels import add_respondents, list_attackers
from cellguard.web.routes.released import read_released_cells


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
    # those of the records, all of them: larger contributors of the same cells stand for smaller ones, and those who leave
    # slack for every level nearby are one attacker
    file = read_job(office / "job.toml")
    people = list_attackers(add_respondents(flag_job(tabulate_job(file), file)))
    assert found["attackers"] == [a.name for a in people]
    assert found["attackers"] == ["external", *(f"insider {k}" for k in range(1, 10)), "other contributors"]


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
        rows = convert_to_rows(file)
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
    records = convert_to_rows(office / "firms.csv")
    return str(sum(int(r["turnover"]) for r in records if all(r[d] in codes for d, codes in wanted.items())))


# ---------------------------------------------------------------- a ready file with several columns of values


INDICATORS = ("turnover", "domestic", "exports")


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(1)
    parts = {name: rng.integers(20, 200, (3, 3)) for name in INDICATORS[1:]} | {"n": rng.integers(1, 7, (3, 3))}
    parts["turnover"] = parts["domestic"] + parts["exports"]
    whole = {
        name: np.pad(x, (0, 1)) + np.pad(x.sum(0)[None], ((3, 0), (0, 1))) + np.pad(x.sum(1)[:, None], ((0, 1), (3, 0)))
        for name, x in parts.items()
    }
    for x in whole.values():
        x[3, 3] = x[:3, :3].sum()
    regions, sizes = ["N", "S", "E", "Total"], ["small", "mid", "large", "Total"]
    codes = {"region": np.repeat(regions, 4), "size": np.tile(sizes, 4)}
    order = rng.permutation(16)  # rows come in any order, and go back in it
    columns = codes | {name: x.ravel() for name, x in whole.items()}
    write_columns(folder / "cells.csv", {name: column[order] for name, column in columns.items()})
    return folder


def protect_wide(folder: Path, method: str) -> Path:
    write_job(
        folder, "region", "size", name="wide", equations=["turnover = domestic + exports"], data={},
        indicators=[{"name": name, "value": name} for name in INDICATORS],
        tables=[{"name": "cells", "file": "cells.csv", "dimensions": ["region", "size"], "count": "n"}],
        rules=[{"rule": "min_frequency", "n": 3, "percent": 10}], method={"name": method},
        output={"folder": method, "formats": ["csv", "xlsx"]},
    )  # fmt: skip
    assert main(["protect", str(folder / "job.toml"), "--again", "--quiet"]) == 0
    return folder / method / "public"


@pytest.mark.parametrize(
    ("method", "told"), [("suppress", ("_status", "")), ("intervals", ("_lower", "_upper")), ("adjust", ("",))]
)
def test_a_file_with_several_indicators_comes_back_as_one(wide, method, told, capsys):
    public = protect_wide(wide, method)
    assert {path.name for path in public.glob("*.csv")} == {"cells.csv"}
    rows, came = convert_to_rows(public / "cells.csv"), convert_to_rows(wide / "cells.csv")
    assert list(rows[0]) == ["region", "size", *(f"{name}{word}" for name in INDICATORS for word in told)]
    shown, listed = ([(row["region"], row["size"]) for row in one] for one in (rows, came))
    assert shown != listed  # the order of the input may follow its values
    assert shown == sorted(listed, key=lambda codes: [(code != "Total", code) for code in codes])
    capsys.readouterr()
    assert main(["audit", str(wide / "job.toml"), str(public), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "safe"


def test_what_one_indicator_of_a_file_tells_too_much_is_found(wide, tmp_path, capsys):
    public = protect_wide(wide, "suppress")
    rows, came = convert_to_rows(public / "cells.csv"), convert_to_rows(wide / "cells.csv")
    hidden = next(k for k, row in enumerate(rows) if row["exports_status"] == "withheld")
    rows[hidden]["exports"] = came[hidden]["exports"]
    write_columns(tmp_path / "cells.csv", {name: [row[name] for row in rows] for name in rows[0]})
    capsys.readouterr()
    assert main(["audit", str(wide / "job.toml"), str(tmp_path)]) != 0
    assert "has a value next to the mark" in capsys.readouterr().err
    rows[hidden]["exports"], rows[hidden]["secret"] = "", came[hidden]["exports"]
    names = {name: [row.get(name, "0") for row in rows] for name in [*rows[0], "secret"]}
    write_columns(tmp_path / "cells.csv", names)
    assert main(["audit", str(wide / "job.toml"), str(tmp_path)]) != 0
    assert "'secret'" in capsys.readouterr().err


def test_the_page_reads_each_indicator_from_its_columns(wide):
    public = protect_wide(wide, "suppress")
    file = read_job(wide / "job.toml")
    table = flag_job(tabulate_job(file), file)
    shown, _ = read_released_cells(table, public, file.job)
    rows = convert_to_rows(public / "cells.csv")
    for part in table.parts:
        column = part.name_sheet_column("value")
        assert [shown[cell].replace(",", "") for cell in part.cells[part.rows()]] == [
            row[column] or "x" for row in rows
        ]


# ---------------------------------------------------------------- linked tables of one value


def test_a_folder_of_linked_tables_is_audited_with_all_its_files(office, tmp_path, capsys):
    job = write_job(
        tmp_path, "region", "sector", "size", name="linked", data={"file": str(office / "firms.csv"), "value": "turnover"},
        tables=[{"name": "sectors", "dimensions": ["region", "sector"]}, {"dimensions": ["region", "size"]}],
        rules=[{"rule": "min_frequency", "n": 3, "percent": 10}], output={"folder": "out", "formats": ["csv", "sdmx"]},
    )  # fmt: skip
    assert main(["protect", str(job), "--quiet"]) == 0
    public = tmp_path / "out" / "public"
    capsys.readouterr()
    assert main(["audit", str(job), str(public), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checked"] > 3
    rows = convert_to_rows(public / "sectors.csv")
    hidden = next(row for row in rows if row["status"] == "withheld")
    firms = convert_to_rows(office / "firms.csv")
    mine = [row for row in firms if all(hidden[d] in (row[d], "Total") for d in ("region", "sector"))]
    hidden["status"], hidden["value"] = "published", str(sum(int(row["turnover"]) for row in mine))
    write_columns(public / "sectors.csv", {name: [row[name] for row in rows] for name in rows[0]})
    assert main(["audit", str(job), str(public), "--json"]) != 0  # another file withholds it
    (public / "linked.csv").unlink()
    capsys.readouterr()
    assert main(["audit", str(job), str(public)]) == 1
    assert "no file in it has all cells" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cells.parquet", "cells exports.csv"])
def test_every_file_of_a_table_is_read(wide, tmp_path, name):
    """The first file that was found was read, and another beside it was not."""
    public = protect_wide(wide, "suppress")
    shutil.copy(public / "cells.csv", tmp_path)
    assert main(["audit", str(wide / "job.toml"), str(tmp_path), "--quiet"]) == 0
    came = pd.read_csv(wide / "cells.csv").drop(columns="n")
    if name.endswith("parquet"):
        came.to_parquet(tmp_path / name)
    else:
        came.rename(columns={"exports": "value"})[["region", "size", "value"]].to_csv(tmp_path / name, index=False)
    assert main(["audit", str(wide / "job.toml"), str(tmp_path), "--quiet"]) != 0
