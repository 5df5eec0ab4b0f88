"""Audit a publication cluster by cluster: clusters share nothing, so knowledge of one reveals nothing about another.

A respondent is audited in their own cluster; in all others they are an external attacker. As many clusters are audited
at a time as the user allows, and the findings are joined again, attacker by attacker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.ranges.witnesses.witness import ExactMovements
from cellguard._types import IntArray
from cellguard.model.levels import Levels, list_attackers
from cellguard.model.linked.clusters import run_clusters_of_tables
from cellguard.model.linked.distinct_cells import list_cluster_cells, restrict_table
from cellguard.model.table import Table
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard.auditing.finding import Finding

__all__ = ["audit_by_clusters", "list_clusters"]

_SEVERAL_CORES = 20_000
"""Smaller publications would be audited before another process has started."""
Judge = Callable[..., "Sequence[Finding]"]


def list_clusters(table: Table) -> list[IntArray]:
    """Return the cells of each cluster; an empty list unless there are several."""
    found = [] if table.parts is None else list_cluster_cells(table)
    return found if len(found) > 1 else []


def audit_by_clusters(
    release: Release, cells_of: Sequence[IntArray], judge: Judge, options: Mapping[str, Any]
) -> list[Finding]:
    """Return what every attacker can compute, joined from what they can compute in each cluster.

    `judge` computes the findings for the release of one cluster.
    """
    from joblib import effective_n_jobs, parallel_config

    table = release.table
    jobs = options["jobs"] if table.n_cells >= _SEVERAL_CORES else 1
    work = [len(cells) * (1.0 + float(table.sensitive[cells].sum())) for cells in cells_of]
    order = sorted(range(len(cells_of)), key=lambda k: (-work[k], k))
    with nullcontext() if jobs is None else parallel_config(n_jobs=jobs):  # None: use the enclosing configuration
        inner = {**options, "jobs": options["jobs"] if effective_n_jobs(None) == 1 else 1}
        tasks = ((k, _restrict_release(release, cells_of[k]), dict(inner)) for k in order)
        found = dict(run_clusters_of_tables(judge, (), tasks, np.array([work[k] for k in order]), inner))
    return _join_clusters(table, [(found[k], cells_of[k]) for k in range(len(cells_of))])


def _restrict_release(release: Release, cells: IntArray) -> Release:
    """Return what is published in one cluster, with the attackers who know something about it."""
    # other attackers know nothing about this cluster: do not derive respondents again
    changed: dict[str, Any] = {"table": restrict_table(release.table, cells, respondents=True)}
    changed |= {name: array[cells] for name, array in release.get_cell_arrays().items()}
    if hasattr(release, "internal"):
        changed["internal"] = {}
    return replace(release, **changed)


def _join_clusters(table: Table, found: Sequence[tuple[Sequence[Finding], IntArray]]) -> list[Finding]:
    """Return a finding for each attacker, in the table's cells, all with the same list of witnesses."""
    movements: dict[int, tuple[ExactMovements, IntArray, int]] = {}
    first = 0
    for findings, cells in found:
        for f in findings:
            if f.witnesses is not None and id(f.witnesses) not in movements:
                movements[id(f.witnesses)] = (f.witnesses, cells, first)
                first += f.witnesses.numerators.shape[0]
    whole = _stack_witnesses(list(movements.values()), table.n_cells) if movements else None
    mine: dict[str, list[Finding]] = {}
    for findings, cells in found:
        for f in findings:
            start = 0 if f.witnesses is None else movements[id(f.witnesses)][2]
            mine.setdefault(f.attacker.name, []).append(_lift_finding(f, cells, start, whole))
    # in the table's order, with full knowledge: a cluster has only part of it
    return [replace(_join_findings(mine[a.name]), attacker=a) for a in list_attackers(table) if a.name in mine]


def _lift_finding(f: Finding, cells: IntArray, start: int, whole: ExactMovements | None) -> Finding:
    """Translate a finding from the cells of a cluster to the cells of the whole table."""
    return replace(
        f,
        levels=replace(f.levels, cells=cells[f.levels.cells]),
        disclosed=cells[f.disclosed],
        witnesses=whole,
        low_witness=np.where(f.low_witness >= 0, f.low_witness + start, f.low_witness),
        high_witness=np.where(f.high_witness >= 0, f.high_witness + start, f.high_witness),
    )


def _join_findings(several: Sequence[Finding]) -> Finding:
    """Return what one attacker can compute in all clusters, in the order of the cells."""
    first = several[0]
    if len(several) == 1:
        return first
    order = np.argsort(np.concatenate([f.cells for f in several]), kind="stable")

    def join_column(name: str, of: Callable[[Finding], Any]) -> Any:
        return np.concatenate([getattr(of(f), name) for f in several])[order]

    own = ("low", "high", "safe", "unsafe", "exact", "low_witness", "high_witness")
    shares = []
    for side in (0, 1):
        given = [f.shares[side] for f in several]
        whole = [np.ones(len(f.cells)) if x is None else x for x, f in zip(given, several, strict=True)]
        shares.append(None if all(x is None for x in given) else np.concatenate(whole)[order])
    return replace(
        first,
        levels=Levels(**{f.name: join_column(f.name, lambda one: one.levels) for f in fields(Levels)}),
        disclosed=np.unique(np.concatenate([f.disclosed for f in several])),
        shares=(shares[0], shares[1]),
        programs=sum(f.programs for f in several),
        **{name: join_column(name, lambda one: one) for name in own},
    )


def _stack_witnesses(parts: Sequence[tuple[ExactMovements, IntArray, int]], n: int) -> ExactMovements:
    """Stack the movements of all clusters as movements of the whole table."""
    rows: list[csr_array] = []
    careful: dict[int, dict[int, Any]] = {}
    denominator, counted = np.ones(n, np.int64), np.zeros(n, bool)
    for made, cells, start in parts:
        k = made.numerators
        own = np.asarray(made.denominator)
        # lists of one cluster may use different denominators: write out those that differ
        taken = np.isin(np.arange(len(cells)), k.indices)
        if (taken & counted[cells] & (denominator[cells] != own)).any():
            careful |= {start + r: _lift_witness(made.get_row(r), cells) for r in range(k.shape[0])}
            rows.append(csr_array((k.shape[0], n), dtype=np.int64))
            continue
        denominator[cells[taken]], counted[cells[taken]] = own[taken], True
        careful |= {start + r: _lift_witness(moved, cells) for r, moved in made.careful.items()}
        rows.append(csr_array((k.data, cells[k.indices], k.indptr), shape=(k.shape[0], n)))
    return ExactMovements(numerators=csr_array(vstack(rows)), denominator=denominator, careful=careful)


def _lift_witness(moved: Mapping[int, Any], cells: IntArray) -> dict[int, Any]:
    return {int(cells[cell]): by for cell, by in moved.items()}
