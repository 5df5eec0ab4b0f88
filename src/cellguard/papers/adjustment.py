"""Beyond the papers: what an informed attacker infers from adjusted tables, with and without defences."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cellguard.attacks.scenarios import attack
from cellguard.methods.adjust.adjust import PLAIN, adjust
from cellguard.model.key import Key
from cellguard.model.table import Table
from cellguard.papers._csplib import read_csplib_table, select_instances
from cellguard.papers._framework import (
    Done,
    Experiment,
    Figures,
    Settings,
    Unit,
    Units,
    compare_with_paper,
    group_results,
)
from cellguard.release.release import Adjustment

__all__ = ["DECIMALS", "KNOWLEDGE"]

_INSTANCES = (
    *("cbs", "hier13", "hier13x7x7d", "hier13x13x13a", "hier13x13x7d", "hier16", "hier16x16x16a", "nine5d", "ninenew"),
    *("osorio", "table1", "table3", "table7", "table8", "targus", "toy3dsarah", "two5in6"),
)
_WEIGHTS = {"l1": "inverse", "l2": "inverse_square"}
_KINDS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "plain, senses by key": {**PLAIN, "senses": "key"},
    "grid": {"surplus": 0.0},
    "grid and surplus": {},
    "grid, surplus and noise": {"noise": 0.02},
}
"""Variants from the papers' tables to the default release, and beyond."""
_COMPARED = ("plain", "grid and surplus")
_KNOWLEDGE: dict[str, dict[str, Any]] = {
    "everything but the values": {},
    "senses drawn": {"senses": "drawn"},
    "senses free, (9)": {"senses": "free"},
    "no movement allowed, (13)": {"may_stay": True},
    "another norm": {},
    "other weights": {"weights": "unit"},
    "no bounds": {"bounds": False},
    "not which cells are sensitive": {"sensitive": False},
}


def _generate_amounts() -> Table:
    """Return amounts with two decimals by 20 x 12 codes, 80 of them sensitive with levels of 10%."""
    rng = np.random.default_rng(1)
    dims = {"r": [f"r{i}" for i in range(20)], "c": [f"c{i}" for i in range(12)]}
    table = Table.from_leaves(dims, np.round(rng.lognormal(5, 1.5, (20, 12)), 2), name="money")
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1))
    sensitive = np.isin(np.arange(table.n_cells), rng.choice(inner, 80, replace=False))
    return table.with_(sensitive=sensitive).with_levels(0.1, 0.1)


def _adjust_amounts(work: Figures, kind: str) -> Adjustment:
    instance, norm = work["instance"], work["norm"]
    table = _generate_amounts() if instance == "money" else read_csplib_table(instance).with_levels(0.1, 0.1)
    return adjust(table, norm=norm, weights=_WEIGHTS[norm], key=Key.from_public_number(work["seed"]), **_KINDS[kind])


def _list_adjustment_units(choices: Mapping[str, Any]) -> Callable[[Settings], Units]:
    def list_units(settings: Settings) -> Units:
        wanted = settings.instances or ("money", *_INSTANCES)
        others = tuple(name for name in wanted if name != "money")
        found, skipped = select_instances(_INSTANCES, replace(settings, instances=others)) if others else ([], [])
        out = []
        for name, norm, choice in product(["money"] * ("money" in wanted) + found, ("l1", "l2"), choices):
            work = {"instance": name, "norm": norm, "choice": choice, "seed": settings.seed}
            work["replications"] = settings.replications or 5
            out.append(Unit(key=f"{name} {norm} {choice} {work['replications']} {settings.seed}", work=work))
        return out, skipped

    return list_units


def _measure_estimates(release: Adjustment, scenario: str, work: Figures, **knows: Any) -> dict[str, float]:
    found = attack(release, scenario, replications=work["replications"], seed=work["seed"], **knows)
    exact = found.distribution["0"]
    out = {"exact_pct": exact, "within_5_pct": exact + found.distribution["(0,5]"]}
    if found.candidates is not None:
        out["candidates"] = float(np.median(found.candidates))
        out["alone"] = float((found.candidates == 1).sum())
    return out


def _run_decimals_experiment(work: Figures) -> Figures:
    begin = time.process_time()
    release = _adjust_amounts(work, work["choice"])
    out: Figures = {"status": str(release.status), "objective": release.objective}
    out |= {"pct_mean": release.loss()["all"]["pct_mean"], "sensitive": int(release.table.sensitive.sum())}
    out |= {scenario: _measure_estimates(release, scenario, work) for scenario in ("decimals", "B3", "C")}
    return out | {"cpu_s": time.process_time() - begin}


def _report_decimals(done: Done) -> list[Figures]:
    out = []
    results = group_results(done, "instance", "norm", "choice")
    for (instance, norm, choice), found in results.items():
        where = {"instance": instance, "norm": norm, "made": choice}
        first = results[instance, norm, "plain"]
        out.append(compare_with_paper("price", found["objective"] / first["objective"], None, **where))
        out.append(compare_with_paper("pct_mean", found["pct_mean"], None, **where))
        out += [
            compare_with_paper(f"{scenario}: {name}", figure, None, **where)
            for scenario in ("decimals", "B3", "C")
            for name, figure in found[scenario].items()
        ]
    return out


def _run_knowledge_experiment(work: Figures) -> Figures:
    begin = time.process_time()
    knows = dict(_KNOWLEDGE[work["choice"]])
    if work["choice"] == "another norm":
        knows["norm"] = "l2" if work["norm"] == "l1" else "l1"
    out: Figures = {kind: _measure_estimates(_adjust_amounts(work, kind), "B3", work, **knows) for kind in _COMPARED}
    return out | {"cpu_s": time.process_time() - begin}


def _report_knowledge(done: Done) -> list[Figures]:
    return [
        compare_with_paper(
            name, figure, None, made=kind, instance=work["instance"], norm=work["norm"], knows=work["choice"]
        )
        for work, found in done
        for kind in _COMPARED
        for name, figure in found[kind].items()
    ]


DECIMALS = Experiment(
    name="adjustment-decimals",
    units=_list_adjustment_units(_KINDS),
    run=_run_decimals_experiment,
    rows=_report_decimals,
    remark="Levels are 10% of the value on all tables. No paper has these figures.",
)
KNOWLEDGE = Experiment(
    name="adjustment-knowledge",
    units=_list_adjustment_units(_KNOWLEDGE),
    run=_run_knowledge_experiment,
    rows=_report_knowledge,
    remark="Levels are 10% of the value. castro2012 names these intruders and leaves them open.",
)
