"""minami2019: table 2 within its noise, and the suppression that resists, by the command that reproduces them."""

from __future__ import annotations

import json

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.experiments import Settings, experiment, reproduce

NAME = "minami2019-tables2to5"


def rows(report, what, **where):
    return [r for r in report.rows if r["what"] == what and all(r.get(k) == v for k, v in where.items())]


def test_shares_of_table_2_and_of_the_defence(tmp_path):
    settings = Settings(instances=("16", "25"), replications=30, seed=1)
    report = reproduce(experiment(NAME), settings, tmp_path)
    for cells in (16, 25):
        leaks = rows(report, "unsafe share", cells=cells, suppression="deterministic")[0]
        assert abs(leaks["difference"]) <= 0.10
        primaries = rows(report, "share of primaries", cells=cells, suppression="deterministic")[0]
        assert abs(primaries["difference"]) <= 0.03
        assert rows(report, "not finished", cells=cells, suppression="deterministic")[0]["ours"] == 0
        excluded = rows(report, "unsafe share", cells=cells, attacker="excludes the impossible")[0]
        assert excluded["ours"] == 0.0
        weighed = rows(report, "unsafe share", cells=cells, attacker="weighs probabilities")[0]
        assert 0.1 < weighed["ours"] < leaks["ours"] + 0.1
        assert rows(report, "price: more cells suppressed", cells=cells)[0]["ours"] <= 0.03
    # table 4: no width of 4 is left when no count is zero, and most of the narrow are 3 wide
    assert rows(report, "share of the unsafe of width 4", cells=25, suppression="at least one")[0]["ours"] < 0.05
    assert rows(report, "share of the unsafe of width 3", cells=25, suppression="at least one")[0]["ours"] > 0.25


def test_command_goes_on_where_it_stopped(tmp_path, capsys):
    words = ["reproduce", NAME, "--instances", "16", "--replications", "2", "--out", str(tmp_path), "--json", "--quiet"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["computed"] == 2
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0


def test_sizes_are_square():
    with pytest.raises(InputError, match="square"):
        experiment(NAME).units(Settings(instances=("17",)))
