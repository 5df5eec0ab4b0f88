"""The five methods side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.datasets.examples import salazar2004_figure1
from cellguard.exceptions import UnknownCodeError
from cellguard.methods.options import suggest_base
from cellguard.methods.registry import METHODS


@pytest.fixture
def table() -> cg.Table:
    t = salazar2004_figure1()
    return t.with_(lower=np.where(t.sensitive, 1.0, 0.0), upper=np.where(t.sensitive, 3.0, 0.0))


def test_all_five_are_safe_and_measured_alike(table: cg.Table) -> None:
    found = cg.compare(table, time_limit_s=10)
    assert [row["method"] for row in found.rows] == list(METHODS)
    assert all(row["safe"] for row in found.rows)
    by = {row["method"]: row for row in found.rows}
    assert by["suppress"]["hidden_pct"] == 25.0
    assert by["adjust"]["hidden_pct"] == 0.0
    assert np.isnan(by["adjust"]["range_pct"])
    assert all(by[m]["range_to_level"] >= 1 - 1e-6 for m in METHODS if m != "adjust")
    assert set(found.releases) == set(METHODS)
    assert found.frame().column_names[0] == "method"


def test_levels_that_a_method_cannot_meet_are_a_row_not_a_crash(table: cg.Table) -> None:
    found = cg.compare(salazar2004_figure1(), ["perturb"], base=5)
    assert found.rows[0]["status"] == "refused"
    assert not found.rows[0]["safe"]


def test_unknown_methods_get_a_hint(table: cg.Table) -> None:
    with pytest.raises(UnknownCodeError, match="suppress"):
        cg.compare(table, ["supress"])


def test_the_base_leaves_room_for_every_level(table: cg.Table) -> None:
    assert suggest_base(table) == 5.0
    assert suggest_base(salazar2004_figure1()) == 50.0


def test_a_base_too_coarse_for_the_table_is_refused_with_a_reason() -> None:
    leaves = np.array([[40_000.0, 3, 5], [7, 2, 4], [6, 8, 900]])
    codes = ["a", "b", "c"]
    t = cg.Table.from_leaves({"x": codes, "y": codes}, leaves)
    large = np.where(t.values == 40_000, 8_000.0, 0.0)
    t = t.with_(sensitive=large > 0, lower=large, upper=large)
    found = cg.compare(t, ["round", "perturb"], time_limit_s=10)
    assert [row["status"] for row in found.rows] == ["refused", "refused"]
    assert all("most positive cells" in row["note"] for row in found.rows)
    given = cg.compare(t, ["round"], base=suggest_base(t), time_limit_s=10)
    assert given.rows[0]["status"] != "refused"  # whoever gives a base gets it


def test_the_command_prints_one_json_object(tmp_path, capfd, table: cg.Table) -> None:
    path = tmp_path / "t.jj"
    table.write(path)
    assert main(["compare", str(path), "--json", "--methods", "intervals,perturb"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert [row["method"] for row in printed["methods"]] == ["intervals", "perturb"]
    assert main(["compare", str(path), "--methods", "intervals,perturb", "--quiet"]) == 0
    assert "side by side" in capfd.readouterr().out
