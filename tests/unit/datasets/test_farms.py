"""Farm statistics: shapes, seeds, rules by country, and a job that can be read."""

import json

import numpy as np
import pytest

from cellguard.cli import main
from cellguard.datasets.farms import SHAPES, generate_farms, write_farms
from cellguard.exceptions import InputError
from cellguard.jobs import read_job


def test_the_geography_has_the_codes_of_the_shape_and_records_repeat():
    farms, countries = generate_farms(2000, seed=4, shape="five")
    assert 1 + len(countries) + sum(map(len, countries.values())) == SHAPES["five"][0]
    assert len([name for name in farms if name not in ("area", "holding")]) == 5
    again, _ = generate_farms(2000, seed=4, shape="five")
    assert all((farms[name] == again[name]).all() for name in farms)
    assert farms["area"].min() >= 1
    assert np.quantile(farms["area"], 0.99) > 10 * np.median(farms["area"])  # skewed


def test_the_job_of_the_farms_can_be_read_and_has_rules_by_country(tmp_path, capsys):
    words = ["generate", "farms", "--out", str(tmp_path), "--size", "shape=56,3,4", "--size", "farms=500", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["sizes"] == {"shape": [56, 3, 4], "n": 500}
    job = read_job(tmp_path / "job.toml").job
    named = [code for rule in job.rules for code in rule.only["region"]]
    assert {rule.rule for rule in job.rules} == {"p_percent", "min_frequency"}
    assert len(named) == 2 * len(set(named)) == 2 * 55  # every country and region once for each kind of rule


@pytest.mark.parametrize("shape", ["tiny", (20, 3), (287,), (287, 1)])
def test_impossible_shapes_are_refused(tmp_path, shape):
    with pytest.raises(InputError):
        write_farms(tmp_path / "farms", shape=shape)
    assert not (tmp_path / "farms").exists()
