"""Beyond the papers: what an intruder who knows the method computes from adjusted tables, before and after defences."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cellguard.check.attack.scenarios import attack
from cellguard.experiments._framework import Experiment, Settings, Unit, chosen, csplib_table, row
from cellguard.methods.adjust.verb import PLAIN, adjust
from cellguard.nouns.release import Adjustment
from cellguard.nouns.table import Table

__all__ = ["DECIMALS", "KNOWLEDGE", "money"]

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
"""From the papers' tables to what is published unless told otherwise, and beyond."""
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
_EXACT, _NEAR = "exact_pct", "within_5_pct"


def money() -> Table:
    """Return amounts with two decimals by 20 x 12 codes, 80 of them sensitive with levels of 10%."""
    rng = np.random.default_rng(1)
    dims = {"r": [f"r{i}" for i in range(20)], "c": [f"c{i}" for i in range(12)]}
    table = Table.from_leaves(dims, np.round(rng.lognormal(5, 1.5, (20, 12)), 2), name="money")
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1))
    sensitive = np.isin(np.arange(table.n_cells), rng.choice(inner, 80, replace=False))
    return table.with_(sensitive=sensitive).with_levels(0.1, 0.1)


def _table(instance: str) -> Table:
    return money() if instance == "money" else csplib_table(instance).with_levels(0.1, 0.1)


def _adjusted(instance: str, norm: str, kind: str, seed: int) -> Adjustment:
    return adjust(_table(instance), norm=norm, weights=_WEIGHTS[norm], seed=seed, **_KINDS[kind])


def _instances(settings: Settings) -> tuple[list[str], list[str]]:
    wanted = settings.instances or ("money", *_INSTANCES)
    others = tuple(name for name in wanted if name != "money")
    found, skipped = chosen(_INSTANCES, replace(settings, instances=others)) if others else ([], [])
    return (["money"] if "money" in wanted else []) + found, skipped


def _units(choices: Mapping[str, Any], settings: Settings, norms: tuple[str, ...]) -> tuple[list[Unit], list[str]]:
    instances, skipped = _instances(settings)
    out = []
    for name in instances:
        for norm in norms:
            for choice in choices:
                work = {"instance": name, "norm": norm, "choice": choice, "seed": settings.seed}
                work["replications"] = settings.replications or 5
                key = f"{name} {norm} {choice} {work['replications']} {settings.seed}"
                out.append(Unit(key=key, work=work))
    return out, skipped


def _shares(release: Adjustment, scenario: str, work: Mapping[str, Any], **knows: Any) -> dict[str, float]:
    found = attack(release, scenario, replications=work["replications"], seed=work["seed"], **knows)
    exact = found.distribution["0"]
    out = {_EXACT: exact, _NEAR: exact + found.distribution["(0,5]"]}
    if found.candidates is not None:
        out["candidates"] = float(np.median(found.candidates))
        out["alone"] = float((found.candidates == 1).sum())
    return out


def _run_decimals(work: Mapping[str, Any]) -> dict[str, Any]:
    begin = time.process_time()
    release = _adjusted(work["instance"], work["norm"], work["choice"], work["seed"])
    out: dict[str, Any] = {"status": str(release.status), "objective": release.objective}
    out |= {"pct_mean": release.loss()["all"]["pct_mean"], "sensitive": int(release.table.sensitive.sum())}
    out |= {scenario: _shares(release, scenario, work) for scenario in ("decimals", "B3", "C")}
    return out | {"cpu_s": time.process_time() - begin}


def _rows_decimals(results: Mapping[str, dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    out = []
    for unit in _units(_KINDS, settings, ("l1", "l2"))[0]:
        found = results.get(unit.key)
        if found is None:
            continue
        where = {"instance": unit.work["instance"], "norm": unit.work["norm"], "made": unit.work["choice"]}
        first = results.get(unit.key.replace(f" {unit.work['choice']} ", " plain "), found)
        out.append(row("price", found["objective"] / first["objective"], None, **where))
        out.append(row("pct_mean", found["pct_mean"], None, **where))
        out += [
            row(f"{scenario}: {name}", figure, None, **where)
            for scenario in ("decimals", "B3", "C")
            for name, figure in found[scenario].items()
        ]
    return out


def _run_knowledge(work: Mapping[str, Any]) -> dict[str, Any]:
    begin = time.process_time()
    knows = dict(_KNOWLEDGE[work["choice"]])
    if work["choice"] == "another norm":
        knows["norm"] = "l2" if work["norm"] == "l1" else "l1"
    out: dict[str, Any] = {}
    for kind in ("plain", "grid and surplus"):
        release = _adjusted(work["instance"], work["norm"], kind, work["seed"])
        out[kind] = _shares(release, "B3", work, **knows)
    return out | {"cpu_s": time.process_time() - begin}


def _rows_knowledge(results: Mapping[str, dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    out = []
    for unit in _units(_KNOWLEDGE, settings, ("l1", "l2"))[0]:
        for kind in ("plain", "grid and surplus") if unit.key in results else ():
            where = {"instance": unit.work["instance"], "norm": unit.work["norm"], "knows": unit.work["choice"]}
            found = results[unit.key][kind]
            out += [row(name, figure, None, made=kind, **where) for name, figure in found.items()]
    return out


DECIMALS = Experiment(
    name="adjustment-decimals",
    units=lambda settings: _units(_KINDS, settings, ("l1", "l2")),
    run=_run_decimals,
    rows=_rows_decimals,
    remark="Levels are 10% of the value on all tables. No paper has these figures.",
)
KNOWLEDGE = Experiment(
    name="adjustment-knowledge",
    units=lambda settings: _units(_KNOWLEDGE, settings, ("l1", "l2")),
    run=_run_knowledge,
    rows=_rows_knowledge,
    remark="Levels are 10% of the value. castro2012 names these intruders and leaves them open.",
)
