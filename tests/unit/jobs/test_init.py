import tomllib

import pytest

from cellguard.cli import main
from cellguard.jobs import read_job


def test_from_a_data_file_to_a_report(office, capsys):
    """What a new user does: init, look at the plan, protect, open the report."""
    (office / "job.toml").unlink()
    assert main(["init", str(office / "firms.csv")]) == 0
    assert main(["protect", str(office / "job.toml"), "--dry-run"]) == 0
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 0
    job = read_job(office / "job.toml")
    assert job.job.data.value == "turnover"
    assert list(job.job.dimensions) == ["region", "sector"]
    assert job.job.dimensions["region"].hierarchy == "region.txt"
    assert (job.folder / "public" / "report.html").is_file()


def test_an_existing_job_is_kept(office, capsys):
    before = (office / "job.toml").read_text()
    assert main(["init", str(office / "firms.csv")]) == 1
    assert "already there" in capsys.readouterr().err
    assert (office / "job.toml").read_text() == before
    assert main(["init", str(office / "firms.csv"), "--force"]) == 0


def test_counts_when_there_is_no_amount(tmp_path):
    (tmp_path / "people.csv").write_text("sex,age\n" + "f,old\nm,young\nf,young\nm,old\n" * 10)
    assert main(["init", str(tmp_path / "people.csv")]) == 0
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert "value" not in job["data"]
    assert job["rules"] == [{"rule": "min_frequency", "n": 3, "percent": 100}]


def test_strange_names_are_quoted(tmp_path):
    (tmp_path / "d ä.csv").write_text('"a ""b"" [c]",amount\n' + "".join(f"x{i % 3},{i}.5\n" for i in range(60)))
    assert main(["init", str(tmp_path / "d ä.csv")]) == 0
    assert list(tomllib.loads((tmp_path / "job.toml").read_text())["dimensions"]) == ['a "b" [c]']


@pytest.mark.parametrize("text", ["", "only,a,head\n", "id,amount\n1,2.5\n2,3.5\n"])
def test_data_without_anything_to_tabulate(tmp_path, text, capsys):
    (tmp_path / "data.csv").write_text(text)
    assert main(["init", str(tmp_path / "data.csv")]) == 1
    assert main(["init"]) == 1


def test_semicolons_decimal_commas_and_latin_letters(tmp_path, capsys):
    lines = [f"{i};{'Süd' if i % 3 else 'Nord'};{'47' if i % 2 else '10'};{i * 7 % 90},5;G{i // 2}" for i in range(200)]
    (tmp_path / "betriebe.csv").write_bytes("\n".join(["Nr;Region;NACE;Umsatz;Gruppe", *lines]).encode("latin-1"))
    assert main(["init", str(tmp_path / "betriebe.csv")]) == 0
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert job["data"] == {"file": "betriebe.csv", "value": "Umsatz", "holding": "Gruppe", "decimal": ","}
    assert list(job["dimensions"]) == ["Region", "NACE"]
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 0


def test_gaps_are_seen_and_dealt_with(tmp_path, capsys):
    rows = [
        f'"{"Nord" if i % 3 else "Süd"}";{"" if i == 7 else "1-9" if i % 2 else "250+"};'
        f"{'' if i == 5 else str(i * 7 % 90) + ',5'};{'G' if i % 9 == 0 else ''};{10 + i % 4}"
        for i in range(120)
    ]
    text = "\r\n".join(["Bundesland;Größe;Umsatz (Tsd. €);Konzern;WZ", *rows]) + "\r\n"
    (tmp_path / "betriebe 2025.csv").write_bytes(text.encode("utf-8-sig"))
    assert main(["init", str(tmp_path / "betriebe 2025.csv")]) == 0
    written = (tmp_path / "job.toml").read_text()
    job = tomllib.loads(written)
    assert job["data"]["skip_missing"] is True
    assert job["data"]["standalone"] is True
    assert job["dimensions"]["Größe"] == {"missing": ["unknown"]}
    assert "# digits = [1, 1]" in written
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 0
