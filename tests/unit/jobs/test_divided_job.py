"""A job divided among processes: the parts, joined, are the undivided release, byte by byte."""

import json
import os
import stat
import subprocess
import sys

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs.parts import JobPart

JOB = """\
name = "divided"
[data]
file = "firms.csv"
value = "turnover"
[dimensions.region]
[dimensions.sector]
[dimensions.size]
[dimensions.age]
[[tables]]
name = "first"
dimensions = ["region", "sector"]
where = {{ kind = "a" }}
[[tables]]
name = "second"
dimensions = ["size", "age"]
where = {{ kind = "b" }}
[[rules]]
rule = "p_percent"
p = 10
[method]
name = "{method}"
[output]
folder = "{folder}"
report = false
"""


@pytest.fixture
def folder(tmp_path):
    lines = ["kind,region,sector,size,age,turnover"]
    for i in range(400):
        kind = "ab"[i % 2]
        lines.append(f"{kind},R{i % 5},S{(i * 7) % 4},Z{(i * 3) % 5},A{(i * 11) % 4},{1 + (i * i * 37) % 900}")
    lines += [f"{'ab'[k % 2]},R{k},S{k % 4},Z{k},A{(k + 1) % 4},{9000 + 13 * k}" for k in range(5)]
    (tmp_path / "firms.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def _write(folder, name, method="suppress"):
    path = folder / f"{name}.toml"
    rounds = "" if method != "suppress" else "\nrounds = 2"
    text = JOB.format(method=method, folder=name).replace('name = "suppress"', f'name = "suppress"{rounds}')
    path.write_text(text)
    return path


def _call(*words):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-m", "cellguard", *map(str, words)], env=environment)


def test_parts_of_two_processes_join_to_the_undivided_release(folder, capsys):
    job = _write(folder, "one")
    assert main(["protect", str(job), "--quiet", "--json"]) == 0
    whole = {path.name: path.read_bytes() for path in (folder / "one" / "public").iterdir()}
    (folder / "ledger.jsonl").unlink(missing_ok=True)
    shared = folder / "shared"
    running = [_call("protect", job, "--part", f"{k}/2", "--out", shared, "--json") for k in (1, 2)]
    assert [process.wait() for process in running] == [0, 0]
    assert stat.S_IMODE((shared / "parts").stat().st_mode) == 0o700
    capsys.readouterr()
    assert main(["protect", str(job), "--join", "--out", str(shared), "--quiet", "--json", "--again"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["audit"]["safe"] is True
    joined = {path.name: path.read_bytes() for path in (shared / "public").iterdir()}
    assert joined == whole
    assert not (shared / "parts").exists()  # confidential, and no longer needed


def test_a_missing_part_and_a_part_of_other_inputs_are_refused(folder, capsys):
    job, shared = _write(folder, "one"), folder / "shared"
    assert main(["protect", str(job), "--part", "1/2", "--out", str(shared), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["protected"]) == ["1"]
    assert main(["protect", str(job), "--join", "--out", str(shared), "--quiet"]) == 1
    assert "no release of cluster 2" in capsys.readouterr().err
    with (folder / "firms.csv").open("a") as stream:
        stream.write("a,R1,S1,Z1,A1,55\n")
    assert main(["protect", str(job), "--part", "2/2", "--out", str(shared), "--json"]) == 0
    capsys.readouterr()
    assert main(["protect", str(job), "--join", "--out", str(shared), "--quiet"]) == 1
    told = capsys.readouterr().err
    assert "no release of cluster 1" in told
    assert "other inputs" in told
    assert not (shared / "public").exists()


def test_parts_of_a_randomised_method_need_one_key(folder, capsys):
    job = _write(folder, "noisy", "perturb")
    assert main(["protect", str(job), "--part", "1/2", "--out", str(folder / "shared")]) == 1
    assert "--key" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_impossible_parts_are_refused(text):
    with pytest.raises(InputError, match="--part"):
        JobPart.parse(text)
