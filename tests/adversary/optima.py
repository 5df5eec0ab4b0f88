"""Honest statuses: what is claimed optimal, bounded or impossible, against full programs and enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog

import cellguard as cg
from adversary.checker import EVERYTHING, Violation, attackers, relations_of, too_close
from adversary.meaning import asked
from adversary.programs import exact

FEW = 9
"""Cells that may be withheld or not: 512 patterns at most."""


def honest(
    release: Any, options: dict[str, Any], rng: np.random.Generator, figures: Counter[str]
) -> Iterable[Violation]:
    """Check what a release claims of its objective."""
    bound, objective = release.bound, release.objective
    if np.isfinite(bound) and bound > objective + 1e-6 * max(1.0, abs(objective)):
        yield Violation("bound", f"the bound {bound:g} lies above the objective {objective:g}")
    if release.status == "optimal" and release.gap > max(0.0, options.get("gap", 1e-3)) + 1e-6:
        yield Violation("bound", f"called optimal with a gap of {release.gap:g}")
    if release.method == "suppress" and rng.random() < 0.25:
        yield from _cheaper_pattern(release, options, figures)
    if release.method == "intervals":
        yield from _narrower_intervals(release, figures)


def nothing(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Nothing is published: if it is said that nothing can be, withholding everything must not be safe."""
    if release.status != "infeasible" or release.method not in ("suppress", "intervals"):
        return
    if options.get("must_publish") or options.get("resist"):
        return
    table = release.table
    truth = [exact(a) for a in table.values]
    intervals = [(truth[i], truth[i]) if table.fixed[i] else EVERYTHING for i in range(table.n_cells)]
    figures[f"{release.method}: infeasible checked"] += 1
    if not any(v for who in attackers(table) for v in too_close(table, intervals, who, "")):
        yield Violation("infeasible", "called infeasible, and withholding everything is safe")


def _cheaper_pattern(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Try every pattern that would be cheaper than the proven bound."""
    table = release.table
    if set(options) & {"weights", "prefer", "must_publish", "already_suppressed", "resist"}:
        return
    choice = [i for i in range(table.n_cells) if not table.sensitive[i] and not table.fixed[i]]
    if len(choice) > FEW or not np.isfinite(release.bound):
        return
    figures["suppress: enumerated"] += 1
    truth = [exact(a) for a in table.values]
    weight = table.weights
    for size in range(len(choice) + 1):
        for chosen in combinations(choice, size):
            cost = float(sum(weight[i] for i in chosen))
            if cost >= release.bound - 1e-6 * max(1.0, release.bound):
                continue
            hidden = {*chosen, *np.flatnonzero(table.sensitive).tolist()}
            intervals = [EVERYTHING if i in hidden else (truth[i], truth[i]) for i in range(table.n_cells)]
            if not any(v for who in attackers(table) for v in too_close(table, intervals, who, "")):
                yield Violation("bound", f"a pattern of cost {cost:g} is safe; the bound says {release.bound:g}")
                return


def _narrower_intervals(release: Any, figures: Counter[str]) -> Iterable[Violation]:
    """Compare a proven bound with the full linear program: ends, and a table for everything that is asked."""
    table = release.table
    if table.integer or not np.isfinite(release.bound) or table.n_cells > 30:
        return
    least = least_width(table)
    if least is None:
        return
    figures["intervals: full program"] += 1
    if release.bound > least * (1 + 1e-5) + 1e-6 * max(1.0, float(np.abs(table.weights).max())):
        yield Violation("bound", f"intervals of {least:g} exist; the bound says {release.bound:g}")


def least_width(table: cg.Table) -> float | None:
    """Return the least weighted width of safe intervals (None when the program is too large or fails)."""
    n = table.n_cells
    requests = [(who, need) for who in attackers(table) for need in asked(table, who)]
    rows_le: list[dict[int, float]] = []
    rhs_le: list[float] = []
    blocks = 0

    def block() -> int:
        nonlocal blocks
        blocks += 1
        return (1 + blocks) * n

    limits: list[tuple[cg.Attacker, int]] = []
    for who, need in requests:
        down = up = None
        if need.lower > 0 or need.width > 0:
            down = block()
            limits.append((who, down))
            rows_le.append({down + need.cell: 1.0})
            rhs_le.append(-float(need.lower))
        if need.upper > 0 or need.width > 0:
            up = block()
            limits.append((who, up))
            rows_le.append({up + need.cell: -1.0})
            rhs_le.append(-float(need.upper))
        if need.width > 0 and down is not None and up is not None:
            rows_le.append({down + need.cell: 1.0, up + need.cell: -1.0})
            rhs_le.append(-float(need.width))
    total = (2 + blocks) * n
    if total > 3000:
        return None
    return _solve(table, n, total, limits, rows_le, rhs_le)


def _solve(table: cg.Table, n: int, total: int, limits: Any, rows_le: Any, rhs_le: Any) -> float | None:
    """Columns: how far each interval goes down, up; then a movement per request."""
    from scipy.sparse import lil_array

    a = table.values
    bounds: list[tuple[float | None, float | None]] = [
        (0, 0) if table.fixed[i % n] else (0, None) for i in range(2 * n)
    ]
    equal = []
    relations = relations_of(table)
    for who, start in limits:
        lo, hi = np.array(table.lb) - a, np.array(table.ub) - a
        lo[who.cells] = np.maximum(lo[who.cells], who.lb - a[who.cells])
        hi[who.cells] = np.minimum(hi[who.cells], who.ub - a[who.cells])
        for i in range(n):
            bounds.append((None if np.isinf(lo[i]) else min(lo[i], 0), None if np.isinf(hi[i]) else max(hi[i], 0)))
            rows_le.append({start + i: 1.0, n + i: -1.0})
            rows_le.append({start + i: -1.0, i: -1.0})
            rhs_le += [0.0, 0.0]
        equal += [{start + i: float(c) for i, c in row.items()} for row in relations]
    if not rows_le:
        return 0.0

    def matrix(rows: Any) -> Any:
        out = lil_array((len(rows), total))
        for r, row in enumerate(rows):
            for j, c in row.items():
                out[r, j] = c
        return out.tocsr()

    cost = np.zeros(total)
    cost[:n] = cost[n : 2 * n] = table.weights
    equal_to = {"A_eq": matrix(equal), "b_eq": np.zeros(len(equal))} if equal else {}
    found = linprog(cost, A_ub=matrix(rows_le), b_ub=rhs_le, bounds=bounds, method="highs", **equal_to)
    return float(found.fun) if found.status == 0 else None
