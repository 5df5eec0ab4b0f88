"""What every benchmark uses: measure, and print a row that says what was measured and what was aimed at."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

CSPLIB = Path(os.environ.get("CELLGUARD_CSPLIB", Path(__file__).resolve().parents[2] / "shared" / "csplib"))


def figure(name: str, measured: float, target: float | None = None, unit: str = "s", *, note: str = "") -> None:
    """Print one row: the figure, what was measured, the target (at most), and their ratio."""
    row = f"{name:<58} {measured:>10.4g} {unit:<4}"
    if target is not None:
        verdict = "ok" if measured <= target else "OVER"
        row += f" target {target:>8.4g}  ratio {measured / target:>6.2f}  {verdict}"
    print(f"{row}  {note}".rstrip(), flush=True)


def seconds(function: Callable[[], object], repeat: int = 3) -> float:
    """Return the least processor time, in seconds, of some calls."""
    times = []
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def peak_gib() -> float:
    """Return the most memory this process has held so far, in GiB (Linux)."""
    status = Path("/proc/self/status").read_text()
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return kib / 2**20
