"""Propose a job for a user's data: inspect the columns, guess their roles, write a commented file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellguard._io.frames import convert_to_numbers, encode_frame_column, read_frame
from cellguard._io.toml import format_key, format_value
from cellguard.exceptions import InputError
from cellguard.jobs.proposal.columns import Column, sample_columns
from cellguard.jobs.proposal.guess import DimensionGuess, Guess, guess
from cellguard.jobs.proposal.ready_table import (
    Ready,
    ReadyDimension,
    guess_hierarchy_beside,
    guess_ready_table,
    is_ready_table,
)
from cellguard.model.trees import match_leading_zeros
from cellguard.tabulation.template import find_total

__all__ = ["MINIMUM", "Draft", "are_records", "propose_job"]

_MAX_CELLS = 5000
_RECORDS_PER_CELL = 5
_MAX_DIMENSIONS = 8
_NEARLY_ALL = 0.8
"""A file that has this share of a column's codes was meant for it."""


class Draft(NamedTuple):
    """A job for a data file."""

    text: str
    """The job, with its explanations."""
    told: tuple[str, ...]
    """The guesses and their reasons, one line per column."""
    unconfirmed: tuple[str, ...]
    """Guesses that a user must confirm before anything is published."""


def propose_job(path: Path, folder: Path, correspondences: Sequence[Path] = ()) -> Draft:
    """Return a commented job for a data file, to be saved in a folder.

    `correspondences` are files that say how codes nest, one column per level and one row per code.
    """
    columns, rows = sample_columns(path)
    found = guess(columns)
    if not _hold_records(found, columns, rows):
        return _propose_ready_table(path, folder, columns)
    if not found.dimensions:  # the only possible dimensions name respondents
        reasons = "".join(f"\n  {line}" for line in _format_guesses(found.why))
        raise InputError(
            f"{path}: no column looks like a dimension (codes that records share).{reasons}",
            hint="a table needs at least one column of codes, such as region or activity.",
        )
    nests = {d.column.name: _find_levels(d, correspondences) for d in found.dimensions}
    active = _choose_dimensions(found.dimensions, rows)
    linked = _choose_linked_tables(found.dimensions, active, correspondences)
    active += [d for d in found.dimensions if d not in active and any(d in table for table in linked)]
    if all(d.risky for d in found.dimensions):
        found.unconfirmed.append("dimensions")
    totals = _find_totals_among_records(path, found)
    why = {c.name: _explain_guess(found, c, active) for c in columns}
    twice = (*_format_duplicates(found, columns), *totals)
    about = _format_columns(columns, why) + "".join(f"\n# {line}" for line in twice)
    parts = [_format_head(path, found.unconfirmed)]
    parts += [
        _DATA.format(file=format_value(os.path.relpath(path, folder)), about=about),
        _format_data_section(found, columns),
    ]
    twice = (*twice, *_describe_files(correspondences, nests, found.dimensions), *_describe_linked_tables(linked))
    parts += [
        _format_dimension(d, path, folder, nests[d.column.name], active=d in active)
        + _offer_incomplete_files(d, folder, correspondences, nests[d.column.name])
        for d in found.dimensions[:_MAX_DIMENSIONS]
    ]
    rules = f"{_P_PERCENT}\n{MINIMUM}\n{_DOMINANCE}" if found.value else _COUNTS
    parts.append(f"{_format_linked_tables(linked) or _SEVERAL}\n{rules}\n{_format_rest(path)}")
    return Draft("\n".join(parts), (*_format_guesses(why), *twice), tuple(found.unconfirmed))


def are_records(path: Path) -> bool:
    """Return whether a file holds records: rows that share all their codes, and no totals."""
    columns, rows = sample_columns(path)
    found = guess(columns)
    return _hold_records(found, columns, rows) and _count_combinations(found) < rows


def _hold_records(found: Guess, columns: Sequence[Column], rows: int) -> bool:
    """Return whether rows are records. A few rows of totals among many records do not make a file a table."""
    if is_ready_table(columns):
        return False
    if not found.added_up or found.holding:
        return True
    return 0 < _count_combinations(found) <= _SAME * rows


def _count_combinations(found: Guess) -> int:
    codes = [d.column.index for d in found.dimensions]
    return len(np.unique(np.column_stack(codes), axis=0)) if codes else 0


def _find_totals_among_records(path: Path, found: Guess) -> list[str]:
    """Describe rows that are totals by their code, or whose values equal the sum of all others; ask about them."""
    told = []
    values = None
    if found.value is not None:
        with suppress(InputError):  # entries that are not numbers are reported elsewhere
            values = convert_to_numbers(read_frame(path)[found.value], found.value)
    for guessed in found.dimensions:
        column = guessed.column
        total = find_total(column.codes)
        if values is not None and total is None:
            sums = np.bincount(column.index + 1, np.nan_to_num(values[: len(column.index)]), column.distinct + 1)
            off = np.abs(2.0 * sums[1:] - sums.sum())
            doubled = off <= _EQUAL_SUMS * abs(sums.sum())
            rare = np.bincount(column.index + 1, minlength=column.distinct + 1)[1:] <= _RARE * len(column.index)
            if (doubled & rare).any() and column.distinct > 2:
                total = column.codes[int(np.argmax(doubled & rare))]
        if total is not None:
            number = int((column.index == column.codes.index(total)).sum())
            rows = "1 row has" if number == 1 else f"{number:,} rows have"
            told.append(f"{column.name}: {rows} the code {total!r}, which looks like a total; it would count twice.")
            found.unconfirmed.append(f"totals in {column.name}")
    return told


_EQUAL_SUMS = 1e-6
"""A code's values equal those of all other codes together up to this share: rounded totals."""
_RARE = 0.1
"""Rows of totals are at most this share of all rows."""


def _format_guesses(why: Mapping[str, str]) -> list[str]:
    return [f"{name}: {reason}" for name, reason in why.items()]


def _format_columns(columns: Sequence[Column], why: Mapping[str, str]) -> str:
    return "\n".join(f"#   {c.name}: {_describe_guess(c)}\n#     {why[c.name]}" for c in columns)


def _format_head(path: Path, unconfirmed: Sequence[str]) -> str:
    waits = _WAITS.format(listed=format_value(unconfirmed)) if unconfirmed else ""
    return _HEAD.format(name=_choose_release_name(path), unconfirmed=waits)


def _format_rest(path: Path) -> str:
    return _REST.format(folder=format_value(f"{_choose_release_name(path)}-release"))


_ACCIDENT = 0.05
"""If a larger share of records occurs twice, duplicates are normal in these data."""


def _format_duplicates(found: Guess, columns: Sequence[Column]) -> tuple[str, ...]:
    """Report records that equal another in every column, if the columns would distinguish records."""
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
"""A column distinguishes records if it has more different entries than this share of their number."""


def _choose_release_name(path: Path) -> str:
    """Return a name for the release: that of the file, without characters that are not allowed."""
    stem = path.name.lower()
    for ending in (".gz", ".csv", ".parquet", ".xlsx"):
        stem = stem.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in path.name[: len(stem)]).strip("-._") or "table"


def _propose_ready_table(path: Path, folder: Path, columns: Sequence[Column]) -> Draft:
    """Return a job for a ready table."""
    found = guess_ready_table(path, columns)
    told = _format_guesses({c.name: found.why[c.name] for c in columns})
    total = {d.name: d.total for d in found.dimensions if d.total}
    lines = ["[[tables]]", "# Columns found, and what they were taken for:", _format_columns(columns, found.why)]
    lines += [f"name = {format_value(path.name.partition('.')[0])}    # names its files"]
    lines += [f"file = {format_value(os.path.relpath(path, folder))}"]
    lines += [
        f"dimensions = {format_value([d.name for d in found.dimensions])}",
        f"value = {format_value(found.value)}",
    ]
    lines += [f"total = {format_value(total)}    # how the file calls the totals"] if total else []
    count = f"count = {format_value(found.count)}" if found.count else '# count = "..."'
    top = f"top = {format_value(found.top)}" if found.top else '# top = ["...", "..."]'
    lines += [f"{count}    # numbers of contributors", f"{top}    # largest contributions, the largest first"]
    if found.cells > found.rows:
        missing = f"{found.cells - found.rows:,} of {found.cells:,} combinations of codes have no row:"
        lines.append(f"# {missing} no contributors, as everybody knows.")
        told.append(f"{missing} they count as empty.")
    lines += ["", *(_format_ready_dimension(d, folder) for d in found.dimensions)]
    text = "\n".join(
        [_format_head(path, found.unconfirmed), *lines, *_format_ready_rules(found), "", _format_rest(path)]
    )
    return Draft(text, tuple(told), found.unconfirmed)


def _format_ready_dimension(dimension: ReadyDimension, folder: Path) -> str:
    line = f"# {_ADD_UP}"
    if dimension.hierarchy is not None:
        line = f"hierarchy = {format_value(os.path.relpath(dimension.hierarchy, folder))}"
    return f"[dimensions.{format_key(dimension.name)}]\n{line}\n"


def _format_ready_rules(found: Ready) -> list[str]:
    """Return the rules that a table supports, given its contributions and numbers of contributors."""
    out = []
    if found.top:
        out.append(_P_PERCENT if len(found.top) > 1 else _LARGEST)
    if found.count:
        out.append(_COUNTS if found.count == found.value else MINIMUM)
    return out or [_BY_HAND]


def _choose_dimensions(dims: Sequence[DimensionGuess], rows: int) -> list[DimensionGuess]:
    """Return the dimensions of a first table: at most three, no more cells than records can fill, none risky."""
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


def _explain_guess(found: Guess, column: Column, active: Sequence[DimensionGuess]) -> str:
    why = found.why.get(column.name, "not used")
    if why.startswith("dimension") and not any(d.column.name == column.name for d in active):
        return f"{why} (switched off)"
    return why


def _describe_guess(column: Column) -> str:
    kind = ("whole numbers" if column.whole else "numbers") if column.numeric else "codes or text"
    kind = "days" if column.dates else "digits with leading zeros" if column.zeros else kind
    return f"{kind}, {column.distinct:,} different" + (f", {column.gaps:,} records without" if column.gaps else "")


def _format_data_section(found: Guess, columns: Sequence[Column]) -> str:
    lines = []
    for role, about in _ROLES.items():
        column = getattr(found, role)
        lines.append(f"{role} = {format_value(column)}    # {about}" if column else f'# {role} = "..."    # {about}')
    lines.append(_format_decimals(found, columns))
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
"""Settings for records with missing entries; switched on, with a remark, if there are any."""


_READABLE = 3
"""Amounts with more decimals than this are published with two."""


def _format_decimals(found: Guess, columns: Sequence[Column]) -> str:
    """Return the setting of the table's decimals; switched on if sums would have too many."""
    weights = any(c.name == found.weight and not c.whole for c in columns)
    value = next((c.decimals for c in columns if c.name == found.value), 0)
    many = value is None or value > _READABLE or weights
    line = "decimals = 2    # of the table: records are rounded to them before they are added up"
    return line if many and found.value else f"# {line}"


class _Fit(NamedTuple):
    """How the codes of one column of a file fit those of a dimension."""

    levels: list[str]
    """Columns of the file from its first to this one."""
    lacks: list[str]
    """Codes of the records that the column does not have."""
    zeros: dict[str, str]
    """Codes of the records that lost leading zeros -> the code of the file."""


def _fit_file(guessed: DimensionGuess, file: Path) -> _Fit | None:
    """Return how a file's best column fits a dimension; None if it has few of its codes."""
    fits, names = [], []
    for name, column in read_frame(file).items():
        names.append(name)
        known = encode_frame_column(column)[0]
        lacks = [code for code in guessed.column.codes if code not in set(known)]
        zeros = match_leading_zeros(sorted(lacks), known)
        if len(lacks) - len(zeros) <= (1.0 - _NEARLY_ALL) * guessed.column.distinct:
            fits.append(_Fit(list(names), sorted(code for code in lacks if code not in zeros), zeros))
    return min(fits, key=lambda fit: (len(fit.lacks), len(fit.zeros)), default=None)


def _find_levels(guessed: DimensionGuess, correspondences: Sequence[Path]) -> tuple[Path, list[str]] | None:
    """Return the file that has every code of a dimension in one of its columns, and its columns down to that one."""
    for file in correspondences:
        fit = _fit_file(guessed, file)
        if fit is not None and not fit.lacks and len(fit.levels) >= len(guessed.levels):
            return file, fit.levels
    return None


def _describe_files(
    correspondences: Sequence[Path], nests: Mapping[str, Any], dimensions: Sequence[DimensionGuess]
) -> Iterator[str]:
    """Say which codes a used file spells differently, and why a file is not used and what to do."""
    for file in correspondences:
        fits = [(d, fit) for d in dimensions if (fit := _fit_file(d, file)) is not None]
        used = [(d, fit) for d, fit in fits if (found := nests[d.column.name]) is not None and found[0] == file]
        for d, fit in used:
            if fit.zeros:
                pairs = _list_codes([f"{code} for {full}" for code, full in fit.zeros.items()])
                yield f"{file.name}: {d.column.name} has {pairs} (leading zeros lost?); the file's codes are used."
        if used:
            continue
        if not fits:
            yield f"{file.name}: no column of the records has its codes; it is not used."
            continue
        d, fit = min(fits, key=lambda pair: len(pair[1].lacks))
        name = d.column.name
        if not fit.lacks:
            levels = " > ".join(d.levels)
            yield f"{file.name}: the records have the levels of {name} themselves ({levels}); it is not used."
            continue
        listed = _list_codes(fit.lacks)
        yield f"{file.name}: lacks the codes {listed} of {name}; it is not used. Add a row for each, then run it again."


def _list_codes(codes: Sequence[str]) -> str:
    """Return at most five codes, and the number of others."""
    more = f" and {len(codes) - _SHOWN} more" if len(codes) > _SHOWN else ""
    return ", ".join(codes[:_SHOWN]) + more


_SHOWN = 5
"""Maximum number of codes to list in a message."""


def _offer_incomplete_files(
    guessed: DimensionGuess, folder: Path, correspondences: Sequence[Path], nests: tuple[Path, list[str]] | None
) -> str:
    """Return lines, switched off, with a file that lacks a few codes of a dimension, and what to do to use it."""
    lines = []
    for file in correspondences if nests is None else ():
        fit = _fit_file(guessed, file)
        if fit is not None and fit.lacks and len(fit.levels) >= len(guessed.levels):
            listed = _list_codes(fit.lacks)
            lines.append(f"# {file.name} lacks the codes {listed}. To use it, add a row for each, then:")
            lines.append(f"# hierarchy = {format_value(os.path.relpath(file, folder))}")
            lines.append(f"# levels = {format_value(fit.levels)}")
    return "".join(f"{line}\n" for line in lines)


def _choose_linked_tables(
    dims: Sequence[DimensionGuess], active: Sequence[DimensionGuess], correspondences: Sequence[Path]
) -> list[tuple[DimensionGuess, ...]]:
    """Return linked tables if a dimension that a user gave a file for does not fit into the first table.

    Every dimension with levels is crossed with every other active one, as in a publication of activity by size,
    activity by legal form, region by size and region by legal form.
    """
    given = [d for d in dims[:_MAX_DIMENSIONS] if any(_fit_file(d, file) is not None for file in correspondences)]
    if all(d in active or d.unlikely for d in given):
        return []
    deep = [d for d in dims if (d in active and d.levels) or (d in given and not d.unlikely)]
    flat = [d for d in active if d not in deep]
    return [(d, other) for d in deep for other in flat] or [(d,) for d in deep]


def _describe_linked_tables(linked: Sequence[Sequence[DimensionGuess]]) -> Iterator[str]:
    if linked:
        names = "; ".join(" by ".join(d.column.name for d in table) for table in linked)
        yield f"{len(linked)} linked tables, because one with all dimensions would have too many cells: {names}."


def _format_linked_tables(linked: Sequence[Sequence[DimensionGuess]]) -> str:
    if not linked:
        return ""
    lines = ["# Linked tables, protected together; without them, one table has all dimensions."]
    for table in linked:
        lines += ["[[tables]]", f"dimensions = {format_value([d.column.name for d in table])}", ""]
    return "\n".join(lines)


def _format_dimension(
    guessed: DimensionGuess, path: Path, folder: Path, nests: tuple[Path, list[str]] | None, *, active: bool
) -> str:
    """Return the section of a dimension, with a hierarchy file beside the data if its name or codes match."""
    off = "" if active else "# "
    lines = [f"{off}[dimensions.{format_key(guessed.column.name)}]    # {guessed.why.removeprefix('dimension: ')}"]
    if nests is not None:
        file, levels = nests
        lines.append(
            f"{off}hierarchy = {format_value(os.path.relpath(file, folder))}    # it has all codes of the column"
        )
        lines.append(f"{off}levels = {format_value(levels)}    # its columns, from coarse to fine")
        fit = _fit_file(guessed, file)
        if fit is not None and fit.zeros:
            pairs = _list_codes([f"{code} is {full}" for code, full in fit.zeros.items()])
            lines.append(f"{off}leading_zeros = true    # the records lost them: {pairs}")
    else:
        lines += [f"{off}{line}" if on else f"# {line}" for line, on in _format_hierarchy_lines(guessed, path, folder)]
    gaps = guessed.column.gaps
    if gaps:
        lines.append(f'{off}missing = ["unknown"]    # a code of their own for {gaps:,} records without one')
    return "\n".join(lines) + "\n"


def _format_hierarchy_lines(guessed: DimensionGuess, path: Path, folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the lines that say how the codes add up, and whether they are switched on."""
    name, beside = guessed.column.name, path.parent
    found = next((beside / f"{name}{s}" for s in (".hrc", ".txt") if (beside / f"{name}{s}").is_file()), None)
    if found is None and not guessed.levels:
        found = guess_hierarchy_beside(path, guessed.column, leaves=True)
    if found is not None:
        yield f"hierarchy = {format_value(os.path.relpath(found, folder))}    # it has all codes of the column", True
    elif guessed.levels:
        about = "columns from coarse to fine: one hierarchy, never crossed"
        yield f"levels = {format_value(guessed.levels)}    # {about}", True
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
# The file says nothing about contributors, so no rule can find the sensitive cells: name the columns of counts
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
# rounds = 30    # suppress: stop after at most this many rounds of improvement, without a proof
# base = 5    # round and perturb

# [[attackers]]    # a respondent who knows their own contribution
# name = "firm 12"
# knows = [{{cell = {{region = "N1"}}, contribution = 40.0}}]

# [compare]    # how the other methods would do, in the internal report

[limits]
time_limit_s = 60    # for the method; with more time cheaper releases are found, or proven the best

[output]
folder = {folder}    # gets two folders: public, and internal (confidential)
formats = ["csv", "xlsx"]    # also parquet, sdmx, px, jj
"""
