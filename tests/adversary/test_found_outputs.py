"""What the adversary found at entry points and outputs: files of other programs, and manifests that say more than is true."""

import json
from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from adversary.doors import accepted
from builders import write_columns, write_job
from cellguard.cli import main


@pytest.fixture
def plain():
    dims = {"r": ["r0", "r1", "r2"], "c": ["c0", "c1", "c2"]}
    leaves = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]
    return cg.Table.from_leaves(dims, leaves, sensitive=[10], lower=4, upper=4)


def written(table, columns, path):
    names = list(columns)
    codes = zip(*table.cell_codes().values(), strict=True)
    rows = [",".join(map(str, (*c, *(columns[n][i] for n in names)))) for i, c in enumerate(codes)]
    path.write_text("\n".join([",".join([*table.dimensions, *names]), *rows]) + "\n")
    return path


def test_the_truth_is_no_rounded_file(plain, tmp_path):
    assert not accepted(
        plain, written(plain, {"value": plain.values}, tmp_path / "x.csv"), {"method": "round", "base": 5.0}
    )


@pytest.mark.parametrize("column", ["value", "published", "rounded"])
def test_what_stands_in_a_file_is_published(plain, tmp_path, column):
    """Withheld cells that carry their value beside the mark."""
    pattern = cg.suppress(plain, method="heuristic", rounds=1).suppressed
    columns = {"status": np.where(pattern, "u", "s"), "value": np.where(pattern, "", plain.values.astype(str))}
    columns[column] = plain.values
    assert not accepted(plain, written(plain, columns, tmp_path / "x.csv"), {})


def test_intervals_beside_their_values(plain, tmp_path):
    release = cg.intervals(plain)
    columns = {"lower": release.lower, "upper": release.upper, "value": plain.values}
    assert not accepted(plain, written(plain, columns, tmp_path / "x.csv"), {})


# ---------------------------------------------------------------------- verify


def test_witnesses_of_intervals_that_exclude_the_truth(plain):
    release = cg.intervals(plain)
    proofs = list(release.audit().witnesses.values())
    for cell in (0, 5, 10):  # a cell that no witness moves was not looked at
        lower, upper = np.array(release.lower), np.array(release.upper)
        lower[cell], upper[cell] = 100.0, 110.0
        assert not cg.verify(replace(release, lower=lower, upper=upper), proofs).accepted


def test_an_adjustment_that_does_not_add_up(plain):
    release = cg.adjust(plain)
    values = np.array(release.values)
    values[0] += 1000
    assert not cg.verify(replace(release, values=values), []).accepted


@pytest.fixture
def office(tmp_path):
    rng = np.random.default_rng(3)
    columns = {"r": rng.choice(list("ABC"), 90), "c": rng.choice(list("xyz"), 90)}
    write_columns(tmp_path / "firms.csv", columns | {"turnover": np.exp(rng.normal(8, 1.4, 90)).astype(int)})
    job = write_job(tmp_path, "r", "c", rules=[{"rule": "min_frequency", "n": 9}], method={"rounds": 1})
    assert main(["protect", str(job), "--json"]) == 0
    return tmp_path / "out"


@pytest.mark.parametrize("folder", ["public", "internal"])
@pytest.mark.parametrize(
    "change", [{"outputs": {}}, {"safe": False}, {"outputs": {".": {}}}, {"audited": False, "audit": None}]
)
def test_a_verified_manifest_means_these_files_this_audit_safe(office, folder, change, capsys):
    path = office / folder / "manifest.json"
    assert main(["verify", str(path), "--json"]) == 0
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    capsys.readouterr()
    assert main(["verify", str(path), "--json"]) != 0
