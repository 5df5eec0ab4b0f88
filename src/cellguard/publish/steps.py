"""The steps of a job, each a function of what the one before it made: tabulate, flag, protect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cellguard._engine.threads import all_cores
from cellguard.check.attack.counts import CountRule
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.levels import with_respondents
from cellguard.nouns.publication import Part
from cellguard.nouns.release import Release
from cellguard.nouns.table import Table
from cellguard.publish.model import Job
from cellguard.publish.parts import assembled, is_publication, parts_of
from cellguard.publish.priorities import prioritised
from cellguard.publish.read import JobFile
from cellguard.publish.rule_sections import AprioriSection, MinFrequencySection

__all__ = ["check_layout", "count_rule", "flagged", "inputs", "protected", "tabulated", "top_needed", "warnings_of"]

Tell = Callable[[float, float], None]
"""Told of an incumbent and its bound."""


def inputs(file: JobFile) -> list[Any]:
    """Return the paths of all files that are read: data, descriptions and what they name, hierarchies, decisions."""
    from cellguard.publish.check import files_of_data

    job = file.job
    found = files_of_data(job, file.path.parent)
    found += [file.file(d.hierarchy) for d in job.dimensions.values() if isinstance(d.hierarchy, str)]
    found += [file.file(job.output.layout)] if job.output.layout is not None else []
    found += [file.file(rule.file) for rule in job.rules if isinstance(rule, AprioriSection)]
    found += [file.file(entry.file) for entry in job.tables if entry.file is not None]
    trees = (tree for entry in job.tables for tree in entry.hierarchies.values())
    found += [file.file(tree) for tree in trees if isinstance(tree, str)]
    found += [file.file(entry.published) for entry in job.priorities if entry.published is not None]
    found += [file.file(job.data.template)] if job.data.template is not None else []
    if job.data.table is not None:
        found += Table.files(file.file(job.data.table))
    return list(dict.fromkeys(found))


def tabulated(file: JobFile) -> Table | list[Part]:
    """Make the table of the job, or the tables of its publication: add up records, or read cells."""
    job = file.job
    if job.data.table is not None:
        return Table.read(file.file(job.data.table)).with_(name=job.name)
    if is_publication(job):
        return parts_of(file, lambda name: _hierarchy_of_dimension(file, name), _record_options(file))
    from cellguard.data.tabulate import tabulate

    return tabulate(
        str(file.file(str(job.data.file))),
        by={name: _hierarchy_of_dimension(file, name) for name in job.dimensions},
        value=job.data.value,
        tables=[entry.dimensions for entry in job.tables] or None,
        name=job.name,
        **_record_options(file),
    )


def _encoding_of_records(file: JobFile) -> str | None:
    """Return the encoding of the records."""
    from cellguard.publish.check import encoding_of, files_of_data

    return encoding_of(file.job, files_of_data(file.job, file.path.parent), file.facts)


def _record_options(file: JobFile) -> dict[str, Any]:
    """Return what the job says about its records, as tabulation takes it."""
    job, data = file.job, file.job.data
    return {
        "weight": data.weight,
        "holding": data.holding,
        "shadow": data.shadow,
        "waiver": data.waiver,
        "request": data.request,
        "request_codes": data.request_codes,
        "cost": data.cost,
        "missing": {name: d.missing for name, d in job.dimensions.items() if d.missing},
        "skip_missing": data.skip_missing,
        "standalone": data.standalone,
        "known_zeros": data.known_zeros,
        "total": {name: d.total for name, d in job.dimensions.items() if d.total is not None},
        "top": top_needed(job),
        "decimal": data.decimal,
        "decimals": data.decimals,
        "encoding": _encoding_of_records(file),
        "threads": job.limits.threads,
        "memory_limit": job.limits.memory,
    }


def _hierarchy_of_dimension(file: JobFile, name: str) -> Any:
    """Return the hierarchy of a dimension, the digits of its levels, or None for codes that simply add up."""
    from cellguard.nouns.hierarchy import Hierarchy

    entry = file.job.dimensions[name]
    if entry.digits is not None:
        return tuple(entry.digits)
    if isinstance(entry.hierarchy, str):
        return Hierarchy.read(file.file(entry.hierarchy), total=entry.total, levels=entry.levels)
    if entry.levels is not None:
        from cellguard.data.tabulate.nested import nested_columns

        path, encoding = file.file(str(file.job.data.file)), _encoding_of_records(file)
        return nested_columns(path, entry.levels, total=entry.total, without=entry.missing, encoding=encoding)
    return None if entry.hierarchy is None else Hierarchy.of(entry.hierarchy, total=entry.total)


def top_needed(job: Job) -> int:
    """Return how many of the largest contributions the rules look at."""
    return max([2, *(rule.largest for rule in job.rules)])


def flagged(made: Table | list[Part], file: JobFile) -> Table:
    """Return the table, or the one system of a publication, with its sensitive cells, levels, costs and attackers."""
    job = file.job
    if isinstance(made, list):
        return _with_decisions(assembled(file, made), file)
    return _with_decisions(_with_rules(made, job), file)


def warnings_of(table: Table, job: Job) -> list[str]:
    """Return what looks alike in a publication and is not linked: somebody should look at it before it is published."""
    from cellguard.nouns.lookalikes import lookalikes
    from cellguard.nouns.publication import Equation

    return [one.text for one in lookalikes(table, [Equation.of(text).names for text in job.equations])]


def check_layout(table: Table, file: JobFile) -> None:
    """Refuse a workbook of the publisher's that the release would not fit, before the work."""
    if file.job.output.layout is not None:
        from cellguard.nouns.layout import check_workbook

        check_workbook(table, file.file(file.job.output.layout))


def _with_rules(table: Table, job: Job) -> Table:
    """Apply the rules of a single table."""
    rules = [rule for entry in job.rules if (rule := entry.to_rule(table)) is not None]
    return table.apply(*rules, lower_ratio=job.levels.lower_ratio) if rules else table


def _with_decisions(table: Table, file: JobFile) -> Table:
    """Add what is decided by hand: single cells, levels, weights, attackers."""
    job = file.job
    for entry in job.rules:
        if isinstance(entry, AprioriSection):
            from cellguard._io.argus.hst import read_hst
            from cellguard.data.rules import apply_apriori

            decisions = read_hst(file.file(entry.file), len(table.dimensions))
            table = apply_apriori(table, decisions, percent=entry.percent)
    if job.levels.width is not None:
        none = np.zeros(table.n_cells)
        sliding = np.where(table.sensitive, job.levels.width, 0.0)
        table = table.with_(lower=none, upper=none, sliding=sliding)
    elif job.levels.upper is not None:
        table = table.with_levels(job.levels.lower or 0.0, job.levels.upper, sliding=job.levels.sliding or 0.0)
    own = job.method.method.own_weights if job.priorities and job.method.weights == "table" else None
    table = prioritised(table.with_weights(own or job.method.weights), file)
    table = table.with_(insiders=None if job.insiders else False, smallest_width=job.levels.smallest_width)
    if job.attackers:
        known = [_attacker_of_section(table, entry) for entry in job.attackers]
        table = table.with_(attackers=(*(table.attackers or (EXTERNAL,)), *known))
    return with_respondents(table) if job.method.method.by_ranges else table


def _attacker_of_section(table: Table, entry: Any) -> Attacker:
    known = [(known["cell"], float(known["contribution"])) for known in entry.knows]
    levels = None if entry.levels is None else (entry.levels[0], entry.levels[1])
    return Attacker.coalition(table, known, name=entry.name, levels=levels)


def count_rule(table: Table, job: Job) -> CountRule | None:
    """Return the rule by which small counts are suppressed, as far as the job says; None leaves it to the table."""
    minimum = next((entry.n for entry in job.rules if isinstance(entry, MinFrequencySection)), None)
    if minimum is None or job.levels.width is None:
        return None
    by_cell = len(np.unique(table.weights[~table.fixed])) == 1
    width = int(np.ceil(job.levels.width))
    return CountRule(minimum=minimum, width=width, zeros=False, loss="cells" if by_cell else "counts")


def protected(table: Table, job: Job, tell: Tell | None = None, *, limit_s: float | None = None) -> Release:
    """Protect the table by the job's method. What the release says of the time is what it says of nothing else.

    `limit_s` stands in for the job's time limit.
    """
    method = job.method.method
    options = job.method.options(table) | {"seed": job.seed}
    limit = job.limits.time_limit_s if limit_s is None else limit_s
    if "resist" in options:
        from cellguard.methods.suppress.resist import resist_matching

        release: Release = resist_matching(table, count_rule(table, job), seed=job.seed or None)
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
