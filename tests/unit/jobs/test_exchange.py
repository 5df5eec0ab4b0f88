"""What other systems read, and what the office keeps."""

from __future__ import annotations

import csv
import re

import pytest

from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.definition.read import JobError
from cellguard.jobs.runner import run


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def made(office):
    path = office / "job.toml"
    text = path.read_text().replace('["csv", "parquet", "xlsx", "jj"]', '["csv", "sdmx", "px"]')
    text = text.replace("[method]", '[[rules]]\nrule = "min_frequency"\nn = 3\npercent = 10\n\n[method]')
    path.write_text(text.replace("[output]", '[output]\ndataflow = "XX:T(1.0)"'))
    return run(read_job(path))


def test_sdmx_has_one_code_for_everybody_and_the_reasons_for_the_office(made):
    public = rows(made.folder / "public" / "small.sdmx.csv")
    internal = rows(made.folder / "internal" / "small.sdmx.csv")
    hidden = made.release.suppressed.tolist()
    assert list(public[0]) == ["DATAFLOW", "region", "sector", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"]
    assert {row["DATAFLOW"] for row in public} == {"XX:T(1.0)"}
    for row, own, withheld in zip(public, internal, hidden, strict=True):
        assert (row["OBS_VALUE"] == "") == withheld
        assert (row["OBS_STATUS"] == "Q") == withheld
        assert row["CONF_STATUS"] == ("C" if withheld else "F")
        assert own["OBS_VALUE"] != ""
    told = [row["CONF_STATUS"] for row in internal]
    assert [c == "D" for c in told] == made.release.secondary.tolist()
    assert set(told) <= {"F", "A", "M", "D"}
    assert "A" in told


def test_internal_cells_tell_rules_and_whom_a_secondary_protects(made):
    kept = made.folder / "internal" / "cells.csv"
    assert kept.stat().st_mode & 0o077 == 0
    found = rows(kept)
    table = made.release.table
    for i, row in enumerate(found):
        assert float(row["true_value"]) == table.values[i]
        assert bool(row["rules"]) == bool(table.sensitive[i])
    helpers = [row["protects"] for i, row in enumerate(found) if made.release.secondary[i]]
    assert any(helpers)
    assert not any(row["protects"] for i, row in enumerate(found) if not made.release.secondary[i])
    sensitive = {table.label(int(i)) for i in table.sensitive_cells}
    assert all(helpers)
    for text in helpers:
        assert set(re.findall(r"\([^()]*\)", text)) <= sensitive


def test_px_has_the_cross_product_and_marks(made):
    text = (made.folder / "public" / "small.px").read_text()
    data = text.partition("DATA=")[2].replace(";", "").split()
    assert len(data) == made.release.table.n_cells
    assert [entry == '".."' for entry in data] == made.release.suppressed.tolist()
    assert 'STUB="region";' in text
    assert 'CODES("sector")=' in text


def test_two_numbers_do_not_fit_before_any_work_is_done(office):
    path = office / "job.toml"
    text = path.read_text().replace('name = "suppress"\nrounds = 2', 'name = "intervals"')
    path.write_text(text.replace('["csv", "parquet", "xlsx", "jj"]', '["px", "sdmx"]'))
    with pytest.raises(JobError, match="px holds one number") as error:
        read_job(path)
    assert len(error.value.mistakes) == 2
    assert main(["protect", str(path), "--dry-run"]) == 1


def test_the_internal_report_shows_true_values(made):
    page = (made.folder / "internal" / "report.html").read_text()
    public = (made.folder / "public" / "report.html").read_text()
    cell = int(made.release.table.sensitive_cells[0])
    shown = f">{made.release.table.values[cell]:,.0f}</td>"
    assert shown in page
    assert shown not in public
