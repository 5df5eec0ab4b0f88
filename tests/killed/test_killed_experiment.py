"""An experiment killed at any moment goes on from what it had computed, and ends with the same figures."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from cellguard.papers import Settings, get_experiment, reproduce

SETTINGS = Settings(instances=("16",), replications=25)


def work(folder: Path) -> None:
    """Run the experiment in this process."""
    reproduce(get_experiment("minami2019-tables2to5"), SETTINGS, folder)


def figures(folder: Path) -> list[dict[str, object]]:
    """Return everything that does not depend on the clock."""
    report = reproduce(get_experiment("minami2019-tables2to5"), SETTINGS, folder)
    return [row for row in report.rows if not row["what"].startswith("cpu_s")]


def lines(folder: Path) -> int:
    """Count the figures that were kept whole."""
    path = folder / "minami2019-tables2to5.jsonl"
    return sum(line.endswith("}}") for line in path.read_text().splitlines()) if path.exists() else 0


def killed(folder: Path, figures: int, seconds: float) -> bool:
    """Start the experiment in a fork, so that the kill hits the work and not the imports; kill it.

    The kill comes some moments after so many more figures are kept: by the work done, not by the clock,
    which tells nothing on a busy machine.
    """
    enough = lines(folder) + figures
    pid = os.fork()
    if not pid:
        try:
            work(folder)
        finally:
            os._exit(0)
    while lines(folder) < enough and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.002)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def main(folder: Path) -> dict[str, object]:
    """Kill runs at random moments, each going on where the one before was; then run to the end."""
    rng = random.Random(3)
    work(folder / "warm")
    begin = time.monotonic()
    work(folder / "whole")
    seconds = time.monotonic() - begin
    kills, kept = 0, []
    for _ in range(8):
        kills += killed(folder / "broken", rng.randint(0, 3), rng.uniform(0.0, seconds / 25))
        kept.append(lines(folder / "broken"))
    return {"same": figures(folder / "broken") == figures(folder / "whole"), "kills": kills, "kept": kept}


def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    words = [sys.executable, __file__, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["same"]
    assert found["kills"] >= 4
    assert found["kept"] == sorted(found["kept"])
    assert any(0 < n < 25 for n in found["kept"])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
