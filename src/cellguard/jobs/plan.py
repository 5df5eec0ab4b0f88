"""The plan of a job, for ``--dry-run``: what a run would do, and how large it is. No value is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.flags import flag_job
from cellguard.jobs.steps import (
    check_layout_of_job,
    count_rule_of_job,
    list_inputs,
    list_warnings,
    protect_table,
    refuse_identifiers,
)
from cellguard.jobs.tables import tabulate_job
from cellguard.methods.suppress.resist import check_counts_to_suppress
from cellguard.model.linked.distinct_cells import find_clusters
from cellguard.model.linked.publication import count_shared_cells
from cellguard.model.table import Table
from cellguard.release.grid import find_empty_cells
from cellguard.release.release import Status

__all__ = ["plan"]

_NOTHING = (
    "no cell is sensitive by the rules: protect would stop. "
    'Look at the rules and at the value, or say nothing_sensitive = "publish".'
)
_MAX_LISTED_PAIRS = 30
"""Maximum number of pairs that the plan lists."""
_MAX_LISTED_CLUSTERS = 8
"""Maximum number of clusters, and of the tables of each, that the plan lists."""


def plan(file: JobFile) -> dict[str, Any]:
    """Return what a run would do. Make the table and find its sensitive cells, but write nothing."""
    job = file.job
    table = flag_job(tabulate_job(file), file)
    refuse_identifiers(table, job)
    check_layout_of_job(table, file)
    counts = {} if table.flags is None else table.flags.count_by_rule()
    options = {k: v for k, v in job.method.collect_options(table).items() if v is not None}
    out: dict[str, Any] = {
        "job": job.name,
        "inputs": [f"{path.name} ({path.stat().st_size:,} bytes)" for path in list_inputs(file)],
        "dimensions": {name: len(codes) for name, codes in zip(table.dimensions, table.codes, strict=True)},
        "tables": _describe_tables(table, job),
        **_describe_links(table),
        "cells": table.n_cells,
        "cells_without_data": int(find_empty_cells(table).sum()),
        "relations": table.n_relations,
        "sensitive": int(table.sensitive.sum()),
        "sensitive_by_rule": counts,
        "attackers": len(table.attackers) or 1,
        "to_be_confirmed": list(job.unconfirmed),
        "warnings": list_warnings(table, job),
        "method": {"name": job.method.name, **options},
        **_check_method(table, job),
        "steps": _describe_steps(job),
        "folder": str(file.folder),
        "formats": list(job.output.formats),
    }
    return {name: fact for name, fact in out.items() if fact not in ([], {})}


def _check_method(table: Table, job: Job) -> dict[str, str]:
    """Run the method's own checks, without time to search; a refusal is an error."""
    if not table.sensitive.any():
        return {} if job.nothing_sensitive == "publish" else {"no_release": _NOTHING}
    if job.method.get_asked("resist") is not None:
        check_counts_to_suppress(table, count_rule_of_job(table, job))
        return {}
    found = protect_table(table, job, limit_s=0.0)
    return {"no_release": found.explanation} if found.status is Status.INFEASIBLE else {}


def _describe_tables(table: Table, job: Job) -> list[str]:
    """Return a line for each table; in a publication with its size and number of sensitive cells."""
    if table.parts is None:
        return [" x ".join(entry.dimensions) for entry in job.tables] or [" x ".join(table.dimensions)]
    several = len({part.indicator for part in table.parts}) > 1
    lines = []
    for part in table.parts:
        about = [" x ".join(part.table.dimensions), *([part.indicator] if several else [])]
        about += [f"{d} {code}" for d, code in part.where.items()]
        about += [f"{part.table.n_cells:,} cells", f"{int(table.sensitive[part.cells].sum()):,} sensitive"]
        lines.append(f"{part.name}: {', '.join(about + ([f'from {part.source}'] if part.source else []))}")
    return lines


def _describe_links(table: Table) -> dict[str, list[str]]:
    """Return the cells that tables of a publication share, and the clusters."""
    if table.parts is None:
        return {}
    cluster_of, names = find_clusters(table, table.parts)
    cells = np.bincount(cluster_of, minlength=len(names))
    sensitive = np.bincount(cluster_of[table.sensitive], minlength=len(names))
    drawn = []
    for number in np.argsort(-cells, kind="stable").tolist():
        n = len(names[number])
        size = f"{n} table{'' if n == 1 else 's'}, {cells[number]:,} cells, {sensitive[number]:,} sensitive"
        more = f" and {n - _MAX_LISTED_CLUSTERS} more" if n > _MAX_LISTED_CLUSTERS else ""
        drawn.append(f"{size}: {', '.join(names[number][:_MAX_LISTED_CLUSTERS])}{more}")
    pairs = sorted(count_shared_cells(table.parts).items(), key=lambda item: -item[1])
    shared = [f"{a} = {b}: {n:,} cell{'' if n == 1 else 's'}" for (a, b), n in pairs[:_MAX_LISTED_PAIRS]]
    if len(pairs) > _MAX_LISTED_PAIRS:
        shared.append(f"and {len(pairs) - _MAX_LISTED_PAIRS:,} more pairs")
    return {"clusters": drawn[:_MAX_LISTED_PAIRS], "shared": shared}


def _describe_steps(job: Job) -> list[str]:
    ready = [entry.file is not None for entry in job.tables]
    first = "read the table" if job.data.table is not None else "add up the records"
    if any(ready):
        first = "read the tables" if all(ready) else "read the tables, add up the records for the others"
    steps = [first, "find the sensitive cells", f"protect them ({job.method.name})", "audit the release"]
    if job.attack is not None:
        steps.append(f"attack it (scenario {job.attack.scenario})")
    if job.compare is not None:
        steps.append(f"compare with {', '.join(job.compare.methods)}")
    return [*steps, "write the outputs, if the audit says that they are safe"]
