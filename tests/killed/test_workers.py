"""Clusters of a publication on the workers of a Dask scheduler: the same bytes, even when a worker is killed."""

import os
import signal
import threading
import time

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs import read_job
from cellguard.jobs import runner as running
from cellguard.jobs.runner import run

distributed = pytest.importorskip("distributed")
KINDS = "abcdefgh"
HEAD = """\
name = "divided"
[data]
file = "firms.csv"
value = "turnover"
[dimensions.region]
[dimensions.sector]
"""
TAIL = """\
[[rules]]
rule = "p_percent"
p = 10
[method]
name = "suppress"
rounds = 3
[output]
folder = "alone"
report = false
"""


@pytest.fixture
def job(tmp_path):
    lines = ["kind,region,sector,turnover"]
    for i in range(4000):
        k = i % len(KINDS)
        lines.append(
            f"{KINDS[k]},{KINDS[k]}R{(i // 8) % 7},{KINDS[k]}S{(i * 7 // 8) % 6},{900_000 // (1 + (i * i * 37) % 9001)}"
        )
    (tmp_path / "firms.csv").write_text("\n".join(lines) + "\n")
    tables = "".join(
        f'[[tables]]\nname = "{k}"\ndimensions = ["region", "sector"]\nwhere = {{ kind = "{k}" }}\n' for k in KINDS
    )
    path = tmp_path / "job.toml"
    path.write_text(HEAD + tables + TAIL)
    return path


def _read_public(folder):
    return {path.name: path.read_bytes() for path in (folder / "public").iterdir()}


@pytest.mark.filterwarnings("default")  # what a cluster says while it starts and stops is not ours
def test_a_killed_worker_changes_no_byte(job, monkeypatch):
    file = read_job(job)
    run(file)
    alone = _read_public(job.parent / "alone")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        saved, kept, killed = [], running._Clusters.save, threading.Event()

        def save(self, number, release):
            kept(self, number, release)
            saved.append(number)
            if not killed.is_set():
                killed.set()
                os.kill(pids[0], signal.SIGKILL)
                time.sleep(0.2)

        monkeypatch.setattr(running._Clusters, "save", save)
        run(file, folder=job.parent / "spread", scheduler=cluster.scheduler_address, again=True)
    assert killed.is_set()
    assert sorted(saved) == list(range(len(KINDS)))
    assert _read_public(job.parent / "spread") == alone


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_not_there_or_has_other_versions_is_refused(job, monkeypatch, capsys):
    monkeypatch.setattr("cellguard.jobs.scheduler._CONNECT_S", 1)
    assert main(["protect", str(job), "--scheduler", "tcp://127.0.0.1:9", "--quiet"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert not (job.parent / "alone").exists()
    monkeypatch.setattr("cellguard.jobs.scheduler._get_worker_version", lambda: "0.0.1")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        pytest.raises(InputError, match=r"0\.0\.1"),
    ):
        run(read_job(job), scheduler=cluster.scheduler_address)
    assert not (job.parent / "alone" / "public").exists()
