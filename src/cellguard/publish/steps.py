"""The steps of a job, each a function of what the one before it made: tabulate, flag, protect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cellguard.check.attack.counts import CountRule
from cellguard.data.rules import Dominance, Manual, MinFrequency, PPercent, PriorPosterior, Request, Rule, Zero
from cellguard.exceptions import InputError
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.levels import with_respondents
from cellguard.nouns.publication import Part
from cellguard.nouns.release import Release
from cellguard.nouns.table import Table
from cellguard.publish.model import Job, RuleSection
from cellguard.publish.parts import PLACES, assembled, is_publication, parts_of
from cellguard.publish.read import JobFile

__all__ = ["count_rule", "flagged", "inputs", "method_options", "protected", "rule_of", "tabulated", "top_needed"]

DEFAULT_ROUNDS = 30
"""Rounds of improvement by suppression: most of what many more would bring, in seconds."""

Tell = Callable[[float, float], None]
"""Told of an incumbent and its bound."""


def inputs(file: JobFile) -> list[Any]:
    """Return the paths of all files that are read: data, descriptions and what they name, hierarchies, decisions."""
    from cellguard.publish.check import files_of_data

    job = file.job
    found = files_of_data(job, file.path.parent)
    found += [file.file(d.hierarchy) for d in job.dimensions.values() if isinstance(d.hierarchy, str)]
    found += [file.file(rule.file) for rule in job.rules if rule.file is not None]
    found += [file.file(entry.file) for entry in job.tables if entry.file is not None]
    if job.data.table is not None:
        found += Table.files(file.file(job.data.table))
    return list(dict.fromkeys(found))


def tabulated(file: JobFile) -> Table | list[Part]:
    """Make the table of the job, or the tables of its publication: add up records, or read cells."""
    job = file.job
    if job.data.table is not None:
        return Table.read(file.file(job.data.table)).with_(name=job.name)
    if is_publication(job):
        return parts_of(file, lambda name: _hierarchy(file, name), _record_options(job))
    from cellguard.data.tabulate import tabulate

    return tabulate(
        str(file.file(str(job.data.file))),
        by={name: _hierarchy(file, name) for name in job.dimensions},
        value=job.data.value,
        tables=[entry.dimensions for entry in job.tables] or None,
        name=job.name,
        **_record_options(job),
    )


def _record_options(job: Job) -> dict[str, Any]:
    """Return what the job says about its records, as tabulation takes it."""
    data = job.data
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
        "encoding": data.encoding,
        "threads": job.limits.threads,
        "memory_limit": job.limits.memory,
    }


def _hierarchy(file: JobFile, name: str) -> Any:
    """Return the hierarchy of a dimension, the digits of its levels, or None for codes that simply add up."""
    from cellguard.nouns.hierarchy import Hierarchy

    entry = file.job.dimensions[name]
    if entry.digits is not None:
        return tuple(entry.digits)
    if isinstance(entry.hierarchy, str):
        return Hierarchy.read(file.file(entry.hierarchy), total=entry.total, levels=entry.levels)
    if entry.levels is not None:
        from cellguard.data.tabulate.nested import nested_columns

        path, encoding = file.file(str(file.job.data.file)), file.job.data.encoding
        return nested_columns(path, entry.levels, total=entry.total, without=entry.missing, encoding=encoding)
    return None if entry.hierarchy is None else Hierarchy.of(entry.hierarchy, total=entry.total)


def top_needed(job: Job) -> int:
    """Return how many of the largest contributions the rules look at."""
    return max(
        [
            2,
            *(rule.n or 0 for rule in job.rules if rule.rule == "dominance"),
            *((rule.coalition or 1) + 1 for rule in job.rules),
        ]
    )


def rule_of(entry: RuleSection) -> Rule:
    """Return the rule that a section describes."""
    given = {
        key: value for key in entry.model_fields_set - {"rule", *PLACES} if (value := getattr(entry, key)) is not None
    }
    kinds: dict[str, type[Rule]] = {
        "p_percent": PPercent,
        "dominance": Dominance,
        "prior_posterior": PriorPosterior,
        "min_frequency": MinFrequency,
        "zero": Zero,
        "request": Request,
        "manual": Manual,
    }
    rule = kinds[entry.rule](**given)
    return rule.only(**entry.only).excluding(**entry.excluding)


def flagged(made: Table | list[Part], file: JobFile) -> Table:
    """Return the table, or the one system of a publication, with its sensitive cells, levels, costs and attackers."""
    job = file.job
    if isinstance(made, list):
        return _decided(assembled(file, made, _rule_for), file)
    return _decided(_ruled(made, job), file)


def _rule_for(entry: RuleSection, table: Table) -> Rule:
    return _manual(table, entry) if entry.rule == "manual" else rule_of(entry)


def _ruled(table: Table, job: Job) -> Table:
    """Apply the rules of a single table."""
    rules = [rule_of(entry) for entry in job.rules if entry.rule not in ("a_priori", "manual")]
    manual = [entry for entry in job.rules if entry.rule == "manual"]
    rules += [_manual(table, entry) for entry in manual]
    if rules:
        table = table.apply(*rules, lower_ratio=job.levels.lower_ratio)
    return table


def _decided(table: Table, file: JobFile) -> Table:
    """Add what is decided by hand: single cells, levels, weights, attackers."""
    job = file.job
    for entry in job.rules:
        if entry.rule == "a_priori":
            from cellguard._io.argus.hst import read_hst
            from cellguard.data.rules import apply_apriori

            percent = 20.0 if entry.percent is None else entry.percent
            table = apply_apriori(table, read_hst(file.file(str(entry.file)), len(table.dimensions)), percent=percent)
    if job.levels.width is not None:
        none = np.zeros(table.n_cells)
        sliding = np.where(table.sensitive, job.levels.width, 0.0)
        table = table.with_(lower=none, upper=none, sliding=sliding)
    elif job.levels.upper is not None:
        table = table.with_levels(job.levels.lower or 0.0, job.levels.upper, sliding=job.levels.sliding or 0.0)
    table = table.with_weights(job.method.weights)
    table = table.with_(insiders=None if job.insiders else False, smallest_width=job.levels.smallest_width)
    if job.attackers:
        known = [_attacker(table, entry) for entry in job.attackers]
        table = table.with_(attackers=(*(table.attackers or (EXTERNAL,)), *known))
    return table if job.method.name == "adjust" else with_respondents(table)


def _manual(table: Table, entry: RuleSection) -> Rule:
    """Return the rule for cells marked by hand; dimensions that are left out are at their total."""
    cells = [table.cell(codes) for codes in entry.cells or []]
    percent = 20.0 if entry.percent is None else entry.percent
    return Manual(cells, percent).only(**entry.only).excluding(**entry.excluding)


def _attacker(table: Table, entry: Any) -> Attacker:
    known = [(known["cell"], float(known["contribution"])) for known in entry.knows]
    levels = None if entry.levels is None else (entry.levels[0], entry.levels[1])
    return Attacker.coalition(table, known, name=entry.name, levels=levels)


def count_rule(table: Table, job: Job) -> CountRule | None:
    """Return the rule by which small counts are suppressed, as far as the job says; None leaves it to the table."""
    minimum = next((entry.n for entry in job.rules if entry.rule == "min_frequency"), None)
    if minimum is None or job.levels.width is None:
        return None
    by_cell = len(np.unique(table.weights[~table.fixed])) == 1
    width = int(np.ceil(job.levels.width))
    return CountRule(minimum=minimum, width=width, zeros=False, loss="cells" if by_cell else "counts")


def method_options(job: Job, table: Table | None = None) -> dict[str, Any]:
    """Return every option of the method, defaults filled in."""
    m = job.method
    if m.name == "suppress":
        rounds = DEFAULT_ROUNDS if m.rounds is None else m.rounds
        # whoever counts rounds asks for the same work everywhere; others want the best, with a proof where it closes
        search = m.search or ("auto" if m.rounds is None else "heuristic")
        options = {"method": search, "rounds": rounds if search == "heuristic" else m.rounds, "gap": m.gap or 0.0}
        return options if m.resist is None else options | {"resist": m.resist}
    if m.name == "adjust":
        asked: dict[str, Any] = {
            "norm": m.norm or "l1",
            "senses": m.senses or "key",
            "integer": m.whole,
            "keep": m.keep or [],
        }
        asked["repair"] = None if m.repair == "none" else m.repair or "senses"
        return asked | {"surplus": 1.0 if m.surplus is None else m.surplus, "gap": 1e-3 if m.gap is None else m.gap}
    if m.name == "intervals":
        return {"gap": 1e-3 if m.gap is None else m.gap, "position": m.position or "narrowest"}
    base = m.base
    if base is None and table is not None:
        from cellguard.methods.compare import suggested_base

        base = suggested_base(table)
    if m.name == "round":
        return {"base": base, "step": m.step, "gap": 1e-3 if m.gap is None else m.gap}
    return {"base": base}


def protected(table: Table, job: Job, tell: Tell | None = None) -> Release:
    """Protect the table by the job's method. What the release says of the time is what it says of nothing else."""
    options = method_options(job, table) | {"seed": job.seed}
    limit = job.limits.time_limit_s
    release: Release
    if job.method.resist is not None:
        from cellguard.methods.suppress.resist import resist_matching

        release = resist_matching(table, count_rule(table, job), seed=job.seed or None)
    elif job.method.name == "suppress":
        from cellguard.methods.suppress import suppress

        release = suppress(table, time_limit_s=limit, progress=tell, **options)
    elif job.method.name == "adjust":
        from cellguard.methods.adjust import adjust

        weights = "inverse" if job.method.weights == "table" else "table"
        release = adjust(table, weights=weights, time_limit_s=limit, **options)
    elif job.method.name == "intervals":
        from cellguard.methods.intervals import intervals

        release = intervals(table, time_limit_s=limit, progress=tell, **options)
    elif job.method.name == "round":
        from cellguard.methods.round import round as round_table

        release = round_table(table, time_limit_s=limit, **options)
    elif job.method.name == "perturb":
        from cellguard.methods.perturb import perturb

        release = perturb(table, time_limit_s=limit, **options)
    else:
        raise InputError(f"method {job.method.name!r} is not known.")
    # what the method found or drew itself is needed to make the release again
    found = ("rule", "seed", "unit", "weights") if job.method.name == "adjust" else ("rule",)
    made_with = {name: release.options[name] for name in found if name in release.options}
    return replace(release, options={**options, **made_with, "time_limit_s": limit})
