"""From records to sensitive cells: millions of records in a Parquet file, against pandas on the same file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from figures import figure, peak_gib

import cellguard as cg

RECORDS = int(float(os.environ.get("CELLGUARD_BENCH_RECORDS", "20e6")))


def hierarchies(regions: int, naces: int, sizes: int) -> dict[str, cg.Hierarchy]:
    """Regions in three levels, activities in four, size classes in two."""
    region = {f"P{p}": [f"R{r:03d}" for r in range(regions) if r % 6 == p] for p in range(6)}
    nace = {f"{s}": {f"{s}{d}": [f"{s}{d}{c:02d}" for c in range(naces)] for d in range(5)} for s in "ABCDE"}
    size = {"small": [f"s{i}" for i in range(sizes // 2)], "large": [f"l{i}" for i in range(sizes - sizes // 2)]}
    return {name: cg.Hierarchy.from_nested(tree) for name, tree in (("region", region), ("nace", nace), ("size", size))}


def write_records(path: Path, n: int, dims: dict[str, cg.Hierarchy]) -> None:
    """Write skewed turnovers in chunks; the same file every time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    leaves = {name: np.array(h.codes)[h.leaves] for name, h in dims.items()}
    writer = None
    for chunk, start in enumerate(range(0, n, 1_000_000)):
        rng = np.random.default_rng(chunk)
        rows = min(1_000_000, n - start)
        columns = {}
        for name, codes in leaves.items():
            place = np.minimum((rng.beta(1, 2, rows) * len(codes)).astype(np.int32), len(codes) - 1)
            columns[name] = pa.DictionaryArray.from_arrays(place, codes).dictionary_decode()
        columns["turnover"] = rng.lognormal(4, 2, rows).round(2)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def ours(path: str, shape: tuple[int, int, int]) -> None:
    """Tabulate, flag, and print the seconds, the cells, and the memory."""
    dims = hierarchies(*shape)
    start, used = time.perf_counter(), time.process_time()
    table = cg.tabulate(path, dims, "turnover").apply(cg.PPercent(10), cg.Dominance(2, 80))
    took, used = time.perf_counter() - start, time.process_time() - used
    print(took, used, table.n_cells, int(table.sensitive.sum()), peak_gib())


def pandas_way(path: str, shape: tuple[int, int, int]) -> None:
    """Do the same with group-bys: one for every combination of levels, on records sorted by size."""
    import pandas as pd

    dims = hierarchies(*shape)
    start, used = time.perf_counter(), time.process_time()
    frame = pd.read_parquet(path)
    columns = {name: _levels(frame, name, h) for name, h in dims.items()}
    frame = frame.drop(columns=list(dims)).sort_values("turnover", ascending=False, ignore_index=True)
    cells = sensitive = 0
    for keys in product(*columns.values()):
        groups = frame.groupby(list(keys), observed=True)["turnover"]
        total, first = groups.sum(), groups.first()
        place = groups.cumcount()
        second = frame[place == 1].groupby(list(keys), observed=True)["turnover"].first()
        second = second.reindex(total.index, fill_value=0.0)
        flagged = (0.1 * first + first + second - total > 0) | (first + second > 0.8 * total)
        cells, sensitive = cells + len(total), sensitive + int(flagged.sum())
    print(time.perf_counter() - start, time.process_time() - used, cells, sensitive, peak_gib())


def _levels(frame, name: str, h: cg.Hierarchy) -> list[str]:
    """Add a column of codes for each level of a dimension, as categories."""
    import pandas as pd

    out = []
    tree = h.parents[0]
    code = {c: i for i, c in enumerate(h.codes)}
    leaf = frame[name].astype("category")
    up = {c: code[c] for c in leaf.cat.categories}
    for level in range(int(h.depth.max()), -1, -1):
        names = [h.codes[i] for i in up.values()]
        column = f"{name}{level}"
        frame[column] = pd.Categorical.from_codes(
            pd.factorize(np.array(names))[0][leaf.cat.codes], pd.unique(np.array(names))
        )
        out.append(column)
        up = {c: int(max(tree[i], 0)) for c, i in up.items()}
    return out


class Run(NamedTuple):
    """What one way took: seconds by the clock and of the processors, cells, sensitive cells, memory."""

    seconds: float
    processor: float
    cells: int
    sensitive: int
    memory: float


def run(what: str, path: Path, shape: tuple[int, int, int]) -> Run:
    """Run one way in a process of its own."""
    words = [sys.executable, __file__, what, str(path), *map(str, shape)]
    took, used, cells, sensitive, memory = subprocess.check_output(words, text=True).split()
    return Run(float(took), float(used), int(cells), int(sensitive), float(memory))


def main() -> None:
    """Print every figure."""
    with tempfile.TemporaryDirectory() as folder:
        shape = (36, 9, 6)  # 43 x 256 x 9 codes: 99,072 cells
        runs = {}
        for n in (RECORDS // 10, RECORDS):
            path = Path(folder) / f"{n}.parquet"
            write_records(path, n, hierarchies(*shape))
            run("ours", path, shape)  # the file is in memory the next time
            done = runs[n] = run("ours", path, shape)
            name = f"{n / 1e6:g} million records, {done.cells:,} cells, {done.sensitive:,} sensitive"
            figure(name, done.seconds, 30.0, note=f"processors {done.processor:.1f} s")
            figure("  memory", done.memory, 4.0, "GiB")
        growth = runs[RECORDS].processor / runs[RECORDS // 10].processor
        figure("growth of the processors' time, ten times the records", growth, 10.0, "x")
        theirs = run("pandas", path, shape)
        note = f"pandas {theirs.seconds:.1f} s, {theirs.sensitive:,} sensitive, {theirs.memory:.1f} GiB"
        figure("ours / pandas, processors' time", runs[RECORDS].processor / theirs.processor, 0.2, "x", note=note)
        for file in Path(folder).iterdir():
            file.unlink()
        shape = (120, 30, 8)  # 127 x 781 x 11 codes: 1,091,057 cells
        path = Path(folder) / "wide.parquet"
        write_records(path, RECORDS // 4, hierarchies(*shape))
        run("ours", path, shape)
        done = run("ours", path, shape)
        name = f"{RECORDS / 4e6:g} million records, {done.cells:,} cells"
        figure(name, done.seconds, 60.0, note=f"processors {done.processor:.1f} s, {done.memory:.1f} GiB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        way = {"ours": ours, "pandas": pandas_way}[sys.argv[1]]
        way(sys.argv[2], tuple(int(x) for x in sys.argv[3:]))
    else:
        main()
