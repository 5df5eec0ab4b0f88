"""Write a proposed publication, with its files and dimensions, as a commented job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cellguard._io.toml import format_key, format_value
from cellguard.jobs.proposal.records import MINIMUM

__all__ = ["Proposed", "ProposedDimension", "format_job"]


@dataclass(kw_only=True)
class Proposed:
    """A file with its columns and their guessed roles."""

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
    """Lines of the job that describe its hierarchy."""


def format_job(
    tables: Sequence[Proposed],
    dimensions: Sequence[ProposedDimension],
    folder: Path,
    open_: Sequence[str],
    remarks: str = "",
) -> str:
    """Return the text of the job."""
    out = [_HEAD]
    if open_:
        out.append(
            "# The files do not show this. Check it, then delete the next line: protect waits for that.\n"
            f"unconfirmed = {format_value([*dict.fromkeys(open_)])}\n"
        )
    if remarks:
        out.append(remarks)
    for dimension in dimensions:
        lines = [f"[dimensions.{format_key(dimension.name)}]", *dimension.lines]
        if dimension.total != "Total":
            lines.append(f"total = {format_value(dimension.total)}")
        out.append("\n".join(lines) + "\n")
    values = list(dict.fromkeys(value for table in tables for value in table.value))
    if len(values) > 1:
        out += [f"[[indicators]]\nname = {format_value(value)}\nvalue = {format_value(value)}\n" for value in values]
        out.append('# equations = ["turnover = domestic + exports"]    # goes above the first section\n')
    out += [_format_table_section(k, table, dimensions, folder, values) for k, table in enumerate(tables)]
    counted = all(table.count for table in tables)
    out.append(_RULES[counted, counted and all(table.top for table in tables)])
    out.append(_TAIL)
    return "\n".join(out)


def _format_table_section(
    k: int, table: Proposed, dimensions: Sequence[ProposedDimension], folder: Path, values: Sequence[str]
) -> str:
    mine = sorted((d for d in dimensions if k in d.columns), key=lambda d: list(table.codes).index(d.columns[k]))
    totals = {d.name: table.totals.get(d.columns[k], "Total") for d in mine}
    # tables with the same dimensions differ by their own totals
    own = [table.totals[d.columns[k]] for d in mine if table.totals.get(d.columns[k], d.total) != d.total]
    section = {
        "name": " by ".join(d.name for d in mine) + (f" ({', '.join(own)})" if own else ""),
        "file": os.path.relpath(table.path, folder),
        "dimensions": [d.name for d in mine],
        "columns": {d.name: d.columns[k] for d in mine if d.columns[k] != d.name},
        "total": {d.name: totals[d.name] for d in mine if totals[d.name] != d.total},
        **({"indicators": table.value} if len(values) > 1 else {"value": table.value[0]}),
        "count": table.count,
        "top": table.top,
    }
    lines = [f"{key} = {format_value(value)}" for key, value in section.items() if value]
    return "\n".join(["[[tables]]", *lines, "# priority = 10    # withheld last", ""])


_HEAD = """\
# A publication of several tables for cellguard. Look through it, then:   cellguard protect THIS-FILE --dry-run
#                                                                         cellguard protect THIS-FILE
# Lines that begin with # are remarks, or choices that are switched off.

name = "publication"    # names the files of the release
# tolerance = 1e-6    # values of a cell that tables share may differ by this share, as rounding makes them
"""
_RULES: Mapping[tuple[bool, bool], str] = {
    (True, True): f"""\
[[rules]]
rule = "dominance"    # the n largest contributors hold more than k per cent
n = 1
k = 85

{MINIMUM}""",
    (True, False): MINIMUM,
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
