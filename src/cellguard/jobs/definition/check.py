"""Checks of a job beyond its shape: files exist, columns are present, choices fit together."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cellguard._attack_options import list_attacked_methods
from cellguard._io.facts import ReadOnce
from cellguard.exceptions import CellguardError, suggest_names
from cellguard.jobs.definition.model import Job, TableSection
from cellguard.jobs.definition.places import Where
from cellguard.jobs.definition.rule_sections import AprioriSection, ManualSection, RuleSection
from cellguard.methods.keys import refuse_seed_as_secret
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.key import Key
from cellguard.model.linked.publication import Equation
from cellguard.release.formats.registry import FORMATS
from cellguard.release.formats.sheets import find_colliding_names, make_file_name

__all__ = ["Mistake", "check_job", "detect_encoding", "list_data_files"]


class Mistake(NamedTuple):
    """A mistake in a job."""

    path: Where
    text: str
    hint: str | None = None


def check_job(job: Job, folder: Path, facts: ReadOnce, *, without: Collection[str] = ()) -> list[Mistake]:
    """Return every mistake of a job whose shape is right.

    Parameters
    ----------
    folder
        The folder to which relative file names refer.
    facts
        What is already known about files; whatever is read is added.
    without
        Sections that were cut out because their shape was wrong; checks that depend on them are skipped.
    """
    parts: dict[tuple[str, ...], Iterator[Mistake]] = {
        ("data",): _check_data_section(job, folder, facts),
        ("dimensions",): _check_dimension_sections(job, folder, facts),
        ("tables", "dimensions"): _check_table_sections(job, folder),
        ("rules", "dimensions"): _check_rule_sections(job, folder),
        ("method",): _check_method_section(job, folder),
        ("attackers", "dimensions"): _check_attacker_sections(job),
        ("attack", "method"): _check_attack_section(job),
        ("levels",): _check_levels_section(job),
        ("output",): _check_output_section(job, folder),
    }  # a section, and what it depends on -> its mistakes
    return [mistake for needed, found in parts.items() if not set(needed) & set(without) for mistake in found]


def list_data_files(job: Job, folder: Path) -> list[Path]:
    """Return the data files, sorted by name."""
    name = job.data.file if job.data.file is not None else job.data.table
    if name is None:
        return []
    if any(sign in name for sign in "*?["):
        return sorted(Path(found) for found in glob.glob(str(folder / name), recursive=True))  # noqa: PTH207
    return [folder / name] if (folder / name).is_file() else []


def detect_encoding(job: Job, files: list[Path], facts: ReadOnce) -> str | None:
    """Return the encoding of data files: given by the job, or detected; None if they are not text."""
    text = files and not files[0].name.lower().endswith((".parquet", ".pq", ".xlsx"))
    return job.data.encoding or (facts.get_encoding(files) if text else None)


def _list_columns(job: Job, files: list[Path], facts: ReadOnce) -> list[str]:
    """Return the names of the columns of the records."""
    from cellguard.tabulation.engines.duck import DuckRecords

    records = DuckRecords.from_files(files[0], encoding=detect_encoding(job, files[:1], facts), threads=1)
    try:
        return list(records.list_columns())
    finally:
        records.close()


def _group_columns_by_role(job: Job) -> dict[str, str]:
    names = ("value", "weight", "holding", "shadow", "waiver", "request", "cost")
    return {name: column for name in names if (column := getattr(job.data, name)) is not None}


def _check_data_section(job: Job, folder: Path, facts: ReadOnce) -> Iterator[Mistake]:
    data = job.data
    if data.file is None and data.table is None and job.tables and all(entry.file for entry in job.tables):
        return  # a publication of ready tables
    if (data.file is None) == (data.table is None):
        yield Mistake(("data",), "either file (records) or table (cells) is needed, not both.")
        return
    key, name = ("file", data.file) if data.file is not None else ("table", data.table)
    files = list_data_files(job, folder)
    if not files:
        yield Mistake(("data", key), f"{name}: no such file.", "names are relative to the folder of the job.")
        return
    if data.table is not None:
        for role in _group_columns_by_role(job):
            yield Mistake(("data", role), "is for records; a table is already added up.", "leave it out, or give file.")
        if "known_zeros" in data.model_fields_set:
            yield Mistake(("data", "known_zeros"), "is said in the description of the table.", "leave it out.")
        return
    if not str(files[0]).lower().endswith((".csv", ".csv.gz", ".parquet", ".xlsx", ".txt", ".tsv", ".asc")):
        yield Mistake(("data", "file"), f"{name}: no known kind of data file.", "CSV, Parquet and Excel are.")
        return
    try:
        known = _list_columns(job, files, facts)
    except CellguardError as error:
        yield Mistake(("data", "file"), error.message, error.hint)
        return
    if data.standalone and data.holding is None:
        text, hint = "is about records without a holding.", "say data.holding, or leave it out."
        yield Mistake(("data", "standalone"), text, hint)
    wanted: dict[Where, str] = {("data", role): column for role, column in _group_columns_by_role(job).items()}
    from_records = {d for entry in job.tables if entry.file is None for d in entry.dimensions}
    wanted |= {("dimensions", c): c for c in job.dimensions if not job.tables or c in from_records}
    wanted |= {("indicators", k, "value"): i.value for k, i in enumerate(job.indicators) if i.value and from_records}
    wanted |= {("tables", k, "where", c): c for k, e in enumerate(job.tables) if e.file is None for c in e.where}
    for path, column in wanted.items():
        if column not in known:
            hint = suggest_names(column, known) or f"the columns are {', '.join(known[:12])}."
            yield Mistake(path, f"the data have no column {column!r}.", hint)


def _check_dimension_sections(job: Job, folder: Path, facts: ReadOnce) -> Iterator[Mistake]:
    if job.data.table is not None:
        if job.dimensions:
            yield Mistake(("dimensions",), "the table brings its own dimensions.", "leave this section out.")
        return
    if not job.dimensions:
        yield Mistake(("dimensions",), "at least one dimension is needed.", "as in [dimensions.region].")
    roles = _group_columns_by_role(job)
    for name, entry in job.dimensions.items():
        for role in ("value", "weight", "shadow", "cost"):
            if roles.get(role) == name:
                yield Mistake(("dimensions", name), f"is the {role} too; a column cannot be both.")
        if entry.hierarchy is not None and entry.digits is not None:
            yield Mistake(("dimensions", name, "digits"), "hierarchy is given too.", "leave one of them out.")
        yield from _check_levels_of_dimension_section(job, folder, name, facts)
        if entry.hierarchy is not None:
            where = ("dimensions", name, "hierarchy")
            yield from _check_hierarchy_in_job(where, folder, entry.hierarchy, entry.total, entry.levels)


def _check_levels_of_dimension_section(job: Job, folder: Path, name: str, facts: ReadOnce) -> Iterator[Mistake]:
    """Check that levels are columns of the data, with the dimension last, or columns of the hierarchy file."""
    entry, where = job.dimensions[name], ("dimensions", name, "levels")
    if entry.levels is None or isinstance(entry.hierarchy, str):
        return
    if entry.digits is not None or entry.hierarchy is not None:
        yield Mistake(where, "the codes have a hierarchy already.", "leave one of them out.")
    elif job.data.file is None:
        yield Mistake(where, "are columns of records, or of a hierarchy's file; neither is there.", "name the file.")
    elif entry.levels[-1] != name:
        yield Mistake(where, f"the last of them must be the dimension itself, {name!r}.", "from coarse to fine.")
    else:
        files, known = list_data_files(job, folder), None
        with suppress(CellguardError):  # unreadable records are reported elsewhere
            known = _list_columns(job, files, facts) if files else None
        for column in entry.levels[:-1]:
            if known is not None and column not in known:
                yield Mistake(where, f"the data have no column {column!r}.", suggest_names(column, known))
            if column in job.dimensions:
                text = f"{column!r} is a dimension too; crossed with a finer one it says nothing new."
                yield Mistake(where, text, f"leave out [dimensions.{column}].")


def _check_hierarchy_in_job(
    where: Where, folder: Path, given: Any, total: str | None, levels: Sequence[str] | None = None
) -> Iterator[Mistake]:
    """Check that a hierarchy is an existing file or a tree, and is valid."""
    if not isinstance(given, str):
        yield from _record_mistake(where, partial(Hierarchy.of, given))
    elif (path := folder / given).is_file():
        yield from _record_mistake(where, partial(Hierarchy.read, path, total=total, levels=levels))
    else:
        yield Mistake(where, f"{path.name}: no such file.", "names are relative to the folder of the job.")


def _record_mistake(where: Where, action: Callable[[], Any]) -> Iterator[Mistake]:
    """Turn a cellguard error raised in the block into a mistake."""
    try:
        action()
    except CellguardError as error:
        yield Mistake(where, error.message, error.hint)


def _check_table_sections(job: Job, folder: Path) -> Iterator[Mistake]:
    yield from _check_publication_of_job(job, folder)
    if job.data.table is not None and job.tables:
        yield Mistake(("tables",), "the table is already made.", "leave this section out.")
        return
    yield from _check_output_files_of_job(job)
    used: set[str] = set()
    for k, entry in enumerate(job.tables):
        used.update(entry.dimensions, entry.where)
        yield from _check_names_in_job(("tables", k, "dimensions"), entry.dimensions, job.dimensions, "dimension")
        if len(set(entry.dimensions)) != len(entry.dimensions):
            yield Mistake(("tables", k, "dimensions"), "a dimension is named twice.")
    for name in job.dimensions:
        if job.tables and name not in used:
            yield Mistake(("dimensions", name), "is in none of the tables.", "name it in one, or leave it out.")


def _check_publication_of_job(job: Job, folder: Path) -> Iterator[Mistake]:
    """Check linked tables and indicators: files exist, names are known."""
    yield from _check_file_named_in_job(("data", "template"), folder, job.data.template)
    if job.data.template is not None and job.data.file is None:
        yield Mistake(("data", "template"), "lists cells that are made from records.", "say data.file.")
    names = [i.name for i in job.indicators]
    tables = [entry.title for entry in job.tables]
    for k, entry in enumerate(job.tables):
        yield from _check_file_named_in_job(("tables", k, "file"), folder, entry.file)
        if tables.count(tables[k]) > 1:
            yield Mistake(("tables", k, "name"), f"two tables are called {tables[k]!r}.", "give each a name.")
        yield from _check_names_in_job(("tables", k, "indicators"), entry.indicators, names, "indicator")
        yield from _check_trees_of_table_section(job, folder, k)
        yield from _check_table_section_of_records(("tables", k), entry)
    yield from _check_priorities(job, folder, tables)
    for k, rule in enumerate(job.rules):
        yield from _check_names_in_job(("rules", k, "indicators"), rule.indicators, names, "indicator")
        yield from _check_names_in_job(("rules", k, "tables"), rule.tables, tables, "table")
    for k, indicator in enumerate(job.indicators):
        if indicator.shadow_of is not None:
            yield from _check_names_in_job(("indicators", k, "shadow_of"), [indicator.shadow_of], names, "indicator")
    for k, text in enumerate(job.equations):
        wrong = list(_record_mistake(("equations", k), partial(Equation.of, text)))
        yield from wrong or _check_names_in_job(("equations", k), Equation.of(text).names, names, "indicator")


def _check_table_section_of_records(where: Where, entry: TableSection) -> Iterator[Mistake]:
    """Check that a table made from the records uses columns that they have."""
    if entry.file is not None:
        return
    for key in ("value", "sheet", "count", "top"):
        if getattr(entry, key):
            yield Mistake((*where, key), "is for a table that is already added up.", "say its file, or leave it out.")
    for dimension, column in entry.columns.items():
        if column != dimension:
            text = f"the table is made from records, which have {dimension!r} in the column of this name."
            yield Mistake((*where, "columns", dimension), text, f"leave it out, or describe [dimensions.{column}].")


def _check_trees_of_table_section(job: Job, folder: Path, k: int) -> Iterator[Mistake]:
    """Check the hierarchies of one table: they belong to its dimensions and can be read."""
    entry, where = job.tables[k], ("tables", k, "hierarchies")
    for name, given in entry.hierarchies.items():
        if name not in entry.dimensions:
            yield Mistake(where, f"{name!r} is not a dimension of this table.", suggest_names(name, entry.dimensions))
        else:
            yield from _check_hierarchy_in_job(where, folder, given, entry.total.get(name))


def _check_output_files_of_job(job: Job) -> Iterator[Mistake]:
    """Check that each table gets its own output file: names that differ only in signs or case would share one."""
    first: dict[str, int] = {}
    for k, entry in enumerate(job.tables):
        shown = entry.indicators or [i.name for i in job.indicators]
        for title in [entry.title, *(f"{entry.title} {i}" for i in shown)] if len(shown) > 1 else [entry.title]:
            first.setdefault(title, k)
    whole = [job.name] if len(job.tables) > 1 and not job.is_publication else []
    for title, before in find_colliding_names([*whole, *first]):
        text = f"{title!r} would be written to the file of {before!r}, {make_file_name(title)}.csv."
        yield Mistake(("tables", first[title], "name"), text, "give it another name.")


def _check_priorities(job: Job, folder: Path, tables: Sequence[str]) -> Iterator[Mistake]:
    """Check that priorities name existing tables, indicators and codes, and each make one choice."""
    for k, entry in enumerate(job.priorities):
        said = [entry.priority is not None, entry.publish, entry.published is not None]
        if sum(said) != 1:
            yield Mistake(("priorities", k), "one of priority, publish and published is needed.")
        yield from _check_file_named_in_job(("priorities", k, "published"), folder, entry.published)
        yield from _check_names_in_job(("priorities", k, "tables"), entry.tables, tables, "table")
        names = [i.name for i in job.indicators]
        yield from _check_names_in_job(("priorities", k, "indicators"), entry.indicators, names, "indicator")
        if job.data.table is None:
            yield from _check_names_in_job(("priorities", k, "only"), entry.only, job.dimensions, "dimension")


def _check_file_named_in_job(where: Where, folder: Path, name: str | None) -> Iterator[Mistake]:
    if name is not None and not (folder / name).is_file():
        yield Mistake(where, f"{name}: no such file.")


def _check_names_in_job(where: Where, used: Iterable[str], known: Collection[str], what: str) -> Iterator[Mistake]:
    """Report unknown names, together with the known ones."""
    for name in used:
        if name not in known:
            hint = suggest_names(name, known) or (f"known are {', '.join(known)}." if known else None)
            yield Mistake(where, f"there is no {what} {name!r}.", hint)


def _check_rule_sections(job: Job, folder: Path) -> Iterator[Mistake]:
    if not job.rules and job.data.table is None:
        yield Mistake(("rules",), "at least one rule is needed: nothing would be sensitive.", "as in [[rules]].")
    for k, entry in enumerate(job.rules):
        if isinstance(entry, AprioriSection):
            yield from _check_file_named_in_job(("rules", k, "file"), folder, entry.file)
        yield from _check_dimensions_of_rule_section(job, k, entry)
        if entry.rule == "request" and job.data.request is None and job.data.table is None:
            yield Mistake(("rules", k), "the request rule needs to know who asked.", "say data.request.")
        yield from _record_mistake(("rules", k), partial(entry.build_plain_rule, None))


def _check_dimensions_of_rule_section(job: Job, k: int, entry: RuleSection) -> Iterator[Mistake]:
    if job.data.table is not None:
        return
    named = [("only", d) for d in entry.only] + [("excluding", d) for d in entry.excluding]
    named += [("cells", d) for cell in (entry.cells if isinstance(entry, ManualSection) else []) for d in cell]
    for key, name in dict.fromkeys(named):
        yield from _check_names_in_job(("rules", k, key), [name], job.dimensions, "dimension")


def _check_method_section(job: Job, folder: Path) -> Iterator[Mistake]:
    yield from _check_secret_of_method_section(job, folder)
    resist = job.method.get_asked("resist") is not None
    if resist and (job.method.get_asked("search") is not None or job.method.get_asked("rounds") is not None):
        yield Mistake(("method", "resist"), "draws its patterns; nothing is searched.", "leave out search and rounds.")
    yield from _check_matching_in_job(job, ("method", "resist"), resist)
    if job.attackers and not job.method.method.by_ranges:
        text = "an adjusted table is attacked by scenarios, not by respondents."
        yield Mistake(("method", "name"), text, "leave out [[attackers]].")
    yield from _check_keep_in_method_section(job)


def _check_secret_of_method_section(job: Job, folder: Path) -> Iterator[Mistake]:
    """Check that no seed is used as a secret, and that the key is valid."""
    given = {"seed": job.seed, **job.method.collect_options()}
    yield from _record_mistake(("seed",), partial(refuse_seed_as_secret, job.method.method, given))
    if job.method.key is not None:
        yield from _record_mistake(("method", "key"), partial(Key.read, folder / job.method.key))


def _check_keep_in_method_section(job: Job) -> Iterator[Mistake]:
    """Check that the dimensions in `keep` exist; those of a ready table are checked when it is read."""
    if job.data.table is not None or not job.dimensions:
        return
    for k, entry in enumerate(job.method.get_asked("keep") or []):
        names = [entry] if isinstance(entry, str) else list(entry)
        for name in names:
            if name not in job.dimensions and names != ["total"]:
                hint = suggest_names(name, ["total", *job.dimensions])
                yield Mistake(("method", "keep", k), f"there is no dimension {name!r}.", hint)


def _check_attacker_sections(job: Job) -> Iterator[Mistake]:
    names: set[str] = set()
    for k, entry in enumerate(job.attackers):
        if entry.name in names or entry.name == "external":
            text, hint = f"{entry.name!r} is taken.", "give each attacker a different name."
            yield Mistake(("attackers", k, "name"), text, hint)
        names.add(entry.name)
        for known in entry.knows:
            cell, amount = known.get("cell"), known.get("contribution")
            number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if set(known) != {"cell", "contribution"} or not isinstance(cell, dict) or not number:
                form = '{cell = {region = "N1"}, contribution = 40.0}'
                yield Mistake(("attackers", k, "knows"), "a cell and a contribution are needed.", form)
                continue
            if job.data.table is None:
                yield from _check_names_in_job(("attackers", k, "knows"), cell, job.dimensions, "dimension")


def _check_attack_section(job: Job) -> Iterator[Mistake]:
    if job.attack is None:
        return
    scenario, method = job.attack.scenario, job.method.name
    fits = list_attacked_methods(scenario)
    if method not in fits:
        names = " and ".join(fits) if len(fits) < 3 else ", ".join(fits[:-1]) + f" and {fits[-1]}"
        yield Mistake(("attack", "scenario"), f"{scenario} attacks the results of {names}, not of {method}.")
        return
    for key in job.attack.list_unused(method):
        yield Mistake(("attack", key), f"is no option of {scenario} against {method}.", "leave it out.")
    yield from _check_matching_in_job(job, ("attack", "scenario"), scenario in ("matching", "weighing"))


def _check_matching_in_job(job: Job, where: tuple[str, ...], asked: bool) -> Iterator[Mistake]:
    """Check that the matching attack, and the defence against it, are used for counts with a width (minami2019)."""
    if not asked or job.data.table is not None:  # a ready table may contain counts: it is checked when it is read
        return
    if job.data.value is not None or job.data.weight is not None:
        yield Mistake(where, "matching is about tables of counts.", "leave out data.value and data.weight.")
    if job.levels.width is None:
        text = "matching needs to know how wide the range of a small count must be."
        yield Mistake(where, text, "say levels.width = 8.")
    if [entry.rule for entry in job.rules] != ["min_frequency"]:
        yield Mistake(where, "matching is about counts below a minimum.", "give one rule, min_frequency.")


def _check_levels_section(job: Job) -> Iterator[Mistake]:
    levels = job.levels
    if (levels.lower is None) != (levels.upper is None):
        yield Mistake(("levels",), "lower and upper are given together or not at all.")
    if levels.upper is not None and "lower_ratio" in levels.model_fields_set:
        text = "changes the rules' levels, which lower and upper replace."
        yield Mistake(("levels", "lower_ratio"), text, "leave one out.")
    if levels.width is not None and levels.model_fields_set - {"width", "smallest_width"}:
        yield Mistake(("levels", "width"), "stands alone: it replaces all other levels.", "leave the others out.")
    if levels.sliding is not None and levels.upper is None:
        yield Mistake(("levels", "sliding"), "needs lower and upper too.", "they may be 0.")


def _check_output_section(job: Job, folder: Path) -> Iterator[Mistake]:
    if not job.output.formats:
        yield Mistake(("output", "formats"), "at least one format is needed.")
    if len(set(job.output.formats)) != len(job.output.formats):
        yield Mistake(("output", "formats"), "a format is named twice.")
    for name in job.output.formats:
        if FORMATS[name].one_number and not job.method.method.one_number:
            text = f"{name} holds one number for each cell, intervals have two."
            yield Mistake(("output", "formats"), text, "csv, parquet and xlsx hold intervals.")
        if FORMATS[name].needs_dimensions and job.data.table is not None and ".jj" in job.data.table.lower():
            yield Mistake(("output", "formats"), f"{name} needs dimensions, which a JJ table does not have.")
    yield from _check_file_named_in_job(("output", "layout"), folder, job.output.layout)
    if job.output.layout is not None and not job.method.method.one_number:
        yield Mistake(("output", "layout"), "has one place for each cell, intervals have two numbers.")
    path = folder / job.output.folder
    if path.exists() and not path.is_dir():
        yield Mistake(("output", "folder"), f"{job.output.folder}: is a file.", "name another folder.")
    if path.resolve() == folder.resolve():
        yield Mistake(("output", "folder"), "is the folder of the job itself.", "name a folder of its own.")
