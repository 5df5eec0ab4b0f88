"""The least width of safe intervals, by one linear program with a table for everything that is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array

import cellguard as cg
from adversary.checker import attackers, relations_of
from adversary.meaning import find_least, find_published, list_needs

LARGE = 3000
"""Columns of a program that is no longer solved."""
LARGE_WHOLE = 400
"""Columns of a program in whole numbers that is no longer solved."""
WHOLE_S = 2.0
"""Seconds for a program in whole numbers; what it has not proven by then is compared with nothing."""


class Program:
    """A linear program whose columns and rows are collected one after the other."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.bounds: list[tuple[float, float]] = []
        self.rows: dict[bool, list[tuple[Mapping[int, float], float]]] = {True: [], False: []}

    def columns(self, low: Any, high: Any, cost: Any) -> int:
        """Add columns and return the first of them."""
        first = len(self.cost)
        self.bounds += list(zip(low, high, strict=True))
        self.cost += list(cost)
        return first

    def row(self, terms: Mapping[int, float], most: float, *, equal: bool = False) -> None:
        """Add a sum of columns that is at most, or exactly, a number."""
        self.rows[equal].append((terms, most))

    def solve(self, *, whole: bool = False) -> float | None:
        """Return the least cost; in whole numbers, the least that is found."""
        given: dict[str, Any] = {}
        for equal, name in ((True, "eq"), (False, "ub")):
            rows = self.rows[equal]
            i = [r for r, (terms, _) in enumerate(rows) for _ in terms]
            j = [k for terms, _ in rows for k in terms]
            c = [x for terms, _ in rows for x in terms.values()]
            if rows:
                given[f"A_{name}"] = coo_array((c, (i, j)), shape=(len(rows), len(self.cost))).tocsr()
                given[f"b_{name}"] = [most for _, most in rows]
        if whole:
            return self._solve_whole(given)
        found = linprog(self.cost, bounds=self.bounds, method="highs", **given)
        return float(found.fun) if found.status == 0 else None

    def _solve_whole(self, given: Mapping[str, Any]) -> float | None:
        """Return the cost of the best solution in whole numbers that is found in time: no bound may lie above it."""
        rows = [LinearConstraint(given["A_eq"], given["b_eq"], given["b_eq"])] if "A_eq" in given else []
        rows += [LinearConstraint(given["A_ub"], -np.inf, given["b_ub"])] if "A_ub" in given else []
        low, high = np.array(self.bounds).T
        limits = {"time_limit": WHOLE_S, "mip_rel_gap": 1e-7}
        found = milp(
            self.cost, integrality=np.ones(len(low)), bounds=Bounds(low, high), constraints=rows, options=limits
        )
        return None if found.x is None else float(np.array(self.cost) @ np.rint(found.x))


def least_width(table: cg.Table) -> float | None:
    """Return the least weighted width of safe intervals; None when the program is too large or has no answer.

    Of counts, the ends and the tables that attackers hold possible are whole numbers.
    """
    n = table.n_cells
    program = Program()
    most = np.where(find_published(table), 0.0, np.inf)
    weights = _prices(table)
    down, up = (program.columns(np.zeros(n), most, weights) for _ in range(2))
    for who in attackers(table):
        for need in list_needs(table, who):
            low, high = (_movement(program, table, who, down, up) for _ in range(2))
            program.row({low + need.cell: 1.0}, -float(need.lower))
            program.row({high + need.cell: -1.0}, -float(need.upper))
            program.row({low + need.cell: 1.0, high + need.cell: -1.0}, -float(need.width))
    if len(program.cost) > (LARGE_WHOLE if table.integer else LARGE):
        return None
    return program.solve(whole=bool(table.integer))


def _movement(program: Program, table: cg.Table, who: cg.Attacker, down: int, up: int) -> int:
    """Add a table that the attacker holds possible, as a movement between the ends of the intervals."""
    a, n = table.values, table.n_cells
    low, high = np.minimum(find_least(table) - a, 0), np.maximum(table.ub - a, 0)
    low[who.cells] = np.clip(who.lb - a[who.cells], low[who.cells], 0)
    high[who.cells] = np.clip(who.ub - a[who.cells], 0, high[who.cells])
    first = program.columns(low, high, np.zeros(n))
    for row in relations_of(table):
        program.row({first + i: float(c) for i, c in row.items()}, 0.0, equal=True)
    for i in range(n):
        program.row({first + i: 1.0, up + i: -1.0}, 0.0)
        program.row({first + i: -1.0, down + i: -1.0}, 0.0)
    return first


def _prices(table: cg.Table) -> np.ndarray:
    """Return what a width costs; the manual: none is for nothing, a millionth of the usual weight is the least.

    What is usual is asked in each part of a publication, which is protected by itself.
    """
    T = table.relations.toarray() != 0
    out, left = table.weights.astype(float), np.ones(table.n_cells, bool)
    while left.any():
        part = np.arange(table.n_cells) == np.flatnonzero(left)[0]
        while table.parts and (wider := part | T[T[:, part].any(axis=1)].any(axis=0)).sum() > part.sum():
            part = wider
        part = part if table.parts else left.copy()
        positive = out[part & (out > 0)]
        out[part] = np.maximum(out[part], 1e-6 * np.median(positive) if len(positive) else 1.0)
        left &= ~part
    return out
