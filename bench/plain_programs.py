"""A judge of its own for releases: plain linear programs (SciPy, HiGHS) against every attacker, one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import compute_movement_levels, compute_required_levels, list_attackers
from cellguard.release.release import Release

__all__ = ["Judgement", "judge_by_programs"]

_MISSING = 1e-6
"""Share of a level that rounding may take away."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the programs found."""

    attackers: int
    """How many attackers there are."""
    checked: int
    """How many of them were checked before the time was up."""
    programs: int
    """Linear programs solved."""
    unsafe: tuple[str, ...]
    """Attacker and cell of each disclosure."""

    def __str__(self) -> str:
        """Return the verdict in words."""
        word = "safe" if not self.unsafe else f"UNSAFE ({len(self.unsafe)}, {self.unsafe[0]})"
        part = "" if self.checked == self.attackers else f" for {self.checked} of"
        return f"{word}{part} {self.attackers} attackers, {self.programs} programs"


def judge_by_programs(release: Release, attackers: tuple[Attacker, ...], time_limit_s: float) -> Judgement:
    """Judge a release against the external attacker and these."""
    everyone = (EXTERNAL, *(a for a in attackers if a.name != EXTERNAL.name))
    if release.method == "adjust":
        return _judge_distances(release, len(everyone))
    judge = _Judge(release)
    end = time.monotonic() + time_limit_s
    checked = 0
    for attacker in everyone:
        if not judge.check(attacker, end):
            break
        checked += 1
    return Judgement(attackers=len(everyone), checked=checked, programs=judge.programs, unsafe=tuple(judge.unsafe))


def _judge_distances(release: Release, attackers: int) -> Judgement:
    """Judge an adjusted table: it adds up, and each sensitive cell is as far from the truth as every attacker needs."""
    table, x = release.table, release.get_point_values()
    unsafe = []
    size = abs(table.relations) @ np.abs(x) + np.abs(table.rhs)
    wrong = np.abs(table.relations @ x - table.rhs) > 1e-8 * np.maximum(size, 1e-3)
    unsafe += [f"relation {r}" for r in np.flatnonzero(wrong).tolist()]
    for attacker in list_attackers(table):
        need = compute_movement_levels(table, attacker)
        z = x[need.cells] - table.values[need.cells]
        near = np.where(z > 0, z < need.upper * (1 - _MISSING), -z < need.lower * (1 - _MISSING))
        unsafe += [f"{attacker.name}: {table.label(int(c))}" for c in need.cells[near]]
    return Judgement(attackers=attackers, checked=attackers, programs=0, unsafe=tuple(unsafe))


class _Judge:
    """The programs of one release; movements found for one attacker are tried for the next."""

    def __init__(self, release: Release) -> None:
        self.release, self.table = release, release.table
        self.programs = 0
        self.unsafe: list[str] = []
        lo, hi = release.published_bounds()
        self.free = np.flatnonzero(hi > lo)
        self.T = csr_array(self.table.relations[:, self.free])
        self.T = csr_array(self.T[np.diff(self.T.indptr) > 0])
        self.found: dict[tuple[int, int], list[np.ndarray]] = {}
        """Movements of the free cells, by cell and sign."""

    def check(self, attacker: Attacker, end: float) -> bool:
        """Check what one attacker can infer about every sensitive cell; return whether the time was enough."""
        table, a = self.table, self.table.values
        need = compute_required_levels(table, attacker, everywhere=True)
        lo, hi = self.release.published_bounds(attacker)
        room = np.minimum(lo - a, 0.0)[self.free], np.maximum(hi - a, 0.0)[self.free]
        for cell, lower, upper, width in zip(need.cells, need.lower, need.upper, need.sliding, strict=True):
            if time.monotonic() > end:
                return False
            at = int(np.searchsorted(self.free, cell))
            inside = at < len(self.free) and self.free[at] == cell
            near = 1 - _MISSING
            least, most = (lower, upper) if lower + upper >= width * near else (max(lower, width), max(upper, width))
            down = self._reach(room, at, -1, least) if inside else 0.0
            up = self._reach(room, at, 1, most) if inside else 0.0
            if down < lower * near or up < upper * near or down + up < width * near or down + up <= 0:
                self.unsafe.append(f"{attacker.name}: {table.label(int(cell))}")
        return True

    def _reach(self, room: tuple[np.ndarray, np.ndarray], at: int, sign: int, enough: float) -> float:
        """Return how far the attacker thinks that a cell may go, at most `enough`."""
        known = self.found.setdefault((at, sign), [])
        slack = 1e-9 * np.maximum(1.0, np.abs(self.table.values[self.free]))
        for z in known:
            if abs(z[at]) < enough * (1 - _MISSING):
                continue
            shorter = z * min(1.0, enough / abs(z[at])) if z[at] else z
            if ((shorter >= room[0] - slack) & (shorter <= room[1] + slack)).all():
                return enough
        for exactly in (True, False):  # first a small movement that goes as far as it must, then the farthest
            z = self._solve(room, at, sign, enough, exactly=exactly)
            if z is not None:
                known.append(z)
                return float(abs(z[at]))
        return 0.0

    def _solve(
        self, room: tuple[np.ndarray, np.ndarray], at: int, sign: int, enough: float, *, exactly: bool
    ) -> np.ndarray | None:
        """Return the smallest movement in which a cell goes exactly this far, or one in which it goes farthest."""
        n = len(self.free)
        cost = np.tile(1.0 / (np.abs(self.table.values[self.free]) + 1.0) if exactly else np.zeros(n), 2)
        low, high = np.zeros(2 * n), np.concatenate([room[1], -room[0]])
        this, other = (at, n + at) if sign > 0 else (n + at, at)
        high[other] = 0.0
        if exactly:
            if enough > high[this] * (1 + _MISSING):
                return None
            low[this] = high[this] = min(enough, high[this])
        else:
            cost[this], high[this] = -1.0, min(high[this], enough)
        self.programs += 1
        sides = hstack([self.T, -self.T])
        bounds = np.column_stack([low, high])
        out = linprog(cost, A_eq=sides, b_eq=np.zeros(self.T.shape[0]), bounds=bounds, method="highs")
        return np.asarray(out.x[:n] - out.x[n:]) if out.status == 0 else None
