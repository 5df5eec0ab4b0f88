"""The plan of a job, for ``--dry-run``: what would be done, and how large it is. No value is shown."""

from __future__ import annotations

from typing import Any

from cellguard.publish.read import JobFile
from cellguard.publish.steps import flagged, inputs, tabulated

__all__ = ["plan"]


def plan(file: JobFile) -> dict[str, Any]:
    """Return what a run would do. The table is made and its sensitive cells are found; nothing is written."""
    job = file.job
    table = flagged(tabulated(file), file)
    counts = {} if table.flags is None else table.flags.counts()
    options = {k: v for k, v in job.method.options(table).items() if v is not None}
    out: dict[str, Any] = {
        "job": job.name,
        "inputs": [f"{path.name} ({path.stat().st_size:,} bytes)" for path in inputs(file)],
        "dimensions": {name: len(codes) for name, codes in zip(table.dimensions, table.codes, strict=True)},
        "tables": [" x ".join(entry.dimensions) for entry in job.tables] or [" x ".join(table.dimensions)],
        "cells": table.n_cells,
        "relations": table.n_relations,
        "sensitive": int(table.sensitive.sum()),
        "sensitive_by_rule": counts,
        "attackers": len(table.attackers) or 1,
        "to_be_confirmed": list(job.unconfirmed),
        "method": {"name": job.method.name, **options},
        "steps": _steps(file),
        "folder": str(file.folder),
        "formats": list(job.output.formats),
    }
    return {name: fact for name, fact in out.items() if fact not in ([], {})}


def _steps(file: JobFile) -> list[str]:
    job = file.job
    first = "read the table" if job.data.table is not None else "add up the records"
    steps = [first, "find the sensitive cells", f"protect them ({job.method.name})", "audit the release"]
    if job.attack is not None:
        steps.append(f"attack it (scenario {job.attack.scenario})")
    if job.compare is not None:
        steps.append(f"compare with {', '.join(job.compare.methods)}")
    return [*steps, "write the outputs, if the audit says that they are safe"]
