"""The tables of a job: added up from records, made as a template asks, or read from files that are already added up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cellguard.data.tabulate import tabulate
from cellguard.data.tabulate.many import AskedTable, parts_tabulated_for_template, parts_tabulated_from_records
from cellguard.data.tabulate.nested import nested_columns_of_records
from cellguard.data.template import Template, is_template_period
from cellguard.exceptions import CellguardError, InputError, PublicationError
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.publication import Equation, Part, Publication
from cellguard.nouns.sheets import file_name_of_sheet, sheets_sharing_a_file
from cellguard.nouns.table import Table
from cellguard.publish.check import data_files_of_job, encoding_of_job_data
from cellguard.publish.model import Job, TableSection
from cellguard.publish.populations import wrong_population_codes
from cellguard.publish.read import JobFile
from cellguard.publish.ready import parts_of_ready_file

__all__ = ["misfits_of_job_tables", "tabulated_by_job", "top_needed_by_job"]

_OF_RECORDS = (
    *("weight", "holding", "shadow", "waiver", "request", "request_codes", "cost", "skip_missing", "standalone"),
    *("known_zeros", "decimal", "decimals"),
)
"""What ``[data]`` says about records, by the names that tabulation has for it."""


def tabulated_by_job(file: JobFile) -> Table | list[Part]:
    """Make the table of the job, or the tables of its publication: add up records, or read cells."""
    job = file.job
    if job.data.table is not None:
        return Table.read(file.file(job.data.table)).with_(name=job.name)
    if job.is_publication:
        return _publication_parts_of_job(file)
    return tabulate(
        _records_path_of_job(file),
        by=_hierarchies_of_job(file, job.dimensions),
        value=job.data.value,
        tables=[entry.dimensions for entry in job.tables] or None,
        name=job.name,
        **_record_options_of_job(file),
    )


# ---------------------------------------------------------------- what tabulation is told


def _records_path_of_job(file: JobFile) -> str:
    return str(file.file(str(file.job.data.file)))


def _records_encoding_of_job(file: JobFile) -> str | None:
    return encoding_of_job_data(file.job, data_files_of_job(file.job, file.path.parent), file.facts)


def _record_options_of_job(file: JobFile) -> dict[str, Any]:
    """Return what the job says about its records, as tabulation takes it."""
    job = file.job
    return {name: getattr(job.data, name) for name in _OF_RECORDS} | {
        "missing": {name: d.missing for name, d in job.dimensions.items() if d.missing},
        "total": _totals_named_in_job(job),
        "top": top_needed_by_job(job),
        "encoding": _records_encoding_of_job(file),
        "threads": job.limits.threads,
        "memory_limit": job.limits.memory,
    }


def _totals_named_in_job(job: Job) -> dict[str, str]:
    return {name: d.total for name, d in job.dimensions.items() if d.total is not None}


def top_needed_by_job(job: Job) -> int:
    """Return how many of the largest contributions the rules look at."""
    return max([2, *(rule.largest for rule in job.rules)])


def _hierarchies_of_job(file: JobFile, names: Iterable[str]) -> dict[str, Any]:
    return {name: _hierarchy_of_dimension_section(file, name) for name in names}


def _hierarchy_of_dimension_section(file: JobFile, name: str) -> Any:
    """Return the hierarchy of a dimension, the digits of its levels, or None for codes that simply add up."""
    entry = file.job.dimensions[name]
    if entry.digits is not None:
        return tuple(entry.digits)
    if entry.levels is not None and not isinstance(entry.hierarchy, str):
        path, encoding = file.file(str(file.job.data.file)), _records_encoding_of_job(file)
        return nested_columns_of_records(
            path, entry.levels, total=entry.total, without=entry.missing, encoding=encoding
        )
    return (
        None if entry.hierarchy is None else _hierarchy_named_in_job(file, entry.hierarchy, entry.total, entry.levels)
    )


def _hierarchy_named_in_job(
    file: JobFile, given: Any, total: str | None, levels: Sequence[str] | None = None
) -> Hierarchy:
    """Return a hierarchy that the job names by its file, or writes down."""
    if isinstance(given, str):
        return Hierarchy.read(file.file(given), total=total, levels=levels)
    return Hierarchy.of(given, total=total)


def _hierarchies_of_table_section(file: JobFile, entry: TableSection) -> dict[str, Hierarchy]:
    """Return the hierarchies that a table has for itself, over the same leaves as the others'."""
    return {
        dimension: _hierarchy_named_in_job(
            file, given, entry.total.get(dimension) or file.job.dimensions[dimension].total
        )
        for dimension, given in entry.hierarchies.items()
    }


# ---------------------------------------------------------------- the tables of a publication


def _publication_parts_of_job(file: JobFile) -> list[Part]:
    """Make every table of the publication; nothing is sensitive yet.

    Raises
    ------
    PublicationError
        With everything that is wrong: in the template, in the records, in each file, and between those tables that
        could be read.
    """
    job = file.job
    sources: list[tuple[Sequence[TableSection], Callable[[JobFile], list[Part]]]] = []
    if job.data.template is not None:
        sources.append(([TableSection(dimensions=list(job.dimensions))], _parts_of_job_template))
    if made := [entry for entry in job.tables if entry.file is None]:
        sources.append((made, _parts_of_job_records))
    sources += [
        ([entry], partial(_parts_of_table_section, entry=entry)) for entry in job.tables if entry.file is not None
    ]
    parts: list[Part] = []
    wrong: list[CellguardError] = []
    unread: set[str] = set()
    for entries, source in sources:
        try:
            parts += source(file)
        except CellguardError as error:
            wrong.append(error)
            unread.update(d for entry in entries for d in (*entry.dimensions, *entry.where))
    wrong += wrong_population_codes(parts, job, partial(_hierarchy_of_dimension_section, file), unread)
    parts = _dated_parts_of_job(parts)
    if wrong:
        certain = [part for part in parts if _totals_mean_what_job_says(part, file, unread)]
        raise PublicationError.of([*wrong, *misfits_of_job_tables(certain, job)])
    for name, before in sheets_sharing_a_file([part.name for part in parts]):
        text = f"tables {before!r} and {name!r} would be written to one file, {file_name_of_sheet(name)}."
        raise InputError(text, hint="give one of them another name.")
    return parts


def _totals_mean_what_job_says(part: Part, file: JobFile, unread: Collection[str]) -> bool:
    """Say whether the totals of a table are those of the publication also where other tables could not be read.

    A total of its own ("Total_EAST") means a part of the country because another table shows the whole; without that
    one it would be taken for the whole, and whatever is compared with it would be wrong.
    """
    for own, codes in zip(part.table.dimensions, part.table.codes, strict=True):
        d = part.dimension(own)
        if d in unread and d not in part.where:
            tree = _hierarchy_of_dimension_section(file, d)
            flat = tree is None or isinstance(tree, tuple)
            if codes[0] != ((file.job.dimensions[d].total or "Total") if flat else Hierarchy.of(tree).total):
                return False
    return True


def _parts_of_table_section(file: JobFile, entry: TableSection) -> list[Part]:
    """Read a table that is already added up."""
    own = _hierarchies_of_table_section(file, entry)
    path = file.file(str(entry.file))
    return parts_of_ready_file(path, entry, file.job, lambda d: own.get(d) or _hierarchy_of_dimension_section(file, d))


def _parts_of_job_records(file: JobFile) -> list[Part]:
    """Add up the records for all tables that are made from them."""
    entries = [entry for entry in file.job.tables if entry.file is None]
    asked = [
        AskedTable(
            name=entry.title, dimensions=tuple(entry.dimensions), where=entry.where, priority=entry.priority,
            indicators=tuple(entry.indicators), hierarchies=_hierarchies_of_table_section(file, entry),
        )
        for entry in entries
    ]  # fmt: skip
    used = {d for entry in entries for d in (*entry.dimensions, *entry.where)}
    by = _hierarchies_of_job(file, [name for name in file.job.dimensions if name in used])
    return parts_tabulated_from_records(
        _records_path_of_job(file), by, asked, _columns_of_indicator_sections(file.job), **_record_options_of_job(file)
    )


def _parts_of_job_template(file: JobFile) -> list[Part]:
    """Make the tables that a template asks for from the records."""
    job = file.job
    path = file.file(str(job.data.template))
    template, wrong = Template.looked_at(path, dimensions=list(job.dimensions), totals=_totals_named_in_job(job))
    by = _hierarchies_of_job(file, job.dimensions)
    try:
        parts = parts_tabulated_for_template(
            _records_path_of_job(file),
            by,
            template,
            _columns_of_indicator_sections(job),
            **_record_options_of_job(file),
        )
    except CellguardError as error:
        raise PublicationError.of([*wrong, error]) from None
    PublicationError.refuse(wrong)
    return parts


def _columns_of_indicator_sections(job: Job) -> dict[str, str | None]:
    """Return the column of each indicator; None counts records."""
    return {i.name: i.value for i in job.indicators} or {job.data.value or "count": job.data.value}


def _dated_parts_of_job(parts: Sequence[Part]) -> list[Part]:
    """Make the period a part of what a cell is where tables say that they differ in it; a single one says nothing."""
    named = next((d for part in parts for d in part.where if is_template_period(d)), None)
    if named is None:
        return list(parts)
    periods = [next((c for d, c in part.where.items() if is_template_period(d)), part.period) for part in parts]
    out = []
    for part, period in zip(parts, periods, strict=True):
        where = {d: c for d, c in part.where.items() if not is_template_period(d)}
        if len(set(periods) - {""}) > 1 and period:
            where[named] = period
        out.append(replace(part, where=where, period=""))
    return out


def misfits_of_job_tables(parts: Sequence[Part], job: Job) -> list[CellguardError]:
    """Return what is wrong between those tables that could be read: one run tells everything."""
    known = {part.indicator for part in parts}
    whole = [text for text in job.equations if known.issuperset(Equation.of(text).names)]
    try:
        if parts:
            Publication.of(parts, equations=whole, tolerance=job.tolerance)
    except CellguardError as error:
        return [error]
    return []
