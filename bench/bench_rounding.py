"""Controlled rounding: proven optima and gaps on the tables of salazar2004 section 5 and on cubes, file to file."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from figures import figure, seconds

import cellguard as cg


def run(table: Path, *options: str) -> tuple[dict, float, float]:
    """Round a file to a file with base 5; returns the JSON object, processor seconds and the peak in GiB."""
    out = table.with_suffix(".csv")
    words = ["-m", "cellguard", "round", str(table), "--base", "5", "--weights", "unit", "--json", "--quiet"]
    words += ["--out", str(out), *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds, after.ru_maxrss / 2**20


def report(name: str, found: dict, seconds: float, target_s: float, gap: float | None) -> None:
    shown = f"{found['status']}, gap {100 * found['gap']:.3f}%, step {found['step']}"
    figure(name, seconds, target_s, note=shown)
    if gap is not None:
        figure(f"{name}: gap", 100 * found["gap"], 100 * gap, "%")


def cube_of_counts(seed: int) -> cg.Table:
    """Return a flat cube whose residues are all equally frequent."""
    rng = np.random.default_rng(seed)
    leaves = rng.poisson(rng.lognormal(np.log(8.0), 0.8, (50, 50, 50)))
    codes = [f"{i:02d}" for i in range(50)]
    return cg.Table.from_leaves({"a": codes, "b": codes, "c": codes}, leaves, integer=True)


def time_plain_model(table: cg.Table, base: float) -> float:
    """Return the processor seconds of the solver alone on the plain, zero-restricted model: no levels, no audit."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    a = table.values
    floor = np.floor(a / base) * base
    side = (table.rhs - table.relations @ floor) / base
    rows, bounds = LinearConstraint(table.relations, side, side), Bounds(0, np.where(a == floor, 0, 1))
    options = {"mip_rel_gap": 0.0, "time_limit": 60}
    cost = base - 2 * (a - floor)
    return seconds(lambda: milp(cost, integrality=np.ones(len(a)), bounds=bounds, constraints=rows, options=options), 1)


def compare_with_plain_model() -> None:
    """Print the seconds of counts with their levels, audit included, beside those of the solver on the plain model."""
    for sides in ((39, 24), (99, 99), (9, 9, 9)):
        rng = np.random.default_rng(len(sides))
        leaves = rng.poisson(rng.lognormal(1.5, 1.0, sides))
        dims = {f"d{d}": [f"{d}-{i}" for i in range(n)] for d, n in enumerate(sides)}
        table = cg.Table.from_leaves(dims, leaves, weights=1.0, integer=True, insiders=False)
        table = table.apply(cg.MinFrequency(3))
        plain_s = time_plain_model(table, 5.0)
        ours_s = seconds(lambda t=table: cg.round(t, 5, time_limit_s=60), repeat=1)
        figure(f"counts {'x'.join(map(str, sides))} with levels, audit included", ours_s, 2 * plain_s)


def main() -> None:
    compare_with_plain_model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.jj.gz"
        cg.generate.cube(1, sides=(15, 15, 15)).write(path)
        run(path, "--method", "areas")  # the file is in memory the next time
        run(path, "--gap", "0.5")

        path = Path(folder) / "geography.jj.gz"
        cg.generate.geography(1).write(path)
        found, seconds, _ = run(path)
        report("geography, 220,040 cells, proven optimum", found, seconds, 21.0, 0.0)

        path = Path(folder) / "census.jj.gz"
        cg.generate.census(1).write(path)
        found, seconds, _ = run(path, "--time-limit", "1")
        report("census, 431,613 cells, first zero-restricted rounding", found, seconds, 20.0, None)
        for gap, target_s in ((0.015, 120.0), (0.01, 300.0)):
            found, seconds, gib = run(path, "--gap", str(gap), "--time-limit", "600")
            report(f"census, to {100 * gap:g}%", found, seconds, target_s, gap)
        figure("census: memory", gib, 8.0, "GiB")

        for name, table in (("counts", cube_of_counts(1)), ("half zeros", cg.generate.cube(1, sides=(50, 50, 50)))):
            path = Path(folder) / "cube.jj.gz"
            table.write(path)
            for gap, target_s in ((0.006, 20.0), (0.003, 60.0)):
                found, seconds, _ = run(path, "--gap", str(gap), "--time-limit", "90")
                report(f"cube 50x50x50 ({name}), to {100 * gap:g}%", found, seconds, target_s, gap)


if __name__ == "__main__":
    main()
