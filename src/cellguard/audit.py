"""The audit: what every attacker can compute from a release, whoever made it.

Only the published intervals, the relations, the known bounds and the levels are used; no method is
imported. A cell is called safe when tables exist that agree with everything the attacker knows
and in which the cell reaches its levels (the witnesses), and unsafe when a proven bound shows that
none exist. What can be shown neither way is unknown, and a release with such a cell is not safe.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellguard.attacker import EXTERNAL, Attacker
from cellguard.exceptions import ReleaseError
from cellguard.release import Adjustment, Perturbation, Release, Rounding, Suppression
from cellguard.table import BoolArray, FloatArray, IntArray, Levels, Table, residuals

__all__ = ["Audit", "Finding", "audit"]

_TOLERANCE = 1e-7
"""How far, relative to a cell, what is published may miss the truth or a level by rounding alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What one attacker can compute of the cells to be protected against him."""

    attacker: Attacker
    """Who."""
    levels: Levels = field(repr=False)
    """The cells to be protected and their levels."""
    low: FloatArray = field(repr=False)
    """Lower end of each cell's range: exact, or the least value shown possible when only verdicts were asked."""
    high: FloatArray = field(repr=False)
    """Upper end of each cell's range."""
    safe: BoolArray = field(repr=False)
    """Cells that reach their levels, with witnesses."""
    unsafe: BoolArray = field(repr=False)
    """Cells proven to miss a level, or disclosed exactly."""
    exact: BoolArray = field(repr=False)
    """Cells whose value the attacker computes exactly."""
    disclosed: IntArray = field(repr=False)
    """All cells of the table, sensitive or not, that are not published and still known exactly."""
    witnesses: Any = field(repr=False, default=None)
    """Movements from the true table to feasible tables, one row each (confidential)."""
    low_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell takes `low`; -1 stands for the true table."""
    high_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell takes `high`; -1 stands for the true table."""
    programs: int = 0
    """Linear programs that were solved."""

    @property
    def cells(self) -> IntArray:
        """Indices of the cells to be protected."""
        return self.levels.cells


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """The result of an audit, attacker by attacker.

    >>> t = Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
    >>> from cellguard.release import Status
    >>> a = audit(Suppression(table=t, status=Status.FEASIBLE, objective=50, suppressed=np.array([True, True, False])))
    >>> a.safe, a.summary()
    (True, {'safe': True, 'checked': 1, 'exact': 0, 'unsafe': 0})
    """

    release: Release = field(repr=False)
    """What was audited."""
    findings: tuple[Finding, ...] = field(repr=False)
    """One per attacker."""
    ranges_exact: bool = False
    """Whether the ranges are exact, or only as wide as the verdicts needed."""
    seconds: float = 0.0
    """How long the audit took."""

    def _cells(self, which: str) -> IntArray:
        found = [f.cells[getattr(f, which)] for f in self.findings]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    @property
    def safe(self) -> bool:
        """Whether every cell is shown to reach its levels against every attacker."""
        return all(bool(f.safe.all()) for f in self.findings)

    @property
    def checked(self) -> int:
        """Number of cells to be protected against at least one attacker."""
        found = [f.cells for f in self.findings]
        return len(np.unique(np.concatenate(found))) if found else 0

    @property
    def exact(self) -> int:
        """Number of those whose value some attacker computes exactly."""
        return len(self._cells("exact"))

    @property
    def unsafe(self) -> int:
        """Number of those that are not shown safe against every attacker."""
        unsafe = [f.cells[~f.safe] for f in self.findings]
        return len(np.unique(np.concatenate(unsafe))) if unsafe else 0

    @property
    def unknown(self) -> int:
        """Number of those for which neither safety nor a violation could be proven."""
        found = [f.cells[~f.safe & ~f.unsafe] for f in self.findings]
        return len(np.unique(np.concatenate(found))) if found else 0

    @property
    def unsafe_cells(self) -> IntArray:
        """Indices of the cells that are not shown safe against every attacker."""
        return np.unique(np.concatenate([f.cells[~f.safe] for f in self.findings] or [np.zeros(0, np.int64)]))

    @property
    def ranges(self) -> dict[str, tuple[IntArray, FloatArray, FloatArray]]:
        """Cells, lower and upper ends of their ranges, by the attacker's name."""
        return {f.attacker.name: (f.cells, f.low, f.high) for f in self.findings}

    @property
    def witnesses(self) -> dict[str, Any]:
        """Movements from the true table to the feasible tables that prove safety, by the attacker's name."""
        return {f.attacker.name: f.witnesses for f in self.findings}

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        out: dict[str, Any] = {"safe": self.safe, "checked": self.checked, "exact": self.exact, "unsafe": self.unsafe}
        if self.unknown:
            out["unknown"] = self.unknown
        return out


def audit(release: Release, *, exact: bool = False, time_limit_s: float = float("inf")) -> Audit:
    """Say what every attacker of the table can compute from a release.

    Parameters
    ----------
    release
        A release of any kind; only what it publishes is used.
    exact
        Compute both ends of every range. Otherwise the search stops where the verdict is known.
    time_limit_s
        For each linear program; what it leaves open is unknown, hence not safe.
    """
    begin = time.perf_counter()
    check_release(release)
    if isinstance(release, Adjustment):
        findings = tuple(_adjustment_finding(release, attacker) for attacker in _attackers(release.table))
    else:
        findings = tuple(
            _range_finding(release, attacker, exact=exact, time_limit_s=time_limit_s)
            for attacker in _attackers(release.table)
        )
    return Audit(release=release, findings=findings, ranges_exact=exact, seconds=time.perf_counter() - begin)


def _attackers(table: Table) -> tuple[Attacker, ...]:
    return table.attackers or (EXTERNAL,)


def _protected(table: Table, attacker: Attacker) -> Levels:
    """Return the cells to protect; a cell that must be published as it is asks for nothing."""
    need = table.levels(attacker)
    keep = ~(table.fixed[need.cells] & (np.maximum(need.lower, np.maximum(need.upper, need.sliding)) == 0))
    return Levels(cells=need.cells[keep], lower=need.lower[keep], upper=need.upper[keep], sliding=need.sliding[keep])


def _range_finding(release: Release, attacker: Attacker, *, exact: bool, time_limit_s: float) -> Finding:
    from cellguard._engine.ranges import ranges

    table = release.table
    need = _protected(table, attacker)
    lo, hi = release.published_bounds(attacker)
    found = ranges(
        table.relations,
        lo,
        hi,
        table.values,
        need.cells,
        lower=need.lower,
        upper=need.upper,
        sliding=need.sliding,
        exact=exact,
        time_limit_s=time_limit_s,
    )
    size = 1e-12 * np.maximum(1.0, np.abs(table.values[need.cells]))
    known = found.high_bound - found.low_bound <= size
    return Finding(
        attacker=attacker,
        levels=need,
        low=found.low,
        high=found.high,
        safe=found.safe & ~known,
        unsafe=found.unsafe | known,
        exact=known,
        disclosed=np.flatnonzero(found.disclosed),
        witnesses=found.witnesses,
        low_witness=found.low_witness,
        high_witness=found.high_witness,
        programs=found.programs,
    )


def _adjustment_finding(release: Adjustment, attacker: Attacker) -> Finding:
    """Check an adjusted table: each sensitive cell outside (a - lower, a + upper) (castro2004 (2)).

    Ranges do not apply: nothing is published about the distance from the truth.
    """
    table = release.table
    need = _protected(table, attacker)
    a, x = table.values[need.cells], release.values[need.cells]
    slack = _TOLERANCE * np.maximum(1.0, np.abs(a))
    safe = (x >= a + need.upper - slack) | (x <= a - need.lower + slack)
    return Finding(
        attacker=attacker,
        levels=need,
        low=np.full(len(a), -np.inf),
        high=np.full(len(a), np.inf),
        safe=safe,
        unsafe=~safe,
        exact=(np.abs(x - a) <= 1e-12 * np.maximum(1.0, np.abs(a))) & ~safe,
        disclosed=np.zeros(0, np.int64),
    )


# ---------------------------------------------------------------------- does the release fit its table?


def check_release(release: Release) -> None:
    """Refuse a release that does not fit its table or contradicts it (:class:`ReleaseError`)."""
    table = release.table
    published = release.point_values()
    lo, hi = release.published_bounds(Attacker(name="nobody"))
    if len(published) != table.n_cells:
        raise ReleaseError(f"the release has {len(published)} cells, its table {table.n_cells}.")
    if isinstance(release, Suppression):
        _refuse(
            table,
            table.sensitive & ~release.suppressed & ~table.fixed,
            "the cell is sensitive and was left published.",
            "suppress every sensitive cell, or take it off the list of sensitive ones.",
        )
        return
    slack = _TOLERANCE * np.maximum(1.0, np.abs(table.values))
    if isinstance(release, Adjustment):
        bad = (published < table.lb - slack) | (published > table.ub + slack)
        _refuse(table, bad, "the published value lies outside the known bounds.")
    else:
        bad = ~((lo <= table.values + slack) & (hi >= table.values - slack))
        _refuse(table, bad, "the published interval does not contain the true value.")
    if isinstance(release, Adjustment | Rounding | Perturbation):
        _check_additive(table, published)


def _check_additive(table: Table, published: FloatArray) -> None:
    residual, allowed = residuals(table.relations, table.rhs, published)
    bad = np.abs(residual) > 100 * allowed
    if bad.any():
        worst = int(np.argmax(np.abs(residual) - allowed))
        raise ReleaseError(
            f"{int(bad.sum())} of {table.n_relations} relations do not hold in what is published; "
            f"the worst is {table.relation_label(worst)}.",
            hint="was the release made from this table, and were all its cells read?",
        )


def _refuse(table: Table, bad: BoolArray, what: str, hint: str | None = None) -> None:
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        more = int(bad.sum()) - 1
        also = f" (and {more} more)" if more else ""
        raise ReleaseError(f"{table.label(first)}{also}: {what}", hint=hint)
