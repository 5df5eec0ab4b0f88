"""Write the job of a planned publication: dimensions, indicators, equations and tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cellguard._io.files import write_text
from cellguard._io.toml import format_key, format_value
from cellguard.exceptions import InputError
from cellguard.jobs.table_list.plan import MergedTable, TablePlan, split_equation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["write_jobs"]


def write_jobs(plan: TablePlan, path: Path) -> list[Path]:
    """Write a job for each population and return the files; with several, each is named after its population."""
    populations: dict[str, list[MergedTable]] = {}
    for cluster in plan.clusters.values():
        for table in cluster:
            populations.setdefault(table.population, []).append(table)
    written = []
    for population in populations:
        name = (
            path if len(populations) == 1 else path.with_name(f"{path.stem}-{_make_file_name(population)}{path.suffix}")
        )
        if name.exists():
            raise InputError(f"{name}: the file already exists.", hint="name another file.")
        written.append(name)
    for name, (population, tables) in zip(written, populations.items(), strict=True):
        write_text(name, _format_job(plan, population, tables, name.parent))
    return written


def _make_file_name(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text) or "population"


def _format_job(plan: TablePlan, population: str, tables: Sequence[MergedTable], folder: Path) -> str:
    files = plan.listed.files
    dimensions = {name: key for table in tables for key, name in _choose_variables(tables, table).items()}
    indicators = list(dict.fromkeys(name for table in tables for name in table.indicators))
    equations = [one for one in plan.equations if set(split_equation(one)) <= set(indicators)]
    open_ = ["data.file"]
    sections = []
    for name, key in dimensions.items():
        others = {variable: None for table in tables for variable in table.dimensions.get(key, ()) if variable != name}
        lines = [f"[dimensions.{format_key(name)}]"]
        if key in files:
            lines.append(f"hierarchy = {format_value(os.path.relpath(files[key], folder))}")
        elif key != name:
            lines.append(f'# hierarchy = "{key}.hrc"    # no such file was found')
        if others:
            lines.append(f"# the list has {', '.join(others)} of the same hierarchy too: the finest is the dimension")
        if others or (key not in files and key != name):
            open_.append(f"dimensions.{name}")
        sections.append("\n".join(lines) + "\n")
    if len(indicators) > 1:
        sections += [f"[[indicators]]\nname = {format_value(x)}\nvalue = {format_value(x)}\n" for x in indicators]
    sections += [_format_table(table, _choose_variables(tables, table), len(indicators) > 1) for table in tables]
    head = [
        _HEAD.format(name=format_value(_make_file_name(population)), population=population or "the population"),
        f"unconfirmed = {format_value(open_)}",
    ]
    if equations:
        head.append(f"equations = {format_value(equations)}")
    elif any(table.indicator not in table.indicators for table in tables):
        head.append('# equations = ["total = part + part"]    # of the tree of indicators')
    value = f"value = {format_value(indicators[0])}\n" if len(indicators) == 1 else ""
    data = f'[data]\nfile = "records.csv"    # the records of {population or "the population"}\n{value}'
    return "\n".join([*head, "", data, *sections, _TAIL])


def _choose_variables(tables: Sequence[MergedTable], table: MergedTable) -> dict[str, str]:
    """Return the variable of each hierarchy: the last that the list names for tables of the same cluster."""
    own = [other for other in tables if other.indicator == table.indicator]
    return {key: [name for other in own for name in other.dimensions.get(key, ())][-1] for key in table.dimensions}


def _format_table(table: MergedTable, variables: Mapping[str, str], several: bool) -> str:
    lines = ["[[tables]]", f"name = {format_value(table.name)}"]
    lines.append(f"dimensions = {format_value(list(variables.values()))}")
    if several:
        lines.append(f"indicators = {format_value(list(table.indicators))}")
    return "\n".join(lines) + "\n"


_HEAD = """\
# The tables of {population} that are protected together. Look through it, then:   cellguard protect THIS-FILE --dry-run

name = {name}"""
_TAIL = """\
[[rules]]
rule = "min_frequency"    # fewer than n contributors
n = 3

[method]
name = "suppress"

[output]
folder = "publication-release"
"""
