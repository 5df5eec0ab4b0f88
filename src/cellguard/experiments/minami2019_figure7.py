"""minami2019 figure 7: how many candidates a suppressed table has, by the dimension of its null space."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from cellguard import generate
from cellguard._engine.counts import twoway
from cellguard.check.attack.counts import grid_of
from cellguard.experiments._framework import Experiment, Settings, Unit, row
from cellguard.experiments.minami2019 import RULE, sizes
from cellguard.methods.suppress.resist import optimal_counts

__all__ = ["FIGURE7"]

_TABLES = 50
_MOST = 10**12
"""Candidates up to which they are counted."""
_QUANTILES = {"least": 0.0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "most": 1.0}


def _units(settings: Settings) -> tuple[list[Unit], list[str]]:
    n = settings.replications or _TABLES
    work = [{"cells": size, "seed": settings.seed * 10_000, "tables": n} for size in sizes(settings)]
    return [Unit(key=f"{w['cells']} cells, {n} tables from {w['seed']}", work=w) for w in work], []


def _run(work: Mapping[str, Any]) -> dict[str, Any]:
    begin = time.process_time()
    side = round(work["cells"] ** 0.5)
    found: dict[str, list[int]] = {}
    for k in range(work["tables"]):
        release = optimal_counts(generate.frequency(seed=work["seed"] + k, rows=side, columns=side), RULE)
        grid = grid_of(release.table, release.suppressed) if release.published else None
        if grid is not None:
            pattern = grid.pattern(release.suppressed)
            dimension = str(twoway.degrees_of_freedom(pattern))
            found.setdefault(dimension, []).append(twoway.count_candidates(grid.counts, pattern, _MOST))
    return {"cells": work["cells"], "candidates": found, "cpu_s": time.process_time() - begin}


def _rows(results: Mapping[str, dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    del settings
    out = []
    for result in results.values():
        for dimension, counts in sorted(result["candidates"].items(), key=lambda item: int(item[0])):
            where = {"cells": result["cells"], "dimension": int(dimension), "tables": len(counts)}
            out += [row(name, float(np.quantile(counts, share)), None, **where) for name, share in _QUANTILES.items()]
    return out


FIGURE7 = Experiment(
    name="minami2019-figure7",
    units=_units,
    run=_run,
    rows=_rows,
    remark="The paper draws boxes and prints no numbers. Tables are generated as for tables 2 to 5.",
)
