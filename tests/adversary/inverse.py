"""The attacker who runs the program himself: which tables could have led to this release?

For tiny tables of counts, every table that agrees with what is published is protected by the same method with the same
options; those that give another release are excluded. What is left is what an attacker who knows everything but
the data and the seed holds possible (the matching attack of minami2019, for every method). Nothing but `intervals`
and suppression with ``resist="matching"`` promises to withstand him; the others are measured.

    python -m adversary.inverse --tables 5
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import cellguard as cg

THRESHOLD = 3
"""Counts from 1 to 2 are sensitive; three whole numbers must stay possible."""
OPTIONS: dict[str, dict[str, Any]] = {
    "suppress": {"rounds": 1},
    "intervals": {},
    "round": {"base": 3.0},
    "perturb": {"base": 3.0},
    "adjust": {"norm": "l1", "senses": "key"},
}
MOST = 9
"""Counts above are not tried."""


def table_of(counts: np.ndarray) -> cg.Table:
    """Return the table of some counts, with what the rule makes sensitive."""
    bare = cg.Table.from_leaves({"r": ["r1", "r2"], "c": ["c1", "c2"]}, counts, integer=True)
    inner = (bare.coordinates > 0).all(axis=1)
    return bare.with_(sensitive=inner & (bare.values > 0) & (bare.values < THRESHOLD))


def published(counts: np.ndarray, method: str, seed: int) -> tuple[tuple[Any, ...], ...] | None:
    """Return what a method publishes of some counts; None if nothing."""
    verb = getattr(cg, method)
    try:
        release = verb(table_of(counts), key=cg.Key.from_public_number(seed), time_limit_s=5.0, **OPTIONS[method])
    except cg.CellguardError:
        return None
    if not release.published:
        return None
    columns = {name: column for name, column in release.columns().items() if name != "status"}
    return tuple(tuple("" if x != x else x for x in column.tolist()) for column in columns.values())  # noqa: PLR0124 - NaN


def candidates(file: tuple[tuple[Any, ...], ...], method: str) -> Iterator[np.ndarray]:
    """Yield the tables of counts that the published numbers alone leave possible."""
    low, high = _limits(file, method)
    inner = (4, 5, 7, 8)
    for counts in product(*(range(int(low[i]), int(high[i]) + 1) for i in inner)):
        leaves = np.array(counts, float).reshape(2, 2)
        values = np.array([[leaves.sum(), *leaves.sum(axis=0)], *([row.sum(), *row] for row in leaves)]).ravel()
        if ((low <= values) & (values <= high)).all():
            yield leaves


def _limits(file: tuple[tuple[Any, ...], ...], method: str) -> tuple[np.ndarray, np.ndarray]:
    if method == "intervals":
        return np.maximum(file[0], 0), np.minimum(file[1], 4 * MOST)
    if method == "suppress":
        hidden = np.array([x == "" for x in file[0]])
        shown = np.array([0 if x == "" else x for x in file[0]], float)
        return np.where(hidden, 0, shown), np.where(hidden, MOST, shown)
    room = {"round": 2.0, "perturb": 3.0, "adjust": 3.0}[method]
    wide = np.where(np.arange(9) % 3 * (np.arange(9) // 3) == 0, 4 * room, room) if method == "adjust" else room
    return np.maximum(np.array(file[0]) - wide, 0), np.array(file[0]) + wide


def attack(counts: np.ndarray, method: str, seeds: int = 2) -> Counter[str]:
    """Say what the attacker learns of the sensitive cells of one table."""
    out: Counter[str] = Counter()
    file = published(counts, method, seed=1)
    if file is None:
        return out
    tried = list(candidates(file, method))
    left = [c for c in tried if any(published(c, method, seed=s) == file for s in range(1, 1 + seeds))]
    all_of_them, possible = np.array(tried), np.array(left)
    for i, j in zip(*np.nonzero((counts > 0) & (counts < THRESHOLD)), strict=True):
        out["sensitive"] += 1
        spread = np.ptp(possible[:, i, j])
        out["before: three numbers or more"] += int(np.ptp(all_of_them[:, i, j]) >= 2)
        out["exact"] += int(spread == 0)
        out["three numbers or more"] += int(spread >= 2)
    out["tables possible"], out["tables left"] = len(tried), len(left)
    return out


def main() -> None:
    """Attack a few tables by every method and print what is left."""
    parser = argparse.ArgumentParser(prog="inverse")
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--methods", default=",".join(OPTIONS))
    args = parser.parse_args()
    for method in args.methods.split(","):
        total: Counter[str] = Counter()
        rng = np.random.default_rng(2)
        while total["tables"] < args.tables:
            counts = rng.integers(0, 7, (2, 2)).astype(float)
            if not ((counts > 0) & (counts < THRESHOLD)).any():
                continue
            total["tables"] += 1
            total.update(attack(counts, method))
        print(method, dict(total), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
