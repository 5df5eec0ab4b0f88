"""salazar2004: how often each residue is rounded up (table 1), and large tables (section 5)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from cellguard.data.generate import census, geography
from cellguard.exceptions import InputError
from cellguard.experiments._framework import Experiment, Settings, Unit, published, row
from cellguard.methods.round.verb import round as round_table

__all__ = ["SECTION5", "TABLE1"]

_BASE = 5
_WARDS = 60
"""Of the census that is rounded for table 1: large enough for the shares, small enough for a proof."""
_SIZES = {"geography": (220_040, 75_572, 21.0), "census": (431_613, 105_960, None)}
"""Cells, relations, and the seconds that section 5 prints."""


def _units1(settings: Settings) -> tuple[list[Unit], list[str]]:
    out = []
    for objective in ("distance", "unbiased"):
        for k in range(settings.replications or 1):
            work = {"objective": objective, "seed": settings.seed + k, "time_limit_s": settings.time_limit_s}
            out.append(Unit(key=f"{objective} {settings.seed + k} {settings.time_limit_s:g}", work=work))
    return out, []


def _run1(work: Mapping[str, Any]) -> dict[str, Any]:
    table = census(work["seed"], wards=_WARDS, districts=4)
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
            out.append(
                row(
                    "share_up",
                    share,
                    figures[column],
                    objective=objective,
                    value=value,
                    expected=figures["expected_up"],
                )
            )
    return out


def _units5(settings: Settings) -> tuple[list[Unit], list[str]]:
    kinds = settings.instances or tuple(_SIZES)
    unknown = [kind for kind in kinds if kind not in _SIZES]
    if unknown:
        raise InputError(f"instance {unknown[0]!r} is not part of this experiment.", hint="it has geography, census.")
    work = [{"kind": k, "seed": settings.seed, "time_limit_s": 5 * settings.time_limit_s} for k in kinds]
    return [Unit(key=f"{w['kind']} {w['seed']} {w['time_limit_s']:g}", work=w) for w in work], []


def _run5(work: Mapping[str, Any]) -> dict[str, Any]:
    table = geography(work["seed"]) if work["kind"] == "geography" else census(work["seed"])
    begin = time.process_time()
    gap = 0.0 if work["kind"] == "geography" else 0.01
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
    summary="Share of cells rounded up, by value: the plain objective is biased, the two-step objective hardly.",
    units=_units1,
    run=_run1,
    rows=_rows1,
    remark="The paper's Scottish table is not published; ours is a generated census whose counts are distributed "
    "like the second column of its table 1.",
)
SECTION5 = Experiment(
    name="salazar2004-section5",
    summary="Rounding of the geography table, and of the census table that the paper could not round.",
    units=_units5,
    run=_run5,
    rows=_rows5,
    remark="Generated tables of the same sizes. The paper took 21 s for the first on a computer of 2004, and did not "
    "finish the second, with all its relations, in two days.",
)
