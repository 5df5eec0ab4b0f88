"""Limits are kept: by at most 5% and 2 s, confirmation and audit included; the worst overrun is the last row."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from figures import CSPLIB, figure

import cellguard as cg
from cellguard import generate
from cellguard.methods.registry import METHODS
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.table import Table
from cellguard.release.release import Release, Status, Suppression

SHARE, SECONDS = 0.05, 2.0
"""So much longer than its limit a verb may take."""
TRIPLES = (
    ("survey 1,525", "suppress", 5.0),
    ("survey 1,525", "suppress insiders", 5.0),
    ("survey 9,150", "suppress", 15.0),
    ("survey 9,150", "suppress insiders", 30.0),
    ("survey 9,150", "audit", 5.0),
    ("survey 9,150", "audit insiders", 5.0),
    ("two ways 8,900", "suppress", 20.0),
    ("three ways 9,975", "suppress", 20.0),
    ("500 attackers", "suppress", 5.0),
    ("500 attackers", "audit", 5.0),
    ("ninenew", "suppress", 5.0),
    ("ninenew", "intervals", 10.0),
    ("ninenew", "intervals", 30.0),
    ("ninenew", "audit", 2.0),
    ("ninenew", "adjust", 5.0),
    ("nine5d", "suppress", 10.0),
)


def survey_table(sizes: int, records: int = 20_000, seed: int = 1) -> Table:
    """Return turnover by 61 activities and 25 regions, and by so many size classes when there are any."""
    rng = np.random.default_rng(seed)
    trees = [{f"{x}{g:02d}": [f"{x}{g:02d}{k}" for k in range(5)] for g in range(n)} for x, n in (("a", 10), ("r", 4))]
    leaves = [np.array([leaf for group in tree.values() for leaf in group]) for tree in trees]
    shares = [rng.gamma(shape, 1.0, len(leaf)) + 0.05 for leaf, shape in zip(leaves, (1.2, 2.0), strict=True)]
    columns = {
        name: leaf[rng.choice(len(leaf), records, p=share / share.sum())]
        for name, leaf, share in zip(("activity", "region"), leaves, shares, strict=True)
    }
    by: dict[str, object] = dict(zip(columns, trees, strict=True))
    employees = np.ceil(rng.pareto(0.85, records) * 1.5).clip(1, 2500)
    turnover = np.ceil(employees * np.exp(rng.normal(4.6, 0.55, records)) + rng.integers(1, 500, records))
    if sizes:
        classes = np.searchsorted([3, 10, 50, 250][: sizes - 1], employees, side="right")
        columns["size"] = np.array([f"s{k}" for k in range(sizes)])[classes]
        by["size"] = [f"s{k}" for k in range(sizes)]
    frame = {**columns, "turnover": turnover, "firm": np.arange(records).astype(str)}
    table = cg.tabulate(frame, by=by, value="turnover", holding="firm")
    return table.apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))


def known_to_many(attackers: int = 500) -> Table:
    """Return a table with so many attackers, each of whom knows two cells exactly."""
    table = generate.hierarchical(1, branching=((4, 5), (4, 4)), sensitive=0.1)
    open_ = np.flatnonzero(~table.sensitive & ~table.fixed & (table.values > 0))
    rng = np.random.default_rng(1)
    some = (rng.choice(open_, 2, replace=False) for _ in range(attackers))
    known = (Attacker(name=f"{k}", cells=c, lb=table.values[c], ub=table.values[c]) for k, c in enumerate(some))
    return table.with_(attackers=(EXTERNAL, *known))


def everything_withheld(table: Table) -> Release:
    """Return the release that is quickest to make and longest to audit."""
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=~table.fixed)


def measured(table: Table, verb: str, limit: float) -> tuple[float, str]:
    """Return the seconds that a verb took, and what it said."""
    name, _, insiders = verb.partition(" ")
    if not insiders:
        table = table.with_(insiders=False)
    begin = time.monotonic()
    if name != "audit":
        release = METHODS[name].verb(table, time_limit_s=limit)
        return time.monotonic() - begin, f"{release.status}, {'safe' if release.published else 'nothing'}"
    found = everything_withheld(table).audit(time_limit_s=limit)
    return time.monotonic() - begin, found.verdict


def main(names: list[str]) -> None:
    """Run the triples whose words hold one of the names; all when none is given."""
    makers: dict[str, Callable[[], Table]] = {
        "survey 1,525": lambda: survey_table(0),
        "survey 9,150": lambda: survey_table(5),
        "two ways 8,900": lambda: generate.hierarchical(1, branching=((9, 10), (8, 10)), sensitive=0.18),
        "three ways 9,975": lambda: generate.hierarchical(1, branching=((4, 5), (4, 4), (3, 5)), sensitive=0.25),
        "500 attackers": known_to_many,
    }
    worst = (-np.inf, "")
    for file, verb, limit in TRIPLES:
        if names and not any(name in f"{file} {verb}" for name in names):
            continue
        if file not in makers and not CSPLIB.is_dir():
            print(f"{file}: CSPLIB is not there; set CELLGUARD_CSPLIB")
            continue
        table = makers[file]() if file in makers else Table.read(CSPLIB / f"{file}.jj.gz")
        took, said = measured(table, verb, limit)
        figure(f"{file}: {verb}, limit {limit:g} s", took, limit * (1 + SHARE) + SECONDS, note=said)
        worst = max(worst, (took - limit, f"{file}: {verb}"))
    figure("worst overrun", worst[0], note=worst[1])


if __name__ == "__main__":
    main(sys.argv[1:])
