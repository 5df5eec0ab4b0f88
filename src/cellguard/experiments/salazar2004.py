"""salazar2004: how often each residue is rounded up (table 1), and large tables (section 5)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cellguard.data.generate import census, geography
from cellguard.exceptions import InputError
from cellguard.experiments._framework import Experiment, Settings, Unit, published, row
from cellguard.methods.round.verb import round as round_table
from cellguard.nouns.table import Table

__all__ = ["SECTION5", "SMALL_GEOGRAPHY", "TABLE1", "named"]

_BASE = 5
_WARDS = {"census": (60, 4), "small": (6, 2)}
"""Wards and districts of the census of table 1: enough for the shares, not too many for a proof; and for tests."""
_SIZES: dict[str, tuple[int | None, int | None, float | None]] = {
    "geography": (220_040, 75_572, 21.0),
    "census": (431_613, 105_960, None),
    "small": (None, None, None),
}
"""Cells, relations, and the seconds that section 5 prints; "small" is a geography for tests."""
SMALL_GEOGRAPHY = {"wards": 60, "authorities": 12, "counties": 5, "regions": 3, "countries": 2}


def _units1(settings: Settings) -> tuple[list[Unit], list[str]]:
    sizes = named(settings.instances or ("census",), _WARDS)
    out = []
    for size in sizes:
        for objective in ("distance", "unbiased"):
            for k in range(settings.replications or 1):
                seed, limit = settings.seed + k, settings.time_limit_s
                work = {"objective": objective, "seed": seed, "time_limit_s": limit, "size": size}
                out.append(Unit(key=f"{objective} {seed} {limit:g} {size}", work=work))
    return out, []


def named(wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the instances; refuse one that the experiment does not have."""
    for name in wanted:
        if name not in known:
            raise InputError(f"instance {name!r} is not part of this experiment.", hint=f"it has {', '.join(known)}.")
    return list(wanted)


def _run1(work: Mapping[str, Any]) -> dict[str, Any]:
    wards, districts = _WARDS[work["size"]]
    table = census(work["seed"], wards=wards, districts=districts)
    begin = time.process_time()
    release = round_table(
        table,
        _BASE,
        weights="unit",
        objective=work["objective"],
        seed=work["seed"],
        gap=0.02,
        time_limit_s=5 * work["time_limit_s"],
    )
    out: dict[str, Any] = {"cpu_s": time.process_time() - begin, "status": str(release.status)}
    if release.published:
        a = table.values.astype(np.int64)
        up = release.values > table.values
        out["n"] = np.bincount(a[a <= 20], minlength=21).tolist()
        out["up"] = np.bincount(a[a <= 20], weights=up[a <= 20], minlength=21).tolist()
    return out


def _rows1(results: Mapping[str, dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    del settings
    out = []
    for objective, column in (("distance", "plain_objective_up"), ("unbiased", "unbiased_objective_up")):
        found = [r for key, r in results.items() if key.startswith(objective) and "n" in r]
        n = np.sum([r["n"] for r in found], axis=0) if found else np.zeros(21)
        up = np.sum([r["up"] for r in found], axis=0) if found else np.zeros(21)
        for figures in published("salazar2004-table1"):
            value = figures["value"]
            share = float(up[value] / n[value]) if n[value] else None
            where = {"objective": objective, "value": value, "expected": figures["expected_up"]}
            where |= {"occurrences": int(n[value]), "plus_minus": _plus_minus(share, n[value])}
            where |= {"paper_occurrences": figures["occurrences"]}
            where["paper_plus_minus"] = _plus_minus(figures[column], figures["occurrences"])
            out.append(row("share_up", share, figures[column], **where))
    return out


def _plus_minus(share: float | None, occurrences: float) -> float | None:
    """Return half the 95% interval of a share of so many cells, as if each were rounded by itself."""
    return None if share is None or not occurrences else 1.96 * float(np.sqrt(share * (1 - share) / occurrences))


def _units5(settings: Settings) -> tuple[list[Unit], list[str]]:
    kinds = named(settings.instances or ("geography", "census"), _SIZES)
    work = [{"kind": k, "seed": settings.seed, "time_limit_s": 5 * settings.time_limit_s} for k in kinds]
    return [Unit(key=f"{w['kind']} {w['seed']} {w['time_limit_s']:g}", work=w) for w in work], []


def _table5(kind: str, seed: int) -> Table:
    if kind == "small":
        return geography(seed, **SMALL_GEOGRAPHY)
    return geography(seed) if kind == "geography" else census(seed)


def _run5(work: Mapping[str, Any]) -> dict[str, Any]:
    table = _table5(work["kind"], work["seed"])
    begin = time.process_time()
    gap = 0.01 if work["kind"] == "census" else 0.0
    release = round_table(table, _BASE, weights="unit", seed=work["seed"], gap=gap, time_limit_s=work["time_limit_s"])
    return {
        "cpu_s": time.process_time() - begin,
        "status": str(release.status),
        "cells": table.n_cells,
        "relations": table.n_relations,
        "gap_pct": 100 * release.gap if release.published else None,
    }


def _rows5(results: Mapping[str, dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    del settings
    out = []
    for key, found in results.items():
        kind = key.split()[0]
        cells, relations, seconds = _SIZES[kind]
        where = {"instance": kind, "status": found["status"]}
        out.append(row("cells", found["cells"], cells, **where))
        out.append(row("relations", found["relations"], relations, **where))
        out.append(row("seconds", found["cpu_s"], seconds, **where))
        out.append(row("gap_pct", found["gap_pct"], 0.0 if kind == "geography" else None, **where))
    return out


TABLE1 = Experiment(
    name="salazar2004-table1",
    units=_units1,
    run=_run1,
    rows=_rows1,
    remark="The paper's Scottish table is not published; ours is a generated census whose counts are distributed "
    "like the second column of its table 1.",
)
SECTION5 = Experiment(
    name="salazar2004-section5",
    units=_units5,
    run=_run5,
    rows=_rows5,
    remark="Generated tables of the same sizes. The paper took 21 s for the first on a computer of 2004, and did not "
    "finish the second, with all its relations, in two days.",
)
