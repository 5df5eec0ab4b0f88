"""What was published of a publication: a file for each table, put together as an attacker does who has all of them.

A cell that one table withholds and another prints is printed; intervals of one cell in two tables are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError, ReleaseError, did_you_mean
from cellguard.nouns.publication import Part
from cellguard.nouns.release import Intervals, Release, Suppression
from cellguard.nouns.sheets import file_name

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["read_tables", "release_files_of_tables"]

_ENDINGS = (".csv", ".parquet", ".csv.gz", ".tab", ".tsv")
Pair = tuple[Part, Release]
"""A table and what was published of it."""


def release_files_of_tables(parts: Sequence[Part], given: str | Path | Mapping[str, str | Path]) -> dict[str, Path]:
    """Return the file of each table: as they are named, or as they are called in a folder."""
    if isinstance(given, Mapping):
        unknown = next((name for name in given if name not in {part.name for part in parts}), None)
        if unknown is not None:
            hint = did_you_mean(unknown, [part.name for part in parts])
            raise InputError(f"the publication has no table {unknown!r}.", hint=hint)
        found = {name: Path(path) for name, path in given.items()}
    else:
        places = {part.name: [Path(given) / f"{file_name(part.name)}{end}" for end in _ENDINGS] for part in parts}
        found = {name: path for name, paths in places.items() for path in paths if path.is_file()}
    missing = [part.name for part in parts if part.name not in found]
    if missing:
        raise InputError(
            f"no file of {', '.join(map(repr, missing[:5]))}{' and others' if len(missing) > 5 else ''}.",
            hint="a file for each table is needed, named like the table; what was not published tells nothing.",
        )
    return found


def read_tables(table: Table, files: Mapping[str, Path], read: Any) -> Release:
    """Return the release of a publication from the files of its tables.

    Parameters
    ----------
    table
        The system of the publication.
    files
        The file of each table, by its name.
    read
        Reads the release of one table from a file.
    """
    pairs: list[Pair] = []
    for part in table.parts or ():
        values = table.values[part.cells]
        own = part.table if np.array_equal(values, part.table.values) else part.table.with_(values=values)
        pairs.append((part, read(own, files[part.name])))
    kinds = {release.method for _, release in pairs}
    if len(kinds) > 1:
        raise ReleaseError(f"the tables were made by different methods: {', '.join(sorted(kinds))}.")
    first = pairs[0][1]
    if isinstance(first, Suppression):
        return replace(first, table=table, suppressed=_withheld_in_read_tables(table, pairs))
    if len(np.unique(np.concatenate([part.cells for part, _ in pairs]))) < table.n_cells:
        raise InputError("cells that no table shows are known to whoever made the release only: they cannot be read.")
    if isinstance(first, Intervals):
        return replace(first, table=table, **_read_intervals_in_common(table, pairs))
    changed = {name: _agreed_numbers_as_read(table, pairs, name) for name in first.cell_arrays()}
    return replace(first, table=table, **changed)


def _withheld_in_read_tables(table: Table, pairs: Sequence[Pair]) -> Any:
    """Return which cells stand in no table; a sensitive one that a table prints is refused with both places."""
    hidden = np.ones(table.n_cells, bool)
    hides, shows = np.full(table.n_cells, -1), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        suppressed = np.asarray(getattr(release, "suppressed"))  # noqa: B009 - the pattern of one of its kind
        hides[part.cells[suppressed]] = k
        shows[part.cells[~suppressed]] = k
        hidden[part.cells[~suppressed]] = False
    both = np.flatnonzero(table.sensitive & (hides >= 0) & (shows >= 0))
    if len(both):
        cell = int(both[0])
        one, other = (pairs[int(k[cell])][0].name for k in (hides, shows))
        more = f", and so are {len(both) - 1} others" if len(both) > 1 else ""
        raise ReleaseError(f"{table.label(cell)} is sensitive, withheld in {one!r} and published in {other!r}{more}.")
    return hidden


def _agreed_numbers_as_read(table: Table, pairs: Sequence[Pair], name: str) -> Any:
    """Return what is published of each cell; two tables that say different things are refused."""
    out, said = np.full(table.n_cells, np.nan), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        new, known = np.asarray(getattr(release, name)), out[part.cells]
        other = np.flatnonzero(~np.isnan(known) & (known != new))
        if len(other):
            cell = int(part.cells[other[0]])
            places = f"{pairs[int(said[cell])][0].name!r} and {part.name!r}"
            raise ReleaseError(f"{table.label(cell)}: {places} publish different numbers of it.")
        out[part.cells], said[part.cells] = new, k
    return out


def _read_intervals_in_common(table: Table, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the ends of what the intervals of each cell have in common."""
    out = {"lower": np.full(table.n_cells, -np.inf), "upper": np.full(table.n_cells, np.inf)}
    for part, release in pairs:
        for name, join in (("lower", np.maximum), ("upper", np.minimum)):
            out[name][part.cells] = join(out[name][part.cells], getattr(release, name))
    return out
