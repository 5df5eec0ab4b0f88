"""The tables of a publication, from records or from files that are already added up; rules, and the one system."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cellguard.data.template import is_period
from cellguard.exceptions import CellguardError, InputError, PublicationError
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.publication import INDICATOR, Equation, Part, Publication
from cellguard.nouns.sheets import file_name, same_files
from cellguard.nouns.table import Table
from cellguard.publish.model import Job, TableSection
from cellguard.publish.populations import wrong_codes_of_parts
from cellguard.publish.read import JobFile
from cellguard.publish.ready import ready
from cellguard.publish.rules import local_rules

__all__ = ["assembled", "is_publication", "name_of", "own_hierarchies", "parts_of"]


def is_publication(job: Job) -> bool:
    """Say whether the job publishes more than linked tables of one value from the records."""
    return bool(job.indicators or job.equations or job.data.template) or any(
        entry.file is not None or entry.where or entry.hierarchies or entry.priority != 1.0 for entry in job.tables
    )


def name_of(entry: TableSection) -> str:
    """Return how a table is called."""
    return entry.name or " by ".join(entry.dimensions)


def parts_of(file: JobFile, hierarchy: Callable[[str], Any], options: dict[str, Any]) -> list[Part]:
    """Make every table of the publication; nothing is sensitive yet.

    Raises
    ------
    PublicationError
        With everything that is wrong: in the template, in the records, in each file, and between those tables that
        could be read.
    """
    job = file.job
    parts: list[Part] = []
    wrong: list[CellguardError] = []
    unread: set[str] = set()
    sources: list[tuple[list[TableSection], Callable[[], list[Part]]]] = []
    made = [entry for entry in job.tables if entry.file is None]
    if job.data.template is not None:
        whole = TableSection(dimensions=list(job.dimensions))
        sources.append(([whole], lambda: _of_template(file, hierarchy, options)))
    if made:
        sources.append((made, lambda: _of_records(file, hierarchy, options)))
    sources += [([entry], partial(_ready, file, entry, hierarchy)) for entry in job.tables if entry.file is not None]
    for entries, source in sources:
        try:
            parts += source()
        except CellguardError as error:
            wrong.append(error)
            unread.update(d for entry in entries for d in (*entry.dimensions, *entry.where))
    wrong += wrong_codes_of_parts(parts, job, hierarchy, unread)
    if wrong:
        certain = [part for part in _dated(parts) if _means_what_it_says(part, job, hierarchy, unread)]
        raise PublicationError.of([*wrong, *_misfits(certain, job)])
    for name, before in same_files([part.name for part in parts]):
        text = f"tables {before!r} and {name!r} would be written to one file, {file_name(name)}."
        raise InputError(text, hint="give one of them another name.")
    return _dated(parts)


def _means_what_it_says(part: Part, job: Job, hierarchy: Callable[[str], Any], unread: Collection[str]) -> bool:
    """Say whether the totals of a table are those of the publication also where other tables could not be read.

    A total of its own ("Total_EAST") means a part of the country because another table shows the whole; without that
    one it would be taken for the whole, and whatever is compared with it would be wrong.
    """
    for own, codes in zip(part.table.dimensions, part.table.codes, strict=True):
        d = part.dimension(own)
        if d in unread and d not in part.where:
            tree = hierarchy(d)
            flat = tree is None or isinstance(tree, tuple)
            if codes[0] != ((job.dimensions[d].total or "Total") if flat else Hierarchy.of(tree).total):
                return False
    return True


def _ready(file: JobFile, entry: TableSection, hierarchy: Callable[[str], Any]) -> list[Part]:
    """Read a table that is already added up."""
    own = own_hierarchies(file, entry)
    return ready(file.file(str(entry.file)), entry, file.job, name_of(entry), lambda d: own.get(d) or hierarchy(d))


def _of_records(file: JobFile, hierarchy: Callable[[str], Any], options: dict[str, Any]) -> list[Part]:
    """Add up the records for all tables that are made from them."""
    from cellguard.data.tabulate.many import AskedTable, parts_of_records

    job = file.job
    entries = [entry for entry in job.tables if entry.file is None]
    asked = [
        AskedTable(
            name=name_of(entry), dimensions=tuple(entry.dimensions), where=entry.where, priority=entry.priority,
            indicators=tuple(entry.indicators), hierarchies=own_hierarchies(file, entry),
        )
        for entry in entries
    ]  # fmt: skip
    used = {d for entry in entries for d in (*entry.dimensions, *entry.where)}
    by = {name: hierarchy(name) for name in job.dimensions if name in used}
    return parts_of_records(str(file.file(str(job.data.file))), by, asked, _measured(job), **options)


def own_hierarchies(file: JobFile, entry: TableSection) -> dict[str, Hierarchy]:
    """Return the hierarchies that a table has for itself, over the same leaves as the others'."""
    out = {}
    for dimension, given in entry.hierarchies.items():
        total = entry.total.get(dimension) or file.job.dimensions[dimension].total
        path = file.file(given) if isinstance(given, str) else None
        out[dimension] = Hierarchy.of(given, total=total) if path is None else Hierarchy.read(path, total=total)
    return out


def _measured(job: Job) -> dict[str, str | None]:
    """Return the column of each indicator; None counts records."""
    return {i.name: i.value for i in job.indicators} or {job.data.value or "count": job.data.value}


def _of_template(file: JobFile, hierarchy: Callable[[str], Any], options: dict[str, Any]) -> list[Part]:
    """Make the tables that a template asks for from the records."""
    from cellguard.data.tabulate.many import parts_of_template
    from cellguard.data.template import Template

    job = file.job
    totals = {name: entry.total for name, entry in job.dimensions.items() if entry.total is not None}
    path = file.file(str(job.data.template))
    template, wrong = Template.looked_at(path, dimensions=list(job.dimensions), totals=totals)
    by = {name: hierarchy(name) for name in job.dimensions}
    try:
        parts = parts_of_template(str(file.file(str(job.data.file))), by, template, _measured(job), **options)
    except CellguardError as error:
        raise PublicationError.of([*wrong, error]) from None
    PublicationError.refuse(wrong)
    return parts


def _dated(parts: Sequence[Part]) -> list[Part]:
    """Make the period a part of what a cell is where tables say that they differ in it; a single one says nothing."""
    named = next((d for part in parts for d in part.where if is_period(d)), None)
    if named is None:
        return list(parts)
    periods = [next((c for d, c in part.where.items() if is_period(d)), part.period) for part in parts]
    out = []
    for part, period in zip(parts, periods, strict=True):
        where = {d: c for d, c in part.where.items() if not is_period(d)}
        if len(set(periods) - {""}) > 1 and period:
            where[named] = period
        out.append(replace(part, where=where, period=""))
    return out


def _misfits(parts: Sequence[Part], job: Job) -> list[CellguardError]:
    """Return what is wrong between those tables that could be read: one run tells everything."""
    known = {part.indicator for part in parts}
    whole = [text for text in job.equations if known.issuperset(Equation.of(text).names)]
    try:
        if parts:
            Publication.of(parts, equations=whole, tolerance=job.tolerance)
    except CellguardError as error:
        return [error]
    return []


# ---------------------------------------------------------------- rules, and the system


def assembled(file: JobFile, parts: Sequence[Part]) -> Table:
    """Apply the rules table by table, and assemble the system: what one table flags is sensitive everywhere."""
    job = file.job
    try:
        local = local_rules(job.rules, parts)
    except CellguardError as error:
        raise PublicationError.of([error, *_misfits(parts, job)]) from None
    flagged = []
    for part, mine in zip(parts, local, strict=True):
        table = part.table
        rules = [made for entry in mine if (made := entry.to_rule(table)) is not None]
        if rules:
            table = table.apply(*rules, lower_ratio=job.levels.lower_ratio)
        flagged.append(replace(part, table=table))
    found = Publication.of(flagged, equations=job.equations, tolerance=job.tolerance, name=job.name)
    return _with_shadows(found.table, {i.name: i.shadow_of for i in job.indicators if i.shadow_of})


def _with_shadows(table: Table, shadows: Mapping[str, str]) -> Table:
    """Make an indicator sensitive where the one that it is the shadow of is, at the same share of its value."""
    if not shadows:
        return table
    d = table.dimensions.index(INDICATOR)
    sensitive, lower, upper = table.sensitive.copy(), table.lower.copy(), table.upper.copy()
    for name, of in shadows.items():
        theirs = np.flatnonzero(table.sensitive & (table.coordinates[:, d] == table.codes[d].index(of)))
        there = table.coordinates[theirs].copy()
        there[:, d] = table.codes[d].index(name)
        mine = table.cells_at(there)
        kept = (mine >= 0) & ~table.fixed[mine]
        theirs, mine = theirs[kept], mine[kept]
        share = np.abs(table.values[mine]) / np.maximum(np.abs(table.values[theirs]), 1e-300)
        sensitive[mine] = True
        room = (table.values - table.lb)[mine], (table.ub - table.values)[mine]
        lower[mine] = np.maximum(lower[mine], np.minimum(share * table.lower[theirs], room[0]))
        upper[mine] = np.maximum(upper[mine], np.minimum(share * table.upper[theirs], room[1]))
    return table.with_(sensitive=sensitive, lower=lower, upper=upper)
