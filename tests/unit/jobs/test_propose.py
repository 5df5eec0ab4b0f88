"""A publication proposed from several files, and what could not be told from them."""

import csv
import tomllib
from itertools import product

import numpy as np
import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs import read_job
from cellguard.jobs.proposal.tables import propose


def table(path, dims: dict[str, dict[str, list[int]]], cube: np.ndarray, **names: str) -> None:
    """Write a table with every margin: dimension -> code -> members of the cube's axis."""
    value, count = names.get("value", "turnover"), names.get("count", "n_obs")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*dims, value, *([count] if count else [])])
        for chosen in product(*(codes.items() for codes in dims.values())):
            members = cube[np.ix_(*(members for _, members in chosen))]
            firms = [int(members.sum()) * 2] if count else []  # the same in every table that shows the cell
            writer.writerow([*(code for code, _ in chosen), int(members.sum()), *firms])


FLAT = {"Total": [0, 1], "x": [0], "y": [1]}
NESTED = {"Total": [0, 1, 2, 3], "A": [0, 1], "A1": [0], "A2": [1], "B": [2, 3], "B1": [2], "B2": [3]}
CUBE = np.random.default_rng(1).integers(5, 90, (4, 2, 2))


def test_shared_columns_totals_and_codes_that_begin_alike(tmp_path):
    table(tmp_path / "one.csv", {"nace": NESTED, "size": FLAT}, CUBE.sum(axis=2))
    other = {("Ensemble" if code == "Total" else code): members for code, members in NESTED.items()}
    table(tmp_path / "two.csv", {"activity": other, "form": {"Total": [0, 1], "l": [0], "p": [1]}}, CUBE.sum(axis=1))
    found = propose([tmp_path / "one.csv", tmp_path / "two.csv"], tmp_path)
    job = tomllib.loads(found.text)
    assert list(job["dimensions"]) == ["nace", "size", "form"]
    assert job["dimensions"]["nace"]["hierarchy"] == {"A": ["A1", "A2"], "B": ["B1", "B2"]}
    second = job["tables"][1]
    assert (second["columns"], second["total"]) == ({"nace": "activity"}, {"nace": "Ensemble"})
    assert (second["value"], second["count"]) == ("turnover", "n_obs")
    assert found.unconfirmed == ("hierarchy of nace",)  # nobody but the codes themselves says so
    assert any("activity has the codes of nace" in line for line in found.told)


def test_a_correspondence_table_beside_the_files_says_how_codes_nest(tmp_path):
    codes = {"Total": [0, 1, 2, 3], "north": [0, 1], "17": [0], "04": [1], "south": [2, 3], "33": [2], "21": [3]}
    table(tmp_path / "one.csv", {"region": codes, "size": FLAT}, CUBE.sum(axis=2))
    table(tmp_path / "two.csv", {"region": codes}, CUBE.sum(axis=(1, 2)))
    (tmp_path / "levels.csv").write_text("part,region\nnorth,17\nnorth,04\nsouth,33\nsouth,21\nsouth,99\n")
    found = propose([tmp_path / "one.csv", tmp_path / "two.csv"], tmp_path)
    region = tomllib.loads(found.text)["dimensions"]["region"]
    assert region == {"hierarchy": "levels.csv", "levels": ["part", "region"]}
    assert found.unconfirmed == ()


def test_what_could_not_be_told_is_said_and_waits(tmp_path, capsys):
    odd = {"Total": [0, 1, 2, 3], "coast": [0, 1], "p": [0], "q": [1], "r": [2], "s": [3]}
    table(tmp_path / "one.csv", {"region": odd, "size": FLAT}, CUBE.sum(axis=2))
    table(tmp_path / "two.csv", {"size": FLAT, "form": FLAT}, CUBE.sum(axis=0) + 1, count="")
    assert main(["init", str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]) == 0
    told = capsys.readouterr().err
    assert "region: its codes do not simply add up to the total, and no file says how they nest" in told
    assert "two.csv: no column tells how many contributors a cell has" in told
    assert "does not fit: " in told
    text = (tmp_path / "job.toml").read_text()
    waiting = tomllib.loads(text)["unconfirmed"]
    assert waiting == ["contributors of two.csv", "hierarchy of region", "publication"]
    assert "# What does not fit yet:" in text
    assert main(["protect", str(tmp_path / "job.toml")]) == 1
    assert "have not been confirmed" in capsys.readouterr().err


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "a.csv").write_text("part,region\nnorth,n1\nnorth,n2\nsouth,s1\n")
    (tmp_path / "b.csv").write_text("part,size\nx,x1\nx,x2\n")
    with pytest.raises(InputError, match="none of the files is a table"):
        propose([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path)
    (tmp_path / "c.csv").write_text("x,y\n1,2.5\n3,4\n")
    with pytest.raises(InputError, match=r"c.csv: there is no column of codes"):
        propose([tmp_path / "c.csv", tmp_path / "c.csv"], tmp_path)


def test_records_with_their_correspondence_tables_are_told_apart_by_content(tmp_path, capsys):
    lines = [f"{k % 6 + 10},{'LMH'[k % 3]},{k * 7 % 90 + 1}" for k in range(240)]
    (tmp_path / "firms.csv").write_text("branch,size,turnover\n" + "\n".join(lines) + "\n")
    nests = "sector,branch\n" + "".join(f"{'AB'[k // 3]},{k + 10}\n" for k in range(6))
    (tmp_path / "branches.csv").write_text(nests)
    (tmp_path / "colours.csv").write_text("hue,shade\nred,pink\nred,crimson\nblue,navy\n")
    files = [str(tmp_path / name) for name in ("branches.csv", "colours.csv", "firms.csv")]
    assert main(["init", *files]) == 0
    told = capsys.readouterr().err
    assert "colours.csv: no column of the records has its codes" in told
    job = read_job(tmp_path / "job.toml").job
    assert job.data.file == "firms.csv"
    assert job.dimensions["branch"].hierarchy == "branches.csv"
    assert job.dimensions["branch"].levels == ["sector", "branch"]
    assert not job.tables
    (tmp_path / "branches.csv").write_text(nests.replace(",10", ",010").replace("A,", "AA,"))
    assert main(["init", *files, "--force"]) == 0
    assert "branches.csv: branch has 10 for 010 (leading zeros lost?)" in capsys.readouterr().err
    branch = read_job(tmp_path / "job.toml").job.dimensions["branch"]
    assert branch.leading_zeros
    assert branch.hierarchy == "branches.csv"
    text = (tmp_path / "job.toml").read_text()
    (tmp_path / "job.toml").write_text(f'nothing_sensitive = "publish"\n{text}')
    assert main(["protect", str(tmp_path / "job.toml")]) == 0
    public = (tmp_path / "firms-release" / "public" / "firms.csv").read_text()
    assert "\n010," in public
    assert "\n10," not in public


def test_a_correspondence_table_that_lacks_codes_is_offered_with_what_to_do(tmp_path, capsys):
    lines = [f"{k % 6 + 10},{'LMH'[k % 3]},{k * 7 % 90 + 1}" for k in range(240)]
    (tmp_path / "firms.csv").write_text("branch,size,turnover\n" + "\n".join(lines) + "\n")
    (tmp_path / "branches.csv").write_text("sector,branch\n" + "".join(f"{'AB'[k // 3]},{k + 10}\n" for k in range(5)))
    assert main(["init", str(tmp_path / "firms.csv"), str(tmp_path / "branches.csv")]) == 0
    assert "branches.csv: lacks the codes 15 of branch; it is not used. Add a row for each" in capsys.readouterr().err
    text = (tmp_path / "job.toml").read_text()
    assert '# hierarchy = "branches.csv"\n# levels = ["sector", "branch"]\n' in text
    assert read_job(tmp_path / "job.toml").job.dimensions["branch"].hierarchy is None


def test_dimensions_with_a_correspondence_table_are_all_used_in_linked_tables(tmp_path, capsys):
    rng = np.random.default_rng(3)
    rows = [(f"{a:02}", f"R{r:02}", "LMH"[s], v) for a, r, s, v in rng.integers(1, (41, 31, 3, 900), (900, 4))]
    (tmp_path / "firms.csv").write_text(
        "activity,area,size,turnover\n" + "".join(f"{a.lstrip('0')},{r},{s},{v}\n" for a, r, s, v in rows)
    )
    (tmp_path / "act.csv").write_text("part,activity\n" + "".join(f"P{k % 4},{k:02}\n" for k in range(1, 41)))
    (tmp_path / "areas.csv").write_text("land,area\n" + "".join(f"L{k % 5},R{k:02}\n" for k in range(1, 31)))
    assert main(["init", *(str(tmp_path / name) for name in ("firms.csv", "act.csv", "areas.csv"))]) == 0
    assert "linked tables, because one with all dimensions would have too many cells" in capsys.readouterr().err
    job = read_job(tmp_path / "job.toml").job
    assert {d.hierarchy for d in job.dimensions.values()} == {"act.csv", "areas.csv", None}
    assert sorted(map(sorted, (t.dimensions for t in job.tables))) == [["activity", "size"], ["area", "size"]]


@pytest.mark.parametrize("name", ["Total", "National figure"])
def test_a_total_among_records_is_asked_about(tmp_path, capsys, name):
    rows = [("NSEW"[k % 4], "LMH"[k % 3], k * 7 % 90 + 1) for k in range(300)]
    lines = [f"{r},{s},{t}" for r, s, t in rows]
    lines.append(f"{name},L,{sum(t for *_, t in rows)}")
    (tmp_path / "firms.csv").write_text("region,size,turnover\n" + "\n".join(lines) + "\n")
    assert main(["init", str(tmp_path / "firms.csv")]) == 0
    assert f"region: 1 row has the code {name!r}, which looks like a total" in capsys.readouterr().err
    job = read_job(tmp_path / "job.toml").job
    assert job.data.file == "firms.csv"
    assert job.unconfirmed == ["totals in region"]
    assert main(["protect", str(tmp_path / "job.toml")]) == 1  # waits for an answer
    assert "totals in region" in capsys.readouterr().err
