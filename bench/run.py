"""Run the benchmarks, each bench_*.py in a process of its own: ``python bench/run.py [NAME ...]``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main(names: list[str]) -> int:
    """Run those whose file name holds one of the names (all when none is given); return how many broke."""
    scripts = sorted(Path(__file__).parent.glob("bench_*.py"))
    chosen = [s for s in scripts if not names or any(name in s.stem for name in names)]
    broken = 0
    for script in chosen:
        print(f"\n{script.stem.removeprefix('bench_')}", flush=True)
        broken += subprocess.run([sys.executable, str(script)], check=False).returncode != 0
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
