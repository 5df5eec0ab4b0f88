"""The text of a proposed publication: what is known of files and dimensions, as a commented job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cellguard._io.toml import toml_key, toml_value

__all__ = ["Proposed", "ProposedDimension", "job_text"]


@dataclass(kw_only=True)
class Proposed:
    """A file with its columns, and what they were taken for."""

    path: Path
    codes: dict[str, list[str]]
    """Columns of codes -> the codes, in order of appearance."""
    figures: dict[str, Any]
    """Columns of numbers."""
    totals: dict[str, str] = field(default_factory=dict)
    """Column of codes -> the code of its total, where one is seen."""
    period: str | None = None
    value: list[str] = field(default_factory=list)
    count: str | None = None
    top: list[str] = field(default_factory=list)
    rows: int = 0


@dataclass(kw_only=True)
class ProposedDimension:
    """A dimension of the publication."""

    name: str
    columns: dict[int, str] = field(default_factory=dict)
    """Number of a table -> its column."""
    codes: dict[str, None] = field(default_factory=dict)
    total: str = "Total"
    lines: list[str] = field(default_factory=list)
    """What the job says of its hierarchy."""


def job_text(
    tables: Sequence[Proposed],
    dimensions: Sequence[ProposedDimension],
    folder: Path,
    open_: Sequence[str],
    remarks: str = "",
) -> str:
    """Return the text of the job."""
    out = [_HEAD]
    if open_:
        listed = ", ".join(toml_value(name) for name in dict.fromkeys(open_))
        out.append(
            "# This could not be told from the files. Look at it, then delete the next line: protect waits for that.\n"
            f"unconfirmed = [{listed}]\n"
        )
    if remarks:
        out.append(remarks)
    for dimension in dimensions:
        lines = [f"[dimensions.{toml_key(dimension.name)}]", *dimension.lines]
        if dimension.total != "Total":
            lines.append(f"total = {toml_value(dimension.total)}")
        out.append("\n".join(lines) + "\n")
    values = list(dict.fromkeys(value for table in tables for value in table.value))
    if len(values) > 1:
        out += [f"[[indicators]]\nname = {toml_value(value)}\nvalue = {toml_value(value)}\n" for value in values]
        out.append('# equations = ["turnover = domestic + exports"]    # goes above the first section\n')
    out += [_table_section(k, table, dimensions, folder, values) for k, table in enumerate(tables)]
    counted = all(table.count for table in tables)
    out.append(_RULES[counted, counted and all(table.top for table in tables)])
    out.append(_TAIL)
    return "\n".join(out)


def _table_section(
    k: int, table: Proposed, dimensions: Sequence[ProposedDimension], folder: Path, values: Sequence[str]
) -> str:
    mine = sorted((d for d in dimensions if k in d.columns), key=lambda d: list(table.codes).index(d.columns[k]))
    lines = [
        "[[tables]]",
        f"name = {toml_value(' by '.join(d.name for d in mine) + _part_of_name(k, table, mine))}",
        f"file = {toml_value(os.path.relpath(table.path, folder))}",
        f"dimensions = [{', '.join(toml_value(d.name) for d in mine)}]",
    ]
    renamed = {d.name: d.columns[k] for d in mine if d.columns[k] != d.name}
    if renamed:
        lines.append(f"columns = {{{', '.join(f'{toml_key(d)} = {toml_value(c)}' for d, c in renamed.items())}}}")
    totals = {d.name: table.totals.get(d.columns[k], "Total") for d in mine}
    other = {d.name: totals[d.name] for d in mine if totals[d.name] != d.total}
    if other:
        lines.append(f"total = {{{', '.join(f'{toml_key(d)} = {toml_value(c)}' for d, c in other.items())}}}")
    if len(values) > 1:
        lines.append(f"indicators = [{', '.join(toml_value(v) for v in table.value)}]")
    else:
        lines.append(f"value = {toml_value(table.value[0])}")
    if table.count:
        lines.append(f"count = {toml_value(table.count)}")
    if table.top:
        lines.append(f"top = [{', '.join(toml_value(c) for c in table.top)}]")
    lines.append("# priority = 10    # withheld last")
    return "\n".join(lines) + "\n"


def _part_of_name(k: int, table: Proposed, mine: Sequence[ProposedDimension]) -> str:
    """Return what tells a table from another with the same dimensions: its own total."""
    other = [table.totals[d.columns[k]] for d in mine if table.totals.get(d.columns[k], d.total) != d.total]
    return f" ({', '.join(other)})" if other else ""


_HEAD = """\
# A publication of several tables for cellguard. Look through it, then:   cellguard protect THIS-FILE --dry-run
#                                                                         cellguard protect THIS-FILE
# Lines that begin with # are remarks, or choices that are switched off.

name = "publication"    # names the files of the release
seed = 1    # the same seed gives the same release
# tolerance = 1e-6    # values of a cell that tables share may differ by this share, as rounding makes them
"""
_MINIMUM = """\
[[rules]]
rule = "min_frequency"    # fewer than n contributors
n = 3
percent = 10    # how far such a cell must stay uncertain, in per cent of its value
"""
_RULES: Mapping[tuple[bool, bool], str] = {
    (True, True): f"""\
[[rules]]
rule = "dominance"    # the n largest contributors hold more than k per cent
n = 1
k = 85

{_MINIMUM}""",
    (True, False): _MINIMUM,
    (False, False): """\
[[rules]]
rule = "manual"    # which cells are sensitive cannot be computed without contributors: name them
cells = []
""",
}
_TAIL = """\
# [[priorities]]    # cells that should stay whole, or must be published
# only = {DIMENSION = "Total"}
# priority = 10    # or publish = true; or published = "earlier.csv"

[method]
name = "suppress"    # or intervals, round, perturb, adjust

[limits]
time_limit_s = 120
# threads = 4    # clusters that share nothing are protected at the same time

[output]
folder = "publication-release"    # gets two folders: public, and internal (confidential)
formats = ["csv", "xlsx"]
"""
