import csv
import json
import re

import pytest

from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.flags import flag_job
from cellguard.jobs.tables import tabulate_job


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert main(["demo", "--out", str(folder), "--no-compare", "--quiet"]) == 0
    return folder


def numbers_in(text):
    """Every number of a text, however its thousands are set apart."""
    return {float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def test_the_release_is_safe_and_complete(demo, capsys):
    assert main(["verify", str(demo / "release" / "internal" / "manifest.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    audit = json.loads((demo / "release" / "internal" / "audit.json").read_text())
    assert audit["safe"]
    assert audit["checked"] > 10


def test_the_internal_report_counts_respondents_and_lists_no_range_of_theirs(demo):
    page = (demo / "release" / "internal" / "report.html").read_text()
    assert "respondents cannot infer it more precisely than its levels allow" in page
    assert "Range against insider" not in page
    assert "respondents can compute" not in (demo / "release" / "public" / "report.html").read_text()


def test_public_files_hold_no_value_of_a_sensitive_cell(demo):
    file = read_job(demo / "job.toml")
    table = flag_job(tabulate_job(file), file)
    with (demo / "release" / "public" / "turnover.csv").open(newline="") as stream:
        published = {float(row["value"]) for row in csv.DictReader(stream) if row["value"]}
    secret = set(table.values[table.sensitive].tolist()) - published
    assert len(secret) > 10
    seen = set()
    for name in ("turnover.csv", "report.html", "manifest.json"):
        seen |= numbers_in((demo / "release" / "public" / name).read_text())
    innocent = set(range(2000))  # sizes of the page, shares, colours
    assert not (secret & seen) - innocent


def test_witnesses_prove_the_release(demo, capsys):
    internal, public = demo / "release" / "internal", demo / "release" / "public"
    words = [
        "verify",
        str(internal / "turnover.jj.gz"),
        str(public / "turnover.csv"),
        str(internal / "witnesses.json.gz"),
    ]
    codes = (public / "turnover.csv").read_text().splitlines()[0].split(",")[:-2]
    ignored = [word for code in codes for word in ("--ignore", code)]  # a JJ file knows no codes
    assert main([*words, *ignored, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"]


def test_what_is_shown(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "d"), "--no-compare", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "independent audit: safe." in " ".join(shown.split())
    assert "public/report.html" in shown
