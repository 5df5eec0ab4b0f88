"""Witnesses of audits with earlier releases: written by jobs and by ``audit``, checked by ``verify``."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.outputs.joint_proof import prove_joint
from cellguard.jobs.outputs.ledger import FILE
from cellguard.jobs.outputs.verify import verify_manifest
from cellguard.jobs.runner import run
from cellguard.jobs.tables import tabulate_job

JOB = """\
name = "quarterly"
insiders = false
nothing_sensitive = "publish"

[data]
table = "cells.csv"

[method]
name = "suppress"
rounds = 2

[ledger]
folder = ".."
period = "{period}"
additive = true
{more}
[[derived]]
name = "share"
kind = "share"
by = {{region = "Total"}}
decimals = 2

[output]
folder = "out"
"""
QUARTERS = [[10.0, 20.0, 30.0, 40.0], [11.0, 22.0, 33.0, 44.0]]


def write_period(folder: Path, period: str, values, *, more="") -> Path:
    place = folder / f"job-{period}"
    place.mkdir(exist_ok=True)
    cg.Table.from_leaves({"region": list("ABCD")}, np.array(values), sensitive=[1], lower=3.0, upper=3.0).write(
        place / "cells.csv"
    )
    (place / "job.toml").write_text(JOB.format(period=period, more=more))
    return place / "job.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two quarters and their half-year, each with shares, are in the ledger."""
    folder = tmp_path_factory.mktemp("office")
    for k, values in enumerate(QUARTERS, 1):
        run(read_job(write_period(folder, f"2025Q{k}", values)))
    run(read_job(write_period(folder, "2025H1", np.sum(QUARTERS, axis=0))))
    return folder


@pytest.fixture
def office(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "office"))


def get_manifest(office, period):
    return office / f"job-{period}" / "out" / "internal" / "manifest.json"


def prove(manifest: Path):
    """Check the joint proof alone: hashes and the signature would find a change before it."""
    internal, facts = manifest.parent, json.loads(manifest.read_text())
    file = read_job(internal.parents[1] / "job.toml")
    table = tabulate_job(file)
    public = next(p for p in (internal.parent / "public").glob("*.csv") if p.name != "derived.csv")
    return prove_joint(cg.read_release(table, public), file, internal, facts)


@pytest.mark.parametrize("period", ["2025Q1", "2025Q2", "2025H1"])
def test_every_release_is_proven_with_the_ledger_as_it_was(office, period):
    found = verify_manifest(get_manifest(office, period))
    assert found["accepted"], found["problems"]
    assert found["proven"] == {"2025Q1": 1, "2025Q2": 1, "2025H1": 3}[period]


def test_a_changed_witness_is_refused(office):
    manifest = get_manifest(office, "2025H1")
    path = manifest.parent / "witnesses-joint.json.gz"
    told = json.loads(gzip.decompress(path.read_bytes()))
    cell = next(iter(told["tables"][0]))
    told["tables"][0][cell] = "77777"
    path.write_bytes(gzip.compress(json.dumps(told).encode()))
    checked, problems = prove(manifest)
    assert checked == 3
    assert any("witnesses with earlier releases" in text for text in problems)


def test_a_figure_with_more_decimals_than_were_proven_is_refused(office):
    manifest = get_manifest(office, "2025H1")
    assert prove(manifest)[1] == []
    path = manifest.parents[1] / "public" / "derived.csv"
    lines = path.read_text().splitlines()
    assert any(",withheld," in line or ",2," not in line for line in lines[1:])
    shares = {code: f"{100 * v / 210:.2f}" for code, v in zip("ABCD", np.sum(QUARTERS, axis=0), strict=True)}
    path.chmod(0o600)
    path.write_text("\n".join([lines[0], *(f"{c},share,published,2,{v}" for c, v in shares.items())]) + "\n")
    with pytest.raises(cg.CellguardError, match="cells, not of"):
        prove(manifest)


def test_without_the_ledger_the_release_is_not_accepted(office):
    (office / FILE).unlink()
    found = verify_manifest(get_manifest(office, "2025H1"))
    assert not found["accepted"]
    assert any("not recorded" in text for text in found["problems"])


def test_the_command_line_audits_and_verifies_with_a_ledger(office, tmp_path, capsys):
    folder = office / "job-2025H1"
    public = next(p for p in (folder / "out" / "public").glob("*.csv") if p.name != "derived.csv")
    words = [str(folder / "cells.csv"), str(public)]
    with_ledger = ["--ledger", str(office), "--period", "2025H1", "--additive", "--until", "2", "--quiet"]
    proof = str(tmp_path / "proof.json")
    assert main(["audit", *words, *with_ledger, "--witnesses", proof]) == 0
    assert main(["verify", *words, proof, *with_ledger, "--json"]) == 0
    assert main(["verify", *words, proof, "--quiet"]) == 1  # the proof is not of this release alone
    assert "cells, not of" in capsys.readouterr().err
