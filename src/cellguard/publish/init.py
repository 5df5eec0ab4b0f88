"""A job for somebody's own data: look at the columns, guess their parts, write a file full of explanations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cellguard._io.toml import toml_key, toml_value
from cellguard.exceptions import InputError
from cellguard.publish.columns import Column, columns_to_guess_from
from cellguard.publish.guess import DimensionGuess, Guess, guess
from cellguard.publish.init_ready import (
    Ready,
    ReadyDimension,
    guess_hierarchy_beside,
    guess_ready_table,
    guessed_as_ready_table,
)

__all__ = ["MINIMUM", "Draft", "draft_job"]

_MAX_CELLS = 5000
_RECORDS_PER_CELL = 5
_MAX_DIMENSIONS = 8


class Draft(NamedTuple):
    """A job for a data file."""

    text: str
    """The job, with its explanations."""
    told: tuple[str, ...]
    """What was guessed and why, a line for each column."""
    unconfirmed: tuple[str, ...]
    """Guesses that somebody must confirm before anything is published."""


def draft_job(path: Path, folder: Path) -> Draft:
    """Return a commented job for a data file, to be saved in a folder."""
    columns, rows = columns_to_guess_from(path)
    found = guess(columns)
    if (found.added_up and not found.holding) or guessed_as_ready_table(columns):
        return _draft_of_ready_table(path, folder, columns)
    if not found.dimensions:  # only respondents could be tabulated
        reasons = "".join(f"\n  {line}" for line in _lines_about_guesses(found.why))
        raise InputError(
            f"{path}: no column looks like a dimension (codes that records share).{reasons}",
            hint="a table needs at least one column of codes, such as region or activity.",
        )
    active = _dimensions_of_drafted_table(found.dimensions, rows)
    if all(d.risky for d in found.dimensions):
        found.unconfirmed.append("dimensions")
    why = {c.name: _reason_of_guess(found, c, active) for c in columns}
    twice = _duplicates_told_in_draft(found, columns)
    about = _columns_told_in_draft(columns, why) + "".join(f"\n# {line}" for line in twice)
    parts = [_head_of_job(path, found.unconfirmed)]
    parts += [_DATA.format(file=toml_value(os.path.relpath(path, folder)), about=about), _data_section(found, columns)]
    parts += [_dimension_section(d, path, folder, active=d in active) for d in found.dimensions[:_MAX_DIMENSIONS]]
    rules = f"{_P_PERCENT}\n{MINIMUM}\n{_DOMINANCE}" if found.value else _COUNTS
    parts.append(f"{_SEVERAL}\n{rules}\n{_rest_of_job(path)}")
    return Draft("\n".join(parts), (*_lines_about_guesses(why), *twice), tuple(found.unconfirmed))


def _lines_about_guesses(why: Mapping[str, str]) -> list[str]:
    return [f"{name}: {reason}" for name, reason in why.items()]


def _columns_told_in_draft(columns: Sequence[Column], why: Mapping[str, str]) -> str:
    return "\n".join(f"#   {c.name}: {_guessed_column_in_words(c)}\n#     {why[c.name]}" for c in columns)


def _head_of_job(path: Path, unconfirmed: Sequence[str]) -> str:
    waits = _WAITS.format(listed=toml_value(unconfirmed)) if unconfirmed else ""
    return _HEAD.format(name=_proposed_release_name(path), unconfirmed=waits)


def _rest_of_job(path: Path) -> str:
    return _REST.format(folder=toml_value(f"{_proposed_release_name(path)}-release"))


_ACCIDENT = 0.05
"""Where a larger share of records stands twice, records are alike by nature."""


def _duplicates_told_in_draft(found: Guess, columns: Sequence[Column]) -> tuple[str, ...]:
    """Tell records that are the same as another in every column, where the columns would tell records apart."""
    told_apart = [c for c in columns if c.distinct > _SAME * c.filled]
    if not told_apart or not found.value:
        return ()
    n = len(columns[0].index)
    again = n - len(np.unique(np.column_stack([c.index for c in columns]), axis=0))
    if not 0 < again <= max(1, _ACCIDENT * n):
        return ()
    are = "record is" if again == 1 else "records are"
    return (f"{again:,} {are} the same as another one in every column: counted as often as listed.",)


_SAME = 0.5
"""A column with more different entries than this share of the records tells them apart."""


def _proposed_release_name(path: Path) -> str:
    """Return a name for the release: that of the file, without what a name may not hold."""
    stem = path.name.lower()
    for ending in (".gz", ".csv", ".parquet", ".xlsx"):
        stem = stem.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in path.name[: len(stem)]).strip("-._") or "table"


def _draft_of_ready_table(path: Path, folder: Path, columns: Sequence[Column]) -> Draft:
    """Return a job for a table that is already added up."""
    found = guess_ready_table(path, columns)
    told = _lines_about_guesses({c.name: found.why[c.name] for c in columns})
    total = {d.name: d.total for d in found.dimensions if d.total}
    lines = ["[[tables]]", "# Columns found, and what they were taken for:", _columns_told_in_draft(columns, found.why)]
    lines += [f"name = {toml_value(path.name.partition('.')[0])}    # names its files"]
    lines += [f"file = {toml_value(os.path.relpath(path, folder))}"]
    lines += [f"dimensions = {toml_value([d.name for d in found.dimensions])}", f"value = {toml_value(found.value)}"]
    lines += [f"total = {toml_value(total)}    # how the file calls the totals"] if total else []
    count = f"count = {toml_value(found.count)}" if found.count else '# count = "..."'
    top = f"top = {toml_value(found.top)}" if found.top else '# top = ["...", "..."]'
    lines += [f"{count}    # numbers of contributors", f"{top}    # largest contributions, the largest first"]
    if found.cells > found.rows:
        missing = f"{found.cells - found.rows:,} of {found.cells:,} combinations of codes have no row:"
        lines.append(f"# {missing} no contributors, as everybody knows.")
        told.append(f"{missing} they count as empty.")
    lines += ["", *(_dimension_section_of_ready_table(d, folder) for d in found.dimensions)]
    text = "\n".join(
        [_head_of_job(path, found.unconfirmed), *lines, *_rule_sections_of_ready_table(found), "", _rest_of_job(path)]
    )
    return Draft(text, tuple(told), found.unconfirmed)


def _dimension_section_of_ready_table(dimension: ReadyDimension, folder: Path) -> str:
    line = f"# {_ADD_UP}"
    if dimension.hierarchy is not None:
        line = f"hierarchy = {toml_value(os.path.relpath(dimension.hierarchy, folder))}"
    return f"[dimensions.{toml_key(dimension.name)}]\n{line}\n"


def _rule_sections_of_ready_table(found: Ready) -> list[str]:
    """Return the rules that a table can answer: by its contributions and its numbers of contributors."""
    out = []
    if found.top:
        out.append(_P_PERCENT if len(found.top) > 1 else _LARGEST)
    if found.count:
        out.append(_COUNTS if found.count == found.value else MINIMUM)
    return out or [_BY_HAND]


def _dimensions_of_drafted_table(dims: Sequence[DimensionGuess], rows: int) -> list[DimensionGuess]:
    """Return the dimensions of a first table: three, no more cells than records can fill, nothing risky."""
    chosen: list[DimensionGuess] = []
    most = min(_MAX_CELLS, max(rows / _RECORDS_PER_CELL, 60))
    cells = 1
    for d in dims:
        if (d.unlikely and chosen) or len(chosen) == 3:
            break
        if not chosen or cells * d.cells <= most:
            cells *= d.cells
            chosen.append(d)
    return chosen


def _reason_of_guess(found: Guess, column: Column, active: Sequence[DimensionGuess]) -> str:
    why = found.why.get(column.name, "left alone")
    if why.startswith("dimension") and not any(d.column.name == column.name for d in active):
        return f"{why} (switched off)"
    return why


def _guessed_column_in_words(column: Column) -> str:
    kind = ("whole numbers" if column.whole else "numbers") if column.numeric else "codes or text"
    kind = "days" if column.dates else "digits with leading zeros" if column.zeros else kind
    return f"{kind}, {column.distinct:,} different" + (f", {column.gaps:,} records without" if column.gaps else "")


def _data_section(found: Guess, columns: Sequence[Column]) -> str:
    lines = []
    for role, about in _ROLES.items():
        column = getattr(found, role)
        lines.append(f"{role} = {toml_value(column)}    # {about}" if column else f'# {role} = "..."    # {about}')
    lines.append(_decimals_line_of_job(found, columns))
    lines.append(f'{"" if found.comma else "# "}decimal = ","    # decimal sign of numbers in text files')
    for role, line in _GAPS.items():
        gaps = next((c.gaps for c in columns if c.name == getattr(found, role)), 0)
        lines.append(f"{line}: {gaps:,} of those looked at" if gaps else f"# {line}")
    return "\n".join([*lines, ""])


_ROLES = {
    "value": "column to add up; left out, records are counted",
    "holding": "records of one holding count as one contributor",
    "weight": "sampling weights",
}
_GAPS = {
    "value": "skip_missing = true    # leave out records without a value",
    "holding": "standalone = true    # records without a holding stand alone",
}
"""What to do with records that lack an entry: switched on where there are some, which is said."""


_READABLE = 3
"""Amounts with more decimals than this are published with two."""


def _decimals_line_of_job(found: Guess, columns: Sequence[Column]) -> str:
    """Return how many decimals the table has; switched on where sums would have more than people write."""
    weights = any(c.name == found.weight and not c.whole for c in columns)
    value = next((c.decimals for c in columns if c.name == found.value), 0)
    many = value is None or value > _READABLE or weights
    line = "decimals = 2    # of the table: records are rounded to them before they are added up"
    return line if many and found.value else f"# {line}"


def _dimension_section(guessed: DimensionGuess, path: Path, folder: Path, *, active: bool) -> str:
    """Return a section; a hierarchy beside the data is used: of the column's name, or with all its codes."""
    off = "" if active else "# "
    lines = [f"{off}[dimensions.{toml_key(guessed.column.name)}]    # {guessed.why.removeprefix('dimension: ')}"]
    lines += [f"{off}{line}" if on else f"# {line}" for line, on in _hierarchy_lines_of_job(guessed, path, folder)]
    gaps = guessed.column.gaps
    if gaps:
        lines.append(f'{off}missing = ["unknown"]    # a code of their own for {gaps:,} records without one')
    return "\n".join(lines) + "\n"


def _hierarchy_lines_of_job(guessed: DimensionGuess, path: Path, folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the lines that say how the codes add up, and whether they are switched on."""
    name, beside = guessed.column.name, path.parent
    found = next((beside / f"{name}{s}" for s in (".hrc", ".txt") if (beside / f"{name}{s}").is_file()), None)
    if found is None and not guessed.levels:
        found = guess_hierarchy_beside(path, guessed.column, leaves=True)
    if found is not None:
        yield f"hierarchy = {toml_value(os.path.relpath(found, folder))}    # it has all codes of the column", True
    elif guessed.levels:
        about = "columns from coarse to fine: one hierarchy, never crossed"
        yield f"levels = {toml_value(guessed.levels)}    # {about}", True
    else:
        yield _ADD_UP, False
        if guessed.column.digits:
            yield "digits = [1, 1]    # instead: how many digits each level of the codes adds", False


_WAITS = """
# These guesses could publish what must not be published. Look at them, then delete the next line:
# cellguard protect waits for that.
unconfirmed = {listed}
"""

_HEAD = """\
# A job for cellguard. Look through it, then:   cellguard protect THIS-FILE --dry-run
#                                               cellguard protect THIS-FILE
# Lines that begin with # are remarks, or choices that are switched off.

name = "{name}"    # names the files of the release
seed = 1    # the same seed gives the same release
{unconfirmed}"""

_DATA = """\
[data]
# Columns found, and what they were taken for:
{about}
file = {file}"""

_ADD_UP = 'hierarchy = "codes.hrc"    # how its codes add up; left out, all add up to the total'

_P_PERCENT = """\
[[rules]]
rule = "p_percent"    # another contributor must not be able to estimate the largest to within p per cent
p = 10
"""

_LARGEST = """\
[[rules]]
rule = "dominance"    # the largest contributor holds more than k per cent
n = 1
k = 85
"""

MINIMUM = """\
[[rules]]
rule = "min_frequency"    # fewer than n contributors
n = 3
percent = 10    # how far such a cell must stay uncertain, in per cent of its value
"""

_DOMINANCE = """\
# [[rules]]
# rule = "dominance"    # the n largest contributors hold more than k per cent
# n = 2
# k = 85
"""

_BY_HAND = """\
# The file says nothing about contributors, so that no rule can tell what is sensitive: name the columns of counts
# (count) and of the largest contributions (top) above, or the cells by hand, which waits for you:
[[rules]]
rule = "manual"
cells = []    # such as [{region = "N1", size = "small"}]
percent = 20    # how far they must stay uncertain, in per cent of their values
"""

_COUNTS = """\
[[rules]]
rule = "min_frequency"    # counts below n are sensitive
n = 3
"""

_SEVERAL = """\
# Several linked tables instead of one with all dimensions:
# [[tables]]
# dimensions = ["...", "..."]
"""

_REST = """\
[method]
name = "suppress"    # or intervals, round, perturb, adjust
# rounds = 30    # suppress: stop after so many rounds of improvement, without a proof
# base = 5    # round and perturb

# [[attackers]]    # somebody who knows his own contribution
# name = "firm 12"
# knows = [{{cell = {{region = "N1"}}, contribution = 40.0}}]

# [compare]    # how the other methods would do, in the internal report

[limits]
time_limit_s = 60    # for the method; with more time cheaper releases are found, or proven the best

[output]
folder = {folder}    # gets two folders: public, and internal (confidential)
formats = ["csv", "xlsx"]    # also parquet, sdmx, px, jj
"""
