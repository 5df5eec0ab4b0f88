"""Reading, reducing, starting: what every other figure stands on."""

from __future__ import annotations

import os
import subprocess
import sys

from figures import CSPLIB, figure, peak_gib, seconds

from cellguard._engine.space.reduce import reduce
from cellguard.model.table import Table


def start() -> None:
    """Importing the package, and the help of the command line."""
    code = (
        "import time; t = time.process_time(); import cellguard, cellguard.model.table; print(time.process_time() - t)"
    )
    took = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    figure("import cellguard, with its tables", took, 0.4)

    commands = [("--help", 0.25)]
    if CSPLIB.is_dir():
        commands += [(f"info {CSPLIB / 'hier13.jj.gz'}", 0.5), (f"suppress {CSPLIB / 'targus.jj.gz'} --json", 2.0)]
    for words, target in commands:
        figure(f"cellguard {words.replace(f'{CSPLIB}/', '')}", min(_process_s(words.split()) for _ in range(3)), target)


def _process_s(words: list[str]) -> float:
    """Return the processor time of a command, as a user starts it."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "cellguard", *words], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def first_call() -> None:
    """What the first call of a process costs."""
    code = (
        "import time, numpy as np; from scipy.sparse import csr_array\n"
        "from cellguard._engine.space.reduce import reduce\n"
        "T = csr_array(np.array([[-1.0, 1, 1, 0], [0, -1, 0, 1]]))\n"
        "t = time.process_time(); reduce(T).basis; print(time.process_time() - t)"
    )
    figure("reduction, first call of a process", float(subprocess.check_output([sys.executable, "-c", code])))


def csplib() -> None:
    """Reading and reducing tables of the library of the field."""
    if not CSPLIB.is_dir():
        print("CSPLIB is not there; set CELLGUARD_CSPLIB")
        return
    figure("read nine5d.jj.gz", seconds(lambda: Table.read(CSPLIB / "nine5d.jj.gz")), 0.25)
    for name, target in (("hier13", 0.010), ("nine5d", 0.15)):
        relations = Table.read(CSPLIB / f"{name}.jj.gz").relations
        reduce(relations)
        figure(f"reduce {name}", seconds(lambda T=relations: reduce(T), 5), target)


def main() -> None:
    """Print every figure."""
    start()
    first_call()
    csplib()
    figure("memory of all this", peak_gib(), unit="GiB")


if __name__ == "__main__":
    main()
