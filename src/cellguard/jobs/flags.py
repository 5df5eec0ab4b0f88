"""Flag the tables of a job: rules, decisions about single cells, levels, costs, attackers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cellguard._io.hst import read_hst
from cellguard.exceptions import CellguardError, PublicationError, UnknownCodeError, suggest_names
from cellguard.jobs.definition.model import AttackerSection, Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.definition.rule_sections import AprioriSection, ManualSection, RuleSection
from cellguard.jobs.definition.sections import Codes, make_code_list
from cellguard.jobs.priorities import apply_priorities
from cellguard.jobs.tables import find_misfits
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import add_respondents
from cellguard.model.linked.publication import INDICATOR, Part, Publication, apply_rules_to_parts
from cellguard.model.table import Table
from cellguard.rules import apply_apriori
from cellguard.rules.apply import Flags

__all__ = ["flag_job"]


def flag_job(made: Table | list[Part], file: JobFile) -> Table:
    """Return the table, or the joint table of a publication, with sensitive cells, levels, costs and attackers."""
    job = file.job
    table = _flag_publication(job, made) if isinstance(made, list) else _apply_job_rules(made, job)
    return _apply_decisions(table, file)


def _build_rules(entries: Sequence[RuleSection], table: Table) -> list[Any]:
    return [rule for entry in entries if (rule := entry.build_rule(table)) is not None]


def _apply_job_rules(table: Table, job: Job) -> Table:
    rules = _build_rules(job.rules, table)
    return table.apply(*rules, lower_ratio=job.levels.lower_ratio) if rules else table


def _apply_decisions(table: Table, file: JobFile) -> Table:
    """Add the job's own decisions: single cells, levels, weights, attackers."""
    job = file.job
    for entry in job.rules:
        if isinstance(entry, AprioriSection):
            decisions = read_hst(file.resolve_path(entry.file), len(table.dimensions))
            table = apply_apriori(table, decisions, percent=entry.percent)
    if job.levels.width is not None:
        none = np.zeros(table.n_cells)
        sliding = np.where(table.sensitive, job.levels.width, 0.0)
        table = table.with_(lower=none, upper=none, sliding=sliding)
    elif job.levels.upper is not None:
        table = table.with_levels(job.levels.lower or 0.0, job.levels.upper, sliding=job.levels.sliding or 0.0)
    own = job.method.method.own_weights if job.priorities and job.method.weights == "table" else None
    table = apply_priorities(table.with_weights(own or job.method.weights), file)
    table = table.with_(insiders=None if job.insiders else False, smallest_width=job.levels.smallest_width)
    if job.attackers:
        known = [_build_described_attacker(table, entry) for entry in job.attackers]
        table = table.with_(attackers=(*(table.attackers or (EXTERNAL,)), *known))
    return add_respondents(table) if job.method.method.by_ranges else table


def _build_described_attacker(table: Table, entry: AttackerSection) -> Attacker:
    known = [(known["cell"], float(known["contribution"])) for known in entry.knows]
    levels = None if entry.levels is None else (entry.levels[0], entry.levels[1])
    return Attacker.coalition(table, known, name=entry.name, levels=levels)


# ---------------------------------------------------------------- the one system of a publication


def _flag_publication(job: Job, parts: Sequence[Part]) -> Table:
    """Apply the rules table by table, and join the tables: a cell that one table flags is sensitive in all."""
    wrong = [mistake for entry in job.rules for mistake in _find_unknown_codes(entry, parts)]
    try:
        PublicationError.refuse(wrong)
        local = [(part, _build_rules(_select_rules(job.rules, part), part.table)) for part in parts]
        ruled = apply_rules_to_parts(local, lower_ratio=job.levels.lower_ratio)
    except CellguardError as error:
        raise PublicationError.of([error, *find_misfits(parts, job)]) from None
    found = Publication.of(ruled, equations=job.equations, tolerance=job.tolerance, name=job.name)
    return _apply_shadows(found.table, {i.name: i.shadow_of for i in job.indicators if i.shadow_of})


def _apply_shadows(table: Table, shadows: Mapping[str, str]) -> Table:
    """Make an indicator sensitive where the indicator it shadows is, with levels at the same share of its value."""
    if not shadows:
        return table
    d = table.dimensions.index(INDICATOR)
    sensitive, lower, upper = table.sensitive.copy(), table.lower.copy(), table.upper.copy()
    flags = Flags() if table.flags is None else table.flags
    for name, of in shadows.items():
        theirs = np.flatnonzero(table.sensitive & (table.coordinates[:, d] == table.codes[d].index(of)))
        there = table.coordinates[theirs].copy()
        there[:, d] = table.codes[d].index(name)
        mine = table.cells_at(there)
        kept = (mine >= 0) & ~table.fixed[mine]
        theirs, mine = theirs[kept], mine[kept]
        share = np.abs(table.values[mine]) / np.maximum(np.abs(table.values[theirs]), 1e-300)
        sensitive[mine] = True
        reason = f"{of} of the same cell is sensitive"
        flags = flags.merge(Flags(names=(f"{name}, shadow of {of}",), reasons=(reason,), flagged=(np.unique(mine),)))
        slack = (table.values - table.lb)[mine], (table.ub - table.values)[mine]
        lower[mine] = np.maximum(lower[mine], np.minimum(share * table.lower[theirs], slack[0]))
        upper[mine] = np.maximum(upper[mine], np.minimum(share * table.upper[theirs], slack[1]))
    return table.with_(sensitive=sensitive, lower=lower, upper=upper, flags=flags)


# ---------------------------------------------------------------- rules of a publication, in the names of its tables

OwnCodes = Mapping[str, tuple[str, set[str]]]
"""Dimension of the publication -> its name in a table, and its codes there."""


def _select_rules(rules: Sequence[RuleSection], part: Part) -> list[RuleSection]:
    """Return the rules that apply to a table, in its own names."""
    return [
        local
        for entry in rules
        if (not entry.tables or part.table.name in entry.tables)
        and (not entry.indicators or part.indicator in entry.indicators)
        and (local := _translate_rule(entry, part)) is not None
    ]


def _translate_rule(entry: RuleSection, part: Part) -> RuleSection | None:
    """Return the rule in the dimension names and codes of one table; None if it applies to no cell there."""
    own = _list_part_codes(part)
    only, inside = _translate_rule_codes(entry.only, part, own)
    excluding, outside = _translate_rule_codes(entry.excluding, part, own)
    if not (all(inside) and all(only.values())) or any(outside):
        return None
    changes: dict[str, Any] = {"only": only, "excluding": {d: codes for d, codes in excluding.items() if codes}}
    if isinstance(entry, ManualSection):
        cells = [cell for given in entry.cells if (cell := _translate_cell(given, part, own)) is not None]
        if not cells:
            return None
        changes["cells"] = cells
    return entry.model_copy(update=changes)


def _list_part_codes(part: Part) -> OwnCodes:
    names = zip(part.table.dimensions, part.table.codes, strict=True)
    return {part.dimension(name): (name, set(codes)) for name, codes in names}


def _translate_rule_codes(given: Codes, part: Part, own: OwnCodes) -> tuple[dict[str, list[str]], list[bool]]:
    """Return the codes that a table has, and for each dimension it shows only in total, whether that code is named."""
    wanted = {dimension: set(make_code_list(codes)) for dimension, codes in given.items()}
    here = {own[d][0]: sorted(codes & own[d][1]) for d, codes in wanted.items() if d in own}
    return here, [part.where.get(d) in codes for d, codes in wanted.items() if d not in own]


def _translate_cell(given: Mapping[str, str], part: Part, own: OwnCodes) -> dict[str, str] | None:
    """Return a cell in the names of the table, if the table contains it."""
    out = {}
    for dimension, code in given.items():
        if dimension in own and code in own[dimension][1]:
            out[own[dimension][0]] = code
        elif part.where.get(dimension) != code:
            return None
    covered = all(given.get(dimension) == code for dimension, code in part.where.items())
    return out if covered else None


def _find_unknown_codes(entry: RuleSection, parts: Sequence[Part]) -> Iterator[CellguardError]:
    """Yield codes of a rule that no table has."""
    named = [
        (d, c) for place in (entry.only, entry.excluding) for d, codes in place.items() for c in make_code_list(codes)
    ]
    if isinstance(entry, ManualSection):
        named += [(d, c) for cell in entry.cells for d, c in cell.items()]
    owns = [_list_part_codes(part) for part in parts] if named else []
    for dimension, code in dict.fromkeys(named):
        known = {part.where[dimension] for part in parts if dimension in part.where}
        known.update(*(own[dimension][1] for own in owns if dimension in own))
        if code not in known:
            text = f"rule {entry.rule}: no table has the code {code!r} of {dimension!r}."
            yield UnknownCodeError(text, hint=suggest_names(code, known))
