"""What is sensitive in the tables of a job, and how: rules, decisions about single cells, levels, costs, attackers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cellguard._io.argus.hst import read_hst
from cellguard.data.rules import apply_apriori
from cellguard.data.rules.apply import Flags
from cellguard.exceptions import CellguardError, PublicationError, UnknownCodeError, did_you_mean
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.levels import table_with_respondent_attackers
from cellguard.nouns.publication import INDICATOR, Part, Publication, linked_tables_flagged_together
from cellguard.nouns.table import Table
from cellguard.publish.model import AttackerSection, Job
from cellguard.publish.priorities import prioritised
from cellguard.publish.read import JobFile
from cellguard.publish.rule_sections import AprioriSection, ManualSection, RuleSection
from cellguard.publish.sections import Codes, codes_listed_in_section
from cellguard.publish.tables import misfits_of_job_tables

__all__ = ["flagged_by_job"]


def flagged_by_job(made: Table | list[Part], file: JobFile) -> Table:
    """Return the table, or the one system of a publication, with its sensitive cells, levels, costs and attackers."""
    job = file.job
    table = _publication_flagged_by_job(job, made) if isinstance(made, list) else _with_rules_of_job(made, job)
    return _with_decisions_of_job(table, file)


def _rules_of_sections(entries: Sequence[RuleSection], table: Table) -> list[Any]:
    return [rule for entry in entries if (rule := entry.to_rule(table)) is not None]


def _with_rules_of_job(table: Table, job: Job) -> Table:
    rules = _rules_of_sections(job.rules, table)
    return table.apply(*rules, lower_ratio=job.levels.lower_ratio) if rules else table


def _with_decisions_of_job(table: Table, file: JobFile) -> Table:
    """Add what is decided by hand: single cells, levels, weights, attackers."""
    job = file.job
    for entry in job.rules:
        if isinstance(entry, AprioriSection):
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
    return table_with_respondent_attackers(table) if job.method.method.by_ranges else table


def _attacker_of_section(table: Table, entry: AttackerSection) -> Attacker:
    known = [(known["cell"], float(known["contribution"])) for known in entry.knows]
    levels = None if entry.levels is None else (entry.levels[0], entry.levels[1])
    return Attacker.coalition(table, known, name=entry.name, levels=levels)


# ---------------------------------------------------------------- the one system of a publication


def _publication_flagged_by_job(job: Job, parts: Sequence[Part]) -> Table:
    """Apply the rules table by table, and assemble the system: what one table flags is sensitive everywhere."""
    wrong = [mistake for entry in job.rules for mistake in _unknown_codes_of_rule_section(entry, parts)]
    try:
        PublicationError.refuse(wrong)
        local = [(part, _rules_of_sections(_rule_sections_for_part(job.rules, part), part.table)) for part in parts]
        ruled = linked_tables_flagged_together(local, lower_ratio=job.levels.lower_ratio)
    except CellguardError as error:
        raise PublicationError.of([error, *misfits_of_job_tables(parts, job)]) from None
    found = Publication.of(ruled, equations=job.equations, tolerance=job.tolerance, name=job.name)
    return _with_shadows_named_in_job(found.table, {i.name: i.shadow_of for i in job.indicators if i.shadow_of})


def _with_shadows_named_in_job(table: Table, shadows: Mapping[str, str]) -> Table:
    """Make an indicator sensitive where the one that it is the shadow of is, at the same share of its value."""
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
        flags = flags.joined(Flags(names=(f"{name}, shadow of {of}",), reasons=(reason,), flagged=(np.unique(mine),)))
        room = (table.values - table.lb)[mine], (table.ub - table.values)[mine]
        lower[mine] = np.maximum(lower[mine], np.minimum(share * table.lower[theirs], room[0]))
        upper[mine] = np.maximum(upper[mine], np.minimum(share * table.upper[theirs], room[1]))
    return table.with_(sensitive=sensitive, lower=lower, upper=upper, flags=flags)


# ---------------------------------------------------------------- rules of a publication, in the names of its tables

OwnCodes = Mapping[str, tuple[str, set[str]]]
"""Dimension of the publication -> how a table calls it, and the codes that it has there."""


def _rule_sections_for_part(rules: Sequence[RuleSection], part: Part) -> list[RuleSection]:
    """Return the rules that hold for a table, in its own names."""
    return [
        local
        for entry in rules
        if (not entry.tables or part.table.name in entry.tables)
        and (not entry.indicators or part.indicator in entry.indicators)
        and (local := _rule_section_in_own_names(entry, part)) is not None
    ]


def _rule_section_in_own_names(entry: RuleSection, part: Part) -> RuleSection | None:
    """Return the rule for one table: its own names of dimensions, and the codes it has; None where nothing is left."""
    own = _part_codes_for_rule_sections(part)
    only, inside = _rule_section_codes_in_part(entry.only, part, own)
    excluding, outside = _rule_section_codes_in_part(entry.excluding, part, own)
    if not (all(inside) and all(only.values())) or any(outside):
        return None
    changes: dict[str, Any] = {"only": only, "excluding": {d: codes for d, codes in excluding.items() if codes}}
    if isinstance(entry, ManualSection):
        cells = [cell for given in entry.cells if (cell := _cell_of_manual_section(given, part, own)) is not None]
        if not cells:
            return None
        changes["cells"] = cells
    return entry.model_copy(update=changes)


def _part_codes_for_rule_sections(part: Part) -> OwnCodes:
    names = zip(part.table.dimensions, part.table.codes, strict=True)
    return {part.dimension(name): (name, set(codes)) for name, codes in names}


def _rule_section_codes_in_part(given: Codes, part: Part, own: OwnCodes) -> tuple[dict[str, list[str]], list[bool]]:
    """Return the codes that a table has, and of each dimension at whose total it stands whether its code is named."""
    wanted = {dimension: set(codes_listed_in_section(codes)) for dimension, codes in given.items()}
    here = {own[d][0]: sorted(codes & own[d][1]) for d, codes in wanted.items() if d in own}
    return here, [part.where.get(d) in codes for d, codes in wanted.items() if d not in own]


def _cell_of_manual_section(given: Mapping[str, str], part: Part, own: OwnCodes) -> dict[str, str] | None:
    """Return a cell in the names of the table, if it stands there."""
    out = {}
    for dimension, code in given.items():
        if dimension in own and code in own[dimension][1]:
            out[own[dimension][0]] = code
        elif part.where.get(dimension) != code:
            return None
    covered = all(given.get(dimension) == code for dimension, code in part.where.items())
    return out if covered else None


def _unknown_codes_of_rule_section(entry: RuleSection, parts: Sequence[Part]) -> Iterator[CellguardError]:
    """Yield codes of a rule that no table has."""
    named = [
        (d, c)
        for place in (entry.only, entry.excluding)
        for d, codes in place.items()
        for c in codes_listed_in_section(codes)
    ]
    if isinstance(entry, ManualSection):
        named += [(d, c) for cell in entry.cells for d, c in cell.items()]
    owns = [_part_codes_for_rule_sections(part) for part in parts] if named else []
    for dimension, code in dict.fromkeys(named):
        known = {part.where[dimension] for part in parts if dimension in part.where}
        known.update(*(own[dimension][1] for own in owns if dimension in own))
        if code not in known:
            text = f"rule {entry.rule}: no table has the code {code!r} of {dimension!r}."
            yield UnknownCodeError(text, hint=did_you_mean(code, known))
