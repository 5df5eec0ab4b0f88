"""Make the tables of a job: tabulate records, follow a template, or read ready tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cellguard.exceptions import CellguardError, InputError, PublicationError
from cellguard.jobs.definition.check import detect_encoding, list_data_files
from cellguard.jobs.definition.model import Job, TableSection
from cellguard.jobs.definition.populations import find_wrong_codes
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.ready import read_ready_parts
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.publication import Equation, Part, Publication
from cellguard.model.table import Table
from cellguard.release.formats.sheets import find_colliding_names, make_file_name
from cellguard.tabulation import tabulate
from cellguard.tabulation.many import AskedTable, tabulate_parts, tabulate_template
from cellguard.tabulation.nested import build_nested_hierarchy
from cellguard.tabulation.request import KEPT_CONTRIBUTIONS
from cellguard.tabulation.template import Template, is_template_period

__all__ = ["count_needed_contributions", "find_misfits", "tabulate_job"]

_OF_RECORDS = (
    *("weight", "holding", "shadow", "waiver", "request", "request_codes", "cost", "skip_missing", "standalone"),
    *("known_zeros", "decimal", "decimals"),
)
"""Keys of ``[data]`` about records -> the parameters of tabulation."""


def tabulate_job(file: JobFile) -> Table | list[Part]:
    """Make the table of the job, or the tables of its publication: tabulate records, or read cells."""
    job = file.job
    if job.data.table is not None:
        return Table.read(file.resolve_path(job.data.table)).with_(name=job.name)
    if job.is_publication:
        return _make_publication_parts(file)
    return tabulate(
        _get_records_path(file),
        by=_read_hierarchies(file, job.dimensions),
        value=job.data.value,
        tables=[entry.dimensions for entry in job.tables] or None,
        name=job.name,
        **_record_options_of_job(file),
    )


# ---------------------------------------------------------------- parameters of tabulation


def _get_records_path(file: JobFile) -> str:
    return str(file.resolve_path(str(file.job.data.file)))


def _get_records_encoding(file: JobFile) -> str | None:
    return detect_encoding(file.job, list_data_files(file.job, file.path.parent), file.facts)


def _record_options_of_job(file: JobFile) -> dict[str, Any]:
    """Return the job's description of its records, as parameters of tabulation."""
    job = file.job
    return {name: getattr(job.data, name) for name in _OF_RECORDS} | {
        "missing": {name: d.missing for name, d in job.dimensions.items() if d.missing},
        "leading_zeros": [name for name, d in job.dimensions.items() if d.leading_zeros],
        "total": _collect_totals(job),
        "top": count_needed_contributions(job),
        "encoding": _get_records_encoding(file),
        "threads": job.limits.threads,
        "memory_limit": job.limits.memory,
    }


def _collect_totals(job: Job) -> dict[str, str]:
    return {name: d.total for name, d in job.dimensions.items() if d.total is not None}


def count_needed_contributions(job: Job) -> int:
    """Return the number of largest contributions to keep: for the rules, and for respondents as attackers."""
    return max([KEPT_CONTRIBUTIONS, *(rule.largest for rule in job.rules)])


def _read_hierarchies(file: JobFile, names: Iterable[str]) -> dict[str, Any]:
    return {name: _read_dimension_hierarchy(file, name) for name in names}


def _read_dimension_hierarchy(file: JobFile, name: str) -> Any:
    """Return the hierarchy of a dimension, the digits of its levels, or None if all codes add up to the total."""
    entry = file.job.dimensions[name]
    if entry.digits is not None:
        return tuple(entry.digits)
    if entry.levels is not None and not isinstance(entry.hierarchy, str):
        path, encoding = file.resolve_path(str(file.job.data.file)), _get_records_encoding(file)
        return build_nested_hierarchy(path, entry.levels, total=entry.total, without=entry.missing, encoding=encoding)
    return None if entry.hierarchy is None else _read_named_hierarchy(file, entry.hierarchy, entry.total, entry.levels)


def _read_named_hierarchy(
    file: JobFile, given: Any, total: str | None, levels: Sequence[str] | None = None
) -> Hierarchy:
    """Return a hierarchy that the job contains or names by its file."""
    if isinstance(given, str):
        return Hierarchy.read(file.resolve_path(given), total=total, levels=levels)
    return Hierarchy.of(given, total=total)


def _read_table_hierarchies(file: JobFile, entry: TableSection) -> dict[str, Hierarchy]:
    """Return a table's own hierarchies, over the same leaves as the others'."""
    return {
        dimension: _read_named_hierarchy(
            file, given, entry.total.get(dimension) or file.job.dimensions[dimension].total
        )
        for dimension, given in entry.hierarchies.items()
    }


# ---------------------------------------------------------------- the tables of a publication


def _make_publication_parts(file: JobFile) -> list[Part]:
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
        sources.append(([TableSection(dimensions=list(job.dimensions))], _tabulate_template_parts))
    if made := [entry for entry in job.tables if entry.file is None]:
        sources.append((made, _tabulate_record_parts))
    sources += [([entry], partial(_read_ready_table, entry=entry)) for entry in job.tables if entry.file is not None]
    parts: list[Part] = []
    wrong: list[CellguardError] = []
    unread: set[str] = set()
    for entries, source in sources:
        try:
            parts += source(file)
        except CellguardError as error:
            wrong.append(error)
            unread.update(d for entry in entries for d in (*entry.dimensions, *entry.where))
    wrong += find_wrong_codes(parts, job, partial(_read_dimension_hierarchy, file), unread)
    parts = _add_periods(parts)
    if wrong:
        certain = [part for part in parts if _check_totals(part, file, unread)]
        raise PublicationError.of([*wrong, *find_misfits(certain, job)])
    for name, before in find_colliding_names([part.name for part in parts]):
        text = f"tables {before!r} and {name!r} would be written to one file, {make_file_name(name)}."
        raise InputError(text, hint="give one of them another name.")
    return parts


def _check_totals(part: Part, file: JobFile, unread: Collection[str]) -> bool:
    """Return whether the totals of a table are the publication's even if other tables could not be read.

    A table's own total ("Total_EAST") means a part of the country because another table shows the whole. Without that
    table it would be taken for the whole, and every comparison with it would be wrong.
    """
    for own, codes in zip(part.table.dimensions, part.table.codes, strict=True):
        d = part.dimension(own)
        if d in unread and d not in part.where:
            tree = _read_dimension_hierarchy(file, d)
            flat = tree is None or isinstance(tree, tuple)
            if codes[0] != ((file.job.dimensions[d].total or "Total") if flat else Hierarchy.of(tree).total):
                return False
    return True


def _read_ready_table(file: JobFile, entry: TableSection) -> list[Part]:
    """Read a ready table."""
    own = _read_table_hierarchies(file, entry)
    path = file.resolve_path(str(entry.file))
    return read_ready_parts(path, entry, file.job, lambda d: own.get(d) or _read_dimension_hierarchy(file, d))


def _tabulate_record_parts(file: JobFile) -> list[Part]:
    """Tabulate the records for all tables that are made from them."""
    entries = [entry for entry in file.job.tables if entry.file is None]
    asked = [
        AskedTable(
            name=entry.title, dimensions=tuple(entry.dimensions), where=entry.where, priority=entry.priority,
            indicators=tuple(entry.indicators), hierarchies=_read_table_hierarchies(file, entry),
        )
        for entry in entries
    ]  # fmt: skip
    used = {d for entry in entries for d in (*entry.dimensions, *entry.where)}
    by = _read_hierarchies(file, [name for name in file.job.dimensions if name in used])
    return tabulate_parts(
        _get_records_path(file), by, asked, _list_indicator_columns(file.job), **_record_options_of_job(file)
    )


def _tabulate_template_parts(file: JobFile) -> list[Part]:
    """Make the tables of a template from the records."""
    job = file.job
    path = file.resolve_path(str(job.data.template))
    template, wrong = Template.inspect(path, dimensions=list(job.dimensions), totals=_collect_totals(job))
    by = _read_hierarchies(file, job.dimensions)
    try:
        parts = tabulate_template(
            _get_records_path(file),
            by,
            template,
            _list_indicator_columns(job),
            **_record_options_of_job(file),
        )
    except CellguardError as error:
        raise PublicationError.of([*wrong, error]) from None
    PublicationError.refuse(wrong)
    return parts


def _list_indicator_columns(job: Job) -> dict[str, str | None]:
    """Return the column of each indicator; None counts records."""
    return {i.name: i.value for i in job.indicators} or {job.data.value or "count": job.data.value}


def _add_periods(parts: Sequence[Part]) -> list[Part]:
    """Add the period to the population of each table if the tables have different periods."""
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


def find_misfits(parts: Sequence[Part], job: Job) -> list[CellguardError]:
    """Return the contradictions between the tables that could be read, so that one run reports everything."""
    known = {part.indicator for part in parts}
    whole = [text for text in job.equations if known.issuperset(Equation.of(text).names)]
    try:
        if parts:
            Publication.of(parts, equations=whole, tolerance=job.tolerance)
    except CellguardError as error:
        return [error]
    return []
