"""Auditing a publication cluster by cluster: they share nothing, so that nothing known of one tells about another.

A respondent is asked about his own cluster; in all others he is a stranger. Clusters are audited as many at a time
as somebody says, and what is found is put together again, attacker by attacker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.ranges.witness import ExactMovements
from cellguard._types import IntArray
from cellguard.nouns.clusters import run_clusters_of_tables
from cellguard.nouns.distinct_cells import cells_of_clusters, restricted
from cellguard.nouns.levels import Levels, attackers_of_table
from cellguard.nouns.release import Release
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.check.audit import Finding

__all__ = ["audited_by_clusters", "clusters_to_audit"]

_SEVERAL_CORES = 20_000
"""Smaller publications are audited before another process has begun."""
Judge = Callable[..., "Sequence[Finding]"]


def clusters_to_audit(table: Table) -> list[IntArray]:
    """Return the cells of each cluster; none where there are not several."""
    found = [] if table.parts is None else cells_of_clusters(table)
    return found if len(found) > 1 else []


def audited_by_clusters(
    release: Release, cells_of: Sequence[IntArray], judge: Judge, options: Mapping[str, Any]
) -> list[Finding]:
    """Return what every attacker can compute, from what he can compute of each cluster.

    `judge` finds it for the release of one cluster.
    """
    from joblib import effective_n_jobs, parallel_config

    table = release.table
    jobs = options["jobs"] if table.n_cells >= _SEVERAL_CORES else 1
    work = [len(cells) * (1.0 + float(table.sensitive[cells].sum())) for cells in cells_of]
    order = sorted(range(len(cells_of)), key=lambda k: (-work[k], k))
    with nullcontext() if jobs is None else parallel_config(n_jobs=jobs):  # None is what somebody around us says
        inner = {**options, "jobs": options["jobs"] if effective_n_jobs(None) == 1 else 1}
        tasks = ((k, _release_audited_in_cluster(release, cells_of[k]), dict(inner)) for k in order)
        found = dict(run_clusters_of_tables(judge, (), tasks, np.array([work[k] for k in order]), inner))
    return _audit_joined_over_clusters(table, [(found[k], cells_of[k]) for k in range(len(cells_of))])


def _release_audited_in_cluster(release: Release, cells: IntArray) -> Release:
    """Return what is published of one cluster, with those who know something of it."""
    # whoever is not among the attackers of a cluster knows nothing of it: nobody is looked for again
    changed: dict[str, Any] = {"table": restricted(release.table, cells, respondents=True)}
    changed |= {name: array[cells] for name, array in release.cell_arrays().items()}
    if hasattr(release, "internal"):
        changed["internal"] = {}
    return replace(release, **changed)


def _audit_joined_over_clusters(table: Table, found: Sequence[tuple[Sequence[Finding], IntArray]]) -> list[Finding]:
    """Return a finding for each attacker, in the table's cells, all with the same list of witnesses."""
    movements: dict[int, tuple[ExactMovements, IntArray, int]] = {}
    first = 0
    for findings, cells in found:
        for f in findings:
            if f.witnesses is not None and id(f.witnesses) not in movements:
                movements[id(f.witnesses)] = (f.witnesses, cells, first)
                first += f.witnesses.numerators.shape[0]
    whole = _audit_witnesses_stacked(list(movements.values()), table.n_cells) if movements else None
    mine: dict[str, list[Finding]] = {}
    for findings, cells in found:
        for f in findings:
            start = 0 if f.witnesses is None else movements[id(f.witnesses)][2]
            mine.setdefault(f.attacker.name, []).append(_audit_finding_in_whole(f, cells, start, whole))
    # in the table's order, and whole: a cluster knows what he knows of it
    return [
        replace(_joined_audit_findings(mine[a.name]), attacker=a) for a in attackers_of_table(table) if a.name in mine
    ]


def _audit_finding_in_whole(f: Finding, cells: IntArray, start: int, whole: ExactMovements | None) -> Finding:
    """Return a finding of a cluster in the cells of the whole table."""
    return replace(
        f,
        levels=replace(f.levels, cells=cells[f.levels.cells]),
        disclosed=cells[f.disclosed],
        witnesses=whole,
        low_witness=np.where(f.low_witness >= 0, f.low_witness + start, f.low_witness),
        high_witness=np.where(f.high_witness >= 0, f.high_witness + start, f.high_witness),
    )


def _joined_audit_findings(several: Sequence[Finding]) -> Finding:
    """Return what one attacker can compute of all clusters, in the order of the cells."""
    first = several[0]
    if len(several) == 1:
        return first
    order = np.argsort(np.concatenate([f.cells for f in several]), kind="stable")

    def column(name: str, of: Callable[[Finding], Any]) -> Any:
        return np.concatenate([getattr(of(f), name) for f in several])[order]

    own = ("low", "high", "safe", "unsafe", "exact", "low_witness", "high_witness")
    shares = []
    for side in (0, 1):
        given = [f.shares[side] for f in several]
        whole = [np.ones(len(f.cells)) if x is None else x for x, f in zip(given, several, strict=True)]
        shares.append(None if all(x is None for x in given) else np.concatenate(whole)[order])
    return replace(
        first,
        levels=Levels(**{f.name: column(f.name, lambda one: one.levels) for f in fields(Levels)}),
        disclosed=np.unique(np.concatenate([f.disclosed for f in several])),
        shares=(shares[0], shares[1]),
        programs=sum(f.programs for f in several),
        **{name: column(name, lambda one: one) for name in own},
    )


def _audit_witnesses_stacked(parts: Sequence[tuple[ExactMovements, IntArray, int]], n: int) -> ExactMovements:
    """Return the movements of all clusters, one after the other, as movements of the whole table."""
    rows: list[csr_array] = []
    careful: dict[int, dict[int, Any]] = {}
    denominator, counted = np.ones(n, np.int64), np.zeros(n, bool)
    for made, cells, start in parts:
        k = made.numerators
        own = np.asarray(made.denominator)
        # several lists of one cluster may count in different fractions: those that differ are written out
        taken = np.isin(np.arange(len(cells)), k.indices)
        if (taken & counted[cells] & (denominator[cells] != own)).any():
            careful |= {start + r: _audit_witness_in_whole(made.row(r), cells) for r in range(k.shape[0])}
            rows.append(csr_array((k.shape[0], n), dtype=np.int64))
            continue
        denominator[cells[taken]], counted[cells[taken]] = own[taken], True
        careful |= {start + r: _audit_witness_in_whole(moved, cells) for r, moved in made.careful.items()}
        rows.append(csr_array((k.data, cells[k.indices], k.indptr), shape=(k.shape[0], n)))
    return ExactMovements(numerators=csr_array(vstack(rows)), denominator=denominator, careful=careful)


def _audit_witness_in_whole(moved: Mapping[int, Any], cells: IntArray) -> dict[int, Any]:
    return {int(cells[cell]): by for cell, by in moved.items()}
