"""The plan of a job, for ``--dry-run``: what would be done, and how large it is. No value is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from cellguard.methods.suppress.resist import check_counts_to_suppress
from cellguard.nouns.distinct_cells import clusters
from cellguard.nouns.grid import empty_cells_of_table
from cellguard.nouns.publication import cells_shared_in_publication
from cellguard.nouns.release import Status
from cellguard.nouns.table import Table
from cellguard.publish.flags import flagged_by_job
from cellguard.publish.model import Job
from cellguard.publish.read import JobFile
from cellguard.publish.steps import (
    check_layout_of_job,
    count_rule_of_job,
    inputs_of_job,
    protected_by_job,
    warnings_of_job,
)
from cellguard.publish.tables import tabulated_by_job

__all__ = ["plan"]

_NOTHING = (
    "no cell is sensitive by the rules: protect would stop. "
    'Look at the rules and at the value, or say nothing_sensitive = "publish".'
)
_MOST, _FEW = 30, 8
"""So many pairs and clusters are told, and so many tables of each."""


def plan(file: JobFile) -> dict[str, Any]:
    """Return what a run would do. The table is made and its sensitive cells are found; nothing is written."""
    job = file.job
    table = flagged_by_job(tabulated_by_job(file), file)
    check_layout_of_job(table, file)
    counts = {} if table.flags is None else table.flags.counts()
    options = {k: v for k, v in job.method.options(table).items() if v is not None}
    out: dict[str, Any] = {
        "job": job.name,
        "inputs": [f"{path.name} ({path.stat().st_size:,} bytes)" for path in inputs_of_job(file)],
        "dimensions": {name: len(codes) for name, codes in zip(table.dimensions, table.codes, strict=True)},
        "tables": _tables_in_plan(table, job),
        **_links_in_plan(table),
        "cells": table.n_cells,
        "cells_without_data": int(empty_cells_of_table(table).sum()),
        "relations": table.n_relations,
        "sensitive": int(table.sensitive.sum()),
        "sensitive_by_rule": counts,
        "attackers": len(table.attackers) or 1,
        "to_be_confirmed": list(job.unconfirmed),
        "warnings": warnings_of_job(table, job),
        "method": {"name": job.method.name, **options},
        **_first_look_for_plan(table, job),
        "steps": _steps_in_words(job),
        "folder": str(file.folder),
        "formats": list(job.output.formats),
    }
    return {name: fact for name, fact in out.items() if fact not in ([], {})}


def _first_look_for_plan(table: Table, job: Job) -> dict[str, str]:
    """Run every check that the method makes: its first look, without time to search. What it refuses is an error."""
    if not table.sensitive.any():
        return {} if job.nothing_sensitive == "publish" else {"no_release": _NOTHING}
    if job.method.asked("resist") is not None:
        check_counts_to_suppress(table, count_rule_of_job(table, job))
        return {}
    found = protected_by_job(table, job, limit_s=0.0)
    return {"no_release": found.explanation} if found.status is Status.INFEASIBLE else {}


def _tables_in_plan(table: Table, job: Job) -> list[str]:
    """Return a line for each table; of a publication with its size and what is sensitive in it."""
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


def _links_in_plan(table: Table) -> dict[str, list[str]]:
    """Return what the tables of a publication share, and the clusters that share nothing."""
    if table.parts is None:
        return {}
    cluster_of, names = clusters(table, table.parts)
    cells = np.bincount(cluster_of, minlength=len(names))
    sensitive = np.bincount(cluster_of[table.sensitive], minlength=len(names))
    drawn = []
    for number in np.argsort(-cells, kind="stable").tolist():
        n = len(names[number])
        size = f"{n} table{'' if n == 1 else 's'}, {cells[number]:,} cells, {sensitive[number]:,} sensitive"
        more = f" and {n - _FEW} more" if n > _FEW else ""
        drawn.append(f"{size}: {', '.join(names[number][:_FEW])}{more}")
    pairs = sorted(cells_shared_in_publication(table.parts).items(), key=lambda item: -item[1])
    shared = [f"{a} = {b}: {n:,} cell{'' if n == 1 else 's'}" for (a, b), n in pairs[:_MOST]]
    if len(pairs) > _MOST:
        shared.append(f"and {len(pairs) - _MOST:,} more pairs")
    return {"clusters": drawn[:_MOST], "shared": shared}


def _steps_in_words(job: Job) -> list[str]:
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
