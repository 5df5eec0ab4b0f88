"""The audit: what every attacker can compute from a release, whoever made it.

Only the published intervals, the relations, the known bounds and the levels are used; no method is
imported. A cell is called safe when tables exist that agree with everything the attacker knows
and in which the cell reaches its levels (the witnesses), and unsafe when a proven bound shows that
none exist. What can be shown neither way is unknown, and a release with such a cell is not safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import Deadline, now
from cellguard._engine.ranges.shown import remembering_shown
from cellguard._engine.threads import on_one_blas_thread
from cellguard._tolerances import LEVEL_TOLERANCE
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.check.by_clusters import audited_by_clusters, clusters_to_audit
from cellguard.check.cross import judged_by_the_cross
from cellguard.check.read_release import check_release_to_audit
from cellguard.check.witnesses import Proof, attackers_to_audit, write_witnesses
from cellguard.exceptions import InputError
from cellguard.nouns.attacker import Attacker
from cellguard.nouns.levels import (
    LEAST_WIDTH,
    Levels,
    attackers_of_table,
    movement_levels,
    required_levels,
    table_with_respondent_attackers,
)
from cellguard.nouns.release import Adjustment, Release, Suppression
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard._engine.ranges.ranges import Ranges
    from cellguard._engine.ranges.verdicts import Verdicts
    from cellguard._engine.ranges.witness import ExactMovements

__all__ = ["Audit", "Finding", "audit"]


WHOLE_CELLS = 2_500
"""Of larger tables of counts only verdicts are found unless whole ranges are asked for: those take hours."""


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
    witnesses: ExactMovements | None = field(repr=False, default=None)
    """Exact movements from the true table to feasible tables, one row each (confidential)."""
    low_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell reaches its lower level; -1 stands for the true table."""
    high_witness: IntArray = field(repr=False, default_factory=lambda: np.zeros(0, np.int64))
    """Row of `witnesses` in which each cell reaches its upper level; -1 stands for the true table."""
    shares: tuple[FloatArray | None, FloatArray | None] = field(repr=False, default=(None, None))
    """How much of the way to `low_witness` and `high_witness` the attacker's own knowledge allows; None: all of it."""
    programs: int = 0
    """Linear programs that were solved, for all attackers that share witnesses."""

    @property
    def cells(self) -> IntArray:
        """Indices of the cells to be protected."""
        return self.levels.cells

    @property
    def unknown(self) -> BoolArray:
        """Cells that are neither shown safe nor proven unsafe."""
        return ~self.safe & ~self.unsafe

    def proof(self, table: Table, tables: Sequence[Mapping[int, Fraction]] | None = None) -> Proof:
        """Return the witnesses of the safe cells as tables of fractions (:func:`cellguard.verify`).

        Attackers may share witnesses: give their tables, once made by :meth:`tables`, to each.
        """
        cells, low, high = (x[self.safe].tolist() for x in (self.cells, self.low_witness, self.high_witness))
        low_share, high_share = (None if x is None else _fractions_for_audit_proof(x[self.safe]) for x in self.shares)
        return Proof(
            attacker=self.attacker.name, cells=cells, low=low, high=high, low_share=low_share, high_share=high_share,
            tables=self.tables(table) if tables is None else tables,
        )  # fmt: skip

    def tables(self, table: Table) -> list[dict[int, Fraction]]:
        """Return the witnesses as tables of fractions: the cells that differ from the true table."""
        if self.witnesses is None:
            return []
        rows = [self.witnesses.row(row) for row in range(self.witnesses.numerators.shape[0])]
        moving = np.array(sorted({i for moved in rows for i in moved}), np.int64)
        a = dict(zip(moving.tolist(), _fractions_for_audit_proof(table.values[moving]), strict=True))
        return [{i: a[i] + m for i, m in moved.items()} for moved in rows]


def _fractions_for_audit_proof(numbers: FloatArray) -> list[Fraction]:
    """Return numbers as they are printed, so that 0.1 is a tenth; each different one is converted once."""
    different, place = np.unique(numbers, return_inverse=True)
    exact = [Fraction(repr(x)) for x in different.tolist()]
    return [exact[k] for k in place.tolist()]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Audit:
    """The result of an audit, attacker by attacker.

    >>> from cellguard.data.examples import salazar2004_figure2
    >>> found = audit(salazar2004_figure2()["suppress"], exact=True)
    >>> found.summary()
    {'safe': False, 'checked': 1, 'exact': 0, 'unsafe': 1}
    >>> cells, low, high = found.ranges["external"]
    >>> low.tolist(), high.tolist()
    ([5.0], [30.0])
    """

    release: Release = field(repr=False)
    """What was audited."""
    findings: tuple[Finding, ...] = field(repr=False)
    """One per attacker."""
    ranges_exact: bool = False
    """Whether the ranges are exact, or only as wide as the verdicts needed."""
    integer: bool = False
    """Whether only tables of whole numbers were held possible."""
    seconds: float = 0.0
    """How long the audit took."""

    def _cells(self, chosen: Sequence[BoolArray]) -> IntArray:
        found = [f.cells[which] for f, which in zip(self.findings, chosen, strict=True)]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    @property
    def safe(self) -> bool:
        """Whether every cell is shown to reach its levels against every attacker; where none was checked, no."""
        return self.checked > 0 and all(bool(f.safe.all()) for f in self.findings)

    @property
    def verdict(self) -> str:
        """``"safe"``, ``"not safe"``, or ``"nothing checked"``: no cell was said to be sensitive."""
        return "nothing checked" if self.checked == 0 else "safe" if self.safe else "not safe"

    @property
    def checked(self) -> int:
        """Number of cells to be protected against at least one attacker."""
        return len(self._cells([np.ones(len(f.cells), bool) for f in self.findings]))

    @property
    def exact(self) -> int:
        """Number of those whose value some attacker computes exactly."""
        return len(self._cells([f.exact for f in self.findings]))

    @property
    def unsafe(self) -> int:
        """Number of those that are not shown safe against every attacker."""
        return len(self.unsafe_cells)

    @property
    def unknown(self) -> int:
        """Number of those for which neither safety nor a violation could be proven."""
        return len(self._cells([f.unknown for f in self.findings]))

    @property
    def unsafe_cells(self) -> IntArray:
        """Indices of the cells that are not shown safe against every attacker."""
        return self._cells([~f.safe for f in self.findings])

    @property
    def disclosed(self) -> IntArray:
        """All cells, sensitive or not, that are not published and that some attacker still knows exactly."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(f.disclosed for f in self.findings)]))

    @property
    def ranges(self) -> dict[str, tuple[IntArray, FloatArray, FloatArray]]:
        """Cells, lower and upper ends of their ranges, by the attacker's name."""
        return {f.attacker.name: (f.cells, f.low, f.high) for f in self.findings}

    def range(self, cell: int, attacker: str | None = None) -> tuple[float, float]:
        """Return the range of one protected cell against an attacker, the first unless named.

        >>> from cellguard.data.examples import minami2019_figure2
        >>> release = minami2019_figure2()
        >>> audit(release, exact=True).range(release.table.cell({"M": "M1", "P": "P1"}))
        (0.0, 17.0)
        """
        for f in self.findings:
            place = np.flatnonzero(f.cells == cell)
            if attacker in (None, f.attacker.name) and len(place):
                return float(f.low[place[0]]), float(f.high[place[0]])
        raise InputError(f"{self.release.table.label(cell)} is not protected against this attacker.")

    @property
    def witnesses(self) -> dict[str, Proof]:
        """The tables that prove safety, by the attacker's name (confidential)."""
        distinct = {id(f.witnesses): f for f in self.findings}
        tables = {key: f.tables(self.release.table) for key, f in distinct.items()}
        return {f.attacker.name: f.proof(self.release.table, tables[id(f.witnesses)]) for f in self.findings}

    def midpoints(self) -> dict[str, float]:
        """Say where the middle of the ranges lies, as shares of the cells with a bounded range (baena2018 table 4).

        Ranges are put to a width of 100 with the truth at 0; a middle of 0 gives the truth away to
        whoever takes the average. The ranges must be exact.

        >>> from cellguard.data.examples import minami2019_figure2
        >>> audit(minami2019_figure2(), exact=True).midpoints()
        {'-50': 0.0, '(-50,0)': 0.0, '0': 0.0, '(0,50)': 1.0, '50': 0.0}
        """
        if not self.ranges_exact:
            raise InputError("midpoints need exact ranges.", hint="audit(release, exact=True).")
        known = [f for f in self.findings if not f.attacker.derived]  # of respondents only verdicts are computed
        place = np.concatenate([_audit_of_midpoints(f, self.release.table) for f in known] or [np.zeros(0)])
        place = place[np.isfinite(place)]
        near = 1e-4
        classes = {
            "-50": place < -50 + near,
            "(-50,0)": (place >= -50 + near) & (place < -near),
            "0": np.abs(place) <= near,
            "(0,50)": (place > near) & (place <= 50 - near),
            "50": place > 50 - near,
        }
        return {name: float(inside.mean()) if len(place) else 0.0 for name, inside in classes.items()}

    def __repr__(self) -> str:
        people = f"{len(self.findings)} attacker{'' if len(self.findings) == 1 else 's'}"
        wrong = f", {self.unsafe} unsafe" if self.unsafe else ""
        cells = f"{self.checked} cell{'' if self.checked == 1 else 's'}"
        return f"Audit({self.verdict}: {cells} checked against {people}{wrong})"

    def _repr_html_(self) -> str:
        """Draw the verdict and its figures for a notebook: no value, no range."""
        from cellguard.nouns.pictures import picture_of_figures

        counted = {"cells checked": self.checked, "known exactly": self.exact, "not shown safe": self.unsafe}
        about = {"attackers": len(self.findings), "only whole numbers held possible": self.integer}
        return picture_of_figures(f"Audit: {self.verdict}", counted | about)

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        out: dict[str, Any] = {"safe": self.safe, "checked": self.checked, "exact": self.exact, "unsafe": self.unsafe}
        if self.unknown:
            out["unknown"] = self.unknown
        if self.release.table.crosses_left_out:
            out["crosses_not_audited"] = self.release.table.crosses_left_out
        return out

    def save_witnesses(self, path: str | Path) -> None:
        """Write the tables that prove safety, for ``cellguard verify``; they are confidential."""
        write_witnesses(path, self.release, list(self.witnesses.values()), integer=self.integer)


_AT_ONCE = 5_000_000
"""Questions of attackers that are answered together: each takes a quarter of a kilobyte meanwhile."""


@on_one_blas_thread
def audit(
    release: Release,
    *,
    exact: bool = False,
    integer: bool | None = None,
    everywhere: bool = True,
    cross: bool = True,
    jobs: int | None = None,
    time_limit_s: float = float("inf"),
) -> Audit:
    """Say what every attacker of the table can compute from a release.

    Parameters
    ----------
    release
        A release of any kind; only what it publishes is used.
    exact
        Compute both ends of every range. Otherwise the search stops where the verdict is known.
    integer
        The attacker knows that all values are whole numbers; unless given, as the table says. Up to
        :data:`WHOLE_CELLS` cells both ends of every range are found; beyond, that takes hours, and the search stops
        where the verdict is known, unless `exact` is given.
    everywhere
        Hold respondents off every sensitive cell that they do not know themselves; otherwise only off those near
        what they know, against which methods plan first.
    cross
        Of linked tables that share dimensions in a cycle: the attacker knows that nothing in their unpublished cross
        is negative (up to 50,000 cells of it; over real numbers, and not for respondents).
    jobs
        Parts of the table to search at the same time, through joblib: one unless given, or what an
        enclosing ``joblib.parallel_config`` (threads, processes, a Dask or Ray cluster) says.
    time_limit_s
        For the whole audit; what it leaves open is unknown, hence not safe.
    """
    begin, deadline = now(), Deadline.after(time_limit_s)
    if not isinstance(release, Adjustment):  # an adjusted table is attacked by scenarios, not by what respondents know
        release = replace(release, table=table_with_respondent_attackers(release.table))
    check_release_to_audit(release)
    table = release.table
    if integer is None:
        integer = table.integer
    if integer and not (table.values == np.rint(table.values)).all():
        raise InputError("the table holds numbers that are not whole.", hint="leave the option `integer` out.")
    exact = exact or (integer and table.n_cells <= WHOLE_CELLS)
    options: dict[str, Any] = {
        "exact": exact, "integer": integer, "everywhere": everywhere, "jobs": jobs, "time_limit_s": deadline.left,
    }  # fmt: skip
    seen = release if cross else replace(release, table=table.with_(crosses=()))
    if isinstance(release, Adjustment):
        findings: Sequence[Finding] = [
            _audit_of_adjustment(release, attacker) for attacker in attackers_of_table(table)
        ]
    elif cells_of := clusters_to_audit(table):
        findings = audited_by_clusters(seen, cells_of, _audit_of_connected_release, options)
    else:
        findings = _audit_of_connected_release(seen, **options)
    return Audit(release=release, findings=tuple(findings), ranges_exact=exact, integer=integer, seconds=now() - begin)


@on_one_blas_thread
def _audit_of_connected_release(
    release: Release, *, exact: bool, integer: bool, everywhere: bool, jobs: int | None, time_limit_s: float
) -> list[Finding]:
    """Find what the attackers can compute from a release whose tables hang together.

    Of respondents these are verdicts, of the others ranges when they are asked for.
    """
    deadline = Deadline.after(time_limit_s)
    asked = attackers_to_audit(release, everywhere=everywhere)
    single = [(a, need) for a, need in asked if exact and not a.derived]
    many = [(a, need) for a, need in asked if a.derived or not exact]
    if len(many) == 1 and not integer:
        single, many = [*single, *many], []
    findings = []
    for attacker, need in single:
        options = {"exact": exact, "jobs": jobs, "time_limit_s": deadline.left}
        findings.append(_audit_of_one_attacker(release, attacker, need, integer, options))
    with remembering_shown():  # what shows a level kept from one group of attackers is tried for the next
        for group in _attackers_audited_together(many):
            findings += _audit_of_many_attackers(release, group, integer, {"jobs": jobs, "time_limit_s": deadline.left})
    return judged_by_the_cross(release, findings, deadline)


def _attackers_audited_together(asked: Sequence[tuple[Attacker, Levels]]) -> list[list[tuple[Attacker, Levels]]]:
    """Put attackers together whose questions fit into memory: thousands of respondents have thousands each."""
    out: list[list[tuple[Attacker, Levels]]] = []
    questions = 0
    for one in asked:
        if not out or questions + len(one[1].cells) > _AT_ONCE:
            out.append([])
            questions = 0
        out[-1].append(one)
        questions += len(one[1].cells)
    return out


def _audit_of_one_attacker(
    release: Release, attacker: Attacker, need: Levels, integer: bool, options: dict[str, Any]
) -> Finding:
    """Find what one attacker can compute."""
    from cellguard._engine.ranges.ranges import AskedRanges, Sight, ranges

    table, (lo, hi) = release.table, release.published_bounds(attacker)
    sight = Sight(table.relations, lo, hi, table.values, integer)
    asked = AskedRanges(need.cells, need.lower, need.upper, need.sliding)
    found = ranges(sight, asked, certify=True, **options)
    return _judged_attacker(release, attacker, need, found, np.flatnonzero(found.disclosed), release.as_it_is())


def _audit_of_many_attackers(
    release: Release, asked: Sequence[tuple[Attacker, Levels]], integer: bool, options: dict[str, Any]
) -> list[Finding]:
    """Find what many attackers can compute, with everything shared that they have in common."""
    from cellguard._engine.ranges.many import Sight, Views, ranges_for

    table, shown = release.table, release.as_it_is()
    attackers, needs = zip(*asked, strict=True)
    lo, hi = release.published_bounds()
    known = np.concatenate([a.cells for a in attackers])
    views = Views(
        known_ptr=np.cumsum([0, *(len(a.cells) for a in attackers)]),
        known_cell=known,
        known_lo=np.maximum(lo[known], np.concatenate([a.lb for a in attackers])),
        known_hi=np.minimum(hi[known], np.concatenate([a.ub for a in attackers])),
        view=np.repeat(np.arange(len(needs)), [len(need.cells) for need in needs]),
        cell=np.concatenate([need.cells for need in needs]),
        lower=np.concatenate([need.lower for need in needs]),
        upper=np.concatenate([need.upper for need in needs]),
        sliding=np.concatenate([need.sliding for need in needs]),
    )
    found = ranges_for(Sight(table.relations, lo, hi, table.values, integer), views, certify=True, **options)
    told = np.searchsorted(found.disclosed_to[0], np.arange(len(attackers) + 1))
    end = np.cumsum([0, *(len(need.cells) for need in needs)])
    findings = []
    for k, (attacker, need) in enumerate(asked):
        part = found.of(slice(end[k], end[k + 1]))
        disclosed = np.concatenate([found.disclosed, found.disclosed_to[1][told[k] : told[k + 1]]])
        finding = _judged_attacker(release, attacker, need, part, disclosed, shown)
        findings.append(replace(finding, shares=(part.low_share, part.high_share)))
    return findings


def _judged_attacker(
    release: Release,
    attacker: Attacker,
    need: Levels,
    found: Ranges | Verdicts,
    disclosed: IntArray,
    as_it_is: BoolArray,
) -> Finding:
    """Judge one attacker by what he can compute; `disclosed` are the cells that are not published and still known."""
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(release.table.values[need.cells]))
    known = found.high_bound - found.low_bound < least
    shown = as_it_is[need.cells] & need.any()  # never published as it is, whatever range is claimed
    if isinstance(release, Suppression):
        disclosed = disclosed[release.suppressed[disclosed]]
    return Finding(
        attacker=attacker,
        levels=need,
        low=found.low,
        high=found.high,
        safe=found.safe & ~shown,
        unsafe=found.unsafe | shown,
        exact=known,
        disclosed=np.union1d(disclosed, need.cells[known]),
        witnesses=found.exact_witnesses,
        low_witness=found.low_witness,
        high_witness=found.high_witness,
        programs=found.programs,
    )


def _audit_of_adjustment(release: Adjustment, attacker: Attacker) -> Finding:
    """Check an adjusted table: each sensitive cell outside (a - lower, a + upper) (castro2012 (1d), baena2018 (4)).

    Ranges do not apply: nothing is published about the distance from the truth.
    """
    table = release.table
    need = movement_levels(table, attacker)
    a, x = table.values[need.cells], release.values[need.cells]
    keep = 1 - float(LEVEL_TOLERANCE)
    safe = (x - a >= need.upper * keep) | (a - x >= need.lower * keep)
    return Finding(
        attacker=attacker,
        levels=required_levels(table, attacker),
        low=np.full(len(a), -np.inf),
        high=np.full(len(a), np.inf),
        safe=safe,
        unsafe=~safe,
        exact=(np.abs(x - a) <= LEAST_WIDTH * np.maximum(1.0, np.abs(a))) & ~safe,
        disclosed=np.zeros(0, np.int64),
        low_witness=np.full(len(a), -1, np.int64),
        high_witness=np.full(len(a), -1, np.int64),
    )


def _audit_of_midpoints(finding: Finding, table: Table) -> FloatArray:
    """Place of the middle of each range when its width is 100 and the truth is 0; NaN where it has no middle."""
    a = table.values[finding.cells]
    with np.errstate(invalid="ignore", divide="ignore"):
        width = finding.high - finding.low
        middle = 100.0 * ((finding.low + finding.high) / 2 - a) / width
    return np.where(np.isfinite(width) & (width > 0), middle, np.nan)
