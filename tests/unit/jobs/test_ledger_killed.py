"""The ledger when runs are killed or end at the same time: the chain stays whole, and no entry is lost."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cellguard as cg
from cellguard.jobs.outputs.content import LedgerQuery, check_ledger, load_linked, store_content
from cellguard.jobs.outputs.ledger import FILE, add_to_ledger, read_entries

KILLS = 50


def make_release(number: int) -> cg.EarlierRelease:
    table = cg.Table.from_leaves({"region": list("ABC")}, [10.0 + number, 20.0, 30.0], sensitive=[1], sliding=2.0)
    return cg.EarlierRelease.of(cg.suppress(table), name=f"release {number}", period=f"{1900 + number}")


RECORDER = """
import os, pickle, sys, time
import numpy as np
from pathlib import Path
from cellguard.jobs.outputs.content import store_content
from cellguard.jobs.outputs.ledger import add_to_ledger

folder, rng = Path(sys.argv[1]), np.random.default_rng()
releases = pickle.loads(Path(sys.argv[2]).read_bytes())

def record_for_ever(pipe):
    for number in range(10**6):
        facts = store_content(folder, releases[number % len(releases)])
        add_to_ledger(folder, "released", {"release": f"{os.getpid()}/{number}", "note": "x" * 3000, **facts})
        os.write(pipe, b".")

for _ in range(int(sys.argv[3]) // 2):
    several = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            record_for_ever(write)
        os.close(write)
        several.append((child, read))
    first = os.read(several[0][1], 1)
    time.sleep(float(rng.uniform(0.0, 0.01)))
    for child, read in several:
        os.kill(child, 9)
        os.waitpid(child, 0)
        recorded = len(first) if read == several[0][1] else 0
        while more := os.read(read, 65536):
            recorded += len(more)
        os.close(read)
        print(child, recorded, flush=True)
"""
"""Two processes record releases at a time, as runs do; each is killed between two writes, or within one."""


def test_fifty_kills_never_break_the_chain(tmp_path):
    releases = [make_release(number) for number in range(3)]
    (tmp_path / "releases").write_bytes(pickle.dumps(releases))
    folder = tmp_path / "office"
    words = [sys.executable, "-c", RECORDER, str(folder), str(tmp_path / "releases"), str(KILLS)]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # only such a process may fork
    told = subprocess.run(words, check=True, capture_output=True, text=True, env=alone, timeout=300).stdout
    killed = [line.split() for line in told.splitlines()]
    assert len(killed) == KILLS
    entries, whole = read_entries(folder)
    assert whole
    names = [entry["release"] for entry in entries]
    assert len(names) == len(set(names))
    for process, recorded in killed:  # what a run was told to be recorded is there
        assert {f"{process}/{number}" for number in range(int(recorded))} <= set(names)
    assert sum(int(recorded) for _, recorded in killed) >= KILLS // 2
    assert check_ledger(folder)[1] == []
    add_to_ledger(folder, "released", {"release": "after", **store_content(folder, releases[0])})
    assert read_entries(folder)[1]
    assert "1900" in {one.period for one in load_linked(folder, LedgerQuery(period="1900"))}


def test_a_torn_line_is_removed_wherever_it_ends(tmp_path):
    line = b'{"when": "2025", "what": "released", "release": "\xc3\xa9", "before": "00"}'
    for torn in range(len(line)):
        with (tmp_path / FILE).open("ab") as stream:
            stream.write(line[: 1 + torn])
        assert read_entries(tmp_path)[1]
        add_to_ledger(tmp_path, "released", {"release": str(torn)})
        assert read_entries(tmp_path)[1]
    assert [entry["release"] for entry in read_entries(tmp_path)[0]] == [str(k) for k in range(len(line))]


def test_simultaneous_runs_lose_no_entry(tmp_path):
    release = make_release(0)

    def record(number):
        add_to_ledger(tmp_path, "released", {"release": str(number), **store_content(tmp_path, release)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, range(24)))
    entries, whole = read_entries(tmp_path)
    assert whole
    assert sorted(int(e["release"]) for e in entries) == list(range(24))
    assert check_ledger(tmp_path)[1] == []


WRITER = """
import pickle, sys
from pathlib import Path
from cellguard.jobs.outputs.content import store_content
from cellguard.jobs.outputs.ledger import add_to_ledger
release = pickle.loads(Path(sys.argv[2]).read_bytes())
sys.stdin.readline()
for number in range(25):
    facts = store_content(Path(sys.argv[1]), release)
    add_to_ledger(Path(sys.argv[1]), "released", {"release": f"{sys.argv[3]}{number}", **facts})
"""


def test_two_processes_lose_no_entry(tmp_path):
    (tmp_path / "release").write_bytes(pickle.dumps(make_release(0)))
    folder = tmp_path / "office"
    several = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(tmp_path / "release"), name], stdin=subprocess.PIPE
        )
        for name in "ab"
    ]
    for one in several:
        one.stdin.write(b"go\n")
        one.stdin.close()
    assert [one.wait(timeout=300) for one in several] == [0, 0]
    entries, whole = read_entries(folder)
    assert whole
    assert sorted(e["release"] for e in entries) == sorted(f"{name}{k}" for name in "ab" for k in range(25))
