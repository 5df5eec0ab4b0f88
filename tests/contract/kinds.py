"""The kinds of tables over which every method keeps its contract, and how a method is asked for a release of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.methods.method import Method
from cellguard.methods.registry import METHODS
from cellguard.release.release import Release, Rounding

RNG = np.random.default_rng
EVERY_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
QUICK = {"rounds": 5, "norm": "l1"}
"""Options for who has them: less work, the same promises."""


def protect(method: Method, table: cg.Table, **limits: Any) -> Release:
    """Return what the method makes of a table, with the options that follow from it."""
    options = {name: value for name, value in QUICK.items() if method.get_option(name) is not None}
    secret = {"key": key(4)} if method.takes_key else {}
    return method.verb(table, **method.fill_options(options, table), **{"time_limit_s": 20.0, **secret, **limits})


def read_again(release: Release, path: Path) -> Release:
    """Write a release and read what is published, with what is said beside it."""
    release.save(path)
    options: dict[str, Any] = {"method": release.method}
    if isinstance(release, Rounding):
        options |= {"base": float(release.base[0]), "step": release.step}
    elif hasattr(release, "base"):
        options |= {"base": float(release.base[0])}
    return cg.read_release(release.table, path, **options)


# ---------------------------------------------------------------- ordinary tables


def grid(rows: int = 5, columns: int = 4, *, scale: float = 1.0, low: float = 10.0) -> cg.Table:
    """A two-way table with three sensitive cells and levels of 10%."""
    leaves = scale * (low + RNG(3).integers(0, 90, (rows, columns)).astype(float))
    dims = {"region": [f"r{i}" for i in range(rows)], "trade": [f"t{j}" for j in range(columns)]}
    table = cg.Table.from_leaves(dims, leaves)
    chosen = [table.cell({"region": f"r{i}", "trade": f"t{i}"}) for i in range(3)]
    return only(table, chosen).with_levels(0.1, 0.1)


def only(table: cg.Table, cells: list[int]) -> cg.Table:
    """The table with these sensitive cells, and no levels yet."""
    none = np.zeros(table.n_cells)
    return table.with_(sensitive=np.isin(np.arange(table.n_cells), cells), lower=none, upper=none)


def counts_from_leaves() -> cg.Table:
    leaves = RNG(5).poisson(6, (5, 4)) + 4.0
    leaves[0, 1], leaves[2, 3], leaves[4, 0] = 1, 2, 1
    dims = {"region": [f"r{i}" for i in range(5)], "age": [f"a{i}" for i in range(4)]}
    return cg.Table.from_leaves(dims, leaves, integer=True, weights=1.0)


def records(n: int = 150) -> dict[str, list]:
    rng = RNG(8)
    regions = rng.choice(["N", "S", "W", "E"], n, p=[0.45, 0.3, 0.2, 0.05]).tolist()
    sectors = rng.choice(["f", "m", "k"], n, p=[0.6, 0.3, 0.1]).tolist()
    amounts = np.ceil(np.exp(rng.normal(5, 1.2, n))).tolist()
    return {"region": regions, "sector": sectors, "x": amounts}


def counts_from_records() -> cg.Table:
    return cg.tabulate(records(), ["region", "sector"])


def magnitudes() -> cg.Table:
    return cg.tabulate(records(), ["region", "sector"], "x")


def ready() -> cg.Table:
    """A frame that is already added up, with a lone firm, two firms, an empty cell and a zero with contributors."""
    frame = {
        "region": [r for r in "NSWE" for _ in range(4)],
        "sector": ["f", "m", "k", "o"] * 4,
        "value": [130.0, 45, 88, 20, 61, 0, 35, 70, 94, 52, 0, 33, 41, 77, 58, 66],
    }
    table = cg.Table.from_frame(frame, ["region", "sector"], counts=None)
    firms = np.array([9, 1, 7, 8, 6, 2, 7, 8, 9, 2, 0, 7, 8, 6, 9, 9], float).reshape(4, 4)
    counted = cg.Table.from_leaves(dict(zip(table.dimensions, table.hierarchies, strict=True)), firms)
    return table.with_(counts=counted.values)


TABLES = {f.__name__: f for f in (counts_from_leaves, counts_from_records, magnitudes, ready)}


# ---------------------------------------------------------------- levels


def by_rule(table: cg.Table) -> cg.Table:
    return table.apply(cg.MinFrequency(3))


def percentages(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.1, 0.1)


def asymmetric(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.05, 0.2)


def upper_only(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.15)


def sliding_only(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.0, sliding=0.2)


def none_at_all(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.0)


LEVELS = {f.__name__: f for f in (by_rule, percentages, asymmetric, upper_only, sliding_only, none_at_all)}


# ---------------------------------------------------------------- strange tables


def second_attacker() -> cg.Table:
    table = grid()
    insider = cg.Attacker.coalition(table, [({"region": "r0", "trade": "t0"}, 3.0)], name="insider")
    return table.with_(attackers=(cg.Attacker(name="external"), insider))


def sliding() -> cg.Table:
    return grid().with_levels(0.02, 0.02, sliding=0.25)


def zero_levels() -> cg.Table:
    return grid().with_levels(0.0, 0.0)


def sensitive_zero() -> cg.Table:
    """Of zeros, one of which has contributors and is sensitive."""
    leaves = 10 + RNG(3).integers(0, 90, (5, 4)).astype(float)
    leaves[0, 0] = leaves[0, 1] = leaves[1, 0] = 0.0
    dims = {"region": [f"r{i}" for i in range(5)], "trade": [f"t{j}" for j in range(4)]}
    table = cg.Table.from_leaves(dims, leaves)
    table = only(table, [table.cell({"region": "r0", "trade": "t0"}), table.cell({"region": "r3", "trade": "t3"})])
    return table.with_(upper=np.where(table.sensitive, 4.0, 0.0), ub=np.full(table.n_cells, np.inf))


def negative() -> cg.Table:
    table = grid()
    values = table.values.copy()
    inner = table.cell({"region": "r4", "trade": "t3"})
    moved = [inner, table.cell({"region": "r4"}), table.cell({"trade": "t3"}), table.cell({})]
    values[moved] -= 2.0 * values[inner]
    return table.with_(values=values, lb=np.full(table.n_cells, -np.inf), ub=np.full(table.n_cells, np.inf))


def far_apart() -> cg.Table:
    leaves = np.array([[1e-3, 2e12, 5.0], [3e3, 4e-3, 1e12], [7.0, 1e6, 2e-3]])
    made = cg.Table.from_leaves({"region": ["a", "b", "c"], "trade": ["x", "y", "z"]}, leaves)
    return made.with_(sensitive=made.values == 7.0).with_levels(0.1, 0.1)


def fixed_cells() -> cg.Table:
    table = grid()
    return table.with_(fixed=np.isin(np.arange(table.n_cells), [table.cell({})]))


def unbounded() -> cg.Table:
    table = grid()
    return table.with_(ub=np.full(table.n_cells, np.inf))


STRANGE = {
    f.__name__: f
    for f in (second_attacker, sliding, zero_levels, sensitive_zero, negative, far_apart, fixed_cells, unbounded)
}
