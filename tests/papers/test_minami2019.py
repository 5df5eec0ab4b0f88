"""minami2019: table 2 within its noise, and the suppression that resists, by the command that reproduces them."""

from __future__ import annotations

import json

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.papers import Settings, get_experiment, reproduce

NAME = "minami2019-tables2to5"


def rows(report, what, **where):
    return [r for r in report.rows if r["what"] == what and all(r.get(k) == v for k, v in where.items())]


def test_shares_of_table_2_and_of_the_defence(tmp_path):
    settings = Settings(instances=("16", "25"), replications=30, seed=1)
    report = reproduce(get_experiment(NAME), settings, tmp_path)
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


def test_tables_3_and_4_and_the_share_of_exact_disclosures(tmp_path):
    """ "We are able to determine the exact values of about 40% of the unsafe cells in tables of 36 cells"."""
    settings = Settings(instances=("36",), replications=16, seed=1)
    report = reproduce(get_experiment(NAME), settings, tmp_path)
    exact = {
        reading: rows(report, "share of the unsafe of width 0", cells=36, suppression=reading)[0]
        for reading in ("deterministic", "order by data")
    }
    assert exact["order by data"]["paper"] == pytest.approx(75 / 190)
    assert abs(exact["order by data"]["difference"]) < 0.15
    assert exact["deterministic"]["ours"] < exact["order by data"]["ours"]  # a fixed order leaks less exactly
    by_dimension = [
        rows(report, f"unsafe share, null space of dimension {d}", cells=36, suppression="order by data")
        for d in (1, 2, 3, 4)
    ]
    shares = [row[0]["ours"] for row in by_dimension if row]
    assert len(shares) >= 2
    assert min(shares) > 0.4  # printed: 1.00, .87, .78, .82


def test_figure_7_candidates_grow_with_the_dimension_of_the_null_space(tmp_path):
    report = reproduce(get_experiment("minami2019-figure7"), Settings(instances=("25", "36"), seed=1), tmp_path)
    for cells in (25, 36):
        medians = {r["dimension"]: r["ours"] for r in rows(report, "median", cells=cells) if r["tables"] >= 5}
        assert len(medians) >= 3
        ordered = [medians[d] for d in sorted(medians)]
        assert ordered == sorted(ordered)
        assert ordered[-1] > 20 * ordered[0]
        boxes = rows(report, "most", cells=cells)
        assert all(box["ours"] >= medians.get(box["dimension"], 0) for box in boxes)


def test_command_goes_on_where_it_stopped(tmp_path, capsys):
    words = ["reproduce", NAME, "--instances", "16", "--replications", "2", "--out", str(tmp_path), "--json", "--quiet"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["computed"] == 2
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0


def test_sizes_are_square():
    with pytest.raises(InputError, match="square"):
        get_experiment(NAME).units(Settings(instances=("17",)))
