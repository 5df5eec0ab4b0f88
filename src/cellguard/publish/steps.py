"""Steps of a job that look at its whole: its files, the publisher's workbook, and protection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._engine.threads import all_cores
from cellguard.check.attack.counts import CountRule
from cellguard.methods.suppress.resist import resist_matching
from cellguard.nouns.layout import check_layout_fits_table
from cellguard.nouns.lookalikes import lookalikes
from cellguard.nouns.publication import Equation
from cellguard.nouns.release import Release
from cellguard.nouns.table import Table
from cellguard.publish.check import data_files_of_job
from cellguard.publish.model import Job
from cellguard.publish.read import JobFile
from cellguard.publish.rule_sections import AprioriSection, MinFrequencySection

__all__ = ["check_layout_of_job", "count_rule_of_job", "inputs_of_job", "protected_by_job", "warnings_of_job"]

Tell = Callable[[float, float], None]
"""Told of an incumbent and its bound."""


def inputs_of_job(file: JobFile) -> list[Path]:
    """Return the paths of all files that are read: data, descriptions and what they name, hierarchies, decisions."""
    job = file.job
    named: list[Any] = [d.hierarchy for d in job.dimensions.values()]
    named.append(job.output.layout)
    named += [rule.file for rule in job.rules if isinstance(rule, AprioriSection)]
    named += [entry.file for entry in job.tables]
    named += [tree for entry in job.tables for tree in entry.hierarchies.values()]
    named += [entry.published for entry in job.priorities]
    named.append(job.data.template)
    found = data_files_of_job(job, file.path.parent) + [file.file(name) for name in named if isinstance(name, str)]
    if job.data.table is not None:
        found += Table.files(file.file(job.data.table))
    return list(dict.fromkeys(found))


def warnings_of_job(table: Table, job: Job) -> list[str]:
    """Return what looks alike in a publication and is not linked: somebody should look at it before it is published."""
    return [one.text for one in lookalikes(table, [Equation.of(text).names for text in job.equations])]


def check_layout_of_job(table: Table, file: JobFile) -> None:
    """Refuse a workbook of the publisher's that the release would not fit, before the work."""
    if file.job.output.layout is not None:
        check_layout_fits_table(table, file.file(file.job.output.layout))


def count_rule_of_job(table: Table, job: Job) -> CountRule | None:
    """Return the rule by which small counts are suppressed, as far as the job says; None leaves it to the table."""
    minimum = next((entry.n for entry in job.rules if isinstance(entry, MinFrequencySection)), None)
    if minimum is None or job.levels.width is None:
        return None
    by_cell = len(np.unique(table.weights[~table.fixed])) == 1
    width = int(np.ceil(job.levels.width))
    return CountRule(minimum=minimum, width=width, zeros=False, loss="cells" if by_cell else "counts")


def protected_by_job(table: Table, job: Job, tell: Tell | None = None, *, limit_s: float | None = None) -> Release:
    """Protect the table by the job's method. What the release says of the time is what it says of nothing else.

    `limit_s` stands in for the job's time limit.
    """
    method = job.method.method
    options = job.method.options(table) | {"seed": job.seed}
    limit = job.limits.time_limit_s if limit_s is None else limit_s
    if "resist" in options:
        release: Release = resist_matching(table, count_rule_of_job(table, job), seed=job.seed or None)
    else:
        given = job.limits.threads  # clusters that run at the same time have a core each
        threads = all_cores() if given is None else given if table.parts is None else 1
        more: dict[str, Any] = {"progress": tell, "threads": threads}
        if method.own_weights is not None:
            has_them = job.method.weights != "table" or bool(job.priorities)
            more["weights"] = "table" if has_them else method.own_weights
        release = method.verb(table, time_limit_s=limit, **options, **more)
    # what the method found or drew itself is needed to make the release again
    made_with = {name: release.options[name] for name in method.made_with if name in release.options}
    return replace(release, options={**options, **made_with, "time_limit_s": limit})
