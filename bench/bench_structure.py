"""Building, generating, writing and reducing large tables."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from figures import figure, peak_gib

from cellguard import Hierarchy, Table, generate
from cellguard._engine.space.reduce import reduce


def tree(prefix: str, families: int, children: int) -> Hierarchy:
    """Return a total of some families of some children."""
    return Hierarchy.from_nested(
        {f"{prefix}{i}": [f"{prefix}{i}.{j}" for j in range(children)] for i in range(families)}
    )


def million() -> Table:
    """Return a three-dimensional hierarchical table of 100 x 100 x 100 cells."""
    dims = {"x": tree("x", 9, 10), "y": tree("y", 11, 8), "z": tree("z", 9, 10)}
    shape = tuple(len(h.leaves) for h in dims.values())
    return Table.from_leaves(dims, np.random.default_rng(1).integers(0, 50, shape))


def once(function: Callable[[], object]) -> tuple[float, object]:
    """Return the processor time of one call, in seconds, and what it returned."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def build() -> None:
    """Time and memory of a million cells; memory is measured in a process of its own."""
    took, table = once(million)
    figure("build 1,000,000 cells in 3 hierarchies, with relations", took, 5)
    code = "import bench_structure as b; b.million(); print(b.peak_gib())"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    figure("  its memory", float(subprocess.check_output([sys.executable, "-c", code], env=here)), 1.5, "GiB")
    frame = table.frame()
    dims = dict(zip(table.dimensions, table.hierarchies, strict=True))
    figure("  the same from a frame of 1,000,000 rows", once(lambda: Table.from_frame(frame, dims))[0])
    reduce(generate.cube(sides=(3, 3)).relations)  # loads what is needed
    figure("  reduce it", once(lambda: reduce(table.relations))[0], 20)


def kinds() -> None:
    """Generate each kind in its published size."""
    for kind in generate.KINDS:
        took, table = once(lambda kind=kind: generate.generate(kind, seed=1))
        figure(f"generate {kind}: {table.n_cells} cells", took)
    table = generate.geography(seed=1)
    figure("reduce the geography, 220,040 cells", once(lambda: reduce(table.relations))[0], 3)


def files() -> None:
    """Write and read back a million cells in every format."""
    table = million()
    with tempfile.TemporaryDirectory() as folder:
        for ending, target in (("jj", 15), ("jj.gz", None), ("csv", None), ("parquet", None)):
            path = Path(folder) / f"t.{ending}"
            wrote = once(lambda path=path: table.write(path))[0]
            read, again = once(lambda path=path: Table.read(path))
            assert np.array_equal(table.values, again.values)
            note = f"write {wrote:.2f}, read {read:.2f}, {path.stat().st_size / 2**20:.0f} MiB"
            figure(f"write and read back 1,000,000 cells as {ending}", wrote + read, target, note=note)


def main() -> None:
    """Print every figure."""
    build()
    kinds()
    files()
    figure("memory of all this", peak_gib(), unit="GiB")


if __name__ == "__main__":
    main()
