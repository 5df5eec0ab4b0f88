"""Steps that concern the whole job: its input files, the workbook template, and protection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._engine.threads import count_cores
from cellguard.attacks.counts import CountRule
from cellguard.exceptions import InputError
from cellguard.jobs.definition.check import list_data_files
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.definition.rule_sections import AprioriSection, MinFrequencySection
from cellguard.methods.suppress.resist import suppress_against_matching
from cellguard.model.key import Key
from cellguard.model.linked.lookalikes import Lookalike, find_lookalikes, refuse_lookalike_disclosures
from cellguard.model.linked.publication import Equation
from cellguard.model.table import Table
from cellguard.release.formats.layout import check_layout_fits_table
from cellguard.release.release import Release

__all__ = [
    "check_layout_of_job",
    "count_rule_of_job",
    "list_inputs",
    "list_warnings",
    "protect_table",
    "refuse_identifiers",
    "refuse_lookalikes_of_job",
]  # fmt: skip

Tell = Callable[[float, float], None]
"""Callback that receives an incumbent and its bound."""


def list_inputs(file: JobFile) -> list[Path]:
    """Return the paths of all input files: data, descriptions and the files they name, hierarchies, decisions."""
    job = file.job
    named: list[Any] = [d.hierarchy for d in job.dimensions.values()]
    named.append(job.output.layout)
    named += [rule.file for rule in job.rules if isinstance(rule, AprioriSection)]
    named += [entry.file for entry in job.tables]
    named += [tree for entry in job.tables for tree in entry.hierarchies.values()]
    named += [entry.published for entry in job.priorities]
    named.append(job.data.template)
    found = list_data_files(job, file.path.parent) + [
        file.resolve_path(name) for name in named if isinstance(name, str)
    ]
    if job.data.table is not None:
        found += Table.files(file.resolve_path(job.data.table))
    return list(dict.fromkeys(found))


_MANY_CODES = 20
"""From this many codes on, a dimension may name respondents."""
_MAX_SHARE_ALONE = 0.5
"""Such a dimension names respondents if more than this share of its codes has only one contributor."""


def refuse_identifiers(table: Table, job: Job) -> None:
    """Refuse a dimension made of records whose codes name single respondents, unless the job confirms it."""
    if table.counts is None or job.data.file is None or not table.dimensions:
        return
    for d, name in enumerate(table.dimensions):
        entry = job.dimensions.get(name)
        if entry is None or entry.names_respondents:
            continue
        others = np.delete(table.coordinates, d, axis=1)
        inner = ~np.isin(table.coordinates[:, d], _list_parents(table, d))
        margin = (others == 0).all(axis=1) & (table.coordinates[:, d] > 0) & inner & (table.counts > 0)
        counts = table.counts[margin]
        alone = int((counts <= 1).sum())
        if len(counts) >= _MANY_CODES and alone > _MAX_SHARE_ALONE * len(counts):
            raise InputError(
                f"dimension {name}: {alone:,} of its {len(counts):,} codes have a single contributor: "
                "it seems to name respondents, and a table by it has a row for each of them.",
                hint=f"leave it out; or, if this is meant, say names_respondents = true in [dimensions.{name}].",
            )


def _list_parents(table: Table, d: int) -> list[int]:
    """Return the codes of a dimension that other codes add up to."""
    tree = table.hierarchies[d] if table.hierarchies else None
    if tree is None:
        return [0]
    return sorted(set(range(len(tree.codes))) - set(np.asarray(tree.leaves).tolist()))


def list_warnings(table: Table, job: Job) -> list[str]:
    """Return names in a publication that look alike but are not linked: a user should check them before publication."""
    return [one.text for one in _find_lookalikes(table, job)]


def refuse_lookalikes_of_job(release: Release, job: Job) -> None:
    """Refuse a release that publishes under one name a cell that it withholds under a similar name."""
    refuse_lookalike_disclosures(release, _find_lookalikes(release.table, job))


def _find_lookalikes(table: Table, job: Job) -> list[Lookalike]:
    return find_lookalikes(table, [Equation.of(text).names for text in job.equations], job.different)


def check_layout_of_job(table: Table, file: JobFile) -> None:
    """Refuse, before the search, a workbook template that the release would not fit."""
    if file.job.output.layout is not None:
        check_layout_fits_table(table, file.resolve_path(file.job.output.layout))


def count_rule_of_job(table: Table, job: Job) -> CountRule | None:
    """Return the rule that suppresses small counts, if the job has one; None leaves it to the table."""
    minimum = next((entry.n for entry in job.rules if isinstance(entry, MinFrequencySection)), None)
    if minimum is None or job.levels.width is None:
        return None
    by_cell = len(np.unique(table.weights[~table.fixed])) == 1
    width = int(np.ceil(job.levels.width))
    return CountRule(minimum=minimum, width=width, zeros=False, loss="cells" if by_cell else "counts")


def protect_table(
    table: Table,
    job: Job,
    tell: Tell | None = None,
    *,
    limit_s: float | None = None,
    key: Key | None = None,
    further: Mapping[str, Any] | None = None,
) -> Release:
    """Protect the table by the job's method, and record the effective time limit.

    `limit_s` replaces the job's time limit. Without a `key` the method draws one. `further` options are given to
    methods that take them: a keeper of finished clusters, earlier releases and statistics to protect with the table.
    """
    method = job.method.method
    options = job.method.collect_options(table) | {"seed": job.seed}
    limit = job.limits.time_limit_s if limit_s is None else limit_s
    if "resist" in options:
        release: Release = suppress_against_matching(table, count_rule_of_job(table, job), key=key)
    else:
        given = job.limits.threads  # clusters that run at the same time have a core each
        threads = count_cores() if given is None else given if table.parts is None else 1
        more: dict[str, Any] = {"progress": tell, "threads": threads}
        if method.takes_key:
            more["key"] = key
        if method.own_weights is not None:
            has_them = job.method.weights != "table" or bool(job.priorities)
            more["weights"] = "table" if has_them else method.own_weights
        more |= {name: value for name, value in (further or {}).items() if method.has_option(name)}
        release = method.verb(table, time_limit_s=limit, **options, **more)
    # options that the method found or drew are needed to reproduce the release
    made_with = {name: release.options[name] for name in method.made_with if name in release.options}
    named = replace(release, options={**options, **made_with, "time_limit_s": limit})
    for name in {"_audited", "_judged"} & vars(release).keys():  # options change nothing that was audited
        object.__setattr__(named, name, vars(release)[name])
    return named
