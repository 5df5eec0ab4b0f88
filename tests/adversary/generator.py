"""Strange tables: small enough to be judged by plain programs, and with everything that tables may have.

A case is decided by two numbers, the campaign's seed and its own. Structure first (crossed
dimensions, linked tables, raw relations, ready frames, records), then what stands in it (counts,
money, magnitudes from 1e-3 to 1e12, ties, zeros, negative values), then what is known, asked and feared.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import cellguard as cg
from adversary import counts
from adversary.cases import Case, count_decimals, pick
from adversary.records import draw_plain_records, draw_records, draw_small_counts
from cellguard.model.linked.publication import Part

Rng = np.random.Generator


def case(seed: int, number: int, *, edition: int = 2) -> Case:
    """Return a case of a campaign; a drawing that no table can have (levels wider than bounds) is drawn again.

    The first edition draws what campaigns drew before contributors of every rank attacked; faults that it found are
    kept by seed and number.
    """
    sources, shares = _EDITIONS[edition]
    for attempt in range(50):
        rng = np.random.default_rng([seed, number, attempt])
        try:
            made = sources[int(rng.choice(len(sources), p=shares))](rng)
        except cg.CellguardError:
            continue
        if made is not None:
            return made
    raise AssertionError(f"no table after 50 drawings: seed {seed}, case {number}")


# ---------------------------------------------------------------------- what stands in the cells

VALUES = ("counts", "small counts", "large counts", "money", "magnitudes", "wide", "ties", "negative", "units")


def draw_values(rng: Rng, kind: str, n: int) -> np.ndarray:
    """Draw the values of leaf cells; sums of them are exact, or nearly so."""
    if kind == "counts":
        out = rng.poisson(pick(rng, (2, 8, 40)), n).astype(float)
    elif kind == "small counts":
        out = rng.integers(0, 4, n).astype(float)
    elif kind == "large counts":
        out = np.floor(10 ** rng.uniform(0, pick(rng, (5, 7, 9.5)), n))
    elif kind == "money":
        out = np.round(rng.lognormal(4, 1.5, n), 2)
    elif kind == "magnitudes":
        out = rng.lognormal(3, 1.5, n)
    elif kind == "wide":  # thousandths beside millions of millions, on a grid on which sums are exact
        out = np.rint(10 ** rng.uniform(-3, pick(rng, (6, 12)), n) * 1024) / 1024
    elif kind == "ties":
        out = np.full(n, float(pick(rng, (1, 5, 10, 0.5, 1000)))) * rng.integers(1, 3, n)
    elif kind == "negative":
        out = np.round(rng.normal(0, 50, n), int(rng.integers(0, 3)))
    else:  # multiples of a unit other than a power of ten
        out = rng.integers(0, 60, n) * float(pick(rng, (0.5, 0.25, 5, 12, 1000)))
    if rng.random() < 0.3:
        out = np.where(rng.random(n) < 0.25, 0.0, out)
    return out


# ---------------------------------------------------------------------- structures


def _tree(rng: Rng, most: int) -> tuple[Any, int]:
    """Return a flat or nested dimension and its number of leaves."""
    if rng.random() < 0.7:
        n = int(rng.integers(2, most + 1))
        return [f"c{k}" for k in range(n)], n
    groups = {f"g{g}": [f"g{g}c{k}" for k in range(int(rng.integers(1, 4)))] for g in range(int(rng.integers(2, 4)))}
    return groups, sum(len(g) for g in groups.values())


def _crossed(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    k = int(rng.choice([1, 2, 3, 4], p=[0.2, 0.5, 0.22, 0.08]))
    most = {1: 7, 2: 4, 3: 3, 4: 2}[k]
    trees = [
        _tree(rng, most) if k < 3 else ([f"c{j}" for j in range(2 + int(rng.random() < 0.3))], 0) for _ in range(k)
    ]
    sizes = [n or len(tree) for tree, n in trees]
    dims = {f"d{j}": tree for j, (tree, _) in enumerate(trees)}
    leaves = draw(int(np.prod(sizes))).reshape(sizes)
    return cg.Table.from_leaves(dims, leaves, lb=_least(leaves))


def _least(values: np.ndarray) -> float:
    """What everybody knows of cells: at least 0, unless some are negative."""
    return -np.inf if np.min(values) < 0 else 0.0


def _linked(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    n = int(rng.integers(2, 4))
    shared = [f"r{k}" for k in range(n)]
    cube = draw(n * 2 * 2).reshape(n, 2, 2)
    kinds = [({"r": shared, "a": ["a1", "a2"]}, 2), ({"r": shared, "b": ["b1", "b2"]}, 1)]
    if rng.random() < 0.3:
        kinds.append(({"a": ["a1", "a2"], "b": ["b1", "b2"]}, 0))
    return cg.Table.from_linked([cg.Table.from_leaves(d, cube.sum(axis=k), lb=_least(cube)) for d, k in kinds])


def _publication(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    """Several indicators with an equation between them, or one that shares nothing with the others."""
    n = int(rng.integers(2, 4))
    regions = [f"r{k}" for k in range(n)]
    first, second = draw(2 * n).reshape(n, 2), draw(2 * n).reshape(n, 2)
    low = _least(np.concatenate([first, second]))

    def part(name: str, leaves: np.ndarray) -> Part:
        by = {"r": regions, "a": ["a1", "a2"]} if leaves.ndim == 2 else {"r": regions}
        return Part(name=name, indicator=name, table=cg.Table.from_leaves(by, leaves, lb=low))

    if rng.random() < 0.3:
        return cg.Publication.of([part("one", first), part("other", second)]).table
    if rng.random() < 0.5:  # the total is published by region only
        first, second = first.sum(axis=1), second.sum(axis=1)
    parts = [part("domestic", first), part("exports", second), part("turnover", first + second)]
    return cg.Publication.of(parts, equations=["turnover = domestic + exports"]).table


def _raw(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    """Relations with coefficients that are not 1, right-hand sides, and cells in no relation."""
    n, m = int(rng.integers(3, 9)), int(rng.integers(1, 5))
    a = list(draw(n))
    rows = []
    for _ in range(m):
        parts = rng.choice(len(a), size=min(len(a), int(rng.integers(1, 5))), replace=False)
        c = rng.choice([1, 1, 1, 2, 3, -1, 0.5], size=len(parts))
        rhs = float(rng.choice([0, 0, 0, 7, -3]))
        scale = float(rng.choice([1, 1, 2]))
        rows.append((parts, c * scale, len(a), -scale, rhs * scale))
        a.append(float(c @ np.array(a)[parts]) - rhs)
    T = np.zeros((m, len(a)))
    for r, (parts, c, total, sign, _) in enumerate(rows):
        T[r, parts] = c
        T[r, total] = sign
    return cg.Table.from_equations(a, csr_array(T), rhs=[r[4] for r in rows], lb=_least(np.array(a)))


def _degenerate(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    """Two parts of a total, a = b, free cells in no relation, no relation at all, the same relation twice."""
    a, b, c, d = draw(4)
    shapes = {
        "pair": ([a, a], [[0, 1]]),
        "two parts": ([a + b, a, b], [[0, 1, 2]]),
        "twice": ([a + b, a, b], [[0, 1, 2], [0, 1, 2]]),
        "loose": ([a + b, a, b, c, d], [[0, 1, 2]]),
        "chain": ([a, a, a + b, b, b], [[0, 1], [2, 1, 3], [3, 4]]),
        "islands": ([a + b, a, b, c + d, c, d], [[0, 1, 2], [3, 4, 5]]),
    }
    values, relations = shapes[pick(rng, list(shapes))]
    return cg.Table.from_equations(values, relations, lb=_least(np.array(values)))


def _ready(rng: Rng, draw: Callable[[int], np.ndarray]) -> cg.Table:
    """A frame of cells as somebody else aggregated them, some totals missing."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    inner = draw(n * m).reshape(n, m)
    full = np.zeros((n + 1, m + 1))
    full[1:, 1:] = inner
    full[0, 1:], full[1:, 0], full[0, 0] = inner.sum(axis=0), inner.sum(axis=1), inner.sum()
    codes = [["Total", *(f"c{i}" for i in range(k))] for k in (n, m)]
    rows = [(codes[0][i], codes[1][j], full[i, j]) for i, j in product(range(n + 1), range(m + 1))]
    kept = [r for r in rows if not ("Total" in r[:2] and rng.random() < 0.3)]
    frame = {name: [r[k] for r in kept] for k, name in enumerate(("x", "y", "value"))}
    counts = {}
    if rng.random() < 0.5:
        frame["n"] = [float(np.ceil(abs(r[2]) / 10)) for r in kept]
        counts = {"counts": "n"} if len(kept) == len(rows) and not rng.random() < 0.5 else {}
    return cg.Table.from_frame(frame, ["x", "y"], lb=_least(inner), **counts)


STRUCTURES: dict[str, Callable[[Rng, Callable[[int], np.ndarray]], cg.Table]] = {
    "crossed": _crossed, "linked": _linked, "raw": _raw, "degenerate": _degenerate, "ready": _ready,
    "publication": _publication,
}  # fmt: skip


def _dressed(rng: Rng) -> Case | None:
    structure = pick(rng, list(STRUCTURES), (0.42, 0.14, 0.16, 0.1, 0.1, 0.08))
    kind = pick(rng, VALUES)
    bare = STRUCTURES[structure](rng, lambda n: draw_values(rng, kind, n))
    if bare.n_cells > 64:
        return None
    table, what = _known(rng, bare, kind)
    table = _flagged(rng, table)
    table, attacked = _attackers(rng, table)
    table, levels, shares = _levels(rng, table)
    if rng.random() < 0.3:
        table = table.with_weights(pick(rng, ("unit", "inverse", "sqrt", "log")))
    return Case(table, (structure, kind, levels, *what, *attacked), shares, count_decimals(table.values))


# ---------------------------------------------------------------------- what is known, asked and feared


def _known(rng: Rng, table: cg.Table, kind: str) -> tuple[cg.Table, tuple[str, ...]]:
    """Bounds: from 0, from nowhere, around the values; cells that must be published; whole numbers."""
    a, n = table.values, table.n_cells
    bounds = pick(rng, ("usual", "infinite", "around", "upper"), (0.55, 0.1, 0.2, 0.15))
    size = np.maximum(np.abs(a), 1.0)
    lb, ub = np.array(table.lb), np.array(table.ub)
    if bounds == "infinite":
        lb, ub = np.full(n, -np.inf), np.full(n, np.inf)
    if bounds == "around":
        ub = np.minimum(ub, a + np.ceil(size * rng.uniform(0.2, 3, n)))
        lb = np.maximum(lb, a - np.ceil(size * rng.uniform(0.2, 3, n)))
    if bounds == "upper":
        ub = np.minimum(ub, a + np.ceil(size * 2))
    changes: dict[str, Any] = {"lb": lb, "ub": ub}
    what = [bounds]
    if rng.random() < 0.25:
        changes["fixed"] = rng.random(n) < 0.15
        what.append("fixed")
    if "counts" in kind and (a == np.rint(a)).all() and rng.random() < 0.8:
        changes["integer"] = True
        changes["lb"] = np.where(np.isfinite(lb), np.ceil(lb), lb)
        changes["ub"] = np.where(np.isfinite(ub), np.floor(ub), ub)
        what.append("integer")
    return table.with_(**changes), tuple(what)


def _flagged(rng: Rng, table: cg.Table) -> cg.Table:
    """Choose sensitive cells: small ones, any, zeros too, now and then all or none."""
    n = table.n_cells
    count = int(rng.integers(1, 2 + min(5, n // 3)))
    style = rng.random()
    if style < 0.03:
        chosen = np.zeros(0, int)
    elif style < 0.06:
        chosen = np.arange(n)
    elif style < 0.55:  # rules flag small cells
        chosen = np.argsort(np.abs(table.values) + 1e-9 * rng.random(n), kind="stable")[: 3 * count]
        chosen = rng.permutation(chosen)[:count]
    else:
        chosen = rng.choice(n, min(count, n), replace=False)
    sensitive = np.zeros(n, bool)
    sensitive[chosen] = True
    return table.with_(sensitive=sensitive, fixed=table.fixed & ~sensitive)


LEVELS = ("percent", "percent 5/20", "both", "one-sided", "sliding", "zero", "tiny", "mixed")


def _levels(rng: Rng, table: cg.Table) -> tuple[cg.Table, str, tuple[float, float] | None]:
    """Levels within what every attacker's bounds leave open."""
    kind = pick(rng, LEVELS, (0.24, 0.12, 0.14, 0.1, 0.12, 0.14, 0.04, 0.1))
    a, n = np.abs(table.values), table.n_cells
    shares = None
    lower, upper, sliding = np.zeros(n), np.zeros(n), np.zeros(n)
    scale = np.maximum(a, np.median(a[a > 0]) if (a > 0).any() else 1.0)
    if kind.startswith("percent"):
        shares = (0.05, 0.2) if "5/20" in kind else pick(rng, ((0.1, 0.1), (0.15, 0.15), (0.25, 0.25), (0.5, 0.5)))
        lower, upper = shares[0] * a, shares[1] * a
    elif kind == "both":
        lower, upper = scale * rng.uniform(0, 0.5, n), scale * rng.uniform(0, 0.5, n)
    elif kind == "one-sided":
        up = rng.random(n) < 0.5
        lower, upper = np.where(up, 0, 0.2 * a), np.where(up, 0.2 * scale, 0)
    elif kind == "sliding":
        sliding = scale * rng.uniform(0.05, 0.8, n)
    elif kind == "tiny":
        lower = upper = 1e-6 * scale
    elif kind == "mixed":
        which = rng.integers(0, 5, n)
        lower, upper = np.where(which < 2, 0.1 * a, 0), np.where((which == 1) | (which == 2), 0.2 * scale, 0)
        sliding = np.where(which == 3, 0.3 * scale, 0)
    if table.integer and rng.random() < 0.7:
        lower, upper, sliding = np.ceil(lower), np.ceil(upper), np.ceil(sliding)
        shares = None
    low, high = np.array(table.lb), np.array(table.ub)
    for who in table.attackers:
        low[who.cells] = np.maximum(low[who.cells], who.lb)
        high[who.cells] = np.minimum(high[who.cells], who.ub)
    s = table.sensitive
    return (
        table.with_(
            lower=np.where(s, np.minimum(lower, table.values - low), 0.0),
            upper=np.where(s, np.minimum(upper, high - table.values), 0.0),
            sliding=np.where(s, np.minimum(sliding, high - low), 0.0),
        ),
        kind,
        shares,
    )


def _attackers(rng: Rng, table: cg.Table) -> tuple[cg.Table, tuple[str, ...]]:
    """Beside the external attacker: who knows some cells better, who contributed, who has levels of his own."""
    kind = pick(rng, ("external", "better", "respondent", "own levels"), (0.6, 0.18, 0.12, 0.1))
    n, a = table.n_cells, table.values
    if kind == "external":
        return table, ()
    cells = np.sort(rng.choice(n, min(n, int(rng.integers(1, 4))), replace=False))
    size = np.maximum(np.abs(a[cells]), 1.0)
    near = np.where(rng.random(len(cells)) < 0.2, 0.0, np.ceil(size * rng.uniform(0.3, 1, len(cells))))
    lb, ub = np.maximum(table.lb[cells], a[cells] - near), np.minimum(table.ub[cells], a[cells] + near)
    if kind == "better":
        # what he is asked to be kept from cannot be what he knows exactly
        sure = table.sensitive[cells] & (lb == ub)
        lb, ub = np.where(sure, table.lb[cells], lb), np.where(sure, table.ub[cells], ub)
        who = cg.Attacker(name="neighbour", cells=cells, lb=lb, ub=ub)
    elif kind == "respondent":
        positive = np.flatnonzero((a > 0) & (table.lb >= 0))
        if not len(positive):
            return table, ()
        cell = int(rng.choice(positive))
        own = (
            float(np.floor(a[cell] * rng.uniform(0.2, 0.8)))
            if table.integer
            else float(a[cell] * rng.uniform(0.2, 0.8))
        )
        who = cg.Attacker.respondent(table, cell, own)
    else:
        other = np.sort(rng.choice(n, min(n, int(rng.integers(1, 3))), replace=False))
        other = other[~table.fixed[other]]
        free = np.isin(cells, other)
        lb, ub = np.where(free, table.lb[cells], lb), np.where(free, table.ub[cells], ub)
        level = 0.1 * np.abs(a[other])
        who = cg.Attacker(
            name="rival", cells=cells, lb=lb, ub=ub, sensitive=other,
            lower=np.minimum(level, a[other] - table.lb[other]), upper=np.minimum(level, table.ub[other] - a[other]),
        )  # fmt: skip
    return table.with_(attackers=(*table.attackers, who)), (kind,)


# ---------------------------------------------------------------------- the sources


def _frequency(rng: Rng) -> Case | None:
    """A two-way table of counts with published margins, for suppression by enumeration."""
    table, threshold = counts.frequency(rng)
    return Case(table, ("frequency", "counts", "sliding", "integer"), None, 0, {}, threshold)


_EDITIONS: dict[int, tuple[tuple[Callable[[Rng], Case | None], ...], tuple[float, ...]]] = {
    1: ((_dressed, draw_plain_records, _frequency), (0.83, 0.12, 0.05)),
    2: ((_dressed, draw_records, _frequency, draw_small_counts), (0.78, 0.12, 0.05, 0.05)),
}
