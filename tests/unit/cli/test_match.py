import json

import numpy as np
import pytest

from cellguard import generate
from cellguard.cli import main


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "small.jj"
    generate.frequency(seed=3).write(path)
    return path


def run(capsys, *words):
    code = main(["match", *map(str, words), "--json", "--quiet"])
    return code, json.loads(capsys.readouterr().out)


def test_the_optimum_leaks_and_the_resistant_does_not(table_file, capsys):
    code, leaks = run(capsys, table_file)
    assert code == 0
    assert leaks["knows"] == "algorithm"
    assert leaks["exact"]
    assert leaks["unsafe"] > 0
    code, resists = run(capsys, table_file, "--resist", "--seed", 5)
    assert code == 0
    assert resists["knows"] == "mechanism"
    assert resists["unsafe"] == 0
    assert resists["safe"] == resists["primary"]
    assert resists["release"]["certificate"]["narrowest"] >= 8


def test_a_release_from_a_file(table_file, tmp_path, capsys):
    out = tmp_path / "release.csv"
    assert main(["suppress", str(table_file), "--resist", "matching", "--out", str(out), "--quiet"]) == 0
    capsys.readouterr()
    code, found = run(capsys, table_file, out, "--knows", "mechanism", "--out", tmp_path / "intervals.csv")
    assert code == 0
    assert found["unsafe"] == 0
    written = np.genfromtxt(tmp_path / "intervals.csv", delimiter=",", names=True)
    assert len(written) == found["suppressed"]
    assert (written["lower"] <= written["inner_lower"]).all()
    code, refused = run(capsys, table_file, out, "--order", 1)
    assert code == 1
    assert "does not reproduce" in refused["message"]


def test_a_table_with_more_dimensions_is_sampled(tmp_path, capsys):
    path = tmp_path / "cube.jj"
    rng = np.random.default_rng(0)
    from cellguard.model.table import Table

    table = Table.from_leaves(
        {name: [f"{name}{i}" for i in range(3)] for name in "abc"}, np.abs(np.rint(rng.normal(12, 8, (3, 3, 3))))
    )
    inner = (table.coordinates > 0).all(axis=1)
    small = inner & (table.values < 4)
    table.with_(sensitive=small, sliding=np.where(small, 3.0, 0.0), fixed=~inner).write(path)
    code, found = run(capsys, path, "--minimum", 4, "--knows", "rule", "--samples", 5)
    assert code == 0
    assert found["approach"] == "sampling"
    assert not found["exact"]
    code, found = run(capsys, path, "--minimum", 4, "--knows", "rule", "--samples", 3000)
    assert (code, found["approach"], found["undecided"]) == (0, "enumeration", 0)
    code, found = run(capsys, path, "--minimum", 4, "--samples", 3)
    assert (code, found["work"]) == (0, 3)


@pytest.mark.parametrize("words", [["--width", "-1"], ["--minimum", "1000"], ["--knows", "all"], ["--loss", "money"]])
def test_wrong_options(table_file, capsys, words):
    code, found = run(capsys, table_file, *words)
    assert code == 1
    assert found["hint"] or found["message"]


def test_a_table_of_magnitudes(tmp_path, capsys):
    path = tmp_path / "money.jj"
    generate.onehier(seed=1).with_weights("unit").write(path)
    code, found = run(capsys, path)
    assert code == 1
    assert "does not follow" in found["message"]


def test_a_width_that_nothing_gives(table_file, capsys):
    assert main(["match", str(table_file), "--width", "100000", "--quiet"]) == 2
