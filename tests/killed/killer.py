"""Kills runs of a job at random moments and says what they left: started by test_killed.py in a process of its own.

The modules are loaded once, here; each run is a fork, so that a kill hits the work and not the imports.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from cellguard.jobs import read_job
from cellguard.jobs.outputs.manifest import check_manifest
from cellguard.jobs.runner import run

for heavy in ("duckdb", "highspy", "pyarrow.csv", "pyarrow.parquet", "scipy.optimize", "scipy.sparse.csgraph"):
    import_module(heavy)
for module in (
    "auditing.audit",
    "tabulation.tabulate",
    "methods.suppress.search.improve",
    "_engine.ranges",
    "_io.workbooks.xlsx",
    "_io.jj",
    "_io.frames",
):
    import_module(f"cellguard.{module}")

CHANGING = {"report.html", "timing.json", "signature.json"}  # the signature covers the seconds of the other two


def start(job: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        run(read_job(job))
        code = 0
    finally:
        os._exit(code)


def finish(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in files
        if not (p.parent.name == "internal" and p.name in CHANGING)
    }


def left_over(out: Path, allowed: list[dict[str, bytes]]) -> list[str]:
    """Say what is wrong with what a killed run left behind."""
    wrong = []
    for name in ("public", "internal"):
        folder = out / name
        if not folder.exists():
            continue
        found = contents(folder)
        if not any(
            found == {k.removeprefix(f"{name}/"): v for k, v in whole.items() if k.startswith(name)}
            for whole in allowed
        ):
            wrong.append(f"{name} is neither whole nor absent: {sorted(found)}")
        if name == "internal" and folder.stat().st_mode & 0o077:
            wrong.append("others can read the internal folder")
    public = out / "public" / "manifest.json"
    if public.exists() and not check_manifest(public)["accepted"]:
        wrong.append("the public manifest does not hold")
    work = out / ".work"
    if work.exists() and work.stat().st_mode & 0o077:
        wrong.append("others can read the checkpoints")
    return wrong


def main(folder: Path, kills: int, seed: int) -> dict[str, object]:
    rng = random.Random(seed)
    job, out = folder / "job.toml", folder / "out"
    text = job.read_text()
    job.write_text(text.replace("p = 10", "p = 12"))
    assert finish(start(job)) == 0
    earlier = contents(out)
    job.write_text(text)
    shutil.rmtree(out)
    begin = time.monotonic()
    assert finish(start(job)) == 0
    seconds = time.monotonic() - begin
    whole = contents(out)
    killed, resumed, wrong = 0, 0, []
    for k in range(3 * kills):
        if killed == kills:
            break
        shutil.rmtree(out)
        allowed = [whole]
        if k % 2:  # over a release of last month
            for name, content in earlier.items():
                path = out / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            (out / "internal").chmod(0o700)
            allowed.append(earlier)
        pid = start(job)
        time.sleep(rng.uniform(0.0, 1.05 * seconds))
        os.kill(pid, signal.SIGKILL)
        hit = finish(pid) == -signal.SIGKILL
        killed += hit
        if not hit:  # the machine is less busy than when the run was timed
            seconds *= 0.8
        wrong += [f"kill {k}: {w}" for w in left_over(out, allowed)]
        resumed += bool(list((out / ".work").glob("*.npz"))) if (out / ".work").exists() else 0
        if finish(start(job)) != 0:
            wrong.append(f"kill {k}: the job could not be run again")
        elif contents(out) != whole:
            wrong.append(f"kill {k}: the resumed run differs from the unbroken one")
    return {"killed": killed, "resumed": resumed, "wrong": wrong, "seconds": seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
