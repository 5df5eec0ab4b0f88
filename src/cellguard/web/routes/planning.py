"""A producer's list of tables on the page: what is merged, what is protected together, and the job."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cellguard.jobs.table_list.plan import plan_tables

__all__ = ["describe_plan"]


def describe_plan(path: Path) -> dict[str, Any]:
    """Return the plan of a list of tables, with its picture (SVG) and the text of each job."""
    plan = plan_tables(path)
    with TemporaryDirectory() as folder:
        jobs = [[job.name, job.read_text(encoding="utf-8")] for job in plan.write_jobs(Path(folder) / "job.toml")]
    return {**plan.summary(), "picture": plan.draw(), "jobs": jobs}
