"""The fifteen everyday jobs, with default options and a limit of 60 s, judged by the audit and by plain programs.

``python bench/bench_everyday.py [NAME ...]`` runs those whose name holds one of the words. Each runs in a process of
its own. Printed are wall and processor seconds, the status, what is withheld or how far values deviate, the verdict of
the audit, and that of linear programs of SciPy against every attacker.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from everyday_jobs import JOBS, TIME_LIMIT_S, write_job
from figures import figure
from plain_programs import judge_by_programs

JUDGE_TIME_LIMIT_S = 60.0
"""Seconds for the plain programs of one job; attackers that are left are counted."""


def count_processor_s() -> float:
    """Return the processor seconds of this process and its children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


def describe_loss(release: Any) -> str:
    """Return what a reader loses: withheld cells, or the mean and largest deviation in per cent."""
    if release.withheld.any():
        return f"{int(release.withheld.sum())} of {release.table.n_cells} withheld"
    a = release.table.values
    open_ = (a > 0) & ~release.table.sensitive
    x = release.get_point_values()
    off = 100.0 * np.abs(x - a)[a > 0] / a[a > 0]
    most = 100.0 * (np.abs(x - a)[open_] / a[open_]).max(initial=0.0)
    return f"deviation {off.mean():.2f}%, at most {most:.0f}% of a non-sensitive cell"


def run_one(name: str) -> None:
    """Run one job and print its row."""
    from cellguard.attackers.respondents import can_tell_shares, insiders
    from cellguard.exceptions import CellguardError
    from cellguard.jobs import read_job
    from cellguard.jobs.runner import run

    with tempfile.TemporaryDirectory() as folder:
        file = read_job(write_job(name, Path(folder)))
        begin, used, release = time.monotonic(), count_processor_s(), None
        try:
            outcome = run(file)
        except CellguardError as error:
            note = f"NOTHING: {error.message[:160]}"
        else:
            release, found = outcome.release, outcome.audit
            note = f"{release.status}, {describe_loss(release)}, audit: {found.verdict if found else ''}"
        took, spent = time.monotonic() - begin, count_processor_s() - used
        if release is not None:
            table = release.table
            others = tuple(x for x in table.attackers if not x.derived)
            if table.insiders is not False and can_tell_shares(table):
                others += insiders(table, scope="all")
            note += f", programs: {judge_by_programs(release, others, JUDGE_TIME_LIMIT_S)}"
    figure(name, took, TIME_LIMIT_S * 1.05 + 2.0, note=f"{spent:.1f} processor s, {note}")


def main(words: list[str]) -> None:
    """Run the jobs whose names hold one of the words, each in a process of its own."""
    if words[:1] == ["--one"]:
        run_one(words[1])
        return
    for name in JOBS:
        if not words or any(word in name for word in words):
            subprocess.run([sys.executable, __file__, "--one", name], check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
