"""The findings of an audit: what each attacker can infer from a release, alone or in groups that share the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard._engine.threads import limit_blas_threads
from cellguard._tolerances import LEVEL_TOLERANCE
from cellguard._types import BoolArray, IntArray
from cellguard.auditing.clusters import audit_by_clusters, list_clusters
from cellguard.auditing.cross import apply_cross
from cellguard.auditing.finding import Finding
from cellguard.auditing.whole_values import confirm_whole_values
from cellguard.auditing.witnesses import list_audited_attackers
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import LEAST_WIDTH, Levels, compute_movement_levels, compute_required_levels
from cellguard.model.table import Table
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard._engine.ranges.ranges import Ranges
    from cellguard._engine.ranges.sight import Sight
    from cellguard._engine.ranges.verdicts import Verdicts

__all__ = ["WHOLE_CELLS", "AuditQuestion", "audit_movements", "audit_ranges", "compute_range"]

WHOLE_CELLS = 2_500
"""In larger tables of counts, find only verdicts unless exact ranges are required: those take hours."""
_MAX_QUESTIONS = 5_000_000
"""Questions of attackers that are answered together: each takes a quarter of a kilobyte until then."""


@dataclass(frozen=True, kw_only=True)
class AuditQuestion:
    """What an audit must answer."""

    exact: bool | None
    """Whether both ends of every range are wanted; None: of small tables of counts."""
    integer: bool | None
    """Whether only whole numbers are possible; None: as the table, or each cluster of a publication, says."""
    everywhere: bool
    """Whether respondents attack every sensitive cell, or only those near what they know."""

    def needs_ends(self, table: Table) -> bool:
        """Return whether both ends of every range of a table are wanted."""
        if self.exact is not None:
            return self.exact
        integer = table.integer if self.integer is None else self.integer
        return integer and table.n_cells <= WHOLE_CELLS


def audit_ranges(release: Release, shown: ShownMovements | None, options: dict[str, Any]) -> Sequence[Finding]:
    """Compute what the attackers can infer from a release, cluster by cluster if there are several."""
    if cells_of := list_clusters(release.table):
        return audit_by_clusters(release, cells_of, _audit_connected_release, options)
    return _audit_connected_release(release, shown=shown, **options)


def _audit_connected_release(
    release: Release,
    *,
    question: AuditQuestion,
    jobs: int | None,
    time_limit_s: float,
    shown: ShownMovements | None = None,
) -> list[Finding]:
    """Compute what the attackers can infer from a release whose tables are connected."""
    with limit_blas_threads():
        deadline = Deadline.from_limit(time_limit_s)
        findings = _audit_attackers(release, question, jobs, deadline, shown)
        return apply_cross(release, findings, deadline)


def _audit_attackers(
    release: Release, question: AuditQuestion, jobs: int | None, deadline: Deadline, shown: ShownMovements | None
) -> list[Finding]:
    """Return verdicts for respondents, and ranges for the other attackers if required."""
    table = release.table
    integer = table.integer if question.integer is None else question.integer
    exact = question.needs_ends(table)
    asked = list_audited_attackers(release, everywhere=question.everywhere)
    single = [(a, need) for a, need in asked if exact and not a.derived]
    many = [(a, need) for a, need in asked if a.derived or not exact]
    if len(many) == 1 and not integer:
        single, many = [*single, *many], []
    findings = []
    for attacker, need in single:
        sight = _build_sight(release, attacker, integer, shown)
        options = {"exact": exact, "jobs": jobs, "time_limit_s": deadline.left}
        findings.append(_audit_one_attacker(release, attacker, need, sight, options))
    # movements found for one group of attackers are tried for the next
    sight = _build_sight(release, EXTERNAL, integer, ShownMovements() if shown is None else shown)
    for group in _group_attackers(many):
        findings += _audit_many_attackers(release, group, sight, {"jobs": jobs, "time_limit_s": deadline.left})
    if table.counted is not None and question.integer is None:
        findings = [_keep_whole_witnesses(finding, table) for finding in findings]
    if not table.whole or integer or question.integer is not None:
        return findings
    options = {"jobs": jobs, "time_limit_s": deadline.left}
    return confirm_whole_values(table, findings, lambda some: _audit_in_whole_numbers(release, some, options))


def _audit_in_whole_numbers(
    release: Release, asked: list[tuple[Attacker, Levels]], options: dict[str, Any]
) -> list[Finding]:
    """Find what attackers who know that values are whole can compute; parts with fractions are unchanged."""
    from cellguard._engine.ranges.sight import Sight

    table, (lo, hi) = release.table, release.published_bounds()
    still = ~table.whole_cells
    lo, hi = np.where(still, table.values, lo), np.where(still, table.values, hi)
    sight = Sight(table.relations, lo, hi, table.values, integer=True)
    findings: list[Finding] = []
    for group in _group_attackers(asked):
        findings += _audit_many_attackers(release, group, sight, options)
    return findings


def _keep_whole_witnesses(finding: Finding, table: Table) -> Finding:
    """Keep only proofs by tables with whole counts, if an equation ties counts to other values.

    There the search treats all values as real numbers. What only tables with fractional counts show is not proven.
    """
    if finding.witnesses is None:
        return finding
    safe, counts = finding.safe.copy(), table.count_cells
    for rows, shares in zip((finding.low_witness, finding.high_witness), finding.shares, strict=True):
        for k in np.flatnonzero(finding.safe & (rows >= 0)).tolist():
            share = Fraction(1) if shares is None else Fraction(repr(float(shares[k])))
            moved = finding.witnesses.get_row(int(rows[k]))
            safe[k] &= all((share * by).denominator == 1 for cell, by in moved.items() if counts[cell])
    return replace(finding, safe=safe)


def _build_sight(release: Release, attacker: Attacker, integer: bool, shown: ShownMovements | None) -> Sight:
    """Return what an attacker sees of a release."""
    from cellguard._engine.ranges.sight import Sight

    table, (lo, hi) = release.table, release.published_bounds(attacker)
    return Sight(table.relations, lo, hi, table.values, integer, shown)


def compute_range(release: Release, cell: int, attacker: Attacker, *, integer: bool) -> tuple[float, float]:
    """Return both ends of what an attacker can infer about one cell of a release."""
    from cellguard._engine.ranges.ranges import AskedRanges, compute_ranges

    with limit_blas_threads():
        sight = _build_sight(release, attacker, integer, None)
        asked = AskedRanges(np.array([cell]), np.zeros(1), np.zeros(1), np.zeros(1))
        found = compute_ranges(sight, asked, certify=True, exact=True, jobs=None, time_limit_s=60.0)
    return float(found.low[0]), float(found.high[0])


def _group_attackers(asked: Sequence[tuple[Attacker, Levels]]) -> list[list[tuple[Attacker, Levels]]]:
    """Group attackers so that their questions fit into memory: thousands of respondents have thousands each."""
    out: list[list[tuple[Attacker, Levels]]] = []
    questions = 0
    for one in asked:
        if not out or questions + len(one[1].cells) > _MAX_QUESTIONS:
            out.append([])
            questions = 0
        out[-1].append(one)
        questions += len(one[1].cells)
    return out


def _audit_one_attacker(
    release: Release, attacker: Attacker, need: Levels, sight: Sight, options: dict[str, Any]
) -> Finding:
    """Compute what one attacker can infer."""
    from cellguard._engine.ranges.ranges import AskedRanges, compute_ranges

    asked = AskedRanges(need.cells, need.lower, need.upper, need.sliding)
    found = compute_ranges(sight, asked, certify=True, **options)
    return _evaluate_attacker(release, attacker, need, found, np.flatnonzero(found.disclosed), release.find_unchanged())


def _audit_many_attackers(
    release: Release, asked: Sequence[tuple[Attacker, Levels]], sight: Sight, options: dict[str, Any]
) -> list[Finding]:
    """Compute what many attackers can infer, sharing all work that they have in common."""
    from cellguard._engine.ranges.many import Views, compute_ranges_for_views

    unchanged = release.find_unchanged()
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
    found = compute_ranges_for_views(sight, views, certify=True, **options)
    told = np.searchsorted(found.disclosed_to[0], np.arange(len(attackers) + 1))
    end = np.cumsum([0, *(len(need.cells) for need in needs)])
    findings = []
    for k, (attacker, need) in enumerate(asked):
        part = found.select_requests(slice(end[k], end[k + 1]))
        disclosed = np.concatenate([found.disclosed, found.disclosed_to[1][told[k] : told[k + 1]]])
        finding = _evaluate_attacker(release, attacker, need, part, disclosed, unchanged)
        findings.append(replace(finding, shares=(part.low_share, part.high_share)))
    return findings


def _evaluate_attacker(
    release: Release,
    attacker: Attacker,
    need: Levels,
    found: Ranges | Verdicts,
    disclosed: IntArray,
    unchanged: BoolArray,
) -> Finding:
    """Judge one attacker by what they can compute; `disclosed` are the unpublished cells that are still known."""
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(release.table.values[need.cells]))
    known = found.high_bound - found.low_bound < least
    shown = unchanged[need.cells] & need.any()  # never published unchanged, regardless of the claimed range
    disclosed = release.filter_disclosed(disclosed)
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


def audit_movements(release: Release, attacker: Attacker) -> Finding:
    """Check changed values: each sensitive cell outside (a - lower, a + upper) (castro2012 (1d), baena2018 (4)).

    Ranges do not apply: nothing is published about the distance from the truth.
    """
    table = release.table
    need = compute_movement_levels(table, attacker)
    a, x = table.values[need.cells], release.get_point_values()[need.cells]
    keep = 1 - float(LEVEL_TOLERANCE)
    safe = (x - a >= need.upper * keep) | (a - x >= need.lower * keep)
    return Finding(
        attacker=attacker,
        levels=compute_required_levels(table, attacker),
        low=np.full(len(a), -np.inf),
        high=np.full(len(a), np.inf),
        safe=safe,
        unsafe=~safe,
        exact=(np.abs(x - a) <= LEAST_WIDTH * np.maximum(1.0, np.abs(a))) & ~safe,
        disclosed=np.zeros(0, np.int64),
        low_witness=np.full(len(a), -1, np.int64),
        high_witness=np.full(len(a), -1, np.int64),
    )
