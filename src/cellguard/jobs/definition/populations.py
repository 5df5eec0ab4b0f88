"""Check the part of the population that a ready table covers: unknown keys and codes would break its links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cellguard._io.frames import encode_frame_column
from cellguard.exceptions import CellguardError, InputError, UnknownCodeError, suggest_names
from cellguard.jobs.definition.model import Job, TableSection
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.publication import Part
from cellguard.tabulation.template import is_template_period

__all__ = ["build_empty_population_error", "find_wrong_codes", "find_wrong_keys"]

_SOME = 12
"""Number of known names that an error lists."""


def find_wrong_keys(
    path: Path, entry: TableSection, job: Job, name: str, given: Mapping[str, Any]
) -> Iterator[CellguardError]:
    """Yield unknown keys of `where`: not a dimension, not a column of the file, and not used by another table.

    A misspelt key would make the table part of a population that no other table covers. Cells that are withheld
    elsewhere would then be published here. `given` is the content of the file of the table `name`.
    """
    elsewhere = {key for other in job.tables if other is not entry for key in other.where}
    known = dict.fromkeys([*job.dimensions, *given, *elsewhere])
    columns = {column: d for d, column in entry.columns.items() if d in entry.dimensions and column != d}
    for key in entry.where:
        place = f"{path.name}: table {name!r}: where: "
        if key in columns:
            text = f"{place}column {key!r} is the dimension {columns[key]!r} of this table."
            yield InputError(text, hint=f'say where = {{{columns[key]} = "{entry.where[key]}"}}.')
        elif key not in known and not is_template_period(key):
            some = f"known are {', '.join(list(known)[:_SOME])}; what is none of them is described in [dimensions]."
            text = (
                f"{place}{key!r} is neither a dimension nor a column of the file, and no other table uses it in where."
            )
            yield UnknownCodeError(text, hint=suggest_names(key, known) or some)


def build_empty_population_error(
    path: Path, entry: TableSection, name: str, given: Mapping[str, Any]
) -> CellguardError:
    """Return the mistake of a file in which no row belongs to the table."""
    if not given or not len(next(iter(given.values()))):
        text = f"{path.name}: table {name!r}: the file has no rows."
        return InputError(text, hint="a table has at least one cell; leave it out of the job if it has none.")
    named = {entry.columns.get(d, d): code for d, code in entry.where.items() if d not in entry.dimensions}
    asked = {column: code for column, code in named.items() if column in given}
    for column, code in asked.items():
        seen = encode_frame_column(given[column])[0]
        if code not in seen:
            text = f"{path.name}: table {name!r}: where: no row has {code!r} in column {column!r}."
            return UnknownCodeError(text, hint=_suggest_code(code, seen))
    both = ", ".join(f"{column} = {code!r}" for column, code in asked.items())
    text = f"{path.name}: table {name!r}: where: no row has {both}."
    return InputError(text, hint="each of them is there, but not in one row.")


def _suggest_code(code: str, known: Collection[str]) -> str:
    return suggest_names(code, known) or f"known are {', '.join(list(known)[:_SOME])}."


def find_wrong_codes(
    parts: Sequence[Part], job: Job, hierarchy: Callable[[str], Any], unread: Collection[str]
) -> Iterator[CellguardError]:
    """Yield codes of `where` that are neither in the hierarchy of their dimension nor in any other table.

    Dimensions in `unread` (of tables that could not be read) are skipped.
    """
    codes: dict[str, list[tuple[Part, tuple[str, ...]]]] = {}
    for part in parts:
        for own, listed in zip(part.table.dimensions, part.table.codes, strict=True):
            codes.setdefault(part.dimension(own), []).append((part, listed))
    told = set()
    for part in (part for part in parts if part.source):
        for d, code in part.where.items():
            if d not in job.dimensions or d in unread or (part.source, d, code) in told:
                continue
            tree = hierarchy(d)
            known = {} if tree is None or isinstance(tree, tuple) else dict.fromkeys(Hierarchy.of(tree).codes)
            for other, listed in codes.get(d, ()):
                if (other.source, other.where) != (part.source, part.where):
                    known |= dict.fromkeys(listed)
            if known and code not in known:
                told.add((part.source, d, code))
                text = f"table {part.place(-1)}: where: {code!r} is not a code of the dimension {d!r}."
                yield UnknownCodeError(text, hint=_suggest_code(code, list(known)))
