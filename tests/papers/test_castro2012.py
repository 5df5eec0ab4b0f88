"""castro2012: who knows levels and senses recomputes L1 tables; who guesses them does not (tables 2 to 9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.experiments import Settings, experiment, reproduce
from cellguard.experiments._csplib import missing_csplib

NAME = "castro2012-tables2to9"
INSTANCES = ("hier13", "targus", "table1")
pytestmark = pytest.mark.skipif(bool(missing_csplib(INSTANCES)), reason="CSPLIB is not here")


def test_distributions_come_out_like_the_papers(tmp_path: Path) -> None:
    report = reproduce(experiment(NAME), Settings(instances=INSTANCES), tmp_path)
    assert len(report.rows) == 3 * 2 * 4 * 8
    for row in report.rows:
        known = row["scenario"] in ("B3", "C")
        if row["what"] == "0" and known and row["norm"] == "l1":
            assert row["ours"] == 100.0
        if row["what"] == "0" and not known:
            assert row["ours"] == 0.0
        if not known and row["norm"] == "l1" and row["instance"] != "targus":  # which has 13 sensitive cells
            assert abs(row["difference"]) <= 8.0, row


def test_another_reading_is_kept_apart(tmp_path: Path) -> None:
    settings = Settings(instances=("targus",), replications=1)
    printed = Settings(instances=("targus",), replications=1, options={"level_error": "0.2"})
    assert reproduce(experiment(NAME), settings, tmp_path).computed == 8
    assert reproduce(experiment(NAME), printed, tmp_path).computed == 8
    assert reproduce(experiment(NAME), settings, tmp_path).computed == 0


@pytest.mark.parametrize(
    ("option", "error"),
    [("level_eror=0.2", UnknownCodeError), ("level_error=much", InputError), ("level_in_c=both", InputError)],
)
def test_wrong_options(option: str, error: type[Exception], tmp_path: Path, capsys) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(error):
        reproduce(experiment(NAME), Settings(instances=("targus",), options={name: value}), tmp_path)
    assert main(["reproduce", NAME, "--option", option, "--out", str(tmp_path)]) == 1
    assert main(["reproduce", NAME, "--option", name, "--out", str(tmp_path)]) == 1
    assert main(["reproduce", "castro2004-table2", "--option", option, "--out", str(tmp_path)]) == 1
